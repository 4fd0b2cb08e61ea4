"""Plots: one function a figure, each returns a matplotlib Figure."""

from collections import Counter
from collections.abc import Sequence
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
from langchain_core.documents import Document
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

PALETTE = (
    "#4878a8",
    "#d1823f",
    "#5d9c59",
    "#b8504f",
    "#8268a8",
    "#8a6d5c",
    "#c97ba9",
    "#7f7f7f",
    "#a8a13c",
    "#45a3b3",
)


def new_figure(width: float = 7.0, height: float = 3.6):
    """Return a figure and its axes, without frame on top and on the right."""
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def section_of(source: str) -> str:
    """Return the first folder of an address: the section of a site."""
    path = urlsplit(source).path.strip("/").split("/")
    return path[0] if path[0] else "(top)"


def section_colors(sources) -> dict[str, str]:
    """Return a colour for each section of some addresses."""
    return {
        name: PALETTE[i % len(PALETTE)]
        for i, name in enumerate(sorted({section_of(source) for source in sources}))
    }


def token_histogram(tokens: Sequence[int], limit: int, bins: int = 50) -> Figure:
    """Tokens per text, with the embedder's limit and the share of all tokens that lies beyond it."""
    tokens = np.asarray(tokens)
    beyond = np.clip(tokens - limit, 0, None).sum() / tokens.sum()
    figure, axes = new_figure()
    axes.hist(tokens, bins=bins, color=PALETTE[0])
    axes.axvline(limit, color=PALETTE[3], linestyle="--")
    axes.text(
        limit,
        axes.get_ylim()[1] * 0.95,
        f"  the embedder reads {limit}:\n  {beyond:.0%} of all tokens lie beyond",
        va="top",
    )
    axes.set(xlabel="tokens of a text", ylabel="texts")
    return figure


def site_map(pages: Sequence[Document]) -> Figure:
    """Pages as dots, one ring a depth of the crawl, coloured by section, sized by their text."""
    colors = section_colors(page.metadata["source"] for page in pages)
    figure, axes = new_figure(6.4, 5.2)
    for depth in sorted({page.metadata["depth"] for page in pages}):
        ring = sorted(
            (page for page in pages if page.metadata["depth"] == depth),
            key=lambda page: page.metadata["source"],
        )
        angles = 2 * np.pi * np.arange(len(ring)) / max(1, len(ring))
        axes.scatter(
            (depth - 1) * np.cos(angles),
            (depth - 1) * np.sin(angles),
            s=[len(page.page_content) / 20 for page in ring],
            c=[colors[section_of(page.metadata["source"])] for page in ring],
            alpha=0.85,
            edgecolor="white",
        )
        axes.add_patch(_ring(depth - 1))
    section_legend(axes, colors, title="section (dot size: length)")
    axes.set_aspect("equal")
    axes.set_axis_off()
    return figure


def _ring(radius):
    from matplotlib.patches import Circle

    return Circle((0, 0), radius, fill=False, color="#cccccc", linewidth=0.8, zorder=0)


def section_legend(axes, colors: dict[str, str], title: str | None = None) -> None:
    """Put a dot and a name for each section to the right of the axes."""
    dots = [
        Line2D([], [], marker="o", linestyle="", color=color, label=name) for name, color in colors.items()
    ]
    axes.legend(handles=dots, title=title, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))


def bic_curve(bic: dict[int, float]) -> Figure:
    """BIC by number of mixture components; the lowest is the one chosen."""
    best = min(bic, key=bic.get)
    figure, axes = new_figure()
    axes.plot(list(bic), list(bic.values()), marker="o", color=PALETTE[0])
    axes.plot(best, bic[best], marker="o", markersize=12, fillstyle="none", color=PALETTE[3])
    axes.annotate(f"k = {best}", (best, bic[best]), xytext=(0, 14), textcoords="offset points", ha="center")
    axes.set(xlabel="components k", ylabel="BIC (lower is better)")
    return figure


def cluster_scatter(points: np.ndarray, clusters: Sequence[np.ndarray]) -> Figure:
    """Points of shape (n, 2) coloured by their first cluster; those in several have a black ring."""
    parents = np.bincount(np.concatenate(clusters), minlength=len(points))
    first = np.zeros(len(points), dtype=int)
    for number, members in reversed(list(enumerate(clusters))):
        first[members] = number
    figure, axes = new_figure(6.4, 5.0)
    axes.scatter(*points.T, c=[PALETTE[number % len(PALETTE)] for number in first], s=26)
    soft = parents > 1
    axes.scatter(
        *points[soft].T,
        s=80,
        facecolor="none",
        edgecolor="black",
        label=f"in more than one cluster: {soft.sum()}",
    )
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(0, 1.1))
    axes.set(xticks=[], yticks=[])
    return figure


def share_by_margin(shares: dict[float, float]) -> Figure:
    """Share of leaves in two clusters, by the margin of soft membership."""
    figure, axes = new_figure()
    axes.plot(list(shares), list(shares.values()), marker="o", color=PALETTE[0])
    axes.yaxis.set_major_formatter("{x:.0%}")
    axes.set(xlabel="margin (cosine)", ylabel="leaves in two clusters", ylim=(0, 1))
    return figure


def level_shares(results: pd.DataFrame, system: str) -> Figure:
    """Share of a system's retrieved nodes that come from each level, per kind of question."""
    part = results[results.system == system]
    levels = sorted({level for row in part.levels for level in row})
    kinds = list(dict.fromkeys(part.kind))
    counts = [Counter(level for row in part[part.kind == kind].levels for level in row) for kind in kinds]
    figure, axes = new_figure()
    left = np.zeros(len(kinds))
    for level in levels:
        share = np.array([count[level] / count.total() for count in counts])
        axes.barh(kinds, share, left=left, color=PALETTE[level % len(PALETTE)], label=f"level {level}")
        left += share
    axes.invert_yaxis()
    axes.set(xlabel=f"share of the nodes that {system} retrieves", xlim=(0, 1))
    axes.legend(frameon=False, ncols=len(levels), loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure


def score_intervals(table: pd.DataFrame, measure: str) -> Figure:
    """Means with 95 % intervals per kind of question and system, from `tables.score_table`."""
    kinds, systems = list(dict.fromkeys(table.kind)), list(dict.fromkeys(table.system))
    figure, axes = new_figure()
    for offset, system in enumerate(systems):
        rows = table[table.system == system].set_index("kind").loc[[k for k in kinds]]
        at = np.arange(len(kinds)) + (offset - (len(systems) - 1) / 2) * 0.22
        error = np.abs(rows[["low", "high"]].to_numpy().T - rows["mean"].to_numpy())
        axes.errorbar(at, rows["mean"], yerr=error, fmt="o", capsize=4, color=PALETTE[offset], label=system)
    counts = table.drop_duplicates("kind").set_index("kind").n
    axes.set_xticks(range(len(kinds)), [f"{kind}\nn = {counts[kind]}" for kind in kinds])
    axes.set(ylabel=measure, ylim=(-0.03, 1.03))
    axes.legend(frameon=False, ncols=len(systems), loc="lower center", bbox_to_anchor=(0.5, 1.0))
    return figure


def structure_table(results: pd.DataFrame, measure: str) -> Figure:
    """Mean of a measure per structure and kind of question, the best of each kind in bold."""
    means = results.pivot_table(index="system", columns="kind", values=measure, sort=False)
    figure, axes = new_figure(6.4, 0.5 + 0.42 * len(means))
    axes.imshow(means.to_numpy(), cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for row, system in enumerate(means.index):
        for column, kind in enumerate(means.columns):
            value = means.loc[system, kind]
            weight = "bold" if value == means[kind].max() else "normal"
            color = "white" if value > 0.6 else "black"
            axes.text(column, row, f"{value:.2f}", ha="center", va="center", color=color, weight=weight)
    axes.set_xticks(range(len(means.columns)), means.columns)
    axes.set_yticks(range(len(means)), means.index)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    return figure
