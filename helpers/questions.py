"""Questions: what is asked, what a right answer must say, and the quotes that it must stand on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from langchain_core.documents import Document

from helpers.jsonlines import read_rows


@dataclass(frozen=True)
class Evidence:
    """A gold quote: characters ``start`` to ``end`` of the page at ``source``."""

    source: str
    start: int
    end: int
    quote: str


@dataclass(frozen=True)
class Question:
    """A question with what a right answer must say and must stand on."""

    id: str
    kind: str
    text: str
    keywords: Mapping[str, Sequence[str]]
    """Required keywords, each with its aliases."""
    evidence: list[Evidence] = field(default_factory=list)
    role: str | None = None


def load_questions(path: str | Path, pages: Sequence[Document]) -> list[Question]:
    """Read questions and find their quotes in the crawled pages.

    Raises
    ------
    ValueError
        If a quote does not stand literally in its page.
    """
    rows = read_rows(path)
    return [
        Question(
            row["id"],
            row["kind"],
            row["question"],
            {entry["keyword"]: entry["aliases"] for entry in row["keywords"]},
            [_located(entry, pages, row["id"]) for entry in row["evidence"]],
            row.get("role"),
        )
        for row in rows
    ]


def _located(entry, pages, question_id):
    for page in pages:
        source = page.metadata["source"]
        start = page.page_content.find(entry["quote"]) if source.endswith("/" + entry["page"]) else -1
        if start >= 0:
            return Evidence(source, start, start + len(entry["quote"]), entry["quote"])
    raise ValueError(f"question {question_id}: the quote {entry['quote'][:50]!r} is not on {entry['page']}")
