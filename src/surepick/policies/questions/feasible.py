"""The best arm of those that keep some bounds."""

from __future__ import annotations

import math

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, record
from surepick.policies.certified.sampling_rule import efforts
from surepick.policies.questions.inquiries import View, threshold_of
from surepick.policies.questions.limits import Standing
from surepick.policies.questions.outlook import HEURISTIC_CAUTION, HEURISTIC_DOUBT, Aims
from surepick.policies.questions.sheets import NUMBER, Bet
from surepick.policies.questions.state import Lists
from surepick.questions import Constraint

HEURISTIC_FRESH = 3  # candidates that a batch begins to test beside the one that looks best
HEURISTIC_CANDIDATES = 30  # that are tested at most, so long as the one that looks best is among them
SURE = math.inf  # log evidence of a fact


@record
class BestOfFeasible:
    """Which arm is the best of those that keep all bounds.

        named, c     for each bound: evidence against "c is beyond it by more than the tolerance"; all others are out
        out, j       evidence against "j keeps this bound", for one of the bounds, or against "h_j - h_c > epsilon"
        none         each arm is out for one of the bounds

    Args:
        num_arms: K.
        constraints: the bounds.
        epsilon: in reward units.
        delta: what may be spent.

    Source: ours (docs/questions.md, lines 16 to 18).
    """

    num_arms: int
    constraints: tuple[Constraint, ...]
    epsilon: float
    delta: float

    @property
    def number(self) -> float | None:
        return None

    @property
    def asked(self) -> BoolArray:
        return np.ones(self.num_arms, bool)

    @property
    def kept(self) -> float:
        """log(2 K / delta): what shows that an arm keeps a bound but for its tolerance; any arm may be the answer.

        Half of delta, unless no bound has noise, so that nothing of this kind can be wrong.
        """
        return threshold_of(2 * self.num_arms, self.delta)

    @property
    def out(self) -> float:
        """log(2 (1 + r) / delta): what shows that an arm does not keep a bound; only the best feasible arm matters.

        r: bounds with noise; where there are none, log(1 / delta).
        """
        noisy = sum(one.noise is not None for one in self.constraints)
        return threshold_of(2 * (1 + noisy) if noisy else 1, self.delta)

    def worse(self, place: int) -> float:
        """log(2 (1 + r) k (k + 1) / delta): the same, that an arm is no better than the k-th candidate, k = place + 1.

        The weights 1 / (k (k + 1)) of the candidates, in the order in which their tests began, sum to 1.
        """
        return self.out + math.log((place + 1) * (place + 2))

    def bets(self, view: View) -> tuple[Bet, ...]:
        made, out = [], self._breaks(view)
        opened = _candidates(view)
        for place, arm in enumerate(dict.fromkeys([*opened, *self._fresh(view, opened)])):
            lacks = self.worse(place) - view.sheet(_named(arm)).peaks
            arms = (lacks > 0.0) & ~out
            arms[arm] = False
            made.append(Bet(_named(arm), arm, self.epsilon, False, arms, np.maximum(lacks, 0.0), bold=True))
        for place, one in enumerate(self.constraints, 1):
            if one.noise is None:
                continue
            for name, margin, high, threshold in (
                ("breaks", 0.0, one.at_most, self.out),
                ("keeps", one.tolerance, not one.at_most, self.kept),
            ):
                lacks = threshold - view.sheet(f"{name} {place}").peaks
                arms = (lacks > 0.0) & ~out
                needs = np.maximum(lacks, 0.0)
                made.append(Bet(f"{name} {place}", NUMBER, margin, high, arms, needs, bold=True, quantity=place))
        return tuple(made)

    def aims(self, view: View) -> Aims:
        candidate, out = self.named(view), self._breaks(view)
        alone, pairs = np.zeros(self.num_arms), np.empty(0, np.int64)
        left = ~out
        leads = lacks = np.empty(0)
        breaking = self._pulls_to_break(view)
        if candidate is not None:
            left[candidate] = False
            alone[candidate] = self._pulls_to_keep(view, candidate)
            place, peaks = self._place(view, candidate), view.sheet(_named(candidate)).peaks
            needs = self.worse(place) - peaks
            left &= needs > 0.0
            rivals = np.flatnonzero(left)
            by_reward = view.outlook.cautious(rivals, candidate, self.epsilon, high=False)
            pulls = (view.scales[rivals] * efforts(-needs[rivals], 0.0) / by_reward) ** 2
            cheaper = pulls <= breaking[rivals]
            pairs, leads, lacks = rivals[cheaper], by_reward[cheaper], needs[rivals[cheaper]]
            left[pairs] = False
        alone[left] = breaking[left]
        if not len(pairs) and not alone.any():
            alone[:] = 1.0
        seconds = np.full(len(pairs), NUMBER if candidate is None else candidate)
        return Aims(pairs, seconds, leads, lacks, alone)

    def decided(self, view: View) -> Lists:
        out = self._breaks(view)
        inside = np.zeros(self.num_arms, bool)
        if out.all():
            return Lists(inside, ~inside)
        keeps, answers = self._keeps(view) & ~out, []
        for place, arm in enumerate(_candidates(view)):
            beaten = out | (view.sheet(_named(arm)).peaks >= self.worse(place))
            beaten[arm] = True
            if keeps[arm] and beaten.all():
                answers.append(arm)
        if not answers:
            return view.lists
        inside[max(answers, key=lambda arm: view.outlook.scores[arm])] = True
        return Lists(inside, ~inside)

    def named(self, view: View) -> int | None:
        """The arm that looks like the answer; None where no arm seems to keep all bounds."""
        fits = self._fits(view)
        return int(np.argmax(np.where(fits, view.outlook.scores, -np.inf))) if fits.any() else None

    def _fits(self, view: View) -> BoolArray:
        """The arms that seem to keep all bounds but for half of the tolerance, shape (K,)."""
        fits = ~self._breaks(view)
        for one in view.standings:
            fits &= (one.room >= -0.5 * one.tolerance) | ~one.known
        return fits

    def _fresh(self, view: View, opened: tuple[int, ...]) -> list[int]:
        """Candidates whose test begins with this batch."""
        candidate = self.named(view)
        if candidate is None:
            return []
        leads, errors = view.outlook.leads(candidate, high=False), view.outlook.errors(candidate)
        near = np.flatnonzero(self._fits(view) & (leads <= HEURISTIC_DOUBT * errors))
        likely = near[np.argsort(leads[near], kind="stable")].tolist()
        found = [arm for arm in [candidate, *likely] if arm not in opened]
        if len(opened) >= HEURISTIC_CANDIDATES:
            found = [arm for arm in found if arm == candidate]
        return list(dict.fromkeys(found))[: 1 + HEURISTIC_FRESH]

    def _place(self, view: View, candidate: int) -> int:
        """The place that the candidate has, or will have, in the order of candidates."""
        opened = _candidates(view)
        return opened.index(candidate) if candidate in opened else len(opened)

    def _breaks(self, view: View) -> BoolArray:
        """The arms that are shown not to keep some bound, shape (K,)."""
        found = np.zeros(self.num_arms, bool)
        for place, one in enumerate(view.standings, 1):
            found |= (one.known & (one.room < 0.0)) if one.exact else view.sheet(f"breaks {place}").peaks >= self.out
        return found

    def _keeps(self, view: View) -> BoolArray:
        """The arms that are shown to keep all bounds but for the tolerances, shape (K,)."""
        found = np.ones(self.num_arms, bool)
        for place, one in enumerate(view.standings, 1):
            sure = one.known & (one.room >= -one.tolerance)
            found &= sure if one.exact else view.sheet(f"keeps {place}").peaks >= self.kept
        return found

    def _pulls_to_break(self, view: View) -> FloatArray:
        """Pulls after which each arm would be shown not to keep some bound, at best, shape (K,)."""
        best = np.full(self.num_arms, np.inf)
        for place, one in enumerate(view.standings, 1):
            if one.exact:
                pulls = np.where(one.known, np.inf, 1.0)
            else:
                pulls = _pulls(-one.room, self.out - view.sheet(f"breaks {place}").peaks, one)
            best = np.minimum(best, pulls)
        return best

    def _pulls_to_keep(self, view: View, arm: int) -> float:
        """Pulls after which the arm would be shown to keep all bounds but for the tolerances."""
        most = 0.0
        for place, one in enumerate(view.standings, 1):
            if one.exact:
                most = max(most, 0.0 if one.known[arm] else 1.0)
                continue
            lacks = self.kept - view.sheet(f"keeps {place}").peaks
            if lacks[arm] > 0.0:
                most = max(most, float(_pulls(one.tolerance + one.room, lacks, one)[arm]))
        return most


def _pulls(leads: FloatArray, lacks: FloatArray, standing: Standing) -> FloatArray:
    """Pulls of each arm until its evidence is enough; leads are lowered by part of their errors; shape (K,)."""
    errors = np.where(np.isfinite(standing.errors), standing.errors, 0.0)
    careful = np.maximum(leads - HEURISTIC_CAUTION * errors, 0.25 * standing.tolerance)
    return np.asarray((standing.scales * efforts(-lacks, 0.0) / careful) ** 2)


def _named(arm: int) -> str:
    """The sheet of what is shown to be no better than a candidate."""
    return f"than {arm}"


def _candidates(view: View) -> tuple[int, ...]:
    """Those that are tested, in the order in which their tests began."""
    return tuple(int(one.name.removeprefix("than ")) for one in view.sheets if one.name.startswith("than "))
