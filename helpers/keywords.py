"""Keywords: BM25 over tokens that keep code names whole and in parts, and reciprocal rank fusion."""

import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from itertools import islice
from pathlib import Path

import bm25s
import numpy as np
from langchain_core.documents import Document

from helpers.jsonlines import document_rows, read_rows, row_documents, write_rows

# Scripts that are written without spaces: ideographs, kana, hangul.
_CJK = (
    "\u3005-\u3007\u3040-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff"
)
_PIECE = re.compile(rf"(?P<cjk>[{_CJK}]+)|[^\W{_CJK}]+(?:\.[^\W{_CJK}]+)*")
# Between save and pretrained, Auto and Model, and LM and Head (of LMHead).
_PART = re.compile(r"_|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")

# Documents that are sorted before all others.
FIRST = 1000


class KeywordIndex:
    """Documents by BM25 (bm25s, Lucene's variant, k1 1.5, b 0.75).

    Parameters
    ----------
    documents : sequence of Document
        With distinct ``id`` in their metadata; may be empty.

    Raises
    ------
    ValueError
        If two documents share an id.
    """

    def __init__(self, documents: Sequence[Document]):
        self.documents = list(documents)
        ids = [document.metadata["id"] for document in self.documents]
        if len(set(ids)) < len(ids):
            twice = sorted({i for i in ids if ids.count(i) > 1})
            raise ValueError(f"the same id twice: {', '.join(twice[:5])}")
        self._bm25 = _fit([keyword_tokens(document.page_content) for document in self.documents])

    def __len__(self) -> int:
        return len(self.documents)

    def search(self, question: str, k: int = 5) -> list[tuple[Document, float]]:
        """Return the k best documents with their scores; fewer if fewer share a token with the question."""
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        return list(islice(self.ranked(question), k))

    @cached_property
    def _id_rank(self) -> np.ndarray:
        ids = np.array([document.metadata["id"] for document in self.documents])
        return np.argsort(np.argsort(ids))

    def ranked(self, question: str) -> Iterator[tuple[Document, float]]:
        """Yield all documents that share a token with the question, the best first, ties by id."""
        tokens = keyword_tokens(question)
        if self._bm25 is None or not tokens:
            return
        scores = self._bm25.get_scores(tokens)  # (documents,)
        # A document of score 0 has no word of the question; in a fusion it would vote all the same.
        rows = np.flatnonzero(scores)
        keys = np.round(scores[rows], 6)
        # Sorting all would take longer than scoring them, and hardly a reader gets past the first.
        cut = np.partition(keys, -FIRST)[-FIRST] if len(keys) > FIRST else 0
        for part in (keys >= cut, keys < cut):
            best = np.lexsort((self._id_rank[rows[part]], -keys[part]))
            yield from ((self.documents[row], float(scores[row])) for row in rows[part][best])

    def save(self, folder: str | Path) -> None:
        """Write the documents as JSON lines and the scores as bm25s does, in arrays and JSON."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        # Written last: a folder without it is known to be half-written.
        (folder / "keywords.json").unlink(missing_ok=True)
        if self._bm25 is not None:
            self._bm25.save(folder, allow_pickle=False, show_progress=False)
        write_rows(folder / "documents.jsonl", document_rows(self.documents))
        about = {"documents": len(self), "has_tokens": self._bm25 is not None}
        (folder / "keywords.json").write_text(json.dumps(about), encoding="utf-8")

    @classmethod
    def load(cls, folder: str | Path) -> "KeywordIndex":
        """Read an index that `save` wrote; nothing in the folder is executed.

        Raises
        ------
        ValueError
            If the folder is incomplete.
        """
        folder, index = Path(folder), cls([])
        try:
            about = json.loads((folder / "keywords.json").read_text(encoding="utf-8"))
            index.documents = row_documents(read_rows(folder / "documents.jsonl"))
            if about["has_tokens"]:
                index._bm25 = bm25s.BM25.load(folder, allow_pickle=False, show_progress=False)
        except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{folder.name} is not a whole index ({error}): build it again") from error
        scored = index._bm25.scores["num_docs"] if index._bm25 else about["documents"]
        if not len(index) == scored == about["documents"]:
            raise ValueError(f"{folder.name} holds scores of {scored} for {len(index)} texts: build it again")
        return index


def keyword_tokens(text: str) -> list[str]:
    """Return the tokens of a text, in order, case folded.

    A code name comes whole and in parts, so that both spellings of a question find it: ``save_pretrained``
    gives save_pretrained, save, pretrained; ``AutoModel`` gives automodel, auto, model; a dotted name also
    each of its names. Text without spaces (Chinese, Japanese, Korean) gives pairs of neighbouring
    characters; a character that stands alone gives itself.
    """
    tokens = []
    for piece in _PIECE.finditer(unicodedata.normalize("NFKC", text)):
        tokens += _pairs(piece[0]) if piece["cjk"] else _dotted(piece[0])
    return tokens


def rrf(rankings: Iterable[Iterable[str]], k: int = 60) -> list[tuple[str, float]]:
    """Join rankings by reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009).

    Each ranking gives ``1 / (k + rank)`` to each of its ids, ranks counted from 1. An id counts once per
    ranking, at its first rank.

    Parameters
    ----------
    rankings : iterable of iterables of str
        Ids, the best first. They may be empty, and differ in length and in what they hold.
    k : int
        The larger, the less a first place counts.

    Returns
    -------
    list of (str, float)
        Ids with their sums, the highest first; equal sums are ordered by id, so that reruns agree.
    """
    sums = defaultdict(Fraction)  # exact, so that a tie is a tie in whatever order it was summed
    for ranking in rankings:
        first = {}
        for rank, item in enumerate(ranking, start=1):
            first.setdefault(item, rank)
        for item, rank in first.items():
            sums[item] += Fraction(1, k + rank)
    return [(item, float(sums[item])) for item in sorted(sums, key=lambda item: (-sums[item], item))]


def _fit(token_lists):
    """Return BM25 over lists of tokens; None if there is no token at all, which bm25s cannot index."""
    if not any(token_lists):
        return None
    bm25 = bm25s.BM25()
    bm25.index(token_lists, show_progress=False)
    return bm25


def _pairs(run):
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def _dotted(word):
    names = word.split(".")
    tokens = [token for name in names for token in _whole_and_parts(name)]
    return tokens if len(names) == 1 else [word.casefold(), *tokens]


def _whole_and_parts(name):
    whole, parts = name.casefold(), [part.casefold() for part in _PART.split(name) if part]
    # A row of underscores has no part and is no word; a plain word is its own only part.
    return parts if parts in ([], [whole]) else [whole, *parts]
