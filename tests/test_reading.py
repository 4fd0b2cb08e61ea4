"""Ways of reading a ranking, with orders worked out by hand."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from pydantic import ValidationError
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from test_retrievers import QUESTION, TableEmbedder, count_words, ids, node, vector

from helpers.budget import within
from helpers.index import VectorIndex
from helpers.keywords import keyword_tokens
from helpers.nodes import gist_node, leaf_node
from helpers.reading import READINGS, is_covered, is_told, ordered
from helpers.retrievers import CollapsedTreeRetriever
from helpers.scope import BROAD, NARROW


def hit(name, score, level=0, children=()):
    return node(name, 1, level, children), score


def names(ranked):
    return [document.metadata["id"] for document, _ in ranked]


def words_of(document):
    return count_words(document.page_content)


def no_vectors(ids):
    raise AssertionError("only mmr needs vectors")


# leaves a to d, summaries s and t of level 1, the top of level 2
RANKED = [
    hit("a", 0.90),
    hit("b", 0.80),
    hit("s", 0.75, 1, ["a", "b"]),
    hit("c", 0.70),
    hit("top", 0.40, 2, ["s", "t"]),
    hit("t", 0.35, 1, ["c", "d"]),
    hit("d", 0.30),
]


@pytest.mark.parametrize(
    ("reading", "expected"),
    [
        ("plain", ["a", "b", "s", "c", "top", "t", "d"]),
        # 0.90, s 0.85, 0.80, 0.70, top 0.50, t 0.45, 0.30
        ("bonus", ["a", "s", "b", "c", "top", "t", "d"]),
        ("alternate", ["s", "a", "top", "b", "t", "c", "d"]),
        ("top-first", ["top", "a", "b", "s", "c", "t", "d"]),
        ("summary-first", ["s", "a", "b", "c", "top", "t", "d"]),
        ("leaves-first", ["a", "b", "c", "d", "s", "top", "t"]),
    ],
)
def test_the_order_of_each_reading(reading, expected):
    assert names(ordered(RANKED, reading, no_vectors)) == expected


def test_of_several_nodes_of_the_highest_level_the_best_comes_first():
    ranked = [hit("a", 0.9), hit("s", 0.5, 1, ["a"]), hit("t", 0.4, 1, ["b"]), hit("b", 0.3)]
    assert names(ordered(ranked, "top-first", no_vectors)) == ["s", "a", "t", "b"]


@pytest.mark.parametrize("reading", ["bonus", "alternate", "top-first", "summary-first", "leaves-first"])
def test_leaves_alone_keep_their_order(reading):
    ranked = [hit("a", 0.9), hit("b", 0.8), hit("c", 0.7)]
    assert names(ordered(ranked, reading, no_vectors)) == ["a", "b", "c"]


def test_a_bonus_that_makes_a_tie_keeps_the_order_of_the_ranking():
    ranked = [hit("a", 0.6), hit("s", 0.5, 1, ["a"])]
    assert names(ordered(ranked, "bonus", no_vectors)) == ["a", "s"]


def test_mmr_prefers_what_is_unlike_the_text_read_before():
    # a and b are the same text to the embedder. After a: b gains 0.6 * 0.9 - 0.4 * 1 = 0.14, c, at a right
    # angle to a, 0.6 * 0.5 - 0 = 0.3.
    vectors = {"a": [1, 0], "b": [1, 0], "c": [0, 1]}
    ranked = [hit("a", 0.9), hit("b", 0.9), hit("c", 0.5)]
    read = ordered(ranked, "mmr", lambda ids: np.array([vectors[i] for i in ids], dtype=float))
    assert names(read) == ["a", "c", "b"]


def test_mmr_asks_the_index_for_its_vectors():
    scored = {"a x": 0.9, "b x": 0.89, "c x": 0.1}
    nodes = [Document(text, metadata={"id": text[0], "level": 0, "source": "p"}) for text in scored]
    index = VectorIndex.build(nodes, TableEmbedder({text: vector(cosine) for text, cosine in scored.items()}))
    # After a: b gains 0.6 * 0.89 - 0.4 * (0.9 * 0.89 + sqrt(1 - 0.81) * sqrt(1 - 0.7921)) = 0.134; c gains
    # 0.6 * 0.1 - 0.4 * (0.9 * 0.1 + sqrt(1 - 0.81) * sqrt(1 - 0.01)) = -0.149.
    assert ids(CollapsedTreeRetriever(index=index, reading="mmr", k=3).invoke(QUESTION)) == ["a", "b", "c"]


def test_diverse_adds_a_bonus_for_summaries_and_more_weight_for_the_question():
    vectors = {"a": [1, 0], "b": [1, 0], "s": [0, 1]}
    ranked = [hit("a", 0.6), hit("b", 0.55), hit("s", 0.5, 1, ["a"])]
    # s begins with 0.7 * (0.5 + 0.15) = 0.455, a with 0.42. Then a gains 0.42 - 0, b 0.385 - 0; after a, b loses 0.3.
    read = ordered(ranked, "diverse", lambda ids: np.array([vectors[i] for i in ids], dtype=float))
    assert names(read) == ["s", "a", "b"]


def test_only_a_pool_of_the_best_changes_places(monkeypatch):
    monkeypatch.setattr("helpers.reading.POOL", 2)
    ranked = [hit("a", 0.6), hit("b", 0.5), hit("s", 0.45, 1, ["a"])]
    read = ordered(ranked, "diverse", lambda ids: np.eye(len(ids)))
    assert names(read) == ["a", "b", "s"]


class ScopeEmbedder(TableEmbedder):
    """Knows broad and narrow examples, and questions that are like one of them; keeps what it was asked."""

    def __init__(self, vectors):
        super().__init__(vectors)
        self.questions = []

    def embed_documents(self, texts):
        return [
            self.vectors.get(text) or [0.0, float(text in BROAD) - float(text in NARROW)] for text in texts
        ]

    def embed_query(self, text):
        self.questions.append(text)
        return [0.8, {"broad": 0.6, "narrow": -0.6}[text]]


@pytest.mark.parametrize(("question", "expected"), [("broad", ["s", "b"]), ("narrow", ["a", "b"])])
def test_the_question_decides_how_the_tree_is_read(question, expected):
    nodes = [node("a", 1), node("b", 1), node("s", 1, 1, ["a", "b"])]
    vectors = dict(zip("abs", ([1.0, 0.0], [0.99, 0.14], [0.95, 0.31]), strict=True))
    embedder = ScopeEmbedder(vectors)
    retriever = CollapsedTreeRetriever(index=VectorIndex.build(nodes, embedder), k=2)
    assert ids(retriever.invoke(question)) == expected
    assert embedder.questions == [question], "embedded once, for its scope and for the search"


def test_a_broad_question_is_read_for_coverage_once_leaves_have_gists():
    wordy, brief = (
        leaf_node(Document(text, metadata={"id": name}))
        for name, text in (("wordy", "w x y z"), ("brief", "v"))
    )
    gist = gist_node("u", wordy)
    table = {"w x y z": [0.99, 0.14], "v": [1.0, 0.0], "u": [0.95, 0.31]}
    index = VectorIndex.build([wordy, brief], ScopeEmbedder(table))
    retriever = CollapsedTreeRetriever(index=index, k=2)
    assert ids(retriever.invoke("broad")) == ["wordy", "brief"]
    index.add([gist])
    # A word of `wordy` counts for less than that of `brief`, though it is nearer: diverse, it would be second.
    assert ids(retriever.invoke("broad")) == [gist.id, "brief"]
    assert ids(retriever.invoke("narrow")) == ["brief", "wordy"]


def text_hit(name, score, text):
    return Document(text, metadata={"id": name, "level": 0}), score


def test_coverage_reads_what_adds_most_words_for_its_length():
    # Equal cosines: whale and ship weigh 1/2 + 1/3, storm 1/3 + 1. Stop words weigh nothing, but they are read, too:
    # a word of a brings 0.42, of b 0.75, of c 1.33; without storm one of b 0.42 still, and a comes first as ranked.
    ranked = [
        text_hit("a", 0.5, "The whale, the ship."),
        text_hit("b", 0.5, "Whale, ship and storm!"),
        text_hit("c", 0.5, "storm"),
    ]
    assert names(ordered(ranked, "coverage", no_vectors)) == ["c", "a", "b"]


def test_coverage_goes_by_the_words_of_the_nearest():
    ranked = [text_hit("a", 0.9, "whale ship"), text_hit("b", 0.4, "storm"), text_hit("c", 0.4, "the storm")]
    # The words of b and c count for e^-5 of those of a.
    assert names(ordered(ranked, "coverage", no_vectors)) == ["a", "b", "c"]
    assert names(ordered([(hit, 0.4) for hit, _ in ranked], "coverage", no_vectors)) == ["b", "a", "c"]


@given(st.lists(st.tuples(st.text("abc the", max_size=12), st.floats(0, 1)), max_size=8))
def test_coverage_is_the_greedy_choice_worked_out_in_plain_python(texts):
    ranked = [
        text_hit(f"n{i}", score, text) for i, (text, score) in enumerate(sorted(texts, key=lambda t: -t[1]))
    ]
    found, read = list(ordered(ranked, "coverage", no_vectors)), set()
    weights = Counter()
    for document, score in ranked:
        words = content_of(document)
        for word in words:
            weights[word] += math.exp((score - ranked[0][1]) / 0.1) / len(words)

    def gain(hit):
        length = max(1, len(keyword_tokens(hit[0].page_content)))
        return sum(weights[word] for word in content_of(hit[0]) - read) / length

    for place, chosen in enumerate(found):
        assert gain(chosen) >= max(map(gain, found[place:])) - 2e-6
        read |= content_of(chosen[0])
    assert sorted(names(found)) == sorted(names(ranked))


def content_of(document):
    return set(keyword_tokens(document.page_content)) - ENGLISH_STOP_WORDS


@pytest.mark.parametrize("text", ["", "the and of", "..."])
def test_texts_without_a_word_that_counts_stay_as_ranked(text):
    ranked = [text_hit(name, score, text) for name, score in (("a", 0.9), ("b", 0.5), ("c", 0.4))]
    assert names(ordered(ranked, "coverage", no_vectors)) == ["a", "b", "c"]


def test_an_empty_ranking_is_read_in_every_way():
    for reading in READINGS:
        assert list(ordered([], reading, no_vectors)) == []


@given(
    st.lists(st.tuples(st.floats(-1, 1), st.integers(0, 3)), max_size=12),
    st.sampled_from(READINGS),
    st.integers(0, 30),
)
def test_every_reading_is_a_permutation_and_keeps_to_the_budget(scored, reading, budget):
    scored = sorted(scored, key=lambda pair: -pair[0])
    ranked = [
        (node(f"n{i}", 1 + i % 4, level, [f"n{i + 1}"]), score) for i, (score, level) in enumerate(scored)
    ]
    vectors = np.random.default_rng(0).normal(size=(len(ranked), 3))
    read = list(ordered(ranked, reading, lambda ids: vectors[: len(ids)]))
    assert sorted(names(read)) == sorted(names(ranked))
    assert {document.metadata["id"]: score for document, score in read} == {
        document.metadata["id"]: score for document, score in ranked
    }
    kept = within(read, budget, words_of, is_told)
    assert sum(words_of(document) for document, _ in kept) <= budget


# Waste.


def test_a_summary_is_covered_when_all_its_children_are_chosen():
    summary = node("s", 1, 1, ["a", "b"])
    assert not is_covered(summary, {"a": node("a", 1)})
    assert is_covered(summary, {"a": node("a", 1), "b": node("b", 1)})
    assert not is_covered(node("a", 1), {})


def test_a_leaf_is_told_by_a_chosen_parent_alone():
    chosen = {"s": node("s", 1, 1, ["a"]), "top": node("top", 1, 2, ["s", "t"])}
    assert is_told(node("a", 1), chosen)
    assert not is_told(node("c", 1), chosen)
    # A summary is not told by the one above it: it says more.
    assert not is_told(node("t", 1, 1, ["c"]), chosen)


def tree_index():
    cosines = {"a": 0.9, "b": 0.8, "s": 0.75, "c": 0.7, "t": 0.72, "d": 0.3}
    children = {"s": ["a", "b"], "t": ["c", "d"]}
    nodes = [node(name, 2, int(name in children), children.get(name, ())) for name in cosines]
    return VectorIndex.build(nodes, TableEmbedder({n.page_content: vector(cosines[n.id]) for n in nodes}))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["a", "b", "s", "t"]),
        ({"skip_covered": True}, ["a", "b", "t", "c"]),
        # c was told by t, d too: fewer nodes than would fit.
        ({"skip_told": True}, ["a", "b", "s", "t"]),
        ({"skip_covered": True, "skip_told": True}, ["a", "b", "t"]),
        ({"reading": "summary-first", "skip_told": True}, ["s", "t"]),
    ],
)
def test_waste_is_skipped_and_its_place_is_given_to_others(options, expected):
    options = {"reading": "plain"} | options
    retriever = CollapsedTreeRetriever(
        index=tree_index(), token_budget=8, count_tokens=count_words, **options
    )
    assert ids(retriever.invoke(QUESTION)) == expected


def test_a_child_that_did_not_fit_does_not_cover_its_parent():
    nodes = [node("a", 2), node("b", 9), node("s", 2, 1, ["a", "b"])]
    cosines = {"a": 0.9, "b": 0.8, "s": 0.7}
    index = VectorIndex.build(nodes, TableEmbedder({n.page_content: vector(cosines[n.id]) for n in nodes}))
    retriever = CollapsedTreeRetriever(
        index=index, reading="plain", skip_covered=True, token_budget=5, count_tokens=count_words
    )
    assert ids(retriever.invoke(QUESTION)) == ["a", "s"]


def test_an_unknown_reading_is_refused():
    with pytest.raises(ValidationError, match="top-first"):
        CollapsedTreeRetriever(index=tree_index(), reading="backwards")
