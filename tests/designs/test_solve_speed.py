"""The sizes and speeds that the design solver is held to, beside the reference Frank-Wolfe iteration."""

from __future__ import annotations

import importlib.util
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from surepick.designs import design_value, solve_design

pytestmark = [pytest.mark.slow, pytest.mark.alone]

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "design_solver.py"


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("design_solver_benchmark", BENCHMARK)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(BENCHMARK.parent))  # as for a script
    spec.loader.exec_module(module)
    sys.path.remove(str(BENCHMARK.parent))
    yield module
    del sys.modules[spec.name]


def show(line: str) -> None:
    """For the log of the long proofs."""
    print(f"\n{line}")


def median_seconds(features: np.ndarray, tolerance: float, repeats: int = 5) -> float:
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        solve_design(features, tolerance=tolerance)
        seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


@pytest.mark.parametrize(("num_arms", "dim", "ratio"), [(200, 20, 30), (500, 25, 150), (1000, 25, 300)])
def test_a_certified_tenth_of_a_percent_is_much_faster_than_frank_wolfe(benchmark, num_arms, dim, ratio):
    features = benchmark.gaussian(num_arms, dim)
    design = solve_design(features, tolerance=1e-3)
    assert design.gap <= 1e-3
    ours = median_seconds(features, 1e-3)
    reference = benchmark.frank_wolfe(features)
    above = design_value(features, reference.weights) / design.lower_bound - 1
    show(
        f"{num_arms} x {dim}: {ours:.3f} s (gap {design.gap:.3%}); Frank-Wolfe {reference.seconds:.1f} s, "
        f"{reference.steps} steps, {above:.2%} above the lower bound: {reference.seconds / ours:.0f} times"
    )
    assert reference.stopped
    assert above > 1e-3
    assert reference.seconds / ours >= ratio


@pytest.mark.parametrize(
    ("num_arms", "dim", "tolerance"),
    [(2000, 50, 0.001), (100_000, 20, 0.01), (250, 200, 0.001), (205, 200, 0.01), (1797, 61, 0.01)],
)
def test_large_gaussian_instances_are_certified(benchmark, num_arms, dim, tolerance):
    features = benchmark.gaussian(num_arms, dim)
    begin = time.perf_counter()
    design = solve_design(features, tolerance=tolerance)
    show(f"{num_arms} x {dim} at {tolerance:.1%}: {time.perf_counter() - begin:.2f} s, gap {design.gap:.3%}")
    assert design.gap <= tolerance


def test_small_problems_are_fast_enough_to_be_solved_in_every_round(benchmark):
    plane = median_seconds(benchmark.gaussian(300, 2), 0.01, repeats=21)
    space = median_seconds(benchmark.gaussian(300, 20), 0.01, repeats=11)
    show(f"300 x 2: {1e3 * plane:.1f} ms; 300 x 20: {1e3 * space:.1f} ms")
    assert plane < 0.05
    assert space < 0.5
