"""The number of components: the ladder against every k, on points of one to many clouds."""

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

from helpers.mixtures import SAMPLE, choose_k, fit_mixture


def clouds(count: int, size: int = 20, seed: int = 0) -> np.ndarray:
    """Return clouds of points around a grid, shape (count * size, 2)."""
    random = np.random.default_rng(seed)
    centres = np.array([(i % 5, i // 5) for i in range(count)]) * 8.0
    return np.concatenate([centre + random.normal(size=(size, 2)) for centre in centres])


@pytest.mark.parametrize("count", [1, 2, 5, 12])
def test_the_ladder_finds_the_bottom_of_the_valley_with_fewer_fits(count):
    points = clouds(count)
    # With two points a component every cloud falls apart: the likelihood of a pair has no bound.
    early, tried = fit_mixture(points, max_k=count + 6)
    full, every = fit_mixture(points, max_k=count + 6, search="exhaustive")
    assert early.n_components == full.n_components == count
    assert tried == {k: every[k] for k in tried}, "the same k gives the same fit"
    assert list(every) == list(range(1, count + 7))
    assert len(tried) < len(every)


def test_the_best_fit_is_kept_and_not_fitted_again():
    mixture, tried = fit_mixture(clouds(3))
    assert mixture.bic(clouds(3)) == tried[mixture.n_components] == min(tried.values())


@pytest.mark.parametrize("count", [1, 3, 7])
def test_scikit_learn_has_the_same_densities_and_nothing_to_improve(count):
    points = clouds(count, size=400)  # so many that the prior of one point is nothing
    mixture, _ = fit_mixture(points)
    oracle = GaussianMixture(
        mixture.n_components,
        weights_init=mixture.weights,
        means_init=mixture.means,
        precisions_init=np.linalg.inv(mixture.covariances),
    ).fit(points)
    # Both stop when a step brings less than 0.001 a point, so the oracle's last step is all that is between them.
    assert mixture.bic(points) == pytest.approx(oracle.bic(points), abs=2 * len(points) * 2e-3)
    assert mixture.means == pytest.approx(oracle.means_, abs=0.05)
    assert mixture.covariances == pytest.approx(oracle.covariances_, abs=0.05)
    assert mixture.predict_proba(points) == pytest.approx(oracle.predict_proba(points), abs=0.02)


def test_a_cold_start_of_scikit_learn_finds_no_better_mixture():
    points = clouds(6, size=40)
    mixture, _ = fit_mixture(points)
    cold = GaussianMixture(6, random_state=0, n_init=5).fit(points)
    assert mixture.bic(points) <= cold.bic(points) + 1


def test_k_of_many_points_is_chosen_on_a_sample_and_fitted_on_all():
    points = clouds(5, size=SAMPLE // 2)
    mixture, tried = fit_mixture(points, max_k=12)
    assert mixture.n_components == 5
    assert tried[5] < mixture.bic(points), "BIC sums over points, and the sample has fewer"
    whole = np.array([points[i : i + SAMPLE // 2].mean(axis=0) for i in range(0, len(points), SAMPLE // 2)])
    assert sorted(mixture.means.round(1).tolist()) == sorted(whole.round(1).tolist())


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("dim, size", [(2, 30), (3, 40), (10, 60)])
def test_one_cloud_of_few_points_does_not_fall_into_pairs(dim, size, seed):
    assert choose_k(np.random.default_rng(seed).normal(size=(size, dim)), search="exhaustive") == 1


@pytest.mark.parametrize("n, right", [(2, 1), (3, 1)])
def test_few_points_are_one_component(n, right):
    assert choose_k(clouds(1)[:n]) == right


def test_equal_points_have_a_mixture_too():
    assert choose_k(np.ones((30, 4))) == 1


def test_an_unknown_search_is_refused():
    with pytest.raises(ValueError, match="'early' or 'exhaustive'"):
        fit_mixture(clouds(1), search="fast")
