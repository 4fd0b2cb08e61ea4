"""Structures: every way of retrieving in this workbench over one corpus, and what each costs to build."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import pandas as pd
from langchain_core.documents import Document

from helpers.budget import BudgetRetriever
from helpers.evaluation import evidence_recall
from helpers.extraction import POLICY_PATTERNS, SITE_PATTERNS, extract_aliases, extract_by_rules
from helpers.families import split_families
from helpers.graph import KnowledgeGraph
from helpers.graph_retrieval import GraphRetriever
from helpers.index import VectorIndex
from helpers.keywords import KeywordIndex
from helpers.retrievers import (
    CollapsedTreeRetriever,
    FusionRetriever,
    KeywordRetriever,
    LeafRetriever,
    ParentChildRetriever,
    TreeTraversalRetriever,
)
from helpers.stages import ShopWorkbench, Workbench

# Nodes that traversal keeps at each level.
TRAVERSAL_WIDTH = 2


def build_graph(bench: Workbench) -> KnowledgeGraph:
    """Return the graph that rules extract from a corpus: the shop's sentences, or the site's names and code."""
    is_shop = isinstance(bench, ShopWorkbench)
    graph = KnowledgeGraph(extract_aliases(bench.pages) if is_shop else None)
    texts = {page.metadata["source"]: page.page_content for page in bench.pages}
    patterns = POLICY_PATTERNS if is_shop else SITE_PATTERNS
    for page in bench.pages:
        graph.add(extract_by_rules(page, patterns), texts)
    return graph


class Parts:
    """What the structures over one corpus stand on; what only some need is built when first asked for."""

    def __init__(self, bench: Workbench):
        self._bench = bench
        self.index = self.leaf_index = bench.index
        self.tree = bench.tree

    @cached_property
    def keywords(self) -> KeywordIndex:
        """The leaves by their words."""
        return KeywordIndex(self._bench.leaves)

    @cached_property
    def families(self) -> tuple[dict[str, Document], VectorIndex]:
        """Parents by id, and their children in an index."""
        parents, children = split_families(self._bench.pages, self._bench.embedder.count_tokens)
        return parents, VectorIndex.build(children, self._bench.embedder)

    @cached_property
    def graph(self) -> KnowledgeGraph:
        """What rules extract."""
        return build_graph(self._bench)


def leaf_retriever(parts, limit) -> LeafRetriever:
    """Return plain RAG."""
    return LeafRetriever(index=parts.leaf_index, **limit)


def keyword_retriever(parts, limit) -> KeywordRetriever:
    """Return BM25 over the leaves."""
    return KeywordRetriever(index=parts.keywords, **limit)


def tree_retriever(parts, limit) -> CollapsedTreeRetriever:
    """Return the collapsed tree, read as in the paper."""
    return CollapsedTreeRetriever(index=parts.index, reading="plain", **limit)


def _traversal(parts, limit):
    return TreeTraversalRetriever(tree=parts.tree, index=parts.index, width=TRAVERSAL_WIDTH, **limit)


def _families(parts, limit):
    parents, children = parts.families
    return ParentChildRetriever(index=children, parents=parents, **limit)


def _graph(parts, limit):
    return GraphRetriever(graph=parts.graph, **limit)


def _fused(*makers):
    return lambda parts, limit: FusionRetriever(retrievers=[make(parts, limit) for make in makers], **limit)


STRUCTURES: dict[str, Callable[[Any, Mapping[str, Any]], BudgetRetriever]] = {
    "leaf RAG": leaf_retriever,
    "collapsed tree": tree_retriever,
    "traversal": _traversal,
    "parent and child": _families,
    "fusion": _fused(leaf_retriever, keyword_retriever),
    "graph": _graph,
    "tree + fusion": _fused(tree_retriever, leaf_retriever, keyword_retriever),
    "fusion + graph": _fused(leaf_retriever, keyword_retriever, _graph),
}
"""Every structure by name: from what has the attributes of `Parts`, and a limit of `BudgetRetriever`, a retriever."""


def build_structures(bench: Workbench, token_budget: int) -> dict[str, BudgetRetriever]:
    """Return every structure by name over a workbench's corpus, all with the same token budget."""
    parts = Parts(bench)
    limit = {"token_budget": token_budget, "count_tokens": bench.embedder.count_tokens}
    return {name: make(parts, limit) for name, make in STRUCTURES.items()}


def evidence_by_structure(bench: Workbench, structures: Mapping[str, BudgetRetriever]) -> pd.DataFrame:
    """Ask every answerable question of every structure.

    Returns
    -------
    DataFrame
        ``question, kind, system, recall`` (share of the gold quotes in the context) and ``complete`` (1 if all are: a
        condition with its exception, a path with every hop).
    """
    rows = []
    for system, retriever in structures.items():
        for question in bench.questions:
            if question.evidence:
                recall = evidence_recall(question.evidence, retriever.invoke(question.text))
                about = {"question": question.id, "kind": question.kind, "system": system}
                rows.append(about | {"recall": recall, "complete": float(recall == 1)})
    return pd.DataFrame(rows)
