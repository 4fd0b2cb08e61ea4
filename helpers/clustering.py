"""Clustering: UMAP, then Gaussian mixtures with the lowest BIC, in two stages, with soft membership.

The procedure of RAPTOR (Sarthi et al., ICLR 2024, arXiv 2401.18059, section 3), made to work at every size.
"""

from functools import cache

import faiss
import numpy as np
from threadpoolctl import ThreadpoolController

from helpers.mixtures import choose_k, fit_mixture
from helpers.reduction import reduce_dimensions
from helpers.vectors import unit_rows

# Below this many rows, a second thread costs more in waiting than it brings.
ONE_THREAD_ROWS = 10_000

__all__ = ["choose_k", "cluster", "fit_mixture", "reduce_dimensions"]


def cluster(
    vectors,
    dim: int = 10,
    threshold: float = 0.1,
    max_k: int = 50,
    local_neighbors: int = 10,
    search: str = "early",
    seed: int = 0,
    margin: float = 0.05,
    max_parents: int = 2,
) -> list[np.ndarray]:
    """Cluster vectors globally, then again inside each global cluster; a row may be in several clusters.

    A row joins every cluster whose probability is above `threshold`, as in the paper. On UMAP output that
    is hardly ever more than one: UMAP pulls clusters so far apart that the mixture is sure of every point. So
    a row also joins another cluster whose centroid, among the vectors themselves, is within `margin` (cosine)
    of that of its own.

    Parameters
    ----------
    vectors : array of shape (n, d)
        Any n >= 1. Too few distinct rows for the reduction (``<= dim + 1``) are one cluster, without UMAP.
    margin : float
        0 leaves membership to the mixture alone.
    max_parents : int
        Clusters that a row is in at the most.

    Returns
    -------
    list of int arrays
        Row numbers, ascending; every row is in at least one. There are at most ``n // 2`` clusters (but at
        least one), so layers of a tree always shrink. Equal rows share their clusters; no two clusters are
        equal.
    """
    vectors = np.asarray(vectors, dtype=np.float64)
    if vectors.ndim != 2 or not len(vectors):
        raise ValueError(f"need an array of shape (n, d) with n >= 1, got shape {vectors.shape}")
    if not np.isfinite(vectors).all():
        row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        raise ValueError(f"NaN or infinite values in the vectors, first in row {row}: what made them?")
    # Many equal rows break UMAP's neighbour graph and the mixtures' covariance: cluster the distinct.
    distinct, copies = _distinct(vectors)
    options = {"dim": dim, "threshold": threshold, "max_k": max_k, "search": search, "seed": seed}
    clusters = []
    for members in _mixture_clusters(distinct, n_neighbors=None, **options):
        inner = _mixture_clusters(distinct[members], n_neighbors=local_neighbors, **options)
        clusters += [members[rows] for rows in inner]
    with _threads_for(len(distinct)):
        units = unit_rows(distinct, np.float64)
        clusters = _merge_small(units, clusters, most=max(1, len(vectors) // 2))
        clusters = _soften(units, clusters, margin, max_parents)
    return [np.sort(np.concatenate([copies[row] for row in members])) for members in clusters]


def _distinct(vectors):
    """Return the distinct rows in order of first appearance, and the row numbers of each one's copies."""
    copies = {}
    for number, row in enumerate(vectors + 0.0):  # -0.0 becomes 0.0
        copies.setdefault(row.tobytes(), []).append(number)
    return vectors[[numbers[0] for numbers in copies.values()]], list(copies.values())


def _mixture_clusters(vectors, n_neighbors, dim, threshold, max_k, search, seed):
    if len(vectors) <= dim + 1:
        return [np.arange(len(vectors))]
    with _threads_for(len(vectors)):
        points = reduce_dimensions(vectors, dim, n_neighbors, seed)
        mixture, _ = fit_mixture(points, max_k, search, seed)
        probabilities = mixture.predict_proba(points)  # (n, k)
    joins = (probabilities > threshold) | (probabilities == probabilities.max(axis=1, keepdims=True))
    return [np.flatnonzero(column) for column in joins.T if column.any()]


def _threads_for(rows):
    """Return a context in which BLAS and FAISS have as many threads as so many rows are worth."""
    return _libraries().limit(limits=1 if rows < ONE_THREAD_ROWS else None)


@cache
def _libraries():
    """Return the libraries with threads that are loaded by now; looking for them takes milliseconds."""
    return ThreadpoolController()


def _merge_small(units, clusters, most):
    """Merge clusters of one row, and the smallest while there are more than `most`, into the nearest one."""
    merged, centroids = list(clusters), _centroids(units, clusters)
    sizes = np.array([float(len(members)) for members in clusters])
    left = len(clusters)
    while left > 1:
        small = int(np.argmin(sizes))
        if sizes[small] > 1 and left <= most:
            break
        sizes[small], left = np.inf, left - 1
        nearness = np.where(np.isinf(sizes), -np.inf, centroids @ centroids[small])
        nearest = int(np.argmax(nearness))
        merged[nearest] = np.union1d(merged[nearest], merged[small])
        centroids[nearest] = _centroids(units, [merged[nearest]])[0]
        sizes[nearest] = len(merged[nearest])
    return [members for members, size in zip(merged, sizes, strict=True) if np.isfinite(size)]


def _soften(units, clusters, margin, max_parents):
    """Let each row join the clusters whose centroids are nearly as near as its own."""
    if len(clusters) == 1:
        return clusters
    centroids = _centroids(units, clusters)
    own = [[] for _ in units]
    for column, members in enumerate(clusters):
        for row in members:
            own[row].append(column)
    nearest = min(max_parents, len(clusters))
    cosines, columns = faiss.knn(
        units.astype(np.float32), centroids.astype(np.float32), nearest, faiss.METRIC_INNER_PRODUCT
    )
    joined = [[] for _ in clusters]
    for row, mine in enumerate(own):
        mine = sorted(mine, key=lambda column: -(centroids[column] @ units[row]))
        bar = centroids[mine[0]] @ units[row] - margin if margin > 0 else np.inf
        others = [
            column
            for column, cosine in zip(columns[row], cosines[row], strict=True)
            if cosine > bar and column not in mine
        ]
        for column in [*mine, *others][:max_parents]:
            joined[column].append(row)
    # Parts of one tight group may have taken in each other's rows, and are one then.
    return [np.array(members) for members in dict.fromkeys(map(tuple, joined)) if members]


def _centroids(units, clusters):
    return unit_rows([units[members].mean(axis=0) for members in clusters], np.float64)
