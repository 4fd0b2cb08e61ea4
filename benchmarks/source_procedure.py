"""The source's way of building a tree, written out as a reference for `benchmarks/build.py`.

UMAP as it comes, every number of clusters from 1 to 49, the best one fitted again after the sweep, clusters never
checked against a prompt, and all texts embedded once more for the index.
"""

import warnings

import numpy as np
from sklearn.mixture import GaussianMixture

DIM, THRESHOLD, MAX_K, LOCAL_NEIGHBORS, LAYERS = 10, 0.1, 50, 10, 3
# The source leaves scikit-learn's 1e-6, and stops with an error at 1,000 synthetic leaves.
REGULARISATION = 1e-4


def grow(texts, embedder, summarise) -> list[int]:
    """Build layers of summaries and embed all nodes again; return the sizes of the layers."""
    everything, sizes = list(texts), [len(texts)]
    for _ in range(LAYERS):
        vectors = np.asarray(embedder.embed_documents(texts))
        texts = [summarise([texts[row] for row in members]) for members in clusters(vectors)]
        everything += texts
        sizes.append(len(texts))
        if len(texts) <= 1:
            break
    embedder.embed_documents(everything)
    return sizes


def clusters(vectors: np.ndarray) -> list[np.ndarray]:
    """Cluster globally, then inside each global cluster."""
    if len(vectors) <= DIM + 1:
        return [np.arange(len(vectors))]
    found = []
    for members in _mixture(_reduced(vectors, int((len(vectors) - 1) ** 0.5))):
        if len(members) <= DIM + 1:
            found.append(members)
            continue
        found += [members[rows] for rows in _mixture(_reduced(vectors[members], LOCAL_NEIGHBORS))]
    return found


def _reduced(vectors, n_neighbors):
    import umap

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # Few points make UMAP's spectral start fail, which ends the source's run.
        start = "spectral" if len(vectors) > DIM + 2 else "random"
        return umap.UMAP(
            n_neighbors=n_neighbors, n_components=DIM, metric="cosine", init=start
        ).fit_transform(vectors)


def _mixture(points):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ks = range(1, min(MAX_K, len(points)))
        bic = [_fit(points, k).bic(points) for k in ks]
        joins = _fit(points, ks[int(np.argmin(bic))]).predict_proba(points) > THRESHOLD
    return [np.flatnonzero(column) for column in joins.T if column.any()]


def _fit(points, k):
    return GaussianMixture(k, random_state=0, reg_covar=REGULARISATION).fit(points)
