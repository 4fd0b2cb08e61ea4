"""Budget: the base of all retrievers, a ranking read up to k hits or a token budget."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, model_validator

Hit = tuple[Document, float]
Ranked = Iterable[Hit]

LOOKAHEAD = 1000
"""Hits in a row that do not fit, after which reading ends: a budget is hardly ever filled to the last token."""


@runtime_checkable
class Ranker(Protocol):
    """Whatever orders documents by a question: an index, or a `BudgetRetriever`."""

    def ranked(self, question: str) -> Ranked: ...


class BudgetRetriever(BaseRetriever):
    """Base of all retrievers: a ranking, read up to ``k`` hits or up to ``token_budget`` tokens.

    Parameters
    ----------
    k : int, optional
        5 if neither limit is given. Giving both is an error.
    token_budget : int, optional
        Tokens of all hits together. A count of nodes favours systems with long nodes; a budget is the same
        for all.
    count_tokens : callable, optional
        Needed with a token budget.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    k: int | None = None
    token_budget: int | None = None
    count_tokens: Callable[[str], int] | None = None

    @model_validator(mode="after")
    def _one_limit(self):
        if self.k is not None and self.token_budget is not None:
            raise ValueError("give k or token_budget, not both")
        if self.token_budget is not None and self.count_tokens is None:
            raise ValueError("a token budget needs count_tokens")
        if self.k is None and self.token_budget is None:
            self.k = 5
        return self

    def ranked(self, question: str) -> Ranked:
        """Return (document, score) pairs, the best first."""
        raise NotImplementedError

    def _get_relevant_documents(self, query: str, *, run_manager: Any = None) -> list[Document]:
        return self.read(self.ranked(query))

    def read(self, ranked: Ranked) -> list[Document]:
        """Return the hits within the limit, with ``score``, ``level`` and ``sources`` in their metadata."""
        return [_hit(document, score) for document, score in self._chosen(ranked)]

    def _chosen(self, ranked):
        if self.k is not None:
            return within(ranked, self.k, lambda document: 1, self._is_waste)
        return within(ranked, self.token_budget, self._tokens, self._is_waste)

    def _tokens(self, document):
        return self.count_tokens(document.page_content)

    def _is_waste(self, document, chosen):
        return False


def _hit(document, score):
    sources = document.metadata.get("sources") or [document.metadata.get("source")]
    about = {"score": round(score, 6), "level": document.metadata.get("level", 0), "sources": sources}
    return document.model_copy(update={"metadata": document.metadata | about})


def within(
    ranked: Ranked,
    limit: int,
    cost: Callable[[Document], int],
    is_waste: Callable[[Document, Mapping[str, Document]], bool],
) -> Iterator[Hit]:
    """Yield hits while they fit; one that does not is skipped, since a smaller one may follow soon.

    Parameters
    ----------
    ranked : iterable of (Document, float)
    limit : int
        For the costs of all hits together.
    cost : callable
    is_waste : callable
        Whether a document adds nothing to those chosen already, which it gets by id; it is skipped then.
    """
    chosen, left, skipped = {}, limit, 0
    for document, score in ranked:
        price, skipped = cost(document), skipped + 1
        if price <= left and not is_waste(document, chosen):
            left, skipped = left - price, 0
            chosen[document.metadata["id"]] = document
            yield document, score
        if left <= 0 or skipped == LOOKAHEAD:
            return
