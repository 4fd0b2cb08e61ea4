"""Structures: every way of retrieving in this workbench over one corpus, and what each costs to build."""

from collections.abc import Mapping

import pandas as pd

from helpers.evaluation import evidence_recall
from helpers.extraction import POLICY_PATTERNS, SITE_PATTERNS, extract_aliases, extract_by_rules
from helpers.families import split_families
from helpers.graph import KnowledgeGraph
from helpers.graph_retrieval import GraphRetriever
from helpers.index import VectorIndex
from helpers.keywords import KeywordIndex
from helpers.retrievers import (
    BudgetRetriever,
    CollapsedTreeRetriever,
    FusionRetriever,
    KeywordRetriever,
    LeafRetriever,
    ParentChildRetriever,
    TreeTraversalRetriever,
)
from helpers.stages import ShopWorkbench, Workbench


def build_graph(bench: Workbench) -> KnowledgeGraph:
    """Return the graph that rules extract from a corpus: the shop's sentences, or the site's names and code."""
    is_shop = isinstance(bench, ShopWorkbench)
    graph = KnowledgeGraph(extract_aliases(bench.pages) if is_shop else None)
    texts = {page.metadata["source"]: page.page_content for page in bench.pages}
    patterns = POLICY_PATTERNS if is_shop else SITE_PATTERNS
    for page in bench.pages:
        graph.add(extract_by_rules(page, patterns), texts)
    return graph


def build_structures(bench: Workbench, token_budget: int) -> dict[str, BudgetRetriever]:
    """Return every structure by name, all with the same token budget.

    Leaf RAG, the collapsed tree, traversal, parents and children, fusion of vectors and keywords, the graph, and two
    combinations: the tree with fusion, and fusion with the graph.
    """
    limit = {"token_budget": token_budget, "count_tokens": bench.embedder.count_tokens}
    parents, children = split_families(bench.pages, bench.embedder.count_tokens)
    leaves = LeafRetriever(index=bench.index, **limit)
    keywords = KeywordRetriever(index=KeywordIndex(bench.leaves), **limit)
    tree = CollapsedTreeRetriever(index=bench.index, reading="plain", **limit)
    graph = GraphRetriever(graph=build_graph(bench), **limit)
    return {
        "leaf RAG": leaves,
        "collapsed tree": tree,
        "traversal": TreeTraversalRetriever(tree=bench.tree, index=bench.index, width=2, **limit),
        "parent and child": ParentChildRetriever(
            index=VectorIndex.build(children, bench.embedder), parents=parents, **limit
        ),
        "fusion": FusionRetriever(retrievers=[leaves, keywords], **limit),
        "graph": graph,
        "tree + fusion": FusionRetriever(retrievers=[tree, leaves, keywords], **limit),
        "fusion + graph": FusionRetriever(retrievers=[leaves, keywords, graph], **limit),
    }


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
