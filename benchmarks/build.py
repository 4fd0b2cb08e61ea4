"""Building a tree: seconds by stage, memory, calls and growth, against the source's procedure, in one run.

    python benchmarks/build.py --sizes 412 2000 10000 50000 --data FOLDER

Vectors are synthetic (areas hold themes, and themes topics), or those of the leaves of a folder of documents
(``docs.jsonl``), embedded by the profile `cpu`. The writer is a stub, so that clustering and bookkeeping are what is
measured. Every size has a process of its own: the first build in it pays for imports and compilation, the second does
not.
"""

import argparse
import json
import resource
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from sklearn.metrics import adjusted_rand_score

import source_procedure
from helpers import growth
from helpers.index import VectorIndex
from helpers.jsonlines import read_rows
from helpers.leaves import split_leaves
from helpers.machine import machine
from helpers.mixtures import fit_mixture
from helpers.models import load_embedder
from helpers.profiles import load_profile
from helpers.reduction import reduce_dimensions
from helpers.tree import build_tree

LEAVES_PER_TOPIC, LEAVES_PER_THEME, LEAVES_PER_AREA = 8, 40, 1000
PROMPT_TOKENS, LEAF_TOKENS = 60, 100
DIMENSIONS = 384
GROWTH_FROM = 2000


class TopicEmbedder(Embeddings):
    """Vectors as documentation has them: areas hold themes, and themes topics. A text is "topic number ..."."""

    identity = "synthetic topics"

    def __init__(self, leaves: int, seed: int = 0):
        random, topics = np.random.default_rng(seed), max(1, leaves // LEAVES_PER_TOPIC)
        self.centres = sum(
            random.normal(size=(max(1, leaves // size), DIMENSIONS))[
                np.arange(topics) % max(1, leaves // size)
            ]
            for size in (LEAVES_PER_AREA, LEAVES_PER_THEME, LEAVES_PER_TOPIC)
        )

    def embed_documents(self, texts):
        return [self._vector(text) for text in texts]

    def embed_query(self, text):
        return self._vector(text)

    def _vector(self, text):
        topic, number = (int(part) for part in text.split()[:2])
        noise = np.random.default_rng(number).normal(size=DIMENSIONS)
        vector = self.centres[topic] + noise
        return vector / np.linalg.norm(vector)


def synthetic_leaves(n: int) -> list[Document]:
    """Return n leaves, eight to a topic."""
    topics = max(1, n // LEAVES_PER_TOPIC)
    return [
        Document(f"{i % topics} {i}", metadata={"id": f"leaf-{i}", "source": f"page-{i // 10}"})
        for i in range(n)
    ]


class Stub:
    """A writer that costs nothing: it keeps the beginning of the first child. Counts its calls."""

    def __init__(self):
        self.calls = 0

    @staticmethod
    def prompt_tokens(texts):
        """Count every text as a leaf of the profile, so that clusters are split as they are there."""
        return PROMPT_TOKENS + LEAF_TOKENS * len(texts)

    def __call__(self, texts):
        self.calls += 1
        topic, *rest = texts[0].split()
        return " ".join([topic, str(10**6 + self.calls), *rest[1:80]])


class Stopwatch:
    """Seconds by the name of a stage."""

    def __init__(self):
        self.seconds = Counter()

    def timed(self, name, function):
        """Return the function, timed."""

        def wrapper(*args, **kwargs):
            started = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self.seconds[name] += time.perf_counter() - started

        return wrapper


def corpus(n: int, folder: Path | None) -> tuple[Embeddings, list[Document]]:
    """Return an embedder and n leaves: synthetic ones, or the first of a folder's documents."""
    if folder is None:
        return TopicEmbedder(n), synthetic_leaves(n)
    profile = load_profile("cpu")
    embedder = load_embedder(profile)
    pages = [
        Document(row["text"], metadata={"source": row["id"]}) for row in read_rows(folder / "docs.jsonl")
    ]
    leaves = split_leaves(pages, embedder.count_tokens, profile.chunk_tokens, profile.chunk_overlap)
    return embedder, leaves[:n]


def build_ours(embedder: Embeddings, leaves: list[Document]) -> dict:
    """Build tree and index with the project's code."""
    watch, stub, cluster, embed = Stopwatch(), Stub(), growth.cluster, embedder.embed_documents
    growth.cluster = watch.timed("clustering", cluster)
    embedder.embed_documents = watch.timed("embedding", embed)
    started = time.perf_counter()
    tree = build_tree(leaves, embedder, stub)
    watch.timed("index", VectorIndex.build)(list(tree.nodes.values()), embedder)
    total = time.perf_counter() - started
    growth.cluster, embedder.embed_documents = cluster, embed
    stages = watch.seconds | {"total": total}
    levels = [len(level) for level in tree.levels]
    return {"seconds": _rounded(stages), "levels": levels, "calls": stub.calls}


def build_reference(embedder: Embeddings, leaves: list[Document]) -> dict:
    """Build the same with the source's procedure."""
    watch, stub = Stopwatch(), Stub()
    texts = [leaf.page_content for leaf in leaves]
    levels = watch.timed("total", source_procedure.grow)(texts, embedder, stub)
    return {"seconds": _rounded(watch.seconds), "levels": levels, "calls": stub.calls}


def agreement(embedder: Embeddings, leaves: list[Document]) -> dict:
    """Compare the ladder with the full search for k, on the same points."""
    points = reduce_dimensions(embedder.embed_documents([leaf.page_content for leaf in leaves]))
    (ladder, tried), (full, _) = (fit_mixture(points, search=search) for search in ("early", "exhaustive"))
    same = adjusted_rand_score(*(mixture.predict_proba(points).argmax(axis=1) for mixture in (ladder, full)))
    return {
        "k of the ladder": ladder.n_components,
        "k of the full search": full.n_components,
        "fits of the ladder": len(tried),
        "BIC above the full search": round(ladder.bic(points) / full.bic(points) - 1, 5),
        "adjusted Rand index": round(same, 3),
    }


def measure(n: int, procedure: str, folder: Path | None) -> dict:
    """Build twice in this process and report it with the peak memory."""
    embedder, leaves = corpus(n, folder)
    if folder:  # so that both procedures find every vector in the cache
        embedder.embed_documents([leaf.page_content for leaf in leaves])
    build = {"ours": build_ours, "reference": build_reference}[procedure]
    row = {
        "leaves": len(leaves),
        "first build": build(embedder, leaves),
        "second build": build(embedder, leaves),
    }
    row["peak memory, GB"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2)
    if procedure == "ours":
        row["search for k"] = agreement(embedder, leaves)
    return row


def _rounded(seconds):
    return {name: round(value, 2) for name, value in seconds.items()}


def _measured_in_a_process(n, procedure, folder):
    command = [sys.executable, __file__, "--one", procedure, "--sizes", str(n)]
    command += ["--data", str(folder)] if folder else []
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    print(f"{procedure}, {folder.name if folder else 'synthetic'}: {lines[-1]}", flush=True)
    return json.loads(lines[-1])


def compared(sizes, reference_up_to, folder) -> list[dict]:
    """Measure each size, with the reference up to a size, and the ratio of their seconds."""
    rows = []
    for n in sizes:
        row = {"ours": _measured_in_a_process(n, "ours", folder)}
        if n <= reference_up_to:
            row["reference"] = _measured_in_a_process(n, "reference", folder)
            for build in ("first build", "second build"):
                ours, reference = (row[who][build]["seconds"]["total"] for who in ("ours", "reference"))
                row[f"times faster, {build}"] = round(reference / ours, 1)
        rows.append(row)
    return rows


def growth_exponent(rows: list[dict]) -> float | None:
    """Return the slope of log seconds over log leaves, from 2,000 leaves on."""
    large = [row["ours"] for row in rows if row["ours"]["leaves"] >= GROWTH_FROM]
    if len(large) < 2:
        return None
    leaves = np.log([row["leaves"] for row in large])
    seconds = np.log([row["second build"]["seconds"]["clustering"] for row in large])
    return round(float(np.polyfit(leaves, seconds, 1)[0]), 2)


def main() -> None:
    """Measure every size and write the results with the machine they were measured on."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[412, 2000, 10_000, 50_000])
    parser.add_argument("--reference-up-to", type=int, default=2000)
    parser.add_argument("--data", type=Path, help="folder with docs.jsonl, beside the synthetic leaves")
    parser.add_argument("--data-sizes", type=int, nargs="+", default=[412, 2000, 10**9])
    parser.add_argument("--one", choices=["ours", "reference"], help="measure one size in this process")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/build.json"))
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.sizes[0], options.one, options.data)))
        return
    rows = compared(options.sizes, options.reference_up_to, None)
    result = {"machine": machine(), "synthetic": rows, "growth exponent": growth_exponent(rows)}
    if options.data:
        result[options.data.name] = compared(options.data_sizes, options.reference_up_to, options.data)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
