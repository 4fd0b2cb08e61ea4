"""Systems: every way of retrieving that is measured, by name, over one corpus and within one limit."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from langchain_core.documents import Document

from helpers.graph_retrieval import GraphRetriever
from helpers.reading import READINGS
from helpers.recording import content_key
from helpers.retrievers import (
    BudgetRetriever,
    CollapsedTreeRetriever,
    FusionRetriever,
    KeywordRetriever,
    LeafRetriever,
    ParentChildRetriever,
    TreeTraversalRetriever,
)
from public.corpora import Corpus

BASELINE = "leaf RAG"
TRAVERSAL_WIDTH = 2
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


def _leaves(corpus, limit):
    return LeafRetriever(index=corpus.leaf_index, **limit)


def _keywords(corpus, limit):
    return KeywordRetriever(index=corpus.keywords, **limit)


def _graph(corpus, limit):
    return GraphRetriever(graph=corpus.graph, **limit)


def _families(corpus, limit):
    parents, children = corpus.families
    return ParentChildRetriever(index=children, parents=parents, **limit)


def _fused(*parts):
    return lambda corpus, limit: FusionRetriever(retrievers=[part(corpus, limit) for part in parts], **limit)


def _collapsed(**options):
    return lambda corpus, limit: CollapsedTreeRetriever(index=corpus.index, **limit, **options)


def _contiguous(**options):
    return lambda corpus, limit: CollapsedTreeRetriever(index=corpus.contiguous_index, **limit, **options)


def _traversal(corpus, limit):
    return TreeTraversalRetriever(tree=corpus.tree, index=corpus.index, width=TRAVERSAL_WIDTH, **limit)


SYSTEMS: dict[str, Callable[[Corpus, Limit], BudgetRetriever]] = {
    "random leaves": lambda corpus, limit: RandomLeaves(leaves=corpus.leaves, **limit),
    "document cut off": lambda corpus, limit: LeadingLeaves(leaves=corpus.leaves, **limit),
    BASELINE: _leaves,
    "keywords": _keywords,
    "fusion": _fused(_leaves, _keywords),
    "parent and child": _families,
    "collapsed tree": _collapsed(reading="plain"),
    "traversal": _traversal,
    "tree + fusion": _fused(_collapsed(reading="plain"), _leaves, _keywords),
    "contiguous tree": _contiguous(reading="plain"),
    **{
        f"tree, {reading}": _collapsed(reading=reading)
        for reading in READINGS
        if reading not in ("plain", "leaves-first")
    },
    "tree, by scope": _collapsed(),
    "tree, skip covered": _collapsed(reading="plain", skip_covered=True),
    "tree, skip told": _collapsed(reading="plain", skip_told=True),
    "contiguous tree, diverse": _contiguous(reading="diverse"),
    "graph": _graph,
    "fusion + graph": _fused(_leaves, _keywords, _graph),
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
