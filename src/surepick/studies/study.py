"""One study: ask what to measure, measure it, tell what came. Its state is a fold over the log, and nothing else."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surepick.errors import InvalidInput, OutOfTurn
from surepick.policies import Policy
from surepick.records import Arms, Certificate, IntArray, Observations, Plan, RoundRecord
from surepick.studies.log import INDEPENDENT_OF_VALUE, Abandoned, Entry, Log, MemoryLog, Planned, Told
from surepick.studies.results import check_rewards, check_sums


@dataclass(slots=True)
class Folded:
    """The log, digested up to `position`.

    Args:
        state: the policy's state after the last closed plan.
        plan: the open plan, None between plans.
        told: what was told of the open plan.
        counts: pulls told of the open plan, shape (K,).
        keys: value of every key seen, so that each counts once.
        trace: the latest record of each round.
        abandoned: reasons given when plans were closed short.
        surplus: plans of which more results came than were asked.
    """

    state: Any
    counts: IntArray
    position: int = 0
    plan: Plan | None = None
    told: list[Told] = field(default_factory=list)
    keys: dict[str, tuple[int, float]] = field(default_factory=dict)
    trace: dict[int, RoundRecord] = field(default_factory=dict)
    abandoned: list[str] = field(default_factory=list)
    surplus: int = 0


class Study:
    """A policy at work on real measurements.

        plan = study.ask()        # what to measure next; None once stopped
        study.tell(ids, rewards)  # what came, in any order and in any part

    Rewards are told in the user's sign and unit; with minimize=True small ones are good. A plan closes when every pull
    that it asked for has been told, or when the rest is abandoned; only then are its results judged.

    Args:
        arms: what is chosen among.
        policy: the algorithm; for the same number of arms.
        minimize: small rewards are good.
        log: where asked and told are kept; in memory by default. A log that is not empty is resumed.

    Raises:
        InvalidInput: the policy is for another number of arms.
    """

    def __init__(self, arms: Arms, policy: Policy[Any], *, minimize: bool = False, log: Log | None = None) -> None:
        if not isinstance(arms, Arms) or not isinstance(policy, Policy):
            raise InvalidInput(f"Study(arms, policy) was given a {type(arms).__name__} and a {type(policy).__name__}.")
        if policy.num_arms != arms.num_arms:
            raise InvalidInput(
                f"the policy is for {policy.num_arms} arms and there are {arms.num_arms}; build it from them."
            )
        self.arms = arms
        self.policy = policy
        self.minimize = minimize
        self._log: Log = MemoryLog() if log is None else log
        self._folded = self._nothing_folded()
        self._index = {name: arm for arm, name in enumerate(arms.ids)}

    def ask(self) -> Plan | None:
        """What to measure next: the open plan, or a new one, or None once the study has stopped."""
        now = self._fold()
        if now.plan is None and not self.policy.stopped(now.state):
            self._log.append(Planned(self.policy.ask(now.state)))
            now = self._fold()
        return None if now.plan is None else replace(now.plan, ids=self.arms.ids)

    def tell(self, ids: Sequence[object], rewards: ArrayLike, keys: Sequence[object] | None = None) -> None:
        """Report single pulls: one row a pull, in any order, any part of the open plan.

        Args:
            ids: n arm ids, each asked by the open plan. More pulls of an asked arm than asked are welcome.
            rewards: n finite rewards in the user's sign and unit.
            keys: n names of the results; a key that was told before is not counted again.

        Raises:
            OutOfTurn: no plan is open.
            InvalidInput: unknown or not asked arm, a reward not finite or outside the declared bounds, lengths that
                differ, a key told before with another value. Nothing is recorded then.
        """
        ids = ids if isinstance(ids, str) or not hasattr(ids, "__iter__") else list(ids)
        arms = self._arms_of(ids)
        values = check_rewards(rewards, self.policy.noise, len(arms), [str(name) for name in ids])
        names = None if keys is None else tuple(str(key) for key in keys)
        if names is not None and len(names) != len(arms):
            raise InvalidInput(
                f"there are {len(names)} keys for {len(arms)} results; give one key per result, or none."
            )
        if names:
            fresh = self._fresh(names, arms, values)
            if not fresh:
                return  # a retry: all of it counts already, perhaps in a plan that has closed
            arms, values, names = arms[fresh], values[fresh], tuple(names[row] for row in fresh)
        self._check_asked(self._open_plan(), arms)
        if len(arms):
            self._log.append(Told(arms, np.ones(len(arms), np.int64), values, values**2, names))
            self._fold()

    def tell_sums(self, counts: ArrayLike, sums: ArrayLike, squares: ArrayLike | None = None) -> None:
        """Report totals per arm.

        Args:
            counts: pulls of each arm, shape (K,), non-negative integers.
            sums: total reward of each arm, shape (K,), in the user's sign and unit.
            squares: total of the squared rewards, shape (K,); None when unknown.

        Raises:
            OutOfTurn, InvalidInput: as in `tell`.
        """
        seen = check_sums(counts, sums, squares, self.policy.noise, self.arms.ids)
        plan = self._open_plan()
        arms = np.flatnonzero(seen.counts)
        self._check_asked(plan, arms)
        if len(arms):
            kept = None if seen.squares is None else seen.squares[arms]
            self._log.append(Told(arms, seen.counts[arms], seen.sums[arms], kept))
            self._fold()

    def abandon(self, reason: str) -> None:
        """Close the open plan with what came; the rest will not be measured, and must not be told if it comes late.

        Valid only if *which* results are missing has nothing to do with their values (a broken instrument, an expired
        lease): say so with the reason "independent-of-value", which the certificate then lists as an assumption. With
        any other reason the verdict becomes heuristic.

        Raises:
            OutOfTurn: no plan is open.
        """
        self._open_plan()
        self._log.append(Abandoned(reason))
        self._fold()

    @property
    def missing(self) -> IntArray:
        """Pulls of the open plan that have not been told yet, shape (K,)."""
        now = self._fold()
        if now.plan is None:
            return np.zeros(self.arms.num_arms, np.int64)
        missing: IntArray = np.maximum(now.plan.counts - now.counts, 0)
        return missing

    @property
    def stopped(self) -> bool:
        """No more measurements are needed."""
        return bool(self.policy.stopped(self._fold().state))

    @property
    def trace(self) -> tuple[RoundRecord, ...]:
        """One record a round; `.active` holds the indices of the arms not ruled out."""
        trace = self._fold().trace
        return tuple(trace[number] for number in sorted(trace))

    def recommend(self) -> str:
        """The id of the arm that would be recommended now."""
        return self.arms.ids[self.policy.recommend(self._fold().state)]

    def certificate(self) -> Certificate:
        """The answer and what it rests on; always given, its verdict says what may be claimed."""
        now = self._fold()
        answer = self.policy.certificate(now.state)
        prepared = self.arms.preparation if self.policy.assumptions else ()
        answer = replace(answer, best_arm=self.arms.ids[answer.arm], minimize=self.minimize, rounds=self.trace)
        return _with_missing(_with_facts(answer, prepared, now.surplus), now.abandoned)

    def _fold(self) -> Folded:
        now = self._folded
        try:
            for entry in self._log.entries(now.position):
                self._apply(now, entry)
                now.position += 1
        except BaseException:  # an entry that was applied by half must not be applied again on top
            self._folded = self._nothing_folded()
            raise
        return now

    def _nothing_folded(self) -> Folded:
        return Folded(self.policy.init(), np.zeros(self.arms.num_arms, np.int64))

    def _apply(self, now: Folded, entry: Entry) -> None:
        if isinstance(entry, Planned):
            now.plan = entry.plan
            return
        if isinstance(entry, Told):
            now.told.append(entry)
            np.add.at(now.counts, entry.arms, entry.pulls)
            if entry.keys is not None:
                now.keys.update(
                    {
                        key: (int(arm), float(total))
                        for key, arm, total in zip(entry.keys, entry.arms, entry.sums, strict=True)
                    }
                )
        if isinstance(entry, Abandoned):
            now.abandoned.append(entry.reason)
        if now.plan is not None and (isinstance(entry, Abandoned) or np.all(now.counts >= now.plan.counts)):
            step = self.policy.tell(now.state, now.plan, self._received(now))
            now.surplus += bool(np.any(now.counts > now.plan.counts))
            now.state, now.plan, now.told = step.state, None, []
            now.counts = np.zeros_like(now.counts)
            now.trace[step.record.round] = step.record

    def _received(self, now: Folded) -> Observations:
        """What was told of the open plan, each total formed exactly, so that the order of arrival changes no bit."""
        sign = -1.0 if self.minimize else 1.0
        if len(now.told) == 1 and len(np.unique(now.told[0].arms)) == len(now.told[0].arms):
            return _single(now.told[0], sign, self.arms.num_arms)
        sums: dict[int, list[float]] = defaultdict(list)
        squares: dict[int, list[float]] = defaultdict(list)
        for told in now.told:
            for row, arm in enumerate(told.arms.tolist()):
                sums[arm].append(float(told.sums[row]))
                if told.squares is not None:
                    squares[arm].append(float(told.squares[row]))
        totals, energies = np.zeros(self.arms.num_arms), np.zeros(self.arms.num_arms)
        for arm, parts in sums.items():
            totals[arm] = sign * math.fsum(parts)
            energies[arm] = math.fsum(squares[arm])
        known = all(told.squares is not None for told in now.told)
        return Observations(now.counts, totals, energies if known else None)

    def _open_plan(self) -> Plan:
        now = self._fold()
        if now.plan is None:
            raise OutOfTurn(
                "the study has stopped; no more results are needed."
                if self.policy.stopped(now.state)
                else "no plan is open: nothing has been asked yet, or all of it has been told; call ask() first, "
                "measure what it says, then tell."
            )
        return now.plan

    def _arms_of(self, ids: Sequence[object]) -> IntArray:
        if isinstance(ids, str) or not hasattr(ids, "__iter__"):
            raise InvalidInput(f"ids is {ids!r}; give a sequence of ids, [{ids!r}] for one.")
        unknown = [str(name) for name in ids if str(name) not in self._index]
        if unknown:
            raise InvalidInput(f"{len(unknown)} ids are not arms of this study, the first is {unknown[0]!r}.")
        return np.array([self._index[str(name)] for name in ids], np.int64)

    def _fresh(self, names: tuple[str, ...], arms: IntArray, values: np.ndarray) -> list[int]:
        seen = dict(self._fold().keys)
        fresh = []
        for row, name in enumerate(names):
            told = (int(arms[row]), float(values[row]))
            if name not in seen:
                seen[name] = told
                fresh.append(row)
            elif seen[name] != told:
                raise InvalidInput(
                    f"key {name!r} was told before as {seen[name][1]:g} of arm {self.arms.ids[seen[name][0]]!r} and "
                    f"now as {told[1]:g} of arm {self.arms.ids[told[0]]!r}; a key names one result."
                )
        return fresh

    def _check_asked(self, plan: Plan, arms: IntArray) -> None:
        stray = arms[plan.counts[arms] == 0]
        if len(stray):
            raise InvalidInput(
                f"{len(stray)} results are of arms that the open plan did not ask for, the first is "
                f"{self.arms.ids[stray[0]]!r}. Which arms are measured must not depend on a hunch, or the certificate "
                "means nothing."
            )


def _single(told: Told, sign: float, num_arms: int) -> Observations:
    counts, sums = np.zeros(num_arms, np.int64), np.zeros(num_arms)
    counts[told.arms] = told.pulls
    sums[told.arms] = sign * told.sums
    if told.squares is None:
        return Observations(counts, sums, None)
    squares = np.zeros(num_arms)
    squares[told.arms] = told.squares
    return Observations(counts, sums, squares)


def _with_facts(answer: Certificate, prepared: tuple[str, ...], surplus: int) -> Certificate:
    """What the study knows and the policy does not: prepared features, and results beyond what was asked."""
    if answer.pulls == 0:
        return answer
    facts = []
    if prepared:
        steps = ", then ".join(prepared)
        facts.append(f"The features were prepared ({steps}); a norm bound refers to the result.")
    if surplus:
        facts.append(
            f"More results came than were asked, in {surplus} plans; how many has nothing to do with any values "
            "seen in the same round."
        )
    return replace(answer, assumptions=(*answer.assumptions, *facts))


def _with_missing(answer: Certificate, reasons: list[str]) -> Certificate:
    """Missing results become an assumption, or take the theorem away."""
    if not reasons:
        return answer
    dubious = [reason for reason in reasons if reason != INDEPENDENT_OF_VALUE]
    if not dubious:
        sentence = (
            f"Plans closed with results missing: {len(reasons)}; which ones are missing has nothing to do with "
            "their values."
        )
        return replace(answer, assumptions=(*answer.assumptions, sentence))
    if answer.verdict != "certified":
        return answer
    return replace(
        answer,
        verdict="heuristic",
        reason=f"A plan was closed short ({dubious[0]!r}), which may depend on the values. {answer.reason}",
    )
