"""Means: where to measure, and how to bet, for arms that share nothing.

Bets are functions of the past and of the batch's counts (docs/certified-elimination.md, line 1): the proofs hold for
any. `told` is what results do to the processes (line 11).

The process of arm j holds T_j on its own pulls and F_j(c) on those of candidates; to count against c it needs
F_j(c) = T_j and no flow elsewhere (`MeanProcesses`). A bet on a margin m over pulls with variances
q_j = s_j^2 / n_j and q_c = s_c^2 / n_c is best at

    T = Tbar + tau,   Tbar = (q_j T_j + q_c F_j(c)) / (q_j + q_c),   tau = kappa m / (q_j + q_c)

where it costs q_j (T - T_j)^2 / 2 + q_c (T - F_j(c))^2 / 2, and q_h F_j(h)^2 / 2 for each former candidate h.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import field
from typing import Any

import numpy as np

from surepick.core.observations import Observations
from surepick.core.records import BoolArray, FloatArray, IntArray, record
from surepick.estimators import Mgf
from surepick.estimators.flows import BatchWeights
from surepick.estimators.posterior import even_steps
from surepick.estimators.running_processes import MeanProcesses
from surepick.policies import tuning
from surepick.policies.sequential.state import OpenComparisons, RemainingPulls, anew, nobody, start_weights

HEURISTIC_FORMER = 0.2  # units of evidence that a plan spends on a flow to a former candidate
HEURISTIC_DOUBTED = 0.25  # of a batch, at most, that goes to arms which may have been unlucky
HEURISTIC_UNLUCKY = 4.0  # times log(N / K): squared errors by which an arm trails before it is taken for worse
HEURISTIC_AT_ONCE = 4  # pulls of an arm that a batch may have whatever is known of it
HEURISTIC_MANY_ARMS = 1000  # of more, rounds are fewer and larger: each takes its time


@record
class Bets:
    """What the processes will hold after a batch."""

    arms: IntArray  # whose processes bet, (m,)
    taken: FloatArray  # their T, (m,)
    given: dict[int, FloatArray]  # candidate -> their flow on its pulls, (m,)
    restarts: IntArray = field(default_factory=nobody)  # arms whose processes start anew before

    def told(self, processes: MeanProcesses, batch: Observations, noise_mgf: Mgf) -> MeanProcesses:
        """The processes after the results."""
        return anew(processes, self.restarts).after(self.arms, self.taken, self.given, batch, noise_mgf)


# --- The rules themselves, for m rivals in each of g studies; of one study g is 1, and `lockstep` has many.


@record
class Hub:
    """An arm that is, or was, the candidate: one in each study."""

    arms: IntArray  # which, (g,)
    at: Any  # where it is in arrays of all arms; what is taken there has the shape (g, 1)
    variance: FloatArray  # s^2, (g, 1)
    score: FloatArray  # f, (g, 1)
    flow: FloatArray  # F_j of the rivals on its pulls, (g, m)
    there: BoolArray  # whether it can be measured, (g, 1)
    price: float = 1.0  # what a pull of it costs


@record
class Rivals:
    """What the processes of the rivals hold, and what is guessed of them; (g, m) unless a line says otherwise."""

    threshold: FloatArray | float  # log(1/delta), of each or of all alike
    epsilon: float
    log_values: FloatArray
    starts: IntArray
    taken: FloatArray  # T_j
    scores: FloatArray  # f_j
    variances: FloatArray  # s_j^2
    margins: FloatArray  # guesses of epsilon + h_c - h_j
    centre: Hub  # c
    former: list[Hub]
    price: FloatArray | float = 1.0  # what a pull of each rival costs

    @property
    def apart(self) -> FloatArray:
        """D = T_j - F_j(c)."""
        return np.asarray(self.taken - self.centre.flow)

    @property
    def needs(self) -> FloatArray:
        """Evidence that is still lacking if the flows were matched at T_j for nothing."""
        held = self.log_values + self.taken * self.scores - self.centre.flow * self.centre.score
        for hub in self.former:
            held = held - hub.flow * hub.score
        lead = self.centre.score - self.scores
        return np.asarray(self.threshold - held - self.taken * (self.epsilon + lead))

    def predicted(
        self, aimed: Callable[[FloatArray], FloatArray], uneven: float = 1.0
    ) -> tuple[BoolArray, FloatArray, FloatArray, list[FloatArray]]:
        """(which had better start anew; pulls of the candidate, (g,), of the rivals, of each former candidate, (g,))
        with which all are rejected for the least; where costs differ a rival's variance is `uneven` times that of the
        candidate."""
        needs, margins, own, former = self.needs, self.margins, self.variances, []
        fresh_needs = aimed(self.threshold - start_weights(self.starts + 1))
        saved = 2.0 * own * (fresh_needs - np.maximum(needs, 0.0)) / margins**2
        able = self.starts < tuning.MOST_STARTS
        fresh: BoolArray = (saved < 0.0) & able
        for hub in self.former:  # the pulls of one that is away are over: what is bet on them stays open for ever
            if not hub.there.all():
                fresh |= ~hub.there & (hub.flow != 0.0) & able
        for hub in self.former:
            loads = hub.variance * hub.flow**2 / (2.0 * HEURISTIC_FORMER) * hub.there
            former.append(_former_pulls(fresh, loads, saved, able, hub.price))
        extra = np.zeros_like(own)
        for hub, pulls in zip(self.former, former, strict=True):
            each = 0.5 * hub.variance * hub.flow**2 / np.where(pulls > 0.0, pulls, np.inf)[:, None]
            extra = extra + np.where(fresh, 0.0, each)
        terms = own, np.where(fresh, fresh_needs, aimed(needs)), np.where(fresh, 0.0, self.apart), extra, margins
        hubs = self.centre.variance[:, 0]
        best = _best_share(hubs, terms, uneven)
        wanted = _rival_pulls((hubs / best)[:, None], *terms)[:, 0]
        wanted = np.where(np.isfinite(wanted) & (wanted > 0.0), np.maximum(wanted, self.price), 0.0)
        return fresh, np.maximum(best, self.centre.price), wanted, former

    def placed(
        self, at: Any, counts: IntArray, later: FloatArray, over: BoolArray, noise_mgf: Mgf, *, patient: bool = False
    ) -> tuple[FloatArray, list[FloatArray]]:
        """(T after a batch, the flows on the candidate and on former ones after it), as `place_bets` says.

        Rivals are `at` these places of the arrays of all arms: pulls of the batch, and those `later` on with them. It
        is `over`, (g, 1), where nothing more is planned.
        """
        own, taken, apart, pulls = self.variances, self.taken, self.apart, counts[at]
        given, seen, centre = taken - apart, pulls > 0, self.centre

        def told_of(hub: Hub) -> tuple[FloatArray, FloatArray, BoolArray]:
            """(variance of its mean in the batch, share of its pulls that are in it, whether there are any)."""
            number, there, whole = counts[hub.at], counts[hub.at] > 0, later[hub.at]
            return hub.variance / np.where(there, number, 1), number / np.where(whole > 0.0, whole, 1.0), there

        def best(number: FloatArray, hub: FloatArray) -> FloatArray:
            """T with that many pulls of each rival, and that variance of the candidate's mean."""
            each = np.where(number > 0, own / np.where(number > 0, number, 1.0), 1.0)
            target = (each * taken + hub * given + tuning.HEURISTIC_KAPPA * self.margins) / (each + hub)
            return np.asarray(np.where(number > 0, np.maximum(target, 0.0), taken))

        hub, centre_share, measured = told_of(centre)
        going = later[centre.at] > 0.0
        spread = np.where(going, best(later[at], centre.variance / np.where(going, later[centre.at], 1.0)), taken)
        own_share = np.where(seen, pulls / np.where(seen, later[at], 1.0), 0.0)
        partly = taken + own_share * np.where(seen, spread - taken, 0.0)
        now, each = best(pulls.astype(np.float64), hub), own / np.where(seen, pulls, 1)
        matching = 0.5 * apart**2 * np.where(seen, each * hub / (each + hub), hub)
        cost = _expected_cost(now - taken, at, counts, noise_mgf)
        cost = cost + _expected_cost(now - given, centre.at, counts, noise_mgf)
        stuck: BoolArray = np.zeros(taken.shape, bool)
        former = [(one, *told_of(one)) for one in self.former]
        for one, variance, _, there in former:
            stuck |= ~there & (one.flow != 0.0)
            if not there.any():
                continue
            matching = matching + np.where(there, 0.5 * variance * one.flow**2, 0.0)
            cost = cost + np.where(there, _expected_cost(one.flow, one.at, counts, noise_mgf), 0.0)
        gain = (now - taken) * (self.epsilon + centre.score - self.scores) - cost
        closing = measured & ~stuck & ((matching <= tuning.HEURISTIC_CLOSING) | (self.needs <= gain) | over)
        if patient:
            closing &= seen | over
        after = np.where(closing, np.where(seen, now, taken), partly)
        flows = [np.where(closing, after, np.where(measured, given + centre_share * (spread - given), centre.flow))]
        for one, variance, share, there in former:
            free = np.where(measured, closing, 0.5 * variance * one.flow**2 <= tuning.HEURISTIC_CLOSING)
            flows.append(np.where(there, np.where(free, 0.0, one.flow * (1.0 - share)), one.flow))
        return after, flows


def _former_pulls(fresh: BoolArray, loads: FloatArray, saved: FloatArray, able: BoolArray, price: float) -> FloatArray:
    """Pulls of a former candidate that free its flows, (g,); `fresh` gets the rivals whose new start costs less."""
    loads, rows, nothing = np.where(fresh, 0.0, loads), np.arange(len(loads))[:, None], np.zeros((len(loads), 1))
    order = np.argsort(-loads, axis=1)
    spent = np.where(fresh, 0.0, np.maximum(saved, 0.0))[rows, order]
    spent = np.where(np.cumprod(able[rows, order], axis=1) > 0, spent, np.inf)
    left = np.concatenate([loads[rows, order], nothing], axis=1)
    number = (left + np.concatenate([nothing, spent.cumsum(axis=1)], axis=1)).argmin(axis=1)
    fresh[rows, order] |= np.arange(loads.shape[1]) < number[:, None]
    load = left[rows[:, 0], number]
    return np.where(load > 0.0, np.maximum(load, price), 0.0)  # without a pull the least flow stays for ever


def _best_share(centre: FloatArray, terms: tuple[FloatArray, ...], uneven: float) -> FloatArray:
    """The pulls of the candidate with which all of them are fewest, (g,); `terms` are those of `_rival_pulls`."""
    _, needs, _, _, margins = terms
    least = centre * np.max(2.0 * np.maximum(needs, 1e-3) / margins**2, axis=1)
    low = np.array([math.log(max(one, 1e-3)) for one in least.tolist()])
    best, left, step = np.empty(len(low)), np.arange(len(low)), max(tuning.MOST_AT_ONCE // needs.size, 1)
    for span in (math.log(4.0 * math.sqrt(needs.shape[1] * uneven) + 50.0), 30.0):
        grid = np.exp(even_steps(low[left], low[left] + span, tuning.HEURISTIC_GRID))
        shares = np.split(centre[left, None] / grid, range(step, grid.shape[1], step), axis=1)
        some = tuple(one[left] for one in terms)
        totals = grid + np.concatenate([_rival_pulls(share, *some).sum(axis=2) for share in shares], axis=1)
        best[left] = grid[np.arange(len(left)), np.argmin(totals, axis=1)]
        left = left[~np.isfinite(totals.min(axis=1))]
        if len(left) == 0:
            break
    return best


def _rival_pulls(
    share: FloatArray, own: FloatArray, needs: FloatArray, apart: FloatArray, extra: FloatArray, margins: FloatArray
) -> FloatArray:
    """Of each rival, for each variance of the candidate's mean in `share`, (g, s): shape (g, s, m)."""
    share = share[:, :, None]
    lacking = needs[:, None] + 0.5 * share * apart[:, None] ** 2 + extra[:, None]
    room = margins[:, None] - share * apart[:, None]
    rate = room**2 / (2.0 * np.maximum(lacking, 1e-6)) - share
    able = (room > 0.0) & (rate > 0.0)
    found = np.where(able, own[:, None] / np.where(able, rate, 1.0), np.inf)
    return np.where(lacking <= 0.0, 0.0, found)


def _expected_cost(change: FloatArray, at: Any, counts: IntArray, noise_mgf: Mgf) -> FloatArray:
    """What changing a flow by that much with the pulls of an arm is expected to cost."""
    pulls = counts[at]
    each = np.divide(np.abs(change), pulls, out=np.zeros_like(change), where=pulls > 0)
    return np.asarray(noise_mgf.expected(each, at, pulls))


def whole_shares(weights: FloatArray, total: IntArray, of: IntArray) -> IntArray:
    """So many pulls of each study in its proportions, (g, K): the whole part of each share, and the largest rests one
    more; at least one of the arm `of`, -1: of nobody in particular."""
    shares = weights / weights.sum(axis=1, keepdims=True) * total[:, None]
    counts = np.floor(shares).astype(np.int64)
    rest, order = total - counts.sum(axis=1), np.argsort(counts - shares, axis=1, kind="stable")
    counts[np.arange(len(counts))[:, None], order] += np.arange(weights.shape[1]) < rest[:, None]
    short = np.flatnonzero((of >= 0) & (counts[np.arange(len(of)), of] == 0) & (total >= 2))
    if len(short):
        counts[short] = whole_shares(weights[short], total[short] - 1, np.full(len(short), -1))
        counts[short, of[short]] += 1
    return np.asarray(counts)


@record
class Known:
    """What was seen of each arm, and what is guessed of it; (g, K)."""

    counts: IntArray  # n
    scores: FloatArray  # f
    squared_errors: FloatArray  # e^2, of the scores
    costs: FloatArray | float = 1.0  # of a pull, in those of the cheapest arm

    def fair_shares(self, weights: FloatArray, total: FloatArray) -> tuple[FloatArray, IntArray]:
        """(how many pulls each arm had better get, (g, K); how many together, (g,)), of a batch in these proportions.

        A batch at most doubles what is known of an arm (4 more pulls are always allowed, and a batch has 2 % of the
        pulls so far, of more than 1,000 arms K / 1,000 times that): of one with few pulls the guess may be far off, and
        with it all that is planned upon it. And an arm that trails may have been unlucky: of N pulls in all it has

            n_j 4 log(N / K) e_j^2 / (max f - f_j)^2,   at most N / K

        since where the best arm starves the others are measured in vain until it is found; of a dear one less, by the
        root of its cost. A quarter of a batch at most goes to such arms.

        Source: ours, after the indices of upper confidence bounds (Lai and Robbins 1985).
        """
        spent, wanted = self.counts.sum(axis=1, dtype=np.float64), weights > 0.0
        most = np.where(wanted, (self.counts + HEURISTIC_AT_ONCE) / np.where(wanted, weights, 1.0), np.inf).min(axis=1)
        number = weights.shape[1]
        least = tuning.HEURISTIC_LEAST_BATCH * max(number / HEURISTIC_MANY_ARMS, 1.0) * spent
        total = np.minimum(total, np.maximum(most, np.maximum(least, 2.0)))
        equal = ((spent + total) / number)[:, None]
        leads = self.scores.max(axis=1, keepdims=True, initial=-np.inf, where=wanted) - self.scores
        trails = wanted & (leads > 0.0)
        doubt = HEURISTIC_UNLUCKY * np.log(np.maximum(equal, 1.0)) * self.squared_errors * self.counts
        squares = np.where(trails, leads, 1.0) ** 2
        many = doubt >= equal * squares  # squares of leads may be too small to divide by
        asked = np.where(many, equal, doubt / np.where(many, 1.0, squares))
        lacking = np.where(trails, np.maximum(asked / np.sqrt(self.costs) - self.counts, 0.0), 0.0)
        some = lacking.sum(axis=1, keepdims=True)
        lacking *= np.minimum(HEURISTIC_DOUBTED * total[:, None] / np.where(some > 0.0, some, 1.0), 1.0)
        return np.maximum(weights * total[:, None], lacking), np.ceil(total).astype(np.int64)


# --- Of one study.


def integer_pulls(pulls: FloatArray, total: int, *, of: int | None = None) -> IntArray:
    """`whole_shares`, (K,)."""
    return np.asarray(whole_shares(pulls[None], np.array([total]), np.array([-1 if of is None else of]))[0])


def _rivals(
    processes: MeanProcesses, goal: OpenComparisons, scales: FloatArray, margins: FloatArray | None = None
) -> Rivals:
    """Those of a goal."""
    rivals, variances, costs = goal.rivals, scales**2, goal.costs

    def hub(arm: int, flows: FloatArray) -> Hub:
        own = slice(arm, arm + 1)
        there = np.array([[goal.away is None or not goal.away[arm]]])
        price = 1.0 if costs is None else float(costs[arm])
        at = np.array([[arm]])
        return Hub(at[0], at, variances[own, None], goal.scores[own, None], flows[None, rivals], there, price)

    return Rivals(
        threshold=goal.threshold,
        epsilon=goal.epsilon,
        log_values=processes.log_values[None, rivals],
        starts=processes.starts[None, rivals],
        taken=processes.taken[None, rivals],
        scores=goal.scores[None, rivals],
        variances=variances[None, rivals],
        margins=(goal.margins if margins is None else margins)[None],
        centre=hub(goal.candidate, processes.given_to(goal.candidate)),
        former=[hub(arm, flows) for arm, flows in processes.others_than(goal.candidate).items()],
        price=1.0 if costs is None else costs[rivals],
    )


def means_remaining(processes: MeanProcesses, goal: OpenComparisons) -> RemainingPulls:
    """The pulls that are predicted to reject all rivals, and the processes that had better start anew.

    With q = s_c^2 / n_c a rival needs n_j = s_j^2 / (b^2 / (2 a) - q) pulls, a = need + q D^2 / 2 + what former
    candidates cost, b = m - q D, D = T_j - F_j(c). The sum over j is a function of n_c alone: searched on a grid.

    An arm that needs a pull needs a whole one: shares of less would be rounded to none, again and again.

    Where pulls cost unlike amounts, n is money, s^2 is s^2 cost, and the sum is what all of it costs.

    Cost: O(K) for each of the grid's entries.
    """
    told = _rivals(processes, goal, goal.priced_scales)
    uneven = 1.0 if goal.costs is None else max(float(told.variances[0].mean() / told.centre.variance[0, 0]), 1.0)
    fresh, centre, wanted, former = told.predicted(goal.aimed, uneven)
    counts = np.zeros(len(goal.scores))
    counts[goal.rivals], counts[goal.candidate] = wanted[0], centre[0]
    for hub, pulls in zip(told.former, former, strict=True):
        counts[hub.arms] = np.maximum(counts[hub.arms], pulls)
    pulls, restarts = goal.pulls_for(counts), goal.rivals[fresh[0]]
    return RemainingPulls(goal.candidate, len(counts), pulls, 0.0, restarts, nobody(), goal.costs)


def opening_bets(processes: MeanProcesses, margins: FloatArray, counts: IntArray, noise_scales: FloatArray) -> Bets:
    """The bets of a batch that serves no candidate: each arm's own pulls, w = -kappa margin / s^2."""
    arms = np.flatnonzero(counts)
    added = tuning.HEURISTIC_KAPPA * margins[arms] * counts[arms] / noise_scales[arms] ** 2
    return Bets(arms, processes.taken[arms] + added, {})


def place_bets(
    processes: MeanProcesses,
    goal: OpenComparisons,
    margins: FloatArray,  # guesses of the rivals' margins, (m,)
    counts: IntArray,  # n, the pulls of the batch, (K,)
    future: FloatArray,  # pulls that are planned after it, (K,)
    noise_mgf: Mgf,
    *,
    patient: bool = False,
) -> Bets:
    """The bets of a batch for a candidate.

    A flow is matched where that costs little, is predicted to settle the rival, or nothing more is planned; elsewhere,
    and in a part of a batch that has no pull of the candidate, it is spread over this batch and the planned ones in
    proportion to the pulls.
    """
    told, over = _rivals(processes, goal, goal.noise_scales, margins), np.array([[future.sum() <= 0.0]])
    after, flows = told.placed(goal.rivals[None], counts, counts + future, over, noise_mgf, patient=patient)
    hubs = [int(hub.arms[0]) for hub in (told.centre, *told.former)]
    given = {hub: flow[0] for hub, flow in zip(hubs, flows, strict=True) if counts[hub] > 0}
    return Bets(goal.rivals, after[0], given)


def weights_between(
    before: MeanProcesses | None, after: MeanProcesses, counts: IntArray, *, plain: bool
) -> BatchWeights:
    """The weights of a batch, from the flows before and after it: all pulls of an arm have the same, or `plain` is not.

    What a process that started anew held before counts no more.
    """
    pulled = np.flatnonzero(counts)
    kept = np.zeros(len(counts)) if before is None else np.where(before.starts == after.starts, 1.0, 0.0)

    def held(processes: MeanProcesses) -> FloatArray:
        flows = np.array([processes.given_to(arm) for arm in pulled.tolist()]).reshape(len(pulled), len(counts)).T
        flows[pulled, np.arange(len(pulled))] -= processes.taken[pulled]
        return flows

    now = held(after)
    change = now if before is None else now - kept[:, None] * held(before)
    arms = np.flatnonzero(change.any(axis=1))
    return BatchWeights(arms, pulled, counts[pulled], change[arms] / counts[pulled], now[arms], plain)
