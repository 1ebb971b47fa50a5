"""The design solver beside the published Frank-Wolfe, CLARABEL and plain passes over the features.

    python benchmarks/design_solver.py [--quick] [--only sphere,growth]

All of it in one run, BLAS on one thread. A line is one instance at one tolerance: median seconds of ours, the gap that
its certificate shows, arms in the support, what stands beside it with its seconds, the ratio, and what is asked of it.

    Frank-Wolfe   over all pairs, as published; ratio: its seconds / ours; "above": its design over our lower bound
    CLARABEL      the same optimum by cvxpy: A(lambda) and P with [[A, I], [I, P]] >= 0 and y'Py <= t for each pair
                  y; the solver's own seconds, without those of cvxpy; "off": its t over our lower bound
    passes        one pass is U = X @ W, W of shape (d, d), and the norms of U's rows; ratio: our seconds / its median
    limit         of a call that a round makes often; ratio: our seconds / the limit

The (K^2, d) array of 2000 x 50 costs many seconds a step. There the steps are counted by the same iteration with the
distances from one product of matrices, which takes the same steps up to rounding; their price is that of a few steps
over the array. Near the optimum step k changes the weights by about 2/(k + 2) sqrt((1 + q)/q) of their norm, q = sum
of lambda_i^2: the rule stops at about 200 sqrt((1 + q)/q) steps, 200 times the root of the number of arms in use.

Then memory beyond the input (in a process of its own), growth with K and d (slope of log seconds against log size),
and one against two threads. --quick leaves out what takes more than about ten seconds beside ours.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from peak_memory import peak_memory
from surepick.designs import design_value, solve_design
from surepick.errors import NotConverged
from surepick.linalg.rows import one_thread

FloatArray = NDArray[np.float64]
Farthest = Callable[[FloatArray], FloatArray]  # A^-1 -> the difference of the farthest pair

COARSE, FINE = 0.01, 0.001
MEMORY_ASKED = 1_500.0  # megabytes


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


def all_differences(features: FloatArray) -> Farthest:
    """The farthest pair as published: from the explicit (K^2, d) array of differences."""
    differences = (features[:, None, :] - features[None, :, :]).reshape(len(features) ** 2, -1)

    def farthest(inverse: FloatArray) -> FloatArray:
        return differences[int(np.argmax(np.einsum("ij,ij->i", differences @ inverse, differences)))]

    return farthest


def all_products(features: FloatArray) -> Farthest:
    """The same pair from the (K, K) products x_a'A^-1 x_b."""

    def farthest(inverse: FloatArray) -> FloatArray:
        squares = features @ inverse @ features.T
        norms = squares.diagonal().copy()
        squares *= -2.0
        squares += norms[:, None]
        squares += norms
        first, second = divmod(int(np.argmax(squares)), len(features))
        return features[first] - features[second]

    return farthest


def frank_wolfe(
    features: FloatArray, *, max_steps: int = 100_000, search: Callable[[FloatArray], Farthest] = all_differences
) -> FrankWolfe:
    """The reference: Frank-Wolfe over the explicit (K^2, d) array of differences.

    Starts from uniform weights. A step inverts A, finds the worst of all K^2 pairs, and moves by 2/(k+2) to the arm of
    steepest descent, argmax_i (x_i'A^-1 y)^2. **It stops by the published rule: when the weights change by less than
    1 % in relative norm, ||new - old|| < .01 ||old||.** That is a small step, not a small gap.
    """
    num_arms = len(features)
    begin = time.perf_counter()
    farthest = search(features)
    weights = np.full(num_arms, 1.0 / num_arms)
    for k in range(max_steps):
        inverse = np.linalg.inv(features.T @ (weights[:, None] * features))
        arm = int(np.argmax((features @ (inverse @ farthest(inverse))) ** 2))
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


def frank_wolfe_extrapolated(features: FloatArray, *, steps_timed: int = 10) -> FrankWolfe:
    """All steps of `frank_wolfe`, counted with `all_products`, at the price of a few steps with `all_differences`."""
    counted = frank_wolfe(features, search=all_products)
    begin = time.perf_counter()
    farthest = all_differences(features)
    built = time.perf_counter() - begin
    some = frank_wolfe(features, max_steps=steps_timed, search=lambda _: farthest)
    seconds = built + counted.steps * some.seconds / some.steps
    return FrankWolfe(counted.weights, counted.steps, seconds, counted.stopped)


def clarabel(features: FloatArray) -> tuple[float, float]:
    """(optimal value, the solver's seconds) of the semidefinite program with one linear matrix inequality."""
    import cvxpy as cp  # noqa: PLC0415 (of the extra dev)

    num_arms, dim = features.shape
    first, second = np.triu_indices(num_arms, 1)
    pairs = features[first] - features[second]
    row, column = np.triu_indices(dim, 1)
    weights, value = cp.Variable(num_arms, nonneg=True), cp.Variable()
    bound = cp.Variable((dim, dim), symmetric=True)
    off_diagonal = cp.vec(cp.upper_tri(bound), order="F")
    lengths = pairs**2 @ cp.diag(bound) + 2.0 * (pairs[:, row] * pairs[:, column]) @ off_diagonal
    matrix = cp.bmat([[features.T @ cp.diag(weights) @ features, np.eye(dim)], [np.eye(dim), bound]])
    problem = cp.Problem(cp.Minimize(value), [cp.sum(weights) == 1, lengths <= value, matrix >> 0])
    with one_thread(), warnings.catch_warnings():  # once more one thread, for what was loaded in the meantime
        warnings.simplefilter("ignore", UserWarning)  # an inaccurate solution: "off" says how much
        problem.solve(solver=cp.CLARABEL, max_threads=1, canon_backend=cp.SCIPY_CANON_BACKEND)
    return float(problem.value), float(problem.solver_stats.solve_time)


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


def digits(num_arms: int, dim: int) -> FloatArray:
    """The first images of scikit-learn's handwritten digits, as they are."""
    from sklearn.datasets import load_digits  # noqa: PLC0415 (of the extra demo)

    return np.asarray(load_digits().data[:num_arms, :dim], np.float64)


@dataclass(frozen=True)
class Case:
    """An instance, what stands beside ours, and what is asked.

    Args:
        beside: "Frank-Wolfe", "extrapolated", "CLARABEL", "passes" or "limit".
        asked: the least ratio to another solver, the most passes, or the most seconds; None: the certificate alone.
        tolerances: of ours.
        long: what stands beside takes more than about ten seconds.
    """

    name: str
    make: Callable[[int, int], FloatArray]
    num_arms: int
    dim: int
    beside: str
    asked: float | None
    tolerances: tuple[float, ...] = (COARSE, FINE)
    long: bool = False

    @property
    def label(self) -> str:
        return f"{self.name} {self.num_arms} x {self.dim}"


CASES = (
    Case("Gaussian", gaussian, 200, 20, "Frank-Wolfe", 50),
    Case("Gaussian", gaussian, 500, 25, "Frank-Wolfe", 300, long=True),
    Case("Gaussian", gaussian, 1000, 25, "Frank-Wolfe", 700, long=True),
    Case("Gaussian", gaussian, 2000, 50, "extrapolated", 3000, long=True),
    Case("Gaussian", gaussian, 200, 20, "CLARABEL", 100, long=True),
    Case("Gaussian", gaussian, 100_000, 20, "passes", 150),
    Case("Gaussian", gaussian, 1_000_000, 20, "passes", 150),
    Case("Gaussian", gaussian, 100_000, 64, "passes", 650, (COARSE,)),
    Case("sphere", sphere, 100_000, 20, "passes", 3600, (COARSE,)),
    Case("two clusters", clusters, 100_000, 20, "passes", 500),
    Case("digits", digits, 1797, 64, "passes", None, (COARSE,)),
    *(
        Case(f"small {name}", make, num_arms, dim, "limit", 0.06)
        for name, make in (("Gaussian", gaussian), ("sphere", sphere), ("two clusters", clusters))
        for num_arms, dim in ((100, 10), (300, 20), (300, 30))
    ),
    Case("plane Gaussian", gaussian, 10_000, 1, "limit", 0.005),
    Case("plane Gaussian", gaussian, 10_000, 2, "limit", 0.005),
    Case("plane sphere", sphere, 10_000, 2, "limit", 0.005),
    Case("plane two clusters", clusters, 10_000, 2, "limit", 0.005),
)


@dataclass(frozen=True)
class Ours:
    """Our solver on an instance: median seconds, certified gap, lower bound, arms in the support."""

    seconds: float
    gap: float
    lower: float
    support: int


@dataclass(frozen=True)
class Beside:
    """What stands beside: in words, its seconds, and whether the ratio is its seconds over ours."""

    words: str
    seconds: float
    faster: bool = False


def solved(features: FloatArray, tolerance: float, *, enough: float = 2.0, most: int = 11) -> Ours:
    """Our solver, several times if it is quick."""
    seconds: list[float] = []
    while not seconds or (sum(seconds) < enough and len(seconds) < most):
        begin = time.perf_counter()
        try:
            design = solve_design(features, tolerance=tolerance)
        except NotConverged as unfinished:  # a line that misses
            design = unfinished.best
        seconds.append(time.perf_counter() - begin)
    return Ours(statistics.median(seconds), design.gap, design.lower_bound, int(np.count_nonzero(design.weights)))


def passes(features: FloatArray, repeats: int = 7) -> list[float]:
    """Seconds of single passes: U = X @ W and the norms of its rows."""
    square = np.random.default_rng(1).standard_normal((features.shape[1], features.shape[1]))
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        products = features @ square
        np.einsum("ij,ij->i", products, products)
        seconds.append(time.perf_counter() - begin)
    return seconds


def beside(case: Case, features: FloatArray, lower: float, seconds_of_passes: Sequence[float]) -> Beside:
    """What stands beside ours, measured now."""
    if case.beside == "CLARABEL":
        value, seconds = clarabel(features)
        return Beside(f"CLARABEL, {value / lower - 1.0:+.3%} off", seconds, True)
    if case.beside == "limit":
        return Beside("limit", case.asked or 0.0)
    if case.beside == "passes":
        return Beside("one pass", statistics.median(seconds_of_passes))
    extrapolated = case.beside == "extrapolated"
    other = frank_wolfe_extrapolated(features) if extrapolated else frank_wolfe(features)
    above = design_value(features, other.weights) / lower - 1.0
    end = ", extrapolated" if extrapolated else "" if other.stopped else ", not ended"
    return Beside(f"Frank-Wolfe, {other.steps} steps, {above:.2%} above{end}", other.seconds, True)


def table_lines(case: Case, *, quick: bool) -> Iterator[str]:
    """The lines of one instance, one a tolerance."""
    features = case.make(case.num_arms, case.dim)
    timed = passes(features)
    ours = [solved(features, tolerance) for tolerance in case.tolerances]
    timed += passes(features)
    other = None if quick and case.long else beside(case, features, max(each.lower for each in ours), timed)
    for tolerance, each in zip(case.tolerances, ours, strict=True):
        mine = f"{case.label:28s} {tolerance:>5.1%} {each.seconds:9.4f} {each.gap:9.3%} {each.support:5d}"
        yield f"{mine}  {judged(case, each, other, certified=each.gap <= tolerance)}"


def judged(case: Case, ours: Ours, other: Beside | None, *, certified: bool) -> str:
    """What stands beside, the ratio, what is asked and whether it holds."""
    if other is None:
        return f"{case.beside}: left out"
    ratio = other.seconds / ours.seconds if other.faster else ours.seconds / other.seconds
    if case.asked is None:
        asked, enough = "certified", True
    elif other.faster:
        asked, enough = f">= {case.asked:g} times", ratio >= case.asked
    elif case.beside == "limit":
        asked, enough = f"<= {case.asked:g} s", ours.seconds <= case.asked
    else:
        asked, enough = f"<= {case.asked:g} passes", ratio <= case.asked
    verdict = "holds" if enough and certified else "misses"
    return f"{other.words:48s} {other.seconds:10.4f} {ratio:9.2f}  {asked:14s} {verdict}"


def memory_here(num_arms: int, dim: int, tolerance: float) -> float:
    """Megabytes beyond the input that this process needed at most; for a process that has done nothing else."""
    features = gaussian(num_arms, dim)
    before = peak_memory()
    solve_design(features, tolerance=tolerance)
    return peak_memory() - before


def memory_line(num_arms: int, dim: int, tolerance: float) -> str:
    """The memory beyond the input, measured in a process of its own."""
    size = f"{num_arms},{dim},{tolerance}"
    done = subprocess.run([sys.executable, __file__, "--peak", size], capture_output=True, text=True, check=True)
    megabytes = float(done.stdout)
    verdict = "holds" if megabytes <= MEMORY_ASKED else "misses"
    text = f"memory, {num_arms} x {dim} at {tolerance:.1%}: {megabytes:,.0f} MB beyond the input of "
    return f"{text}{num_arms * dim * 8 / 1e6:,.0f} MB; asked <= {MEMORY_ASKED:,.0f} MB: {verdict}"


def slope(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Least-squares slope of log seconds against log size."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def growth_lines(arms: Sequence[int], dim: int, dims: Sequence[int], num_arms: int) -> Iterator[str]:
    """How the seconds at 1 % grow with K and with d, Gaussian arms."""
    for name, fixed, sizes, shapes in (
        ("K", f"d = {dim}", arms, [(size, dim) for size in arms]),
        ("d", f"K = {num_arms}", dims, [(num_arms, size) for size in dims]),
    ):
        seconds = [solved(gaussian(*shape), COARSE).seconds for shape in shapes]
        times = ", ".join(f"{size}: {each:.4f} s" for size, each in zip(sizes, seconds, strict=True))
        yield f"growth with {name} at {fixed}: exponent {slope(sizes, seconds):.2f} ({times})"


def threads_line(num_arms: int, dim: int) -> str:
    """The same instance with one and with two BLAS threads."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 (of the extra bench)

    features, seconds = gaussian(num_arms, dim), []
    for number in (1, 2):
        with threadpool_limits(number):
            seconds.append(solved(features, COARSE).seconds)
    one, two = seconds
    return f"threads, {num_arms} x {dim} at 1 %: {one:.4f} s with one, {two:.4f} s with two, ratio {one / two:.2f}"


def parts(*, quick: bool) -> Iterator[tuple[str, Callable[[], Iterator[str]]]]:
    """(label, what prints its lines) of everything, in the order in which it is printed."""
    for case in CASES:
        label = f"{case.label} {case.beside}"
        yield label, lambda case=case: table_lines(case, quick=quick)
    yield "memory", lambda: (memory_line(1_000_000, 20, tolerance) for tolerance in (COARSE, FINE))
    yield "growth", lambda: growth_lines((1_000, 10_000, 100_000, 1_000_000), 20, (5, 10, 20, 40, 80), 10_000)
    yield "threads", lambda: iter([threads_line(100_000, 20)])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="without what takes more than about ten seconds beside")
    parser.add_argument("--only", default="", help="lines whose label holds one of these words, or memory, growth, ...")
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    solve_design(gaussian(50, 2))  # first call: imports
    with one_thread():
        if chosen.peak:
            num_arms, dim, tolerance = chosen.peak.split(",")
            print(memory_here(int(num_arms), int(dim), float(tolerance)))
            return
        ours = f"{'instance':28s} {'at':>5s} {'seconds':>9s} {'gap':>9s} {'arms':>5s}"
        print(f"{ours}  {'beside':48s} {'seconds':>10s} {'ratio':>9s}  asked")
        words = [word.lower() for word in chosen.only.split(",") if word]
        for label, lines in parts(quick=chosen.quick):
            if words and not any(word in label.lower() for word in words):
                continue
            try:
                for line in lines():
                    print(line, flush=True)
            except ImportError as missing:  # of the extras demo, bench and dev
                print(f"{label}: left out, {missing}", flush=True)


if __name__ == "__main__":
    main()
