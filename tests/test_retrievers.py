"""Retrievers on documents whose vectors are written out, so that every ranking is known by hand."""

import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from helpers.index import VectorIndex
from helpers.nodes import Tree
from helpers.retrievers import CollapsedTreeRetriever, LeafRetriever, TreeTraversalRetriever

QUESTION = "?"


class TableEmbedder(Embeddings):
    """Texts to vectors by a table. The question is [1, 0]: a document's score is its first component."""

    def __init__(self, vectors):
        self.vectors = vectors

    def embed_documents(self, texts):
        return [self.vectors[text] for text in texts]

    def embed_query(self, text):
        return [1.0, 0.0]


def vector(cosine):
    return [cosine, (1 - cosine**2) ** 0.5]


def node(node_id, words, level=0, children=(), source="https://docs/a"):
    text = " ".join([node_id] * words)
    metadata = {"id": node_id, "level": level, "sources": [source]}
    metadata |= {"children": list(children)} if level else {"source": source}
    return Document(text, id=node_id, metadata=metadata)


def count_words(text):
    return len(text.split())


def index_of(scored_nodes):
    table = {document.page_content: vector(cosine) for document, cosine in scored_nodes}
    return VectorIndex.build([document for document, _ in scored_nodes], TableEmbedder(table))


def ids(hits):
    return [hit.metadata["id"] for hit in hits]


@pytest.fixture
def tree():
    """Two themes: `left` over l1 and l2, `right` over r1 and r2; l2 stands under both."""
    leaves = [node(name, 5, source=f"https://docs/{name[0]}") for name in ("l1", "l2", "r1", "r2")]
    left = node("left", 5, level=1, children=["l1", "l2"])
    right = node("right", 5, level=1, children=["l2", "r1", "r2"])
    return Tree([*leaves, left, right])


@pytest.fixture
def tree_index(tree):
    cosines = {"l1": 0.3, "l2": 0.9, "r1": 0.8, "r2": 0.95, "left": 0.7, "right": 0.6}
    return index_of([(tree.nodes[name], cosine) for name, cosine in cosines.items()])


# What each retriever ranks.


def test_leaf_retriever_reads_leaves_alone(tree_index):
    assert ids(LeafRetriever(index=tree_index, k=6).invoke(QUESTION)) == ["r2", "l2", "r1", "l1"]


def test_collapsed_tree_ranks_all_levels_together(tree_index):
    hits = CollapsedTreeRetriever(index=tree_index, reading="plain", k=6).invoke(QUESTION)
    assert ids(hits) == ["r2", "l2", "r1", "left", "right", "l1"]


def test_traversal_goes_from_the_roots_to_the_leaves(tree, tree_index):
    hits = TreeTraversalRetriever(tree=tree, index=tree_index, k=6, width=2).invoke(QUESTION)
    # Both roots, then the two best of their children; l2 comes once though both roots have it.
    assert ids(hits) == ["left", "right", "r2", "l2"]
    assert [hit.metadata["level"] for hit in hits] == [1, 1, 0, 0]


def test_traversal_never_leaves_the_branch_it_chose(tree, tree_index):
    hits = TreeTraversalRetriever(tree=tree, index=tree_index, k=6, width=1).invoke(QUESTION)
    # r2 is the best leaf of all, but not under the best root.
    assert ids(hits) == ["left", "l2"]


def test_traversal_starts_at_a_leaf_without_a_parent(tree):
    tree.put(node("alone", 5))
    cosines = {"l1": 0.3, "l2": 0.9, "r1": 0.8, "r2": 0.95, "left": 0.7, "right": 0.6, "alone": 0.99}
    index = index_of([(tree.nodes[name], cosine) for name, cosine in cosines.items()])
    hits = TreeTraversalRetriever(tree=tree, index=index, k=9, width=2).invoke(QUESTION)
    assert ids(hits) == ["alone", "left", "l2", "l1"]


def test_equal_scores_are_ordered_by_id():
    scored = [(node(name, 1), 0.5) for name in ("c", "a", "d", "b")]
    assert ids(LeafRetriever(index=index_of(scored), k=3).invoke(QUESTION)) == ["a", "b", "c"]


def test_traversal_orders_equal_scores_by_id():
    leaves = [node(name, 1) for name in ("c", "a", "b")]
    tree = Tree([*leaves, node("root", 1, level=1, children=["c", "a", "b"])])
    index = index_of([(document, 0.5) for document in tree.nodes.values()])
    hits = TreeTraversalRetriever(tree=tree, index=index, k=3, width=2).invoke(QUESTION)
    assert ids(hits) == ["root", "a", "b"]


def test_an_empty_index_gives_no_hit():
    index = VectorIndex.build([], TableEmbedder({}))
    assert LeafRetriever(index=index, k=3).invoke(QUESTION) == []
    assert (
        CollapsedTreeRetriever(index=index, reading="plain", token_budget=9, count_tokens=count_words).invoke(
            QUESTION
        )
        == []
    )


# What a hit says of itself.


def test_a_hit_carries_score_level_and_sources(tree_index):
    best, *_ = CollapsedTreeRetriever(index=tree_index, reading="plain", k=1).invoke(QUESTION)
    assert best.metadata["score"] == pytest.approx(0.95, abs=1e-6)
    assert best.metadata["level"] == 0
    assert best.metadata["sources"] == ["https://docs/r"]


def test_the_documents_in_the_index_stay_as_they_were(tree_index):
    CollapsedTreeRetriever(index=tree_index, reading="plain", k=6).invoke(QUESTION)
    assert all("score" not in document.metadata for document in tree_index.documents)


@pytest.mark.parametrize("budget", [5, 9, 10, 14, 15, 30, 31])
def test_no_system_exceeds_the_budget_and_each_fills_what_it_can(tree, tree_index, budget):
    limit = {"token_budget": budget, "count_tokens": count_words}
    systems = [
        LeafRetriever(index=tree_index, **limit),
        CollapsedTreeRetriever(index=tree_index, reading="plain", **limit),
        TreeTraversalRetriever(tree=tree, index=tree_index, width=3, **limit),
    ]
    # Each node has 5 words. There are 4 leaves and 6 nodes; traversal meets 2 roots and 3 of the 4 leaves.
    available = [4, 6, 5]
    for system, nodes in zip(systems, available, strict=True):
        words = sum(count_words(hit.page_content) for hit in system.invoke(QUESTION))
        assert words == 5 * min(budget // 5, nodes)
