"""Changing a tree. "Bug n" is the number in the bank of faults reported elsewhere."""

import random
from unittest import mock

import numpy as np
import pytest
from fakes import CountingGists, CountingWriter, TopicEmbedder, make_leaves
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from test_tree import assert_linked, characters, ids

from helpers import clustering, growth
from helpers.index import VectorIndex
from helpers.nodes import Tree
from helpers.recording import Journal
from helpers.retrievers import CollapsedTreeRetriever
from helpers.tree import SummaryError, build_tree
from helpers.updates import TreeUpdater, follow
from helpers.writing import ClusterWriter


class ArcEmbedder(Embeddings):
    """Texts that begin with a number, from 0 to 1000, lie on a quarter of a circle in that order."""

    def __init__(self):
        self.texts = []

    def embed_documents(self, texts):
        self.texts += texts
        angles = [float(text.split()[0]) / 1000 * np.pi / 2 for text in texts]
        return [[np.cos(angle), np.sin(angle)] for angle in angles]

    def embed_query(self, text):
        return self.embed_documents([text])[0]


@pytest.fixture
def eights(monkeypatch):
    """Clusters are runs of about eight neighbours on the arc."""

    def cluster(vectors, **options):
        order = np.argsort(np.asarray(vectors)[:, 1], kind="stable")
        return [np.sort(run) for run in np.array_split(order, max(1, round(len(order) / 8)))]

    monkeypatch.setattr(growth, "cluster", cluster)


def arc_leaves(numbers, source):
    return [
        Document(f"{number} text", id=f"leaf{number}", metadata={"id": f"leaf{number}", "source": source})
        for number in numbers
    ]


def join(texts):
    """A writer whose summaries hold, literally, all that they were made from."""
    return " + ".join(texts)


def texts(documents):
    return [document.page_content for document in documents]


# Removing


def test_of_two_pages_one_is_removed_with_all_that_was_made_from_it():  # bug 29
    pages = ["Paris is large", "Paris is old", "Oslo is cold", "Oslo is dear"]
    embedder = TopicEmbedder()
    tree = build_tree(make_leaves(pages, pages=2), embedder, join)
    index = VectorIndex.build(list(tree.nodes.values()), embedder)
    retriever = CollapsedTreeRetriever(index=index, reading="plain", k=9)
    assert len(retriever.invoke("Oslo weather")) == 5

    tree.remove("https://x.org/1")
    follow(index, tree)
    left = ["Paris is large", "Paris is old", "Paris is large + Paris is old"]
    assert texts(tree.nodes.values()) == left
    assert sorted(texts(retriever.invoke("Oslo weather"))) == sorted(left)
    assert tree.roots[0].metadata["sources"] == ["https://x.org/0"]
    assert tree.nodes == build_tree(make_leaves(pages, pages=2)[:2], embedder, join).nodes


def test_every_ancestor_of_a_removed_leaf_is_written_again_and_no_other_node(eights):
    leaves = (
        arc_leaves(range(100, 124), "page")
        + arc_leaves([900.5], "gone")
        + arc_leaves(range(901, 908), "page")
    )
    writer = CountingWriter()
    tree = build_tree(leaves, ArcEmbedder(), writer)
    assert [len(level) for level in tree.levels] == [32, 4, 1]
    before, paid = dict(tree.nodes), len(writer.calls)
    tree.remove("gone")
    assert len(writer.calls) - paid == 2
    assert writer.calls[-2] == [f"{number} text" for number in range(901, 908)]
    assert [node_id for node_id in before if node_id not in tree.nodes] == [
        "leaf900.5",
        list(before)[35],
        list(before)[36],
    ]
    assert_linked(tree, [leaf for leaf in leaves if leaf.metadata["source"] == "page"])


def test_the_last_leaf_of_a_cluster_moves_to_the_nearest(eights):
    leaves = [*arc_leaves(range(8), "a"), *arc_leaves([100], "b"), *arc_leaves(range(101, 108), "gone")]
    leaves += arc_leaves(range(900, 908), "c")
    tree = build_tree(leaves, ArcEmbedder(), CountingWriter())
    tree.remove("gone")
    assert [node.metadata["children"] for node in tree.levels[1]] == [
        [f"leaf{number}" for number in [*range(8), 100]],
        [f"leaf{number}" for number in range(900, 908)],
    ]
    assert len(tree.roots) == 1


def test_what_is_not_there_cannot_be_removed():
    tree = build_tree(make_leaves(["a", "b"]), TopicEmbedder(), CountingWriter())
    with pytest.raises(KeyError, match="no leaf of 'https://x.org/9' in the tree"):
        tree.remove("https://x.org/9")
    with pytest.raises(ValueError, match="https://x.org/0 is the last page of the tree"):
        tree.remove("https://x.org/0")
    assert len(tree) == 3


# Adding


@pytest.mark.parametrize(
    "numbers",
    [
        [300 + i / 100 for i in range(1, 11)],  # a page on one topic
        [50 + 99.5 * i for i in range(10)],  # one that touches on ten
    ],
)
def test_one_percent_more_leaves_cost_at_most_five_percent_of_the_calls(numbers, eights):
    writer, embedder = CountingWriter(), ArcEmbedder()
    leaves = arc_leaves(range(1000), "page")
    tree = build_tree(leaves, embedder, writer)
    assert [len(level) for level in tree.levels] == [1000, 125, 16, 2]
    assert len(writer.calls) == 125 + 16 + 2
    embedder.texts.clear()
    fresh = arc_leaves(numbers, "new")
    tree.add(fresh)
    assert len(writer.calls) - 143 <= 0.05 * 143
    assert len(embedder.texts) == 125 + 2 * 10, "the clusters' summaries and the new leaves: no old leaf"
    assert_linked(tree, leaves + fresh)
    assert len(tree.roots) == 2


def test_two_new_leaves_join_the_nearest_cluster(eights):
    writer = CountingWriter()
    tree = build_tree(arc_leaves([*range(8), *range(900, 908)], "page"), ArcEmbedder(), writer)
    assert len(writer.calls) == 3
    tree.add(arc_leaves([850, 851], "new"))
    assert [len(level) for level in tree.levels] == [18, 2, 1]
    assert tree.levels[1][1].metadata["children"] == [f"leaf{n}" for n in [*range(900, 908), 850, 851]]
    assert tree.levels[1][1].metadata["sources"] == ["page", "new"]
    assert len(writer.calls) == 3 + 2


def test_three_new_leaves_get_a_summary_beside_the_nearest(eights):
    numbers = [*range(64), *range(900, 964)]
    writer = CountingWriter()
    tree = build_tree(arc_leaves(numbers, "page"), ArcEmbedder(), writer)
    assert [len(level) for level in tree.levels] == [128, 16, 2, 1]
    tree.add(arc_leaves([910.1, 910.2, 910.3], "new"))
    assert [len(level) for level in tree.levels] == [131, 17, 2, 1]
    assert tree.levels[1][16].metadata["children"] == ["leaf910.1", "leaf910.2", "leaf910.3"]
    assert ids(tree.parents(tree.levels[1][16].id)) == [tree.levels[2][1].id]
    assert len(writer.calls) == 19 + 3


def test_a_root_that_gets_a_neighbour_gets_a_parent(eights):
    writer = CountingWriter()
    tree = build_tree(arc_leaves(range(8), "page"), ArcEmbedder(), writer)
    [old_root] = tree.roots
    tree.add(arc_leaves([900, 901, 902], "new"))
    assert [len(level) for level in tree.levels] == [11, 2, 1]
    assert ids(tree.levels[1])[0] == old_root.id
    assert len(writer.calls) == 3
    flat = build_tree(arc_leaves(range(8), "page"), ArcEmbedder(), writer, max_levels=1)
    flat.add(arc_leaves([900, 901, 902], "new"))
    assert [len(level) for level in flat.levels] == [11, 2]


def test_clusters_that_grow_over_the_cap_are_parted_at_every_level(eights):
    """Pairs of new leaves join clusters until these, then their parents, hold more than a prompt may."""
    start, cap = arc_leaves(range(100, 900, 10), "old"), 100
    writer = CountingWriter()
    tree = build_tree(start, ArcEmbedder(), writer, prompt_tokens=characters, max_prompt_tokens=cap)
    sizes, leaves = [len(level) for level in tree.levels], list(start)
    for number in range(20):
        new = arc_leaves([101 + 10 * number, 102 + 10 * number], f"new {number}")
        tree.add(new)
        leaves += new
        assert_linked(tree, leaves)
        assert len(tree.roots) == 1
        for summary in tree.summaries:
            assert characters(texts(tree.children(summary.metadata["id"]))) <= cap
    assert len(tree.levels[1]) > sizes[1] and len(tree.levels[2]) > sizes[2]


@pytest.mark.parametrize("max_levels", [0, 1, 3])
def test_more_new_leaves_than_old_build_the_tree_anew(max_levels, eights):
    old, new = arc_leaves(range(8), "page"), arc_leaves(range(100, 124), "new")
    tree = build_tree(old, ArcEmbedder(), CountingWriter(), max_levels=max_levels)
    tree.add(new)
    assert tree.nodes == build_tree(old + new, ArcEmbedder(), CountingWriter(), max_levels=max_levels).nodes


def test_leaves_that_are_there_cost_nothing():
    writer, embedder = CountingWriter(), TopicEmbedder()
    leaves = make_leaves([f"apples {i}" for i in range(5)])
    tree = build_tree(leaves, embedder, writer)
    before, embedded = dict(tree.nodes), len(embedder.texts)
    tree.add(leaves[1:3])
    tree.add([])
    assert (tree.nodes, len(writer.calls), len(embedder.texts)) == (before, 1, embedded)
    new = Document("apples new", id="new", metadata={"id": "new", "source": "https://x.org/1"})
    tree.add([leaves[0], new, new])
    assert ids(tree.levels[0]) == [*ids(leaves), "new"]
    assert "level" not in new.metadata


@pytest.mark.parametrize(
    "text, source", [("another text", "https://x.org/0"), ("apples 0", "https://x.org/another")]
)
def test_an_id_for_two_leaves_is_refused(text, source):
    tree = build_tree(make_leaves(["apples 0", "apples 1"]), TopicEmbedder(), CountingWriter())
    before = dict(tree.nodes)
    with pytest.raises(ValueError, match="two texts with the id leaf0"):
        tree.add([Document(text, metadata={"id": "leaf0", "source": source})])
    assert tree.nodes == before


def test_a_page_added_and_removed_leaves_the_tree_as_it_was(eights):
    writer = CountingWriter()
    tree = build_tree(arc_leaves(range(100), "page"), ArcEmbedder(), writer)
    for numbers in ([20.5], [20.5, 70.5], [20.5, 21.5, 22.5], [i + 0.5 for i in range(30)]):
        before = dict(tree.nodes)
        tree.add(arc_leaves(numbers, "new"))
        paid = len(writer.calls)
        tree.remove("new")
        assert tree.nodes == before
        assert len(writer.calls) == paid, "the old summaries are in the journal"


# Failures and restarts


def test_a_writer_that_fails_leaves_the_tree_and_keeps_what_was_paid(tmp_path, eights):
    journal, old = tmp_path / "journal.jsonl", arc_leaves(range(0, 1000, 10), "page")
    new = arc_leaves([i + 0.5 for i in range(0, 1000, 50)], "new")
    writer = CountingWriter()
    tree = build_tree(old, ArcEmbedder(), writer, journal, backoff=0)
    before, built = dict(tree.nodes), len(writer.calls)
    writer.fails = lambda number, texts: number > built + 3
    with pytest.raises(SummaryError, match="the writer is out"):
        tree.add(new)
    assert tree.nodes == before
    writer.calls.clear()
    writer.fails = lambda number, texts: False
    tree.add(new)

    fresh = CountingWriter()
    whole = build_tree(old, ArcEmbedder(), fresh)
    whole.add(new)
    assert tree.nodes == whole.nodes
    assert len(writer.calls) == len(fresh.calls) - built - 3

    again = CountingWriter()  # a new process
    repeated = build_tree(old, ArcEmbedder(), again, journal)
    repeated.add(new)
    assert repeated.nodes == whole.nodes
    assert again.calls == []


def test_a_loaded_tree_changes_once_it_has_an_updater(tmp_path, eights):
    built = build_tree(arc_leaves(range(64), "page"), ArcEmbedder(), CountingWriter())
    built.save(tmp_path / "tree.jsonl")
    built.add(arc_leaves([20.5, 21.5], "new"))
    tree, writer = Tree.load(tmp_path / "tree.jsonl"), CountingWriter()
    tree.updater = TreeUpdater(ArcEmbedder(), ClusterWriter(writer, Journal(), characters, 6000))
    tree.add(arc_leaves([20.5, 21.5], "new"))
    assert tree.nodes == built.nodes
    assert len(writer.calls) == 2


# The index


def test_an_index_follows_by_embedding_only_what_is_new(eights):
    embedder = ArcEmbedder()
    tree = build_tree(arc_leaves(range(64), "page"), embedder, CountingWriter())
    index = VectorIndex.build(list(tree.nodes.values()), embedder)
    tree.add(arc_leaves([20.5, 21.5], "new"))
    embedder.texts.clear()
    follow(index, tree)
    assert len(embedder.texts) == 2 + 2  # two leaves, a cluster, the root
    assert {document.metadata["id"]: document for document in index.documents} == tree.nodes
    follow(index, tree)
    assert len(embedder.texts) == 4


# Any changes


@pytest.mark.filterwarnings("ignore:.*still over the cap:UserWarning")
@pytest.mark.parametrize("has_gists", [False, True])
@pytest.mark.parametrize("per_source", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_twenty_random_changes_keep_a_tree_sound(seed, per_source, has_gists):
    """UMAP is replaced by the first columns of the vectors: what must hold does not depend on it."""
    chance = random.Random(seed)
    pages = [f"https://x.org/{page}" for page in range(8)]
    new_ids = (f"n{number}" for number in range(10**6))

    def some_leaves(most):
        for _ in range(chance.randint(1, most)):
            about = {"id": next(new_ids), "source": chance.choice(pages)}
            words = " more words" * chance.randint(0, 9)
            topic = chance.choice(["apples", "boats", "clocks"])
            yield Document(f"{topic} {about['id']}{words}", id=about["id"], metadata=about)

    writer, embedder, leaves = CountingWriter(), TopicEmbedder(), list(some_leaves(40))
    gist = CountingGists() if has_gists else None
    options = {"dim": 3, "per_source": per_source, "gist": gist}
    cap = {"prompt_tokens": characters, "max_prompt_tokens": 200}
    with mock.patch.object(clustering, "reduce_dimensions", lambda vectors, dim, *_: vectors[:, :dim]):
        tree = build_tree(leaves, embedder, writer, **cap, max_levels=50, **options)
        index = VectorIndex.build(list(tree.nodes.values()), embedder)
        for _ in range(20):
            here = list(dict.fromkeys(leaf.metadata["source"] for leaf in leaves))
            if len(here) > 1 and chance.random() < 0.4:
                gone = chance.choice(here)
                tree.remove(gone)
                leaves = [leaf for leaf in leaves if leaf.metadata["source"] != gone]
            else:
                fresh = list(some_leaves(12))
                tree.add(fresh)
                leaves += fresh
            assert_linked(tree, leaves)
            assert len(tree.roots) == 1
            follow(index, tree)
            assert {document.metadata["id"] for document in index.documents} == set(tree.nodes)
            if per_source:
                assert_a_subtree_a_page(tree)
            if has_gists:
                assert_a_gist_a_leaf(tree)
    assert all(characters(call) <= 200 for call in writer.calls)
    assert not has_gists or len(gist.calls) == len(set(map(tuple, gist.calls))), "a gist is paid for once"


def assert_a_gist_a_leaf(tree):
    assert [gist.metadata["children"] for gist in tree.gists] == [[leaf] for leaf in ids(tree.levels[0])]
    assert not set(ids(tree.gists)) & {
        child for node in tree.summaries for child in node.metadata["children"]
    }


def assert_a_subtree_a_page(tree):
    """No node of one page has a child beside another page's, but for the subtrees' roots."""
    nodes = tree.levels[0] + tree.summaries
    for node in nodes:
        if len(node.metadata["sources"]) > 1:
            for child in tree.children(node.id):
                alone = len(child.metadata["sources"]) == 1
                assert not alone or all(
                    len(parent.metadata["sources"]) > 1 for parent in tree.parents(child.id)
                )
    for page in {leaf.metadata["source"] for leaf in tree.levels[0]}:
        roots = [
            node
            for node in nodes
            if node.metadata["sources"] == [page]
            and not any(parent.metadata["sources"] == [page] for parent in tree.parents(node.id))
        ]
        assert len(roots) == 1, "a page has one root"


# Gists


def test_new_leaves_cost_their_gists_and_the_clusters_above_them(eights):
    writer, gist = CountingWriter(), CountingGists()
    leaves = arc_leaves(range(0, 640, 10), "old")
    tree = build_tree(leaves, ArcEmbedder(), writer, gist=gist)
    assert repr(tree) == "Tree(64 -> 8 -> 1, 64 gists)"
    assert gist.calls == [[leaf.page_content] for leaf in leaves]
    before = len(writer.calls)
    tree.add(arc_leaves([641, 642], "new"))
    assert gist.calls[64:] == [["641 text"], ["642 text"]]
    assert len(writer.calls) - before == 2  # the nearest cluster, and the root
    assert_a_gist_a_leaf(tree)
    tree.remove("new")
    assert repr(tree) == "Tree(64 -> 8 -> 1, 64 gists)"
    assert len(gist.calls) == 66


def test_a_new_leaf_of_an_old_page_leaves_the_gists_of_the_others(eights):
    gist = CountingGists()
    tree = build_tree(arc_leaves(range(0, 640, 10), "page"), ArcEmbedder(), CountingWriter(), gist=gist)
    before = ids(tree.gists)
    tree.updater.writer.journal = tree.updater.gist.journal = Journal()  # which holds no gist
    gist.calls.clear()
    tree.add(arc_leaves([641], "page"))
    assert gist.calls == [["641 text"]]
    assert ids(tree.gists)[:-1] == before


@pytest.mark.parametrize("has_gists", [False, True])
def test_an_updater_that_does_not_fit_the_tree_is_refused(eights, has_gists):
    leaves, gist = arc_leaves(range(0, 640, 10), "page"), CountingGists()
    tree = build_tree(leaves, ArcEmbedder(), CountingWriter(), gist=gist if has_gists else None)
    writer = ClusterWriter(CountingWriter(), Journal(), characters, 6000)
    tree.updater = TreeUpdater(ArcEmbedder(), writer, gist=None if has_gists else writer)
    nodes = dict(tree.nodes)
    with pytest.raises(ValueError, match="the tree has gists of" if has_gists else "has no gists of"):
        tree.add(arc_leaves([641], "page"))
    assert tree.nodes == nodes


# A subtree a page


def test_a_new_page_gets_its_subtree_and_a_place_under_the_top(eights):
    writer = CountingWriter()
    leaves = [
        leaf for page in range(4) for leaf in arc_leaves(range(200 * page, 200 * page + 16), f"p{page}")
    ]
    tree = build_tree(leaves, ArcEmbedder(), writer, per_source=True)
    assert [len(level) for level in tree.levels] == [64, 8, 4, 1]
    assert len(writer.calls) == 13
    tree.add(arc_leaves(range(800, 816), "new"))
    assert [len(level) for level in tree.levels] == [80, 10, 5, 1]
    assert len(writer.calls) == 13 + 3 + 1
    assert_a_subtree_a_page(tree)
    tree.remove("p1")
    assert [len(level) for level in tree.levels] == [64, 8, 4, 1]
    assert len(writer.calls) == 17 + 1


def test_a_page_that_grows_is_the_only_one_that_is_written_again(eights):
    writer = CountingWriter()
    leaves = [leaf for page in range(4) for leaf in arc_leaves(range(200 * page, 200 * page + 8), f"p{page}")]
    tree = build_tree(leaves, ArcEmbedder(), writer, per_source=True)
    assert [len(level) for level in tree.levels] == [32, 4, 1]
    tree.add(arc_leaves(range(408, 416), "p2"))
    assert [len(level) for level in tree.levels] == [40, 5, 1, 1]  # the top is one level higher now
    assert [node.metadata["sources"] for node in tree.levels[2]] == [["p2"]]
    assert len(tree.roots) == 1
    assert len(writer.calls) == 5 + 2 + 1  # half of p2 was a cluster before: it is in the journal
    assert_a_subtree_a_page(tree)
