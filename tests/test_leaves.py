"""Leaves tile their page: in order, in place, each within the limit, nothing but white space left out."""

import re
import string

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from helpers.leaves import split_leaves
from helpers.models import load_embedder
from helpers.profiles import load_profile

count_minilm = load_embedder(load_profile("cpu")).count_tokens


def count_words(text):
    """The simplest token counter, so that limits can be read off the text."""
    return len(text.split())


def page(text, source="http://site/a", **metadata):
    return Document(text, metadata={"source": source, "title": "A page", **metadata})


def texts(leaves):
    return [leaf.page_content for leaf in leaves]


def check_tiling(text, leaves, count_tokens, chunk_tokens, overlap):
    """Check all that must hold of the leaves of one page."""
    last_end = 0
    for leaf in leaves:
        start, end = leaf.metadata["start"], leaf.metadata["end"]
        assert leaf.page_content == text[start:end]
        assert leaf.page_content.strip() == leaf.page_content != ""
        assert leaf.metadata["tokens"] == count_tokens(leaf.page_content) <= chunk_tokens
        assert end > last_end
        assert text[last_end:start].strip() == ""  # what lies between two leaves
        assert count_tokens(text[start:last_end]) <= overlap  # what is in both
        last_end = end
    assert text[last_end:].strip() == ""
    ids = [leaf.id for leaf in leaves]
    assert len(set(ids)) == len(ids)


# What must hold of every page

WORDS = st.text(string.ascii_lowercase, min_size=1, max_size=9)
PROSE = st.lists(
    st.tuples(WORDS, st.sampled_from([" ", " ", " ", ". ", "\n", "\n\n", "  ", "\t"])), max_size=60
).map(lambda pairs: "".join(word + gap for word, gap in pairs))
REPEATS = st.lists(st.sampled_from(["same. ", "same ", "words\n\n"]), max_size=60).map("".join)
LIMITS = st.integers(8, 30).flatmap(lambda chunk: st.tuples(st.just(chunk), st.integers(0, chunk - 5)))


@settings(max_examples=150, deadline=None)
@given(
    text=PROSE | REPEATS | st.text(max_size=300),
    limits=LIMITS,
    count=st.sampled_from([count_minilm, count_words]),
)
@example(text="a" * 300, limits=(8, 3), count=count_minilm)
@example(text="x  y " * 40, limits=(8, 3), count=count_words)
def test_leaves_tile_their_page(text, limits, count):
    leaves = split_leaves([page(text)], count, *limits)
    check_tiling(text, leaves, count, *limits)


@settings(max_examples=50, deadline=None)
@given(text=PROSE, limits=LIMITS)
def test_splitting_is_the_same_each_time(text, limits):
    first, second = (split_leaves([page(text)], count_words, *limits) for _ in range(2))
    assert first == second


# One case of each kind


def test_a_short_page_is_one_leaf():
    (leaf,) = split_leaves([page("  One small page.\n", depth=1)], count_words, 10, 2)
    assert leaf.page_content == "One small page."
    assert leaf.metadata == {
        "source": "http://site/a",
        "title": "A page",
        "depth": 1,  # what a page says of itself is handed down
        "id": leaf.id,
        "level": 0,
        "start": 2,
        "end": 17,
        "tokens": 3,
    }


@pytest.mark.parametrize("text", ["", " ", "\n\n\t \n"])
def test_an_empty_page_gives_no_leaf(text):
    assert split_leaves([page(text)], count_words, 10, 2) == []


def test_no_pages_no_leaves():
    assert split_leaves([], count_words, 10, 2) == []


@pytest.mark.parametrize(
    ("chunk_tokens", "expected"),
    [
        (9, ["Load it.", "What goes wrong\n\nThe file is missing.", "Then it fails loudly."]),
        (6, ["Load it.", "What goes wrong", "The file is missing.", "Then it fails loudly."]),
    ],
)
def test_a_heading_stays_with_what_follows_it_while_they_fit(chunk_tokens, expected):
    text = "Load it.\n\nWhat goes wrong\n\nThe file is missing. Then it fails loudly."
    assert [leaf.page_content for leaf in split_leaves([page(text)], count_words, chunk_tokens)] == expected


def test_code_is_cut_between_lines():
    code = "a = load()\nb = load()\nc = load()"
    leaves = split_leaves([page(code)], count_words, 6)
    assert [leaf.page_content for leaf in leaves] == ["a = load()\nb = load()", "c = load()"]


def test_the_overlap_is_repeated_at_the_start_of_the_next_leaf():
    leaves = split_leaves([page("a b c d e f g h i")], count_words, 5, 2)
    assert texts(leaves) == ["a b c", "b c d e f", "e f g h i"]


def test_an_overlap_starts_with_a_word():
    leaves = split_leaves([page("a \tb c d e f")], count_words, 5, 2)
    assert texts(leaves) == ["a \tb c", "b c d e f"]


def test_the_limit_holds_where_a_whole_counts_more_than_its_parts():
    # Tokenizers that merge across words do not add up: here two words side by side cost one more.
    def count(text):
        words = count_words(text)
        return words + words // 2

    leaves = split_leaves([page("a b c d e f g h i j k l")], count, 8, 4)
    assert len(leaves) > 2
    assert max(leaf.metadata["tokens"] for leaf in leaves) == 7


def test_without_overlap_leaves_are_disjoint():
    leaves = split_leaves([page("a b c d e f g h i")], count_words, 5, 0)
    assert texts(leaves) == ["a b c d e", "f g h i"]


def test_the_first_leaf_of_a_page_takes_nothing_from_the_page_before():
    leaves = split_leaves([page("a b c", "one"), page("d e f", "two")], count_words, 5, 2)
    assert [(leaf.page_content, leaf.metadata["source"]) for leaf in leaves] == [
        ("a b c", "one"),
        ("d e f", "two"),
    ]


def test_pages_are_cut_between_paragraphs_before_sentences_before_words():
    text = "one two three.\n\nfour five. six seven.\n\neight nine ten"
    assert texts(split_leaves([page(text)], count_words, 4, 0)) == [
        "one two three.",
        "four five. six seven.",
        "eight nine ten",
    ]
    assert texts(split_leaves([page("one two. three four. five")], count_words, 3, 0)) == [
        "one two.",
        "three four. five",
    ]


@pytest.mark.parametrize("count", [count_minilm, count_words])
def test_a_sentence_over_the_limit_leaves_no_empty_leaf(count):
    # Bug bank 14: a 30-word sentence, limit 10.
    sentence = " ".join(f"word{i % 10}" for i in range(30)) + "."
    for text in (sentence, f"Short. {sentence} Short.", f"{sentence}\n\n{sentence}"):
        leaves = split_leaves([page(text)], count, 10, 2)
        assert len(leaves) >= 3
        check_tiling(text, leaves, count, 10, 2)


def test_leaves_come_in_order_and_joined_give_the_text():
    # Bug bank 15.
    long = " ".join(["long"] * 30)
    text = f"First. {long}. pi is 3.14 at example.co!"
    leaves = split_leaves([page(text)], count_words, 10, 0)
    assert " ".join(texts(leaves)) == text
    assert all(count_words(leaf) <= 10 for leaf in texts(leaves))
    assert texts(leaves)[0].startswith("First.")
    assert texts(leaves)[-1].endswith("pi is 3.14 at example.co!")  # a dot inside a word ends no sentence
    check_tiling(text, split_leaves([page(text)], count_minilm, 10, 3), count_minilm, 10, 3)


def test_repeated_text_has_its_own_place_each_time():
    text = "Same words here.\n\nSame words here.\n\nSame words here."
    leaves = split_leaves([page(text)], count_words, 3, 0)
    assert texts(leaves) == ["Same words here."] * 3
    assert [leaf.metadata["start"] for leaf in leaves] == [0, 18, 36]
    assert len({leaf.id for leaf in leaves}) == 3


def test_a_word_of_20_000_characters_is_cut_within_the_limit():
    text = "Before. " + "a" * 20_000 + " After."
    leaves = split_leaves([page(text)], count_minilm, 200, 20)
    check_tiling(text, leaves, count_minilm, 200, 20)
    assert len(leaves) > 100
    assert (
        max(map(len, texts(leaves))) <= 200 * 6
    )  # its tokenizer alone would make one token of the whole word


def test_a_chinese_page_is_cut_after_its_own_full_stops():
    text = "树状检索先把长文档切成小块。再为每一组小块写一段摘要！这样既能回答细节问题？也能回答整体问题。"
    leaves = split_leaves([page(text)], count_minilm, 15, 0)
    check_tiling(text, leaves, count_minilm, 15, 0)
    assert texts(leaves) == re.findall(r"[^。！？]+[。！？]", text)


def test_windows_line_ends_and_unicode_spaces_are_white_space():
    text = "one two\r\n\r\nthree\u00a0four\u2003five six\u2028seven"
    check_tiling(text, split_leaves([page(text)], count_words, 3, 1), count_words, 3, 1)


@pytest.mark.parametrize(("chunk", "overlap"), [(0, 0), (10, 10), (10, 11), (10, -1)])
def test_limits_out_of_range_are_refused(chunk, overlap):
    with pytest.raises(ValueError, match=f"overlap {overlap}, chunk_tokens {chunk}"):
        split_leaves([page("a b c")], count_words, chunk, overlap)


# Ids

PARAGRAPHS = [f"Paragraph {name} has exactly six words." for name in ("one", "two", "three", "four")]


def ids_by_text(paragraphs, source="http://site/a"):
    leaves = split_leaves([page("\n\n".join(paragraphs), source)], count_words, 6, 0)
    assert texts(leaves) == paragraphs
    return {leaf.page_content: leaf.id for leaf in leaves}


def test_ids_survive_a_change_elsewhere_on_the_page():
    before = ids_by_text(PARAGRAPHS)
    changed = ids_by_text(
        ["A new opening of six words.", *PARAGRAPHS[:2], "Third paragraph, now of six words.", PARAGRAPHS[3]]
    )
    assert {text: changed[text] for text in before if text in changed} == {
        text: before[text] for text in PARAGRAPHS if text != PARAGRAPHS[2]
    }


def test_the_id_of_a_changed_text_changes():
    before, after = ids_by_text(PARAGRAPHS), ids_by_text([PARAGRAPHS[0].replace("six", "6"), *PARAGRAPHS[1:]])
    assert len(set(before.values()) | set(after.values())) == 5


def test_equal_text_on_two_pages_has_two_ids():
    assert not set(ids_by_text(PARAGRAPHS).values()) & set(ids_by_text(PARAGRAPHS, "http://site/b").values())


@pytest.mark.parametrize("metadata", [{"source": "manual.pdf"}, {}])
def test_equal_text_on_two_pages_of_one_source_has_two_ids(metadata):
    # PDF loaders give one document a page, all with the file as their source; some give no source at all.
    pages = [Document("The same footer.", metadata=metadata | {"page": n}) for n in (1, 2)]
    first, second = split_leaves(pages, count_words, 10, 0)
    assert first.id != second.id


def test_an_id_stands_on_the_document_and_in_its_metadata():
    (leaf,) = split_leaves([page("a b c")], count_words, 5, 0)
    assert leaf.id == leaf.metadata["id"]
    assert re.fullmatch("[0-9a-f]{12}", leaf.id)


def test_pages_are_left_as_they_are():
    original = page("a b c d e f g h i")
    split_leaves([original], count_words, 5, 2)
    assert original == page("a b c d e f g h i")
