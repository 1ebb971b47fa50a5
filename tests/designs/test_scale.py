"""The design solver at the sizes it is meant for: value and bound found again by other means, memory, time, threads."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog
from together import of_each

from surepick.core.plans import Design
from surepick.designs import solve_design
from surepick.linalg.rows import one_thread

pytestmark = pytest.mark.alone

PROGRAMS = Path(__file__).parents[1] / "helpers"
ROWS = 2048
GIGABYTES_A_MILLION_ARMS = 2.5
SMALL_MILLISECONDS, PLANE_MILLISECONDS = 60.0, 5.0
NOISY = 10.0  # how much slower a busy, older machine may be; `make prove` times the asked figures alone


def show(line: str) -> None:
    """For the log of the long proofs."""
    print(f"\n{line}")


def gaussian(num_arms: int, dim: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((num_arms, dim))


def sphere(num_arms: int, dim: int) -> np.ndarray:
    features = gaussian(num_arms, dim)
    return features / np.linalg.norm(features, axis=1)[:, None]


def grid(num_arms: int, dim: int) -> np.ndarray:
    return np.random.default_rng(0).integers(-2, 3, (num_arms, dim)) * 1.0


def repeated_grid(num_arms: int, dim: int) -> np.ndarray:
    """Every row about five times, ties everywhere."""
    return grid(num_arms // 5, dim)[np.random.default_rng(1).integers(0, num_arms // 5, num_arms)]


def clusters(num_arms: int, dim: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    arms = rng.uniform(0.1, 1.0, (2, dim))[np.arange(num_arms) % 2]
    arms[np.arange(num_arms), rng.integers(0, dim, num_arms)] += 1e-5 * rng.standard_normal(num_arms)
    return arms


def circle(num_arms: int, _: int) -> np.ndarray:
    angles = np.random.default_rng(0).uniform(0, 2 * np.pi, num_arms)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def disc(num_arms: int, _: int) -> np.ndarray:
    return np.sqrt(np.random.default_rng(1).random((num_arms, 1))) * circle(num_arms, 2)


def line(num_arms: int, _: int) -> np.ndarray:
    return np.stack([np.ones(num_arms), np.random.default_rng(0).random(num_arms)], axis=1)


# ---- value and bound, found again


@dataclass(frozen=True)
class Far:
    """The squared diameter of some points, and far pairs of them."""

    square: float
    first: np.ndarray
    second: np.ndarray


def images(features: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """u with |u_a - u_b| = |x_a - x_b| in A^-1, by singular values of the weighted arms; features of full rank."""
    support = np.flatnonzero(weights)
    _, s, vt = np.linalg.svd(np.sqrt(weights[support, None]) * features[support], full_matrices=False)
    return features @ (vt.T / s)


def diameter(points: np.ndarray, *, most: int = 1500, share: float = 0.98) -> Far:
    """All pairs whose radii about the mean allow them to be the farthest, in blocks; some of those nearly as far."""
    centred = points - points.mean(axis=0)
    order = np.argsort(-np.linalg.norm(centred, axis=1))
    centred, radii = centred[order], np.linalg.norm(centred[order], axis=1)
    squares, best, pairs, rng = radii**2, 0.0, [], np.random.default_rng(0)
    for top in range(0, len(points), ROWS):
        rows = slice(top, top + ROWS)
        for left in range(top, len(points), ROWS):
            if radii[top] + radii[left] < np.sqrt(best):
                break
            columns = slice(left, left + ROWS)
            tile = squares[rows, None] + squares[columns] - 2.0 * centred[rows] @ centred[columns].T
            best = max(best, float(tile.max()))
            a, b = np.nonzero(tile > share * best)
            kept = rng.permutation(len(a))[:most]
            pairs.append(np.stack([a[kept] + top, b[kept] + left, tile[a[kept], b[kept]]]))
            a, b = np.unravel_index([tile.argmax()], tile.shape)
            pairs.append(np.stack([a + top, b + left, tile[a, b]]))
    found = np.concatenate(pairs, axis=1)
    farthest = found[:, [found[2].argmax()]]
    found = found[:, found[2] > share * best]
    found = np.concatenate([farthest, found[:, rng.permutation(found.shape[1])[:most]]], axis=1)
    first, second = order[found[0].astype(int)], order[found[1].astype(int)]
    return Far(float(((points[first[0]] - points[second[0]]) ** 2).sum()), first, second)


def bound(points: np.ndarray, weights: np.ndarray, far: Far, rounds: int = 8) -> tuple[float, np.ndarray]:
    """A bound below the value of every design, and weights of the arms that go with it.

        tau >= tr(W)^2 / (sum_j pi_j max_i u_i'W u_i),   W = sum_j pi_j v_j v_j',   v_j = u_a - u_b

    The pairs' weights are those of the linear program min t, sum_j pi_j (u_i'v_j)^2 / |v_j|^2 <= t for the arms i in
    a pool, which grows by the arms that break it.
    """
    ends = points[far.first] - points[far.second]
    lengths = (ends**2).sum(axis=1)
    pool, best, arms = np.flatnonzero(weights), 0.0, weights
    for _ in range(rounds):
        costs = (points[pool] @ ends.T) ** 2 / lengths
        rows = np.hstack([costs, -np.ones((len(pool), 1))])
        whole = np.append(np.ones(len(lengths)), 0.0)[None]
        found = linprog(np.append(np.zeros(len(lengths)), 1.0), rows, np.zeros(len(pool)), whole, [1.0])
        pi = found.x[:-1] / lengths
        spread = (ends * pi[:, None]).T @ ends
        gains = np.einsum("ij,ij->i", points @ spread, points)
        reached = float(np.trace(spread)) ** 2 / float(gains.max() * pi.sum())
        if reached > best:
            best, arms = reached, np.zeros(len(points))
            arms[pool] = np.maximum(-found.ineqlin.marginals, 0.0)
        pool = np.union1d(pool, np.argsort(-gains)[:100])
    return best, arms / arms.sum()


def certified(features: np.ndarray, tolerance: float) -> Design:
    return solve_design(features, tolerance=tolerance)


def found_again(features: np.ndarray, tolerance: float, within: float) -> str:
    """Check a certificate by other means; `within`: how near to the value the bound found here must come."""
    design = certified(features, tolerance)
    assert design.gap <= tolerance
    points = images(features, design.weights)
    far = diameter(points)
    assert design.value == pytest.approx(far.square, rel=1e-9)
    again, arms = bound(points, design.weights, far)
    assert again <= design.value * (1 + 1e-9)
    assert again >= design.lower_bound * (1 - within)
    values = [diameter(images(features, (1 - t) * design.weights + t * arms)).square for t in (0.03, 0.1)]
    assert design.lower_bound <= min(values) * (1 + 1e-9)
    return (
        f"value {design.value:.5g}, bound {design.lower_bound / design.value - 1:+.2%}, bound found here "
        f"{again / design.value - 1:+.2%}, other designs {values[0] / design.value - 1:+.2%}, "
        f"{values[1] / design.value - 1:+.2%}"
    )


@pytest.mark.parametrize(
    ("make", "num_arms", "dim"),
    [
        pytest.param(gaussian, 20_000, 12, marks=pytest.mark.slow),
        pytest.param(repeated_grid, 20_000, 8, marks=pytest.mark.slow),
        (repeated_grid, 5_000, 5),
        (clusters, 20_000, 5),
    ],
)
def test_value_and_bound_of_thousands_of_arms_are_found_again(make, num_arms, dim):
    found_again(make(num_arms, dim), 0.01, within=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("tolerance", [0.01, 0.001])
@pytest.mark.parametrize("make", [gaussian, repeated_grid])
def test_value_and_bound_of_a_hundred_thousand_arms_are_found_again(make, tolerance):
    show(f"{make.__name__} 100000 x 20 at {tolerance:.1%}: {found_again(make(100_000, 20), tolerance, within=0.01)}")


def equal_weights(features: np.ndarray, tolerance: float) -> Design:
    """A design far from the best, with its value and a bound that looks tight."""
    weights = np.full(len(features), 1.0 / len(features))
    value = diameter(images(features, weights)).square
    return Design(weights, value, value / (1 + 0.5 * tolerance), features.shape[1])


def value_too_low(features: np.ndarray, tolerance: float) -> Design:
    design = solve_design(features, tolerance=tolerance)
    return replace(design, value=design.value * (1 - 1e-6))


@pytest.mark.parametrize("lying", [equal_weights, value_too_low])
def test_a_lying_solver_is_noticed(monkeypatch, lying):
    monkeypatch.setattr(sys.modules[__name__], "certified", lying)
    with pytest.raises(AssertionError):
        found_again(gaussian(5000, 6), 0.01, within=0.01)


# ---- memory


def told(script: str, *arguments: object) -> dict[str, float]:
    """What a script beside this file prints in a process of its own, with the library's own choice of threads."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    words = [sys.executable, str(PROGRAMS / script), *map(str, arguments)]
    run = subprocess.run(words, capture_output=True, text=True, env=environment, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


@pytest.mark.parametrize(
    ("num_arms", "kind"),
    [
        (50_000, "float32"),
        pytest.param(100_000, "float32", marks=pytest.mark.slow),
        pytest.param(300_000, "float64", marks=pytest.mark.slow),
        pytest.param(1_000_000, "float32", marks=pytest.mark.slow),
        pytest.param(1_000_000, "float64", marks=pytest.mark.slow),
    ],
)
def test_memory_is_at_most_two_and_a_half_gigabytes_a_million_arms(num_arms, kind):
    """In all, features and interpreter included; less in proportion for fewer arms, beside the interpreter's."""
    run = told("scale_memory.py", num_arms, 20, kind, 6.0)
    show(f"{num_arms} x 20 {kind}: peak {run['peak']:.0f} MB, {run['seconds']:.1f} s, gap {run['gap']:.2%}")
    assert run["gap"] <= 0.01
    assert run["peak"] <= GIGABYTES_A_MILLION_ARMS * num_arms / 1000 + (run["start"] if num_arms < 1_000_000 else 0)


# ---- time


def median_milliseconds(features: np.ndarray, clock: Callable[[], float], repeats: int = 5) -> float:
    taken = []
    with one_thread():
        for _ in range(repeats):
            begin = clock()
            solve_design(features)
            taken.append(clock() - begin)
    return 1e3 * statistics.median(taken)


@pytest.mark.cases(5)
@pytest.mark.parametrize("make", [gaussian, sphere, clusters, grid])
@pytest.mark.parametrize(("num_arms", "dim"), [(100, 5), (300, 10), (300, 30)])
def test_small_problems_are_quick_even_on_a_busy_machine(make, num_arms, dim):
    assert median_milliseconds(make(num_arms, dim), time.process_time) <= NOISY * SMALL_MILLISECONDS


@of_each("make", [gaussian, disc, circle, clusters, line])
def test_ten_thousand_arms_in_the_plane_are_quick_even_on_a_busy_machine(make):
    assert median_milliseconds(make(10_000, 2), time.process_time) <= NOISY * PLANE_MILLISECONDS


@pytest.mark.slow
@pytest.mark.parametrize("make", [gaussian, sphere, clusters, grid])
def test_small_problems_cost_at_most_sixty_milliseconds(make):
    taken = {
        (k, d): median_milliseconds(make(k, d), time.perf_counter)
        for d in (2, 5, 10, 20, 30)
        for k in (30, 60, 100, 200, 300)
    }
    show(f"{make.__name__}: " + ", ".join(f"{k} x {d}: {spent:.1f} ms" for (k, d), spent in taken.items()))
    assert max(taken.values()) <= SMALL_MILLISECONDS


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "times"), [(gaussian, 1), (clusters, 1), (line, 1), (grid, 1), (disc, 2), (circle, 4)]
)
def test_ten_thousand_arms_in_the_plane_cost_at_most_five_milliseconds(make, times):
    """But for the two shapes whose border is round: there many arms are as good as the best."""
    spent = median_milliseconds(make(10_000, 2), time.perf_counter, repeats=11)
    show(f"{make.__name__}, 10000 arms in the plane: {spent:.1f} ms")
    assert spent <= times * PLANE_MILLISECONDS


@pytest.mark.slow
def test_ten_thousand_numbers_cost_at_most_five_milliseconds():
    assert median_milliseconds(gaussian(10_000, 1), time.perf_counter, repeats=11) <= PLANE_MILLISECONDS


@pytest.mark.slow
@pytest.mark.parametrize(("num_arms", "dim", "repeats"), [(300, 20, 21), (100_000, 20, 5)])
def test_two_threads_are_not_slower_than_one(num_arms, dim, repeats):
    run = told("scale_threads.py", num_arms, dim, repeats)
    show(f"{num_arms} x {dim}: {run['one']:.3f} s with one thread, {run['two']:.3f} s with two")
    assert run["two"] <= 1.3 * run["one"]
