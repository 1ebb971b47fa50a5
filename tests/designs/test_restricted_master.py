"""Rough Newton steps in single precision end where those in double precision do."""

import numpy as np
import pytest
from together import of_each

from surepick.designs import working_set
from surepick.designs.working_set import LEAST_ARMS, LEAST_DIRECTIONS, Master, solve_master


def problem(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """(arms, pairs) in coordinates where the arms are isotropic."""
    rng, size = np.random.default_rng(3), LEAST_ARMS + 150
    rows = rng.standard_normal((size, LEAST_DIRECTIONS + 12))
    if kind == "uneven":
        rows *= np.exp(rng.uniform(-3.0, 3.0, size))[:, None]
    q, _ = np.linalg.qr(rows)
    arms = q * np.sqrt(size)
    return arms, arms[:200] - arms[-200:]


def value_and_bound(arms: np.ndarray, pairs: np.ndarray, found: Master) -> tuple[float, float]:
    """max_j ||y_j||^2 and tr(W)^2 / max_i u_i'W u_i under the weights and multipliers, by an eigendecomposition."""
    values, vectors = np.linalg.eigh((arms.T * found.weights) @ arms)
    unit = vectors / np.sqrt(values)
    u, v = arms @ unit, pairs @ unit
    spread = (v.T * found.multipliers) @ v
    return float(np.max(np.sum(v**2, axis=1))), float(np.trace(spread) ** 2 / np.max(np.sum(u @ spread * u, axis=1)))


@pytest.mark.parametrize("kind", ["even", "uneven"])
@pytest.mark.parametrize("target", [0.2, 0.02])
def test_value_and_bound_agree_to_the_target(kind, target, monkeypatch):
    arms, pairs = problem(kind)
    start = Master(np.full(len(arms), 1.0 / len(arms)), np.full(len(pairs), 1.0 / len(pairs)))
    formed, usual = [], working_set._SingleRows.of
    monkeypatch.setattr(working_set._SingleRows, "of", lambda rows: formed.append(rows) or usual(rows))
    rough = solve_master(arms, pairs, start, gap=1.0, target=target)
    assert formed
    value, bound = value_and_bound(arms, pairs, rough)
    assert bound <= value <= bound * (1.0 + target) * (1.0 + 1e-4)
    monkeypatch.setattr(working_set, "LEAST_TARGET", np.inf)
    exact = solve_master(arms, pairs, start, gap=1.0, target=target)
    assert value == pytest.approx(value_and_bound(arms, pairs, exact)[0], rel=1e-3)


@of_each("scale", [1e-150, 1e-25, 1e25, 1e150])
def test_pairs_of_any_length(scale):
    arms, pairs = problem("even")
    start = Master(np.full(len(arms), 1.0 / len(arms)), np.full(len(pairs), 1.0 / len(pairs)))
    with np.errstate(all="raise", under="ignore"):
        found, usual = (solve_master(arms, size * pairs, start, gap=1.0, target=0.1) for size in (scale, 1.0))
    assert value_and_bound(arms, pairs, found)[0] == pytest.approx(value_and_bound(arms, pairs, usual)[0], rel=1e-3)


def test_fine_targets_stay_in_double_precision(monkeypatch):
    arms, pairs = problem("even")
    monkeypatch.setattr(working_set._SingleRows, "of", lambda rows: pytest.fail("single precision"))
    start = Master(np.full(len(arms), 1.0 / len(arms)), np.full(len(pairs), 1.0 / len(pairs)))
    found = solve_master(arms, pairs, start, gap=1.0, target=1e-4)
    value, bound = value_and_bound(arms, pairs, found)
    assert value <= bound * (1.0 + 1.01e-4)
