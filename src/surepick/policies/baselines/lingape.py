"""LinGapE (Xu, Honda & Sugiyama 2018): measure what tells the leader from its most ambiguous rival."""

from __future__ import annotations

import math
from dataclasses import field

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, record
from surepick.core.observations import Observations
from surepick.core.plan import Plan
from surepick.core.step import Step
from surepick.designs import solve_star_design
from surepick.estimators import RegularisedEstimate, regularised_least_squares, self_normalised_radius
from surepick.policies import options
from surepick.policies.base import Claim, Problem, Spec, Traits
from surepick.policies.baselines import linear
from surepick.policies.baselines.action_elimination import MeansState, initial_means, judged
from surepick.policies.options import one_of, option

SELECTIONS = ("greedy", "ratio")
RADII = ("determinant", "dimension")
MOST_PIECES = 64


@record
class LinGapE:
    """Pull the arm that shrinks the width of (leader, most ambiguous rival) most; stop when no rival can be better.

        i = argmax of the score,   j = argmax over x of score(x) - score(i) + C_t ||x - i||_{V^-1},   V = eta I + X'NX
        stop when score(j) - score(i) + C_t ||j - i||_{V^-1} <= epsilon
        "determinant"  C_t = sigma sqrt(2 log(K^2 det(V)^(1/2) det(eta I)^(-1/2) / delta)) + sqrt(eta) C
        "dimension"    C_t = sigma sqrt(d log(K^2 (1 + t L^2 / eta) / delta)) + sqrt(eta) C,   L the largest ||x||

    C_t bounds ||theta-hat - theta||_V at all times at once, whatever the pulls depend on (`self_normalised_radius`; the
    second form bounds the determinant by its trace, for d >= 2). So the answer after any batch is epsilon-best with
    probability at least 1 - delta; that needs one event, not the K^2 that the constants pay for.

    Args:
        problem, features, growth: as in `XYStatic`.
        norm_bound: C >= ||theta||, needed: reward units per feature unit.
        regularization: eta > 0, in squared feature units.
        selection: "greedy": the pull that leaves the smallest ||i - j||; "ratio": the arm that lacks most of the best
            proportions for i - j, to which the paper's sample complexity refers.
        radius: which C_t; "dimension" is what the paper's experiments used, and never smaller than the other.

    Raises:
        InvalidInput: a setting has no meaning, norm_bound is missing, or feature columns differ so much in scale that
            rounding hides what epsilon asks for.

    Source: Xu, Honda & Sugiyama (2018), Algorithm 1 and eqs. for the greedy and the ratio selection.
    Differs from its source: batches. Inside one the scores stand still, while V, C_t and with them the rival follow the
    pulls already decided, in at most 64 steps; the rule is looked at after each batch only, which is later than or
    when the paper would stop. d is the rank of the features; what their rounding hides, at most norm_bound times its
    length, is added to the widths.
    Cost: O(K r^2 + 64 K r) a batch; a design for each pair in question with "ratio".
    """

    problem: Problem
    features: FloatArray
    norm_bound: float | None = None
    regularization: float = option(1.0, linear.INFORMATION)
    selection: str = option("greedy", one_of(*SELECTIONS))
    radius: str = option("determinant", one_of(*RADII))
    growth: float = option(0.1, options.growth)
    traits: Traits = field(init=False, compare=False, repr=False)
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        linear.check_linear(self, self.norm_bound)
        norm_bound = linear.check_norm_bound("lingape", self.norm_bound)
        linear.check_span(self.features, norm_bound=norm_bound, epsilon=self.problem.epsilon)

    def init(self) -> MeansState:
        return initial_means(self.problem)

    def ask(self, state: MeansState) -> Plan:
        if state.seen.total == 0:
            return Plan(round=state.round, counts=np.ones(self.problem.num_arms, np.int64))  # Alg. 1, line 2
        rows = linear.in_span(self.features).rows
        estimate = regularised_least_squares(rows, state.seen, regularization=self.regularization)
        return Plan(round=state.round, counts=self._chosen(rows, estimate, state.seen), dim=rows.shape[1])

    def tell(self, state: MeansState, plan: Plan, seen: Observations) -> Step[MeansState]:
        pooled = state.seen.plus(seen)
        span = linear.in_span(self.features)
        estimate = regularised_least_squares(span.rows, pooled, regularization=self.regularization)
        found = linear.judge(
            estimate.fitted,
            multiplier=self._multiplier(span.rows, pooled.total, estimate.log_growth),
            epsilon=self.problem.epsilon,
            misspecification=linear.check_norm_bound("lingape", self.norm_bound) * span.lost,
        )
        return judged(state, plan, seen, found)

    def claim(self, state: MeansState) -> Claim:
        spent, assumptions = self.problem.delta, self.traits.assumptions
        return Claim(state.leader, state.finished, state.pulls, state.gap, spent, assumptions)

    def _multiplier(self, rows: FloatArray, total: int, log_growth: float) -> float:
        """C_t after `total` pulls."""
        sigma, eta, norm = self.problem.sigma, self.regularization, linear.check_norm_bound("lingape", self.norm_bound)
        log_pairs = 2.0 * math.log(self.problem.num_arms) - math.log(self.problem.delta)  # log(K^2 / delta)
        if self.radius == "dimension":
            longest = float(np.max(np.sum(rows**2, axis=1)))
            dim = max(rows.shape[1], 2)
            return sigma * math.sqrt(dim * (log_pairs + math.log1p(total * longest / eta))) + math.sqrt(eta) * norm
        return self_normalised_radius(
            sigma, log_growth, log_inverse_delta=log_pairs, regularization=eta, norm_bound=norm
        )

    def _chosen(self, rows: FloatArray, estimate: RegularisedEstimate, seen: Observations) -> IntArray:
        """The pulls of the next batch (Alg. 1, lines 4 and 8), as if their rewards changed no score."""
        coordinates, scores, log_growth = estimate.fitted.coordinates, estimate.fitted.scores, estimate.log_growth
        leader, counts = int(np.argmax(scores)), np.zeros(self.problem.num_arms, np.int64)
        shares: dict[int, FloatArray] = {}
        for pulls in linear.pieces(linear.next_batch(seen.total, self.growth), MOST_PIECES).tolist():
            away = coordinates - coordinates[leader]
            multiplier = self._multiplier(rows, seen.total + int(counts.sum()), log_growth)
            upper = scores - scores[leader] + multiplier * np.sqrt(np.einsum("ij,ij->i", away, away))
            upper[leader] = -np.inf
            rival = int(np.argmax(upper))  # the most ambiguous arm: Alg. 2, line 4
            lengths = np.einsum("ij,ij->i", coordinates, coordinates)
            if self.selection == "ratio":
                if rival not in shares:
                    shares[rival] = self._proportions(leader, rival)
                arm = _most_lacking(seen.counts + counts, shares[rival])
            else:
                arm = int(np.argmax((coordinates @ away[rival]) ** 2 / (1.0 + pulls * lengths)))
            log_growth += math.log1p(pulls * float(lengths[arm]))
            coordinates = linear.pulled_more(coordinates, arm, pulls)
            counts[arm] += pulls
        return counts

    def _proportions(self, leader: int, rival: int) -> FloatArray:
        """|w| / |w|_1 of the w with X'w = i - j of smallest 1-norm: the best design for that one difference."""
        if np.array_equal(self.features[leader], self.features[rival]):
            return np.full(self.problem.num_arms, 1.0 / self.problem.num_arms)
        design = solve_star_design(self.features, leader, np.ones(self.problem.num_arms), rivals=np.array([rival]))
        return design.weights


def _most_lacking(counts: IntArray, shares: FloatArray) -> int:
    """argmin over the arms with a share of pulls / share."""
    used = np.flatnonzero(shares)
    return int(used[np.argmin(counts[used] / shares[used])])
