"""Index: every text embedded once, unit vectors in FAISS, inner product as cosine. Saved without pickle."""

import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import faiss
import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings

from helpers.jsonlines import document_rows, read_rows, row_documents, write_rows

with warnings.catch_warnings():
    # langchain-community is archived and says so; FAISS has no successor package yet.
    warnings.simplefilter("ignore", DeprecationWarning)
    from langchain_community.docstore.in_memory import InMemoryDocstore
    from langchain_community.vectorstores import FAISS
    from langchain_community.vectorstores.utils import DistanceStrategy

# Equal scores are ordered by id; a few more hits than asked for are read so that a tie at the cut is seen.
TIE_MARGIN = 8


class VectorIndex:
    """Documents by the cosine of their embedding to the question's; make one with `build` or `load`."""

    def __init__(self, store: FAISS, embedder: Embeddings):
        self._store = store
        self._embedder = embedder

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
        return [self._store.docstore.search(i) for i in self._store.index_to_docstore_id.values()]

    def add(self, documents: Sequence[Document]) -> None:
        """Add documents; one whose id is already here takes the old one's place."""
        if not documents:
            return
        ids = [document.metadata["id"] for document in documents]
        if len(set(ids)) < len(ids):
            twice = sorted({i for i in ids if ids.count(i) > 1})
            raise ValueError(f"the same id twice: {', '.join(twice[:5])}")
        texts = [document.page_content for document in documents]
        vectors = unit_rows(self._embedder.embed_documents(texts))
        self.remove([i for i in ids if i in self])  # only now: embedding may fail
        if not len(self):
            self._store = _empty_store(vectors.shape[1], self._embedder)
        self._store.add_embeddings(
            zip(texts, vectors, strict=True), [document.metadata for document in documents], ids=ids
        )

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
        return self._search(self._embedder.embed_query(question), k, where)

    def ranked(self, question: str, where: dict | Callable | None = None) -> Iterator[tuple[Document, float]]:
        """Yield all documents from the nearest to the farthest, read from FAISS in growing blocks."""
        vector = self._embedder.embed_query(question)
        done, block = 0, 128
        while done < len(self):
            hits = self._search(vector, min(block, len(self)), where)
            yield from hits[done:]
            if len(hits) < block:
                return
            done, block = len(hits), block * 4

    def _search(self, vector, k, where):
        if not len(self):
            return []
        query, read = unit_rows([vector])[0], k + TIE_MARGIN
        while True:
            hits = self._passing(query, min(read, len(self)), where)
            scored = [(document, float(np.clip(score, -1, 1))) for document, score in hits]
            # All that tie with the k-th hit are read once a lower score, or the end, is in sight.
            if len(scored) < read or round(scored[-1][1], 6) < round(scored[k - 1][1], 6):
                scored.sort(key=lambda hit: (-round(hit[1], 6), hit[0].metadata["id"]))
                return scored[:k]
            read *= 4

    def _passing(self, query, count, where):
        """Return the first hits that pass a filter, which runs after FAISS: more than `count` may be fetched."""
        fetch = count
        while True:
            hits = self._store.similarity_search_with_score_by_vector(
                query, k=count, filter=where, fetch_k=min(fetch, len(self))
            )
            if len(hits) == count or fetch >= len(self):
                return hits
            fetch *= 4

    def save(self, folder: str | Path) -> None:
        """Write ``vectors.faiss``, ``documents.jsonl`` and ``index.json`` into a folder."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        # Written last: a folder without it is known to be half-written, also where it replaces another.
        (folder / "index.json").unlink(missing_ok=True)
        faiss.write_index(self._store.index, str(folder / "vectors.faiss"))
        write_rows(folder / "documents.jsonl", document_rows(self.documents))
        about = {"embedder": embedder_name(self._embedder), "documents": len(self)}
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


def unit_rows(vectors) -> np.ndarray:
    """Return vectors scaled to unit length, shape (n, d), float32; a row of zeros stays zero."""
    rows = np.asarray(vectors, dtype=np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths == 0, 1, lengths)


def embedder_name(embedder: Embeddings) -> str:
    """Return what tells one embedder from another: its ``identity`` if it has one, else its class."""
    return getattr(embedder, "identity", type(embedder).__name__)


def _empty_store(dimension, embedder):
    return FAISS(
        embedding_function=embedder,
        index=faiss.IndexFlatIP(dimension),
        docstore=InMemoryDocstore(),
        index_to_docstore_id={},
        distance_strategy=DistanceStrategy.MAX_INNER_PRODUCT,
        normalize_L2=False,
    )
