"""Results: rows of numbers made into means, and paired differences to the baseline with their intervals."""

import datetime
import json
from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from helpers.evaluation import bootstrap_interval
from public.systems import BASELINE

SHOWN_DIGITS = 4
RESAMPLES, SEED = 10_000, 0
MEASURES = (
    "literal",
    "coverage",
    "lineage",
    "lineage coverage",
    "facts",
    "all facts",
    "words",
    "answer words",
    "correct",
    "correct by gain",
    "gain",
)
"""Names of measures; see `public.measures`, and `public.answers` and `public.likelihood` for the last three."""
ALL = "all"


def summarise(rows: Iterable[dict]) -> list[dict]:
    """Return means and differences.

    Parameters
    ----------
    rows : iterable of dict
        ``question, kind, system, budget`` and measures, as far as they apply.

    Returns
    -------
    list of dict
        ``measure, kind, system, budget, n, mean``, and for all systems but the baseline ``difference, low, high``: the
        mean over questions of the difference to the baseline within the same budget, with a 95 % bootstrap interval
        (10,000 resamples of questions, seeded). A difference has the questions that both systems have.
    """
    frame = pd.DataFrame(rows)
    kinds = list(dict.fromkeys(frame.kind))
    return [
        entry
        for measure in MEASURES
        if measure in frame
        for kind in [*kinds, *([ALL] if len(kinds) > 1 else [])]
        for budget in sorted(frame.budget.unique())
        for entry in _entries(frame, measure, kind, budget)
    ]


def _entries(frame, measure, kind, budget):
    part = frame[(frame.budget == budget) & (frame.kind.eq(kind) | (kind == ALL))]
    table = part.pivot(index="question", columns="system", values=measure)
    for system in dict.fromkeys(part.system):
        values = table[system].dropna()
        if not len(values):
            continue
        about = {"measure": measure, "kind": kind, "system": system, "budget": int(budget), "n": len(values)}
        yield about | {"mean": round(values.mean(), SHOWN_DIGITS)} | _difference(table, system)


def _difference(table, system):
    if system == BASELINE or BASELINE not in table:
        return {}
    differences = (table[system] - table[BASELINE]).dropna()
    if not len(differences):
        return {}
    interval = bootstrap_interval(differences, RESAMPLES, seed=SEED)
    names = ("difference", "low", "high")
    return {name: round(value, SHOWN_DIGITS) for name, value in zip(names, interval, strict=True)}


def sizes(rows: Iterable[dict]) -> list[dict]:
    """Return what contexts hold and cost: a row a system and budget.

    ``tokens`` and ``summary tokens`` are means, ``ms`` is the median of a question's milliseconds, its embedding
    not counted.
    """
    frame = pd.DataFrame(rows)
    groups = frame.groupby(["system", "budget"], sort=False)
    table = groups.agg({"tokens": "mean", "summary tokens": "mean", "ms": "median"}).round(1).reset_index()
    return table.to_dict("records")


def write_result(path: str | Path, about: dict, scores: list[dict], contexts: list[dict]) -> None:
    """Write a result as JSON: what it was made with, then the scores and the contexts, a line each."""
    head = json.dumps({"date": datetime.date.today().isoformat()} | about, indent=1, ensure_ascii=False)
    tables = "".join(
        f',\n "{name}": [\n  ' + ",\n  ".join(json.dumps(row) for row in table) + "\n ]"
        for name, table in (("scores", scores), ("contexts", contexts))
    )
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(head.removesuffix("\n}") + tables + "\n}\n", encoding="utf-8")
