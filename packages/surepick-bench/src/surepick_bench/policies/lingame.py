"""LinGame (Degenne, Menard, Shang & Valko 2020): a game of weights against the nearest contradicting parameter."""

import math
from dataclasses import field

import numpy as np

from surepick.core.observations import Observations
from surepick.core.plans import Plan, Step
from surepick.core.records import FloatArray, IntArray, frozen, record
from surepick.designs import solve_star_design
from surepick.linalg.factorisations import cholesky, solve_lower
from surepick.policies import options
from surepick.policies.base import Claim, Problem, Spec, Traits, trace_row
from surepick.policies.options import one_of, option
from surepick_bench.policies import xy
from surepick_bench.policies.means import MeansState, initial_means, judged
from surepick_bench.policies.widths import RegularisedEstimate, regularised_least_squares, self_normalised_radius

# --- LinGapE (Xu, Honda & Sugiyama 2018): measure what tells the leader from its most ambiguous rival.

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
    regularization: float = option(1.0, xy.INFORMATION)
    selection: str = option("greedy", one_of(*SELECTIONS))
    radius: str = option("determinant", one_of(*RADII))
    growth: float = option(0.1, options.growth)
    traits: Traits = field(init=False, compare=False, repr=False)
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        xy.check_linear(self, self.norm_bound)
        norm_bound = xy.check_norm_bound("lingape", self.norm_bound)
        xy.check_span(self.features, norm_bound=norm_bound, epsilon=self.problem.epsilon)

    def init(self) -> MeansState:
        return initial_means(self.problem)

    def ask(self, state: MeansState) -> Plan:
        if state.seen.total == 0:
            return Plan(round=state.round, counts=np.ones(self.problem.num_arms, np.int64))  # Alg. 1, line 2
        rows = xy.in_span(self.features).rows
        estimate = regularised_least_squares(rows, state.seen, regularization=self.regularization)
        return Plan(round=state.round, counts=self._chosen(rows, estimate, state.seen), dim=rows.shape[1])

    def tell(self, state: MeansState, plan: Plan, seen: Observations) -> Step[MeansState]:
        pooled = state.seen.plus(seen)
        span = xy.in_span(self.features)
        estimate = regularised_least_squares(span.rows, pooled, regularization=self.regularization)
        found = xy.judge_pairs(
            estimate.fitted,
            multiplier=self._multiplier(span.rows, pooled.total, estimate.log_growth),
            epsilon=self.problem.epsilon,
            misspecification=xy.check_norm_bound("lingape", self.norm_bound) * span.lost,
        )
        return judged(state, plan, seen, pooled, found)

    def claim(self, state: MeansState) -> Claim:
        spent, assumptions = self.problem.delta, self.traits.assumptions
        return Claim(state.leader, state.finished, state.pulls, state.gap, spent, assumptions)

    def _multiplier(self, rows: FloatArray, total: int, log_growth: float) -> float:
        """C_t after `total` pulls."""
        sigma, eta, norm = self.problem.sigma, self.regularization, xy.check_norm_bound("lingape", self.norm_bound)
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
        for pulls in xy.pieces(xy.next_xy_batch(seen.total, self.growth), MOST_PIECES).tolist():
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
            coordinates = xy.pulled_more(coordinates, arm, pulls)
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


# --- A game over the arms: a learner plays weights, nature answers with the nearest parameter that contradicts the
# leader.
#
# Source: Degenne, Menard, Shang & Valko (2020); AdaHedge by de Rooij, van Erven, Grunwald & Koolen (2014).

HEURISTIC_EVERYWHERE = 1e-6  # share of the weights that is spread over all arms when nature answers
HEURISTIC_RIDGE_OF_TRACE = 1e-13  # of the trace, against rounding


@frozen
class Learner:
    """An AdaHedge learner over the arms."""

    weights: FloatArray  # sum of the weights that were played, in pulls, shape (K,)
    losses: FloatArray  # cumulated losses of each arm, shape (K,)
    mixability: float  # cumulated mixability gap, which sets the learning rate log(K) / gap


def hedged(learner: Learner) -> FloatArray:
    """AdaHedge's weights, as exp(-log(K) / gap * losses) (de Rooij et al. 2014); at gap 0 the best arms alike."""
    excess = learner.losses - learner.losses.min()
    if learner.mixability == 0.0:
        best = (excess == 0.0).astype(np.float64)
        return np.asarray(best / best.sum())
    rate = math.log(max(len(excess), 2)) / learner.mixability
    unscaled = np.exp(-rate * excess)
    return np.asarray(unscaled / unscaled.sum())


def taught(learner: Learner, weights: FloatArray, losses: FloatArray, pulls: int) -> Learner:
    """AdaHedge's losses after a turn, and the mixability gap, the loss of the weights less their mix loss."""
    least = float(losses[weights > 0].min())
    if learner.mixability == 0.0:
        mixed = least
    else:
        rate = math.log(max(len(losses), 2)) / learner.mixability
        mixed = least - math.log(float(weights @ np.exp(-rate * np.maximum(losses - least, 0.0)))) / rate
    gap = max(0.0, float(weights @ losses) - mixed)
    return Learner(learner.weights + pulls * weights, learner.losses + losses, learner.mixability + gap)


def nearest_contradiction(rows: FloatArray, scores: FloatArray, weights: FloatArray, *, epsilon: float) -> FloatArray:
    """<theta-hat - lambda, x> of every arm, for nature's best answer lambda to the weights; 0 if it has none.

    j = argmin of (score(i) - score(j) + epsilon)^2 / ||x_i - x_j||^2_{V_w^-1}
    theta-hat - lambda = (score(i) - score(j) + epsilon) V_w^-1 (x_i - x_j) / ||x_i - x_j||^2_{V_w^-1}
    """
    leader, dim = int(np.argmax(scores)), rows.shape[1]
    spread = (1.0 - HEURISTIC_EVERYWHERE) * weights + HEURISTIC_EVERYWHERE / len(weights)
    matrix = rows.T @ (rows * spread[:, None])
    if dim == 0:
        return np.zeros(len(scores))
    matrix[np.diag_indices_from(matrix)] += HEURISTIC_RIDGE_OF_TRACE * float(np.trace(matrix))
    factor = cholesky(matrix)
    if factor is None:
        return np.zeros(len(scores))
    coordinates = solve_lower(factor, rows.T).T
    away = coordinates[leader] - coordinates
    squares = np.einsum("ij,ij->i", away, away)
    lead = scores[leader] - scores + epsilon
    cost = np.divide(lead**2, squares, out=np.full(len(scores), np.inf), where=squares > 0)
    rival = int(np.argmin(cost))
    if not math.isfinite(cost[rival]):
        return np.zeros(len(scores))
    return np.asarray(coordinates @ away[rival] * (lead[rival] / squares[rival]))


def tracked(weights: FloatArray, counts: IntArray, total: int) -> IntArray:
    """`total` pulls for the arms that lag most behind the weights: shares of what each lacks, by largest remainder."""
    lacking = np.maximum(weights - counts, 0.0)
    if lacking.sum() == 0.0:
        lacking = np.ones(len(counts))
    shares = lacking * (total / lacking.sum())
    pulls: IntArray = np.floor(shares).astype(np.int64)
    left = total - int(pulls.sum())
    pulls[np.argsort(pulls - shares, kind="stable")[:left]] += 1
    return pulls


PLAYS = ("solved", "learner")
THRESHOLDS = ("proved", "stylised")
MOST_TURNS = 16
SADDLE_TOLERANCE = 0.05
STYLISED = (
    "The threshold log((1 + log t) / delta) of the source's experiments is not proved for linear rewards; with "
    "threshold 'proved' and a norm bound the answer is certified."
)


@frozen
class GameState:
    """Where the game stands."""

    round: int  # as in `MeansState`, with what follows
    active: IntArray
    seen: Observations
    learner: Learner  # the player of weights, before the next batch
    leader: int
    gap: float | None
    finished: str

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
    regularization: float = option(1.0, xy.INFORMATION)
    play: str = option("solved", one_of(*PLAYS))
    threshold: str = option("proved", one_of(*THRESHOLDS))
    growth: float = option(0.1, options.growth)
    traits: Traits = field(init=False, compare=False, repr=False)
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        xy.check_linear(self, self.norm_bound if self.threshold == "proved" else None)
        if self.threshold == "proved" or self.norm_bound is not None:
            norm_bound = xy.check_norm_bound("lingame", self.norm_bound)
            xy.check_span(self.features, norm_bound=norm_bound, epsilon=self.problem.epsilon)

    def init(self) -> GameState:
        finished, gap = self.problem.answer_without_pulls()
        num_arms = self.problem.num_arms
        learner = Learner(np.zeros(num_arms), np.zeros(num_arms), 0.0)
        return GameState(1, np.arange(num_arms), Observations.nothing(num_arms), learner, 0, gap, finished)

    def ask(self, state: GameState) -> Plan:
        rows = xy.in_span(self.features).rows
        total = xy.next_xy_batch(state.seen.total, self.growth)
        if self.play == "solved":
            target = (state.seen.total + total) * self._saddle_point(rows, state)
        else:
            target = self._played(rows, state, total).weights  # Alg. 1: track the sum of the weights
        counts = tracked(target, state.seen.counts, total)
        return Plan(round=state.round, counts=counts, dim=rows.shape[1])

    def tell(self, state: GameState, plan: Plan, seen: Observations) -> Step[GameState]:
        span = xy.in_span(self.features)
        pooled = state.seen.plus(seen)
        estimate = regularised_least_squares(span.rows, pooled, regularization=self.regularization)
        found = xy.judge_pairs(
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
            norm_bound=xy.check_norm_bound("lingame", self.norm_bound),
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
        for pulls in xy.pieces(total, MOST_TURNS).tolist():
            weights = hedged(learner)
            answer = nearest_contradiction(rows, estimate.fitted.scores, weights, epsilon=self.problem.epsilon)
            gains = np.minimum((np.abs(answer) + bonus) ** 2 / (2.0 * sigma**2), most)
            learner = taught(learner, weights, pulls * -gains, pulls)
        return learner
