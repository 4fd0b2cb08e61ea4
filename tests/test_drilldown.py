"""From a summary down to characters on a page, and the names that it has from nowhere."""

import pytest
from langchain_core.documents import Document

from helpers.drilldown import drill_down, unsupported_names, unsupported_summaries
from helpers.nodes import Tree, gist_node


@pytest.fixture
def tree():
    texts = ["Call save_pretrained with max_shard_size 50GB.", "The Trainer needs 8 GB and GPUs."]
    leaves = [
        Document(
            text,
            metadata={"id": f"l{i}", "level": 0, "source": f"p{1 - i}", "start": 5, "end": 50, "sources": []},
        )
        for i, text in enumerate(texts)
    ]
    summary = Document(
        "save_pretrained and load_pretrained split at 50GB; AutoTrainer takes 16 GB of 8. The Trainer helps.",
        metadata={"id": "s", "level": 1, "children": ["l0", "l1"], "sources": []},
    )
    right = Document(
        "Use save_pretrained.", metadata={"id": "r", "level": 1, "children": ["l0"], "sources": []}
    )
    return Tree([*leaves, summary, right])


def test_one_call_gives_children_addresses_and_character_ranges(tree):
    found = drill_down(tree, "s")
    assert [child.metadata["id"] for child in found.children] == ["l0", "l1"]
    assert [(p.source, p.start, p.end) for p in found.passages] == [("p0", 5, 50), ("p1", 5, 50)]
    assert found.sources == ["p0", "p1"]


def test_names_and_numbers_that_no_leaf_has_are_listed_in_order(tree):
    assert unsupported_names(tree, "s") == ["load_pretrained", "AutoTrainer", "16"]
    assert drill_down(tree, "s").unsupported == ["load_pretrained", "AutoTrainer", "16"]


def test_a_part_of_a_longer_name_is_no_support(tree):
    tree.nodes["r"].page_content = "Use pre and max_shard."
    assert unsupported_names(tree, "r") == ["max_shard"]


def test_the_numbers_of_a_list_are_not_figures(tree):
    tree.nodes["r"].page_content = "1. save_pretrained\n2. after 7 days"
    assert unsupported_names(tree, "r") == ["7"]


def test_only_summaries_with_unsupported_names_are_reported(tree):
    assert list(unsupported_summaries(tree)) == ["s"]


def test_gists_are_checked_as_well(tree):
    gist = gist_node("AutoTrainer needs 8 GB.", tree.nodes["l1"])
    tree.put(gist)
    assert unsupported_summaries(tree)[gist.id] == ["AutoTrainer"]
