"""The tree as a data structure. "Bug n" is the number in the bank of faults reported elsewhere."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from helpers.nodes import Tree, gist_node, leaf_node, summary_node


def leaf(name, source):
    metadata = {"id": name, "level": 0, "source": source, "sources": [source]}
    return Document(f"text of {name}", id=name, metadata=metadata)


def summary(name, level, children, sources):
    metadata = {"id": name, "level": level, "children": children, "sources": sources}
    return Document(f"text of {name}", id=name, metadata=metadata)


def ids(documents):
    return [document.metadata["id"] for document in documents]


@pytest.fixture
def diamond():
    """Two pages, three leaves; the middle one went into both summaries.

        root
       /    \\
      s1     s2
     /  \\   /  \\
    a     b     c
    """
    return Tree(
        [
            leaf("a", "page1"),
            leaf("b", "page1"),
            leaf("c", "page2"),
            summary("s1", 1, ["a", "b"], ["page1"]),
            summary("s2", 1, ["b", "c"], ["page1", "page2"]),
            summary("root", 2, ["s1", "s2"], ["page1", "page2"]),
        ]
    )


def test_levels_and_roots(diamond):
    assert [ids(level) for level in diamond.levels] == [["a", "b", "c"], ["s1", "s2"], ["root"]]
    assert ids(diamond.roots) == ["root"]
    assert len(diamond) == 6
    assert repr(diamond) == "Tree(3 -> 2 -> 1)"


def test_a_leaf_in_two_clusters_is_stored_once_with_both_parents(diamond):  # bug 12
    assert list(diamond.nodes).count("b") == 1
    assert ids(diamond.parents("b")) == ["s1", "s2"]
    assert ids(diamond.parents("a")) == ["s1"]
    assert diamond.parents("root") == []


def test_the_root_of_two_pages_has_both_sources_and_the_exact_leaves(diamond):  # bug 11
    assert diamond.sources("root") == ["page1", "page2"]
    assert diamond.sources("s1") == ["page1"]
    assert ids(diamond.leaves("root")) == ["a", "b", "c"]
    assert ids(diamond.leaves("s2")) == ["b", "c"]


def test_drilling_down(diamond):
    assert ids(diamond.children("root")) == ["s1", "s2"]
    assert ids(diamond.children("s2")) == ["b", "c"]
    assert ids(diamond.descendants("root")) == ["root", "s1", "a", "b", "s2", "c"]


def test_climbing_up(diamond):
    assert ids(diamond.ancestors("b")) == ["s1", "s2", "root"]
    assert ids(diamond.ancestors("c")) == ["s2", "root"]
    assert diamond.ancestors("root") == []


def test_gists_stand_beside_levels_parents_and_roots(diamond, tmp_path):
    for name in ("c", "a"):
        diamond.put(gist_node(f"gist of {name}", diamond.nodes[name]))
    assert [gist.page_content for gist in diamond.gists] == ["gist of a", "gist of c"]
    assert repr(diamond) == "Tree(3 -> 2 -> 1, 2 gists)" and len(diamond) == 8
    assert ids(diamond.roots) == ["root"] and ids(diamond.summaries) == ["s1", "s2", "root"]
    gist = diamond.gists[1].metadata
    assert ids(diamond.parents("c")) == ["s2"] and gist["level"] == 1 and gist["sources"] == ["page2"]
    assert ids(diamond.leaves(gist["id"])) == ids(diamond.children(gist["id"])) == ["c"]
    diamond.save(tmp_path / "tree.jsonl")
    assert Tree.load(tmp_path / "tree.jsonl").gists == diamond.gists


def test_a_leaf_has_one_gist_and_nothing_stands_on_it(diamond):
    gist = gist_node("in short", diamond.nodes["a"])
    diamond.put(gist)
    with pytest.raises(ValueError, match="a second gist of the leaf a"):
        diamond.put(gist_node("shorter", diamond.nodes["a"]))
    with pytest.raises(ValueError, match="node s3 is made of a gist"):
        diamond.put(summary("s3", 2, ["s1", gist.id], ["page1"]))
    assert len(diamond) == 7


def test_a_leaf_is_its_own_leaf_and_has_no_children(diamond):
    assert ids(diamond.leaves("c")) == ["c"]
    assert diamond.sources("c") == ["page2"]
    assert diamond.children("c") == []


@pytest.mark.parametrize("question", ["children", "parents", "leaves", "sources", "ancestors", "descendants"])
def test_an_unknown_id_is_named(diamond, question):
    with pytest.raises(KeyError, match="no node 'x' in the tree"):
        getattr(diamond, question)("x")


def test_an_id_is_taken_once(diamond):
    with pytest.raises(ValueError, match="the same id twice: a"):
        diamond.put(leaf("a", "page3"))
    assert diamond.sources("a") == ["page1"]


def test_children_come_before_their_parent(diamond):
    with pytest.raises(ValueError, match="node s3 has children that are not in the tree: x, y"):
        diamond.put(summary("s3", 1, ["a", "x", "y"], []))
    assert "s3" not in diamond.nodes
    assert ids(diamond.parents("a")) == ["s1"], "the refused node must leave nothing behind"


def test_a_tree_without_nodes():
    tree = Tree([])
    assert tree.levels == tree.roots == []


def test_nodes_that_are_no_tree_replace_nothing(diamond):
    before = dict(diamond.nodes)
    with pytest.raises(ValueError, match="node s3 has children that are not in the tree: x"):
        diamond.replace([leaf("z", "page3"), summary("s3", 1, ["x"], [])])
    assert diamond.nodes == before
    diamond.replace([leaf("z", "page3"), summary("s3", 1, ["z"], ["page3"])])
    assert list(diamond.nodes) == ["z", "s3"]
    assert ids(diamond.parents("z")) == ["s3"]


@pytest.mark.parametrize("change", [lambda tree: tree.add([]), lambda tree: tree.remove("page1")])
def test_a_tree_without_updater_says_how_to_get_one(diamond, change):
    with pytest.raises(
        ValueError, match="no updater.*set tree.updater = TreeUpdater.*or build it with build_tree"
    ):
        change(diamond)


def test_a_leaf_becomes_a_node_by_its_metadata_alone():
    page_leaf = Document("text", id="a", metadata={"id": "a", "source": "page1", "title": "One"})
    node = leaf_node(page_leaf)
    assert node.metadata == {"id": "a", "source": "page1", "title": "One", "level": 0, "sources": ["page1"]}
    assert page_leaf.metadata == {"id": "a", "source": "page1", "title": "One"}
    assert leaf_node(Document("text", metadata={"id": "b"})).metadata["sources"] == [""]


def test_a_summary_is_known_by_level_children_and_text(diamond):
    group = [diamond.nodes["b"], diamond.nodes["c"]]
    node = summary_node("text", 1, group)
    about = {"id": node.id, "level": 1, "children": ["b", "c"], "sources": ["page1", "page2"]}
    assert node.metadata == about
    others = [
        summary_node("text", 2, group),
        summary_node("text", 1, group[:1]),
        summary_node("other", 1, group),
    ]
    assert len({node.id, *ids(others)}) == 4
    assert summary_node("text", 1, group) == node


# The file


def test_what_is_saved_is_loaded(diamond, tmp_path):
    diamond.put(
        Document('Zeile\n\u2028 漢字 \U0001f600 "quoted"', id="d", metadata=leaf("d", "page2").metadata)
    )
    diamond.save(tmp_path / "new folder" / "tree.jsonl")
    loaded = Tree.load(tmp_path / "new folder" / "tree.jsonl")
    assert loaded.nodes == diamond.nodes
    assert list(loaded.nodes) == list(diamond.nodes)
    assert ids(loaded.parents("b")) == ["s1", "s2"]


def test_the_file_is_json_lines(diamond, tmp_path):
    diamond.save(tmp_path / "tree.jsonl")
    header, *rows = map(json.loads, (tmp_path / "tree.jsonl").read_text().splitlines())
    assert header == {"format": "raptor-tree 1", "nodes": 6}
    assert rows[4] == {"text": "text of s2", "metadata": diamond.nodes["s2"].metadata}
    assert [row["metadata"]["id"] for row in rows] == ["a", "b", "c", "s1", "s2", "root"]


def test_a_file_cut_off_anywhere_is_refused(diamond, tmp_path):
    diamond.put(Document("漢字", id="d", metadata=leaf("d", "page2").metadata))
    whole, half = tmp_path / "whole.jsonl", tmp_path / "half.jsonl"
    diamond.save(whole)
    data = whole.read_bytes()
    assert len(data) > 500
    for length in range(len(data) - 1):  # without its last line break alone, it is whole
        half.write_bytes(data[:length])
        with pytest.raises(ValueError, match="half.jsonl is not a whole tree .*: build it again"):
            Tree.load(half)


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[1]",
        "not json",
        '{"format": "raptor-tree 2", "nodes": 0}',
        '{"format": "raptor-tree 1", "nodes": 1}\n{"text": "no metadata"}',
        '{"format": "raptor-tree 1", "nodes": 1}\n{"text": 5, "metadata": {"id": "a", "level": 0}}',
        '{"format": "raptor-tree 1", "nodes": 1}\n{"text": "", "metadata": {"id": "a", "children": ["b"]}}',
    ],
)
def test_a_file_of_another_kind_is_refused(text, tmp_path):
    (tmp_path / "other.jsonl").write_text(text)
    with pytest.raises(ValueError, match="other.jsonl is not a whole tree"):
        Tree.load(tmp_path / "other.jsonl")


def test_a_missing_file_is_called_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        Tree.load(tmp_path / "tree.jsonl")


def test_a_save_that_fails_leaves_the_old_file(diamond, tmp_path):
    file = tmp_path / "tree.jsonl"
    diamond.save(file)
    before = file.read_bytes()
    diamond.put(Document("", id="z", metadata=leaf("z", "page1").metadata | {"date": object()}))
    with pytest.raises(TypeError):
        diamond.save(file)
    assert file.read_bytes() == before


# Any tree


@st.composite
def trees(draw):
    """Leaves of up to three pages, then levels whose nodes take any children from the level below."""
    level = [leaf(f"leaf{i}", draw(st.sampled_from("pqr"))) for i in range(draw(st.integers(1, 6)))]
    tree = Tree(level)
    for number in range(1, draw(st.integers(1, 4))):
        below = [node.metadata["id"] for node in level]
        choices = draw(
            st.lists(st.lists(st.sampled_from(below), min_size=1, unique=True), min_size=1, max_size=4)
        )
        level = [summary(f"n{number}.{i}", number, children, []) for i, children in enumerate(choices)]
        for node in level:
            tree.put(node)
    return tree


def leaves_by_recursion(tree, node_id):
    children = tree.nodes[node_id].metadata.get("children")
    below = (
        [leaf for child in children for leaf in leaves_by_recursion(tree, child)] if children else [node_id]
    )
    return list(dict.fromkeys(below))


@settings(deadline=None, derandomize=True)
@given(trees())
def test_children_parents_leaves_and_sources_agree_in_any_tree(tree):
    for node_id in tree.nodes:
        assert all(node_id in ids(tree.children(parent)) for parent in ids(tree.parents(node_id)))
        assert all(node_id in ids(tree.parents(child)) for child in ids(tree.children(node_id)))
        assert ids(tree.leaves(node_id)) == leaves_by_recursion(tree, node_id)
        assert tree.sources(node_id) == list(
            dict.fromkeys(x.metadata["source"] for x in tree.leaves(node_id))
        )
        assert set(ids(tree.ancestors(node_id))) == {
            other for other in tree.nodes if other != node_id and node_id in ids(tree.descendants(other))
        }
        levels = [node.metadata["level"] for node in tree.ancestors(node_id)]
        assert levels == sorted(levels)
    assert ids(tree.roots) == [node_id for node_id in tree.nodes if not tree.ancestors(node_id)]
