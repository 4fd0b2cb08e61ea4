"""JSON lines: how documents, trees, graphs and questions lie on disk, readable in a diff and without pickle."""

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from langchain_core.documents import Document


def write_rows(path: str | Path, rows: Iterable[dict]) -> None:
    """Write a row a line. The file appears whole or not at all; its folder is made if need be."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    try:
        with part.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)  # there only if that failed, for instance on a full disk


def read_rows(path: str | Path) -> list:
    """Return the rows of a file; ValueError if a line is no JSON."""
    # Not splitlines(): it also cuts at the U+2028 and U+0085 of crawled pages.
    return [json.loads(line) for line in Path(path).read_text(encoding="utf-8").split("\n") if line]


def document_rows(documents: Iterable[Document]) -> list[dict]:
    """Return documents as rows, for `row_documents` to read."""
    return [{"text": document.page_content, "metadata": document.metadata} for document in documents]


def row_documents(rows: Sequence[dict]) -> list[Document]:
    """Return the documents of rows; KeyError or TypeError if one is no document with an id."""
    return [Document(row["text"], id=row["metadata"]["id"], metadata=row["metadata"]) for row in rows]
