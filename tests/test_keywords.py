"""Keywords: BM25 against the formula, tokens of code and of Chinese, and fusion worked out by hand."""

import json
import math
import pickle
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from helpers import keywords as module
from helpers.keywords import KeywordIndex, keyword_tokens, rrf


def document(document_id, text, **metadata):
    return Document(text, id=document_id, metadata={"id": document_id, **metadata})


def index_of(**texts):
    return KeywordIndex([document(name, text) for name, text in texts.items()])


def ids(hits):
    return [hit.metadata["id"] for hit, _ in hits]


# Tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The Trainer, the END.", ["the", "trainer", "the", "end"]),
        ("save_pretrained", ["save_pretrained", "save", "pretrained"]),
        ("AutoModel", ["automodel", "auto", "model"]),
        ("LMHead GPT2 int8 PEFT", ["lmhead", "lm", "head", "gpt2", "int8", "peft"]),
        ("nn.Linear()", ["nn.linear", "nn", "linear"]),
        (
            "x.AutoModel.from_x",
            ["x.automodel.from_x", "x", "automodel", "auto", "model", "from_x", "from", "x"],
        ),
        ("--num_proc=4", ["num_proc", "num", "proc", "4"]),
        ("__init__ ____ _", ["__init__", "init"]),
        ("lr 0.05", ["lr", "0.05", "0", "05"]),
        ("fine-tuning", ["fine", "tuning"]),
        ("Straße", ["strasse"]),
        ("", []),
        (" .,;!? ", []),
    ],
)
def test_words_are_case_folded_and_code_names_come_whole_and_in_parts(text, tokens):
    assert keyword_tokens(text) == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("生鲜商品", ["生鲜", "鲜商", "商品"]),
        ("鲜", ["鲜"]),
        ("第7天", ["第", "7", "天"]),
        ("退货。退款", ["退货", "退款"]),  # no pair reaches over the full stop
        ("用AutoModel加载", ["用", "automodel", "auto", "model", "加载"]),
        ("モデル 모델", ["モデ", "デル", "모델"]),
        ("Ｔｒａｉｎｅｒ １０", ["trainer", "10"]),  # full-width letters are the same letters
    ],
)
def test_text_without_spaces_comes_in_pairs_of_characters(text, tokens):
    assert keyword_tokens(text) == tokens


# Search


def test_scores_are_those_of_the_formula():
    texts = {"a": "cat dog dog", "b": "cat bird", "c": "fish fish fish fish"}
    hits = index_of(**texts).search("cat dog", k=3)

    # By hand: 3 documents, 9 words, mean length 3; cat stands in 2 documents, dog in 1.
    def share(in_documents, count, length, k1=1.5, b=0.75):
        idf = math.log(1 + (3 - in_documents + 0.5) / (in_documents + 0.5))
        return idf * count / (count + k1 * (1 - b + b * length / 3))

    expected = {"a": share(2, 1, 3) + share(1, 2, 3), "b": share(2, 1, 2)}
    assert {hit.metadata["id"]: score for hit, score in hits} == pytest.approx(expected, abs=1e-6)
    assert ids(hits) == ["a", "b"]


def test_a_document_without_a_word_of_the_question_is_no_hit():
    index = index_of(a="save the model", b="load the tokenizer", c="plum cake")
    assert ids(index.search("model", k=3)) == ["a"]
    assert index.search("penguin", k=3) == []


@pytest.mark.parametrize("question", ["MODEL", "model", "Model?"])
def test_case_does_not_matter(question):
    assert ids(index_of(a="the Model", b="a cake").search(question)) == ["a"]


@pytest.mark.parametrize("question", ["save_pretrained", "how to save something pretrained", "SAVE"])
def test_a_code_name_is_found_whole_and_by_its_parts(question):
    index = index_of(a="call save_pretrained(folder)", b="call load_dataset(name)")
    assert ids(index.search(question)) == ["a"]


def test_the_whole_name_beats_its_parts():
    index = index_of(parts="save what was pretrained", whole="save_pretrained", other="a cake")
    assert ids(index.search("save_pretrained")) == ["whole", "parts"]


def test_chinese_is_found_by_pairs():
    index = index_of(term="签收后 7 天内可以退货", refund="退款三天到账")
    assert ids(index.search("还能退货吗")) == ["term"]


def test_equal_scores_are_ordered_by_id_also_at_the_cut():
    index = KeywordIndex([document(name, "same words") for name in ("c", "a", "d", "b")])
    assert ids(index.search("words", k=3)) == ["a", "b", "c"]


@pytest.mark.parametrize("first", [1, 2, 7, 40, 100])
def test_sorting_the_first_before_the_others_changes_no_place(first, monkeypatch):
    chance = random.Random(0)
    names = chance.sample(range(60), 60)
    texts = [" ".join(chance.choices("abcdef", k=chance.randint(1, 4))) for _ in names]  # many score the same
    index = KeywordIndex([document(f"d{name:02}", text) for name, text in zip(names, texts, strict=True)])
    scores = index._bm25.get_scores(keyword_tokens("a b"))
    expected = sorted(
        (-round(float(score), 5), hit.metadata["id"])
        for hit, score in zip(index.documents, scores, strict=True)
        if score
    )
    assert len({score for score, _ in expected}) < len(expected) / 2
    monkeypatch.setattr(module, "FIRST", first)
    assert ids(index.ranked("a b")) == [name for _, name in expected]


def test_k_is_at_least_one():
    with pytest.raises(ValueError, match="k must be at least 1, got 0"):
        index_of(a="word").search("word", k=0)


@pytest.mark.parametrize("documents", [[], [document("a", "")], [document("a", "..."), document("b", " ")]])
def test_an_index_without_a_word_finds_nothing(documents):
    index = KeywordIndex(documents)
    assert len(index) == len(documents)
    assert index.search("word") == []
    assert list(index.ranked("word")) == []


@pytest.mark.parametrize("question", ["", "  ", "?!", "____"])
def test_a_question_without_a_word_finds_nothing(question):
    assert index_of(a="word ____ ?!", b="").search(question) == []


def test_an_empty_document_between_others_does_no_harm():
    assert ids(index_of(a="", b="word", c="").search("word")) == ["b"]


def test_the_same_id_twice_is_refused():
    with pytest.raises(ValueError, match="the same id twice: twin"):
        KeywordIndex([document("twin", "one"), document("twin", "two")])


def test_ten_thousand_leaves():
    texts = (f"leaf_{i} is about topic{i % 100} and word{i % 7}, written in order" for i in range(10_000))
    index = KeywordIndex([document(f"d{i:05}", text) for i, text in enumerate(texts)])
    assert len(index) == 10_000
    assert ids(index.search("leaf_4321", k=1)) == ["d04321"]
    assert len(list(index.ranked("topic42"))) == 100


# Save and load


@pytest.fixture
def saved(tmp_path):
    index = index_of(a="save_pretrained\u2028folder", b="生鲜商品", c="")
    index.save(tmp_path / "new" / "index")
    return index, tmp_path / "new" / "index"


def test_a_saved_index_comes_back_with_its_documents_and_scores(saved):
    index, folder = saved
    loaded = KeywordIndex.load(folder)
    assert loaded.documents == index.documents
    for question in ("pretrained folder", "生鲜", "nothing"):
        assert list(loaded.ranked(question)) == list(index.ranked(question))


def test_an_empty_index_comes_back_empty_also_over_a_full_one(saved):
    _, folder = saved
    KeywordIndex([]).save(folder)
    assert len(KeywordIndex.load(folder)) == 0
    assert KeywordIndex.load(folder).search("pretrained") == []


def test_loading_runs_no_code_from_the_folder(saved, tmp_path):
    index, folder = saved
    assert {file.suffix for file in folder.iterdir()} == {".npy", ".json", ".jsonl"}

    class Bomb:
        def __reduce__(self):
            return (tmp_path / "exploded").write_text, ("boom",)

    for file in sorted(folder.iterdir()):
        kept = file.read_bytes()
        file.write_bytes(pickle.dumps(Bomb()))
        with pytest.raises(ValueError, match="index is not a whole index"):
            KeywordIndex.load(folder)
        file.write_bytes(kept)
    assert not (tmp_path / "exploded").exists()
    assert KeywordIndex.load(folder).documents == index.documents


@pytest.mark.parametrize("damage", ["missing", "empty"])
def test_a_half_written_folder_is_refused_with_advice(saved, damage):
    _, folder = saved
    for file in sorted(folder.iterdir()):
        kept = file.read_bytes()
        file.unlink() if damage == "missing" else file.write_bytes(b"")
        with pytest.raises(ValueError, match="build it again"):
            KeywordIndex.load(folder)
        file.write_bytes(kept)


def test_a_line_that_is_missing_is_noticed(saved):
    _, folder = saved
    lines = (folder / "documents.jsonl").read_text(encoding="utf-8").split("\n")
    (folder / "documents.jsonl").write_text("\n".join(lines[1:]), encoding="utf-8")
    with pytest.raises(ValueError, match="scores of 3 for 2 texts: build it again"):
        KeywordIndex.load(folder)


def test_a_save_that_breaks_off_over_an_older_index_is_noticed(saved, monkeypatch):
    _, folder = saved

    def break_off(*_, **__):
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(json, "dumps", break_off)
        with pytest.raises(OSError, match="No space"):
            index_of(a="x", b="y", c="z").save(folder)
    with pytest.raises(ValueError, match="not a whole index"):
        KeywordIndex.load(folder)


# Reciprocal rank fusion


def test_fusion_by_hand():
    fused = rrf([["a", "b", "c"], ["b", "d"]])
    expected = [("b", 1 / 62 + 1 / 61), ("a", 1 / 61), ("d", 1 / 62), ("c", 1 / 63)]
    assert [item for item, _ in fused] == [item for item, _ in expected]
    assert [score for _, score in fused] == pytest.approx([score for _, score in expected])


def test_a_smaller_k_makes_a_first_place_count_for_more():
    rankings = [["first", "x", "second"], ["y", "z", "second"]]
    assert rrf(rankings)[0] == ("second", pytest.approx(2 / 63))
    assert rrf(rankings, k=0)[0] == ("first", 1.0)


def test_equal_sums_are_ordered_by_id():
    assert [item for item, _ in rrf([["b", "a"], ["a", "b"]])] == ["a", "b"]
    # a at 24 and 24, b at 3 and 66: 1/84 + 1/84 is exactly 1/63 + 1/126.
    one = ["x"] * 2 + ["b"] + ["x"] * 20 + ["a"]
    other = ["x"] * 23 + ["a"] + ["x"] * 41 + ["b"]
    assert [item for item, _ in rrf([one, other])] == ["x", "a", "b"]
    assert dict(rrf([one, other]))["a"] == dict(rrf([one, other]))["b"]


def test_an_id_counts_once_per_list_at_its_first_rank():
    assert rrf([["a", "b", "a", "a"]]) == [("a", 1 / 61), ("b", 1 / 62)]
    # The places behind a repeat stay as they are: c is third.
    assert dict(rrf([["a", "a", "c"]]))["c"] == 1 / 63


@pytest.mark.parametrize("rankings", [[], [[]], [[], []]])
def test_empty_lists_give_nothing(rankings):
    assert rrf(rankings) == []


def test_an_empty_list_beside_another_changes_nothing():
    assert rrf([["a", "b"], []]) == rrf([["a", "b"]])


RANKINGS = st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=12), max_size=5)


@settings(deadline=None)
@given(rankings=RANKINGS, data=st.data())
def test_the_order_of_the_lists_does_not_matter(rankings, data):
    assert rrf(data.draw(st.permutations(rankings))) == rrf(rankings)


@settings(deadline=None)
@given(rankings=RANKINGS)
def test_every_id_comes_once_the_best_first_ties_by_id(rankings):
    fused = rrf(rankings)
    assert sorted(item for item, _ in fused) == sorted({item for ranking in rankings for item in ranking})
    assert fused == sorted(fused, key=lambda pair: (-pair[1], pair[0]))
    for item, score in fused:
        assert score == pytest.approx(sum(1 / (61 + r.index(item)) for r in rankings if item in r))


@settings(deadline=None)
@given(ranking=st.lists(st.sampled_from("abcd"), min_size=1), again=st.integers(0, 20))
def test_repeating_an_id_at_the_end_of_a_list_changes_nothing(ranking, again):
    assert rrf([ranking + [ranking[again % len(ranking)]]]) == rrf([ranking])
