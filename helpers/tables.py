"""Tables: means and paired differences with their intervals, per kind of question."""

import pandas as pd

from helpers.evaluation import bootstrap_interval


def score_table(results: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return mean and 95 % interval of a measure per kind of question and system, with n."""
    rows = []
    for kind in [*dict.fromkeys(results.kind), "all"]:
        part = results if kind == "all" else results[results.kind == kind]
        for system in results.system.unique():
            values = part[part.system == system][measure].dropna()
            if len(values):
                mean, low, high = bootstrap_interval(values)
                about = {"kind": kind, "system": system, "n": len(values)}
                rows.append(about | {"mean": mean, "low": low, "high": high})
    return pd.DataFrame(rows)


def difference_table(results: pd.DataFrame, measure: str, system: str, baseline: str) -> pd.DataFrame:
    """Return the paired difference of two systems, question by question, per kind, with a 95 % interval."""
    pivot = results.pivot(index=["kind", "question"], columns="system", values=measure).dropna()
    difference = (pivot[system] - pivot[baseline]).rename("difference").reset_index()
    rows = []
    for kind in [*(kind for kind in dict.fromkeys(results.kind) if kind in set(difference.kind)), "all"]:
        values = difference.difference if kind == "all" else difference[difference.kind == kind].difference
        mean, low, high = bootstrap_interval(values)
        rows.append({"kind": kind, "n": len(values), "difference": mean, "low": low, "high": high})
    return pd.DataFrame(rows)


def overall_difference(results: pd.DataFrame, measure: str, system: str, baseline: str) -> dict:
    """Return n, the mean paired difference over all questions, and its 95 % interval."""
    row = difference_table(results, measure, system, baseline).set_index("kind").loc["all"]
    return {"n": int(row.n)} | {name: round(float(row[name]), 2) for name in ("difference", "low", "high")}


def interval_table(results: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return "mean (low to high)" with 95 % intervals: a row a system, a column a kind of question with its n."""
    table = score_table(results, measure)
    numbers = zip(table["mean"], table.low, table.high, strict=True)
    table["interval"] = [f"{mean:.2f} ({low:.2f} to {high:.2f})" for mean, low, high in numbers]
    table["kind"] = [f"{kind}, n = {n}" for kind, n in zip(table.kind, table.n, strict=True)]
    wide = table.pivot(index="system", columns="kind", values="interval")
    return wide.loc[table.system.unique(), table.kind.unique()]
