"""Each plot returns a Figure that shows the numbers it was given."""

import numpy as np
import pandas as pd
import pytest
from langchain_core.documents import Document
from matplotlib.figure import Figure

from helpers import plots


def test_the_histogram_says_which_share_lies_beyond_the_limit():
    figure = plots.token_histogram([100, 300], limit=200)
    assert "25% of all tokens" in figure.axes[0].texts[0].get_text()


def test_the_site_map_has_a_dot_for_every_page():
    pages = [Document("x", metadata={"source": f"https://x/s/{i}", "depth": 1 + (i > 0)}) for i in range(5)]
    figure = plots.site_map(pages)
    assert sum(len(dots.get_offsets()) for dots in figure.axes[0].collections) == 5


def test_the_bic_curve_marks_the_lowest():
    figure = plots.bic_curve({1: 30.0, 2: 10.0, 3: 20.0})
    assert figure.axes[0].texts[0].get_text() == "k = 2"


def test_shares_of_soft_members_are_a_curve():
    line = plots.share_by_margin({0: 0.0, 0.1: 0.5}).axes[0].lines[0]
    assert line.get_xydata().tolist() == [[0, 0], [0.1, 0.5]]


def test_the_scatter_counts_soft_members():
    clusters = [np.array([0, 1]), np.array([1, 2])]
    figure = plots.cluster_scatter(np.zeros((3, 2)), clusters)
    assert figure.axes[0].get_legend().texts[0].get_text() == "in more than one cluster: 1"


def test_level_shares_add_up_to_one():
    results = pd.DataFrame({"system": ["R", "R"], "kind": ["a", "b"], "levels": [[0, 1], [1, 1, 2]]})
    bars = plots.level_shares(results, "R").axes[0].patches
    assert sum(bar.get_width() for bar in bars) == pytest.approx(2.0)


def test_intervals_show_every_mean():
    rows = [("a", "X", 3, 0.2, 0.1, 0.4), ("a", "Y", 3, 0.6, 0.5, 0.7)]
    table = pd.DataFrame(rows, columns=["kind", "system", "n", "mean", "low", "high"])
    figure = plots.score_intervals(table, "score")
    assert isinstance(figure, Figure)
    points = [line.get_ydata()[0] for line in figure.axes[0].lines if len(line.get_ydata()) == 1]
    assert {0.2, 0.6} <= set(points)


def test_the_best_structure_of_a_kind_is_bold():
    results = pd.DataFrame({"system": ["X", "Y"], "kind": ["a", "a"], "recall": [0.25, 0.75]})
    texts = plots.structure_table(results, "recall").axes[0].texts
    assert [(text.get_text(), text.get_weight()) for text in texts] == [("0.25", "normal"), ("0.75", "bold")]
