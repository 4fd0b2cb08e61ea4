"""The pictures of a tree show each of its nodes, and each passage of a summary."""

import pytest
from langchain_core.documents import Document

from helpers import tree_plots
from helpers.drilldown import drill_down
from helpers.nodes import Tree


def leaf(number, section="a"):
    about = {
        "id": f"l{number}",
        "level": 0,
        "source": f"https://x/{section}/p{number}",
        "sources": [f"https://x/{section}/p{number}"],
    }
    return Document(f"leaf {number}", metadata=about)


@pytest.fixture
def tree():
    leaves = [leaf(0), leaf(1), leaf(2, "b")]
    sources = [source for node in leaves for source in node.metadata["sources"]]
    root = Document(
        "root", metadata={"id": "r", "level": 1, "children": ["l0", "l1", "l2"], "sources": sources}
    )
    return Tree([*leaves, root])


def test_the_tree_has_a_row_for_every_level_and_a_line_for_every_child(tree):
    axes = tree_plots.tree_picture(tree).axes[0]
    assert [text.get_text() for text in axes.texts] == ["level 0: 3", "level 1: 1"]
    assert len(axes.lines) == 3


def test_the_drill_down_has_a_bar_for_every_page_and_every_passage(tree):
    for place, node in enumerate(tree.levels[0]):
        node.metadata |= {"start": 10 * place, "end": 10 * place + 5}
    axes = tree_plots.drill_down_picture(drill_down(tree, "r")).axes[0]
    assert len(axes.patches) == 3 + 3
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a/p0", "a/p1", "b/p2"]
