"""Unit vectors, and the names of embedders."""

import numpy as np
from langchain_core.embeddings import Embeddings

from helpers.vectors import embedder_name, unit_rows


def test_unit_rows_keep_direction_and_leave_zero_alone():
    rows = unit_rows([[3, 4], [0, 0], [-0.001, 0]])
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, [[0.6, 0.8], [0, 0], [-1, 0]], rtol=1e-6)


def test_an_embedder_is_known_by_its_identity_else_by_its_class():
    class Plain(Embeddings):
        embed_documents = embed_query = None

    class Named(Plain):
        identity = "numbers"

    assert embedder_name(Named()) == "numbers"
    assert embedder_name(Plain()) == "Plain"
