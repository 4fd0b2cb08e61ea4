"""Systems: every way of retrieving that is measured, by name, over one corpus and within one limit."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from langchain_core.documents import Document

from helpers.budget import BudgetRetriever
from helpers.reading import READINGS, coverage
from helpers.recording import content_key
from helpers.retrievers import CollapsedTreeRetriever
from helpers.structures import STRUCTURES, keyword_retriever
from public.corpora import CLUSTERED, CONTIGUOUS, GISTS, WITH_GISTS, Corpus

BASELINE = "leaf RAG"
SEED = 0

Limit = Mapping[str, Any]
"""``token_budget`` and ``count_tokens``."""


class RandomNodes(BudgetRetriever):
    """An anchor: nodes in an order drawn by lot, another one for each question."""

    nodes: list[Document]

    def ranked(self, question: str):
        seed = int(content_key(SEED, question), 16)
        order = np.random.default_rng(seed).permutation(len(self.nodes))
        return ((self.nodes[row], 0.0) for row in order)


class QuestionUnseen(BudgetRetriever):
    """An anchor: nodes read for coverage, all of equal weight, the same for every question.

    Coverage chooses among the first `helpers.reading.POOL` of them: put those last that can be spared.
    """

    nodes: list[Document]

    def ranked(self, question: str):
        return coverage((node, 0.0) for node in self.nodes)


class LeadingLeaves(BudgetRetriever):
    """An anchor: the document from its beginning, cut to the budget at a leaf."""

    leaves: list[Document]

    def ranked(self, question: str):
        return ((leaf, 0.0) for leaf in self.leaves)


class System(NamedTuple):
    """How a retriever is made over a corpus, and the kind of tree that it reads, if it reads one."""

    make: Callable[[Corpus, Limit], BudgetRetriever]
    tree: str | None = None


def _collapsed(kind, **options):
    return System(
        lambda corpus, limit: CollapsedTreeRetriever(index=corpus.index_of(kind), **limit, **options), kind
    )


def _leaves_read(reading):
    return System(
        lambda corpus, limit: CollapsedTreeRetriever(index=corpus.leaf_index, reading=reading, **limit)
    )


def _above_first(corpus):
    tree = corpus.tree_with_gists
    return tree.summaries + tree.gists + corpus.leaves


READ_CLUSTERS = {"collapsed tree", "traversal", "tree + fusion"}

SYSTEMS: dict[str, System] = {
    "random leaves": System(lambda corpus, limit: RandomNodes(nodes=corpus.leaves, **limit)),
    "random gists": System(lambda corpus, limit: RandomNodes(nodes=corpus.gists.gists, **limit), GISTS),
    "question unseen": System(
        lambda corpus, limit: QuestionUnseen(nodes=_above_first(corpus), **limit), WITH_GISTS
    ),
    "document cut off": System(lambda corpus, limit: LeadingLeaves(leaves=corpus.leaves, **limit)),
    **{name: System(make, CLUSTERED if name in READ_CLUSTERS else None) for name, make in STRUCTURES.items()},
    "keywords": System(keyword_retriever),
    "leaf RAG, diverse": _leaves_read("diverse"),
    "leaf RAG, coverage": _leaves_read("coverage"),
    **{
        f"tree, {reading}": _collapsed(CLUSTERED, reading=reading)
        for reading in READINGS
        if reading not in ("plain", "leaves-first")
    },
    "tree, by scope": _collapsed(CLUSTERED),
    "tree, skip covered": _collapsed(CLUSTERED, reading="plain", skip_covered=True),
    "tree, skip told": _collapsed(CLUSTERED, reading="plain", skip_told=True),
    "tree, lineage vectors": System(
        lambda corpus, limit: CollapsedTreeRetriever(index=corpus.lineage_index, reading="diverse", **limit),
        CLUSTERED,
    ),
    "contiguous tree": _collapsed(CONTIGUOUS, reading="plain"),
    "contiguous tree, diverse": _collapsed(CONTIGUOUS, reading="diverse"),
    "gists, diverse": _collapsed(GISTS, reading="diverse"),
    "gists, by scope": _collapsed(GISTS),
    "tree with gists": _collapsed(WITH_GISTS, reading="plain"),
    "tree with gists, diverse": _collapsed(WITH_GISTS, reading="diverse"),
    "tree with gists, by scope": _collapsed(WITH_GISTS),
}

# Over a pool of short articles nothing needs a summary; over a single document no title links to another.
ONLY_POOLED = {"graph", "fusion + graph"}
# What is built for a kind of tree, where that is more than itself: the contiguous one takes the clustered one's sizes.
PARTS = {CONTIGUOUS: [CLUSTERED, CONTIGUOUS], WITH_GISTS: [CLUSTERED, GISTS]}
FLAT = {"random leaves", BASELINE, "keywords", "fusion", "parent and child"}


def default_systems(is_pooled: bool) -> list[str]:
    """Return the names of the systems that are measured unless some are asked for."""
    if is_pooled:
        return [name for name in SYSTEMS if name in FLAT | ONLY_POOLED]
    return [name for name in SYSTEMS if name not in ONLY_POOLED]


def trees_needed(systems) -> list[str]:
    """Return the kinds of trees that must be built for systems."""
    kinds = [SYSTEMS[system].tree for system in systems]
    built = [part for kind in kinds if kind for part in PARTS.get(kind, [kind])]
    return sorted(set(built), key=[CLUSTERED, CONTIGUOUS, GISTS].index)
