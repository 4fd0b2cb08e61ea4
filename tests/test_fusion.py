"""The retrievers of notebook 08: keywords, fusion, parents by children; rankings written out by hand."""

import warnings

import pytest
from langchain_core.documents import Document

from helpers.budget import BudgetRetriever
from helpers.keywords import KeywordIndex
from helpers.retrievers import FusionRetriever, KeywordRetriever, ParentChildRetriever


class Given(BudgetRetriever):
    """A ranking that is given, and how far it was read."""

    documents: list[Document]
    read_so_far: int = 0

    def ranked(self, question):
        for rank, document in enumerate(self.documents, start=1):
            self.read_so_far = rank
            yield document, 1 / rank


def document(document_id, words=1, parent=None):
    metadata = {"id": document_id, "source": "https://docs/a"} | ({"parent": parent} if parent else {})
    return Document(" ".join([document_id] * words), id=document_id, metadata=metadata)


def given(*names):
    return Given(documents=[document(name) for name in names])


def children(*names):
    """Children such as a1 and a2, of parent a."""
    return Given(documents=[document(name, parent=name[0]) for name in names])


def parents(**words):
    return {name: document(name, words=count) for name, count in words.items()}


def count_words(text):
    return len(text.split())


def ids(hits):
    return [hit.metadata["id"] for hit in hits]


# Keywords


def test_keyword_retriever_reads_the_keyword_ranking():
    index = KeywordIndex([document("apple", 2), document("pear"), document("plum")])
    hits = KeywordRetriever(index=index, k=3).invoke("apple or pear")
    assert sorted(ids(hits)) == ["apple", "pear"]
    assert all(hit.metadata["score"] > 0 and hit.metadata["level"] == 0 for hit in hits)


def test_keyword_retriever_keeps_a_budget():
    index = KeywordIndex([document("apple", 3), document("pear", 2)])
    retriever = KeywordRetriever(index=index, token_budget=2, count_tokens=count_words)
    assert ids(retriever.invoke("apple pear")) == ["pear"]


@pytest.mark.parametrize("question", ["", "?", "penguin"])
def test_keyword_retriever_finds_nothing(question):
    assert KeywordRetriever(index=KeywordIndex([document("apple")])).invoke(question) == []
    assert KeywordRetriever(index=KeywordIndex([])).invoke(question) == []


# Fusion


def test_fusion_joins_rankings_by_reciprocal_rank():
    hits = FusionRetriever(retrievers=[given("a", "b", "c"), given("b", "d")]).invoke("?")
    assert ids(hits) == ["b", "a", "d", "c"]
    assert hits[0].metadata["score"] == round(1 / 62 + 1 / 61, 6)


def test_fusion_of_three_rankings_and_of_one():
    assert ids(FusionRetriever(retrievers=[given("a", "b")] * 3).invoke("?")) == ["a", "b"]
    assert ids(FusionRetriever(retrievers=[given("b", "a")]).invoke("?")) == ["b", "a"]


def test_fusion_takes_an_index_as_it_is():
    index = KeywordIndex([document("a"), document("b")])
    assert ids(FusionRetriever(retrievers=[index, given("b", "a")]).invoke("b")) == ["b", "a"]


def test_fusion_reads_each_ranking_to_its_depth_whatever_the_limits_of_its_own():
    long, short = given("a", "b", "c", "d"), given("d", "c")
    short.k = 1
    hits = FusionRetriever(retrievers=[long, short], depth=2, k=9).invoke("?")
    assert ids(hits) == ["a", "d", "b", "c"]
    assert long.read_so_far == 2


def test_fusion_of_empty_rankings():
    assert FusionRetriever(retrievers=[]).invoke("?") == []
    assert FusionRetriever(retrievers=[given(), given()]).invoke("?") == []
    assert ids(FusionRetriever(retrievers=[given(), given("a")]).invoke("?")) == ["a"]


def test_an_id_that_a_ranking_repeats_counts_once():
    hits = FusionRetriever(retrievers=[given("a", "b", "b", "b"), given("a")]).invoke("?")
    assert ids(hits) == ["a", "b"]
    assert hits[1].metadata["score"] == round(1 / 62, 6)


def test_fusion_within_a_budget():
    words = Given(documents=[document("long", 50), document("a", 5), document("b", 5), document("c", 5)])
    limit = {"token_budget": 10, "count_tokens": count_words}
    assert ids(FusionRetriever(retrievers=[words], **limit).invoke("?")) == ["a", "b"]


def test_fusion_takes_only_what_has_a_ranking():
    with pytest.raises(ValueError, match="Ranker"):
        FusionRetriever(retrievers=["a", "b"])


# Parents by their children


def test_two_children_of_one_parent_bring_it_once_in_the_order_of_its_best_child():
    retriever = ParentChildRetriever(
        index=children("b1", "a1", "b2", "a2", "c1"), parents=parents(a=1, b=1, c=1)
    )
    hits = retriever.invoke("?")
    assert ids(hits) == ["b", "a", "c"]
    assert [hit.metadata["score"] for hit in hits] == [1.0, 0.5, 0.2]


def test_k_counts_parents_not_children():
    retriever = ParentChildRetriever(index=children("a1", "a2", "b1"), parents=parents(a=1, b=1), k=2)
    assert ids(retriever.invoke("?")) == ["a", "b"]


def test_a_parent_larger_than_the_budget_left_is_skipped_and_reading_goes_on():
    family = parents(a=6, b=50, c=5, d=4)
    limit = {"token_budget": 10, "count_tokens": count_words}
    retriever = ParentChildRetriever(index=children("a1", "b1", "c1", "d1"), parents=family, **limit)
    assert ids(retriever.invoke("?")) == ["a", "d"]


def test_a_limit_on_parents_beside_a_budget_counts_those_that_are_read():
    family = parents(a=50, b=1, c=1, d=1)
    limit = {"token_budget": 10, "count_tokens": count_words, "max_parents": 2}
    index = children("a1", "b1", "c1", "d1")
    assert ids(ParentChildRetriever(index=index, parents=family, **limit).invoke("?")) == ["b", "c"]
    assert index.read_so_far == 3  # nothing is read, or reported, behind the limit


def test_max_parents_is_at_least_one():
    with pytest.raises(ValueError, match="max_parents"):
        ParentChildRetriever(index=children(), parents={}, max_parents=0)


def test_a_child_whose_parent_is_missing_is_reported_and_stands_in_for_it():
    retriever = ParentChildRetriever(index=children("a1", "x1", "x2", "a2"), parents=parents(a=1))
    with pytest.warns(UserWarning) as caught:
        hits = retriever.invoke("?")
    assert ids(hits) == ["a", "x1", "x2"]
    assert [str(warning.message) for warning in caught] == [
        "the parent 'x' of x1 is missing: the child stands in",
        "the parent 'x' of x2 is missing: the child stands in",
    ]


def test_a_child_that_names_no_parent_is_reported_too():
    with pytest.warns(UserWarning, match="the parent None of lone is missing"):
        hits = ParentChildRetriever(index=given("lone"), parents={}).invoke("?")
    assert ids(hits) == ["lone"]


def test_no_report_where_nothing_is_missing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ParentChildRetriever(index=children("a1"), parents=parents(a=1)).invoke("?")


def test_no_children_no_parents():
    assert ParentChildRetriever(index=children(), parents=parents(a=1)).invoke("?") == []


def test_the_parents_stay_as_they_were():
    family = parents(a=1)
    ParentChildRetriever(index=children("a1"), parents=family).invoke("?")
    assert "score" not in family["a"].metadata


def test_children_may_be_ranked_by_a_fusion_and_parents_fused_again():
    family = parents(a=1, b=1)
    fused = FusionRetriever(retrievers=[children("a1", "b1"), children("b1", "a2")])
    by_family = ParentChildRetriever(index=fused, parents=family)
    assert ids(by_family.invoke("?")) == ["b", "a"]
    again = FusionRetriever(retrievers=[by_family, Given(documents=[family["a"]])])
    assert ids(again.invoke("?")) == ["a", "b"]
