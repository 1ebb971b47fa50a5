"""The design solver against brute force: exact integer arithmetic over all pairs, and an optimiser of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pytest
from budgets import budget, few_and_all
from hypothesis import given, settings, strategies as st

from surepick.core.plans import Design
from surepick.designs import solve_design

TOLERANCE = 0.01
BATCH = 25
STEPS = 26
CLOSE = 1e-7  # what rounding may do to a value
NEAR = 1e-5  # as near to the solver's bound the optimiser's value is computed in exact arithmetic
EPS = float(np.finfo(float).eps)
KINDS = ["gaussian", "grid", "signs", "duplicates", "sphere", "shallow", "tilted", "clusters", "curve"]


def drawn(rng: np.random.Generator, kind: str, num_arms: int, dim: int) -> np.ndarray:
    """Features of one instance, shape (num_arms, dim)."""
    features, small = rng.standard_normal((num_arms, dim)), 10.0 ** rng.uniform(-9, -3)
    if kind == "grid":
        return rng.integers(-2, 3, (num_arms, dim)) * 1.0
    if kind == "signs":
        return rng.choice([-1.0, 1.0], (num_arms, dim))
    if kind == "duplicates":
        return features[rng.integers(0, 1 + num_arms // 3, num_arms)]
    if kind == "sphere":
        return features / np.linalg.norm(features, axis=1)[:, None]
    if kind == "shallow":
        features[:, rng.integers(dim)] *= small
    elif kind == "tilted":
        features[:, 0] *= small
        features = features @ np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    elif kind == "clusters":
        centres = rng.uniform(0.1, 1.0, (2, dim))
        features = centres[rng.integers(0, 2, num_arms)]
        features[np.arange(num_arms), rng.integers(0, dim, num_arms)] += small * rng.standard_normal(num_arms)
    elif kind == "curve":
        features = np.vander(rng.uniform(-1, 1, num_arms) * rng.choice([1.0, 0.1]), dim)
    return features


# ---- exact arithmetic: floating-point numbers are whole numbers of some power of two


def whole(numbers: np.ndarray) -> tuple[np.ndarray, int]:
    """Whole numbers n and a power of two p with numbers = n / p, exactly."""
    ratios = [float(number).as_integer_ratio() for number in numbers]
    power = max(denominator for _, denominator in ratios)
    return np.array([top * (power // denominator) for top, denominator in ratios], object), power


def eliminated(matrix: np.ndarray, columns: int) -> tuple[np.ndarray, list[int], int]:
    """Fraction-free Gauss-Jordan elimination (Bareiss) of the first columns: (rows, pivot columns, last pivot).

    Afterwards each pivot column is the last pivot times a unit vector; every division is exact.
    """
    rows, pivots, last = matrix.copy(), [], 1
    for column in range(columns):
        top = len(pivots)
        found = np.flatnonzero(rows[top:, column])
        if len(found) == 0:
            continue
        rows[[top, top + found[0]]] = rows[[top + found[0], top]]
        pivot, others = rows[top, column], np.arange(len(rows)) != top
        rows[others] = (pivot * rows[others] - np.outer(rows[others, column], rows[top])) // last
        pivots.append(column)
        last = pivot
        if len(pivots) == len(rows):
            break
    return rows, pivots, last


def exact_value(features: np.ndarray, weights: np.ndarray, active: np.ndarray) -> float:
    """max over a, b of (x_a - x_b)'A^+(x_a - x_b), rounded once; infinite unless every difference is in the range."""
    arms = np.stack([whole(column)[0] for column in np.asarray(features, float).T], axis=1)  # columns scale freely
    support = np.flatnonzero(weights)
    lam, unit = whole(weights[support])
    measured, offsets = arms[support], arms[active] - arms[active[0]]
    _, kept, _ = eliminated(measured, measured.shape[1])
    if len(kept) < measured.shape[1]:
        _, reached, _ = eliminated(np.vstack([measured, offsets]), measured.shape[1])
        if len(reached) > len(kept):
            return math.inf
        measured, offsets = measured[:, kept], offsets[:, kept]  # they determine the others
    if not offsets.any():
        return 0.0
    information = measured.T.dot(lam[:, None] * measured)
    solved, _, determinant = eliminated(np.hstack([information, offsets.T]), len(kept))
    gram = offsets.dot(solved[:, len(kept) :])
    lengths = np.diagonal(gram)
    squares = lengths[:, None] + lengths[None, :] - 2 * gram
    largest = max((squares * (1 if determinant > 0 else -1)).ravel())
    return (largest * unit) / abs(determinant)


# ---- an optimiser of its own: a primal barrier over all arms and all pairs, many instances at once


@dataclass(frozen=True)
class Bounds:
    """Feasible weights, shape (n, K), their value in floating point and a bound below every value, shape (n,)."""

    weights: np.ndarray
    upper: np.ndarray
    lower: np.ndarray


@dataclass(frozen=True)
class Instances:
    """Arms z, shape (n, K, r), ones on the diagonal of directions without arms, shape (n, r, r), pairs, (n, P, r)."""

    arms: np.ndarray
    beyond: np.ndarray
    pairs: np.ndarray

    def values(self, lam: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """y'A^-1 y of the pairs, shape (n, P), and A^-1, shape (n, r, r)."""
        inverse = np.linalg.inv(turned(self.arms) @ (lam[:, :, None] * self.arms) + self.beyond)
        return np.einsum("npd,npd->np", self.pairs @ inverse, self.pairs), inverse


def turned(matrices: np.ndarray) -> np.ndarray:
    return matrices.transpose(0, 2, 1)


def isotropic(features: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Left singular vectors (0 beyond the rank), shape (n, K, r), where they are 0, (n, r), and the condition, (n,)."""
    scale = np.abs(features).max(axis=1, keepdims=True)
    u, s, _ = np.linalg.svd(features / np.where(scale > 0, scale, 1.0), full_matrices=False)
    beyond = s <= 1e-14 * s[:, :1]
    smallest = np.where(beyond, np.inf, s).min(axis=1)
    return u * ~beyond[:, None, :], beyond, s[:, 0] / np.where(np.isfinite(smallest), smallest, 1.0)


def newton(here: Instances, lam: np.ndarray, mu: np.ndarray, f: np.ndarray, inverse: np.ndarray) -> tuple:
    """The step of log lam, shape (n, K), and the bound that the multipliers after the step give, shape (n,)."""
    slack, size = 1.0 - f, lam.shape[1]
    pi = mu[:, None] / slack * (f > 0)
    seen = here.arms @ inverse
    products = seen @ turned(here.pairs)
    squares = products**2
    prices = (squares @ pi[:, :, None])[:, :, 0]
    hessian = 2.0 * (seen @ turned(here.arms)) * ((products * pi[:, None]) @ turned(products))
    hessian += (squares * (pi / slack)[:, None]) @ turned(squares)
    hessian = hessian * lam[:, :, None] * lam[:, None, :]
    ridge = mu + 1e-13 * np.einsum("nkk->n", hessian)
    hessian = hessian + ridge[:, None, None] * np.eye(size)
    step = np.linalg.solve(hessian, (lam * (prices - 1.0) + mu[:, None])[:, :, None])[:, :, 0]
    pi = np.maximum(pi * (1.0 - (turned(squares) @ (lam * step)[:, :, None])[:, :, 0] / slack), 0.0)
    dearest = (squares @ pi[:, :, None]).max(axis=(1, 2))
    return step, (pi * f).sum(axis=1) ** 2 / (dearest * pi.sum(axis=1))


def feasible(here: Instances, lam: np.ndarray, step: np.ndarray, slack: np.ndarray) -> np.ndarray:
    """lam (1 + a step), a = 1, 1/2, 1/4, ..., the first that leaves all lam positive and a tenth of the slack."""
    share = np.minimum(1.0, 0.9 / np.maximum(-step.min(axis=1), 1e-300))
    for _ in range(12):
        there = lam * (1.0 + share[:, None] * step)
        outside = 1.0 - here.values(there)[0].max(axis=1) < 0.1 * slack
        if not outside.any():
            return there
        share = np.where(outside, 0.5 * share, share)
    return np.where(outside[:, None], lam, there)


def optimised(features: np.ndarray, chosen: np.ndarray, steps: int = STEPS) -> Bounds:
    """Bounds of tau for n instances, by Newton steps on sum(lam) - mu (sum log lam_i + sum log(1 - y_j'A^-1 y_j)).

    Each iterate gives sum(lam) max f above tau and, for any pi >= 0, the bound of Cauchy and Schwarz below it,
    (sum_j pi_j f_j)^2 / (sum_j pi_j max_i sum_j pi_j (z_i'A^-1 y_j)^2).

    Args:
        features: shape (n, K, d).
        chosen: the compared arms as masks, shape (n, K).
        steps: Newton steps; mu is divided by 1.5 after each.
    """
    arms, missing, _ = isotropic(features)
    first, second = np.array(list(combinations(range(arms.shape[1]), 2)), int).reshape(-1, 2).T
    compared = chosen[:, first] & chosen[:, second] & (features[:, first] != features[:, second]).any(axis=2)
    pairs = (arms[:, first] - arms[:, second]) * compared[:, :, None]
    whole_set = Instances(arms, np.eye(arms.shape[2]) * missing[:, None, :], pairs)
    lam = np.ones(arms.shape[:2])
    longest = whole_set.values(lam)[0].max(axis=1, initial=0.0)
    weights, upper, lower = lam / lam.shape[1], longest * lam.shape[1], np.zeros(len(arms))
    some = np.flatnonzero(longest > 0)
    if len(some) == 0:
        return Bounds(weights, upper, lower)
    unit, lam = longest[some], 2.0 * lam[some]
    here = Instances(arms[some], whole_set.beyond[some], pairs[some] / np.sqrt(unit)[:, None, None])
    mu = lam.sum(axis=1) / (lam.shape[1] + pairs.shape[1])
    for _ in range(steps):
        f, inverse = here.values(lam)
        value = unit * lam.sum(axis=1) * f.max(axis=1)
        better = value < upper[some]
        weights[some[better]] = (lam / lam.sum(axis=1, keepdims=True))[better]
        upper[some] = np.minimum(upper[some], value)
        step, bound = newton(here, lam, mu, f, inverse)
        lower[some] = np.maximum(lower[some], unit * bound)
        lam, mu = feasible(here, lam, step, 1.0 - f.max(axis=1)), mu / 1.5
        lam = np.maximum(lam, 1e-11 * lam.max(axis=1, keepdims=True))  # A stays regular
    return Bounds(weights, upper, lower)


# ---- what is checked


def hidden_by_rounding(features: np.ndarray, design: Design, active: np.ndarray) -> bool:
    """Whether the value holds for the differences without parts that no isotropic coordinates in double precision show.

    An entry of theirs is exact to 64 eps of the largest, plus the condition times the eps of extended precision, in
    which they are formed from features that are nearly dependent. The solver's own value is as rough as differences in
    plain double precision.
    """
    arms, _, condition = (part[0] for part in isotropic(features[None]))
    unseen = 64 * (EPS + float(condition) * float(np.finfo(np.longdouble).eps)) * float(np.abs(arms).max())
    differences = arms[active][:, None] - arms[active][None, :]
    lengths = np.linalg.norm(differences, axis=2)
    rough = 4 * EPS * float(condition) * float(np.abs(arms).max()) / max(float(lengths.max()), EPS)
    s, vt = np.linalg.svd(np.sqrt(design.weights)[:, None] * arms)[1:]
    for rank in range(1, 1 + np.count_nonzero(s > EPS * s[0])):
        seen = differences @ vt[:rank].T
        leak = np.linalg.norm(differences - seen @ vt[:rank], axis=2)
        value = ((seen / s[:rank]) ** 2).sum(axis=2).max()
        small = (leak <= np.minimum(unseen, 2e-4 * lengths) + EPS * lengths).all()
        if small and value <= design.value * (1 + max(rough, 1e-6)):
            return True
    return False


def rounding_of(features: np.ndarray, active: np.ndarray) -> tuple[float, float]:
    """Relative rounding of a value, and of one that is computed in isotropic coordinates in plain double precision.

    Differences of arms that are close carry the rounding of the arms.
    """
    arms, _, condition = (part[0] for part in isotropic(features[None]))
    widest = np.linalg.norm(arms[active] - arms[active[0]], axis=1).max()
    rounding = 64 * EPS * float(np.linalg.norm(arms, axis=1).max() / max(widest, 1e-300))
    return CLOSE + rounding, CLOSE + rounding * float(condition)


def violation(features: np.ndarray, active: np.ndarray, design: Design, bounds: Bounds, row: int) -> str:
    """What is wrong with a design as a certificate; empty when nothing is."""
    exact, upper, lower = exact_value(features, design.weights, active), bounds.upper[row], bounds.lower[row]
    if upper < design.lower_bound * (1 + NEAR):
        upper = exact_value(features, bounds.weights[row], active)
    close, coarse = rounding_of(features, active)
    if design.weights.min() < 0 or abs(design.weights.sum() - 1) > 1e-9:
        return "the weights are no design"
    if design.value < exact * (1 - close) and not hidden_by_rounding(features, design, active):
        return f"value {design.value} below the exact {exact} of its weights"
    if design.value > exact * (1 + close):
        return f"value {design.value} above the exact {exact} of its weights"
    if design.lower_bound > min(exact, upper) * (1 + close):
        return f"lower bound {design.lower_bound} above a design of value {min(exact, upper)}"
    if design.value < lower * (1 - coarse):
        return f"value {design.value} below a bound of every design, {lower}"
    return "" if design.gap <= TOLERANCE else f"gap {design.gap} above the tolerance"


@dataclass(frozen=True)
class Case:
    """Some instances of equal shape, what is compared in each, and what an optimiser of its own says of them."""

    features: np.ndarray
    compared: list[np.ndarray]
    bounds: Bounds


def case(seed: int, kind: str) -> Case:
    """25 instances of 1 to 30 arms in 1 to 6 dimensions; every fourth time in single precision."""
    rng = np.random.default_rng(seed)
    num_arms, dim = int(rng.integers(1, 31)), int(rng.integers(1, 7))
    features = np.stack([drawn(rng, kind, num_arms, dim) for _ in range(BATCH)])
    features = features.astype(np.float32) if rng.random() < 0.25 else features
    chosen = rng.random((BATCH, num_arms)) < rng.uniform(0.1, 1.1)
    chosen[np.arange(BATCH), rng.integers(0, num_arms, BATCH)] = True
    return Case(features, [np.flatnonzero(row) for row in chosen], optimised(features.astype(float), chosen))


def check(drawn_case: Case) -> None:
    for row, (features, active) in enumerate(zip(drawn_case.features, drawn_case.compared, strict=True)):
        design = solve_design(features, active, tolerance=TOLERANCE)
        assert violation(features.astype(float), active, design, drawn_case.bounds, row) == ""


cases = st.builds(case, st.integers(0, 2**32 - 1), st.sampled_from(KINDS))


@settings(max_examples=budget(40, fewest=5))
@given(cases)
def test_no_bracket_is_violated(drawn_case):
    """200 instances; `make prove` draws 20,000."""
    check(drawn_case)


@pytest.mark.slow
@settings(max_examples=800)
@given(cases)
def test_no_bracket_is_violated_on_twenty_thousand_instances(drawn_case):
    check(drawn_case)


def equal_weights(features: np.ndarray, active: np.ndarray, design: Design) -> Design:
    """A design far from the best that comes with a small gap."""
    weights = np.full(len(features), 1.0 / len(features))
    value = exact_value(features, weights, active)
    return replace(design, weights=weights, value=value, lower_bound=value / (1 + 0.9 * TOLERANCE))


LIES = {
    "none": lambda features, active, design: design,
    "bound": lambda features, active, design: replace(design, lower_bound=1.02 * design.lower_bound),
    "value": lambda features, active, design: replace(design, value=design.value * (1 - 1e-5)),
    "both": lambda features, active, design: replace(
        design, value=0.98 * design.value, lower_bound=0.98 * design.lower_bound
    ),
    "weights": equal_weights,
}


@few_and_all("seeds", 1, 2)
@pytest.mark.parametrize("kind", ["gaussian", "grid", "tilted"])
def test_a_lying_solver_is_noticed(kind, seeds):
    found: dict[str, list[bool]] = {name: [] for name in LIES}
    for seed in (4, 5)[:seeds]:
        told = case(seed, kind)
        for row, (features, active) in enumerate(zip(told.features, told.compared, strict=True)):
            design, exact = solve_design(features, active, tolerance=TOLERANCE), features.astype(float)
            for name, lie in LIES.items():
                if design.value > 0:
                    spoilt = lie(exact, active, design)
                    found[name].append(violation(exact, active, spoilt, told.bounds, row) != "")
    shares = {name: float(np.mean(noticed)) for name, noticed in found.items()}
    assert min(shares.pop("weights"), 0.9) == 0.9  # equal weights may be the best ones
    assert shares == {"none": 0.0, "bound": 1.0, "value": 1.0, "both": 1.0}


def test_the_optimiser_of_its_own_nearly_always_knows_the_optimum_to_a_thousandth():
    gaps: list[float] = []
    for number, kind in enumerate(KINDS):
        bounds = case(number, kind).bounds
        some = bounds.lower > 0
        gaps.extend(bounds.upper[some] / bounds.lower[some] - 1)
    assert np.mean(np.array(gaps) < 0.1 * TOLERANCE) > 0.95


def test_exact_arithmetic_knows_what_is_not_measured():
    features = np.array([[1.0, 0.1, 0.0], [0.3, 1.0, 0.0], [1.3, 1.1, 1e-30], [1.3, 1.1, 0.0]])
    weights = np.array([0.5, 0.5, 0.0, 0.0])
    assert exact_value(features, weights, np.array([0, 1])) == pytest.approx(4.0, rel=1e-15)
    assert exact_value(features, weights, np.array([0, 3])) == pytest.approx(2.0, rel=1e-14)
    assert exact_value(features, weights, np.array([0, 2])) == math.inf
    assert exact_value(features, weights, np.array([2])) == 0.0
