"""Report: the comparison as text, the same in notebook 07 and on the command line."""

from collections import Counter

import pandas as pd

from helpers.stages import LEAF_RAG, RAPTOR, Workbench
from helpers.tables import difference_table, score_table

MEASURES = {
    "keywords": "answers with all keywords",
    "literal": "evidence in the context",
    "lineage": "evidence under the nodes",
}


def comparison(bench: Workbench | None = None) -> str:
    """Return the comparison of plain RAG and RAPTOR: scores, judge, abstention, and what was computed live."""
    bench = bench or Workbench()
    parts = [f"Plain RAG and RAPTOR, {bench.profile.token_budget} tokens of context each, 95 % intervals", ""]
    for measure, name in MEASURES.items():
        parts += [name, comparison_table(bench.results, measure).to_string(index=False), ""]
    parts += ["judge, blind, both orders: " + judge_line(bench.verdicts.values())]
    parts += ["abstains where the corpus has no answer: " + abstention_line(bench.results)]
    parts += ["", bench.calls().to_string(index=False)]
    return "\n".join(parts)


def comparison_table(results: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return a row per kind of question: n, both means with intervals, and the paired difference."""
    scores = score_table(results, measure)
    differences = difference_table(results, measure, RAPTOR, LEAF_RAG).set_index("kind")
    rows = []
    for kind in differences.index:
        by_system = scores[scores.kind == kind].set_index("system")
        difference = differences.loc[kind]
        rows.append(
            {
                "kind": kind,
                "n": int(difference.n),
                LEAF_RAG: _interval(by_system.loc[LEAF_RAG], "mean"),
                RAPTOR: _interval(by_system.loc[RAPTOR], "mean"),
                "difference": _interval(difference, "difference", sign="+"),
            }
        )
    return pd.DataFrame(rows)


def judge_line(verdicts) -> str:
    """Return how many pairs each system won."""
    won = Counter(verdict.winner for verdict in verdicts)
    return f"{LEAF_RAG} {won['a']}, {RAPTOR} {won['b']}, tie {won['tie']}, unparsed {won['unparsed']}"


def abstention_line(results: pd.DataFrame) -> str:
    """Return on how many unanswerable questions each system says that the evidence is not enough."""
    part = results[results.kind == "unanswerable"]
    counts = part.groupby("system", sort=False).abstained.agg(["sum", "count"])
    return ", ".join(
        f"{system} {int(row['sum'])} of {int(row['count'])}" for system, row in counts.iterrows()
    )


def _interval(row, key, sign=""):
    return f"{row[key]:{sign}.2f} ({row['low']:{sign}.2f} to {row['high']:{sign}.2f})"
