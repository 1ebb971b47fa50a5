"""How hard an instance is: the effective dimension, and what a round at a given accuracy costs.

g(d, zeta) = (1 + zeta) min over designs of max over pairs of ||y||^2_{A_d^-1}  <=  4 (1 + zeta) d
gamma(d)   = (16 + 8 sqrt(g(d, zeta))) gamma-tilde(d)
d_eff(eps) = min {d : gamma(d) <= eps}                                             (Definition 1)
"""

import math
from collections.abc import Callable, Iterator
from typing import ParamSpec

import numpy as np

from surepick import designs
from surepick.core.plans import Design, Embedded
from surepick.core.records import IntArray, record
from surepick.embeddings import ArmEmbedding
from surepick.embeddings.base import free_dim
from surepick.errors import ContractError, NotConverged
from surepick.policies import tuning

SCREEN_TOLERANCE = 0.05
EVERY_DIMENSION = 12
HEURISTIC_RATIO = 1.25  # of tau(d) to d, before any is known
HEURISTIC_HOPE = 0.5  # of the least cost: until tau is known of many directions, what may cost so little is tried
HEURISTIC_GAIN = 0.9  # of the least cost: another design that takes seconds must be guessed to lead to less
MOST_PULLS = 1e15  # of a round: beyond what anybody could measure
P = ParamSpec("P")
DesignOf = Callable[[Embedded, float], Design]


def embedding_design(embedding: Embedded, active: IntArray | None = None, *, tolerance: float = 0.01) -> Design:
    """The transductive design of an embedding: closed form for independent arms, the solver otherwise."""
    if not embedding.structured:
        return designs.independent_design(embedding.num_arms, active)
    return designs.solve_design(embedding.features, active, tolerance=tolerance)


def best_found(solve: Callable[P, Design], /, *args: P.args, **kwargs: P.kwargs) -> Design:
    """What a solver returns, or the best it found where it did not converge: its value is that of its weights."""
    try:
        return solve(*args, **kwargs)
    except NotConverged as unfinished:
        best: Design = unfinished.best
        return best


def bias(misspecification: float, value: float, slack: float) -> float:
    """eps_k = 2 gamma-tilde + gamma-tilde sqrt((1 + zeta) tau): how far misspecification can move a difference.

    Source: Algorithm 1, line 6.
    """
    return misspecification * (2.0 + math.sqrt((1.0 + slack) * value))


def worst_gap(misspecification: float, value: float, slack: float) -> float:
    """gamma(d) = (16 + 8 sqrt((1 + zeta) tau)) gamma-tilde(d): the shortfall that misspecification can force.

    Source: section 3, definition of gamma(d).
    """
    return misspecification * (16.0 + 8.0 * math.sqrt((1.0 + slack) * value))


def every_dimension(embedding: ArmEmbedding) -> list[int]:
    """The dimensions of an embedding, ascending."""
    free = free_dim(embedding)
    return [*range(1, embedding.max_dim + 1), *([free] if free else [])]


def effective_dimension(embedding: ArmEmbedding, epsilon: float, *, slack: float = 0.1) -> int:
    """d_eff(epsilon), with 4 d in place of the optimal design value (an upper bound by Kiefer-Wolfowitz).

    Args:
        embedding: the family psi_d.
        epsilon: the shortfall that is tolerated, in reward units.
        slack: zeta.

    Returns:
        The smallest d with (16 + 8 sqrt(4 (1 + zeta) d)) gamma-tilde(d) <= epsilon.

    Raises:
        ContractError: no dimension of the embedding reaches epsilon.

    Source: Definition 1, and the paper's implementation details (g(d, zeta) replaced by 4 (1 + zeta) d).
    """
    best = math.inf
    for dim in every_dimension(embedding):
        reached = worst_gap(embedding.misspecification(dim), 4.0 * dim, slack)
        if reached <= epsilon:
            return dim
        best = min(best, reached)
    raise ContractError(
        f"no dimension of this embedding keeps the misspecification's shortfall below {epsilon:g}; the smallest is "
        f"{best:g}. An arm that good cannot be certified: raise epsilon, or give a smaller valid norm bound."
    )


def check_room(
    embedding: ArmEmbedding, accuracy: float, *, dim: int | None = None, slack: float = 0.1, tolerance: float = 0.01
) -> None:
    """Refuse an embedding whose misspecification leaves no room for the finest accuracy, before anything is measured.

    Cost: nothing where 4 d in place of tau(d) already leaves room; else as `cheapest_dimension`, or one design.
    """
    dims = every_dimension(embedding) if dim is None else (dim,)
    if any(bias(embedding.misspecification(d), 4.0 * d, slack) < accuracy for d in dims):
        return
    everybody = np.arange(embedding.num_arms)
    if dim is None:
        cheapest_dimension(embedding, everybody, accuracy, slack=slack, tolerance=tolerance)
        return
    value = embedding_design(embedding.at(dim), tolerance=tolerance).value
    shift = bias(embedding.misspecification(dim), value, slack)
    if shift >= accuracy:
        raise ContractError(
            f"in {dim} dimensions misspecification can move a difference of two arms by {shift:g}, and the last round "
            f"must resolve {accuracy:g}: no number of pulls would help. Raise epsilon, use a larger dimension or a "
            "smaller valid norm bound, or the fixed policy, which certifies what this dimension allows."
        )


@record
class DimensionChoice:
    """A dimension of an embedding, and the design at that dimension."""

    dim: int
    design: Design


def round_cost(misspecification: float, value: float, accuracy: float, slack: float) -> float:
    """(1 + zeta) tau / (t - eps_k)^2, the pulls of a round up to 2 sigma^2 L; infinite when the bias leaves no room."""
    room = accuracy - bias(misspecification, value, slack)
    return (1.0 + slack) * value / room**2 if room > 0 else math.inf


def whole_pulls(number: float) -> int:
    """The number of pulls rounded up, at least 1."""
    if not number < MOST_PULLS:
        raise ContractError(
            f"this round would need {number:.3g} pulls: epsilon is too small for this noise. Raise epsilon, or measure "
            "with less noise."
        )
    return max(1, math.ceil(number))


def cheapest_dimension(
    embedding: ArmEmbedding,
    active: IntArray,
    accuracy: float,
    *,
    slack: float = 0.1,
    tolerance: float = 0.01,
    screen_tolerance: float = SCREEN_TOLERANCE,
    least_dim: int = 1,
    least_value: float = 0.0,
    design_of: DesignOf | None = None,
) -> DimensionChoice:
    """The dimension whose round is predicted to cost the fewest pulls.

        minimise over d   (1 + zeta) tau(d) / (t - gamma-tilde(d) (2 + sqrt((1 + zeta) tau(d))))^2

    Any d whose bias stays below t keeps the guarantee; the smallest such d may leave hardly any room and cost many
    times the best. tau(d) does not decrease in d, because psi_d is the beginning of psi_{d+1}: so a design solved at d
    bounds the cost of every larger d from below, and most dimensions are never solved. Beyond EVERY_DIMENSION only
    every fourth part is looked at: tau changes little in between, and a design costs time. Where it costs much (many
    arms and directions), tau(d) / d is taken for what it was at the last d, and the d that then looks best is solved,
    until that is no other one. Where all arms are compared tau(d) is at least d - 1: with m the mean of the z_i under
    the weights, sum_i lambda_i ||z_i - z_c||^2 in A^-1 = d - ||m||^2 + ||z_c - m||^2, and A >= m m'.

    Source: ours; Algorithm 1 takes d_eff(4 t) instead (`effective_dimension`).
    Cost: one design per dimension that could still win.
    """
    solve = design_of or (lambda embedded, tolerance: embedding_design(embedded, active, tolerance=tolerance))
    lower, ratio = 0.0, HEURISTIC_RATIO
    best: tuple[float, DimensionChoice] | None = None

    def looked_at(dim: int) -> Design:
        nonlocal best
        design, gamma = best_found(solve, embedding.at(dim), screen_tolerance), embedding.misspecification(dim)
        cost = round_cost(gamma, design.value, accuracy, slack)
        allowed = dim == embedding.max_dim or (dim >= least_dim and design.value >= least_value)
        if allowed and cost < (math.inf if best is None else best[0]):
            best = (cost, DimensionChoice(dim, design))
        return design

    candidates = _candidates(embedding)
    dear = [dim for dim in candidates if dim >= tuning.MANY_DIRECTIONS and embedding.num_arms > tuning.HEURISTIC_MANY]
    for dim in candidates[: len(candidates) - len(dear)]:
        gamma = embedding.misspecification(dim)
        if round_cost(gamma, lower, accuracy, slack) >= (math.inf if best is None else best[0]):
            continue
        design = looked_at(dim)
        lower, ratio = max(lower, design.lower_bound), design.value / dim
        if gamma == 0.0 and best is not None and best[1].dim == dim:
            dear = []
            break
    everybody = len(active) == embedding.num_arms
    least = {dim: max(lower, dim - 1.0 if everybody else 0.0) for dim in dear}  # lower bounds on tau
    hope = HEURISTIC_HOPE
    while True:
        most = math.inf if best is None else best[0]
        hopes = {dim: round_cost(embedding.misspecification(dim), least[dim], accuracy, slack) for dim in least}
        least = {dim: bound for dim, bound in least.items() if hopes[dim] < most}
        guesses = {dim: round_cost(embedding.misspecification(dim), ratio * dim, accuracy, slack) for dim in least}
        hopeful = [
            dim for dim in least if best is None or guesses[dim] < HEURISTIC_GAIN * most or hopes[dim] < hope * most
        ]
        if not hopeful:
            break
        dim = min(hopeful, key=lambda dim: (guesses[dim], hopes[dim]))
        design = looked_at(dim)
        ratio, hope = design.value / dim, 0.0
        least = {
            other: max(bound, design.lower_bound) if other > dim else bound
            for other, bound in least.items()
            if other != dim
        }
    if best is None:
        raise ContractError(
            f"at every dimension the bias that misspecification can cause exceeds the accuracy {accuracy:g} of this "
            "round; no number of pulls would help. Raise epsilon, or give a smaller valid norm bound."
        )
    screened = best[1]
    if tolerance == screen_tolerance:  # the same design once more
        return screened
    embedded = embedding.at(screened.dim)
    final = best_found(solve, embedded, tolerance)
    if round_cost(embedded.misspecification, final.value, accuracy, slack) > best[0]:
        return screened
    return DimensionChoice(screened.dim, final)


def larger_dimensions(embedding: ArmEmbedding, dim: int, epsilon: float) -> Iterator[int]:
    """Those in which to look after d, a quarter more each time, so long as the bias of the last one matters."""
    gamma = embedding.misspecification
    while gamma(dim) > 0.0 and dim < embedding.max_dim and 2.0 * gamma(dim) >= tuning.NEGLIGIBLE_BIAS * epsilon / 2.0:
        dim = min(embedding.max_dim, math.ceil(1.25 * dim))
        yield dim


def _candidates(embedding: ArmEmbedding) -> list[int]:
    """Those to look at, ascending: all small ones, then steps of a quarter, the largest, the first without bias."""
    last = embedding.max_dim
    dims = {*range(1, min(EVERY_DIMENSION, last) + 1), last}
    dim = EVERY_DIMENSION
    while dim < last:
        dims.add(dim)
        dim = math.ceil(1.25 * dim)
    if embedding.misspecification(last) == 0.0:
        low, high = 0, last
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if embedding.misspecification(middle) == 0.0 else (middle, high)
        dims.add(high)
    return sorted(dims | {free_dim(embedding)} - {0})


def uniform_pulls(num_arms: int, *, sigma: float, epsilon: float, delta: float) -> int:
    """Pulls that sampling all arms equally often needs to promise an epsilon-best arm with probability 1 - delta.

        K ceil(4 sigma^2 log((K - 1) / delta) / epsilon^2)

    With n pulls an arm, a bad arm overtakes the best one with probability at most exp(-n epsilon^2 / (4 sigma^2));
    there are at most K - 1 bad arms.

    Source: ours (Hoeffding and a union over the bad arms).
    """
    if num_arms == 1:
        return 0
    return num_arms * math.ceil(4.0 * sigma**2 * math.log((num_arms - 1) / delta) / epsilon**2)
