"""The reduction: what UMAP is given, and when it is not asked."""

import numpy as np
import pytest
from fakes import random_vectors

from helpers.reduction import reduce_dimensions


def test_reduction_gives_dim_columns_of_float64():
    reduced = reduce_dimensions(random_vectors(20).astype(np.float32), dim=3)
    assert reduced.shape == (20, 3)
    assert reduced.dtype == np.float64
    assert np.isfinite(reduced).all()


@pytest.mark.parametrize("n, dim", [(11, 10), (4, 3), (1, 2)])
def test_too_few_points_come_back_as_they_are(n, dim, no_umap):
    vectors = random_vectors(n)
    assert np.array_equal(reduce_dimensions(vectors, dim), vectors)


def test_neighbours_are_the_square_root_unless_given(monkeypatch):
    asked = []

    class Umap:
        def __init__(self, n_neighbors, **options):
            asked.append(n_neighbors)

        def fit_transform(self, vectors):
            return vectors

    monkeypatch.setattr("umap.UMAP", Umap)
    for n_neighbors in (None, 10, 1000):
        reduce_dimensions(random_vectors(50), 10, n_neighbors)
    assert asked == [7, 10, 30]
