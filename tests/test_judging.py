"""Judging: what counts as a verdict, and what two looks at one pair add up to."""

import json

import pytest
from langchain_core.runnables import RunnableLambda

from helpers.judging import JUDGE_PROMPT, UNPARSED, judge_pair, judge_pairs, parse_verdict

MARKS = {"relevance": 8, "depth": 7, "coherence": 9}
LOW = {"relevance": 3, "depth": 2, "coherence": 4}


def verdict(winner="A", justification="It is right."):
    return {"justification": justification, "scores": {"answer_a": MARKS, "answer_b": LOW}, "winner": winner}


PLAIN = json.dumps(verdict())
SKELETON = JUDGE_PROMPT.format(question="q", answer_a="a", answer_b="b").split("nothing else:\n")[1]


# One output.


@pytest.mark.parametrize(
    "output",
    [
        PLAIN,
        json.dumps(verdict(), indent=2),
        f"```json\n{PLAIN}\n```",
        f"Here is my verdict:\n{PLAIN}\nI hope that helps.",
        f"The set {{1, 2}} aside, I say: {PLAIN}",
        PLAIN.replace('"', "'"),
        PLAIN[:-1] + ",}",
        PLAIN.replace("}}", ",}}"),
        f"{PLAIN}\n{PLAIN}",  # said twice, once meant
        f"{SKELETON}\n{PLAIN}",  # the skeleton first, then a verdict
    ],
    ids=[
        "plain",
        "indented",
        "fenced",
        "prose",
        "prose with braces",
        "single quotes",
        "trailing comma",
        "inner comma",
    ]
    + ["repeated", "after the skeleton"],
)
def test_readable_verdicts(output):
    # Bug bank 26.
    found = parse_verdict(output)
    assert found.winner == "A"
    assert found.justification == "It is right."
    assert found.scores.answer_a.model_dump() == MARKS
    assert found.scores.answer_b.model_dump() == LOW


def test_a_raw_line_break_in_a_string_is_read():
    # Bug bank 26.
    output = PLAIN.replace("It is right.", "It is right.\nAnd short.")
    assert parse_verdict(output).justification == "It is right.\nAnd short."


def test_braces_in_the_justification_are_text():
    assert parse_verdict(json.dumps(verdict(justification="A writes {x}, B forgets the }."))).winner == "A"


WINNER_FIRST = json.dumps({"winner": "A", **{key: verdict()[key] for key in ("justification", "scores")}})


@pytest.mark.parametrize("cut", range(1, len(PLAIN)))
def test_a_truncated_verdict_is_none(cut):
    # Bug bank 26: at whatever character it was cut, also after the winner was named.
    assert parse_verdict(PLAIN[:cut]) is None
    assert parse_verdict(WINNER_FIRST[:cut]) is None


@pytest.mark.parametrize(
    "output",
    [
        "",
        "Answer A is better.",
        "{}",
        "[1, 2]",
        SKELETON,
        f"```json\n{SKELETON}\n```",
        # Two that contradict each other, in any spelling.
        f"{PLAIN}\n{json.dumps(verdict('B'))}",
        f"{PLAIN}\n{json.dumps(verdict('B'))}".replace('"', "'"),
        PLAIN + json.dumps(verdict("B")).replace('"', "'"),
        # Values out of range, or missing.
        PLAIN.replace("8", "11"),
        PLAIN.replace("8", "0"),
        PLAIN.replace("8", '"high"'),
        PLAIN.replace('"A"', '"RAPTOR"'),
        PLAIN.replace('"A"', "null"),
        PLAIN.replace("It is right.", ""),
        json.dumps({"winner": "A"}),
        json.dumps({"winner": "A", "justification": "x", "scores": {"answer_a": MARKS}}),
    ],
)
def test_what_is_no_verdict(output):
    # Bug bank 26: unparsed, never a win; the echoed skeleton is never taken.
    assert parse_verdict(output) is None


# Two looks at one pair.


class Judge:
    """Replies by a function of (answer shown as A, answer shown as B); remembers the prompts."""

    def __init__(self, decide):
        self.decide, self.prompts = decide, []
        self.runnable = RunnableLambda(self._reply)

    def _reply(self, prompt):
        text = prompt.to_string()
        self.prompts.append(text)
        shown_a, shown_b = text.split("Answer A:\n")[1].split("\n\nReply with")[0].split("\n\nAnswer B:\n")
        return self.decide(shown_a, shown_b)


def outcome(decide):
    return judge_pair("q", "good", "bad", Judge(decide).runnable).winner


def say(winner):
    return json.dumps(verdict(winner))


def test_a_judge_that_agrees_with_itself_decides():
    assert outcome(lambda a, b: say("A" if a == "good" else "B")) == "a"
    assert outcome(lambda a, b: say("A" if a == "bad" else "B")) == "b"


@pytest.mark.parametrize("place", ["A", "B"])
def test_a_judge_that_favours_a_place_gives_a_tie(place):
    assert outcome(lambda a, b: say(place)) == "tie"


def test_a_judge_that_ties_gives_a_tie():
    assert outcome(lambda a, b: say("tie")) == "tie"


def test_a_win_in_one_order_and_a_tie_in_the_other_is_a_tie():
    assert outcome(lambda a, b: say("A" if a == "good" else "tie")) == "tie"


def test_one_unreadable_look_leaves_the_pair_unparsed():
    result = judge_pair(
        "q", "good", "bad", Judge(lambda a, b: say("A") if a == "good" else "I prefer B.").runnable
    )
    assert result.winner == UNPARSED
    assert result.looks[0].winner == "A"
    assert result.looks[1] is None


def test_the_judge_sees_both_orders_and_no_name_of_a_system():
    judge = Judge(lambda a, b: say("tie"))
    judge_pair("What is a tokenizer?", "first", "second", judge.runnable)
    straight, swapped = judge.prompts
    assert "Question: What is a tokenizer?\n\nAnswer A:\nfirst\n\nAnswer B:\nsecond\n" in straight
    assert "Question: What is a tokenizer?\n\nAnswer A:\nsecond\n\nAnswer B:\nfirst\n" in swapped
    assert not any(
        name in prompt.lower() for prompt in judge.prompts for name in ("raptor", "rag", "leaf", "tree")
    )


def test_several_pairs_keep_their_order():
    judge = Judge(lambda a, b: say("A" if a == "good" else "B" if b == "good" else "tie"))
    pairs = [("q1", "good", "bad"), ("q2", "same", "same"), ("q3", "bad", "good")]
    assert [result.winner for result in judge_pairs(pairs, judge.runnable)] == ["a", "tie", "b"]


def test_no_pairs_no_verdicts():
    assert judge_pairs([], Judge(lambda a, b: say("A")).runnable) == []
