"""Large corpora: a fused query over 10,000 leaves, and extraction by rules over 1,000 pages.

    python benchmarks/queries.py

The embedding of a question is not counted: it is the same for every structure.
"""

import json
import time
from pathlib import Path
from statistics import median

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from helpers.extraction import POLICY_PATTERNS, extract_by_rules
from helpers.index import VectorIndex
from helpers.keywords import KeywordIndex
from helpers.manifest import machine
from helpers.policies import load_policies
from helpers.retrievers import FusionRetriever, KeywordRetriever, LeafRetriever

OUTPUT = Path(__file__).parent / "results" / "queries.json"
LEAVES, PAGES, QUESTIONS = 10_000, 1_000, 100
WORDS = 5_000


class RandomEmbedder(Embeddings):
    """Random unit vectors, made before the clock starts."""

    identity = "random"

    def __init__(self):
        self._random = np.random.default_rng(0)
        self._question = self._random.normal(size=384).tolist()

    def embed_documents(self, texts):
        return self._random.normal(size=(len(texts), 384))

    def embed_query(self, text):
        return self._question


def fused_query() -> float:
    """Return the median milliseconds of a fused query, five hits."""
    random = np.random.default_rng(1)
    texts = [" ".join(f"word{i}" for i in random.zipf(1.3, size=120) % WORDS) for _ in range(LEAVES)]
    leaves = [
        Document(text, metadata={"id": f"leaf-{i}", "level": 0, "source": "page"})
        for i, text in enumerate(texts)
    ]
    vectors = LeafRetriever(index=VectorIndex.build(leaves, RandomEmbedder()))
    keywords = KeywordRetriever(index=KeywordIndex(leaves))
    fusion = FusionRetriever(retrievers=[vectors, keywords], k=5)
    seconds = []
    for number in range(QUESTIONS):
        question = " ".join(texts[number].split()[:8])
        started = time.perf_counter()
        fusion.invoke(question)
        seconds.append(time.perf_counter() - started)
    return round(1000 * median(seconds), 1)


def extraction() -> float:
    """Return the seconds to extract the relations of 1,000 pages by rules."""
    pages = load_policies()
    many = [pages[i % len(pages)] for i in range(PAGES)]
    started = time.perf_counter()
    for page in many:
        extract_by_rules(page, POLICY_PATTERNS)
    return round(time.perf_counter() - started, 2)


def main() -> None:
    """Measure and write the result."""
    result = {
        "machine": machine(),
        f"fused query over {LEAVES:,} leaves, milliseconds": fused_query(),
        f"extraction by rules over {PAGES:,} pages, seconds": extraction(),
    }
    OUTPUT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
