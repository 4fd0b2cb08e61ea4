"""Clustering: UMAP, then Gaussian mixtures with the lowest BIC, in two stages, with soft membership.

The procedure of RAPTOR (Sarthi et al., ICLR 2024, arXiv 2401.18059, section 3), made to work at every size.
"""

import warnings

import numpy as np

from helpers.mixtures import choose_k, fit_mixture

__all__ = ["choose_k", "cluster", "fit_mixture", "reduce_dimensions"]

# UMAP's spectral start fails below this many points (its eigensolver needs more points than dimensions).
SPECTRAL_MIN_POINTS = 12
# UMAP's own default for large data; on small data it takes 500, which makes clusters no more cohesive.
EPOCHS = 200


def reduce_dimensions(vectors, dim: int = 10, n_neighbors: int | None = None, seed: int = 0) -> np.ndarray:
    """Reduce vectors by UMAP with the cosine metric.

    Parameters
    ----------
    vectors : array of shape (n, d)
    dim : int
        Dimensions to reduce to; too few points for that (``n <= dim + 1``) come back as they are.
    n_neighbors : int, optional
        ``int(sqrt(n - 1))`` unless given: the global view. Local clustering passes a small number.
    seed : int

    Returns
    -------
    array of shape (n, dim), float64
    """
    vectors = np.asarray(vectors, dtype=np.float64)
    n = len(vectors)
    if n <= dim + 1:
        return vectors
    import umap  # compiles for seconds, so only where it is used

    neighbors = n_neighbors or int((n - 1) ** 0.5)
    model = umap.UMAP(
        n_components=dim,
        n_neighbors=int(np.clip(neighbors, 2, n - 1)),
        metric="cosine",
        n_epochs=EPOCHS,
        init="spectral" if n > max(SPECTRAL_MIN_POINTS, dim + 2) else "random",
        random_state=seed,
        n_jobs=1,  # a seeded run is serial anyway, and says so on stderr
    )
    with warnings.catch_warnings():
        # Duplicates make the neighbour graph fall apart; UMAP then warns and goes on from a random start.
        warnings.simplefilter("ignore")
        return model.fit_transform(vectors).astype(np.float64)


def cluster(
    vectors,
    dim: int = 10,
    threshold: float = 0.1,
    max_k: int = 50,
    local_neighbors: int = 10,
    search: str = "early",
    seed: int = 0,
    margin: float = 0.1,
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
    distinct, row_of = np.unique(vectors, axis=0, return_inverse=True)
    order = np.argsort([np.flatnonzero(row_of == i)[0] for i in range(len(distinct))])
    distinct, row_of = distinct[order], np.argsort(order)[row_of]
    options = {"dim": dim, "threshold": threshold, "max_k": max_k, "search": search, "seed": seed}
    clusters = []
    for members in _mixture_clusters(distinct, n_neighbors=None, **options):
        inner = _mixture_clusters(distinct[members], n_neighbors=local_neighbors, **options)
        clusters += [members[rows] for rows in inner]
    clusters = _merge_small(distinct, clusters, most=max(1, len(vectors) // 2))
    clusters = _soften(distinct, clusters, margin, max_parents)
    return [np.flatnonzero(np.isin(row_of, members)) for members in clusters]


def _mixture_clusters(vectors, n_neighbors, dim, threshold, max_k, search, seed):
    if len(vectors) <= dim + 1:
        return [np.arange(len(vectors))]
    points = reduce_dimensions(vectors, dim, n_neighbors, seed)
    mixture, _ = fit_mixture(points, max_k, search, seed)
    probabilities = mixture.predict_proba(points)  # (n, k)
    joins = (probabilities > threshold) | (probabilities == probabilities.max(axis=1, keepdims=True))
    return [np.flatnonzero(column) for column in joins.T if column.any()]


def _merge_small(vectors, clusters, most):
    """Merge clusters of one row, and the smallest while there are more than `most`, into the nearest one."""
    clusters = list(clusters)
    while len(clusters) > 1:
        sizes = [len(members) for members in clusters]
        small = int(np.argmin(sizes))
        if sizes[small] > 1 and len(clusters) <= most:
            break
        members = clusters.pop(small)
        nearest = int(np.argmax(_centroids(vectors, clusters) @ vectors[members].mean(axis=0)))
        clusters[nearest] = np.union1d(clusters[nearest], members)
    return clusters


def _soften(vectors, clusters, margin, max_parents):
    """Let each row join the clusters whose centroids are nearly as near as its own."""
    if len(clusters) == 1:
        return clusters
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units = vectors / np.where(lengths == 0, 1, lengths)
    cosines = units @ _centroids(vectors, clusters).T  # (n, clusters)
    inside = np.zeros(cosines.shape, dtype=bool)
    for column, members in enumerate(clusters):
        inside[members, column] = True
    own = np.where(inside, cosines, -np.inf).max(axis=1, keepdims=True)
    # The clusters it is in come first, then the nearest others within the margin.
    rank = np.argsort(np.argsort(-(cosines + 4 * inside), axis=1), axis=1)
    joins = (inside | ((cosines > own - margin) & (margin > 0))) & (rank < max_parents)
    # Parts of one tight group may have taken in each other's rows, and are one then.
    distinct = dict.fromkeys(tuple(np.flatnonzero(column)) for column in joins.T if column.any())
    return [np.array(members) for members in distinct]


def _centroids(vectors, clusters):
    means = np.array([vectors[members].mean(axis=0) for members in clusters])
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    return means / np.where(lengths == 0, 1, lengths)
