"""Guesses in many directions: the posterior of a normal prior, beside the same by covariances of the arms' means."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from together import of_each

from surepick.core.observations import Observations
from surepick.estimators import RegularLeastSquares
from surepick.linalg.factorisations import whitened

ARMS, DIM, NORM_BOUND = 30, 8, 2.0


def case(seed, *, scale=1.0):
    rng = np.random.default_rng(seed)
    features = scale * rng.standard_normal((ARMS, DIM)) * 2.0 ** -np.arange(DIM)
    scales = rng.uniform(0.3, 0.9, ARMS)
    counts = np.where(rng.random(ARMS) < 0.4, rng.integers(1, 4, ARMS), 0)
    theta = rng.standard_normal(DIM)
    means = features @ theta * NORM_BOUND / np.linalg.norm(theta)
    sums = counts * means + scales * np.sqrt(counts) * rng.standard_normal(ARMS)
    return features, Observations(counts, sums), scales


def posterior(features, seen, scales):
    """(scores, covariance of the means, t) by the covariance of the averages, for the likeliest of the same t."""
    pulled = np.flatnonzero(seen.counts)
    averages, noise = seen.sums[pulled] / seen.counts[pulled], np.diag(scales[pulled] ** 2 / seen.counts[pulled])
    tried = NORM_BOUND**2 * 10.0 ** (-np.arange(41) / 4)
    gram = features @ features.T
    inside = gram[np.ix_(pulled, pulled)]
    prior = max(tried, key=lambda t: multivariate_normal.logpdf(averages, cov=t * inside + noise))
    gain = prior * gram[:, pulled] @ np.linalg.inv(prior * inside + noise)
    return gain @ averages, prior * gram - gain @ (prior * gram[pulled]), prior


@of_each("seed", range(12))
def test_scores_and_errors_are_those_of_the_posterior(seed):
    features, seen, scales = case(seed)
    fitted = RegularLeastSquares.shrunk(features, None, seen, noise_scales=scales, norm_bound=NORM_BOUND)
    scores, covariance, _ = posterior(features, seen, scales)
    np.testing.assert_allclose(fitted.scores, scores, rtol=1e-6, atol=1e-9)
    variances = np.diag(covariance)[:, None] + np.diag(covariance) - 2.0 * covariance
    errors = scales.max() * fitted.distances(np.arange(ARMS), np.arange(ARMS))
    np.testing.assert_allclose(errors, np.sqrt(np.maximum(variances, 0.0)), rtol=1e-5, atol=1e-6)


def test_the_prior_depends_on_what_was_measured():
    priors = {posterior(*case(seed))[2] for seed in range(12)}
    assert len(priors) > 2


@of_each("seed", range(4))
def test_whitened_coordinates_change_nothing(seed):
    features, seen, scales = case(seed)
    white = whitened(features).basis
    back = white.T @ features / ARMS
    given = {"noise_scales": scales, "norm_bound": NORM_BOUND}
    plain, other = (RegularLeastSquares.shrunk(*at, seen, **given) for at in ((features, None), (white, back)))
    np.testing.assert_allclose(plain.scores, other.scores, rtol=1e-8, atol=1e-10)
    everybody = np.arange(ARMS)
    np.testing.assert_allclose(
        plain.distances(everybody, everybody), other.distances(everybody, everybody), rtol=1e-6, atol=1e-7
    )


@pytest.mark.parametrize("scale", [1e-90, 1e-3, 1e90])
def test_units_change_nothing(scale):
    """Features times a number, and the norm bound divided by it."""
    features, seen, scales = case(3)
    usual = RegularLeastSquares.shrunk(features, None, seen, noise_scales=scales, norm_bound=NORM_BOUND)
    other = RegularLeastSquares.shrunk(scale * features, None, seen, noise_scales=scales, norm_bound=NORM_BOUND / scale)
    np.testing.assert_allclose(other.scores, usual.scores, rtol=1e-9)


def test_nothing_measured_says_nothing():
    features, _, scales = case(0)
    nothing = Observations(np.zeros(ARMS, np.int64), np.zeros(ARMS))
    fitted = RegularLeastSquares.shrunk(features, None, nothing, noise_scales=scales, norm_bound=NORM_BOUND)
    assert not fitted.scores.any()
    assert np.isfinite(fitted.distances(np.arange(ARMS), np.arange(ARMS))).all()


def test_the_luckiest_of_many_arms_leads_by_less():
    """What it is for: in as many directions as pulls the lead of the best guess is mostly noise."""
    rng, dim, arms = np.random.default_rng(5), 60, 2000
    features = rng.standard_normal((arms, dim)) * 0.9 ** np.arange(dim)
    counts = np.zeros(arms, np.int64)
    counts[:90] = 1
    usual, drawn = [], []
    for _ in range(20):
        theta = rng.standard_normal(dim)
        means = features @ theta / np.linalg.norm(theta)
        seen = Observations(counts, counts * (means + 0.5 * rng.standard_normal(arms)))
        white = whitened(features)
        least = RegularLeastSquares.of(white, seen)
        shrunk = RegularLeastSquares.shrunk(features, None, seen, noise_scales=np.full(arms, 0.5), norm_bound=1.0)
        for kept, fitted in ((usual, least), (drawn, shrunk)):
            leader = int(np.argmax(fitted.scores))
            kept.append((fitted.scores[leader] - means[leader], means.max() - means[leader]))
    assert np.mean(drawn, axis=0)[0] < 0.5 * np.mean(usual, axis=0)[0]
    assert np.mean(drawn, axis=0)[1] < np.mean(usual, axis=0)[1]


@pytest.mark.parametrize("ratio", [1.0, 1e4, 1e8])
def test_one_precise_arm_does_not_drown_the_others(ratio):
    features, seen, scales = case(1)
    scales[np.flatnonzero(seen.counts)[0]] /= ratio
    fitted = RegularLeastSquares.shrunk(features, None, seen, noise_scales=scales, norm_bound=NORM_BOUND)
    off = np.inf
    for prior in NORM_BOUND**2 * 10.0 ** (-np.arange(41) / 4):  # ridge regression by its augmented rows
        weights = np.sqrt(seen.counts) / scales
        rows = np.concatenate([weights[:, None] * features, np.eye(DIM) / np.sqrt(prior)])
        values = np.concatenate([weights * seen.means, np.zeros(DIM)])
        off = min(off, np.abs(features @ np.linalg.lstsq(rows, values, rcond=None)[0] - fitted.scores).max())
    assert off < 1e-6
