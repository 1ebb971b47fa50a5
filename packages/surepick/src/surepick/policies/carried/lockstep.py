"""Many studies of carried evidence without structure at once, batch by batch: arrays with a row for each study.

The rules are those of `elimination`, `planning` and `means_rule`, for noise of known scale and batches that are chosen.
Studies with equally many open rivals go together, so that sums have the same terms in the same order as in a study
alone, and with them the same bits: a test holds the two beside each other, state by state.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from surepick.core.observations import Observations
from surepick.core.records import BoolArray, FloatArray, IntArray, record, rows_of
from surepick.estimators import NoiseMgf, noise_mgf_after, posterior, with_squares
from surepick.estimators.running_processes import UNKNOWN, Flow, MeanProcesses, bounds_of_means, flow_gains
from surepick.noise import known_scale
from surepick.policies import tuning
from surepick.policies.base import Problem, threshold_of
from surepick.policies.carried import means_rule, planning
from surepick.policies.sequential import state as states
from surepick.questions.protocol import Lists

MOST_ARMS = posterior.HEURISTIC_SHORT_LIST  # with more, little of a study's time is spent on what arrays save
ENTRIES = 32_768  # of an array that is worked on at a time: some of them stay near the processor


def together(policy: Any) -> Lockstep | None:
    """The rules for many studies of a `CarriedElimination`; None where they are not among those that are here."""
    problem, sizes = policy.problem, policy._sizes
    alike = problem.relative_costs is None and known_scale(problem.noise) and problem.question is None
    plain = policy.embedding.traits.family == "independent" and policy.blocks is None and policy.later is None
    begins = not problem.answer_without_pulls()[0]
    fits = sizes.free and alike and plain and begins and 2 <= problem.num_arms <= MOST_ARMS
    return Lockstep(problem, sizes.largest) if fits else None


@dataclass(slots=True)
class Guesses:
    """As `Posterior`."""

    scores: FloatArray  # f, (n, K)
    left: FloatArray  # squared errors of the means, (n, K)

    def margins(
        self, centres: IntArray, margin: float, caution: float = 0.0, least: float = tuning.HEURISTIC_LEAST_MARGIN
    ) -> FloatArray:
        """Of all arms, (n, K)."""
        lead, errors = np.take_along_axis(self.scores, centres[:, None], 1) - self.scores, self.errors(centres)
        ahead = np.maximum(lead - caution * errors, 0.0)
        short = np.minimum(lead + posterior.HEURISTIC_DOUBT * errors, 0.0)
        return np.asarray(np.maximum(margin + np.where(lead >= 0.0, ahead, short), least * abs(margin)))

    def errors(self, centres: IntArray) -> FloatArray:
        """Standard errors of the differences to an arm of each study, (n, K)."""
        return np.asarray(np.sqrt(self.left + np.take_along_axis(self.left, centres[:, None], 1)))


@dataclass(slots=True)
class Rest:
    """As `OpenComparisons` and `RemainingPulls`."""

    candidates: IntArray  # (n,)
    rivals: BoolArray  # (n, K)
    margins: FloatArray  # of all arms, (n, K)
    scales: FloatArray  # s, (n, K)
    pulls: FloatArray  # (n, K)
    fresh: BoolArray  # whose processes had better start anew, (n, K)

    @property
    def total(self) -> FloatArray:
        """V, (n,)."""
        return np.asarray(np.maximum(self.pulls.sum(axis=1), 1.0))


@dataclass(slots=True)
class Plans:
    """The next batches."""

    counts: IntArray  # (n, K)
    testing: BoolArray  # which are for a candidate, (n,)
    rest: Rest | None = None  # None: the first batch


@dataclass(slots=True)
class Rows:
    """Where the studies stand, as `SequentialState` has it; flows are in slots, in the order in which they came."""

    seen: Observations  # (n, K)
    log_values: FloatArray  # (n, K)
    starts: IntArray  # (n, K)
    taken: FloatArray  # T, (n, K)
    hubs: IntArray  # on whose pulls a slot's flow is, or -1, (n, h)
    flows: FloatArray  # (n, h, K)
    tested: IntArray  # candidates, the one looked at last at the end, or -1, (n, MOST_TESTED)
    bounds: FloatArray  # theirs, (n, MOST_TESTED, K)
    beaten: BoolArray  # (n, K)
    candidate: IntArray  # (n,)
    leader: IntArray  # (n,)
    finished: BoolArray  # (n,)
    levels: FloatArray  # what was taken from every reward, (n,)
    guesses: Guesses  # before the next batch


@record
class Lockstep:
    """The rules of a policy for many studies that have been told equally many batches."""

    problem: Problem
    largest: int | None  # most pulls in a batch; None: no limit

    @property
    def epsilon(self) -> float:
        """In reward units."""
        return self.problem.epsilon

    @property
    def _threshold(self) -> float:
        return threshold_of(self.problem)

    def first(self, number: int) -> Plans:
        """The first batches of so many studies."""
        return Plans(np.ones((number, self.problem.num_arms), np.int64), np.zeros(number, bool))

    # --- what to measure next

    def ask(self, rows: Rows) -> Plans:
        """As `Planner.next_batch`."""
        spent, leaders = rows.seen.counts.sum(axis=1).astype(np.float64), np.argmax(rows.guesses.scores, axis=1)
        mgf, shape = noise_mgf_after(self.problem.noise, rows.seen), rows.taken.shape
        arrays = (np.zeros(shape, kind) for kind in (bool, float, float, float, bool))
        rest, total, opening = Rest(leaders.copy(), *arrays), np.zeros(len(spent)), rows.candidate < 0
        at = np.flatnonzero(opening)
        errors = rows_of(rows.guesses, at).errors(leaders[at])
        likely = rows_of(rows.guesses, at).margins(leaders[at], self.epsilon, tuning.HEURISTIC_OPENING_CAUTION)
        margins = np.maximum(likely, planning.HEURISTIC_LEAST_LEAD * errors)
        wanted = self._rest(rows_of(rows, at), leaders[at], margins, rows_of(mgf, at)).total
        enough = planning.HEURISTIC_OPENING_OF_MEANS * wanted
        going = spent[at] < enough
        opening[at] = going
        at, enough = at[going], enough[going]
        apart = np.maximum(self.epsilon, planning.HEURISTIC_LEAST_TOLD * errors[going])
        asked = np.maximum(apart, likely[going] - self.epsilon + apart)
        _put(rest, at, self._rest(rows_of(rows, at), leaders[at], asked, rows_of(mgf, at)))
        total[at] = np.minimum(spent[at], enough - spent[at])
        at = np.flatnonzero(~opening)
        _put(rest, at, found := self._chosen(rows_of(rows, at), leaders[at], rows_of(mgf, at)))
        usual = np.maximum(tuning.HEURISTIC_BATCH * found.total, tuning.HEURISTIC_LEAST_BATCH * spent[at])
        total[at] = np.minimum(usual, spent[at])
        weights = planning.steadied_weights(rest.pulls / rest.pulls.sum(axis=1, keepdims=True))
        known = means_rule.Known(rows.seen.counts, rows.guesses.scores, rows.guesses.left)
        weights, number = known.fair_shares(weights, total)
        number = np.maximum(2, number if self.largest is None else np.minimum(number, self.largest))
        return Plans(means_rule.whole_shares(weights, number, np.where(opening, -1, rest.candidates)), ~opening, rest)

    def _chosen(self, rows: Rows, best: IntArray, mgf: NoiseMgf) -> Rest:
        """As `Predictions.rest`; `best` looks best."""
        candidates = np.where(rows.candidate < 0, best, rows.candidate)
        other = np.flatnonzero(best != candidates)
        if len(other):
            some = rows_of(rows, other), rows_of(mgf, other)
            doubted = self._planned(*some, candidates[other], posterior.HEURISTIC_LEAST_WHEN_SWITCHING).total
            better = self._planned(*some, best[other]).total < tuning.HEURISTIC_SWITCH * doubted
            candidates[other[better]] = best[other[better]]
        return self._planned(rows, mgf, candidates)

    def _planned(
        self, rows: Rows, mgf: NoiseMgf, candidates: IntArray, least: float = tuning.HEURISTIC_LEAST_MARGIN
    ) -> Rest:
        margins = rows.guesses.margins(candidates, self.epsilon, tuning.HEURISTIC_CAUTION, least)
        return self._rest(rows, candidates, margins, mgf)

    def _rest(self, rows: Rows, candidates: IntArray, margins: FloatArray, mgf: NoiseMgf) -> Rest:
        """As `DecisionContext.goal` and `means_remaining`; margins of all arms, (n, K)."""
        every = np.arange(len(candidates))
        at = np.argmax(rows.tested == candidates[:, None], axis=1)
        known = np.where((rows.tested[every, at] == candidates)[:, None], rows.bounds[every, at], UNKNOWN)
        rivals = ~(rows.beaten | (np.minimum(known, self._upper_bounds(rows, candidates)) <= self.epsilon))
        rivals[every, candidates] = False
        nobody = np.flatnonzero(~rivals.any(axis=1))
        rivals[nobody, np.where(candidates[nobody] == 0, 1, 0)] = True
        seen_at = np.array(margins)
        seen_at[every, candidates] = np.where(rivals, margins, np.inf).min(axis=1)
        pulls, fresh = np.zeros(margins.shape), np.zeros(margins.shape, bool)
        found = Rest(candidates, rivals, margins, mgf.noise_scales(seen_at), pulls, fresh)
        for at, arms in _equally_many(rivals):
            step = max(ENTRIES // (tuning.HEURISTIC_GRID * arms.shape[1]), 1)
            for first in range(0, len(at), step):
                self._predict(rows, at[first : first + step], arms[first : first + step], found)
        return found

    def _predict(self, rows: Rows, at: IntArray, arms: IntArray, found: Rest) -> None:
        """As `means_remaining`, of studies with m open rivals, (g, m); into `found`."""
        told, every = self._rivals(rows, at, arms, found), np.arange(len(at))
        fresh, centre, wanted, former = told.predicted(states.aimed)
        counts = np.zeros((len(at), rows.taken.shape[1]))
        np.put_along_axis(counts, arms, wanted, 1)
        counts[every, told.centre.arms] = centre
        for hub, pulls in zip(told.former, former, strict=True):
            counts[every, hub.arms] = np.maximum(counts[every, hub.arms], pulls)
        found.pulls[at], found.fresh[at[:, None], arms] = counts, fresh

    def _rivals(self, rows: Rows, at: IntArray, arms: IntArray, rest: Rest) -> means_rule.Rivals:
        """The open rivals of g studies, (g, m)."""
        candidates, places = rest.candidates[at], (at[:, None], arms)
        scores, variances, nothing = rows.guesses.scores, rest.scales**2, np.zeros(arms.shape)

        def hub(whose: IntArray, flow: FloatArray, there: BoolArray) -> means_rule.Hub:
            where = at[:, None], whose[:, None]
            return means_rule.Hub(whose, where, variances[where], scores[where], flow, there[:, None])

        given, former = nothing, []
        for slot in range(rows.hubs.shape[1]):
            arm, flow = rows.hubs[at, slot], rows.flows[at[:, None], slot, arms]
            there = (arm >= 0) & (arm != candidates) & rows.flows[at, slot].any(axis=1)
            given = np.where((arm == candidates)[:, None], flow, given)
            former.append(hub(np.where(there, arm, candidates), np.where(there[:, None], flow, 0.0), there))
        return means_rule.Rivals(
            threshold=self._threshold,
            epsilon=self.epsilon,
            log_values=rows.log_values[places],
            starts=rows.starts[places],
            taken=rows.taken[places],
            scores=scores[places],
            variances=variances[places],
            margins=rest.margins[places],
            centre=hub(candidates, given, np.ones(len(at), bool)),
            former=former,
        )

    # --- what a batch says

    def tell(self, rows: Rows | None, planned: Plans, seen: Observations) -> Rows:
        """As `CarriedElimination.tell`; `rows` None: before the first batch."""
        rows = self._started(seen) if rows is None else rows_of(rows, np.arange(len(rows.taken)))  # a copy
        seen, noise = seen.less(rows.levels[:, None]), self.problem.noise
        batch, mgf, candidate = with_squares(noise, seen), noise_mgf_after(noise, rows.seen), rows.candidate
        margins = np.full(rows.taken.shape, 2.0 * self.epsilon)
        at = np.flatnonzero(~planned.testing)
        if planned.rest is not None:
            guesses = rows_of(rows.guesses, at)
            leaders = np.argmax(guesses.scores, axis=1)
            margins = np.maximum(guesses.margins(leaders, self.epsilon), 2.0 * self.epsilon)
            self._bet(rows, planned, planned.rest, batch, mgf)
            candidate = np.where(planned.testing, planned.rest.candidates, -1)
        taken, scales = rows.taken[at], rows_of(mgf, at).noise_scales(margins)
        after = taken + tuning.HEURISTIC_KAPPA * margins * batch.counts[at] / scales**2
        places: Any = at[:, None], np.arange(taken.shape[1])[None]
        rows.log_values[at] += flow_gains(after - taken, -1.0, places, batch, mgf)
        rows.taken[at] = after
        return self._concluded(replace(rows, seen=rows.seen.plus(seen), candidate=candidate))

    def _started(self, seen: Observations) -> Rows:
        """Before the first batch, in which each arm is pulled."""
        number, num_arms = shape = seen.counts.shape
        nobody, nothing = np.full(number, -1), np.zeros(shape)
        tested, least = np.full((number, states.MOST_TESTED), -1), states.FAR * self.epsilon
        known = range(number) if self.problem.noise.support is None else ()
        return Rows(
            seen=Observations(np.zeros(shape, np.int64), nothing, nothing),
            log_values=np.full(shape, math.log(states.HEURISTIC_FIRST_START)),
            starts=np.ones(shape, np.int64),
            taken=np.zeros(shape),
            hubs=np.empty((number, 0), np.int64),
            flows=np.empty((number, 0, num_arms)),
            tested=tested,
            bounds=np.full((*tested.shape, num_arms), UNKNOWN),
            beaten=np.zeros(shape, bool),
            candidate=nobody,
            leader=nobody,
            finished=np.zeros(number, bool),
            levels=np.array([rows_of(seen, row).level(least) for row in known] or np.zeros(number)),
            guesses=Guesses(nothing, nothing),
        )

    def _bet(self, rows: Rows, planned: Plans, rest: Rest, batch: Observations, mgf: NoiseMgf) -> None:
        """The bets of batches for candidates, after new starts."""
        chosen = planned.testing[:, None]
        at, arm = np.nonzero(rest.fresh & chosen)
        rows.starts[at, arm] += 1
        rows.log_values[at, arm] = states.start_weights(rows.starts[at, arm])
        rows.taken[at, arm] = 0.0
        rows.flows[at, :, arm] = 0.0
        testing = np.flatnonzero(planned.testing)
        _find_slots(rows, testing, rest.candidates[testing])
        share = np.maximum(1.0 - planned.counts.sum(axis=1) / rest.total, 0.0)
        future, margins = rest.pulls * share[:, None], rows.guesses.margins(rest.candidates, self.epsilon)
        for at, arms in _equally_many(rest.rivals & chosen):
            self._place(rows, at, arms, replace(rest, margins=margins), future, batch, mgf)
        _drop_slots(rows)

    def _place(
        self, rows: Rows, at: IntArray, arms: IntArray, rest: Rest, future: FloatArray, batch: Observations, mgf: Any
    ) -> None:
        """As `place_bets` and `MeanProcesses.after`, of g studies with m rivals each, (g, m)."""
        told, places, over = self._rivals(rows, at, arms, rest), (at[:, None], arms), future[at].sum(axis=1) <= 0.0
        taken, flows = told.placed(places, batch.counts, batch.counts + future, over[:, None], mgf)
        own: Any = places
        gained = told.log_values + flow_gains(taken - told.taken, -1.0, own, batch, mgf)
        for hub, flow in zip((told.centre, *told.former), flows, strict=True):
            gained = gained + flow_gains(flow - hub.flow, 1.0, hub.at, batch, mgf)
        rows.log_values[places], rows.taken[places] = gained, taken
        slot = np.argmax(rows.hubs[at] == told.centre.arms[:, None], axis=1)
        rows.flows[at[:, None], slot[:, None], arms] = flows[0]
        for number, (hub, flow) in enumerate(zip(told.former, flows[1:], strict=True)):
            kept = hub.there[:, 0]
            rows.flows[at[kept, None], number, arms[kept]] = flow[kept]

    def _concluded(self, rows: Rows) -> Rows:
        """Who leads, what is known of it and of the candidate, who is beaten, and whether that decides."""
        declared = noise_mgf_after(self.problem.noise, rows.seen).noise_scales(np.full(rows.taken.shape, self.epsilon))
        share, guesses = posterior.measured_share(rows.seen, declared), _guesses(rows.seen, declared, self.epsilon)
        less, shown = np.flatnonzero(share < 1.0), Guesses(np.array(guesses.scores), np.array(guesses.left))
        _put(shown, less, _guesses(rows_of(rows.seen, less), share[less, None] * declared[less], self.epsilon))
        rows = replace(rows, guesses=guesses, leader=_likeliest(shown, self.epsilon))
        tested = np.where(rows.candidate < 0, rows.leader, rows.candidate)
        first = _leaders_first(rows.taken.shape[1])[rows.leader, tested]
        self._look_at(rows, np.arange(len(tested)), np.where(first, rows.leader, tested))
        both = np.flatnonzero(rows.leader != tested)
        self._look_at(rows, both, np.where(first, tested, rows.leader)[both])
        rows.beaten = rows.beaten | (rows.bounds < 0.0).any(axis=1)
        settled = (rows.beaten[:, None] | (rows.bounds <= self.epsilon)).all(axis=2) & (rows.tested >= 0)
        answer = rows.tested[np.arange(len(tested)), np.argmax(settled, axis=1)]
        rows.finished = np.asarray(settled.any(axis=1))
        rows.candidate, rows.leader = (np.where(rows.finished, answer, arm) for arm in (rows.candidate, rows.leader))
        return rows

    def _look_at(self, rows: Rows, at: IntArray, candidates: IntArray) -> None:
        """As `intersected`, in those studies, with the bounds of now."""
        some, every = rows_of(rows, at), np.arange(len(at))
        bounds, same = self._upper_bounds(some, candidates), some.tested == candidates[:, None]
        place = np.argmax(same, axis=1)
        known = np.where(same.any(axis=1)[:, None], some.bounds[every, place], bounds)
        kept = np.arange(states.MOST_TESTED - 1)
        order = kept + (kept >= place[:, None])
        rows.tested[at] = np.concatenate([np.take_along_axis(some.tested, order, 1), candidates[:, None]], axis=1)
        rows.bounds[at, :-1] = np.take_along_axis(some.bounds, order[:, :, None], 1)
        rows.bounds[at, -1] = np.minimum(known, bounds)

    def _upper_bounds(self, rows: Rows, candidates: IntArray) -> FloatArray:
        """As `MeanProcesses.upper_bounds`, against a candidate of each study, (n, K)."""
        own = (rows.hubs == candidates[:, None])[:, :, None]
        there = np.where(own, rows.flows, 0.0).sum(axis=1)
        others = list(np.where(own, 0.0, rows.flows).transpose(1, 0, 2))
        span = self.problem.noise.support
        bounds = bounds_of_means(self._threshold - rows.log_values, rows.taken, there, others, span)
        bounds[np.arange(len(bounds)), candidates] = 0.0
        return bounds

    def state_of(self, rows: Rows, row: int, round_number: int) -> states.SequentialState:
        """Where one of the studies stands."""
        tested = zip(rows.tested[row].tolist(), rows.bounds[row], strict=True)
        hubs = zip(rows.hubs[row].tolist(), rows.flows[row], strict=True)
        given = tuple(Flow(arm, flow) for arm, flow in hubs if arm >= 0)
        return states.SequentialState(
            round=round_number,
            seen=rows_of(rows.seen, row),
            lists=Lists.empty(self.problem.num_arms),
            means=MeanProcesses(rows.log_values[row], rows.starts[row], rows.taken[row], given),
            tested=tuple(states.UpperBounds(arm, bounds) for arm, bounds in tested if arm >= 0),
            beaten=rows.beaten[row],
            candidate=int(rows.candidate[row]),
            dim=self.problem.num_arms,
            leader=int(rows.leader[row]),
            finished="certified" if rows.finished[row] else "",
            level=float(rows.levels[row]) or None,
        )


def _put(whole: Any, at: IntArray, part: Any) -> None:
    """Take those rows from another record of arrays."""
    for name in whole.__slots__:
        getattr(whole, name)[at] = getattr(part, name)


def _equally_many(chosen: BoolArray) -> Iterator[tuple[IntArray, IntArray]]:
    """(studies, their chosen arms, (g, m)) for each number m of these, from rows of (n, K)."""
    numbers = chosen.sum(axis=1)
    for number in np.unique(numbers[numbers > 0]).tolist():
        at = np.flatnonzero(numbers == number)
        yield at, np.nonzero(chosen[at])[1].reshape(-1, number)


def _find_slots(rows: Rows, at: IntArray, candidates: IntArray) -> None:
    """See that the flows on these candidates have slots."""
    new = ~(rows.hubs[at] == candidates[:, None]).any(axis=1)
    at, candidates = at[new], candidates[new]
    used, (number, width, num_arms) = (rows.hubs[at] >= 0).sum(axis=1), rows.flows.shape
    if used.max(initial=-1) == width:
        rows.hubs = np.concatenate([rows.hubs, np.full((number, 1), -1)], axis=1)
        rows.flows = np.concatenate([rows.flows, np.zeros((number, 1, num_arms))], axis=1)
    rows.hubs[at, used] = candidates


def _drop_slots(rows: Rows) -> None:
    """Forget slots in which no flow is left."""
    left = rows.flows.any(axis=2)
    order = np.argsort(~left, axis=1, kind="stable")[:, : int(left.sum(axis=1).max(initial=0))]
    rows.hubs = np.take_along_axis(np.where(left, rows.hubs, -1), order, 1)
    rows.flows = np.take_along_axis(rows.flows, order[:, :, None], 1)


def _guesses(seen: Observations, scales: FloatArray, epsilon: float) -> Guesses:
    """As `posterior_of_means`, where every arm has pulls."""
    means, variances = seen.means, scales**2 / seen.counts
    step = max(ENTRIES // (posterior.HEURISTIC_SPREADS * means.shape[1]), 1)
    found = np.empty((2, len(means), 1))
    for first in range(0, len(means), step):
        some = slice(first, first + step)
        found[:, some, 0] = posterior.common_centres(means[some], variances[some], epsilon)
    centre, spread = found
    share = spread / (spread + variances)
    return Guesses(centre + (means - centre) * share, variances * share)


def _likeliest(guesses: Guesses, epsilon: float) -> IntArray:
    """As `Posterior.likeliest`, (n,)."""
    scores, errors, num_arms = guesses.scores, np.sqrt(guesses.left), guesses.scores.shape[1]
    step = max(ENTRIES // (len(posterior.HEURISTIC_PLACES) * num_arms * min(num_arms, posterior.HEURISTIC_PLACED)), 1)
    blocks = [slice(first, first + step) for first in range(0, len(scores), step)]
    chances = np.concatenate([posterior.chances_in_rows(scores[one], errors[one], epsilon) for one in blocks])
    good = chances >= chances.max(axis=1, keepdims=True) - posterior.SAME_CHANCE
    return np.asarray(np.argmax(np.where(good, scores, -np.inf), axis=1))


@lru_cache(maxsize=8)
def _leaders_first(num_arms: int) -> BoolArray:
    """Whether a leader is looked at before a candidate, (K, K): the order of a set of the two."""
    return np.array([[next(iter({one, other})) == one for other in range(num_arms)] for one in range(num_arms)])
