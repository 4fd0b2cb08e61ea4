"""Systems: every way of retrieving that is measured, by name, over one corpus and within one limit."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from langchain_core.documents import Document

from helpers.reading import READINGS
from helpers.recording import content_key
from helpers.retrievers import BudgetRetriever, CollapsedTreeRetriever
from helpers.structures import STRUCTURES, keyword_retriever
from public.corpora import Corpus

BASELINE = "leaf RAG"
SEED = 0

Limit = Mapping[str, Any]
"""``token_budget`` and ``count_tokens``."""


class RandomLeaves(BudgetRetriever):
    """An anchor: leaves in an order drawn by lot, another one for each question."""

    leaves: list[Document]

    def ranked(self, question: str):
        seed = int(content_key(SEED, question), 16)
        order = np.random.default_rng(seed).permutation(len(self.leaves))
        return ((self.leaves[row], 0.0) for row in order)


class LeadingLeaves(BudgetRetriever):
    """An anchor: the document from its beginning, cut to the budget at a leaf."""

    leaves: list[Document]

    def ranked(self, question: str):
        return ((leaf, 0.0) for leaf in self.leaves)


def _collapsed(**options):
    return lambda corpus, limit: CollapsedTreeRetriever(index=corpus.index, **limit, **options)


def _contiguous(**options):
    return lambda corpus, limit: CollapsedTreeRetriever(index=corpus.contiguous_index, **limit, **options)


SYSTEMS: dict[str, Callable[[Corpus, Limit], BudgetRetriever]] = {
    "random leaves": lambda corpus, limit: RandomLeaves(leaves=corpus.leaves, **limit),
    "document cut off": lambda corpus, limit: LeadingLeaves(leaves=corpus.leaves, **limit),
    **STRUCTURES,
    "keywords": keyword_retriever,
    "contiguous tree": _contiguous(reading="plain"),
    **{
        f"tree, {reading}": _collapsed(reading=reading)
        for reading in READINGS
        if reading not in ("plain", "leaves-first")
    },
    "tree, by scope": _collapsed(),
    "tree, skip covered": _collapsed(reading="plain", skip_covered=True),
    "tree, skip told": _collapsed(reading="plain", skip_told=True),
    "tree, lineage vectors": lambda corpus, limit: CollapsedTreeRetriever(
        index=corpus.lineage_index, reading="diverse", **limit
    ),
    "contiguous tree, diverse": _contiguous(reading="diverse"),
}

# Over a pool of short articles nothing needs a summary; over a single document no title links to another.
ONLY_POOLED = {"graph", "fusion + graph"}
FLAT = {"random leaves", BASELINE, "keywords", "fusion", "parent and child"}


def default_systems(is_pooled: bool) -> list[str]:
    """Return the names of the systems that are measured unless some are asked for."""
    if is_pooled:
        return [name for name in SYSTEMS if name in FLAT | ONLY_POOLED]
    return [name for name in SYSTEMS if name not in ONLY_POOLED]


def needs_trees(systems) -> int:
    """Return how many trees a document needs for these systems: 0, 1, or 2 with the contiguous one."""
    if any(name.startswith("contiguous") for name in systems):
        return 2
    return int(any("tree" in name or name == "traversal" for name in systems))
