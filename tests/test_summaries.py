"""The prompt of a summary and its cap. "Bug n" is the number in the bank of faults reported elsewhere."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from langchain_core.prompts import PromptTemplate
from langchain_core.runnables import Runnable

from helpers.summaries import (
    SUMMARY_PROMPT,
    TEMPLATE_TOKENS,
    Summariser,
    cut_to_fit,
    join_passages,
    pack_in_order,
)


class BatchWriter(Runnable[str, str]):
    """Answers with the length of each prompt, and keeps the batches that it was given."""

    identity = "lengths"
    batch_size = 3

    def __init__(self):
        self.batches = []

    def invoke(self, input, config=None, **kwargs):
        raise AssertionError("prompts must come in batches")

    def batch(self, inputs, config=None, *, return_exceptions=False, **kwargs):
        self.batches.append([prompt.to_string() for prompt in inputs])
        return [str(len(prompt.to_string())) for prompt in inputs]


def count_words(text):
    return len(text.split())


# The Summariser


def test_the_prompt_holds_every_passage_in_order():
    writer = BatchWriter()
    Summariser(writer, count_words).invoke(["First {braces}.", "Second."])
    [[prompt]] = writer.batches
    assert "\n\nFirst {braces}.\n\nSecond.\n\n" in prompt
    assert prompt == SUMMARY_PROMPT.format(passages="First {braces}.\n\nSecond.")


def test_the_cap_counts_the_prompt_and_the_chat_template():  # bug 5
    summariser = Summariser(BatchWriter(), count_words)
    own = count_words(SUMMARY_PROMPT.format(passages=""))
    assert own > 40
    assert summariser.prompt_tokens(["one two", "three"]) == own + 3 + TEMPLATE_TOKENS
    assert TEMPLATE_TOKENS >= 20  # Qwen's template with its default system message: 20 tokens and more


def test_the_cap_is_in_tokens_of_the_writer():
    """Sizes are counted by the embedder's tokenizer; one token there may be more for the writer."""
    counted = Summariser(BatchWriter(), count_words).prompt_tokens(["a b c"]) - TEMPLATE_TOKENS
    summariser = Summariser(BatchWriter(), count_words, writer_ratio=1.5)
    assert summariser.prompt_tokens(["a b c"]) - TEMPLATE_TOKENS == -(-counted * 3 // 2)


def test_a_batch_reaches_the_writer_as_one():
    writer = BatchWriter()
    summariser = Summariser(writer, count_words)
    answers = summariser.batch([["a"], ["b", "cc"], ["ddd"]])
    assert [len(batch) for batch in writer.batches] == [3]
    assert answers == [str(len(prompt)) for prompt in writer.batches[0]]
    assert summariser.batch_size == 3


def test_one_is_a_batch_of_one():
    writer = BatchWriter()
    assert Summariser(writer, count_words).invoke(["a"]) == str(len(writer.batches[0][0]))


def test_identity_tells_writers_and_prompts_apart():
    """Else a journal would give the summaries of another model, or of another prompt."""
    other_writer = BatchWriter()
    other_writer.identity = "another model"
    other_prompt = PromptTemplate.from_template("Sum up: {passages}")
    summarisers = [
        Summariser(BatchWriter(), count_words),
        Summariser(other_writer, count_words),
        Summariser(BatchWriter(), count_words, other_prompt),
    ]
    assert len({summariser.identity for summariser in summarisers}) == 3
    assert Summariser(BatchWriter(), count_words).identity == summarisers[0].identity


def test_a_failure_is_returned_where_the_caller_asks_for_it():
    class Broken(BatchWriter):
        def batch(self, inputs, config=None, *, return_exceptions=False, **kwargs):
            error = ConnectionError("the writer is out")
            if not return_exceptions:
                raise error
            return [error, *["fine" for _ in inputs[1:]]]

    summariser = Summariser(Broken(), count_words)
    failed, fine = summariser.batch([["a"], ["b"]], return_exceptions=True)
    assert isinstance(failed, ConnectionError)
    assert fine == "fine"
    with pytest.raises(ConnectionError):
        summariser.batch([["a"], ["b"]])


# Cutting and packing


def fits_in(cap):
    return lambda texts: len(join_passages(texts)) <= cap


def test_a_text_that_fits_is_not_cut():
    assert cut_to_fit("one two three", fits_in(13)) == ["one two three"]


def test_a_text_over_the_cap_is_cut_at_white_space():  # bug 32
    assert cut_to_fit("one two three four", fits_in(12)) == ["one two", " three four"]


def test_a_word_over_the_cap_is_cut_too():
    assert cut_to_fit("abcdefgh", fits_in(3)) == ["ab", "cd", "ef", "gh"]


def test_cutting_ends_where_nothing_fits():
    assert cut_to_fit("abc", lambda texts: False) == ["a", "b", "c"]
    assert cut_to_fit("", lambda texts: False) == [""]
    assert pack_in_order(["ab"], lambda texts: False) == [["a"], ["b"]]


def test_packing_is_greedy_and_keeps_the_order():
    assert pack_in_order(["aa", "bb", "cc", "dd", "ee"], fits_in(6)) == [["aa", "bb"], ["cc", "dd"], ["ee"]]


def test_no_texts_make_no_group():
    assert pack_in_order([], fits_in(5)) == []


def test_identical_texts_over_the_cap_each_go_in_pieces():  # bug 4
    groups = pack_in_order(["word " * 10] * 5, fits_in(30))
    assert all(map(fits_in(30), groups))
    assert "".join(piece for group in groups for piece in group) == "word " * 50


@settings(deadline=None, derandomize=True)
@given(st.lists(st.text(max_size=60), max_size=8), st.integers(1, 40))
@example(["   " * 20], 7)
def test_packing_loses_nothing_and_every_group_fits(texts, cap):  # bugs 5, 32
    fits = fits_in(cap)
    groups = pack_in_order(texts, fits)
    assert all(map(fits, groups))
    assert "".join(piece for group in groups for piece in group) == "".join(texts)
    assert all(text in [piece for group in groups for piece in group] for text in texts if fits([text]))
    first_pieces = [group[0] for group in groups[1:]]
    assert not any(fits([*group, piece]) for group, piece in zip(groups, first_pieces, strict=False))
