"""Large corpora: queries over 10,000 and 100,000 nodes, saving and loading them, and extraction by rules.

    python benchmarks/queries.py

The embedding of a question is not counted: it is the same for every structure.
"""

import argparse
import json
import resource
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from helpers.extraction import POLICY_PATTERNS, extract_by_rules
from helpers.index import VectorIndex
from helpers.keywords import KeywordIndex
from helpers.machine import machine
from helpers.models import load_embedder
from helpers.nodes import Tree, leaf_node, summary_node
from helpers.policies import load_policies
from helpers.profiles import load_profile
from helpers.retrievers import CollapsedTreeRetriever, FusionRetriever, KeywordRetriever, LeafRetriever
from timing import milliseconds, timed

OUTPUT = Path(__file__).parent / "results" / "queries.json"
SIZES = [10_000, 100_000]
PAGES, QUESTIONS, TOKEN_BUDGET = 1_000, 20, 2_000
WORDS, WORDS_PER_TEXT, CHILDREN, LEVELS = 5_000, 120, 7, 3


class RandomEmbedder(Embeddings):
    """Random vectors, those of questions made before the clock starts."""

    identity = "random"

    def __init__(self):
        self._random = np.random.default_rng(0)
        self._questions = {}

    def embed_documents(self, texts):
        return self._random.normal(size=(len(texts), 384))

    def embed_query(self, text):
        if text not in self._questions:
            self._questions[text] = self._random.normal(size=384).tolist()
        return self._questions[text]


def synthetic_tree(n: int) -> Tree:
    """Return a tree of about n nodes, seven children to a summary; words are as frequent as in real text."""
    random = np.random.default_rng(1)
    words = np.array([f"word{i}" for i in range(WORDS)])

    def text():
        return " ".join(words[random.zipf(1.3, size=WORDS_PER_TEXT) % WORDS])

    layer = [
        leaf_node(Document(text(), id=f"leaf-{i}", metadata={"id": f"leaf-{i}", "source": f"page-{i // 10}"}))
        for i in range(n * (CHILDREN - 1) // CHILDREN)
    ]
    nodes = list(layer)
    for level in range(1, LEVELS + 1):
        groups = [layer[i : i + CHILDREN] for i in range(0, len(layer), CHILDREN)]
        layer = [summary_node(text(), level, group) for group in groups]
        nodes += layer
    return Tree(nodes)


def prices(n: int) -> dict:
    """Return the milliseconds of each kind of query, and what saving and loading take."""
    tree = synthetic_tree(n)
    index = VectorIndex.build(list(tree.nodes.values()), RandomEmbedder())
    keywords = KeywordIndex(tree.levels[0])
    leaves, fused_with = LeafRetriever(index=index), KeywordRetriever(index=keywords)
    count_tokens = load_embedder(load_profile("cpu")).count_tokens

    def collapsed(reading, count):
        return CollapsedTreeRetriever(
            index=index, reading=reading, token_budget=TOKEN_BUDGET, count_tokens=count
        )

    retrievers = {
        "leaves, 5 hits": leaves,
        "keywords, 5 hits": fused_with,
        "fused, 5 hits": FusionRetriever(retrievers=[leaves, fused_with], k=5),
        "collapsed tree, plain, characters counted": collapsed("plain", _characters),
        **{
            f"collapsed tree, {reading}, tokens counted before": collapsed(reading, count_tokens)
            for reading in ("plain", "leaves-first", "diverse", "coverage")
        },
    }
    questions = [" ".join(leaf.page_content.split()[:8]) for leaf in tree.levels[0][:QUESTIONS]]
    with TemporaryDirectory() as folder:
        files = {
            "tree": _file_prices(Path(folder, "tree.jsonl"), tree.save, Tree.load),
            "index": _file_prices(
                Path(folder, "index"), index.save, lambda path: VectorIndex.load(path, RandomEmbedder())
            ),
            "keywords": _file_prices(Path(folder, "keywords"), keywords.save, KeywordIndex.load),
        }
    return {
        "nodes": len(tree),
        "levels": [len(level) for level in tree.levels],
        "milliseconds a question": {
            name: _milliseconds(retriever, questions) for name, retriever in retrievers.items()
        },
        "files": files,
    }


def _characters(text):
    return len(text) // 4


def _milliseconds(retriever, questions):
    """Return the median of asking each question once more."""
    milliseconds(retriever, questions)
    return milliseconds(retriever, questions)


def _file_prices(path, save, load):
    _, saving = timed(save, path)
    _, loading = timed(load, path)
    size = sum(file.stat().st_size for file in [path, *path.rglob("*")] if file.is_file())
    return {
        "save, seconds": round(saving, 1),
        "load, seconds": round(loading, 1),
        "MB": round(size / 1e6),
    }


def extraction() -> float:
    """Return the seconds to extract the relations of 1,000 pages by rules."""
    pages = load_policies()
    many = [pages[i % len(pages)] for i in range(PAGES)]
    return round(timed(lambda: [extract_by_rules(page, POLICY_PATTERNS) for page in many])[1], 2)


def main() -> None:
    """Measure and write the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()
    rows = []
    for n in options.sizes:
        rows.append(prices(n))
        print(json.dumps(rows[-1]), flush=True)
    result = {
        "machine": machine(),
        "token budget": TOKEN_BUDGET,
        "rows": rows,
        "peak memory, GB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6, 2),
        f"extraction by rules over {PAGES:,} pages, seconds": extraction(),
    }
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
