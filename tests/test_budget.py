"""How far a ranking is read, and what a hit says of itself."""

import pytest
from langchain_core.documents import Document
from test_retrievers import count_words, ids, node

from helpers.budget import BudgetRetriever, within


class Ranking(BudgetRetriever):
    """Documents in the order in which they are given, whatever the question."""

    documents: list[Document]

    def ranked(self, question):
        return [(document, 0.5) for document in self.documents]


def read(nodes, **limit):
    return Ranking(documents=nodes, **limit).invoke("?")


def in_budget(budget, *nodes):
    return ids(read(nodes, token_budget=budget, count_tokens=count_words))


def test_five_hits_unless_told_otherwise():
    assert len(read([node(f"n{i}", 1) for i in range(9)])) == 5


def test_fewer_documents_than_k():
    assert ids(read([node("a", 1), node("b", 1)], k=100)) == ["a", "b"]


def test_k_and_a_budget_together_are_an_error():
    with pytest.raises(ValueError, match="k or token_budget, not both"):
        Ranking(documents=[], k=5, token_budget=100, count_tokens=count_words)


def test_a_budget_without_a_counter_is_an_error():
    with pytest.raises(ValueError, match="needs count_tokens"):
        Ranking(documents=[], token_budget=100)


def test_a_node_over_the_budget_is_skipped_and_reading_goes_on():
    # Bug bank 13: budget 10, the best node has 50 tokens, the next three 5 each. Two of them fit.
    nodes = node("long", 50), node("a", 5), node("b", 5), node("c", 5)
    assert in_budget(10, *nodes) == ["a", "b"]


def test_a_node_that_no_longer_fits_does_not_end_reading():
    # 10 - 6 = 4 left: b (5) does not fit, c (3) does, then d (1) fills the budget and e finds none.
    nodes = node("a", 6), node("b", 5), node("c", 3), node("d", 1), node("e", 1)
    assert in_budget(10, *nodes) == ["a", "c", "d"]


def test_a_node_of_exactly_the_budget_fits():
    assert in_budget(10, node("whole", 10), node("more", 1)) == ["whole"]


def test_nothing_fits():
    assert in_budget(4, node("a", 5)) == []


def test_the_callers_counter_decides_not_a_number_stored_with_the_node():
    # Leaves store the count of the splitter's tokenizer; a budget may be meant in the writer's.
    leaves = node("a", 5), node("b", 5)
    for leaf in leaves:
        leaf.metadata["tokens"] = 1
    assert in_budget(5, *leaves) == ["a"]


def test_reading_ends_when_nothing_fits_for_long(monkeypatch):
    monkeypatch.setattr("helpers.budget.LOOKAHEAD", 2)
    words = {"a": 1, "b": 9, "c": 1, "d": 9, "e": 9, "f": 1}
    ranked = [(node(name, count), 0.5) for name, count in words.items()]
    kept = within(ranked, 5, lambda node: count_words(node.page_content), lambda node, chosen: False)
    assert [document.metadata["id"] for document, _ in kept] == ["a", "c"]


def test_what_is_waste_leaves_its_place_to_others():
    ranked = [(node(name, 2), 0.5) for name in "abc"]
    kept = within(ranked, 4, lambda node: 2, lambda node, chosen: "a" in chosen and node.id == "b")
    assert [document.metadata["id"] for document, _ in kept] == ["a", "c"]


def test_a_leaf_without_sources_names_its_own_page():
    leaf = Document("text", metadata={"id": "a", "level": 0, "source": "https://docs/page"})
    (hit,) = read([leaf])
    assert hit.metadata["sources"] == ["https://docs/page"]
