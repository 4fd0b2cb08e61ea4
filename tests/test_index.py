"""The index: exact cosine search with filters, changed in place, saved without pickle."""

import json
import pickle
from unittest import mock

import faiss
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from sklearn.metrics.pairwise import cosine_similarity

from helpers import index as module
from helpers.embedding import WindowEmbedder
from helpers.index import VectorIndex
from helpers.models import load_embedder
from helpers.profiles import load_profile
from helpers.vectors import unit_rows


class Numbers(Embeddings):
    """Reads the vector from the text, "0 1 2.5", so that a test shows what it searches; counts its texts."""

    identity = "numbers"

    def __init__(self):
        self.seen = []

    def embed_documents(self, texts):
        self.seen += texts
        return [[float(number) for number in text.split()] for text in texts]

    def embed_query(self, text):
        return self.embed_documents([text])[0]


class OtherNumbers(Numbers):
    identity = "other-numbers"


def document(name, text, level=0, **metadata):
    return Document(text, metadata={"id": name, "level": level, **metadata})


def build(*documents):
    return VectorIndex.build(documents, Numbers())


def ids(hits):
    return [hit.metadata["id"] for hit, _ in hits]


def as_text(vector):
    return " ".join(map(repr, map(float, vector)))


@pytest.fixture
def compass():
    """Three directions of the plane."""
    return build(document("east", "1 0"), document("north", "0 1"), document("northeast", "1 1"))


# Search


def test_the_nearest_comes_first_with_its_cosine(compass):
    hits = compass.search("2 0", k=3)
    assert ids(hits) == ["east", "northeast", "north"]
    assert [score for _, score in hits] == pytest.approx([1, np.sqrt(0.5), 0], abs=1e-6)


def test_k_larger_than_the_index_gives_all(compass):
    assert len(compass.search("1 0", k=50)) == 3


@pytest.mark.parametrize("k", [0, -1])
def test_k_below_one_is_refused(compass, k):
    with pytest.raises(ValueError, match="k must be at least 1"):
        compass.search("1 0", k=k)


def test_scores_of_vectors_of_any_length_are_cosines():
    # Bug bank 24: vectors of length 12 gave "cosines" up to 144.
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(30, 8))
    rows *= 12 / np.linalg.norm(rows, axis=1, keepdims=True)
    index = build(*(document(f"d{i:02}", as_text(row)) for i, row in enumerate(rows)))
    hits = index.search(as_text(rows[7]), k=30)
    assert ids(hits)[0] == "d07"
    assert hits[0][1] == pytest.approx(1, abs=1e-6)
    assert all(-1 <= score <= 1 for _, score in hits)
    assert index.search(as_text(-rows[7]), k=30)[-1][1] == pytest.approx(-1, abs=1e-6)


def test_rounding_brings_no_score_above_one():
    # As float32, the inner product of some unit vectors with themselves is 1.0000001.
    rows = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    assert (unit_rows(rows) ** 2).sum(axis=1).max() > 1
    index = build(*(document(f"d{i:02}", as_text(row)) for i, row in enumerate(rows)))
    best = [index.search(as_text(row), k=1)[0][1] for row in rows]
    worst = [index.search(as_text(-row), k=50)[-1][1] for row in rows]
    assert max(best) == 1
    assert min(worst) == -1


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 60),
    k=st.integers(1, 70),
    seed=st.integers(0, 10_000),
    level=st.sampled_from([None, 0, 1]),
    ties=st.booleans(),
    block=st.sampled_from([1, 5, 2048]),
)
def test_search_agrees_with_brute_force_by_sklearn(n, k, seed, level, ties, block):
    rng = np.random.default_rng(seed)
    # Entries from {-1, 1}: in 3 dimensions they are 8 directions, so most scores tie.
    rows = rng.choice([-1.0, 1.0], size=(n, 3)) if ties else rng.normal(size=(n, 6)) * 5
    question = rng.normal(size=rows.shape[1])
    names = [f"{name:02}" for name in rng.permutation(n)]  # not in the order in which they are added
    levels = rng.integers(0, 2, size=n)
    documents = [
        document(name, as_text(row), level=int(of)) for name, row, of in zip(names, rows, levels, strict=True)
    ]
    with mock.patch.object(module, "BLOCK", block):
        hits = build(*documents).search(
            as_text(question), k, where=None if level is None else {"level": level}
        )

    cosines = cosine_similarity([question], rows)[0]
    expected = sorted(
        (-round(float(cosine), 5), name)
        for cosine, name, of in zip(cosines, names, levels, strict=True)
        if level in (None, of)
    )[:k]
    assert ids(hits) == [name for _, name in expected]
    assert [score for _, score in hits] == pytest.approx([-cosine for cosine, _ in expected], abs=2e-5)


@pytest.mark.parametrize("n", [3, 9, 12, 100])
def test_equal_leaves_are_ordered_by_id_however_many_and_in_whatever_order_added(n):
    names = [f"d{i:03}" for i in range(n)]
    index = build(*(document(name, "1 1") for name in reversed(names)))
    assert ids(index.search("1 1", k=3)) == names[:3]


def test_an_empty_index_finds_nothing():
    index = build()
    assert len(index) == 0
    assert index.documents == []
    assert index.search("1 0", k=3) == []
    assert list(index.ranked("1 0")) == []


# Filters


@pytest.mark.parametrize("where", [{"level": 1}, lambda metadata: metadata["level"] == 1])
def test_a_filter_finds_all_that_pass_also_behind_many_that_do_not(where):
    # Bug bank 23: 97 leaves + 3 summaries, k 3. The summaries are the farthest of all.
    leaves = [document(f"leaf{i}", f"1 {i / 1000}") for i in range(97)]
    summaries = [document(f"summary{i}", f"-1 {i}", level=1) for i in range(3)]
    index = build(*leaves, *summaries)
    assert sorted(ids(index.search("1 0", k=3, where=where))) == ["summary0", "summary1", "summary2"]
    assert len(index.search("1 0", k=2, where=where)) == 2
    assert len(index.search("1 0", k=10, where=where)) == 3


def test_a_filter_that_nothing_passes_finds_nothing(compass):
    assert compass.search("1 0", k=3, where={"level": 9}) == []


# All documents in order


@pytest.mark.parametrize("n", [1, 2047, 2048, 2049, 9000])
def test_ranked_yields_every_document_once_the_best_first_ties_by_id(n):
    rng = np.random.default_rng(n)
    # Whole numbers: many documents have the same direction, also across the end of a block.
    rows = rng.integers(-4, 5, size=(n, 3))
    names = rng.permutation(n)  # not in the order in which they are added
    index = build(*(document(f"d{name:04}", as_text(row)) for name, row in zip(names, rows, strict=True)))
    order = [(-round(score, 6), hit.metadata["id"]) for hit, score in index.ranked("1 0.1 0")]
    assert len({name for _, name in order}) == n
    assert order == sorted(order)


@pytest.mark.parametrize("block", [1, 64, 2048])
def test_ranked_yields_every_document_once_also_where_all_are_equal(block, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", block)
    names = [f"d{i:03}" for i in range(300)]
    index = build(*(document(name, "1 1", level=int(name[1:]) % 2) for name in reversed(names)))
    assert ids(index.ranked("1 1")) == names
    assert ids(index.ranked("1 1", where={"level": 1})) == names[1::2]


# Add and remove


def test_each_text_is_embedded_once():
    embedder = Numbers()
    index = VectorIndex.build([document("a", "1 0"), document("b", "0 1")], embedder)
    index.add([document("c", "1 1")])
    assert embedder.seen == ["1 0", "0 1", "1 1"]


def test_adding_to_an_empty_index():
    index = build()
    index.add([document("a", "1 0")])
    index.add([])
    assert ids(index.search("1 0", k=1)) == ["a"]


def test_an_id_that_is_here_already_takes_the_old_one_s_place(compass):
    compass.add([document("east", "0 -1", title="turned")])
    assert len(compass) == 3
    hits = compass.search("0 -1", k=3)
    assert ids(hits) == ["east", "northeast", "north"]
    assert hits[0][0].metadata["title"] == "turned"
    assert [score for _, score in hits] == pytest.approx([1, -np.sqrt(0.5), -1], abs=1e-6)


def test_the_same_id_twice_in_one_call_is_refused_and_adds_nothing(compass):
    with pytest.raises(ValueError, match="the same id twice: twin"):
        compass.add([document("twin", "1 0"), document("other", "1 0"), document("twin", "0 1")])
    assert len(compass) == 3
    with pytest.raises(ValueError, match="the same id twice: twin"):
        build(document("twin", "1 0"), document("twin", "1 0"))


def test_what_is_here_stays_when_its_successor_cannot_be_embedded(compass):
    with pytest.raises(ValueError, match="could not convert"):
        compass.add([document("east", "not a number")])
    assert ids(compass.search("1 0", k=1)) == ["east"]


def test_a_removed_document_is_never_found_and_the_others_keep_their_vectors(compass):
    compass.remove(["east"])
    assert "east" not in compass
    assert "north" in compass
    hits = compass.search("1 0", k=3)
    assert ids(hits) == ["northeast", "north"]
    assert [score for _, score in hits] == pytest.approx([np.sqrt(0.5), 0], abs=1e-6)
    assert [d.metadata["id"] for d in compass.documents] == ["north", "northeast"]


def test_removing_an_id_that_is_not_here_is_an_error_and_removes_nothing(compass):
    with pytest.raises(KeyError, match="not in the index: west"):
        compass.remove(["east", "west"])
    assert ids(compass.search("1 0", k=3)) == ["east", "northeast", "north"]


def test_removing_an_id_named_twice_removes_it_once(compass):
    compass.remove(["east", "east"])
    assert ids(compass.search("1 0", k=3)) == ["northeast", "north"]


def test_everything_removed_is_an_empty_index_that_can_be_filled_again(compass):
    compass.remove([d.metadata["id"] for d in compass.documents])
    assert compass.search("1 0") == []
    compass.add([document("up", "0 0 1")])  # even with vectors of another dimension
    assert ids(compass.search("0 0 1")) == ["up"]


@settings(max_examples=40, deadline=None)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["add", "remove"]), st.sets(st.integers(0, 9), min_size=1), st.integers(0, 99)
        ),
        max_size=8,
    )
)
def test_any_run_of_changes_ends_as_an_index_built_anew(steps):
    changed, expected = build(), {}
    for action, numbers, seed in steps:
        if action == "add":
            rows = np.random.default_rng(seed).normal(size=(len(numbers), 3))
            new = [document(f"d{i}", as_text(row)) for i, row in zip(sorted(numbers), rows, strict=True)]
            changed.add(new)
            expected |= {d.metadata["id"]: d for d in new}
        else:
            present = [f"d{i}" for i in numbers if f"d{i}" in expected]
            changed.remove(present)
            for name in present:
                del expected[name]
    anew = build(*expected.values())
    assert len(changed) == len(anew) == len(expected)
    assert changed.search("1 2 3", k=10) == anew.search("1 2 3", k=10)


def test_vectors_are_found_by_id_also_after_changes(compass):
    np.testing.assert_allclose(compass.vectors(["northeast", "east"]), [[np.sqrt(0.5)] * 2, [1, 0]])
    compass.remove(["east"])
    compass.add([document("south", "0 -2"), document("north", "0 3")])
    np.testing.assert_allclose(compass.vectors(["north", "south"]), [[0, 1], [0, -1]])
    with pytest.raises(KeyError, match="east"):
        compass.vectors(["east"])


# Save and load


def test_a_saved_index_comes_back_with_its_texts_metadata_and_scores(tmp_path):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 6))
    index = build(*(document(f"d{i:02}", as_text(row), sources=["a", "树"]) for i, row in enumerate(rows)))
    index.remove(["d05"])
    index.save(tmp_path / "new" / "index")
    embedder = Numbers()
    loaded = VectorIndex.load(tmp_path / "new" / "index", embedder)
    assert embedder.seen == []  # nothing is embedded again
    assert loaded.documents == index.documents
    question = as_text(rng.normal(size=6))
    assert loaded.search(question, k=39) == index.search(question, k=39)
    loaded.add([document("d05", as_text(rows[5]))])
    loaded.remove(["d06"])
    assert ids(loaded.search(as_text(rows[5]), k=1)) == ["d05"]
    assert len(loaded) == 39


def test_an_empty_index_comes_back_empty_and_can_be_filled(tmp_path):
    build().save(tmp_path)
    loaded = VectorIndex.load(tmp_path, Numbers())
    assert loaded.search("1 0") == []
    loaded.add([document("a", "1 0")])
    assert ids(loaded.search("1 0")) == ["a"]


@pytest.mark.parametrize("odd", ["\n", "\r\n", "\x0b", "\x1c", "\x85", "\u2028", "\u2029", '"', "\\", "\0"])
def test_a_text_with_odd_characters_comes_back_whole(tmp_path, odd):
    class Anything(Numbers):
        def embed_documents(self, texts):
            return [[1.0, len(text)] for text in texts]

    index = VectorIndex.build([document("a", f"one{odd}two", title=f"x{odd}y")], Anything())
    index.save(tmp_path)
    assert VectorIndex.load(tmp_path, Anything()).documents == index.documents


def test_loading_runs_no_code_from_the_folder(tmp_path, compass, monkeypatch):
    # Bug bank 25: LangChain's own FAISS.load_local unpickles index.pkl.
    compass.save(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        "documents.jsonl",
        "index.json",
        "vectors.faiss",
    ]

    class Bomb:
        def __reduce__(self):
            return (tmp_path / "exploded").write_text, ("boom",)

    bomb = pickle.dumps(Bomb())
    (tmp_path / "index.pkl").write_bytes(bomb)

    def refuse(*_, **__):
        raise AssertionError("pickle was called")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    assert ids(VectorIndex.load(tmp_path, Numbers()).search("1 0", k=1)) == ["east"]
    for name in ("documents.jsonl", "vectors.faiss", "index.json"):
        kept = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(bomb)
        with pytest.raises(ValueError, match="not a whole index"):
            VectorIndex.load(tmp_path, Numbers())
        (tmp_path / name).write_bytes(kept)
    assert not (tmp_path / "exploded").exists()


def test_the_folder_of_another_embedder_is_refused_by_name(tmp_path, compass):
    compass.save(tmp_path)
    with pytest.raises(ValueError, match="made with embedder numbers, not other-numbers"):
        VectorIndex.load(tmp_path, OtherNumbers())


@pytest.mark.parametrize("name", ["vectors.faiss", "documents.jsonl", "index.json"])
@pytest.mark.parametrize("damage", ["missing", "half", "empty"])
def test_a_half_written_folder_is_refused_with_advice(tmp_path, compass, name, damage):
    folder = tmp_path / "my-index"
    compass.save(folder)
    data = (folder / name).read_bytes()
    (folder / name).unlink()
    if damage != "missing":
        (folder / name).write_bytes(data[: len(data) // 2] if damage == "half" else b"")
    with pytest.raises(ValueError, match="my-index .*build it again"):
        VectorIndex.load(folder, Numbers())


def test_a_line_that_is_missing_is_noticed(tmp_path, compass):
    compass.save(tmp_path)
    lines = (tmp_path / "documents.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "documents.jsonl").write_text("".join(lines[:-1]))
    with pytest.raises(ValueError, match="3 vectors for 2 texts: build it again"):
        VectorIndex.load(tmp_path, Numbers())


def test_a_save_that_breaks_off_over_an_older_index_is_noticed(tmp_path, compass, monkeypatch):
    # New vectors beside old texts, as many of each: the counts alone would not tell.
    compass.save(tmp_path)
    newer = build(document("a", "0 1"), document("b", "1 0"), document("c", "1 1"))

    def break_off(*_, **__):
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(json, "dumps", break_off)
        with pytest.raises(OSError, match="No space"):
            newer.save(tmp_path)
    assert faiss.read_index(str(tmp_path / "vectors.faiss")).ntotal == 3
    with pytest.raises(ValueError, match="not a whole index"):
        VectorIndex.load(tmp_path, Numbers())
    newer.save(tmp_path)
    assert VectorIndex.load(tmp_path, Numbers()).documents == newer.documents


# The real model


@pytest.fixture(scope="session")
def minilm():
    return WindowEmbedder(load_embedder(load_profile("cpu")).model, "all-MiniLM-L6-v2")


TEXTS = [
    "Penguins dive for fish in cold water.",
    "The central bank raised its interest rate.",
    "Bread dough has to rest before it is baked.",
    "A savings account pays interest every year.",
]


def test_minilm_finds_by_meaning_with_sklearn_s_cosines(minilm, tmp_path):
    index = VectorIndex.build([document(f"d{i}", text) for i, text in enumerate(TEXTS)], minilm)
    question = "Which birds swim?"
    hits = index.search(question, k=4)
    assert ids(hits)[0] == "d0"
    cosines = cosine_similarity([minilm.embed_query(question)], minilm.embed_documents(TEXTS))[0]
    assert {name: score for name, (_, score) in zip(ids(hits), hits, strict=True)} == pytest.approx(
        {f"d{i}": cosine for i, cosine in enumerate(cosines)}, abs=1e-5
    )
    index.save(tmp_path)
    assert VectorIndex.load(tmp_path, minilm).search(question, k=4) == hits
