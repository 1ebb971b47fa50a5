"""Means and blocks: where to measure, and how to bet, for arms that share nothing.

Bets are functions of the past and of the batch's counts (docs/certified-elimination.md, line 1; of blocks lines 24 and
25): the proofs hold for any. `told` is what results do to the processes (line 11).

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

from surepick.core.observations import BlockTotals, Observations
from surepick.core.records import BoolArray, FloatArray, IntArray, record
from surepick.errors import ContractError
from surepick.estimators import Mgf
from surepick.estimators.flows import BatchWeights
from surepick.estimators.noise_mgf import ROUNDED_UP
from surepick.estimators.running_processes import MeanProcesses
from surepick.linalg.factorisations import weighted_range
from surepick.policies import tuning
from surepick.policies.sequential.state import OpenComparisons, RemainingPulls, anew, nobody, start_weights

HEURISTIC_FORMER = 0.2  # units of evidence that a plan spends on a flow to a former candidate


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
        grid = np.exp(np.linspace(low[left], low[left] + span, tuning.HEURISTIC_GRID, axis=1))
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


def whole_pulls(weights: FloatArray, total: IntArray, of: IntArray) -> IntArray:
    """So many pulls of each study in its proportions, (g, K): the whole part of each share, and the largest rests one
    more; at least one of the arm `of`, -1: of nobody in particular."""
    shares = weights / weights.sum(axis=1, keepdims=True) * total[:, None]
    counts = np.floor(shares).astype(np.int64)
    rest, order = total - counts.sum(axis=1), np.argsort(counts - shares, axis=1, kind="stable")
    counts[np.arange(len(counts))[:, None], order] += np.arange(weights.shape[1]) < rest[:, None]
    short = np.flatnonzero((of >= 0) & (counts[np.arange(len(of)), of] == 0) & (total >= 2))
    if len(short):
        counts[short] = whole_pulls(weights[short], total[short] - 1, np.full(len(short), -1))
        counts[short, of[short]] += 1
    return np.asarray(counts)


# --- Of one study.


def integer_pulls(pulls: FloatArray, total: int, *, of: int | None = None) -> IntArray:
    """`whole_pulls`, (K,)."""
    return np.asarray(whole_pulls(pulls[None], np.array([total]), np.array([-1 if of is None else of]))[0])


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


# --- How to bet where blocks share an effect: weights sum to 0 within each block, so that it cancels.
#
# The process of arm j holds T_j on its own pulls, and its flows F_j(c) on those of candidates sum to T_j at any time. A
# batch for c moves the flows on former candidates to c, and adds a bet. With the levels l of `BlockEquations`
#
#     l_j = -kappa m,   flows on former candidates as wanted,   T = T_j - (L l)_j
#
# is the best bet on a margin m: it gains T m and costs l' L l / 2. A control that blocks share takes part with flow 0:
# it tells the effects of blocks apart in which the candidate or the arm is missing.


@record
class BlockBet:
    """What the processes of some rivals bet, all beside the same other arms."""

    rivals: IntArray  # (m,)
    others: list[int]  # the p - 1 other arms
    levels: FloatArray  # l, (m, p)
    taken: FloatArray  # T after the batch, (m,)
    left: dict[int, FloatArray]  # other arm -> the flow that is left on it, (m,)


@record
class BlockBets:
    """What the processes bet on the blocks of a batch for a candidate."""

    candidate: int  # c
    scales: FloatArray  # s, (K,), in reward units
    parts: tuple[BlockBet, ...]  # each of other rivals
    restarts: IntArray = field(default_factory=nobody)  # arms whose processes start anew before

    def told(self, processes: MeanProcesses, batch: Observations, noise_mgf: Mgf) -> MeanProcesses:  # noqa: ARG002
        """The processes after the results."""
        after = anew(processes, self.restarts)
        for one in self.parts:
            if batch.blocks is None:
                raise ContractError("the results do not say of which blocks they are.")
            found = equations(batch.blocks, self.scales, self.candidate, one.rivals, one.others)
            gained = np.einsum("mp,mp->m", one.levels, found.totals) - found.cost(one.levels)
            after = _with(after, self.candidate, one.rivals, one.taken, one.left, gained)
        return after


def block_bets(
    processes: MeanProcesses,
    goal: OpenComparisons,
    margins: FloatArray,  # guesses of the rivals' margins, (m,)
    seen: BlockTotals,  # of which only the counts are looked at
    share: float,
    control: int | None,
) -> BlockBets:
    """The bets on a batch for a candidate."""
    others = _sharing(seen, goal.candidate, [*processes.others_than(goal.candidate), control])
    plain = ~np.isin(goal.rivals, others)
    sets = [(plain, others)]
    for place in np.flatnonzero(~plain).tolist():  # the process of an arm that is among the others: without it there
        sets.append((np.arange(len(plain)) == place, [arm for arm in others if arm != goal.rivals[place]]))
    parts = (_placed(processes, goal, chosen, margins, seen, share, rest) for chosen, rest in sets if chosen.any())
    return BlockBets(goal.candidate, goal.noise_scales, tuple(parts))


def _sharing(seen: BlockTotals, candidate: int, arms: list[int | None]) -> list[int]:
    """Those of the arms, each once, that are in a block with the candidate."""
    there = np.isin(seen.blocks, seen.blocks[seen.arms == candidate])
    beside = set(seen.arms[there].tolist()) - {candidate}
    return [arm for arm in dict.fromkeys(arms) if arm in beside and arm is not None]


def _placed(
    processes: MeanProcesses,
    goal: OpenComparisons,
    chosen: BoolArray,
    margins: FloatArray,
    seen: BlockTotals,
    share: float,
    others: list[int],
) -> BlockBet:
    """What the processes of the chosen rivals bet, all with the same other arms."""
    rivals, margins = goal.rivals[chosen], margins[chosen]
    found = equations(seen, goal.noise_scales, goal.candidate, rivals, others)
    taken, given = processes.taken[rivals], [processes.given_to(arm)[rivals] for arm in others]
    flows = np.array(given).reshape(len(others), len(rivals)).T  # F_j of the other arms, shape (m, p - 1)
    bets = tuning.HEURISTIC_KAPPA * margins
    closing = _levels(found, bets, -flows)
    ends = taken - found.flows(closing)[:, 0]
    lead = goal.epsilon + goal.scores[goal.candidate] - goal.scores[rivals]
    promised = _held(processes, goal, rivals) + ends * lead - found.cost(closing)
    cheap = found.cost(_levels(found, 0.0 * bets, -flows)) <= tuning.HEURISTIC_CLOSING
    closes = cheap | (promised >= goal.threshold) | (share >= 1.0)
    levels = np.where(closes[:, None], closing, _levels(found, bets, -share * flows))
    after = taken - found.flows(levels)[:, 0]
    sure = after >= 0.0
    levels = np.where(sure[:, None], levels, 0.0)
    kept = np.where(sure, np.where(closes, 0.0, 1.0 - share), 1.0)
    left = dict(zip(others, (kept[:, None] * flows).T, strict=True))
    return BlockBet(rivals, others, levels, np.where(sure, after, taken), left)


def _held(processes: MeanProcesses, goal: OpenComparisons, rivals: IntArray) -> FloatArray:
    """The evidence of each rival as the guesses have it, but for what T is worth, shape (m,)."""
    centre = goal.candidate
    held = processes.log_values[rivals] - processes.given_to(centre)[rivals] * goal.scores[centre]
    for arm, flow in processes.others_than(centre).items():
        held = held - flow[rivals] * goal.scores[arm]
    return np.asarray(held + processes.taken[rivals] * goal.scores[rivals])


def _with(
    processes: MeanProcesses,
    candidate: int,
    rivals: IntArray,
    taken: FloatArray,
    left: dict[int, FloatArray],
    gained: FloatArray,
) -> MeanProcesses:
    """The processes with these T, these flows on other arms, and the rest of T on the candidate."""
    others = {arm: np.array(flow[rivals]) for arm, flow in processes.others_than(candidate).items()} | left
    rest = sum((flow for flow in others.values() if flow.any()), np.zeros(len(rivals)))
    given = {**others, candidate: np.where(rest == 0.0, taken, taken - rest)}
    return processes.with_flows(rivals, taken, given, processes.log_values[rivals] + gained)


def _levels(found: BlockEquations, bets: FloatArray, wanted: FloatArray) -> FloatArray:
    """l with l_j = -bet and with the wanted changes of the flows on the other arms, shape (m, p)."""
    own = -bets[:, None]
    if wanted.shape[1] == 0:
        return own
    short = wanted - found.matrix[:, 1:, 0] * own
    rest = np.linalg.solve(found.matrix[:, 1:, 1:], short[:, :, None])[:, :, 0]
    return np.concatenate([own, rest], axis=1)


# --- Differences of arms as blocks see them, and rewards without what their blocks share.
#
# In block B an entry for arm x has n pulls with the mean y and the weight w = n / s_x^2. What all of a block's rewards
# share drops out of y - ybar, ybar the mean of the block's arms with their weights.
#
# Source: the intra-block analysis of incomplete blocks (Yates 1936; Rao 1947).

HEURISTIC_RIDGE_OF_EFFECT = 1e-6  # of its own information: blocks with no arm in common with others count as average
CUT = 1e-7  # singular values of the weighted rows below this share of the largest: what nobody has told


@record
class BlockEquations:
    """What the blocks of a batch say of some arms apart from a centre, for each of m processes.

        L = sum_B diag(w) - w w' / sum(w),     Q_x = sum_B w_x (y_x - ybar)        over the process's arms in B

    Weights u_x(B) = w_x (l_x - lbar_B) on the arms' pulls, for numbers l with l = 0 at the centre, have the sum 0 in
    each block. They make the flows L l, cost l' L l / 2, and their sum over the rewards is l' Q.
    """

    matrix: FloatArray  # L without the centre, (m, p, p): the process's own arm first, then its other arms
    totals: FloatArray  # Q, (m, p)

    def cost(self, levels: FloatArray) -> FloatArray:
        """l' L l / 2, shape (m,), rounded up."""
        return np.asarray(0.5 * ROUNDED_UP * np.einsum("mp,mpq,mq->m", levels, self.matrix, levels))

    def flows(self, levels: FloatArray) -> FloatArray:
        """L l, shape (m, p)."""
        return np.asarray(np.einsum("mpq,mq->mp", self.matrix, levels))


def equations(seen: BlockTotals, scales: FloatArray, centre: int, arms: IntArray, others: list[int]) -> BlockEquations:
    """The equations of processes that weigh their own arm, neither the centre nor among the others, the centre and the
    same other arms.

    Cost: O(entries p^2).
    """
    num_arms, number, size = len(scales), seen.number, 1 + len(others)
    weights, means = seen.counts / scales[seen.arms] ** 2, seen.centred_means
    shared, said = np.zeros((number, 1 + len(others))), np.zeros((number, 1 + len(others)))
    for place, arm in enumerate((centre, *others)):
        at = seen.arms == arm
        shared[seen.blocks[at], place], said[seen.blocks[at], place] = weights[at], means[at]
    whole = shared.sum(axis=1)
    usual = np.divide((shared * said).sum(axis=1), whole, out=np.zeros(number), where=whole > 0.0)
    hubs, hub_means = shared[:, 1:], said[:, 1:]
    inverse = np.divide(1.0, whole, out=np.zeros(number), where=whole > 0.0)
    base = np.diag(hubs.sum(axis=0)) - (hubs * inverse[:, None]).T @ hubs
    matrix = np.zeros((len(arms), size, size))
    totals = np.zeros((len(arms), size))
    matrix[:, 1:, 1:], totals[:, 1:] = base, (hubs * (hub_means - usual[:, None])).sum(axis=0)
    place_of = np.full(num_arms, -1)
    place_of[arms] = np.arange(len(arms))
    own = np.flatnonzero((place_of[seen.arms] >= 0) & (whole[seen.blocks] > 0.0))
    row, block, weight = place_of[seen.arms[own]], seen.blocks[own], weights[own]
    joint, beside = weight / (whole[block] + weight), hubs[block]
    apart = means[own] - usual[block]
    np.add.at(matrix[:, 0, 0], row, joint * whole[block])
    np.add.at(totals[:, 0], row, joint * whole[block] * apart)
    np.add.at(matrix[:, 0, 1:], row, -joint[:, None] * beside)
    np.add.at(totals[:, 1:], row, -(joint * apart)[:, None] * beside)
    more = (joint * inverse[block])[:, None, None] * beside[:, :, None] * beside[:, None, :]
    np.add.at(matrix[:, 1:, 1:], row, more)
    matrix[:, 1:, 0] = matrix[:, 0, 1:]
    return BlockEquations(matrix, totals)


def without_effects(seen: Observations, past: Observations, scales: FloatArray) -> Observations:
    """A batch as it would have been if no block had an effect, as far as this can be told. For steering only.

    The effects are those of the least squares of the batch, in which each arm's earlier mean counts as a measurement.

    Cost: O(entries B + B^3) for B blocks.
    """
    blocks = BlockTotals.one(seen.counts, seen.sums) if seen.blocks is None else seen.blocks
    if len(blocks.arms) == 0:
        return Observations(seen.counts, seen.sums, seen.squares)
    names, place = np.unique(blocks.arms, return_inverse=True)
    number, weights, means = blocks.number, blocks.counts / scales[blocks.arms] ** 2, blocks.centred_means
    known = past.counts[names] / scales[names] ** 2
    whole = np.bincount(place, weights) + known
    centre = (np.bincount(place, weights * means) + known * past.means[names]) / whole
    table = np.zeros((number, len(names)))
    table[blocks.blocks, place] = weights
    information = blocks.per_block(weights)
    system = np.diag((1.0 + HEURISTIC_RIDGE_OF_EFFECT) * information) - (table / whole) @ table.T
    rest = np.linalg.solve(system, blocks.per_block(weights * (means - centre[place])))
    return _adjusted(seen, blocks, np.asarray(rest, np.float64))


def without_effects_on_vectors(
    seen: Observations, past: Observations, scales: FloatArray, white: FloatArray
) -> Observations:
    """`without_effects` for arms with vectors: the effects of the least squares of the batch and of all before it.

        minimise   sum_past n (mean_x - z_x'theta)^2 / s_x^2 + sum_batch n (y_x(B) - z_x'theta - e_B)^2 / s_x^2

    z, `white`, has a coordinate that is the same for every arm. Cost: O(entries r + (entries + arms pulled) r^2).
    """
    blocks = BlockTotals.one(seen.counts, seen.sums) if seen.blocks is None else seen.blocks
    if len(blocks.arms) == 0:
        return Observations(seen.counts, seen.sums, seen.squares)
    rows, weights, means = white[blocks.arms], blocks.counts / scales[blocks.arms] ** 2, blocks.centred_means
    known = np.flatnonzero(past.counts)
    inside = blocks.centred(np.column_stack([rows, means]), weights)
    joint = np.concatenate([inside, np.column_stack([white[known], past.means[known]])])
    shares = np.concatenate([weights, past.counts[known] / scales[known] ** 2])
    span = weighted_range(joint[:, :-1], shares, cut=CUT)
    slope = span.to_unit @ (span.to_unit.T @ (joint[:, :-1].T @ (shares * joint[:, -1])))
    return _adjusted(seen, blocks, blocks.per_block(weights * (means - rows @ slope)) / blocks.per_block(weights))


def _adjusted(seen: Observations, blocks: BlockTotals, rest: FloatArray) -> Observations:
    """The batch less its effects, which are the mean of each block's rewards and `rest`, shape (B,)."""
    means, num_arms = blocks.centred_means, len(seen.counts)
    effects = blocks.sums / blocks.counts - means + rest[blocks.blocks]
    adjusted = blocks.counts * (means - rest[blocks.blocks])
    sums: FloatArray = np.asarray(np.bincount(blocks.arms, adjusted, minlength=num_arms), np.float64)
    if seen.squares is None:
        return Observations(seen.counts, sums)
    moved = np.bincount(blocks.arms, effects * (blocks.counts * effects - 2.0 * blocks.sums), minlength=num_arms)
    least = np.divide(sums**2, seen.counts, out=np.zeros(num_arms), where=seen.counts > 0)
    return Observations(seen.counts, sums, np.maximum(seen.squares + moved, least))
