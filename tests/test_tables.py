"""Means and paired differences: what is left out, and how far an interval goes."""

import math

import pandas as pd

from helpers.tables import difference_table, interval_table, overall_difference, score_table

RESULTS = pd.DataFrame(
    {
        "question": ["q1", "q2", "q3", "q1", "q2", "q3"],
        "kind": ["specific", "specific", "thematic"] * 2,
        "system": ["RAG"] * 3 + ["RAPTOR"] * 3,
        "recall": [1.0, 0.0, 0.5, 1.0, 1.0, math.nan],
    }
)


def test_score_table():
    table = score_table(RESULTS, "recall")
    assert table[["kind", "system", "n", "mean"]].values.tolist() == [
        ["specific", "RAG", 2, 0.5],
        ["specific", "RAPTOR", 2, 1.0],
        ["thematic", "RAG", 1, 0.5],  # RAPTOR has no value there: no row
        ["all", "RAG", 3, 0.5],
        ["all", "RAPTOR", 2, 1.0],
    ]
    assert table.iloc[0][["low", "high"]].tolist() == [0.0, 1.0]
    assert table.iloc[1][["low", "high"]].tolist() == [1.0, 1.0]


def test_differences_are_paired_and_leave_out_what_one_side_lacks():
    table = difference_table(RESULTS, "recall", "RAPTOR", baseline="RAG")
    # q1: 1 - 1 = 0, q2: 1 - 0 = 1; q3 has no value for RAPTOR.
    expected = [["specific", 2, 0.5, 0.0, 1.0], ["all", 2, 0.5, 0.0, 1.0]]
    assert table[["kind", "n", "difference", "low", "high"]].values.tolist() == expected


def test_a_constant_gain_is_certain_however_far_the_questions_lie_apart():
    rows = [("RAG", 0.0), ("RAPTOR", 0.25)]
    results = pd.DataFrame(
        [
            {"question": f"q{i}", "kind": "specific", "system": system, "recall": i / 4 + gain}
            for i in range(4)
            for system, gain in rows
        ]
    )
    table = difference_table(results, "recall", "RAPTOR", baseline="RAG")
    assert table[["difference", "low", "high"]].values.tolist() == [[0.25] * 3] * 2


def test_the_overall_difference_is_the_last_row_of_the_table():
    whole = difference_table(RESULTS, "recall", "RAPTOR", baseline="RAG").set_index("kind").loc["all"]
    row = overall_difference(RESULTS, "recall", "RAPTOR", "RAG")
    assert row == {"n": 2, "difference": round(whole.difference, 2), "low": 0.0, "high": 1.0}


def test_the_interval_table_has_a_row_a_system_and_a_column_a_kind():
    both = RESULTS[RESULTS.kind == "specific"]
    table = interval_table(both, "recall")
    assert list(table.columns) == ["specific, n = 2", "all, n = 2"]
    assert table.loc["RAPTOR", "specific, n = 2"] == "1.00 (1.00 to 1.00)"
    assert table.loc["RAG", "all, n = 2"] == "0.50 (0.00 to 1.00)"
