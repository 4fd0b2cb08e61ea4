"""The number of components: the ladder against every k, on points of one to many clouds."""

import numpy as np
import pytest

from helpers.mixtures import choose_k, fit_mixture


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


@pytest.mark.parametrize("n, right", [(2, 1), (3, 1)])
def test_few_points_are_one_component(n, right):
    assert choose_k(clouds(1)[:n]) == right


def test_equal_points_have_a_mixture_too():
    assert choose_k(np.ones((30, 4))) == 1


def test_an_unknown_search_is_refused():
    with pytest.raises(ValueError, match="'early' or 'exhaustive'"):
        fit_mixture(clouds(1), search="fast")
