"""Clustering at every size. "Bug n" is the number in the bank of faults reported elsewhere."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from fakes import random_vectors
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.stats import multivariate_normal
from sklearn.mixture import GaussianMixture

from helpers import clustering as module
from helpers.clustering import choose_k, cluster, fit_mixture

ROOT = Path(__file__).parents[1]


def blobs(*centers, size=20, spread=0.1, seed=0):
    noise = np.random.default_rng(seed).normal(scale=spread, size=(len(centers), size, len(centers[0])))
    return (np.array(centers)[:, None, :] + noise).reshape(-1, len(centers[0]))


def members(clusters):
    return [rows.tolist() for rows in clusters]


def assert_sound(clusters, n, max_parents=2):
    """What holds for every clustering, whatever UMAP made of the data."""
    counts = Counter(row for rows in members(clusters) for row in rows)
    assert set(counts) == set(range(n)), "a row is in no cluster"
    assert max(counts.values()) <= max_parents
    assert len(clusters) <= max(1, n // 2), "a layer of these would not shrink by half"
    assert all(rows == sorted(set(rows)) for rows in members(clusters))
    assert len({tuple(rows) for rows in members(clusters)}) == len(clusters), "the same cluster twice"


@pytest.fixture
def plain_reduction(monkeypatch):
    """The vectors stand for their own reduction, so that nothing hangs on where UMAP puts them."""
    monkeypatch.setattr(module, "reduce_dimensions", lambda vectors, *_: vectors)


# Every size


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_few_vectors_are_one_cluster_without_umap(n, no_umap):  # bug 1
    assert members(cluster(random_vectors(n))) == [list(range(n))]


def test_the_umap_that_is_blocked_above_is_the_one_that_clustering_calls(no_umap):
    with pytest.raises(ImportError):
        cluster(random_vectors(12))


@pytest.mark.parametrize("n", range(1, 31))
def test_every_n_works(n):  # bug 2
    assert_sound(cluster(random_vectors(n), dim=10), n)


@pytest.mark.parametrize("n", [13, 20, 27])
def test_random_vectors_make_at_most_half_as_many_clusters(n):  # bug 6
    for seed in range(3):
        assert 1 <= len(cluster(random_vectors(n, seed=seed))) <= n // 2


def test_no_vectors_are_refused():
    with pytest.raises(ValueError, match=r"shape \(n, d\) with n >= 1"):
        cluster(np.empty((0, 5)))
    with pytest.raises(ValueError, match=r"got shape \(5,\)"):
        cluster(np.ones(5))


@pytest.mark.parametrize("n", [3, 30])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_value_that_is_no_number_is_refused_with_its_row(value, n):
    vectors = random_vectors(n)
    vectors[2, 1] = value
    with pytest.raises(ValueError, match="NaN or infinite values in the vectors, first in row 2"):
        cluster(vectors)


# Equal rows


def test_a_hundred_equal_vectors_are_one_cluster(no_umap):
    assert members(cluster(np.ones((100, 8)))) == [list(range(100))]


def test_fifteen_rows_of_three_distinct_ones(no_umap):
    assert members(cluster(np.repeat(np.eye(3), 5, axis=0))) == [list(range(15))]


def test_float32_duplicates_share_their_clusters():
    distinct = random_vectors(20).astype(np.float32)
    clusters = cluster(np.concatenate([distinct, distinct]))
    assert_sound(clusters, 40)
    for rows in members(clusters):
        assert {row % 20 for row in rows if row < 20} == {row % 20 for row in rows if row >= 20}


def test_a_mixture_fits_points_on_a_line():
    """With scikit-learn's regularisation alone: "ill-defined empirical covariance"."""
    points = np.outer(np.arange(20), np.ones(3)) * 1e5
    with pytest.raises(ValueError, match="ill-defined empirical covariance"):
        GaussianMixture(1).fit(points)
    assert 1 <= choose_k(points) <= 10


# Any machine

SAME_CLUSTERS = """
import numba, numpy as np
from threadpoolctl import threadpool_limits
from helpers.clustering import cluster
vectors = np.random.default_rng(0).normal(size=(40, 32))
for threads in (1, 1, 2):
    numba.set_num_threads(threads)
    with threadpool_limits(threads):
        print([rows.tolist() for rows in cluster(vectors)])
"""


def test_the_same_clusters_each_time_and_with_any_number_of_threads():  # bug 27
    environment = os.environ | {"NUMBA_NUM_THREADS": "2", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", SAME_CLUSTERS]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    first, again, two_threads = run.stdout.splitlines()
    assert first == again == two_threads
    assert first.count("[") > 2, "one cluster is the same by necessity"
    assert run.stderr == "", "UMAP or numba warns, in every notebook"


# The number of components


@pytest.mark.parametrize("max_k, right", [(2, 2), (1, 1)])
def test_the_largest_k_is_tried_too(max_k, right):  # bug 7
    assert choose_k(blobs([0, 0], [5, 5]), max_k=max_k) == right


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_the_ladder_finds_the_k_of_the_full_search(count):
    points = blobs(*[[0, 0], [5, 0], [0, 5], [5, 5]][:count], size=40)
    early, early_bic = fit_mixture(points, search="early")
    full, full_bic = fit_mixture(points, search="exhaustive")
    assert early.n_components == full.n_components == count
    assert list(full_bic) == list(range(1, min(50, len(points) // 2) + 1))
    assert early_bic == {k: full_bic[k] for k in early_bic}
    assert len(early_bic) <= 12 < len(full_bic)


def test_bic_by_its_definition():
    points = blobs([0, 0, 0], [4, 0, 1], [0, 4, 2])
    mixture, bic = fit_mixture(points)
    k, (n, d) = mixture.n_components, points.shape
    parts = zip(mixture.weights, mixture.means, mixture.covariances, strict=True)
    densities = sum(weight * multivariate_normal(mean, cov).pdf(points) for weight, mean, cov in parts)
    parameters = (k - 1) + k * d + k * d * (d + 1) // 2  # weights, means, symmetric covariances
    assert k == 3
    assert bic[k] == pytest.approx(parameters * np.log(n) - 2 * np.log(densities).sum())
    assert bic[k] == min(bic.values())


def test_k_is_at_most_half_the_points():
    _, bic = fit_mixture(random_vectors(9, 2), search="exhaustive")
    assert list(bic) == [1, 2, 3, 4]


def test_an_unknown_search_is_refused():
    with pytest.raises(ValueError, match="'early' or 'exhaustive', not 'quick'"):
        choose_k(random_vectors(5), search="quick")


# Soft membership

TOUCHING = blobs([0, 0], [3.5, 0], size=30, spread=1, seed=4)


def test_membership_is_the_probability_over_the_threshold(plain_reduction):
    """With dim=40 the second stage leaves clusters of up to 41 points alone, so the first one is seen."""
    joins = fit_mixture(TOUCHING)[0].predict_proba(TOUCHING) > 0.1
    assert joins.all(axis=1).any(), "no point is in both: the test sees no soft membership"
    assert members(cluster(TOUCHING, dim=40, threshold=0.1, margin=0)) == [
        np.flatnonzero(column).tolist() for column in joins.T
    ]


def test_a_point_below_every_threshold_joins_its_likeliest_cluster(plain_reduction):
    assert_sound(cluster(TOUCHING, threshold=0.999, margin=0), len(TOUCHING))


# Two directions, and one vector halfway: its cosine with both centroids is nearly the same.
BETWEEN = np.vstack([blobs([1, 0], [0, 1], size=20, spread=0.02), [[0.7, 0.7]]])


def test_a_point_between_two_blobs_is_in_both(plain_reduction):
    first, second = sorted(members(cluster(BETWEEN)))
    assert first == [*range(20), 40]
    assert second == [*range(20, 40), 40]


def test_margin_zero_leaves_membership_to_the_mixture(plain_reduction):
    assert Counter(np.concatenate(cluster(BETWEEN, margin=0)).tolist()) == Counter(range(41))


def test_max_parents_is_the_most_clusters_a_row_is_in(plain_reduction):
    corners = blobs([1, 0, 0], [0, 1, 0], [0, 0, 1], size=20, spread=0.02)
    vectors = np.vstack([corners, [[0.6, 0.6, 0.6]]])
    for max_parents in (1, 2, 3):
        clusters = members(cluster(vectors, dim=45, margin=0.1, max_parents=max_parents))
        assert sum(60 in rows for rows in clusters) == max_parents
        assert len(clusters) == 3


def test_clusters_that_take_in_all_of_each_other_are_one(plain_reduction):
    """Both would be summarised alike, and one tree cannot hold the same node twice."""
    vectors = blobs([10, 0.5], [10, -0.5], [0, 10], size=10, spread=0.05)
    assert sorted(members(cluster(vectors))) == [list(range(20)), list(range(20, 30))]


def test_no_cluster_has_a_single_row(plain_reduction):
    """A summary of one text is not worth its price: such a row goes to the nearest cluster."""
    vectors = np.vstack([blobs([1, 0], [0, 1], size=20, spread=0.02), [[5, 3]]])
    components = fit_mixture(vectors)[0].predict_proba(vectors).argmax(axis=1)
    assert 1 in Counter(components.tolist()).values(), "the mixture gives the far row a component of its own"
    assert sorted(members(cluster(vectors, margin=0))) == [[*range(20), 40], [*range(20, 40)]]


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    vectors=arrays.arrays(float, st.tuples(st.integers(1, 24), st.just(3)), elements=st.integers(-3, 3)),
    margin=st.sampled_from([0, 0.05, 0.5]),
    max_parents=st.integers(1, 3),
    threshold=st.sampled_from([0.01, 0.1, 0.9]),
)
def test_any_vectors_are_clustered_soundly(vectors, margin, max_parents, threshold):
    """Small whole numbers: many equal rows, rows of zeros, rows on one line."""
    with mock.patch.object(module, "reduce_dimensions", lambda rows, *_: rows):
        options = {"dim": 3, "margin": margin, "max_parents": max_parents, "threshold": threshold}
        clusters = cluster(vectors, **options)
        again = cluster(vectors, **options)
    assert_sound(clusters, len(vectors), max_parents)
    assert members(clusters) == members(again)
    for rows in clusters:
        outside = np.delete(vectors, rows, axis=0)
        assert not any((outside == vectors[row]).all(axis=1).any() for row in rows), "equal rows are parted"
