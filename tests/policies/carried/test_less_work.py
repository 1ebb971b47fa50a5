"""What is not formed again is what would have been formed: fits, short lists, bounds, posed arms."""

from dataclasses import replace

import numpy as np
import pytest

import surepick as sp
from surepick.designs import DesignInput, solve_target_design
from surepick.estimators import RegularLeastSquares, least_squares, posterior
from surepick.estimators.posterior import chances_of_fit, chances_of_vectors
from surepick.linalg.factorisations import row_norms, whitened
from surepick.policies.carried.situation import DecisionContext, looked_at
from surepick.policies.sequential.state import intersected


def batch(rng: np.random.Generator, num_arms: int, pulled: int) -> sp.Observations:
    counts = np.zeros(num_arms, np.int64)
    counts[rng.choice(num_arms, pulled, replace=False)] = rng.integers(1, 5, pulled)
    return sp.Observations(counts, counts * rng.normal(size=num_arms))


@pytest.mark.parametrize(("num_arms", "dim"), [(40, 3), (3_001, 7), (20_000, 20)])
def test_a_fit_that_forms_few_coordinates_is_least_squares(num_arms, dim):
    rng = np.random.default_rng(dim)
    embedded = sp.Embedding(rng.standard_normal((num_arms, dim)), 0.0)
    seen, white = batch(rng, num_arms, 2 * dim), whitened(embedded.features)
    whole, fitted = least_squares(embedded, seen, white=white), RegularLeastSquares.of(white, seen)
    np.testing.assert_allclose(fitted.scores, whole.scores, rtol=1e-12, atol=1e-12)
    some, one = rng.choice(num_arms, 33, replace=False), np.array([5])
    np.testing.assert_allclose(fitted.coordinates_of(some), whole.coordinates[some], rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(fitted.distances(some, one), whole.distances(some, one), rtol=1e-9)
    assert fitted.distances(np.array([4, 5]), one)[1, 0] == 0.0
    assert fitted.comparable.all()
    assert fitted.total == whole.total


def test_there_is_none_where_the_pulls_do_not_see_all_directions():
    rng = np.random.default_rng(0)
    white = whitened(rng.standard_normal((50, 6)))
    assert RegularLeastSquares.of(white, batch(rng, 50, 4)) is None
    assert RegularLeastSquares.of(white, sp.Observations(np.zeros(50, np.int64), np.zeros(50))) is None


@pytest.mark.parametrize("pulled", [6, 40, 2_000])
def test_the_short_list_is_that_of_all_arms(monkeypatch, pulled):
    monkeypatch.setattr(posterior, "MANY", 100)
    rng = np.random.default_rng(pulled)
    features = rng.standard_normal((5_000, 5)) * rng.exponential(size=(5_000, 1))
    white = whitened(features)
    fitted = RegularLeastSquares.of(white, batch(rng, 5_000, pulled))
    found = chances_of_fit(fitted, row_norms(white.basis), 0.1, 0.7)
    whole = chances_of_vectors(fitted.scores, fitted.coordinates_of(np.arange(5_000)), 0.1, noise_scale=0.7)
    np.testing.assert_array_equal(found, whole)


@pytest.mark.parametrize("candidates", [2_000, 20_000])
def test_bounds_of_processes_that_changed_are_those_of_all(monkeypatch, candidates):
    rng = np.random.default_rng(candidates + 4)
    features = rng.standard_normal((candidates, 6))
    theta = rng.standard_normal(6)
    means = features @ (theta / np.sqrt(theta @ theta))
    few, told = [], DecisionContext.tightened_by

    def compared(self, state, processes, candidate):
        found = told(self, state, processes, candidate)
        whole = self.upper_bounds(processes, candidate, state.roster)
        np.testing.assert_array_equal(found[-1].bounds, intersected(state.tested, candidate, whole)[-1].bounds)
        if looked_at(state, candidate):
            few.append(len(processes.changed_since(state.vectors)))
            before = np.minimum(state.bounds_of(candidate), self.upper_bounds(state.vectors, candidate, state.roster))
            np.testing.assert_array_equal(before, state.bounds_of(candidate))
        return found

    monkeypatch.setattr(DecisionContext, "tightened_by", compared)
    policy = sp.make_policy(
        "certified-linear", sp.Arms(features), epsilon=0.02, delta=0.05, noise=sp.SubGaussian(0.5), norm_bound=1.0
    )
    state = policy.init()
    while not policy.claim(state).finished:
        plan = policy.ask(state)
        sums = plan.counts * means + 0.5 * np.sqrt(plan.counts) * rng.normal(size=candidates)
        state = policy.tell(state, plan, sp.Observations(plan.counts, sums)).state
    assert any(0 < one < candidates // 8 for one in few)


def test_processes_that_moved_are_looked_at_anew():
    policy = sp.make_policy(
        "certified-linear",
        sp.Arms(np.random.default_rng(0).standard_normal((50, 4))),
        epsilon=0.2,
        delta=0.05,
        noise=sp.SubGaussian(0.5),
        norm_bound=1.0,
    )
    state, rng = policy.init(), np.random.default_rng(1)
    plan = policy.ask(state)
    state = policy.tell(state, plan, sp.Observations(plan.counts, plan.counts * rng.normal(size=50))).state
    assert looked_at(state, state.leader)
    assert not looked_at(state, (state.leader + 1) % 50)
    assert not looked_at(replace(state, dim=state.dim - 1), state.leader)


def test_whitened_arms_are_posed_as_the_arms_are():
    rng = np.random.default_rng(4)
    features = rng.standard_normal((500, 5)) @ rng.standard_normal((5, 5))
    white = whitened(features)
    arms = DesignInput.of(features, white=lambda: white)
    plain = DesignInput.of(features)
    np.testing.assert_array_equal(arms.problem.basis, plain.problem.basis)
    assert arms.distinct
    again, targets = DesignInput.of(white.basis / 0.3), white.basis[:9] - white.basis[9]
    one, other = (solve_target_design(posed, targets) for posed in (again, arms.whitened_at(0.3)))
    assert one.value == pytest.approx(other.value, rel=1e-9)
    np.testing.assert_allclose(one.weights, other.weights, atol=1e-6)
    assert not DesignInput.of(np.concatenate([features, features[:1]]), white=lambda: white).distinct
