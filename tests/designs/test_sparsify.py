"""Fewer arms with the same information: in the plane three, found at once."""

import numpy as np
import pytest
from budgets import budget
from hypothesis import given, settings, strategies as st

from surepick.designs import rounding, solve
from surepick.designs.objective import Objective, information
from surepick.designs.problem import pose
from surepick.designs.solve import solve_design


def arms_in_the_plane(rng: np.random.Generator, kind: str, count: int) -> np.ndarray:
    arms = rng.standard_normal((count, 2))
    if kind == "circle":
        arms /= np.linalg.norm(arms, axis=1, keepdims=True)
    if kind == "cone":
        arms[:, 0] = 1.0
    if kind == "disc":
        arms *= (np.sqrt(rng.uniform(size=count)) / np.linalg.norm(arms, axis=1))[:, None]
    if kind == "half circle":
        arms = np.abs(arms) / np.linalg.norm(arms, axis=1, keepdims=True)
    return arms


@settings(max_examples=budget(150))
@given(st.integers(0, 2**32 - 1), st.sampled_from(["gaussian", "circle", "cone"]), st.integers(4, 90))
def test_in_the_plane_three_arms_carry_the_information_of_many(seed, kind, count):
    rng = np.random.default_rng(seed)
    problem = pose(arms_in_the_plane(rng, kind, count), None, rank_tolerance=None)
    weights = rng.dirichlet(np.ones(len(problem.basis)))
    fewer = rounding.reduced(problem, weights)
    assert np.count_nonzero(fewer) <= 3
    assert (fewer >= 0.0).all()
    assert fewer.sum() <= 1.0 + 1e-9
    before, after = (information(problem.basis, each) for each in (weights, fewer))
    np.testing.assert_allclose(after, before, atol=1e-8 * np.abs(before).max())


def test_arms_of_one_circle_need_no_elimination(monkeypatch):
    """On a circle all triangles have the same sum, so that the heaviest arm and two others are found at once."""
    monkeypatch.setattr(rounding, "null_space", None)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        problem = pose(arms_in_the_plane(rng, "circle", 60), None, rank_tolerance=None)
        fewer = rounding.reduced(problem, np.full(60, 1.0 / 60) * (1.0 + 1e-9))
        assert np.count_nonzero(fewer) <= 3


@pytest.mark.cases(12)
@pytest.mark.parametrize("tolerance", [0.05, 0.01, 0.001])
@pytest.mark.parametrize("kind", ["gaussian", "circle", "disc", "half circle", "cone"])
@pytest.mark.parametrize("some", [False, True])
def test_the_outline_is_enough_for_all_arms(monkeypatch, kind, tolerance, some):
    """Value and bound of the design of the outermost arms agree with all pairs, and with a design of all arms."""
    rng = np.random.default_rng(len(kind))
    features = arms_in_the_plane(rng, kind, 700) @ rng.standard_normal((2, 2))
    active = np.arange(0, 700, 5) if some else None
    design = solve_design(features, active, tolerance=tolerance)
    compared = features if active is None else features[active]
    inverse = np.linalg.inv(features.T @ (design.weights[:, None] * features))
    differences = compared[:, None] - compared[None, :]
    value = np.einsum("abi,ij,abj->ab", differences, inverse, differences).max()
    assert design.value == pytest.approx(value, rel=1e-9)
    assert design.gap <= tolerance
    monkeypatch.setattr(solve, "OUTLINE_ABOVE", 10**9)
    other = solve_design(features, active, tolerance=tolerance)
    assert max(design.lower_bound, other.lower_bound) <= min(design.value, other.value) * (1.0 + 1e-9)


def test_the_outline_is_solved_at_once(monkeypatch):
    """A disc and a circle need no second look: the small problem is certified by its first step."""
    steps = []
    iterated = solve.iterated

    def counted(objective: Objective, **options: object) -> object:
        found = iterated(objective, **options)
        steps.append(found.steps)
        return found

    monkeypatch.setattr(solve, "iterated", counted)
    for kind in ("circle", "disc"):
        solve_design(arms_in_the_plane(np.random.default_rng(0), kind, 10_000))
    assert steps == [1, 1]
