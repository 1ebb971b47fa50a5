"""The design solver beside the Frank-Wolfe iteration of the published codes: `python benchmarks/design_solver.py`."""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from surepick.designs import design_value, solve_design

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class FrankWolfe:
    """Where the reference stopped.

    Args:
        weights: shape (K,).
        steps: taken.
        seconds: spent.
        stopped: its own rule ended it; False when `max_steps` did.
    """

    weights: FloatArray
    steps: int
    seconds: float
    stopped: bool


def frank_wolfe(features: FloatArray, *, max_steps: int = 100_000) -> FrankWolfe:
    """The reference: Frank-Wolfe over the explicit (K^2, d) array of differences.

    Starts from uniform weights. A step inverts A, finds the worst of all K^2 pairs, and moves by 2/(k+2) to the arm of
    steepest descent, argmax_i (x_i'A^-1 y)^2. **It stops by the published rule: when the weights change by less than
    1 % in relative norm, ||new - old|| < .01 ||old||.** That is a small step, not a small gap.
    """
    num_arms = len(features)
    begin = time.perf_counter()
    differences = (features[:, None, :] - features[None, :, :]).reshape(num_arms**2, -1)
    weights = np.full(num_arms, 1.0 / num_arms)
    for k in range(max_steps):
        inverse = np.linalg.inv(features.T @ (weights[:, None] * features))
        worst = int(np.argmax(np.einsum("ij,ij->i", differences @ inverse, differences)))
        arm = int(np.argmax((features @ (inverse @ differences[worst])) ** 2))
        step = 2.0 / (k + 2.0)
        if k == 0:  # a full step would leave one arm and a singular matrix
            step = 0.5
        new = (1.0 - step) * weights
        new[arm] += step
        change = float(np.linalg.norm(new - weights) / np.linalg.norm(weights))
        weights = new
        if change < 0.01:
            return FrankWolfe(weights, k + 1, time.perf_counter() - begin, True)
    return FrankWolfe(weights, max_steps, time.perf_counter() - begin, False)


def gaussian(num_arms: int, dim: int) -> FloatArray:
    """Standard normal arms, seed 0."""
    return np.random.default_rng(0).standard_normal((num_arms, dim))


def sphere(num_arms: int, dim: int) -> FloatArray:
    """Arms uniform on the unit sphere, seed 0."""
    arms = gaussian(num_arms, dim)
    return arms / np.sqrt((arms**2).sum(axis=1, keepdims=True))


def clusters(num_arms: int, dim: int) -> FloatArray:
    """Two clusters of squared norms .8 and .5, each arm N(0, 1e-5^2) off along a random axis, seed 0."""
    rng = np.random.default_rng(0)
    centres = np.abs(rng.standard_normal((2, dim)))
    centres *= np.sqrt([[0.8], [0.5]] / (centres**2).sum(axis=1, keepdims=True))
    arms = centres[np.arange(num_arms) % 2]
    arms[np.arange(num_arms), rng.integers(0, dim, num_arms)] += 1e-5 * rng.standard_normal(num_arms)
    return arms


INSTANCES = (
    ("Gaussian", gaussian, 100, 2, True),
    ("Gaussian", gaussian, 200, 20, True),
    ("Gaussian", gaussian, 500, 25, False),
    ("Gaussian", gaussian, 1000, 25, False),
    ("sphere", sphere, 200, 20, False),
    ("two clusters", clusters, 250, 20, False),
    ("Gaussian", gaussian, 250, 200, None),
    ("Gaussian", gaussian, 100_000, 20, None),
)


def timed(features: FloatArray, tolerance: float, repeats: int) -> tuple[float, float, float, int]:
    """Median seconds, certified gap, lower bound and support of our solver."""
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        design = solve_design(features, tolerance=tolerance)
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds), design.gap, design.lower_bound, int(np.count_nonzero(design.weights))


def row(name: str, features: FloatArray, *, reference: bool) -> str:
    """One line of the table."""
    size = f"{name} {features.shape[0]} x {features.shape[1]}"
    repeats = 5 if len(features) <= 1000 else 1
    coarse, coarse_gap, _, coarse_support = timed(features, 0.01, repeats)
    fine, fine_gap, bound, fine_support = timed(features, 0.001, repeats)
    ours = f"{coarse:9.4f} {coarse_gap:8.3%} {coarse_support:5d} {fine:9.4f} {fine_gap:8.3%} {fine_support:5d}"
    if not reference:
        return f"{size:24s} {ours}"
    other = frank_wolfe(features)
    above = design_value(features, other.weights) / bound - 1.0
    return f"{size:24s} {ours} {other.seconds:9.2f} {other.steps:6d} {above:8.2%} {other.seconds / fine:8.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only the instances whose reference ends in seconds")
    quick = parser.parse_args().quick
    solve_design(gaussian(50, 2))  # first call: imports
    print("ours at 1 % and .1 %: seconds, certified gap, support; Frank-Wolfe: seconds, steps, above our lower bound;")
    print("ratio: Frank-Wolfe seconds / ours at .1 %. One thread when OMP_NUM_THREADS=1.")
    print(
        f"{'instance':24s} {'1 %':>9s} {'gap':>8s} {'arms':>5s} {'.1 %':>9s} {'gap':>8s} {'arms':>5s} "
        f"{'FW':>9s} {'steps':>6s} {'above':>8s} {'ratio':>8s}"
    )
    for name, make, num_arms, dim, is_quick in INSTANCES:
        if quick and not is_quick:
            continue
        print(row(name, make(num_arms, dim), reference=is_quick is not None), flush=True)


if __name__ == "__main__":
    main()
