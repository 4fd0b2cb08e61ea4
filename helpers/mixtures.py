"""Mixtures: how many Gaussian components a set of points has, by the Bayesian information criterion."""

import warnings
from itertools import pairwise

import numpy as np
from sklearn.mixture import GaussianMixture

# Rungs of the search for k that may be worse than the best before it stops climbing.
WORSE_RUNGS = 3


def fit_mixture(points, max_k: int = 50, search: str = "early", seed: int = 0):
    """Fit Gaussian mixtures with different numbers of components and keep the one with the lowest BIC.

    Parameters
    ----------
    points : array of shape (n, dim)
    max_k : int
        Largest k tried; never more than ``n // 2``, so that clusters hold two points on average.
    search : {"early", "exhaustive"}
        Whether to climb a ladder of values of k, stop when it only gets worse, and look closer around the best
        one; or to try every k as the source does. BIC over k has one broad valley, and both find its bottom
        (``benchmarks/build.py`` compares them).
    seed : int

    Returns
    -------
    (GaussianMixture, dict of int to float)
        The fitted mixture, and the BIC of each k that was tried, by ascending k.
    """
    points = np.asarray(points, dtype=np.float64)
    top = max(1, min(max_k, len(points) // 2))
    tried = {}

    def bic(k):
        if k not in tried:
            mixture = _fit(points, k, seed)
            tried[k] = mixture.bic(points), mixture
        return tried[k][0]

    searches = {"early": _search_ladder, "exhaustive": _search_all}
    if search not in searches:
        raise ValueError(f"search is 'early' or 'exhaustive', not {search!r}")
    best = searches[search](bic, top)
    return tried[best][1], {k: tried[k][0] for k in sorted(tried)}


def _search_all(bic, top):
    return min(range(1, top + 1), key=bic)


def _search_ladder(bic, top):
    """Return the k with the lowest BIC: rungs half as large again each, then halving the gaps beside the best."""
    rungs = [1]
    while rungs[-1] < top and rungs.index(min(rungs, key=bic)) >= len(rungs) - WORSE_RUNGS:
        rungs.append(min(top, max(rungs[-1] + 1, round(rungs[-1] * 1.5))))
    best = min(rungs, key=bic)
    while gaps := [
        (low + high) // 2 for low, high in pairwise(rungs) if best in (low, high) and high - low > 1
    ]:
        rungs = sorted({*rungs, *gaps})
        best = min(rungs, key=bic)
    return best


def choose_k(points, max_k: int = 50, search: str = "early", seed: int = 0) -> int:
    """Return the number of mixture components with the lowest BIC (see `fit_mixture`)."""
    mixture, _ = fit_mixture(points, max_k, search, seed)
    return mixture.n_components


def _fit(points, k, seed):
    """Fit one mixture, with more regularisation where the covariance is ill-defined (few or equal points)."""
    for regularisation in (1e-6, 1e-4, 1e-2, 1.0):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a fit that has not converged still has its BIC
                return GaussianMixture(k, random_state=seed, reg_covar=regularisation).fit(points)
        except ValueError:
            continue
    raise ValueError(f"no mixture of {k} components fits {len(points)} points: are there NaN values?")
