"""What the linear baselines share: features in their span, growing batches, the judgement of a leader."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from surepick.core.arms import Arms
from surepick.core.arrays import FloatArray, IntArray, record
from surepick.core.validation import positive_number
from surepick.errors import InvalidInput
from surepick.estimators import LeastSquaresEstimate
from surepick.linalg.factorisations import thin_svd
from surepick.policies.base import Problem, Traits, check_arms, compared_with
from surepick.policies.baselines.action_elimination import Judgement
from surepick.policies.options import check_options, positive

INFORMATION = positive("what is added to the information of every direction.")
HEURISTIC_HIDDEN = 0.1  # of epsilon: what rounding of the features may add to the width of a difference


@record
class Span:
    """The features in orthonormal coordinates W of their span: x = W'u_x + e_x.

    The part of theta outside the span has no effect on any arm but through e_x, and W theta is no longer than theta.

    Args:
        rows: u_x, shape (K, r).
        lost: ||e_x|| is at most this for every arm: directions too short to be told from rounding, and rounding.
    """

    rows: FloatArray
    lost: float


class Linear(Protocol):
    """What all linear baselines are made of."""

    @property
    def problem(self) -> Problem: ...
    @property
    def features(self) -> FloatArray: ...
    @property
    def traits(self) -> Traits: ...


def check_linear(
    policy: Linear, norm_bound: float | None = None, *, eliminates: bool = False, checks: tuple[str, ...] = ()
) -> None:
    """Check the options of a linear baseline; its features become a read-only array, its traits are formed once.

    Args:
        norm_bound: what its answer assumes of the coefficients, if anything.
        eliminates, checks: of the traits.

    Raises:
        InvalidInput: no feature column, vectors of more or fewer arms than the problem's, or an option without meaning.
    """
    features = np.asarray(Arms(policy.features).features, dtype=np.float64)
    features.flags.writeable = False
    object.__setattr__(policy, "features", features)
    check_options(policy)
    num_columns = features.shape[1]
    if num_columns == 0:
        raise InvalidInput("a linear policy needs features; for arms without any, use certified-independent.")
    check_arms(policy.problem, len(features))
    norm = "" if norm_bound is None else f", with coefficients of Euclidean norm at most {norm_bound:g}"
    distinct = len(np.unique(features, axis=0))
    doubt = (
        f"{distinct} distinct arms in {num_columns} feature columns: that the mean reward is exactly linear in the "
        "features is an assumption about the world. If it is doubtful, use certified-independent."
    )
    traits = Traits(
        eliminates=eliminates,
        uses_features=True,
        assumptions=(f"The mean reward is exactly a linear function of the {num_columns} features{norm}.",),
        checks=checks,
        caveats=(doubt,) if distinct > num_columns else (),
        features=features,
    )
    object.__setattr__(policy, "traits", traits)


def check_norm_bound(name: str, norm_bound: float | None) -> float:
    """The norm bound of a policy whose stopping rule needs one.

    Raises:
        InvalidInput: it is missing, or not positive.
    """
    if norm_bound is None:
        raise InvalidInput(
            f"{name} needs norm_bound: the largest norm that the linear reward function can have. Regularisation "
            "pulls the estimate towards 0 by an amount proportional to it; without it nothing can be certified."
        )
    return positive_number("norm_bound", norm_bound, "the largest norm that the linear reward function can have.")


def in_span(features: FloatArray) -> Span:
    """The features in orthonormal coordinates of their span, and what these coordinates miss.

    Directions whose singular value cannot be told from rounding are dropped: with exactly dependent columns nothing but
    rounding is lost; where a column is huge beside the others, the others may be.

    Source: ours; e_x as computed, plus a bound on the rounding of that, (r + 2) eps (||x|| + sqrt(r) ||u_x||).
    """
    _, singular, directions = thin_svd(features)
    eps = float(np.finfo(np.float64).eps)
    kept = directions[singular > max(features.shape) * eps * singular[0]]
    rows = np.ascontiguousarray(features @ kept.T)
    largest = float(np.max(np.abs(features)))
    if largest == 0.0:
        return Span(rows, 0.0)
    outside = (features - rows @ kept) / largest  # scaled, so that no square overflows
    longest = largest * math.sqrt(float(np.max(np.sum((features / largest) ** 2, axis=1))))
    lost = largest * math.sqrt(float(np.max(np.sum(outside**2, axis=1))))
    return Span(rows, lost + 2.0 * (len(kept) + 2) ** 1.5 * eps * longest)


def check_span(features: FloatArray, *, norm_bound: float, epsilon: float) -> None:
    """Refuse features of which rounding hides more than a tenth of the tolerated shortfall.

    Raises:
        InvalidInput: a norm_bound of which the hidden part could make such a difference.
    """
    lost = in_span(features).lost
    hidden = 2.0 * norm_bound * lost
    if hidden > HEURISTIC_HIDDEN * epsilon:
        raise InvalidInput(
            f"beside features of up to {float(np.max(np.abs(features))):.2g}, parts of them up to {lost:.2g} long are "
            f"lost in rounding, which norm_bound {norm_bound:g} lets change a gap by {hidden:.2g}, too much for "
            f"epsilon {epsilon:g}; rescale the feature columns to similar sizes, and norm_bound with them."
        )


def next_batch(pulls: int, growth: float) -> int:
    """The pulls of the next batch: a share of those so far, at least 1. Cost of a run: log(pulls) / growth looks."""
    return max(1, math.ceil(growth * pulls))


def pieces(total: int, most: int) -> IntArray:
    """The pulls of a batch in at most `most` nearly equal pieces, each at least 1."""
    ends: IntArray = np.linspace(0, total, min(total, most) + 1).round().astype(np.int64)
    return np.diff(ends)


def pulled_more(coordinates: FloatArray, arm: int, pulls: int) -> FloatArray:
    """The coordinates after `pulls` more pulls of one arm: u with ||u_a - u_b|| the distance in (A + n x x')^-1.

        u -> (I + n v v')^(-1/2) u,   v the coordinates of the arm

    Source: the matrix inversion lemma. Cost: O(K r).
    """
    direction = coordinates[arm]
    square = float(direction @ direction)
    if square == 0.0:
        return coordinates
    share = (1.0 - 1.0 / math.sqrt(1.0 + pulls * square)) / square
    moved: FloatArray = coordinates - np.outer(share * (coordinates @ direction), direction)
    return moved


def judge(
    fitted: LeastSquaresEstimate, *, multiplier: float, epsilon: float, misspecification: float = 0.0
) -> Judgement:
    """Who leads, and by how much it can fall short of the best.

        gap = max over x != leader of score(x) - score(leader) + width(x)
        width(x) = (multiplier + sqrt(n) m) ||x - leader|| + 2 m        n: pulls told,   m: misspecification

    Where no difference errs by more than its width, the leader is within `gap` of the best arm. Without
    misspecification equal arms are 0 apart.

    Args:
        fitted: the estimate, with distances in V^-1 for a V of at least X'NX.
        multiplier: bounds what noise and regularisation do to an estimated difference, per unit of distance.
        epsilon: the shortfall that is tolerated, in reward units.
        misspecification: m, by how much the mean of an arm may differ from linear in the coordinates, in reward units.

    Source: ours; means off by m_x move the estimate by ||X'Nm|| in V^-1 <= sqrt(m'Nm) <= sqrt(n) m.
    """
    leader = int(np.argmax(fitted.scores))
    everybody = np.arange(len(fitted.scores))
    away = fitted.distances(everybody, np.array([leader]))[:, 0]
    width = (multiplier + math.sqrt(fitted.total) * misspecification) * away + 2.0 * misspecification
    ahead = fitted.scores - fitted.scores[leader] + width
    ahead[leader] = -np.inf
    gap = max(0.0, float(np.max(ahead)))
    active = np.flatnonzero((ahead > epsilon) | (everybody == leader))
    deciding = compared_with(leader, everybody[everybody != leader], fitted.scores, width, epsilon)
    return Judgement(leader, gap, active, "certified" if gap <= epsilon else "", deciding)
