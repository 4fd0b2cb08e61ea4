"""Judging: a model compares two answers, blind, in both orders, in JSON that is checked before it counts."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import json_repair
from langchain_core.prompts import PromptTemplate
from pydantic import BaseModel, Field, ValidationError

# The values of the skeleton are no valid verdict, so that one that is echoed is never taken for one.
JUDGE_PROMPT = PromptTemplate.from_template(
    """Two answers to one question about the Hugging Face libraries. Score each from 1 to 10 on relevance, \
depth and coherence, then name the better one. An answer that is wrong or beside the question scores low, \
however long it is.

Question: {question}

Answer A:
{answer_a}

Answer B:
{answer_b}

Reply with one JSON object of this form and nothing else:
{{"justification": "<one sentence>", "scores": \
{{"answer_a": {{"relevance": <1-10>, "depth": <1-10>, "coherence": <1-10>}}, \
"answer_b": {{"relevance": <1-10>, "depth": <1-10>, "coherence": <1-10>}}}}, "winner": "<A, B or tie>"}}"""
)

UNPARSED = "unparsed"


class Marks(BaseModel):
    """Scores of one answer, 1 to 10."""

    relevance: int = Field(ge=1, le=10)
    depth: int = Field(ge=1, le=10)
    coherence: int = Field(ge=1, le=10)


class Scores(BaseModel):
    """Scores of both answers."""

    answer_a: Marks
    answer_b: Marks


class Verdict(BaseModel):
    """What a judge said of two answers that it saw as A and B."""

    winner: Literal["A", "B", "tie"]
    justification: str = Field(min_length=1)
    scores: Scores


@dataclass(frozen=True)
class PairVerdict:
    """The outcome of two looks at one pair.

    Attributes
    ----------
    winner : str
        ``a`` or ``b`` if both orders agree on it; ``tie`` if they say so or disagree; ``unparsed`` if either
        verdict could not be read.
    looks : tuple of (Verdict or None)
        First with a shown as A, then with b shown as A.
    """

    winner: str
    looks: tuple[Verdict | None, Verdict | None]


def judge_pair(question: str, answer_a: str, answer_b: str, judge) -> PairVerdict:
    """Compare two answers; see `judge_pairs`."""
    return judge_pairs([(question, answer_a, answer_b)], judge)[0]


def judge_pairs(pairs: Sequence[tuple[str, str, str]], judge) -> list[PairVerdict]:
    """Compare (question, answer a, answer b) triples.

    The judge is not told which system wrote what, and sees each pair in both orders: small judges favour a
    place.

    Parameters
    ----------
    pairs : sequence of (str, str, str)
    judge : Runnable of str to str
    """
    prompts = []
    for question, a, b in pairs:
        prompts.append({"question": question, "answer_a": a, "answer_b": b})
        prompts.append({"question": question, "answer_a": b, "answer_b": a})
    verdicts = [parse_verdict(text) for text in (JUDGE_PROMPT | judge).batch(prompts)]
    return [_joined(*verdicts[i : i + 2]) for i in range(0, len(verdicts), 2)]


def parse_verdict(text: str) -> Verdict | None:
    """Return the verdict in a judge's output, or None if there is not exactly one.

    Fences, prose around the object, single quotes, trailing commas and raw line breaks are read; a truncated
    object, the echoed skeleton, and two objects that differ are not.
    """
    found = [verdict for verdict in map(_validated, _objects(text)) if verdict]
    return found[0] if found and all(verdict == found[0] for verdict in found) else None


def _objects(text):
    """Yield each object that stands whole in a text: as JSON, or as what can be repaired to JSON."""
    decoder, at = json.JSONDecoder(strict=False), 0
    while (at := text.find("{", at)) >= 0:
        try:
            value, at = decoder.raw_decode(text, at)
            yield value
        except ValueError:
            if end := _closing(text, at):
                yield json_repair.loads(text[at:end])
            at = end or at + 1


def _closing(text, at):
    """Return where the brace that opens at `at` is closed, None if it never is."""
    depth = 0
    for brace in re.finditer(r"[{}]", text[at:]):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return at + brace.end()
    return None


def _validated(value):
    try:
        return Verdict.model_validate(value)
    except ValidationError:
        return None


def _joined(first, second):
    if first is None or second is None:
        return PairVerdict(UNPARSED, (first, second))
    seen = {"A": "a", "B": "b", "tie": "tie"}[first.winner], {"A": "b", "B": "a", "tie": "tie"}[second.winner]
    return PairVerdict(seen[0] if seen[0] == seen[1] else "tie", (first, second))
