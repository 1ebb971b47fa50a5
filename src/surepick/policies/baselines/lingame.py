"""LinGame (Degenne, Menard, Shang & Valko 2020): a game of weights against the nearest contradicting parameter."""

from __future__ import annotations

import math
from dataclasses import field

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, freeze, record
from surepick.core.observations import Observations
from surepick.core.plan import Plan
from surepick.core.step import Step
from surepick.designs import solve_star_design
from surepick.estimators import RegularisedEstimate, regularised_least_squares, self_normalised_radius
from surepick.policies import options
from surepick.policies.base import Claim, Problem, Spec, Traits, trace_row
from surepick.policies.baselines import linear
from surepick.policies.baselines.adahedge import Learner, hedged, nearest_contradiction, taught, tracked
from surepick.policies.options import one_of, option

PLAYS = ("solved", "learner")
THRESHOLDS = ("proved", "stylised")
MOST_TURNS = 16
SADDLE_TOLERANCE = 0.05
STYLISED = (
    "The threshold log((1 + log t) / delta) of the source's experiments is not proved for linear rewards; with "
    "threshold 'proved' and a norm bound the answer is certified."
)


@record
class GameState:
    """Where the game stands.

    Args:
        round, active, seen, leader, gap, finished: as in `MeansState`.
        learner: the player of weights, before the next batch.
    """

    round: int
    active: IntArray
    seen: Observations
    learner: Learner
    leader: int
    gap: float | None
    finished: str

    def __post_init__(self) -> None:
        freeze(self, active=np.int64)

    @property
    def pulls(self) -> int:
        """All pulls received."""
        return self.seen.total


@record
class LinGame:
    """A learner plays weights over the arms, nature answers with the closest parameter for which the leader is bad.

        w = weights of AdaHedge,   i = argmax of the score
        lambda = argmin of ||theta-hat - l||_{V_w}  over all l with <l, x_j - x_i> >= epsilon for some j
        gain of arm x: (|<theta-hat - lambda, x>| + sigma sqrt(2 log t) ||x||_{V^-1})^2 / (2 sigma^2), at most log t
        the arm whose pulls lag most behind the sum of all w is pulled
        stop when min over l as above of ||theta-hat - l||^2_V / 2 >= beta(t),   V = eta I + X'NX
        "proved"    beta = (sigma sqrt(log(1/delta) + log(det(V)/det(eta I)) / 2) + sqrt(eta/2) C)^2
        "stylised"  beta = sigma^2 log((1 + log t)/delta)

    The minimum at the stop is min over j of (score(i) - score(j) + epsilon)^2 / (2 ||x_i - x_j||^2_{V^-1}): no rival's
    score plus sqrt(2 beta) times its distance may exceed the leader's by more than epsilon. The proved sqrt(2 beta)
    bounds ||theta-hat - theta||_V at all times at once, whatever the pulls depend on (`self_normalised_radius`). So the
    answer after any batch is epsilon-best with probability at least 1 - delta.

    Args:
        problem, features, growth: as in `XYStatic`.
        norm_bound: C >= ||theta||; needed by the proved threshold, not used by the other.
        regularization: eta > 0, in squared feature units.
        play: "solved": w is the saddle point of the game at theta-hat, to 5 %, which the learner would approach;
            "learner": w is AdaHedge's, as published.
        threshold: "proved", or "stylised", for which the verdict is heuristic.

    Raises:
        InvalidInput: a setting has no meaning, norm_bound is missing, or feature columns differ so much in scale that
            rounding hides what epsilon asks for.

    Source: Degenne, Menard, Shang & Valko (2020), Algorithm 1 (LinGame) and its threshold; "stylised" and the bonus
    with log t as in its experiments.
    Differs from its source: batches, in which the game is solved at the estimate before the batch, or the learner plays
    at most 16 turns of several pulls each, too few for it where many arms are nearly as good as the best; one learner
    for all answers, so that the state stays linear in the arms; epsilon; a tiny share of the weights on every arm when
    nature answers, so that V_w is regular; what rounding of the features hides, at most norm_bound times its length, is
    added to the widths.
    Cost: a design a batch; with the learner O(16 (K r^2 + r^3)), twice.
    """

    problem: Problem
    features: FloatArray
    norm_bound: float | None = None
    regularization: float = option(1.0, linear.INFORMATION)
    play: str = option("solved", one_of(*PLAYS))
    threshold: str = option("proved", one_of(*THRESHOLDS))
    growth: float = option(0.1, options.growth)
    traits: Traits = field(init=False, compare=False, repr=False)
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        linear.check_linear(self, self.norm_bound if self.threshold == "proved" else None)
        if self.threshold == "proved" or self.norm_bound is not None:
            norm_bound = linear.check_norm_bound("lingame", self.norm_bound)
            linear.check_span(self.features, norm_bound=norm_bound, epsilon=self.problem.epsilon)

    def init(self) -> GameState:
        finished, gap = self.problem.answer_without_pulls()
        num_arms = self.problem.num_arms
        learner = Learner(np.zeros(num_arms), np.zeros(num_arms), 0.0)
        return GameState(1, np.arange(num_arms), Observations.nothing(num_arms), learner, 0, gap, finished)

    def ask(self, state: GameState) -> Plan:
        rows = linear.in_span(self.features).rows
        total = linear.next_batch(state.seen.total, self.growth)
        if self.play == "solved":
            target = (state.seen.total + total) * self._saddle_point(rows, state)
        else:
            target = self._played(rows, state, total).weights  # Alg. 1: track the sum of the weights
        counts = tracked(target, state.seen.counts, total)
        return Plan(round=state.round, counts=counts, dim=rows.shape[1])

    def tell(self, state: GameState, plan: Plan, seen: Observations) -> Step[GameState]:
        span = linear.in_span(self.features)
        pooled = state.seen.plus(seen)
        estimate = regularised_least_squares(span.rows, pooled, regularization=self.regularization)
        found = linear.judge(
            estimate.fitted,
            multiplier=self._multiplier(pooled.total, estimate),
            epsilon=self.problem.epsilon,
            misspecification=0.0 if self.norm_bound is None else self.norm_bound * span.lost,
        )
        after = GameState(
            round=state.round + 1,
            active=found.active,
            seen=pooled,
            learner=state.learner if self.play == "solved" else self._played(span.rows, state, plan.total),
            leader=found.leader,
            gap=found.certified_gap,
            finished=found.finished,
        )
        return Step(after, trace_row(plan, after, pulls=seen.total, gap=after.gap), found.deciding)

    def claim(self, state: GameState) -> Claim:
        spent, assumptions = self.problem.delta, self.traits.assumptions
        unproved = STYLISED if self.threshold == "stylised" and state.pulls > 0 else ""
        return Claim(state.leader, state.finished, state.pulls, state.gap, spent, assumptions, unproved)

    def _multiplier(self, total: int, estimate: RegularisedEstimate) -> float:
        """sqrt(2 beta(t)) after `total` pulls."""
        sigma = self.problem.sigma
        if self.threshold == "stylised":
            return sigma * math.sqrt(2.0 * math.log((1.0 + math.log(max(total, 1))) / self.problem.delta))
        return self_normalised_radius(
            sigma,
            estimate.log_growth,
            log_inverse_delta=-math.log(self.problem.delta),
            regularization=self.regularization,
            norm_bound=linear.check_norm_bound("lingame", self.norm_bound),
        )

    def _saddle_point(self, rows: FloatArray, state: GameState) -> FloatArray:
        """argmax over weights of the smallest (score(i) - score(j) + epsilon)^2 / ||x_i - x_j||^2 in V_w^-1."""
        estimate = regularised_least_squares(rows, state.seen, regularization=self.regularization)
        scores = estimate.fitted.scores
        leader = int(np.argmax(scores))
        scales = scores[leader] - scores + self.problem.epsilon
        return solve_star_design(self.features, leader, scales, tolerance=SADDLE_TOLERANCE).weights

    def _played(self, rows: FloatArray, state: GameState, total: int) -> Learner:
        """The learner after the turns of a batch of `total` pulls, at the estimate before it."""
        sigma, pulls_before = self.problem.sigma, state.seen.total
        estimate = regularised_least_squares(rows, state.seen, regularization=self.regularization)
        most = math.log(max(pulls_before, 1))
        bonus = sigma * np.sqrt(2.0 * most * np.sum(estimate.fitted.coordinates**2, axis=1))
        learner = state.learner
        for pulls in linear.pieces(total, MOST_TURNS).tolist():
            weights = hedged(learner)
            answer = nearest_contradiction(rows, estimate.fitted.scores, weights, epsilon=self.problem.epsilon)
            gains = np.minimum((np.abs(answer) + bonus) ** 2 / (2.0 * sigma**2), most)
            learner = taught(learner, weights, pulls * -gains, pulls)
        return learner
