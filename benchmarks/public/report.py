"""Report: a result as a table and a picture in the README, between markers, from its JSON alone."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from helpers.plots import PALETTE
from public.corpora import CLUSTERED
from public.results import ALL
from public.systems import BASELINE

# Measure -> heading, and whether it is shown for each kind of question apart.
HEADLINES = {
    "literal": ("sections found", True),
    "words": ("common words", True),
    "answer words": ("common words of the answer", False),
    "facts": ("supporting facts", False),
    "correct": ("right option", False),
    "correct by gain": ("right option by gain", False),
    "gain": ("gain, nats a token", False),
}

# Rows of the README's tables; the pictures and the JSON have every system.
SHOWN = (
    "random leaves",
    "random gists",
    "question unseen",
    BASELINE,
    "leaf RAG, coverage",
    "fusion",
    "parent and child",
    "collapsed tree",
    "traversal",
    "tree + fusion",
    "tree, by scope",
    "gists, by scope",
    "tree with gists, by scope",
    "graph",
)

VARIED_SYSTEMS = (BASELINE, "collapsed tree", "tree, by scope")


class Result(NamedTuple):
    """A file of benchmarks/results: what it was made with, and its scores as a table."""

    path: Path
    about: dict
    scores: pd.DataFrame

    @property
    def asked(self) -> tuple[str, str]:
        """The set and tier: which questions were asked."""
        return self.about["set"], self.about["tier"]


def load_result(path: str | Path) -> Result:
    """Read a result."""
    about = json.loads(Path(path).read_text(encoding="utf-8"))
    return Result(Path(path), about, pd.DataFrame(about.pop("scores")))


def headlines(scores: pd.DataFrame) -> list[tuple[str, str, str, pd.DataFrame]]:
    """Return measure, kind, heading with n, and scores, for each column of the table and panel of the picture."""
    found = []
    for measure, (heading, is_apart) in HEADLINES.items():
        part = scores[scores.measure == measure]
        kinds = list(dict.fromkeys(part.kind))
        for kind in kinds:
            if len(kinds) == 1 or (kind == ALL) != is_apart:
                column = part[part.kind == kind]
                found.append((measure, kind, f"{heading}, {kind} (n = {column.n.max()})", column))
    return found


def markdown_table(scores: pd.DataFrame) -> str:
    """Return a row for each system of `SHOWN`, a column a headline.

    The means at each budget, in bold if surely above the baseline's.
    """
    columns = headlines(scores)
    lines = ["| system | " + " | ".join(heading for *_, heading, _ in columns) + " |"]
    lines.append("|---" * (len(columns) + 1) + "|")
    for system in SHOWN:
        if system not in set(scores.system):
            continue
        cells = [_cell(column[column.system == system].sort_values("budget")) for *_, column in columns]
        lines.append(f"| {system} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(rows):
    is_above = rows.low.gt(0) if "low" in rows else [False] * len(rows)
    means = zip(rows["mean"], is_above, strict=True)
    return " / ".join(f"**{mean:.2f}**" if above else f"{mean:.2f}" for mean, above in means)


def difference_figure(scores: pd.DataFrame) -> Figure:
    """Differences to the baseline with their intervals: a panel a headline, a row a system, a colour a budget.

    Readers are slow and see few systems: a headline that most systems lack is in the table alone.
    """
    systems = [system for system in dict.fromkeys(scores.system) if system != BASELINE]
    columns = [
        found for found in headlines(scores) if 2 * len(set(found[-1].system) & set(systems)) > len(systems)
    ]
    figure = Figure(figsize=(2.2 + 2.6 * len(columns), 0.9 + 0.28 * len(systems)), layout="constrained")
    panels = figure.subplots(1, len(columns), sharey=True, squeeze=False)[0]
    for axes, (*_, heading, column) in zip(panels, columns, strict=True):
        _draw_differences(axes, column, systems)
        axes.set_title(heading, fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_yticks(range(len(systems)), systems, fontsize=8)
    panels[0].invert_yaxis()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False, fontsize=8)
    figure.supxlabel(f"difference to {BASELINE}, 95 % interval", fontsize=8)
    return figure


def _draw_differences(axes, column, systems):
    axes.axvline(0, color="#999999", linewidth=0.8)
    budgets = sorted(column.budget.unique())
    for number, budget in enumerate(budgets):
        rows = column[(column.budget == budget) & column.system.isin(systems)].dropna(subset="difference")
        at = [systems.index(s) + (number - (len(budgets) - 1) / 2) * 0.22 for s in rows.system]
        error = [rows.difference - rows.low, rows.high - rows.difference]
        label, color = f"{budget:,} tokens", PALETTE[number % len(PALETTE)]
        axes.errorbar(rows.difference, at, xerr=error, fmt="o", markersize=3, color=color, label=label)
    axes.tick_params(labelsize=8)


def section(result: Result, picture: str) -> str:
    """Return the README's part on one result."""
    about, scores = result.about, result.scores
    budgets = " / ".join(f"{budget:,}" for budget in sorted(scores.budget.unique()))
    questions = f"{sum(about['questions'].values()):,} questions over {about['documents']} documents"
    heading = f"`{about['set']}`, {about['tier']}: {questions}, {budgets} tokens of context."
    return "\n\n".join([heading, markdown_table(scores), f"![differences to {BASELINE}]({picture})"])


def between_markers(text: str, name: str, content: str) -> str:
    """Return a text with other content between its markers ``<!-- name:begin -->`` and ``<!-- name:end -->``.

    Raises
    ------
    ValueError
        If the markers are missing.
    """
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    pattern = re.compile(f"{re.escape(begin)}.*{re.escape(end)}", re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"no markers {begin} and {end} to write between")
    return pattern.sub(lambda _: f"{begin}\n{content}\n{end}", text)


def variations_table(results: Sequence[Result]) -> str:
    """Return a row for each result on common words: what was changed, what its trees cost, and means by system.

    Raises
    ------
    ValueError
        If the results are on different questions.
    """
    if len({result.asked for result in results}) > 1:
        raise ValueError("variations of different sets or tiers are no table: keep one in benchmarks/results")
    lines = [
        "| changed | calls | tokens read | " + " | ".join(VARIED_SYSTEMS) + " |",
        "|---" * (len(VARIED_SYSTEMS) + 3) + "|",
    ]
    for path, about, scores in results:
        if CLUSTERED not in about["trees"]:
            raise ValueError(
                f"{path.name} has no tree over clusters to vary: keep it out of benchmarks/results"
            )
        cost = about["trees"][CLUSTERED]
        changed = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in about["changed"].items())
        words = scores[(scores.measure == "words") & (scores.kind == ALL)]
        cells = [_cell(words[words.system == system].sort_values("budget")) for system in VARIED_SYSTEMS]
        named = [changed or "nothing", str(cost["calls"]), f"{cost['tokens read']:,}"]
        lines.append("| " + " | ".join([*named, *cells]) + " |")
    return "\n".join(lines)


def write_readme(readme: Path, results: Sequence[Path], variations: Sequence[Path]) -> None:
    """Write the pictures beside the results, and tables and links between the README's markers.

    Above the variations stands the result on the same questions of which nothing was changed.
    """
    measured, varied = ([load_result(path) for path in paths] for paths in (results, variations))
    parts = []
    for result in measured:
        picture = result.path.with_suffix(".png")
        difference_figure(result.scores).savefig(picture, dpi=110)
        parts.append(section(result, picture.relative_to(readme.parent).as_posix()))
    text = between_markers(readme.read_text(encoding="utf-8"), "quality", "\n\n".join(parts))
    asked = {result.asked for result in varied}
    unchanged = [result for result in measured if result.asked in asked and not result.about.get("changed")]
    text = between_markers(text, "variations", variations_table([*unchanged, *varied]))
    readme.write_text(text, encoding="utf-8")
