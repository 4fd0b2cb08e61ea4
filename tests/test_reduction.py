"""The reduction: what UMAP is given, and when it is not asked."""

import faiss
import numpy as np
import pytest
from fakes import random_vectors

from helpers import reduction
from helpers.reduction import reduce_dimensions
from helpers.vectors import unit_rows


def test_reduction_gives_dim_columns_of_float64():
    reduced = reduce_dimensions(random_vectors(20).astype(np.float32), dim=3)
    assert reduced.shape == (20, 3)
    assert reduced.dtype == np.float64
    assert np.isfinite(reduced).all()


@pytest.mark.parametrize("n, dim", [(11, 10), (4, 3), (1, 2)])
def test_too_few_points_come_back_as_they_are(n, dim, no_umap):
    vectors = random_vectors(n)
    assert np.array_equal(reduce_dimensions(vectors, dim), vectors)


@pytest.mark.parametrize("n", [13, 60, 600])
def test_points_are_those_of_the_umap_class_on_the_same_graph(n):
    from umap import UMAP

    vectors = unit_rows(random_vectors(n), np.float64).astype(np.float32)
    neighbours = min(n - 1, int((n - 1) ** 0.5))
    cosines, rows = faiss.knn(vectors, vectors, neighbours, faiss.METRIC_INNER_PRODUCT)
    model = UMAP(
        n_components=10,
        n_neighbors=neighbours,
        metric="cosine",
        n_epochs=100,
        init="pca",
        random_state=3,
        n_jobs=1,
        precomputed_knn=(rows.astype(np.int32), np.maximum(0, 1 - cosines)),
        force_approximation_algorithm=True,
    )
    with pytest.warns(UserWarning, match="precomputed_knn|transform"):
        expected = model.fit_transform(vectors)
    assert np.array_equal(reduce_dimensions(random_vectors(n), seed=3), expected.astype(np.float64))


def test_neighbours_are_the_square_root_unless_given(monkeypatch):
    asked, nearest = [], reduction._nearest

    def spy(units, k):
        asked.append(k)
        return nearest(units, k)

    monkeypatch.setattr(reduction, "_nearest", spy)
    for n_neighbors in (None, 10, 1000):
        reduce_dimensions(random_vectors(50), 10, n_neighbors)
    assert asked == [7, 10, 30]
