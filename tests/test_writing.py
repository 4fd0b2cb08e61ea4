"""Summaries that must survive failures. "Bug n" is the number in the bank of faults reported elsewhere."""

import json
import time

import pytest
from fakes import CountingWriter
from langchain_core.runnables import Runnable

from helpers.recording import Journal, NotRecorded
from helpers.summaries import join_passages
from helpers.writing import MAX_STEPS, ClusterWriter, SummaryError

NINE = [[f"cluster{i} first", f"cluster{i} second"] for i in range(9)]


def make(summarise, journal=None, cap=1000, retries=2, backoff=0.0):
    def prompt_tokens(texts):
        return len(join_passages(texts))

    journal = Journal() if journal is None else journal
    return ClusterWriter(summarise, journal, prompt_tokens, cap, retries, backoff)


# Failures


def test_a_writer_that_fails_once_in_nine_calls_is_asked_again():  # bug 8
    writer = CountingWriter(fails=lambda number, texts: number == 4)
    summaries = make(writer).summaries(NINE, level=1)
    assert [text.split()[0] for text in summaries] == [f"cluster{i}" for i in range(9)]
    assert len(writer.calls) == 10
    assert writer.calls[9] == writer.calls[3]


def test_a_cluster_that_always_fails_is_named_and_the_other_eight_are_kept(tmp_path):  # bug 8
    writer = CountingWriter(fails=lambda number, texts: texts == NINE[4])
    journal = Journal(tmp_path / "journal.jsonl")
    message = (
        r"level 1: 1 of 9 summaries failed, the first for the cluster of 2 texts that begins "
        r"'cluster4 first' \(ConnectionError: the writer is out\). The others are kept: run again to go on"
    )
    with pytest.raises(SummaryError, match=message):
        make(writer, journal).summaries(NINE, level=1)
    assert len(writer.calls) == 9 + 2
    lines = [json.loads(line) for line in journal.path.read_text().splitlines()]
    assert [line["value"].split()[0] for line in lines] == [f"cluster{i}" for i in (0, 1, 2, 3, 5, 6, 7, 8)]

    healthy = CountingWriter()
    make(healthy, journal).summaries(NINE, level=1)
    assert healthy.calls == [NINE[4]]


def test_a_writer_that_fails_every_second_call_loses_nothing():  # bug 30
    writer = CountingWriter(fails=lambda number, texts: number % 2 == 0)
    journal = Journal()
    with pytest.raises(SummaryError, match="1 of 9 summaries failed"):  # 9 -> 4 -> 2 -> 1 are open
        make(writer, journal).summaries(NINE, level=1)
    assert len(journal) == 8
    assert len(make(writer, journal).summaries(NINE, level=1)) == 9
    assert len({tuple(texts) for texts in writer.calls}) == 9


def test_an_empty_answer_is_a_failure():
    answers = iter(["", " \n", None, "a summary"])
    writer = make(lambda texts: next(answers), retries=3)
    assert writer.summaries([["text"]], level=1) == ["a summary"]
    for nothing in ("", None):
        with pytest.raises(SummaryError, match=r"begins 'text' \(an empty answer\)"):
            make(lambda texts, nothing=nothing: nothing).summaries([["text"]], level=1)


def test_a_writer_that_times_out_is_asked_again_and_then_named():
    def slow(texts):
        calls.append(texts)
        if len(calls) < answers_at:
            raise TimeoutError("no answer within 60 s")
        return "a summary"

    calls, answers_at = [], 3
    assert make(slow).summaries([["text"]], level=1) == ["a summary"]
    calls, answers_at = [], 4
    with pytest.raises(SummaryError, match=r"begins 'text' \(TimeoutError: no answer within 60 s\)"):
        make(slow).summaries([["text"]], level=1)


def test_an_interruption_is_not_a_failure_to_be_tried_again():
    calls = []

    def interrupted(texts):
        calls.append(texts)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make(interrupted).summaries(NINE, level=1)
    assert len(calls) == 1


def test_retries_wait_twice_as_long_each_time(monkeypatch):
    waits = []
    monkeypatch.setattr(time, "sleep", waits.append)
    writer = CountingWriter(fails=lambda number, texts: True)
    with pytest.raises(SummaryError):
        make(writer, retries=3, backoff=0.5).summaries([["text"]], level=1)
    assert waits == [0.5, 1.0, 2.0]
    assert len(writer.calls) == 4


def test_a_strict_journal_says_what_it_lacks():
    writer = CountingWriter()
    with pytest.raises(NotRecorded, match="a summary of level 2 is not recorded"):
        make(writer, Journal(strict=True)).summaries([["text"]], level=2)
    assert writer.calls == []


def test_a_writer_that_may_only_replay_says_what_it_lacks():
    def replaying(texts):
        raise NotRecorded("an answer to 'text' is not recorded")

    with pytest.raises(NotRecorded, match="an answer to 'text' is not recorded"):
        make(replaying).summaries([["text"]], level=1)


# The journal


def test_equal_clusters_are_written_once():
    writer = CountingWriter()
    first, second, third = make(writer).summaries([["same"], ["other"], ["same"]], level=1)
    assert first == third != second
    assert sorted(writer.calls) == [["other"], ["same"]]


def test_a_journal_does_not_answer_for_another_writer():
    journal = Journal()
    for identity in ("one model", "another model", "one model"):
        writer = CountingWriter()
        writer.identity = identity
        make(writer, journal).summaries(NINE, level=1)
    assert len(journal) == 18
    assert writer.calls == []


# Batches


class BatchWriter(Runnable[list[str], str]):
    batch_size = 4

    def __init__(self):
        self.batches = []

    def invoke(self, input, config=None, **kwargs):
        raise AssertionError("clusters must come in batches")

    def batch(self, inputs, config=None, **kwargs):
        self.batches.append(inputs)
        return [f"summary of {texts[0]}" for texts in inputs]


def test_a_runnable_gets_batches_of_like_length():
    writer = BatchWriter()
    clusters = [["x" * length] for length in (5, 50, 6, 60, 7, 70)]
    summaries = make(writer).summaries(clusters, level=1)
    assert [[len(texts[0]) for texts in batch] for batch in writer.batches] == [[5, 6, 7, 50], [60, 70]]
    assert summaries == [f"summary of {texts[0]}" for texts in clusters]  # in the order of the clusters


def test_a_plain_function_gets_one_cluster_at_a_time():
    writer = CountingWriter()
    make(writer).summaries(NINE, level=1)
    assert writer.calls == NINE


# Over the cap


def test_a_cluster_over_the_cap_is_summarised_in_steps_and_read_whole():  # bug 32
    words = [f"word{i}" for i in range(100)]
    writer = CountingWriter()
    [text] = make(writer, cap=60).summaries([[" ".join(words[:70]), " ".join(words[70:])]], level=1)
    assert all(len(join_passages(texts)) <= 60 for texts in writer.calls)
    read = " ".join(piece.strip() for texts in writer.calls for piece in texts)
    assert set(words) <= set(read.split())
    assert text.startswith("word0 ")


def test_steps_do_not_touch_the_clusters_within_the_cap():
    writer = CountingWriter()
    clusters = [["long " * 30], ["short"]]
    make(writer, cap=60).summaries(clusters, level=1)
    assert writer.calls.count(["short"]) == 1
    assert clusters == [["long " * 30], ["short"]], "the caller's lists are its own"


def test_identical_texts_over_the_cap_end():  # bug 4
    writer = CountingWriter()
    assert len(make(writer, cap=60).summaries([["the same words again " * 10] * 5], level=1)) == 1
    assert all(len(join_passages(texts)) <= 60 for texts in writer.calls)


@pytest.mark.filterwarnings("error")
def test_the_last_round_of_steps_counts_too():
    writer = CountingWriter()
    by_number = ClusterWriter(writer, Journal(), prompt_tokens=len, max_prompt_tokens=2)
    by_number.summaries([[f"text{i}" for i in range(2 ** (MAX_STEPS + 1))]], level=1)  # 32, 16, 8, 4, 2
    assert len(writer.calls) == 16 + 8 + 4 + 2 + 1


@pytest.mark.parametrize("echo", [join_passages, lambda texts: "I was asked: " + join_passages(texts)])
def test_a_writer_that_echoes_ends_and_says_so(echo):
    calls = []

    def writer(texts):
        calls.append(texts)
        return echo(texts)

    with pytest.warns(
        UserWarning, match=f"level 1: after {MAX_STEPS} rounds the writer's summaries are still over"
    ):
        assert len(make(writer, cap=50).summaries([["some words " * 20]], level=1)) == 1
    assert all(len(join_passages(texts)) <= 50 for texts in calls)


def test_a_cap_without_room_for_text_is_refused():
    """Else every character of a text would be a call of its own."""
    with pytest.raises(ValueError, match="max_prompt_tokens=50 leaves no room for text: .* has 76 tokens"):
        ClusterWriter(CountingWriter(), Journal(), lambda texts: 75 + len(join_passages(texts)), 50)
