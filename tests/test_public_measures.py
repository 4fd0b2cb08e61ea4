"""Measures of a context against gold passages and answers, by hand and against ir_measures."""

import ir_measures
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import R
from langchain_core.documents import Document

from helpers.nodes import Tree
from public.measures import (
    common_words,
    content_words,
    fact_recall,
    leaf_spans,
    measure,
    section_coverage,
    sections_found,
    word_recall,
)
from public.sets import Passage, Question


def leaf(start, end, text="some text", source="tale"):
    about = {"id": f"{source}-{start}", "level": 0, "source": source, "start": start, "end": end}
    return Document(text, metadata=about)


def summary(name, children, text="a summary"):
    return Document(text, metadata={"id": name, "level": 1, "children": children, "sources": ["tale"]})


def section(start, text, source="tale"):
    return Passage(source, start, start + len(text), text)


# Sections.


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (100, 120, 1),  # inside
        (90, 110, 1),  # half of the leaf
        (89, 109, 0),  # less than half of it
        (50, 250, 1),  # around the whole section
        (150, 350, 1),  # half of the section, though a quarter of the piece
        (151, 351, 0),
    ],
)
def test_a_section_is_found_by_half_of_the_shorter(start, end, expected):
    assert sections_found([section(100, "x" * 100)], leaf_spans([leaf(start, end)])) == expected


def test_all_sections_of_a_question_must_be_found():
    evidence = [section(0, "x" * 50), section(100, "y" * 50)]
    assert sections_found(evidence, leaf_spans([leaf(0, 40)])) == 0
    assert sections_found(evidence, leaf_spans([leaf(0, 40), leaf(110, 140)])) == 1


def test_a_leaf_of_another_document_finds_nothing():
    assert sections_found([section(0, "x" * 50)], leaf_spans([leaf(0, 50, source="other")])) == 0


def test_coverage_counts_the_words_of_all_sections():
    # Words at 0, 4, 8 and at 20, 24; the leaves hold those at 4, 8 and 20.
    evidence = [section(0, "one two six"), section(20, "ten nil")]
    assert section_coverage(evidence, leaf_spans([leaf(3, 12), leaf(18, 23)])) == pytest.approx(3 / 5)


def test_a_summary_brings_sections_by_lineage_alone():
    tree = Tree([leaf(0, 10), leaf(10, 20), summary("s", ["tale-0", "tale-10"])])
    question = Question("q", "local", "?", ("a",), "tale", (section(0, "x" * 9), section(10, "y" * 10)))
    found = measure(question, [tree.nodes["s"]], tree, is_pooled=False)
    assert found == {"literal": 0, "coverage": 0, "lineage": 1, "lineage coverage": 1}


def test_without_a_tree_lineage_is_literal():
    question = Question("q", "local", "?", ("a",), "tale", (section(0, "x" * 9),))
    found = measure(question, [leaf(0, 10)], None, is_pooled=False)
    assert found == {"literal": 1, "coverage": 1, "lineage": 1, "lineage coverage": 1}


@pytest.mark.parametrize("k", [1, 3, 5, 10])
def test_sections_of_one_leaf_each_agree_with_ir_measures(k):
    """Where each section is a leaf, sections are relevant documents: all are found where R@k is 1."""
    rng = np.random.default_rng(0)
    qrels, run, ours, coverage = [], [], {}, {}
    for q in range(40):
        gold = rng.choice(12, size=rng.integers(1, 4), replace=False)
        ranking = rng.permutation(12)[:10]
        evidence = [section(100 * g, "word " * 20) for g in gold]
        spans = leaf_spans([leaf(100 * i, 100 * i + 100) for i in ranking[:k]])
        ours[f"q{q}"], coverage[f"q{q}"] = sections_found(evidence, spans), section_coverage(evidence, spans)
        qrels += [ir_measures.Qrel(f"q{q}", f"{g}", 1) for g in gold]
        run += [ir_measures.ScoredDoc(f"q{q}", f"{i}", -rank) for rank, i in enumerate(ranking)]
    theirs = {metric.query_id: metric.value for metric in ir_measures.iter_calc([R @ k], qrels, run)}
    assert coverage == pytest.approx(theirs)
    assert ours == {name: float(value == 1) for name, value in theirs.items()}
    assert 0 < sum(ours.values()) < 40


@given(st.lists(st.tuples(st.integers(0, 90), st.integers(1, 60)), max_size=6))
def test_more_text_never_lowers_a_measure(places):
    evidence, hits = [section(20, "five more words stand here")], [leaf(s, s + n) for s, n in places]
    values = [section_coverage(evidence, leaf_spans(hits[:i])) for i in range(len(hits) + 1)]
    found = [sections_found(evidence, leaf_spans(hits[:i])) for i in range(len(hits) + 1)]
    assert values == sorted(values) and found == sorted(found)
    assert all(0 <= value <= 1 for value in values)


# Sentences.


def test_facts_stand_verbatim_but_for_white_space():
    evidence = [section(0, "Ann was  born\nin Rome."), section(30, "Rome is old.")]
    hits = [leaf(0, 40, "Ann was born in Rome. She left."), leaf(40, 80, "Rome is very old.")]
    assert fact_recall(evidence, hits) == 0.5
    question = Question("q", "bridge", "?", ("a",), None, tuple(evidence))
    assert measure(question, hits, None, is_pooled=True) == {"facts": 0.5, "all facts": 0}


def test_facts_agree_with_ir_measures():
    rng = np.random.default_rng(1)
    qrels, run, ours = [], [], {}
    for q in range(30):
        gold, ranking = rng.choice(15, size=2, replace=False), rng.permutation(15)[:10]
        evidence = [section(0, f"Sentence number <{g}>.") for g in gold]
        hits = [leaf(i, i + 1, f"Before. Sentence number <{i}>. After.") for i in ranking[:5]]
        ours[f"q{q}"] = fact_recall(evidence, hits)
        qrels += [ir_measures.Qrel(f"q{q}", f"{g}", 1) for g in gold]
        run += [ir_measures.ScoredDoc(f"q{q}", f"{i}", -rank) for rank, i in enumerate(ranking)]
    theirs = {metric.query_id: metric.value for metric in ir_measures.iter_calc([R @ 5], qrels, run)}
    assert ours == pytest.approx(theirs)


# Words.


def test_content_words_are_long_and_no_stop_words():
    assert content_words("The RMA of their ship's Captain, 2001: captain_x") == {"ship", "captain"}


def test_words_that_two_references_share():
    answers = ["The captain steals a ship.", "A captain flees.", "The ship burns.", "Nobody flees alone."]
    assert common_words(answers) == {"captain", "ship", "flees"}
    assert common_words(["The captain burns."]) == {"captain", "burns"}


def test_word_recall_is_of_the_whole_context():
    gold = {"captain", "ship", "flees"}
    assert word_recall(gold, ["Captain!", "The ship and the captain."]) == pytest.approx(2 / 3)
    assert word_recall(gold, []) == 0


def test_questions_with_options_or_without_common_words_have_no_measure():
    plot = Question("q", "plot", "?", ("The captain.", "A ship."))
    options = Question("q", "multiple choice", "?", ("captain",), options=("captain", "ship"), answer_index=0)
    assert measure(plot, [leaf(0, 9)], None, is_pooled=False) == {}
    assert measure(options, [leaf(0, 9)], None, is_pooled=False) == {}
