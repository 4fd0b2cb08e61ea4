"""The comparison as text: the figures in it are those of the results, and nothing else."""

import pandas as pd

from helpers.judging import PairVerdict
from helpers.report import abstention_line, comparison_table, judge_line
from helpers.stages import LEAF_RAG, RAPTOR


def results():
    rows = [
        ("q1", "specific", LEAF_RAG, 1.0, 0.0),
        ("q1", "specific", RAPTOR, 0.0, 0.0),
        ("q2", "specific", LEAF_RAG, 0.0, 0.0),
        ("q2", "specific", RAPTOR, 0.0, 0.0),
        ("q3", "unanswerable", LEAF_RAG, float("nan"), 1.0),
        ("q3", "unanswerable", RAPTOR, float("nan"), 0.0),
    ]
    return pd.DataFrame(rows, columns=["question", "kind", "system", "keywords", "abstained"])


def test_a_row_holds_both_means_and_the_paired_difference():
    table = comparison_table(results(), "keywords").set_index("kind")
    assert list(table.index) == ["specific", "all"]
    row = table.loc["specific"]
    assert row.n == 2
    assert row[LEAF_RAG] == "0.50 (0.00 to 1.00)"
    assert row[RAPTOR] == "0.00 (0.00 to 0.00)"
    assert row["difference"] == "-0.50 (-1.00 to +0.00)"


def test_the_judge_line_counts_each_outcome():
    verdicts = [PairVerdict(winner, (None, None)) for winner in ("a", "b", "b", "tie", "unparsed")]
    assert judge_line(verdicts) == "leaf RAG 1, RAPTOR 2, tie 1, unparsed 1"


def test_abstention_is_counted_on_unanswerable_questions_alone():
    assert abstention_line(results()) == "leaf RAG 1 of 1, RAPTOR 0 of 1"
