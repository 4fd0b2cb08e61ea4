"""Systems: every way of retrieving that is measured, by name, over one corpus and within one limit."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from langchain_core.documents import Document

from helpers.budget import BudgetRetriever
from helpers.reading import READINGS
from helpers.recording import content_key
from helpers.retrievers import CollapsedTreeRetriever
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


class System(NamedTuple):
    """How a retriever is made over a corpus, and the kind of tree that it reads, if it reads one."""

    make: Callable[[Corpus, Limit], BudgetRetriever]
    tree: str | None = None


def _collapsed(kind, **options):
    return System(
        lambda corpus, limit: CollapsedTreeRetriever(index=corpus.index_of(kind), **limit, **options), kind
    )


READ_CLUSTERS = {"collapsed tree", "traversal", "tree + fusion"}

SYSTEMS: dict[str, System] = {
    "random leaves": System(lambda corpus, limit: RandomLeaves(leaves=corpus.leaves, **limit)),
    "document cut off": System(lambda corpus, limit: LeadingLeaves(leaves=corpus.leaves, **limit)),
    **{name: System(make, CLUSTERED if name in READ_CLUSTERS else None) for name, make in STRUCTURES.items()},
    "keywords": System(keyword_retriever),
    "leaf RAG, diverse": System(
        lambda corpus, limit: CollapsedTreeRetriever(index=corpus.leaf_index, reading="diverse", **limit)
    ),
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
    "gists, by scope": _collapsed(GISTS),
    "gist tree": _collapsed(GIST_TREE, reading="plain"),
    "gist tree, by scope": _collapsed(GIST_TREE),
}

# Over a pool of short articles nothing needs a summary; over a single document no title links to another.
ONLY_POOLED = {"graph", "fusion + graph"}
# Measured when asked for: clusters more to write, over the gists that are measured anyway.
ONLY_ASKED = {"gist tree", "gist tree, by scope"}
FLAT = {"random leaves", BASELINE, "keywords", "fusion", "parent and child"}


def default_systems(is_pooled: bool) -> list[str]:
    """Return the names of the systems that are measured unless some are asked for."""
    if is_pooled:
        return [name for name in SYSTEMS if name in FLAT | ONLY_POOLED]
    return [name for name in SYSTEMS if name not in ONLY_POOLED | ONLY_ASKED]


def trees_needed(systems) -> list[str]:
    """Return the kinds of trees that systems need; the contiguous one takes its sizes from the clustered one."""
    needed = {SYSTEMS[system].tree for system in systems}
    if CONTIGUOUS in needed:
        needed.add(CLUSTERED)
    return [kind for kind in KINDS if kind in needed]
