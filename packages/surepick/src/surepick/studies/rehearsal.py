"""A study that is only simulated: the policy, its plans and what was drawn for them; no log, no hashes, no storage."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

from surepick.core.arms import Arms, Originals
from surepick.core.certificate import Certificate
from surepick.core.observations import Observations, observed
from surepick.core.plans import Plan, RoundRecord
from surepick.core.records import IntArray
from surepick.core.values import LARGEST_REWARD
from surepick.errors import InvalidInput, OutOfTurn
from surepick.policies.base import Policy
from surepick.policies.verdict import PolicySummary, Stated
from surepick.studies.deviations import answer_of
from surepick.studies.logs.base import CLOSED_ROUNDS, Deviations
from surepick.studies.logs.keys import known_deviations
from surepick.studies.registration import REHEARSAL, subject_of
from surepick.studies.slips import Repeats
from surepick.studies.study import Study
from surepick.studies.validation import check_sums, checked_judge


class Rehearsal(Stated):
    """As `Study`, where each plan is drawn whole and judged at once; plans, trace and certificate are the same.

    For rewards that are draws: neither test items, nor blocks, nor constraints. Nobody typed a result, so that none is
    looked at for a slip. What a policy raises is raised here, too; a `Study` would keep the results and say why it
    cannot go on. Arguments, and InvalidInput, are those of `Study`.
    """

    def __init__(self, arms: Arms, policy: Policy[Any], *, minimize: bool) -> None:
        self.arms, self.policy = subject_of(arms, policy)
        checked_judge(CLOSED_ROUNDS, self.policy, minimize=minimize)
        self.minimize, self.ids, self.state = minimize, arms.ids, policy.init()
        self.originals = self.item_originals = Originals()
        self._terms = cache(partial(PolicySummary.of, policy, arms))
        self._open: Plan | None = None
        self._told: list[tuple[IntArray, Observations]] = []  # (the arms pulled, their totals) of each closed plan
        self._rows: dict[int, RoundRecord] = {}
        self._repeats = Repeats(policy)
        self._contradicted: list[str] = []

    @property
    def missing(self) -> IntArray:
        """The pulls of the open plan, shape (K,)."""
        return np.zeros(len(self.ids), np.int64) if self._open is None else self._open.counts

    @property
    def trace(self) -> tuple[RoundRecord, ...]:
        """One record a round."""
        return tuple(self._rows[number] for number in sorted(self._rows))

    @property
    def number(self) -> int:
        """Of the open plan in its study, from 1."""
        return len(self._told) + 1

    def ask(self) -> Plan | None:
        """What to measure next; None once stopped."""
        if self._open is None:
            if self.policy.claim(self.state).finished:
                return None
            self._open = self.policy.ask(self.state)
        return self._open

    def tell_simulated(self, seen: Observations) -> None:
        """Judge the open plan by what was drawn for it: totals of all arms, (K,), in the user's sign and unit. Raises
        InvalidInput if these are not the pulls that the plan asks for, or no totals of rewards as declared; OutOfTurn
        if no plan is open."""
        if self._open is None:
            raise OutOfTurn("no plan is open: call ask() first.")
        if seen.counts is not self._open.counts and not np.array_equal(seen.counts, self._open.counts):
            raise InvalidInput(
                f"plan {self.number} asks for {self._open.total:,} pulls and the simulation drew {seen.total:,}, or of "
                "other candidates: it draws a plan whole."
            )
        step = self.policy.tell(self.state, self._open, came := self._received(seen))
        self._contradicted.append(self._repeats.after(came))
        self._rows[step.record.round] = step.record
        self._told.append(_pulled(seen))
        self.state, self._open = step.state, None

    def certificate(self) -> Certificate:
        """The answer and what it rests on."""
        deviations = [Deviations(contradicted=one) for one in self._contradicted]
        return answer_of(
            self.policy,
            self.arms,
            self.state,
            minimize=self.minimize,
            rounds=self.trace,
            deviations=deviations,
            end=None,
            measured=self._measured,
        )

    def _measured(self) -> dict[int, int]:
        """arm -> pulls."""
        counts = np.zeros(len(self.ids), np.int64)
        for arms, seen in self._told:
            counts[arms] += seen.counts
        return dict(enumerate(counts.tolist()))

    def study(self) -> Study:
        """The same with a log, for its report and for its certificate's file: made anew by each call."""
        study = Study(self.arms, self.policy, minimize=self.minimize, study_id=REHEARSAL)
        for arms, seen in self._told:
            if (batch := study.ask()) is not None:
                study.tell_simulated(batch, _of_all(arms, seen, len(self.ids)), drawn=True)
        if self._open is not None:
            study.ask()
        return study

    def _received(self, seen: Observations) -> Observations:
        """Totals in the policy's sign, as those that a log gives back: of one row, nothing is added up."""
        noise = self.policy.problem.noise
        if noise.support is not None or not plausible(seen):
            seen = replace(check_sums(seen.counts, seen.sums, seen.squares, noise, self.ids), within=seen.within)
        return received_as_drawn(seen, minimize=self.minimize)


def _pulled(seen: Observations) -> tuple[IntArray, Observations]:
    """(the arms that were pulled, their totals): what a log keeps."""
    arms = np.flatnonzero(seen.counts)
    return arms, seen.mapped(lambda column: column[arms])


def _of_all(arms: IntArray, seen: Observations, num_arms: int) -> Observations:
    """The totals of all arms again."""
    return seen.mapped(lambda column: np.bincount(arms, column, num_arms).astype(column.dtype))


def received_as_drawn(seen: Observations, *, minimize: bool) -> Observations:
    """Totals that were drawn as a policy gets them, of any shape."""
    counts, sums, squares, within, pulled = seen.counts, seen.sums, seen.squares, seen.within, seen.counts > 0
    if squares is not None:  # those of single pulls are known, whatever was told
        squares = np.where(counts == 1, sums**2, np.where(pulled, squares, 0.0))
    sums = np.where(pulled, -sums if minimize else sums, 0.0)
    within = None if within is None else np.where(pulled, within, 0.0)
    return observed(counts, sums, squares, within=known_deviations(counts, within))


def plausible(seen: Observations) -> bool:
    """Whether totals are surely what `check_sums` takes, where the noise has no bounds."""
    if seen.squares is None or seen.counts.dtype != np.int64:
        return False
    fits = np.abs(seen.sums) <= LARGEST_REWARD * (seen.counts > 0)
    fits &= seen.squares <= LARGEST_REWARD**2
    fits &= seen.sums**2 <= seen.squares * seen.counts * (1.0 + 1e-9)
    return bool(fits.all())
