"""Evaluation: keywords, evidence recall, intervals and tables, against hand calculations and two oracles."""

import math

import ir_measures
import numpy as np
import pytest
import scipy.stats
from ir_measures import R
from langchain_core.documents import Document
from langchain_core.language_models.fake import FakeListLLM
from langchain_core.retrievers import BaseRetriever

from helpers.evaluation import bootstrap_interval, compare, evidence_recall, keyword_match
from helpers.nodes import Tree
from helpers.questions import Evidence, Question
from helpers.rag import ABSTENTION

PAGE = "https://docs/page"

# Keywords.


@pytest.mark.parametrize(
    ("keyword", "answer"),
    [
        ("PEFT", "peft trains few weights"),
        ("map", "Call `map()`."),
        ("parameter-efficient", "Parameter Efficient Fine-Tuning"),
        ("parameter-efficient", "parameter‑efficient"),  # a non-breaking hyphen, as models write it
        ("parameter efficient", "parameter-efficient"),
        ("16-bit", "in 16\nbit"),
        ("pipeline(", "pipeline(task='ner')"),
        ("pipeline(", 'pipeline("ner")'),
        ("(0, 0)", "the offsets are (0, 0)"),
        ("[CLS]", "x[CLS]y"),
        ("max_steps", "use --max_steps=10"),
        ("-100", "labelled -100, then"),
        ("-100", "labelled −100"),  # the minus sign of typography
        ("1,000", "1,000 rows"),
        ("10", "at most 10."),
        ("0.05", "0.05"),
        ("ﬁle", "file"),  # compatibility forms are folded
    ],
)
def test_a_keyword_is_found(keyword, answer):
    assert keyword_match(answer, [keyword])


@pytest.mark.parametrize(
    ("keyword", "answer"),
    [
        ("map", "a mapping of columns"),
        ("map", "remap"),
        ("map", "map_batches"),
        ("-100", "100 rows"),
        ("-100", "rows 0-100"),  # a range, not a minus sign
        ("100", "labelled -100"),
        ("100", "1,100 rows"),
        ("100", "100.5"),
        ("10", "1000"),
        ("16-bit", "16 or 8-bit"),
        ("LoRA", ""),
    ],
)
def test_a_keyword_is_not_found(keyword, answer):
    assert not keyword_match(answer, [keyword])


def test_every_keyword_is_needed_and_an_alias_stands_for_its_own():
    keywords = {"datasets": ["dataset"], "map": [], "parallelized": ["num_proc", "several processes"]}
    assert keyword_match("dataset.map with num_proc=4", keywords)
    assert keyword_match("datasets: map it in several\nprocesses", keywords)
    assert not keyword_match("dataset.map", keywords)
    assert not keyword_match("num_proc, several processes, parallelized", keywords)


def test_an_abstention_never_passes():
    assert not keyword_match(f"{ABSTENTION} PEFT, LoRA, adapter.", ["PEFT", "LoRA", "adapter"])
    assert not keyword_match("The context does not mention LoRA.", ["LoRA"])


def test_an_answer_in_the_style_of_the_source_passes_its_third_question():
    # The source's checker failed its own printed answer: it compared hyphens and number letter by letter.
    answer = "PEFT (Parameter‑Efficient Fine‑Tuning) trains small adapters; one technique is LoRA."
    keywords = {"PEFT": [], "parameter-efficient": [], "adapter": ["adapters"], "LoRA": []}
    assert keyword_match(answer, keywords)


# Evidence recall. The page:
#   0         10        20        30
TEXT = "alpha beta\n\n\n\n  gamma delta epsilon"


def leaf(start, end, source=PAGE, node_id=None):
    node_id = node_id or f"{start}-{end}"
    about = {"id": node_id, "level": 0, "source": source, "sources": [source], "start": start, "end": end}
    return Document(TEXT[start:end], id=node_id, metadata=about)


def quote(text, source=PAGE):
    start = TEXT.index(text)
    return Evidence(source, start, start + len(text), text)


def summary(node_id, children, level=1):
    about = {"id": node_id, "level": level, "sources": [PAGE], "children": children}
    return Document("a summary", id=node_id, metadata=about)


def test_a_quote_in_one_leaf():
    assert evidence_recall([quote("gamma")], [leaf(16, 27)]) == 1
    assert evidence_recall([quote("gamma")], [leaf(16, 21)]) == 1  # the leaf ends where the quote does
    assert evidence_recall([quote("gamma")], [leaf(0, 10)]) == 0
    assert evidence_recall([quote("gamma")], []) == 0


def test_a_quote_across_two_adjacent_leaves():
    # The white space between the two (4 line breaks and an indent) is in neither.
    across = [quote("beta\n\n\n\n  gamma")]
    assert evidence_recall(across, [leaf(0, 10), leaf(16, 27)]) == 1
    assert evidence_recall(across, [leaf(16, 27), leaf(0, 10)]) == 1  # in whatever order
    assert evidence_recall(across, [leaf(0, 16), leaf(6, 27)]) == 1  # overlapping
    assert evidence_recall(across, [leaf(0, 10)]) == 0
    assert evidence_recall(across, [leaf(16, 27)]) == 0


@pytest.mark.parametrize("hole", [(9, 10), (16, 17), (20, 21)])
def test_one_missing_letter_is_a_missing_quote(hole):
    hits = [leaf(0, hole[0]), leaf(hole[1], len(TEXT))]
    assert evidence_recall([quote("beta\n\n\n\n  gamma")], hits) == 0


def test_the_same_characters_of_another_page_do_not_count():
    assert evidence_recall([quote("gamma")], [leaf(16, 27, source="https://docs/other")]) == 0


def test_recall_is_the_share_of_quotes():
    quotes = [quote("alpha"), quote("gamma"), quote("epsilon")]
    assert evidence_recall(quotes, [leaf(0, 10), leaf(16, 27)]) == pytest.approx(2 / 3)


def test_a_summary_counts_by_lineage_and_not_literally():
    tree = Tree([leaf(0, 10), leaf(16, 27), summary("s", ["0-10", "16-27"]), summary("top", ["s"], level=2)])
    quotes = [quote("alpha"), quote("gamma")]
    for hit in ("s", "top"):
        assert evidence_recall(quotes, [tree.nodes[hit]]) == 0
        assert evidence_recall(quotes, [tree.nodes[hit]], tree) == 1


def test_a_quote_whose_halves_come_from_a_leaf_and_through_a_summary():
    tree = Tree([leaf(0, 10), leaf(16, 27), summary("s", ["16-27"])])
    hits = [tree.nodes["0-10"], tree.nodes["s"]]
    assert evidence_recall([quote("beta\n\n\n\n  gamma")], hits) == 0
    assert evidence_recall([quote("beta\n\n\n\n  gamma")], hits, tree) == 1


def test_without_evidence_there_is_no_recall():
    with pytest.raises(ValueError, match="no evidence"):
        evidence_recall([], [leaf(0, 10)])


@pytest.mark.parametrize("k", [1, 2, 3, 5, 10, 20])
def test_recall_of_quotes_that_stand_in_one_leaf_equals_ir_measures(k):
    """Where each quote lies in a leaf of its own, quotes are relevant documents, and recall is R@k."""
    rng = np.random.default_rng(0)
    leaves = [leaf(100 * i, 100 * i + 100, node_id=f"leaf{i}") for i in range(20)]
    qrels, run, ours = [], [], {}
    for q in range(30):
        gold = rng.choice(20, size=rng.integers(1, 5), replace=False)
        ranking = rng.permutation(20)[:10]  # some gold leaves are never retrieved
        evidence = [Evidence(PAGE, 100 * g + 10, 100 * g + 60, "x" * 50) for g in gold]
        ours[f"q{q}"] = evidence_recall(evidence, [leaves[i] for i in ranking[:k]])
        qrels += [ir_measures.Qrel(f"q{q}", f"leaf{g}", 1) for g in gold]
        run += [ir_measures.ScoredDoc(f"q{q}", f"leaf{i}", -rank) for rank, i in enumerate(ranking)]
    theirs = {metric.query_id: metric.value for metric in ir_measures.iter_calc([R @ k], qrels, run)}
    assert len(theirs) == 30
    assert ours == pytest.approx(theirs)


# Intervals.


def test_an_interval_by_hand():
    # Two values have 4 equally likely resamples, with means 0, 1/2, 1/2, 1. So the quantiles are 0 below 1/4,
    # 1/2 up to 3/4, 1 above.
    assert bootstrap_interval([0, 1], level=0.4) == (0.5, 0.5, 0.5)
    assert bootstrap_interval([0, 1], level=0.95) == (0.5, 0.0, 1.0)


def test_an_interval_agrees_with_scipy():
    sample = [0.0, 0.0, 1.0, 0.5, 0.75, 1.0, 0.25, 0.5, 0.0, 1.0, 1.0, 0.75, 0.33, 0.67, 0.1]
    mean, low, high = bootstrap_interval(sample, resamples=50_000)
    oracle = scipy.stats.bootstrap(
        (sample,), np.mean, n_resamples=50_000, method="percentile", rng=np.random.default_rng(1)
    ).confidence_interval
    assert mean == pytest.approx(np.mean(sample))
    assert (low, high) == pytest.approx((oracle.low, oracle.high), abs=0.01)


def test_an_interval_is_the_same_every_time():
    assert bootstrap_interval([1, 2, 4]) == bootstrap_interval([1, 2, 4])
    assert bootstrap_interval(range(50), seed=0) != bootstrap_interval(range(50), seed=1)


def test_equal_values_have_an_interval_of_no_width():
    assert bootstrap_interval([0.25] * 5) == (0.25, 0.25, 0.25)
    assert bootstrap_interval([3]) == (3, 3, 3)


def test_no_values_no_interval():
    with pytest.raises(ValueError, match="no values"):
        bootstrap_interval([])


# Tables.


class FixedRetriever(BaseRetriever):
    """Finds the same documents for every question."""

    documents: list[Document]
    count_tokens: object = None

    def _get_relevant_documents(self, query, *, run_manager):
        return self.documents


@pytest.fixture
def small():
    tree = Tree([leaf(0, 10), leaf(16, 27), summary("s", ["0-10", "16-27"])])
    questions = [
        Question("q1", "specific", "Beta?", {"gamma": []}, [quote("beta")]),
        Question("q2", "unanswerable", "Price?", {}),
    ]
    retrievers = {
        "leaves": FixedRetriever(documents=[tree.nodes["0-10"]], count_tokens=lambda text: len(text.split())),
        "tree": FixedRetriever(documents=[tree.nodes["s"]]),
    }
    return questions, retrievers, tree


def test_compare_has_a_row_a_question_and_system(small):
    table = compare(*small)
    assert table[["question", "system"]].values.tolist() == [
        ["q1", "leaves"],
        ["q2", "leaves"],
        ["q1", "tree"],
        ["q2", "tree"],
    ]
    assert table.kind.tolist() == ["specific", "unanswerable"] * 2
    assert table.levels.tolist() == [[0], [0], [1], [1]]
    # q2 has no evidence, so no recall; `tree` was not told how to count.
    np.testing.assert_array_equal(table.literal, [1, math.nan, 0, math.nan])
    np.testing.assert_array_equal(table.lineage, [1, math.nan, 1, math.nan])
    np.testing.assert_array_equal(table.tokens, [2, 2, math.nan, math.nan])
    assert "answer" not in table


def test_compare_with_a_writer_scores_the_answers(small):
    writer = FakeListLLM(responses=["Gamma.", ABSTENTION, ABSTENTION, "Seven euros."])
    table = compare(*small, writer=writer)
    assert table.answer.tolist() == ["Gamma.", ABSTENTION, ABSTENTION, "Seven euros."]
    assert table.abstained.tolist() == [0, 1, 1, 0]
    # q2 has no keywords: there the abstention is what counts.
    np.testing.assert_array_equal(table.keywords, [1, math.nan, 0, math.nan])


def test_keywords_of_the_context_are_not_the_answers(small):
    questions, _, tree = small
    retrievers = {"leaves": FixedRetriever(documents=[tree.nodes["16-27"]])}
    assert "gamma" in tree.nodes["16-27"].page_content
    table = compare(questions, retrievers, tree, writer=FakeListLLM(responses=["Alpha, I think."]))
    # The source's pipeline gave the prompt back with each answer, so every system passed on its context.
    assert table.keywords[0] == 0
