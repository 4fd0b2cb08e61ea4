"""Index: every text embedded once, unit vectors in FAISS, inner product as cosine. Saved without pickle."""

import json
import warnings
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import groupby, islice
from pathlib import Path

import faiss
import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from helpers.jsonlines import document_rows, read_rows, row_documents, write_rows
from helpers.vectors import embedder_name, unit_rows

with warnings.catch_warnings():
    # langchain-community is archived and says so; FAISS has no successor package yet.
    warnings.simplefilter("ignore", DeprecationWarning)
    from langchain_community.docstore.in_memory import InMemoryDocstore
    from langchain_community.vectorstores import FAISS
    from langchain_community.vectorstores.utils import DistanceStrategy

# Documents that FAISS is asked for at first: thousands take it no longer than one, since it scores all in any case.
BLOCK = 2048


class VectorIndex:
    """Documents by the cosine of their embedding to the question's; make one with `build` or `load`."""

    def __init__(self, store: FAISS, embedder: Embeddings):
        self._store = store
        self.embedder = embedder

    @classmethod
    def build(cls, documents: Sequence[Document], embedder: Embeddings) -> "VectorIndex":
        """Embed documents and index them.

        Parameters
        ----------
        documents : sequence of Document
            With distinct ``id`` in their metadata; may be empty.
        embedder : Embeddings
            Its vectors need not be of unit length: they are normalised here.

        Raises
        ------
        ValueError
            If two documents share an id.
        """
        index = cls(_empty_store(0, embedder), embedder)
        index.add(documents)
        return index

    def __len__(self) -> int:
        return len(self._store.index_to_docstore_id)

    def __contains__(self, document_id: str) -> bool:
        return document_id in self._store.docstore._dict

    @property
    def documents(self) -> list[Document]:
        """All documents, in the order in which they were added."""
        return [self._document(row) for row in self._store.index_to_docstore_id]

    def vectors(self, ids: Sequence[str]) -> np.ndarray:
        """Return the unit vectors of documents, shape (len(ids), d), float32; KeyError if one is not here."""
        return self._store.index.reconstruct_batch(np.array([self._row_of[i] for i in ids], dtype=np.int64))

    @cached_property
    def _row_of(self):
        return {document_id: row for row, document_id in self._store.index_to_docstore_id.items()}

    def add(self, documents: Sequence[Document]) -> None:
        """Add documents; one whose id is already here takes the old one's place."""
        if not documents:
            return
        ids = [document.metadata["id"] for document in documents]
        if len(set(ids)) < len(ids):
            twice = sorted({i for i in ids if ids.count(i) > 1})
            raise ValueError(f"the same id twice: {', '.join(twice[:5])}")
        texts = [document.page_content for document in documents]
        vectors = unit_rows(self.embedder.embed_documents(texts))
        self.remove([i for i in ids if i in self])  # only now: embedding may fail
        if not len(self):
            self._store = _empty_store(vectors.shape[1], self.embedder)
        self._store.add_embeddings(
            zip(texts, vectors, strict=True), [document.metadata for document in documents], ids=ids
        )
        self.__dict__.pop("_row_of", None)

    def remove(self, ids: Sequence[str]) -> None:
        """Remove documents by id.

        Raises
        ------
        KeyError
            If an id is not here; then nothing is removed.
        """
        missing = [i for i in ids if i not in self]
        if missing:
            raise KeyError(f"not in the index: {', '.join(missing[:5])}")
        if ids:
            self._store.delete(list(dict.fromkeys(ids)))
            self.__dict__.pop("_row_of", None)  # computed again when asked for

    def search(self, question: str, k: int = 5, where: dict | Callable | None = None):
        """Return the k documents nearest to a question, the best first.

        Parameters
        ----------
        question : str
        k : int
            At least 1.
        where : dict or callable, optional
            Metadata that a hit must have, for instance ``{"level": 1}``, or a test of its metadata. It is applied to
            the whole index, so that k hits come back whenever k documents pass.

        Returns
        -------
        list of (Document, float)
            With the cosine, in [-1, 1]; equal cosines (to 6 digits) are ordered by id.
        """
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        return list(islice(self.ranked(question, where), k))

    def question_vector(self, question: str) -> np.ndarray:
        """Return the unit vector of a question, shape (d,), float32."""
        return unit_rows([self.embedder.embed_query(question)])[0]

    def ranked(
        self, question: str | np.ndarray, where: dict | Callable | None = None
    ) -> Iterator[tuple[Document, float]]:
        """Yield all documents from the nearest to the farthest.

        Parameters
        ----------
        question : str or array of shape (d,)
            The text, or what `question_vector` made of it.
        where : dict or callable, optional
            This and ties as in `search`.
        """
        passes = where if callable(where) else lambda metadata: (where or {}).items() <= metadata.items()
        query = (self.question_vector(question) if isinstance(question, str) else question)[None]
        done, read = 0, BLOCK
        while done < len(self):
            nearest = self._nearest(query, min(read, len(self)))
            for _, tied in groupby(nearest[done:], key=lambda hit: round(hit[1], 6)):
                hits = [(self._document(row), score) for row, score in tied]
                if len(hits) > 1:
                    hits.sort(key=lambda hit: hit[0].metadata["id"])
                for hit in hits:
                    if passes(hit[0].metadata):
                        yield hit
            done, read = len(nearest), read * 8

    def _nearest(self, query, count):
        """Return rows and cosines, the best first, less those that tie with the last: not all of these may be here."""
        scores, rows = self._store.index.search(query, count)
        scores = np.clip(scores[0], -1, 1).tolist()
        if count < len(self):
            del scores[bisect_left(scores, -round(scores[-1], 6), key=lambda score: -round(score, 6)) :]
        return list(zip(rows[0].tolist(), scores, strict=False))

    def _document(self, row):
        return self._store.docstore.search(self._store.index_to_docstore_id[row])

    def save(self, folder: str | Path) -> None:
        """Write ``vectors.faiss``, ``documents.jsonl`` and ``index.json`` into a folder."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        # Written last: a folder without it is known to be half-written, also where it replaces another.
        (folder / "index.json").unlink(missing_ok=True)
        faiss.write_index(self._store.index, str(folder / "vectors.faiss"))
        write_rows(folder / "documents.jsonl", document_rows(self.documents))
        about = {"embedder": embedder_name(self.embedder), "documents": len(self)}
        (folder / "index.json").write_text(json.dumps(about, indent=1), encoding="utf-8")

    @classmethod
    def load(cls, folder: str | Path, embedder: Embeddings) -> "VectorIndex":
        """Read an index that `save` wrote; nothing in the folder is executed.

        Raises
        ------
        ValueError
            If the folder is incomplete, or was made with another embedder.
        """
        folder = Path(folder)
        try:
            about = json.loads((folder / "index.json").read_text(encoding="utf-8"))
            documents = row_documents(read_rows(folder / "documents.jsonl"))
            vectors = faiss.read_index(str(folder / "vectors.faiss"))
        except (OSError, RuntimeError, ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{folder.name} is not a whole index ({error}): build it again") from error
        if about["embedder"] != embedder_name(embedder):
            raise ValueError(
                f"{folder.name} was made with embedder {about['embedder']}, not {embedder_name(embedder)}: "
                "load it with that one, or build it again"
            )
        if not len(documents) == vectors.ntotal == about["documents"]:
            raise ValueError(
                f"{folder.name} holds {vectors.ntotal} vectors for {len(documents)} texts: build it again"
            )
        store = _empty_store(vectors.d, embedder)
        store.index = vectors
        store.docstore = InMemoryDocstore({document.id: document for document in documents})
        store.index_to_docstore_id = dict(enumerate(document.id for document in documents))
        return cls(store, embedder)


def _empty_store(dimension, embedder):
    return FAISS(
        embedding_function=embedder,
        index=faiss.IndexFlatIP(dimension),
        docstore=InMemoryDocstore(),
        index_to_docstore_id={},
        distance_strategy=DistanceStrategy.MAX_INNER_PRODUCT,
        normalize_L2=False,
    )
