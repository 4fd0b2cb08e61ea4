"""Vectors: unit length, and whose they are."""

import numpy as np
from langchain_core.embeddings import Embeddings


def unit_rows(vectors, dtype=np.float32) -> np.ndarray:
    """Return vectors scaled to unit length, shape (n, d); a row of zeros stays zero."""
    rows = np.asarray(vectors, dtype=dtype)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths == 0, 1, lengths)


def embedder_name(embedder: Embeddings) -> str:
    """Return what tells one embedder from another: its ``identity`` if it has one, else its class."""
    return getattr(embedder, "identity", type(embedder).__name__)
