"""Sets: a folder of documents and questions, read and checked.

``docs.jsonl`` holds {id, title, text, tier}; ``questions.jsonl`` holds {id, question, answers, type, tier}, and as far
as the set has them: doc_id (the document that the question is about), evidence [{doc_id, text, start?}], options and
answer_index.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from langchain_core.documents import Document

from helpers.jsonlines import read_rows

TIERS = ("mini", "rest", "full")


@dataclass(frozen=True)
class Passage:
    """A gold passage: characters ``start`` to ``end`` of a document."""

    doc_id: str
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Question:
    """A question with its gold answers (the first is the one that likelihoods are taken of)."""

    id: str
    kind: str
    text: str
    answers: tuple[str, ...]
    doc_id: str | None = None
    evidence: tuple[Passage, ...] = ()
    options: tuple[str, ...] = ()
    answer_index: int | None = None


@dataclass(frozen=True)
class PublicSet:
    """Documents (metadata: ``source``, which is their id, and ``title``) and questions about them."""

    name: str
    documents: tuple[Document, ...]
    questions: tuple[Question, ...]

    @property
    def is_pooled(self) -> bool:
        """Whether questions are asked of all documents together, since one of them names no document."""
        return any(question.doc_id is None for question in self.questions)


def load_set(folder: str | Path, tier: str = "full") -> PublicSet:
    """Read a set.

    Parameters
    ----------
    folder : path
    tier : {"mini", "rest", "full"}
        ``mini`` keeps only the documents and questions of that tier, ``rest`` only the others: what was chosen on the
        one is confirmed on the other.

    Raises
    ------
    ValueError
        If a file is missing or ill-formed, an id stands twice, a question names a document that is not there, or a
        gold passage does not stand in its document. The message names the file and the id.
    """
    folder = Path(folder)
    if tier not in TIERS:
        raise ValueError(f"no tier {tier!r}: choose one of {', '.join(TIERS)}")
    documents = [_document(row) for row in _rows(folder, "docs.jsonl", ("id", "text"), tier)]
    texts = {document.metadata["source"]: document.page_content for document in documents}
    needed = ("id", "question", "answers", "type")
    questions = [_question(row, texts) for row in _rows(folder, "questions.jsonl", needed, tier)]
    return PublicSet(folder.resolve().name, tuple(documents), tuple(questions))


def _rows(folder, name, needed, tier):
    """Return the rows of a file that belong to a tier, each with the fields that it needs."""
    if not (folder / name).exists():
        raise ValueError(f"{folder} has no {name}: see benchmarks/public/sets.py for the format")
    try:
        rows = read_rows(folder / name)
    except ValueError as error:
        raise ValueError(f"{name} of {folder.name}: a line is no JSON ({error})") from error
    for number, row in enumerate(rows, 1):
        missing = [field for field in needed if not isinstance(row, dict) or not row.get(field)]
        if missing:
            raise ValueError(f"{name} of {folder.name}, row {number}: no {', '.join(missing)}")
    twice = [row_id for row_id, count in Counter(row["id"] for row in rows).items() if count > 1]
    if twice:
        raise ValueError(f"{name} of {folder.name}: the same id twice: {', '.join(twice[:5])}")
    kept = [row for row in rows if tier == "full" or (row.get("tier") == "mini") == (tier == "mini")]
    if not kept:
        raise ValueError(f"{name} of {folder.name} has no row of tier {tier}")
    return kept


def _document(row):
    return Document(row["text"], metadata={"source": row["id"], "title": row.get("title", row["id"])})


def _question(row, texts):
    doc_id = row.get("doc_id")
    if doc_id is not None and doc_id not in texts:
        raise ValueError(f"question {row['id']}: no document {doc_id} (in this tier)")
    options, answer_index = tuple(row.get("options", ())), row.get("answer_index")
    if options and answer_index not in range(len(options)):
        raise ValueError(f"question {row['id']}: answer_index {answer_index} for {len(options)} options")
    evidence = tuple(_passage(entry, texts, row["id"]) for entry in row.get("evidence", ()))
    answers = tuple(row["answers"])
    return Question(row["id"], row["type"], row["question"], answers, doc_id, evidence, options, answer_index)


def _passage(entry, texts, question_id):
    doc_id, text = entry["doc_id"], entry["text"]
    if doc_id not in texts:
        raise ValueError(f"question {question_id}: no document {doc_id} (in this tier)")
    start = entry.get("start", texts[doc_id].find(text))
    if start < 0 or not texts[doc_id].startswith(text, start):
        raise ValueError(f"question {question_id}: the evidence {text[:40]!r} does not stand in {doc_id}")
    return Passage(doc_id, start, start + len(text), text)
