"""What studies with mixtures over comparators and margins measure, and what results say: for many studies at once.

Of one study n is 1. docs/mixtures.md and docs/budget.md have the proofs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from surepick.core.observations import Observations
from surepick.core.records import BoolArray, FloatArray, IntArray, frozen, record, rows_of
from surepick.errors import ContractError
from surepick.estimators.margin_mixtures import PSEUDO, PairBets, PullCosts, evidence_for, margin_grid, upper_bounds
from surepick.estimators.noise_mgf import squared_deviations
from surepick.estimators.running_processes import UNKNOWN
from surepick.estimators.student_intervals import StudentIntervals
from surepick.noise import Noise, SubGaussian, known_scale
from surepick.policies.base import Problem, threshold_of
from surepick.policies.carried.means_rule import whole_shares
from surepick.policies.sequential import batches, state as states
from surepick.policies.sequential.state import SequentialState
from surepick.questions.protocol import Lists

HEURISTIC_FIRST = 2  # pulls of each arm in the first batch: only repeats show slips, and a scale that is too small
HEURISTIC_SHARE = 0.03  # of the pulls so far: those of a batch, or the least where candidates are few, and then ...
HEURISTIC_OF_REST = {5: 0.05, 10: 0.03}  # ... so much of the pulls still to come, of at most so many arms
HEURISTIC_MOST = {5: 0.25, 10: 0.12}  # ... and at most so much of the pulls so far
HEURISTIC_LEADER_APART = 0.5  # where each has an interval of its own: the power of what follows
HEURISTIC_LEADER = 0.35  # the leader has (arms that are measured - 1) to this power times the pulls of another one
HEURISTIC_OF_BUDGET = 0.1  # of what is left of a budget: the pulls of a batch
HEURISTIC_RIVALS_TRIED = 24  # numbers of rivals that are tried, between 1 and all
HEURISTIC_COARSE = 0.3  # of the range: margins from which rewards in it are priced by their scale alone
LAST_PULLS = 2  # a budget of fewer is over: nothing can be compared
HEURISTIC_UNMIXED = 2.0  # units of evidence that a mixture has less than its best part, when a rival is settled


@dataclass(slots=True)
class Rows:
    """Where studies stand."""

    seen: Observations  # (n, K)
    log_values: FloatArray  # L of each part, (n, K, K, S)
    flows: FloatArray  # F, (n, K, K, S)
    bounds: FloatArray  # the smallest U_jc so far, (n, K, K)
    beaten: BoolArray  # (n, K)
    leader: IntArray  # (n,)
    candidate: IntArray  # the arm that led when the last batch was planned, or -1, (n,)
    finished: BoolArray  # (n,)
    levels: FloatArray  # what was taken from every reward, (n,)


@dataclass(slots=True)
class Plans:
    """The next batches."""

    counts: IntArray  # (n, K)
    leader: IntArray  # (n,); -1 in the first batch


@record
class MixtureRules:
    """What to measure, and what results say."""

    problem: Problem
    largest: int | None  # most pulls in a batch; None: no limit
    budget: int | None = None  # pulls in all; None: no limit
    over: str = "budget"  # why a study is finished whose budget is spent

    @property
    def aims_at_budget(self) -> bool:
        """Whether the budget ends before equally many pulls of each arm would reach epsilon."""
        if self.budget is None or not known_scale(self.problem.noise):
            return self.budget is not None
        return self.problem.sigma * self.margin_of_budget > self.problem.epsilon

    @property
    def margin_of_budget(self) -> float:
        """sqrt(4 K log((K - 1)/delta) / N): within what a uniform plan of N pulls tells arms apart, in units of s."""
        number, need = self.problem.num_arms, threshold_of(self.problem) + math.log(self.problem.num_arms - 1)
        return math.inf if self.budget is None else math.sqrt(4.0 * number * need / self.budget)

    @property
    def intervals(self) -> StudentIntervals | None:
        """What bounds rest on where nobody knows the scale of the noise; None: they rest on the parts."""
        if known_scale(self.problem.noise) or self.budget is None:
            return None
        return StudentIntervals(self.problem.delta, self.problem.num_arms, self.budget / self.problem.num_arms)

    def upper_bounds(self, rows: Rows, rivals: BoolArray) -> tuple[FloatArray, BoolArray]:
        """(U_jc now, which arms j are beaten)."""
        if self.intervals is not None:
            return self.intervals.upper_bounds(rows.seen, rivals, rows.levels)
        return upper_bounds(rows.log_values, rows.flows, threshold_of(self.problem), rivals)

    def variances(self, seen: Observations) -> FloatArray:
        """How much rewards vary, as it looks, (n, K)."""
        if self.intervals is None:
            return PullCosts.after(self._priced, seen).variances
        within, freedom = squared_deviations(seen), np.maximum(seen.counts - 1, 0)
        pooled = within.sum(axis=1, keepdims=True) / np.maximum(freedom.sum(axis=1, keepdims=True), 1)
        return np.asarray((within + PSEUDO * pooled) / (freedom + PSEUDO))

    @property
    def num_margins(self) -> int:
        """S."""
        return 1 if self.aims_at_budget else len(margin_grid(self.problem.noise, self.problem.epsilon))

    def margins(self, costs: PullCosts) -> FloatArray:
        """lambda_k of the next batch, (n, 1, 1, S): functions of what was registered, and of the variances so far."""
        if not self.aims_at_budget:
            return margin_grid(self.problem.noise, self.problem.epsilon)
        usual = np.sqrt(costs.variances.mean(axis=1))
        return np.asarray(self.margin_of_budget * usual)[:, None, None, None]

    def left(self, pulls: IntArray) -> IntArray:
        """Pulls that may still be made after so many, (n,)."""
        return np.full(len(pulls), np.iinfo(np.int64).max) if self.budget is None else self.budget - pulls

    def spent(self, pulls: IntArray) -> BoolArray:
        """Whether nothing more can be compared, (n,)."""
        return np.asarray(self.left(pulls) < LAST_PULLS)

    def first(self, number: int) -> Plans:
        """Pulls of every arm."""
        counts = batches.listed_sizes(self.problem.num_arms, self.usual_first, 1)
        return Plans(np.tile(counts, (number, 1)), np.full(number, -1))

    @property
    def usual_first(self) -> int:
        """Pulls of the first batch."""
        num_arms = self.problem.num_arms
        usual = HEURISTIC_FIRST * num_arms
        if self.budget is not None and self.intervals is None:  # where no scale is known, one result says nothing
            usual = min(usual, max(self.budget // 2, num_arms))
        return usual if self.largest is None else min(usual, self.largest)

    def ask(self, rows: Rows) -> Plans:
        """A share of the pulls so far or still to come, on the leader and the rivals that are not settled."""
        pulls = rows.seen.counts.sum(axis=1)
        shares, left = self.shares(rows, np.zeros_like(rows.beaten)), self.left(pulls)
        number, rest = np.count_nonzero(shares, axis=1), self.rest(rows, shares)
        each = np.maximum(1.0, np.floor(self.usual(pulls, rest) / np.maximum(number, 1)))
        counts = np.where(shares > 0.0, np.maximum(np.round(each[:, None] * shares), 1.0), 0.0).astype(np.int64)
        most = left if self.largest is None else np.minimum(left, self.largest)
        total = counts.sum(axis=1)
        over = np.flatnonzero((total > most) | (left - total < number))  # the last batch has all that is left
        counts[over] = whole_shares(shares[over], most[over], rows.leader[over])
        return Plans(counts, rows.leader)

    def usual(self, pulls: IntArray, rest: FloatArray) -> FloatArray:
        """Pulls of a batch after so many, when so many are still to come, (n,)."""
        if self.aims_at_budget:
            return np.asarray(HEURISTIC_OF_BUDGET * self.left(pulls))
        least: FloatArray = HEURISTIC_SHARE * pulls.astype(np.float64)
        few = next((most for most in HEURISTIC_OF_REST if self.problem.num_arms <= most), None)
        if few is None:
            return least
        return np.asarray(np.clip(HEURISTIC_OF_REST[few] * rest, least, HEURISTIC_MOST[few] * pulls))

    def rest(self, rows: Rows, shares: FloatArray) -> FloatArray:
        """About how many pulls settle all rivals of the leader, or all that are left, (n,).

        2 need (s_c^2 + s_j^2) / m^2 of each arm that is measured,      m a guess of the margin, of the worst rival
        """
        left = self.left(rows.seen.counts.sum(axis=1)).astype(np.float64)
        if self.aims_at_budget:
            return left
        every, leader, epsilon = np.arange(len(shares)), rows.leader, self.problem.epsilon
        rivals = shares > 0.0
        rivals[every, leader] = False
        variances = self.variances(rows.seen)
        margins = epsilon + np.maximum(rows.seen.means[every, leader][:, None] - rows.seen.means, 0.0)
        held = evidence_for(rows.log_values, rows.flows, leader, epsilon)
        need = np.maximum(threshold_of(self.problem) + HEURISTIC_UNMIXED - np.maximum(held, 0.0), 0.5)
        each = np.where(rivals, 2.0 * need * (variances + variances[every, leader][:, None]) / margins**2, 0.0)
        most = np.maximum(np.where(rivals, shares, 0.0).max(axis=1), np.finfo(np.float64).tiny)
        number = np.count_nonzero(rivals, axis=1)
        rest = np.where(number > 0, np.maximum(each.max(axis=1) * shares.sum(axis=1) / most, number + 1.0), 1.0)
        return np.minimum(rest, left)

    def shares(self, rows: Rows, away: BoolArray) -> FloatArray:
        """Pulls of each arm for one of a rival, (n, K): none of rivals that are settled against the leader, or against
        all that are left, nor of those that matter least to what a budget can reach."""
        every, leader, bounds = np.arange(len(away)), rows.leader, rows.bounds
        settled, left = bounds <= self.problem.epsilon, ~(rows.beaten | away)
        done = (settled | ~left[:, None, :]).all(axis=2) | settled[every, :, leader]
        left &= ~done
        if self.aims_at_budget:
            left = self._worth(rows, left)
        left[every, leader] = True
        scales, others = self._scales, left.sum(axis=1) - 1
        weights = left * (scales / scales.mean())
        weights[every, leader] *= self.leader_share(others)
        return np.asarray(weights)

    def leader_share(self, others: IntArray) -> FloatArray:
        """Pulls of the leader for one of each of so many rivals, (n,)."""
        power = HEURISTIC_LEADER if self.intervals is None else HEURISTIC_LEADER_APART
        return np.where(others >= 2, np.maximum(others, 1) ** power, 1.0)

    @property
    def _priced(self) -> Noise:
        """The noise that costs of weights rest on: of few pulls in a range its scale, since steep weights are cut."""
        noise, support = self.problem.noise, self.problem.noise.support
        if support is None or self.budget is None or not self.aims_at_budget:
            return noise
        coarse = self.problem.sigma * self.margin_of_budget > HEURISTIC_COARSE * (support[1] - support[0])
        return SubGaussian(noise.sigma) if coarse else noise

    @property
    def _scales(self) -> FloatArray:
        """In proportion to which arms are measured, (K,): alike where none is known."""
        return self.problem.scales if known_scale(self.problem.noise) else np.ones(self.problem.num_arms)

    def _worth(self, rows: Rows, rivals: BoolArray) -> BoolArray:
        """The rivals that the rest of a budget is for, (n, K): so many of those with the largest bounds that the
        largest bound at its end is as small as it can be.

            max over them of sqrt(2 L / (V + P)) - d, and over the others of U,     L = log((K - 1)/delta)

        V: precision so far, P: that of equal shares of what is left, d: by how much the leader leads.
        """
        every, leader = np.arange(len(rivals)), rows.leader
        rivals = rivals.copy()
        rivals[every, leader] = False
        bounds = np.where(rivals, rows.bounds[every, :, leader], -np.inf)
        order = np.argsort(-bounds, axis=1, kind="stable")
        variances = self.variances(rows.seen)
        own = variances[every, leader][:, None]
        counts = np.maximum(rows.seen.counts, 1)
        held = 1.0 / (variances / counts + own / counts[every, leader][:, None])
        lead = rows.seen.means[every, leader][:, None] - rows.seen.means
        sorted_ = (np.take_along_axis(each, order, 1) for each in (bounds, held, lead, variances, rivals))
        bounds, held, lead, variances, there = sorted_
        left = self.left(rows.seen.counts.sum(axis=1))
        need = 2.0 * (threshold_of(self.problem) + math.log(self.problem.num_arms - 1))
        best, taken = np.full(len(rivals), np.inf), np.ones(len(rivals), np.int64)
        for number in numbers_tried(self.problem.num_arms - 1):
            share = self.leader_share(np.array([number]))
            each = (left / (number + share))[:, None]
            widths = np.sqrt(need / (held + 1.0 / (variances / each + own / (share * each)))) - lead
            reached = np.where(there, widths, -np.inf)[:, :number].max(axis=1)
            reached = np.maximum(np.maximum(reached, bounds[:, number]), self.problem.epsilon)
            fits = (number == 1) | ((number < left) & there[:, number - 1])
            better = fits & (reached < best * (1.0 - 1e-9))
            best, taken = np.where(better, reached, best), np.where(better, number, taken)
        chosen = np.zeros_like(rivals)
        np.put_along_axis(chosen, order, np.arange(rivals.shape[1]) < taken[:, None], 1)
        return np.asarray(chosen & rivals)

    def tell(self, rows: Rows | None, planned: Plans, seen: Observations) -> Rows:
        """Where the studies stand after a batch; rows None: it is the first."""
        rows = self._started(seen) if rows is None else rows
        seen = seen.less(rows.levels[:, None])
        after = replace(rows, seen=rows.seen.plus(seen))
        if self.intervals is None:
            gained, flows = self.gained(rows.seen, seen)
            after = replace(after, log_values=rows.log_values + gained, flows=rows.flows + flows)
        return self.concluded(after, planned)

    def concluded(self, rows: Rows, planned: Plans) -> Rows:
        """Who is beaten, by how much arms are better at most, who leads, and whether that decides."""
        now, shown = self.upper_bounds(rows, np.ones_like(rows.beaten))
        bounds, beaten = np.minimum(rows.bounds, now), rows.beaten | shown
        order = ranked(rows.seen, beaten, np.zeros_like(beaten))
        settled = (beaten[:, :, None] | (bounds <= self.problem.epsilon)).all(axis=1)
        good = np.take_along_axis(settled, order, 1)
        finished = np.asarray(good.any(axis=1))
        leader = order[np.arange(len(order)), np.where(finished, np.argmax(good, axis=1), 0)]
        over = ~finished & self.spent(rows.seen.counts.sum(axis=1))
        leader = np.where(over, of_least_gap(rows.seen.means, bounds, beaten, np.zeros_like(beaten)), leader)
        finished |= over
        candidate = np.where(finished, leader, planned.leader)
        return replace(rows, bounds=bounds, beaten=beaten, leader=leader, candidate=candidate, finished=finished)

    def gained(self, past: Observations, seen: Observations) -> tuple[FloatArray, FloatArray]:
        """(what a batch adds to L, what it adds to F) of each part, (n, K, K, S)."""
        bets = self.bets(past, seen.counts)
        return bets.gained(self.problem.noise, seen), bets.flows

    def bets(self, past: Observations, counts: IntArray) -> PairBets:
        """What all parts bet on a batch of which so many results came."""
        costs = PullCosts.after(self._priced, past)
        return PairBets.of(self.margins(costs), counts, costs)

    def _started(self, seen: Observations) -> Rows:
        """Before the first batch."""
        number, num_arms = shape = seen.counts.shape
        parts = np.zeros((number, num_arms, num_arms, self.num_margins))
        known, least = range(number) if self.problem.noise.support is None else (), states.FAR * self.problem.epsilon
        nothing = np.zeros(shape)
        return Rows(
            seen=Observations(np.zeros(shape, np.int64), nothing, nothing),
            log_values=parts,
            flows=parts,
            bounds=np.full((number, num_arms, num_arms), UNKNOWN),
            beaten=np.zeros(shape, bool),
            leader=np.zeros(number, np.int64),
            candidate=np.full(number, -1),
            finished=np.zeros(number, bool),
            levels=np.array([rows_of(seen, row).level(least) for row in known] or np.zeros(number)),
        )

    def state_of(self, rows: Rows, row: int, round_number: int) -> MixtureState:
        """Where one of the studies stands."""
        seen, num_arms = rows_of(rows.seen, row), self.problem.num_arms
        beaten, nobody = rows.beaten[row], np.zeros(num_arms, bool)
        leader = int(rows.leader[row])
        settled = (beaten | (rows.bounds[row, :, leader] <= self.problem.epsilon)).all()
        unknown = self.problem.largest_gap is None and bool((rows.bounds[row, ~beaten, leader] >= UNKNOWN).any())
        return MixtureState(
            round=round_number,
            seen=seen,
            lists=Lists.empty(num_arms),
            beaten=beaten,
            finished="" if not rows.finished[row] else "certified" if settled else "budget" if unknown else self.over,
            leader=leader,
            candidate=int(rows.candidate[row]),
            dim=num_arms,
            tested=tested_in_order(rows.bounds[row], ranked_alone(seen, beaten, nobody), nobody),
            level=float(rows.levels[row]) or None,
            log_values=rows.log_values[row],
            flows=rows.flows[row],
        )


def of_least_gap(means: FloatArray, bounds: FloatArray, beaten: BoolArray, away: BoolArray) -> IntArray:
    """Of the arms that may be recommended the one of least certified gap less its mean, (n,): the gap alone would name
    arms that look worse."""
    gaps = np.where(beaten[:, :, None], -np.inf, bounds).max(axis=1)  # an arm's bound on itself is 0
    return np.asarray(np.argmin(np.where(beaten | away, np.inf, gaps - means), axis=1))


def numbers_tried(most: int) -> list[int]:
    """Numbers from 1 to that one, close together where they are small."""
    return sorted({round(each) for each in np.geomspace(1, most, min(most, HEURISTIC_RIVALS_TRIED)).tolist()})


def ranked(seen: Observations, beaten: BoolArray, away: BoolArray) -> IntArray:
    """Arms by who is to lead, (n, K): those that may be best by their means, then beaten ones, then those away."""
    means = np.where(seen.counts > 0, seen.means, -np.inf)
    by_mean = np.argsort(-means, axis=1, kind="stable")
    last = np.take_along_axis(2 * away.astype(np.int64) + beaten, by_mean, 1)
    return np.asarray(np.take_along_axis(by_mean, np.argsort(last, axis=1, kind="stable"), 1))


def ranked_alone(seen: Observations, beaten: BoolArray, away: BoolArray) -> IntArray:
    """The same of one study, (K,)."""
    return np.asarray(ranked(one_row(seen), beaten[None], away[None])[0])


def tested_in_order(bounds: FloatArray, order: IntArray, away: BoolArray) -> tuple[states.UpperBounds, ...]:
    """The bounds against each arm that may be recommended, best first."""
    return tuple(states.UpperBounds(arm, bounds[:, arm]) for arm in order.tolist() if not away[arm])


def one_row(seen: Observations) -> Observations:
    """The totals of one study as those of many."""
    squares, within = (None if each is None else each[None] for each in (seen.squares, seen.within))
    return Observations(seen.counts[None], seen.sums[None], squares, within=within)


@frozen
class MixtureState(SequentialState):
    """Where a study stands, with the parts of every arm's process."""

    log_values: FloatArray | None = None  # L of the part (a, k) of arm j, (K, K, S); None before the first batch
    flows: FloatArray | None = None  # F, (K, K, S)

    @property
    def begun(self) -> bool:
        """Whether anything was told."""
        return self.log_values is not None

    @property
    def parts(self) -> tuple[FloatArray, FloatArray]:
        """(L, F), after the first batch."""
        if self.log_values is None or self.flows is None:
            raise ContractError("nothing was told yet.")
        return self.log_values, self.flows
