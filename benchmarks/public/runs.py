"""Runs: every question asked of every system within every budget, a row of numbers each."""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from langchain_core.documents import Document
from tqdm.auto import tqdm

from public.corpora import Corpus
from public.measures import measure
from public.sets import PublicSet, Question
from public.settings import Settings
from public.systems import SYSTEMS, trees_needed


class Context(NamedTuple):
    """What a system found for a question within a budget of tokens, and in how many seconds."""

    question: Question
    system: str
    budget: int
    hits: list[Document]
    seconds: float

    @property
    def about(self) -> dict:
        """The columns that every row of measures begins with."""
        question = self.question
        return {
            "question": question.id,
            "kind": question.kind,
            "system": self.system,
            "budget": self.budget,
        }


class Run:
    """A set under some settings; its trees are built, or read from their journals, as they are needed.

    Parameters
    ----------
    data : PublicSet
    settings : Settings
    folder : path
        For journals and rows.
    systems : sequence of str
        Keys of `SYSTEMS`.
    budgets : sequence of int
        In tokens.
    """

    def __init__(self, data: PublicSet, settings: Settings, folder: Path, systems, budgets: Sequence[int]):
        unknown = [name for name in systems if name not in SYSTEMS]
        if unknown:
            raise ValueError(f"no system {', '.join(unknown)}: choose among {', '.join(SYSTEMS)}")
        self.data, self.settings, self.folder = data, settings, Path(folder)
        self.systems, self.budgets = list(systems), list(budgets)
        self.corpora = {
            name: Corpus(pages, settings, self.folder / "trees" / f"{quote(name, safe='')}.jsonl")
            for name, pages in self._pages()
        }

    def _pages(self):
        if self.data.is_pooled:
            return [("pool", self.data.documents)]
        asked = {question.doc_id for question in self.data.questions}
        pages = {page.metadata["source"]: page for page in self.data.documents}
        return [(name, [page]) for name, page in pages.items() if name in asked]

    def questions(self, name: str) -> list[Question]:
        """Return the questions about a corpus."""
        return [q for q in self.data.questions if self.data.is_pooled or q.doc_id == name]

    def rows(self, progress: bool = True) -> Iterator[dict]:
        """Yield a row a question, system and budget: ids and numbers, no text."""
        with tqdm(self.corpora.items(), desc=self.data.name, unit="document", disable=not progress) as bar:
            for name, corpus in bar:
                for context in self.contexts(name):
                    yield self._row(corpus, context)

    def contexts(self, name: str, systems=None, budgets=None) -> Iterator[Context]:
        """Yield the contexts of one corpus, for all systems and budgets of the run, or for some."""
        corpus, questions = self.corpora[name], self.questions(name)
        # Embedded beforehand: it is the same for every system.
        self.settings.embedder.embed_documents([question.text for question in questions])
        for system in systems or self.systems:
            for budget in budgets or self.budgets:
                limit = {"token_budget": budget, "count_tokens": corpus.count_tokens}
                retriever = SYSTEMS[system].make(corpus, limit)
                for question in questions:
                    started = time.perf_counter()
                    hits = retriever.invoke(question.text)
                    yield Context(question, system, budget, hits, time.perf_counter() - started)

    def all_contexts(self, systems, budgets) -> Iterator[Context]:
        """Yield the `contexts` of all corpora."""
        for name in self.corpora:
            yield from self.contexts(name, systems, budgets)

    def _row(self, corpus, context):
        tokens = [corpus.count_tokens(hit.page_content) for hit in context.hits]
        levels = [hit.metadata["level"] for hit in context.hits]
        sizes = {
            "tokens": sum(tokens),
            "summary tokens": sum(n for n, level in zip(tokens, levels, strict=True) if level > 0),
            "ms": round(1000 * context.seconds, 2),
        }
        tree = tree_of(corpus, context.system)
        found = measure(context.question, context.hits, tree, self.data.is_pooled)
        return context.about | sizes | {name: round(value, 6) for name, value in found.items()}

    def costs(self) -> dict:
        """Return what the trees took to build, summed over the corpora: calls, tokens, seconds."""
        return {
            kind: _summed(corpus.cost(kind) for corpus in self.corpora.values())
            for kind in trees_needed(self.systems)
        }


def tree_of(corpus: Corpus, system: str):
    """Return the tree that a system reads, None if it reads none."""
    kind = SYSTEMS[system].tree
    return corpus.tree_of(kind) if kind else None


def _summed(costs):
    costs = list(costs)
    return {name: round(sum(cost[name] for cost in costs), 1) for name in costs[0]}
