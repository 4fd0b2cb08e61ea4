"""Mixtures: how many Gaussian components a set of points has, by the Bayesian information criterion.

The log density of a Gaussian is linear in the features (1, x, x xᵀ), so a step of EM over all points and
components is two matrix products. scikit-learn's ``GaussianMixture`` finds the same numbers
(``tests/test_mixtures.py`` compares them); its checks take most of its time where points are few, as they are in
each of the many clusters of a tree.
"""

from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
from scipy.cluster.hierarchy import ward

# Each component's covariance is estimated as if one more point had been seen, with this share of the points' mean
# variance in every direction. Without it, a component on fewer points than dimensions has a likelihood without
# bound, and BIC falls for pairs; on many points it vanishes, where a constant on the diagonal would blur.
PRIOR_SHARE = 0.003
# EM stops when the mean log-likelihood grows by less.
TOLERANCE = 1e-3
MAX_STEPS = 100
# Above this many points, k is chosen on a sample, and EM over all starts from what it found there.
SAMPLE = 4000


@dataclass(frozen=True)
class Mixture:
    """Gaussian components: ``weights`` (k,), ``means`` (k, dim) and ``covariances`` (k, dim, dim)."""

    weights: np.ndarray
    means: np.ndarray
    covariances: np.ndarray

    @property
    def n_components(self) -> int:
        """Number of components."""
        return len(self.weights)

    def predict_proba(self, points) -> np.ndarray:
        """Return the probability of each component for each point, of shape (n, k)."""
        return _responsibilities(self._log_joint(_features(points)))[0]

    def bic(self, points) -> float:
        """Return the Bayesian information criterion on points (Schwarz 1978); the lower, the better."""
        return self._bic(len(points), _responsibilities(self._log_joint(_features(points)))[1].sum())

    def _bic(self, n, log_likelihood):
        k, dim = self.means.shape
        parameters = k * (1 + dim + dim * (dim + 1) / 2) - 1
        return float(parameters * np.log(n) - 2 * log_likelihood)

    def _log_joint(self, features):
        """Return log (weight times density), of shape (n, k)."""
        dim = self.means.shape[1]
        rows, columns = _pairs(dim)
        precisions = np.linalg.inv(self.covariances)
        linear = (precisions @ self.means[:, :, None])[:, :, 0]
        # Each pair i < j stands once in the features and twice in the quadratic form.
        quadratic = -np.where(rows == columns, 0.5, 1.0) * precisions[:, rows, columns]
        constant = np.log(self.weights) - 0.5 * (
            dim * np.log(2 * np.pi)
            + np.linalg.slogdet(self.covariances)[1]
            + (linear * self.means).sum(axis=1)
        )
        return features @ np.hstack([constant[:, None], linear, quadratic]).T


def fit_mixture(points, max_k: int = 50, search: str = "early", seed: int = 0):
    """Fit Gaussian mixtures with different numbers of components and keep the one with the lowest BIC.

    EM starts from a cut of Ward's hierarchy, which is made once for all k (as in Fraley & Raftery, JASA 2002).

    Parameters
    ----------
    points : array of shape (n, dim)
    max_k : int
        Largest k tried; never more than ``n // 2``, so that clusters hold two points on average.
    search : {"early", "exhaustive"}
        Whether to climb a ladder of values of k and look closer around the best one, or to try every k as the
        source does. BIC over k has one broad valley, and both find its bottom (``benchmarks/build.py`` compares
        them).
    seed : int
        Draws the sample on which k is chosen when there are more than ``SAMPLE`` points.

    Returns
    -------
    (Mixture, dict of int to float)
        The fitted mixture, and the BIC of each k that was tried (on the sample, if there is one), by ascending k.
    """
    points = np.asarray(points, dtype=np.float64)
    if not np.isfinite(points).all():
        raise ValueError(f"no mixture fits {len(points)} points with NaN or infinite values among them")
    sample = points
    if len(points) > SAMPLE:
        sample = np.random.default_rng(seed).choice(points, SAMPLE, replace=False)
    top = max(1, min(max_k, len(sample) // 2))
    features = _features(sample)
    hierarchy = ward(sample) if len(sample) > 1 else None
    prior = PRIOR_SHARE * max(points.var(axis=0).mean(), 1e-12) * np.eye(points.shape[1])
    tried = {}

    def bic(k):
        if k not in tried:
            mixture, log_likelihood = _em(features, np.eye(k)[_cut(hierarchy, len(sample), k)], prior)
            tried[k] = mixture._bic(len(sample), log_likelihood), mixture
        return tried[k][0]

    searches = {"early": _search_ladder, "exhaustive": _search_all}
    if search not in searches:
        raise ValueError(f"search is 'early' or 'exhaustive', not {search!r}")
    mixture = tried[searches[search](bic, top)][1]
    if len(points) > SAMPLE:
        mixture, _ = _em(_features(points), mixture.predict_proba(points), prior)
    return mixture, {k: tried[k][0] for k in sorted(tried)}


def choose_k(points, max_k: int = 50, search: str = "early", seed: int = 0) -> int:
    """Return the number of mixture components with the lowest BIC (see `fit_mixture`)."""
    mixture, _ = fit_mixture(points, max_k, search, seed)
    return mixture.n_components


def _search_all(bic, top):
    return min(range(1, top + 1), key=bic)


def _search_ladder(bic, top):
    """Return the k with the lowest BIC: rungs half as large again each, then halving the gaps beside the best."""
    rungs = [1]
    while rungs[-1] < top:
        rungs.append(min(top, max(rungs[-1] + 1, round(rungs[-1] * 1.5))))
    best = min(rungs, key=bic)
    while gaps := [
        (low + high) // 2 for low, high in pairwise(rungs) if best in (low, high) and high - low > 1
    ]:
        rungs = sorted({*rungs, *gaps})
        best = min(rungs, key=bic)
    return best


def _cut(hierarchy, n, k):
    """Return labels from 0 to k - 1 for n points: a linkage of SciPy without its last k - 1 merges."""
    merges = hierarchy[: n - k, :2].astype(int).tolist() if n > k else []
    label = list(range(2 * n - k))
    for merge, (left, right) in reversed(list(enumerate(merges))):
        label[left] = label[right] = label[n + merge]
    return np.unique(label[:n], return_inverse=True)[1]


_pairs = cache(np.triu_indices)


def _features(points):
    """Return 1, x and the products of each two of its coordinates for every point: (n, 1 + dim + dim (dim+1) / 2)."""
    points = np.asarray(points, dtype=np.float64)
    rows, columns = _pairs(points.shape[1])
    return np.hstack([np.ones((len(points), 1)), points, points[:, rows] * points[:, columns]])


def _em(features, responsibilities, prior):
    """Return the mixture that EM (Dempster, Laird & Rubin 1977) reaches, and its log-likelihood.

    It starts from responsibilities of shape (n, k).
    """
    before = -np.inf
    for _ in range(MAX_STEPS):
        mixture = _maximised(features, responsibilities, prior)
        responsibilities, log_density = _responsibilities(mixture._log_joint(features))
        if log_density.mean() - before < TOLERANCE:
            break
        before = log_density.mean()
    return mixture, log_density.sum()


def _responsibilities(log_joint):
    """Return each component's share of each point's density, (n, k), and the logarithm of that density, (n,)."""
    highest = log_joint.max(axis=1, keepdims=True)
    shares = np.exp(log_joint - highest)
    totals = shares.sum(axis=1, keepdims=True)
    return shares / totals, (highest + np.log(totals))[:, 0]


def _maximised(features, responsibilities, prior):
    dim = len(prior)  # a covariance
    rows, columns = _pairs(dim)
    moments = responsibilities.T @ features  # (k, features)
    counts = np.maximum(moments[:, 0], 1e-12)
    means = moments[:, 1 : dim + 1] / counts[:, None]
    scatter = np.empty((len(counts), dim, dim))
    scatter[:, rows, columns] = scatter[:, columns, rows] = moments[:, dim + 1 :]
    scatter -= counts[:, None, None] * means[:, :, None] * means[:, None, :]
    covariances = (scatter + prior) / (counts + 1)[:, None, None]
    return Mixture(counts / len(features), means, covariances)
