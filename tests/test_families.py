"""Families: parents tile their page, children tile their parent, and every offset is that of the page."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.documents import Document

from helpers.families import split_families


def count_words(text):
    return len(text.split())


def page(text, source="https://docs/a"):
    return Document(text, metadata={"source": source, "title": "A"})


def test_a_page_cut_by_hand():
    text = "One two three. Four five.\n\nSix seven eight."
    parents, children = split_families([page(text)], count_words, parent_tokens=5, child_tokens=3)
    assert [parent.page_content for parent in parents.values()] == [
        "One two three. Four five.",
        "Six seven eight.",
    ]
    assert [child.page_content for child in children] == ["One two three.", "Four five.", "Six seven eight."]
    first, second = parents
    assert [child.metadata["parent"] for child in children] == [first, first, second]
    assert [child.metadata["id"] for child in children] == [f"{first}.0", f"{first}.1", f"{second}.0"]
    assert children[2].metadata["title"] == "A"


def test_the_same_text_twice_on_a_page_is_two_families():
    parents, children = split_families([page("Same words.\n\nSame words.")], count_words, 2, 2)
    assert len(parents) == len(children) == 2
    assert [child.metadata["start"] for child in children] == [0, 13]


@pytest.mark.parametrize("pages", [[], [page("")], [page(" \n ")]])
def test_no_text_no_families(pages):
    assert split_families(pages, count_words) == ({}, [])


def test_children_larger_than_parents_are_refused():
    with pytest.raises(ValueError, match="children of 9 tokens do not fit into parents of 8"):
        split_families([page("text")], count_words, parent_tokens=8, child_tokens=9)


@settings(deadline=None, max_examples=50)
@given(
    words=st.lists(st.sampled_from(["a", "b.", "c\n\n", "d\n"]), max_size=40),
    sizes=st.tuples(st.integers(1, 6), st.integers(0, 6)),
)
def test_every_child_stands_in_its_parent_and_every_character_in_a_child(words, sizes):
    text = " ".join(words)
    child_tokens, more = sizes
    parents, children = split_families([page(text)], count_words, child_tokens + more, child_tokens)
    for child in children:
        start, end = child.metadata["start"], child.metadata["end"]
        parent = parents[child.metadata["parent"]]
        assert text[start:end] == child.page_content
        assert parent.metadata["start"] <= start < end <= parent.metadata["end"]
        assert count_words(child.page_content) == child.metadata["tokens"] <= child_tokens
    assert "".join("".join(child.page_content for child in children).split()) == "".join(text.split())
    assert len({child.metadata["id"] for child in children} | set(parents)) == len(children) + len(parents)
