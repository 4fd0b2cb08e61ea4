"""Growing trees: one subtree a page. What all trees have in common is tested in test_tree.py."""

import pytest
from fakes import CountingWriter, OnePointEmbedder, TopicEmbedder, make_leaves
from langchain_core.runnables import Runnable
from test_tree import assert_linked, ids

from helpers.tree import build_tree

TWO_MANUALS = ["apples of the first", "boats of the first"] * 4 + [
    "apples of the second",
    "boats of the second",
] * 4
PAIRS = {"prompt_tokens": len, "max_prompt_tokens": 2}


@pytest.mark.parametrize(
    "max_levels, sizes, levels_of_a_page",
    [(1, [16, 8, 4], 1), (2, [16, 8, 4, 2, 1], 2), (9, [16, 8, 4, 2, 1], 3)],
)
def test_two_manuals_of_the_same_words_are_mixed_only_above_their_roots(max_levels, sizes, levels_of_a_page):
    """Bug 31."""
    leaves = make_leaves(TWO_MANUALS, pages=2)
    options = {"per_source": True, "max_levels": max_levels}
    tree = build_tree(leaves, OnePointEmbedder(), CountingWriter(), **PAIRS, **options)
    assert_linked(tree, leaves)
    assert [len(level) for level in tree.levels] == sizes
    for level in tree.levels[1 : levels_of_a_page + 1]:
        assert all(len(node.metadata["sources"]) == 1 for node in level)


def test_without_subtrees_the_same_manuals_are_mixed():
    tree = build_tree(make_leaves(TWO_MANUALS, pages=2), TopicEmbedder(), CountingWriter())
    assert any(len(node.metadata["sources"]) == 2 for node in tree.levels[1])


def test_pages_of_one_leaf_need_no_summary_of_their_own():
    writer = CountingWriter()
    leaves = make_leaves([f"page {i}" for i in range(4)], pages=4)
    tree = build_tree(leaves, TopicEmbedder(), writer, per_source=True)
    assert [len(level) for level in tree.levels] == [4, 1]
    assert len(writer.calls) == 1


@pytest.mark.parametrize("n", [1, 2, 8])
def test_a_single_page_has_no_top(n):
    leaves = make_leaves(["apples"] * n)
    trees = [
        build_tree(leaves, OnePointEmbedder(), CountingWriter(), per_source=flag) for flag in (True, False)
    ]
    assert trees[0].nodes == trees[1].nodes


def test_pages_of_different_height_meet_in_one_top():
    texts = ["apples 0"] + [f"boats {i}" for i in range(2)] + [f"clocks {i}" for i in range(8)]
    leaves = make_leaves(texts)
    for leaf, page in zip(leaves, "abbcccccccc", strict=True):
        leaf.metadata["source"] = page
    tree = build_tree(leaves, OnePointEmbedder(), CountingWriter(), **PAIRS, per_source=True)
    assert_linked(tree, leaves)
    [b_root] = [node for node in tree.levels[1] if node.metadata["sources"] == ["b"]]
    [c_root] = tree.levels[3]
    [top] = tree.roots
    assert top.metadata["level"] == 4
    assert sorted(top.metadata["children"]) == sorted(["leaf0", b_root.id, c_root.id])
    assert top.metadata["sources"] == ["a", "b", "c"]


def test_the_clusters_of_all_pages_reach_the_writer_in_one_batch():
    sizes = []

    class BatchWriter(CountingWriter, Runnable):
        batch_size = 100

        def invoke(self, input, config=None, **kwargs):
            raise AssertionError("clusters must come in batches")

        def batch(self, inputs, config=None, **kwargs):
            sizes.append(len(inputs))
            return [self(texts) for texts in inputs]

    leaves = make_leaves([f"boats {i}" for i in range(30)], pages=10)
    build_tree(leaves, TopicEmbedder(), BatchWriter(), per_source=True)
    assert sizes == [10, 1]


def test_a_journal_makes_a_tree_of_pages_free(tmp_path):
    leaves, journal = make_leaves(TWO_MANUALS, pages=2), tmp_path / "journal.jsonl"
    first = build_tree(leaves, TopicEmbedder(), CountingWriter(), journal, per_source=True)
    writer, embedder = CountingWriter(), TopicEmbedder()
    assert build_tree(leaves, embedder, writer, journal, per_source=True).nodes == first.nodes
    assert writer.calls == embedder.texts == []
    assert ids(first.levels[0]) == ids(leaves)
