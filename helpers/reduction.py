"""Reduction: UMAP on a neighbour graph of FAISS, compiled once a machine."""

from functools import cache

import faiss
import numpy as np

from helpers.vectors import unit_rows

# The source takes sqrt(n - 1) neighbours. Beyond this many the graph costs more and tells UMAP nothing new.
MAX_NEIGHBORS = 30
# UMAP itself takes 500 on small data. Clusters became no more cohesive by it (measured on documentation pages).
EPOCHS = 100
# Up to this many rows all pairs are compared; above, only rows in the nearest of about 4 sqrt(n) cells.
EXACT_ROWS, CELLS_SEARCHED = 10_000, 16


def reduce_dimensions(vectors, dim: int = 10, n_neighbors: int | None = None, seed: int = 0) -> np.ndarray:
    """Reduce vectors by UMAP (McInnes et al., arXiv 1802.03426) with the cosine metric.

    Parameters
    ----------
    vectors : array of shape (n, d)
    dim : int
        Dimensions to reduce to. Too few points for that (``n <= dim + 1``), or vectors that have no more
        dimensions, come back as they are.
    n_neighbors : int, optional
        ``int(sqrt(n - 1))`` unless given, and at most 30: the global view. Local clustering passes a small
        number.
    seed : int

    Returns
    -------
    array of shape (n, dim), float64
    """
    vectors = np.asarray(vectors, dtype=np.float64)
    n, dimensions = vectors.shape
    if n <= dim + 1 or dimensions <= dim:
        return vectors
    neighbors = int(np.clip(n_neighbors or int((n - 1) ** 0.5), 2, min(n - 1, MAX_NEIGHBORS)))
    units = unit_rows(vectors, np.float64).astype(np.float32)
    cosines, rows = _nearest(units, neighbors)
    return _laid_out(units, rows.astype(np.int32), np.maximum(0, 1 - cosines), dim, seed)


def _laid_out(units, rows, distances, dim, seed):
    """Run the two steps of UMAP on a neighbour graph; its class spends more on its checks than on few points."""
    import numba

    umap, random, threads = _umap(), np.random.RandomState(seed), numba.get_num_threads()
    numba.set_num_threads(1)  # on a busy machine several wait for each other longer than they work
    try:
        graph, *_ = umap.fuzzy_simplicial_set(
            units, rows.shape[1], random, "cosine", knn_indices=rows, knn_dists=distances
        )
    finally:
        numba.set_num_threads(threads)
    points, _ = umap.simplicial_set_embedding(
        units,
        graph,
        dim,
        initial_alpha=1.0,
        **_curve(),
        gamma=1.0,
        negative_sample_rate=5,
        n_epochs=EPOCHS,
        init="pca",  # the spectral start fails on graphs that fall apart, and on few points
        random_state=random,
        metric="cosine",
        metric_kwds={},
        densmap=False,
        densmap_kwds={},
        output_dens=False,
    )
    return points.astype(np.float64)


def _nearest(units, k):
    """Return cosines and row numbers of the k nearest rows of each, itself first: two arrays of shape (n, k)."""
    n, dimensions = units.shape
    if n <= EXACT_ROWS:
        return faiss.knn(units, units, k, faiss.METRIC_INNER_PRODUCT)
    cells = faiss.IndexFlatIP(dimensions)
    index = faiss.IndexIVFFlat(cells, dimensions, int(4 * n**0.5), faiss.METRIC_INNER_PRODUCT)
    index.nprobe = CELLS_SEARCHED
    index.cp.niter = 5  # the cells only have to be about equal
    index.train(units)
    index.add(units)
    return index.search(units, k)


@cache
def _curve():
    """Return UMAP's a and b for its own spread and least distance."""
    a, b = _umap().find_ab_params(spread=1.0, min_dist=0.1)
    return {"a": a, "b": b}


@cache
def _umap():
    """Import UMAP, and let numba keep on disk what it compiles: a process then starts in 1 second, not in 10."""
    from umap import layouts, umap_  # takes a second, so only where it is used

    for compiled in (
        umap_.smooth_knn_dist,
        umap_.compute_membership_strengths,
        layouts._nb_optimize_layout_euclidean_single_epoch,
    ):
        compiled.enable_caching()
    return umap_
