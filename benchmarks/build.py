"""Building a tree: seconds, calls and growth, against the source's procedure, in one run.

    python benchmarks/build.py --sizes 412 2000 --output benchmarks/results/build.json

Vectors are synthetic (topics on the unit sphere) and the writer is a stub, so that clustering and bookkeeping
are what is measured. The reference is the procedure of the source written out: every k from 1 to 49, the best one
fitted again after the sweep, and all texts embedded once more for the index.
"""

import argparse
import json
import resource
import time
from pathlib import Path

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from sklearn.mixture import GaussianMixture

from helpers.clustering import reduce_dimensions
from helpers.index import VectorIndex
from helpers.manifest import machine
from helpers.tree import build_tree

LEAVES_PER_TOPIC, LEAVES_PER_THEME = 8, 40
DIMENSIONS = 384


class TopicEmbedder(Embeddings):
    """Vectors as documentation has them: themes that hold topics. A text is "topic number ..."."""

    identity = "synthetic topics"

    def __init__(self, leaves: int, seed: int = 0):
        random = np.random.default_rng(seed)
        themes = random.normal(size=(max(1, leaves // LEAVES_PER_THEME), DIMENSIONS))
        topics = max(1, leaves // LEAVES_PER_TOPIC)
        self.centres = themes[np.arange(topics) % len(themes)] + random.normal(size=(topics, DIMENSIONS))

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
    """A writer that costs nothing: it keeps the first child's topic. Counts its calls."""

    def __init__(self):
        self.calls = 0

    def __call__(self, texts):
        self.calls += 1
        return f"{texts[0].split()[0]} {10**6 + self.calls} summary"


def build_ours(n: int) -> dict:
    """Build tree and index with the project's code."""
    embedder, stub, leaves = TopicEmbedder(n), Stub(), synthetic_leaves(n)
    started = time.perf_counter()
    tree = build_tree(leaves, embedder, stub)
    built = time.perf_counter()
    VectorIndex.build(list(tree.nodes.values()), embedder)
    return {
        "tree seconds": round(built - started, 2),
        "index seconds": round(time.perf_counter() - built, 2),
        "levels": [len(level) for level in tree.levels],
        "calls": stub.calls,
    }


def build_reference(n: int) -> dict:
    """Build the same with the source's procedure."""
    embedder, stub = TopicEmbedder(n), Stub()
    texts = [leaf.page_content for leaf in synthetic_leaves(n)]
    started, everything, levels = time.perf_counter(), list(texts), [n]
    for _ in range(3):
        clusters = _reference_clusters(np.asarray(embedder.embed_documents(texts)))
        texts = [stub([texts[row] for row in members]) for members in clusters]
        everything += texts
        levels.append(len(texts))
        if len(texts) <= 1:
            break
    embedder.embed_documents(everything)
    return {"tree seconds": round(time.perf_counter() - started, 2), "levels": levels, "calls": stub.calls}


def _reference_clusters(vectors, dim=10, threshold=0.1):
    if len(vectors) <= dim + 1:
        return [np.arange(len(vectors))]
    clusters = []
    for members in _reference_mixture(reduce_dimensions(vectors, dim), threshold):
        if len(members) <= dim + 1:
            clusters.append(members)
            continue
        inner = _reference_mixture(reduce_dimensions(vectors[members], dim, n_neighbors=10), threshold)
        clusters += [members[rows] for rows in inner]
    return clusters


def _reference_mixture(points, threshold, max_k=50):
    ks = range(1, min(max_k, len(points)))
    # More regularisation than sklearn's default: without it the procedure stops with an error at 1,000 leaves.
    bic = [GaussianMixture(k, random_state=0, reg_covar=1e-4).fit(points).bic(points) for k in ks]
    best = GaussianMixture(ks[int(np.argmin(bic))], random_state=0, reg_covar=1e-4).fit(points)
    joins = best.predict_proba(points) > threshold
    return [np.flatnonzero(column) for column in joins.T if column.any()]


def main() -> None:
    """Measure every size and write the results with the machine they were measured on."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[412])
    parser.add_argument("--reference-up-to", type=int, default=2000)
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results/build.json"))
    options = parser.parse_args()
    rows = []
    for n in options.sizes:
        row = {"leaves": n, "first build": build_ours(n) if not rows else None, "ours": build_ours(n)}
        if n <= options.reference_up_to:
            row["reference"] = build_reference(n)
            row["times faster"] = round(row["reference"]["tree seconds"] / row["ours"]["tree seconds"], 1)
        rows.append(row)
        print(json.dumps(row), flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    result = {"machine": machine(), "peak memory, GB": round(peak, 2), "rows": rows}
    if len(rows) > 1:
        seconds = [row["ours"]["tree seconds"] for row in rows]
        result["growth exponent"] = round(float(np.polyfit(np.log(options.sizes), np.log(seconds), 1)[0]), 2)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
