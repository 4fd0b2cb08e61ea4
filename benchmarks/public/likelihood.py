"""Likelihood: what a context is worth to a reader, by how likely it makes the gold answer. Nothing is generated."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from langchain_core.documents import Document

from helpers.recording import Journal, content_key
from helpers.summaries import join_passages
from public.runs import Context
from public.sets import Question


class Reader(Protocol):
    """A model that says how likely an answer is after a prompt, such as `helpers.likelihood.Reader`."""

    identity: str

    def log_likelihoods(self, prompt: str, continuations: list[str]) -> list[float]:
        """Return the sum of the log-probabilities, in nats, of each continuation's tokens."""

    def count_tokens(self, text: str) -> int: ...


class Scorer:
    """A reader with a journal: the same question over the same context is read once, whatever system found it.

    Parameters
    ----------
    reader : Reader
    journal : Journal
        It keeps numbers, no text.
    """

    def __init__(self, reader: Reader, journal: Journal):
        self.reader, self.journal = reader, journal

    def score(self, question: Question, hits: Sequence[Document]) -> dict:
        """Return the measures of a context.

        Returns
        -------
        dict of str to float
            ``gain``: nats a token by which the context makes the first gold answer likelier than no context does.
            With options also ``correct``: 1 if the right option is the likeliest, in nats a token of the option (of
            equal ones the first), else 0; and ``correct by gain``: 1 if it is the one that the context makes likelier
            by most (Holtzman et al., EMNLP 2021), so that an option does not win by its wording alone.
        """
        gold = question.answer_index if question.options else 0
        texts = list(question.options or question.answers[:1])
        with_context = self._per_token(prompt(question.text, hits), texts)
        without = self._per_token(prompt(question.text, []), texts)
        gains = [with_ - alone for with_, alone in zip(with_context, without, strict=True)]
        if not question.options:
            return {"gain": gains[gold]}
        return {
            "gain": gains[gold],
            "correct": float(_first_best(with_context) == gold),
            "correct by gain": float(_first_best(gains) == gold),
        }

    def _per_token(self, prompt, texts):
        key = content_key("log-likelihoods", self.reader.identity, prompt, texts)
        sums = self.journal.get(key)
        if sums is None:
            sums = [round(value, 4) for value in self.reader.log_likelihoods(prompt, texts)]
            self.journal.put(key, sums)
        return [
            value / max(1, self.reader.count_tokens(text)) for value, text in zip(sums, texts, strict=True)
        ]


def _first_best(values):
    return values.index(max(values))


def prompt(question: str, hits: Sequence[Document]) -> str:
    """Return what the reader is asked; without hits the question alone."""
    text = join_passages([hit.page_content for hit in hits])
    return f"{text}\n\nQuestion: {question}" if hits else f"Question: {question}"


def scored(contexts: Iterable[Context], scorer: Scorer) -> Iterator[dict]:
    """Yield a row of likelihood measures for each context."""
    for context in contexts:
        measures = scorer.score(context.question, context.hits)
        yield context.about | {name: round(value, 6) for name, value in measures.items()}
