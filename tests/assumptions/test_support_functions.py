"""The support function of each class against the worst of its functions, found by a linear programme or written out."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog

import surepick as sp
from surepick.assumptions import AllOf, Effects, InRange, Linear, Near, NoStructure, Scatter, Smooth, SumOf
from surepick.assumptions.lines import Lines
from surepick.assumptions.records import LEVEL
from surepick.errors import InvalidInput
from surepick.estimators.flows import ArmFlows

ARMS, ROUNDS = 6, 3
seeds = st.integers(0, 10_000)
few = settings(max_examples=12)


def drawn(seed: int, *, negated: bool = False) -> tuple[Lines, np.ndarray, np.ndarray]:
    """(lines of all rivals of an arm, u of each, D of each written out, (m, K))."""
    rng = np.random.default_rng(seed)
    pulled = np.sort(rng.permutation(ARMS)[: rng.integers(1, ARMS + 1)])
    candidate = int(rng.integers(ARMS))
    rivals = np.delete(np.arange(ARMS), candidate)
    flows = rng.normal(0.0, 3.0, (len(rivals), len(pulled)))
    zeros = np.zeros(len(rivals))
    held = ArmFlows(
        arms=rivals,
        pulled=pulled,
        flows=flows,
        lengths=np.abs(flows).sum(axis=1),
        log_values=zeros,
        squares=zeros,
        spent=zeros,
        batches=rng.normal(0.0, 1.0, (len(rivals), ROUNDS)),
        threshold=3.0,
        terms=10,
    )
    inverse = 10.0 ** rng.uniform(-2.0, 1.0, len(rivals))
    differences = np.zeros((len(rivals), ARMS))
    differences[:, pulled] = inverse[:, None] * flows
    differences[:, candidate] -= 1.0
    differences[np.arange(len(rivals)), rivals] += 1.0
    lines = Lines(rng.normal(0.0, 1.0, (ARMS, 2)), candidate, held, negated=negated)
    return lines, inverse, -differences if negated else differences


def worst(differences: np.ndarray, matrix: np.ndarray, norm: float, bounds: list[tuple[float, float]]) -> float:
    """The most that <D, Z theta + eta> is among functions of the class, ||theta|| <= norm, eta within bounds; D (K,).

    The function along Z'D with eta at its bounds, and a hundred random ones, of which none may lie above it.
    """
    slope = matrix.T @ differences
    rng = np.random.default_rng(0)
    thetas = np.vstack([slope, rng.normal(size=(100, len(slope)))])
    thetas *= norm / np.maximum(np.linalg.norm(thetas, axis=1, keepdims=True), 1e-300)
    low, high = np.array(bounds).T
    etas = np.vstack([np.where(differences > 0.0, high, low), rng.uniform(low, high, (100, len(low)))])
    return float(np.max((thetas @ matrix.T + etas) @ differences))


def is_attained(found: np.ndarray, wanted: list[float]) -> None:
    """B is an upper bound, and no more than rounding above what some function of the class attains."""
    size = 1.0 + np.abs(wanted)
    assert np.all(found >= np.array(wanted) - 1e-6 * size)
    assert np.all(found <= np.array(wanted) + 2e-5 * size)


@few
@given(seeds, st.booleans())
def test_a_range(seed, negated):
    lines, inverse, differences = drawn(seed, negated=negated)
    found = InRange(-1.0, 3.0).support(lines).at(inverse)
    is_attained(found, [-linprog(-one, bounds=[(-1.0, 3.0)] * ARMS).fun for one in differences])


@few
@given(seeds, st.booleans())
def test_linear_functions(seed, level):
    lines, inverse, differences = drawn(seed)
    matrix = np.column_stack([lines.features, np.full(ARMS, LEVEL if level else 0.0)])
    found = Linear(2.0, level).support(lines).at(inverse)
    is_attained(found, [worst(one, matrix, 2.0, [(0.0, 0.0)] * ARMS) for one in differences])


@few
@given(seeds, st.booleans())
def test_functions_of_the_space_of_a_kernel(seed, level):
    lines, inverse, differences = drawn(seed)
    smooth = Smooth(sp.GaussianKernel(0.4), 2.0, level)
    matrix = np.column_stack([smooth.coordinates(lines.features), np.full(ARMS, LEVEL if level else 0.0)])
    found = smooth.support(lines).at(inverse)
    is_attained(found, [worst(one, matrix, 2.0, [(0.0, 0.0)] * ARMS) for one in differences])


@few
@given(seeds)
def test_functions_near_linear_ones_and_sums_with_a_range(seed):
    lines, inverse, differences = drawn(seed)
    near = Near(Linear(2.0, level=False), 0.3).support(lines).at(inverse)
    is_attained(near, [worst(one, lines.features, 2.0, [(-0.3, 0.3)] * ARMS) for one in differences])
    added = SumOf((InRange(0.0, 0.5), Linear(2.0, level=False))).support(lines).at(inverse)
    is_attained(added, [worst(one, lines.features, 2.0, [(0.0, 0.5)] * ARMS) for one in differences])


@few
@given(seeds)
def test_effects_of_rounds(seed):
    lines, inverse, _ = drawn(seed)
    found = Effects("round", 0.7).support(lines).at(inverse)
    sums = inverse[:, None] * lines.held.batches
    is_attained(found, [-linprog(-one, bounds=[(-0.7, 0.7)] * ROUNDS).fun for one in sums])


@few
@given(seeds)
def test_what_holds_together_is_bounded_by_each(seed):
    """An upper bound alone: functions that are linear and in a range may attain less than either."""
    lines, inverse, differences = drawn(seed)
    both = AllOf((Linear(2.0, level=False), InRange(-1.0, 1.0), Scatter(0.5)))
    found = both.support(lines).at(inverse)
    box = np.vstack([lines.features, -lines.features])
    for one, bound in zip(differences, found, strict=True):
        slope = lines.features.T @ one
        inner = linprog(-slope, A_ub=box, b_ub=np.ones(2 * ARMS), bounds=[(-2.0 / 2**0.5, 2.0 / 2**0.5)] * 2)
        assert bound >= -inner.fun - 1e-9


def test_without_structure_only_flows_on_the_two_arms_alike_say_something():
    lines, _, _ = drawn(3)
    pulled = np.arange(ARMS)
    flows = np.zeros((len(lines.rivals), ARMS))
    amounts = np.array([0.1, 0.3, 1e-7, 3.0, 1e5])
    flows[:, lines.candidate] = amounts
    flows[np.arange(len(lines.rivals)), lines.rivals] = -amounts
    flows[1, lines.rivals[0]] = 1e-6
    held = ArmFlows(
        lines.rivals, pulled, flows, np.abs(flows).sum(axis=1), *([np.zeros(5)] * 3), np.zeros((5, 1)), 3.0, 5
    )
    found = NoStructure().support(Lines(lines.features, lines.candidate, held)).at(1.0 / amounts)
    assert found.tolist() == [0.0, np.inf, 0.0, 0.0, 0.0]
    assert NoStructure().support(Lines(lines.features, lines.candidate, held)).at(1.01 / amounts).min() == np.inf


@pytest.mark.parametrize("kind", [Linear(3.0), Linear(3.0, level=False), Smooth(sp.GaussianKernel(0.4), 3.0)])
def test_rounding_is_on_the_safe_side_where_flows_cancel(kind):
    """Flows of a million that leave nothing: exact arithmetic says 0, and B is above what rounding makes of it."""
    lines, _, _ = drawn(5)
    size, rivals = 1e6, lines.rivals
    flows = np.zeros((len(rivals), ARMS))
    flows[:, lines.candidate], flows[np.arange(len(rivals)), rivals] = size, -size
    held = ArmFlows(
        rivals, np.arange(ARMS), flows, np.abs(flows).sum(axis=1), *([np.zeros(5)] * 3), np.zeros((5, 1)), 3.0, 50
    )
    found = kind.support(Lines(lines.features, lines.candidate, held)).at(np.full(len(rivals), 1.0 / size))
    assert np.all(found > 0.0)
    assert np.all(found < 1e-5 * 3.0 * LEVEL)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Linear(0.0), "norm is 0"),
        (lambda: Smooth(kernel="gaussian"), "kernel is"),
        (lambda: InRange(1.0, 1.0), "the smaller first"),
        (lambda: Near(Linear(), -0.1), "at least 0"),
        (lambda: Near(Scatter(1.0), 0.1), "functions"),
        (lambda: SumOf((Linear(), AllOf((Linear(),)))), "functions"),
        (lambda: Effects("round", 0.0), "size is 0"),
        (lambda: Scatter(-1.0), "most is -1"),
        (lambda: AllOf(()), "at least one"),
        (lambda: Linear().support(drawn(0)[0]), "lacks a norm; write linear:norm=10"),
        (lambda: Effects("plate", 0.1).support(drawn(0)[0]), "'plate' cannot be read"),
    ],
)
def test_what_has_no_meaning_is_refused(make, words):
    with pytest.raises(InvalidInput, match=words):
        make()
