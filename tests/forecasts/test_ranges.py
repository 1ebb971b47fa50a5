"""Forecasts as three ranges: what is drawn is what was asked for, and harder candidates take more."""

import re

import numpy as np
import pytest

import surepick as sp
from surepick.drawings.terminal import ASCII
from surepick.forecasts import forecast_ranges
from surepick.forecasts.scenarios import _means


def policy_for(number=8, epsilon=1.0, noise="subgaussian:1", **options):
    arms = sp.Arms(ids=range(number))
    return sp.make_policy("certified-independent", arms, epsilon=epsilon, delta=0.1, noise=noise, **options)


@pytest.fixture(scope="module")
def found():
    return forecast_ranges(policy_for())


def test_the_ranges_are_those_of_twenty_studies_each(found):
    assert [row.kind for row in found.rows] == ["clear", "usual", "nearly equal"]
    for row in found.rows:
        assert row.studies == 20
        assert row.fewest <= row.median <= row.most
        assert row.fewest_rounds <= row.rounds <= row.most_rounds
        assert not row.at_least
    assert found.rows[0].median <= found.rows[2].median
    assert found.usual.median < found.rows[2].median
    assert found == forecast_ranges(policy_for())


@pytest.mark.parametrize("kind", ["clear", "usual", "nearly equal"])
@pytest.mark.parametrize("noise", ["subgaussian:1", "bernoulli"])
def test_the_means_are_what_their_name_says(kind, noise):
    policy = policy_for(50, 0.05, noise)
    means = _means(policy, kind, 0.2, policy.problem.noise, np.random.default_rng(0))
    last, second, first = np.sort(means)[[0, -2, -1]]
    if noise == "bernoulli":
        assert 0.0 <= last <= first <= 1.0
    if kind == "clear" and noise != "bernoulli":
        assert first - second == pytest.approx(2 * 0.05)
    if kind == "nearly equal":
        assert first - last == pytest.approx(0.5 * 0.05)
    if kind == "usual" and noise != "bernoulli":
        assert means.std() == pytest.approx(0.2)


def test_where_features_are_used_the_means_are_functions_of_them():
    features = np.column_stack([np.linspace(-1, 1, 12), np.ones(12)])
    policy = sp.make_policy(
        "certified-linear", sp.Arms(features), epsilon=0.5, delta=0.1, noise="subgaussian:1", norm_bound=5
    )
    for kind in ("clear", "usual", "nearly equal"):
        means = _means(policy, kind, 3.0, policy.problem.noise, np.random.default_rng(1))
        fit = features @ np.linalg.lstsq(features, means, rcond=None)[0]
        np.testing.assert_allclose(fit, means, atol=1e-9)


def test_earlier_results_say_how_far_means_spread():
    earlier = np.linspace(0.0, 7.0, 8)
    assert forecast_ranges(policy_for(), earlier).spread == pytest.approx(earlier.std(ddof=1))
    assert forecast_ranges(policy_for(), spread=0.5).spread == 0.5
    assert forecast_ranges(policy_for()).spread == 3.0


def test_a_simulation_that_was_cut_says_more_than():
    found = forecast_ranges(policy_for(30, 0.05), most_seconds=0.05)
    assert any(row.at_least for row in found.rows)
    assert "more than" in str(found)


def test_the_picture_has_the_numbers_and_never_advises_against_the_study(found):
    lines = found.lines()
    assert len(lines) == 5
    assert all(len(line) <= 60 for line in lines[1:4])
    for row, line in zip(found.rows, lines[1:4], strict=True):
        assert line.endswith(row.said)
        assert line.count("●") == 1
    assert all(line.isascii() for line in found.lines(ASCII))
    page = found._repr_html_()
    assert page.count('class="g-range"') == 3
    assert page.count('class="g-median"') == 3
    assert not re.search(r"instead|saves nothing|more than uniform|rather", page + str(found))
    assert ("equally often" in str(found)) == (found.uniform > found.rows[-1].median)
    assert repr(found).startswith("<Ranges: 8 candidates, epsilon 1; measurements clear ")
    assert found.to_frame()["median"] == [row.median for row in found.rows]


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        (lambda: policy_for(question="above", threshold=0.5), {}),
        (policy_for, {"studies": 5}),
        (policy_for, {"earlier": [1.0, 2.0]}),
        (policy_for, {"spread": -1.0}),
    ],
)
def test_what_has_no_ranges_is_refused(policy, options):
    with pytest.raises(sp.InvalidInput):
        forecast_ranges(policy(), **options)
