"""Systems: every way of retrieving that is measured, by name, over one corpus and within one limit."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from langchain_core.documents import Document

from helpers.reading import READINGS
from helpers.recording import content_key
from helpers.retrievers import BudgetRetriever, CollapsedTreeRetriever
from helpers.structures import STRUCTURES, keyword_retriever
from public.corpora import CLUSTERED, CONTIGUOUS, GIST_TREE, GISTS, KINDS, Corpus

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


def _gist_tree(**options):
    return lambda corpus, limit: CollapsedTreeRetriever(index=corpus.gist_tree_index, **limit, **options)


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
    "leaf RAG, diverse": lambda corpus, limit: CollapsedTreeRetriever(
        index=corpus.leaf_index, reading="diverse", **limit
    ),
    "gists, by scope": lambda corpus, limit: CollapsedTreeRetriever(index=corpus.gist_index, **limit),
    "gist tree": _gist_tree(reading="plain"),
    "gist tree, by scope": _gist_tree(),
}

# Over a pool of short articles nothing needs a summary; over a single document no title links to another.
ONLY_POOLED = {"graph", "fusion + graph"}
# Measured when asked for: a tree more to write.
ONLY_ASKED = {"gist tree", "gist tree, by scope"}
FLAT = {"random leaves", BASELINE, "keywords", "fusion", "parent and child"}


def default_systems(is_pooled: bool) -> list[str]:
    """Return the names of the systems that are measured unless some are asked for."""
    if is_pooled:
        return [name for name in SYSTEMS if name in FLAT | ONLY_POOLED]
    return [name for name in SYSTEMS if name not in ONLY_POOLED | ONLY_ASKED]


def kind_of_tree(system: str) -> str | None:
    """Return the kind of tree that a system reads, None if it reads none."""
    if "contiguous" in system:
        return CONTIGUOUS
    if "gist" in system:
        return GIST_TREE if "tree" in system else GISTS
    return CLUSTERED if "tree" in system or system == "traversal" else None


def trees_needed(systems) -> list[str]:
    """Return the kinds of trees that systems need; the contiguous one takes its sizes from the clustered one."""
    needed = {kind_of_tree(system) for system in systems}
    if CONTIGUOUS in needed:
        needed.add(CLUSTERED)
    return [kind for kind in KINDS if kind in needed]
