"""Optimal designs for given vectors, or for one arm against the others, in place of all differences of a set."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.plans import Design
from surepick.core.records import FloatArray, IntArray
from surepick.designs.objective import Objective, ends_of, independent_star_design, information
from surepick.designs.problem import DesignInput, DesignProblem, checked_rows, pose_star, pose_targets
from surepick.designs.rounding import Few, thinned
from surepick.designs.solve import certified, check_tolerance, solved
from surepick.designs.working_set import many_directions
from surepick.errors import InvalidInput, NotConverged
from surepick.linalg.factorisations import cholesky
from surepick.linalg.rows import one_blas_thread

SPAN_TOLERANCE = 1e-8
MOST_STEPS = 200
TINY = 1e-300
HEURISTIC_LONGEST_FACTOR = 4  # times r: so many vectors are looked at first for fewer arms


def solve_target_design(
    features: ArrayLike | DesignInput,
    targets: ArrayLike,  # y, (m, d), finite, in the coordinates of the features; zero and repeated rows welcome
    *,
    tolerance: float = 0.01,
    max_steps: int = MOST_STEPS,
    span_tolerance: float = SPAN_TOLERANCE,
    unit: float | None = None,
    accept: Callable[[FloatArray], bool] | None = None,
) -> Design:
    """The optimal design for measuring given linear functions of the parameter, with a certificate.

        tau = min over lambda in the simplex   max over j   ||y_j||^2 in A(lambda)^-1,   A = sum_i lambda_i x_i x_i'

    Args:
        features: x, shape (K, d), finite; any scale of the columns, any rank, equal rows welcome. Or arms that were
            posed before, with their own rank tolerance: many designs for the same arms then share that work.

    Returns:
        As `solve_design`, on the points +-y_j / 2. The value is 0 when all targets are 0.
    """
    check_tolerance(tolerance)
    with one_blas_thread():
        posed = _posed(features)
        vectors = checked_rows(targets, "targets", "target", "m", dim=posed.dim)
        _, exponent = np.frexp(np.abs(vectors).max(initial=0.0))
        scaled = np.ldexp(vectors, -exponent)  # exact; the values of huge or tiny targets neither overflow nor vanish
        problem = pose_targets(posed, scaled, span_tolerance=span_tolerance)
        return _solved_in_units(
            problem, int(exponent), tolerance=tolerance, max_steps=max_steps, unit=unit, accept=accept
        )


def _posed(arms: ArrayLike | DesignInput, noise: FloatArray | None = None) -> DesignInput:
    """Arms that were posed before, or that are checked and posed now."""
    if isinstance(arms, DesignInput):
        return arms
    features = checked_rows(arms)
    return DesignInput.of(features if noise is None else features / noise[:, None])


def _solved_in_units(
    problem: DesignProblem,
    exponent: int,
    *,
    tolerance: float,
    max_steps: int,
    unit: float | None = None,
    accept: Callable[[FloatArray], bool] | None = None,
) -> Design:
    """The design of a problem whose vectors were divided by 2 ** exponent, valued in the units of the vectors."""
    if unit is not None and not 0.0 < unit < np.inf:
        raise InvalidInput(f"unit is {unit}; a value of 1 stands for a positive number of pulls.")
    with np.errstate(over="ignore"):
        own = None if unit is None else float(np.clip(np.ldexp(unit, 2 * exponent), TINY, 1.0 / TINY))
    try:
        return _scaled(solved(problem, tolerance=tolerance, max_steps=max_steps, unit=own, accept=accept), exponent)
    except NotConverged as unfinished:
        raise NotConverged(str(unfinished), best=_scaled(unfinished.best, exponent), gap=unfinished.gap) from None


def _scaled(design: Design, exponent: int) -> Design:
    """The design with its values times 4 ** exponent."""
    with np.errstate(over="ignore"):  # beyond the largest number: infinite
        value, bound = (float(np.ldexp(number, 2 * exponent)) for number in (design.value, design.lower_bound))
    return replace(design, value=value, lower_bound=bound)


def solve_star_design(
    features: ArrayLike | DesignInput,
    centre: int,
    scales: ArrayLike,  # w, positive and finite, (K,), in reward units; the entry of c is not used
    *,
    rivals: IntArray | None = None,
    noise_scales: FloatArray | None = None,  # v, the noise of each arm, positive and finite, (K,); None = 1 for all
    tolerance: float = 0.01,
    unit: float | None = None,
    accept: Callable[[FloatArray], bool] | None = None,
) -> Design:
    """The optimal design for one arm against each other arm, each difference to its own accuracy, with a certificate.

        tau = min over lambda in the simplex   max over j != c   ||x_c - x_j||^2 in A(lambda)^-1 / w_j^2
        A(lambda) = sum_x lambda_x x x' / v_x^2

    Args:
        features: x, shape (K, d), finite; or arms that were posed before, where no noise scales are given.
        accept: says of such weights, shape (K,), whether they are good enough; where not, the search goes on from them
            to the tolerance. None: they are.

    Returns:
        As `solve_target_design`; the value is in units of 1 / w^2. Linearly independent arms are solved as arms without
        structure: no design depends on the basis. Of a rival that no design can tell from c: docs/design-solver.md,
        line 10.
    """
    check_tolerance(tolerance)
    if isinstance(features, DesignInput) and noise_scales is not None:
        raise InvalidInput("arms that were posed before are measured with one noise; give features with noise_scales.")
    with one_blas_thread():
        posed = _posed(features, noise_scales)
        num_arms = posed.num_arms
        if not 0 <= centre < num_arms:
            raise InvalidInput(f"arm {centre} does not exist: there are {num_arms} arms, 0 .. {num_arms - 1}.")
        widths = np.array(scales, dtype=np.float64)
        if widths.shape != (num_arms,):
            raise InvalidInput(f"scales have shape {widths.shape}; they must be ({num_arms},), one an arm.")
        widths[centre] = 1.0
        if not (np.isfinite(widths) & (widths > 0)).all():
            raise InvalidInput("scales must be positive and finite: the accuracy that each difference needs.")
        _, exponent = np.frexp(np.delete(widths, centre) if rivals is None else widths[rivals])
        finest = int(exponent.min()) if exponent.size else 0
        scaled = np.ldexp(widths, -finest)  # exact; see `solve_target_design`
        problem = pose_star(posed, centre, scaled, rivals=rivals, noise_scales=noise_scales)
        if problem.rank == num_arms:
            return independent_star_design(centre, widths, rivals=rivals, noise_scales=noise_scales)
        return _solved_in_units(problem, -finest, tolerance=tolerance, max_steps=MOST_STEPS, unit=unit, accept=accept)


def on_fewer_arms(
    features: ArrayLike | DesignInput, centre: int, scales: FloatArray, design: Design, *, unit: float
) -> Design:
    """A design for one arm against all others, or one on fewer arms where that takes fewer pulls, in many directions.

    A batch has at least one pull of each arm with weight. Weights on n arms whose value stands for at most n pulls are
    therefore better than weights on more arms, though their value is larger. The lower bound stays.
    """
    with one_blas_thread():
        problem = pose_star(_posed(features), centre, scales)
        if not many_directions(problem):
            return design
        objective = Objective(problem)
        weights = problem.merged(design.weights)
        factor = cholesky(information(problem.basis, weights))
        if factor is None:
            return design
        pairs = ends_of(objective.far(factor, most=HEURISTIC_LONGEST_FACTOR * problem.rank))
        whole = Few(weights, pairs, np.full(len(pairs), 1.0 / len(pairs)))
        few = thinned(objective, whole, lower=design.lower_bound, ceiling=0.0, unit=unit)
        return design if few is None else certified(objective, few, design.lower_bound)
