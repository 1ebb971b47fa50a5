"""What is done to a study beside asking and telling: leases, and every deviation from what its policy asked.

Each verb is written here once; `Study` inherits them. What a certificate says of them is in `deviations.py`.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from surepick.core.plans import Plan
from surepick.core.records import IntArray, record
from surepick.core.values import storable_text, text_of, whole_number
from surepick.errors import InvalidInput, OutOfTurn
from surepick.policies.base import name_of
from surepick.studies.ledger import Batch, StudyLog
from surepick.studies.logs import base
from surepick.studies.logs.keys import normal_form
from surepick.studies.logs.open_plan import LeaseProgress, OpenPlan
from surepick.studies.validation import check_rewards, checked_reason, source
from surepick.text import quoted

USUAL_LEASE = "8h"
BACKWARDS = 120.0  # seconds that the clock of one writer may be behind that of another
LONGEST_PAUSE = 366 * 86_400.0  # seconds without an entry; a clock that is ahead by years takes all leases of others
NO_REASON = "a typing error"
CLOSED = "its round is closed. What was read can take its place: surepick correct (Study.correct)."


@record
class Corrected:
    """What was read took the place of what was typed."""

    id: str  # of the candidate
    typed: float  # what counted before, in the user's sign and unit
    read: float  # what counts in its place
    plan: int  # number of the plan that the result is of
    waits: int  # number of the open plan, with which it will count; 0: it counts already


class Operations:
    """The verbs of a study, over its log."""

    ids: tuple[str, ...]
    _ledger: StudyLog

    def lease(
        self,
        max_pulls: int | None = None,
        *,
        worker: str | None = None,
        duration: str | float | None = None,
        trust_clock: bool = False,
    ) -> Batch | None:
        """A part of the open plan for one worker: nobody else is given these pulls before the lease has run out.

        A worker who holds a lease is given what is left of it.

        Raises InvalidInput if max_pulls is no positive whole number, or the worker's name or the duration is none,
        OutOfTurn if the clock is behind the latest entry of the study, or a year ahead, so that we cannot judge leases.
        """
        name, seconds = lease_terms(max_pulls, worker, duration)
        ledger, log = self._ledger, self._ledger.log
        while (planned := ledger.open_plan()) is not None:
            with ledger.turn():
                now = log.clock() if trust_clock else checked_time(log)
                open_plan = ledger.replay.look(planned)
                if not open_plan.takes_results:
                    continue  # others closed it meanwhile
                held = open_plan.held_by(name, now)
                if held is None:
                    most, alike = max_pulls, ledger.blocking is not None
                    if most is not None and planned.plan.first_items is not None:
                        most = whole_arms(open_plan.free(now), most)
                    leased = open_plan.grant(name, most, now=now, until=now + seconds, alike=alike)
                    if leased is None:
                        return ledger.batch(planned, np.zeros_like(open_plan.asked))
                    log.add_lease(leased, now)
                    held = LeaseProgress(leased, np.zeros_like(open_plan.asked))
                return self._rest(open_plan, held)
        return None

    def free_part(self) -> Batch | None:
        """The pulls of the open plan that are not in and that nobody holds a lease on; None once stopped."""
        planned, ledger = self._ledger.open_plan(), self._ledger
        return None if planned is None else ledger.batch(planned, ledger.replay.look(planned).free(ledger.log.clock()))

    def held(self, worker: str) -> Batch | None:
        """What is left of a worker's lease, as `lease` gives it again; None without one. Nothing is written."""
        log, planned = self._ledger.log, self._ledger.log.last_plan()
        open_plan = None if planned is None else self._ledger.replay.look(planned)
        if open_plan is None or not open_plan.takes_results:
            return None
        held = open_plan.held_by(worker, log.clock())
        return None if held is None else self._rest(open_plan, held)

    def _rest(self, open_plan: OpenPlan, held: LeaseProgress) -> Batch:
        """What is left of a lease, as a batch of the keys without a result."""
        ledger, planned, left = self._ledger, open_plan.planned, open_plan.wanted_of(held)
        if planned.plan.first_items is not None:
            return ledger.batch(planned, left, lease=held.lease)
        ordinals = [np.empty(0, np.int64)]
        for arm in np.flatnonzero(left).tolist():
            first = int(held.leased.first[arm])
            mine = np.arange(first, first + int(held.leased.counts[arm]))
            if held.done[arm]:
                keys = [base.pull_key(planned.number, ordinal, self.ids[arm]) for ordinal in mine.tolist()]
                recorded = {*ledger.log.recorded(keys), *open_plan.failed_keys}
                mine = mine[[key not in recorded for key in keys]]
            ordinals.append(mine[: left[arm]])
            left[arm] = len(ordinals[-1])
        flat = np.concatenate(ordinals)
        batch = Batch.of(planned.plan, self.ids, planned.number, counts=left, lease=held.lease, ordinals=flat)
        return ledger.in_blocks(batch, int(held.done.sum()), planned.plan.counts)

    def release(self, worker: str) -> int:
        """Give back all that a worker holds: it is offered to others at once. Results that come after all count."""
        ledger, pulls = self._ledger, 0
        with ledger.turn():
            (planned, open_plan), now = ledger.taking(), ledger.log.clock()
            for held in open_plan.running(now):
                if held.lease.worker != worker and not held.lease.worker.startswith(f"{worker}/"):
                    continue
                left, number = held.left, held.lease.number
                for arm in np.flatnonzero(left).tolist():
                    pulls += int(left[arm])
                    ledger.log.add_event(base.Event(base.FAILED, planned.number, arm, int(left[arm]), number, "", now))
        return pulls

    def undo(self, keys: Sequence[object] | None = None, *, worker: str | None = None, reason: str = "") -> list[str]:
        """Take back results of the open round that were typed wrongly; their measurements are wanted again.

        Nothing was judged on them, and the log keeps them with the reason. Report the right ones afterwards, under the
        same keys if they have some. Valid only if a result is taken back because it is not what was read, whatever its
        value; the certificate says how many were.

        Raises OutOfTurn if there is nothing to undo, or the round of a result is closed; InvalidInput for a key that no
        result has, or that somebody else reported.
        """
        why, log = checked_reason(reason) or NO_REASON, self._ledger.log
        if keys is not None and (isinstance(keys, str | bytes) or not hasattr(keys, "__iter__")):
            raise InvalidInput(f"keys is {quoted(keys)}; give a sequence of keys, [{quoted(keys)}] for one.")
        wanted = [normal_form(storable_text("a key", text_of("a key", key))) for key in keys or ()]
        whose = {"", base.ANYONE} if worker is None else {source(worker)}
        with self._ledger.turn():
            planned = log.last_plan()
            is_open = planned is not None and self._ledger.replay.look(planned).takes_results
            there = log.reported(planned.number, None) if planned is not None and is_open else []
            own = [one for one in there if one.source in whose]
            if keys is None and not own:
                you = "you" if worker is None else quoted(worker)
                raise OutOfTurn(
                    f"nothing that {you} reported in the open round is left to undo. Nothing was changed."
                    if is_open
                    else f"no round is open. If a result is not what was read, {CLOSED}"
                )
            chosen = own[-1:] if keys is None else [self._found(key, own, there) for key in dict.fromkeys(wanted)]
            number, now = 0 if planned is None else planned.number, log.clock()
            for one in chosen:
                log.add_event(base.Event(base.UNDONE, number, one.arm, one.pulls, one.lease, why, now, one.number))
        return [self.ids[one.arm] for one in chosen]

    def _found(self, key: str, own: Sequence[base.Reported], there: Sequence[base.Reported]) -> base.Reported:
        """The result of that key among one's own; `there`: all of the open round."""
        for one in own:
            if one.key is not None and normal_form(one.key) == key:
                return one
        stored = self._ledger.log.recorded([key]).get(key)
        if stored is None:
            raise InvalidInput(f"no result has the key {quoted(key)}, or it was undone already. Nothing was changed.")
        if stored.status != base.COUNTED:
            raise OutOfTurn(f"the result {quoted(key)} is kept apart and enters nothing, so there is nothing to undo.")
        if any(one.key == key for one in there):
            raise InvalidInput(
                f"the result {quoted(key)} was not reported under this name: only whoever reported a result may undo "
                "it (worker, --worker). Nothing was changed."
            )
        raise OutOfTurn(f"the result {quoted(key)} counts, and {CLOSED}")

    def correct(
        self, key: object, value: float, *, typed: float | None = None, worker: str | None = None, reason: str = ""
    ) -> Corrected:
        """Put what was read in the place of a result that was typed wrongly, after its round was closed.

        What was planned stays planned; all that the study says rests on what was read: at once, or where a round is
        open once that is closed. Valid only if `value` was read for this very measurement, and a result is corrected
        because it is not what was read, whatever its value; the certificate says how many were.

        Args:
            key: of the result; or the id of its candidate, if it has one result or `typed` says which.
            value: what was read, in the user's sign and unit.
            typed: what was typed; None: not said.
            worker: who reported it: nobody corrects the results of others.
            reason: why, for the record.

        Raises OutOfTurn if its round is open (`undo` it) or the study was closed early; InvalidInput if no result is
        meant, or several are, or somebody else reported it, for a value that it cannot have, or where the policy cannot
        judge corrected results. Source: docs/certified-elimination.md, line 37.
        """
        ledger, why = self._ledger, checked_reason(reason) or NO_REASON
        log, replay, whose = ledger.log, ledger.replay, {"", base.ANYONE} if worker is None else {source(worker)}
        name = normal_form(storable_text("a key", text_of("a key", key)))
        if not replay.policy.traits.corrects:
            raise InvalidInput(
                f"{name_of(replay.policy)} cannot judge corrected results: what it ruled out because of the typed one "
                "was not measured any more. The policies that start with certified- can, but for certified-neural. "
                "Close this study, and begin another with fresh measurements."
            )
        while True:
            head = replay.settle()
            judged, ended = head.decision.plan, log.ended()
            if ended is not None:
                raise OutOfTurn(
                    f"the study was closed on {base.format_time(ended.at)}, and what it says stays as it is. To be "
                    "sure, begin another, with fresh measurements. Nothing was changed."
                )
            if head.refusal:
                raise OutOfTurn(head.refusal)
            with ledger.turn():
                planned, last, number = log.last_plan(), log.last_decision(), judged + 1
                is_open = planned is not None and planned.number == number
                if last is None or last.plan != judged or (planned and is_open != replay.look(planned).takes_results):
                    continue  # others went on meanwhile
                one, now = self._meant(name, typed, whose, judged), log.clock()
                read = float(check_rewards([value], ledger.noise, 1, [self.ids[one.arm]])[0])
                if read == one.total:
                    raise InvalidInput(f"the result {quoted(name)} is {read:.12g} already. Nothing was changed.")
                if planned is not None and not is_open:  # a plan of nothing, which is judged with what was read
                    log.add_plan(base.Planned(number, _nothing(planned.plan, replay.state_of(last).round), now))
                made = (number, one.number, one.plan, one.arm, one.total, read, why, source(worker), now)
                log.add_correction(base.Correction(*made))
                if not is_open:
                    log.add_event(base.Event(base.CLOSED, number, at=now))
                break
        replay.settle()
        return Corrected(self.ids[one.arm], one.total, read, one.plan, number if is_open else 0)

    def _meant(self, name: str, typed: float | None, whose: set[str], judged: int) -> base.Reported:
        """The result of a judged plan of that key, or of the candidate of that id, with the value that counts."""
        log, arm = self._ledger.log, self.ids.index(name) if name in self.ids else -1
        now = {one.result: one.read for one in log.corrections()}
        found = [replace(one, total=now.get(one.number, one.total)) for one in log.named(name, arm)]
        found = [one for one in found if one.plan <= judged or one.source in whose]  # no open ones of others
        found = [one for one in found if one.key == name] or found
        wanted = [one for one in found if typed is None or one.total == typed]
        if not wanted:
            stored, of = log.recorded([name]).get(name), "" if typed is None else f" that counts as {typed:.12g}"
            if stored is not None and stored.status != base.COUNTED:
                raise OutOfTurn(f"the result {quoted(name)} is kept apart and enters nothing: nothing is to correct.")
            raise InvalidInput(
                f"no result has the key, or is of the candidate, {quoted(name)}{of}. Nothing was changed."
            )
        alike = (
            typed is not None and self._ledger.blocking is None and len({(one.plan, one.source) for one in wanted}) == 1
        )
        if len(wanted) > 1 and not alike:
            raise InvalidInput(
                f"{len(wanted)} results are of {quoted(name)}: say which, by its key, or by what was typed (--typed "
                "VALUE, typed=...). Nothing was changed."
            )
        one, why = wanted[0], ""
        if one.plan > judged:
            raise OutOfTurn(
                f"the round of the result {quoted(name)} is open: take it back (surepick undo), and tell what was read "
                "under the same key. Nothing was changed."
            )
        if one.pulls > 1:
            why = f"adds up {one.pulls} measurements, and one that is told by itself can be corrected"
        if one.source not in whose:
            why = "was not reported under this name: only whoever reported a result may correct it (worker, --worker)"
        if why:
            raise InvalidInput(f"the result {quoted(name)} {why}. Nothing was changed.")
        return one

    def abandon(self, reason: str, ids: Sequence[object] | None = None) -> None:
        """Do not measure the rest of the open plan, or the rest of some arms; it closes once nothing else is wanted.

        Valid only if *which* results are missing has nothing to do with their values (a broken instrument, a lost
        sample): say so with the reason "independent-of-value", which the certificate then lists as an assumption. With
        any other reason the verdict becomes heuristic.

        Raises OutOfTurn if no plan is open, InvalidInput for an empty reason or an unknown id.
        """
        ledger, why = self._ledger, checked_reason(reason)
        if not why:
            raise InvalidInput(
                "an abandonment needs its reason: independent-of-value if which results are missing has nothing to do "
                "with their values, else what happened."
            )
        arms = range(len(self.ids)) if ids is None else np.unique(ledger.arms_of(ids)[0]).tolist()
        with ledger.turn():
            planned, open_plan = ledger.taking()
            missing, now = open_plan.missing, ledger.log.clock()
            for arm in [arm for arm in arms if missing[arm] > 0]:
                ledger.log.add_event(base.Event(base.ABANDONED, planned.number, arm, int(missing[arm]), 0, why, now))
            self._close_complete(planned, now)
        ledger.replay.settle()

    def _close_complete(self, planned: base.Planned, now: float) -> None:
        """Close the plan if nothing of it is wanted any more."""
        if not self._ledger.replay.look(planned).missing.any():
            self._ledger.log.add_event(base.Event(base.CLOSED, planned.number, at=now))

    def withdraw(self, ids: Sequence[object], reason: str) -> None:
        """Go on without some arms: from the next plan on they are neither measured nor recommended.

        Raises OutOfTurn if the study has stopped, InvalidInput for an empty reason, an unknown id, if no arm would be
        left, or where the policy cannot go on without an arm.
        """
        why, ledger = checked_reason(reason), self._ledger
        log, policy = ledger.log, ledger.replay.policy
        if not why:
            raise InvalidInput(
                "a withdrawal needs its reason: independent-of-value if which candidate goes, and when, has nothing to "
                "do with results, else what happened."
            )
        if policy.traits.withdraw is None:
            raise InvalidInput(
                f"{name_of(policy)} cannot go on without a candidate here. certified-linear, certified-kernel and "
                "certified-independent can, with evidence='carried', for the best candidate, without blocks or test "
                "items, and with features only where the noise scale is declared. Close this study, and start one "
                "without it."
            )
        arms = np.unique(ledger.arms_of(ids)[0]).tolist()

        def withdrawn(open_plan: OpenPlan) -> None:
            decision = log.last_decision()
            row = None if decision is None else decision.row
            before = [] if row is None or row.withdrawn is None else row.withdrawn.tolist()
            gone, later = {*open_plan.withdrawn, *before}, self._waiting() | open_plan.added.keys()
            early = [self.ids[arm] for arm in arms if arm in later]
            if early:
                raise InvalidInput(f"{early[0]!r} is not there yet, so that it cannot go.")
            if len(gone.union(arms, later)) == len(self.ids):
                raise InvalidInput("all candidates would be withdrawn; close the study instead (surepick close).")
            number, missing, now = open_plan.planned.number, open_plan.missing, log.clock()
            for arm in [arm for arm in arms if arm not in gone]:
                log.add_event(base.Event(base.WITHDRAWN, number, arm, reason=why, at=now))
                if why == base.INDEPENDENT_OF_VALUE and missing[arm] > 0:
                    log.add_event(base.Event(base.ABANDONED, number, arm, int(missing[arm]), 0, why, now))
            self._close_complete(open_plan.planned, now)

        self._while_open(withdrawn)
        ledger.replay.settle()

    def add(self, ids: Sequence[object]) -> None:
        """From the next plan on some of the arms that were declared to come `later` are there, for whatever reason.

        Raises OutOfTurn if the study has stopped, InvalidInput for arms that are there or were not declared.
        """
        arms, log = np.unique(self._ledger.arms_of(ids)[0]).tolist(), self._ledger.log
        if not self._ledger.replay.policy.traits.later:
            raise InvalidInput(
                "this study was not told that candidates may come, and a share of delta must be set aside for them "
                "before the first result: begin one with later=[...] (surepick create --later ID), which has them in "
                "its list."
            )

        def added(open_plan: OpenPlan) -> None:
            waiting, now = self._waiting(), log.clock()
            there = [self.ids[arm] for arm in arms if arm not in waiting]
            if there:
                raise InvalidInput(f"{there[0]!r} is there already, or was not declared to come later.")
            for arm in [arm for arm in arms if arm not in open_plan.added]:
                log.add_event(base.Event(base.ADDED, open_plan.planned.number, arm, at=now))

        self._while_open(added)

    def _waiting(self) -> set[int]:
        """The arms that may still come, but for those that come with the next plan."""
        come = (one.arm for decision in self._ledger.log.decisions() for one in decision.deviations.added)
        later = self._ledger.replay.policy.traits.later
        return set(later).difference(come) if later else set()

    def _while_open(self, act: Callable[[OpenPlan], None]) -> None:
        """Act on the open plan in a turn; once more if others closed it meanwhile."""
        ledger = self._ledger
        while True:
            planned = ledger.open_plan()
            if planned is None:
                raise OutOfTurn(ledger.why_closed())
            with ledger.turn():
                current, open_plan = ledger.log.last_plan(), ledger.replay.look(planned)
                if current is not None and current.number == planned.number and open_plan.takes_results:
                    act(open_plan)
                    return

    def interim(self) -> bool:
        """Judge what is in of the open plan; `ask` makes a new one, and what comes later counts with its results.

        Valid only if which results are in, and the moment, do not depend on values that were not judged before.

        Raises InvalidInput where the study judges closed rounds.
        """
        ledger = self._ledger
        if not ledger.in_parts:
            raise InvalidInput(
                "this study judges closed rounds: it was not promised that parts of them would be looked at. A study "
                "that begins with judge='as they come' (surepick create --judge as-they-come) judges what is in."
            )
        with ledger.turn():
            planned = ledger.log.last_plan()
            open_plan = None if planned is None else ledger.replay.look(planned)
            ready = open_plan is not None and open_plan.takes_results and bool(open_plan.recorded.any())
            if planned is not None and ready:
                part = base.Event(base.CLOSED, planned.number, reason=base.AS_THEY_COME, at=ledger.log.clock())
                ledger.log.add_event(part)
        ledger.replay.settle()
        return ready

    def close(self, reason: str = "") -> None:
        """End the study before its policy would; results of the open plan are not used. Nothing changes if it ended.

        The certificate then says what the closed plans prove, and what more it would have taken.
        """
        log, replay = self._ledger.log, self._ledger.replay
        while not (head := replay.settle()).decision.stopped:
            with self._ledger.turn():
                planned, decision = log.last_plan(), log.last_decision()
                judged = -1 if decision is None else decision.plan
                waits = planned is not None and planned.number > judged and replay.look(planned).closed
                if waits and not head.refusal:
                    continue  # its last result came meanwhile: it may have stopped the study
                if log.ended() is None and log.corrections(judged + 1):
                    raise OutOfTurn(
                        "a correction waits for the open round, and would not count. Give up what is missing of it "
                        "(surepick abandon, with the reason independent-of-value), then close the study."
                    )
                if log.ended() is None:
                    log.add_event(base.Event(base.ENDED, 0, reason=checked_reason(reason), at=log.clock()))
                return


def _nothing(plan: Plan, round_number: int) -> Plan:
    """A plan like another one that asks for nothing."""
    like = (plan.dim, None, None, None, plan.misspecification, plan.candidate, None, plan.first_items)
    return Plan(round_number, np.zeros_like(plan.counts), 1, 1, None, *like)


def lease_terms(max_pulls: int | None, worker: str | None, duration: str | float | None) -> tuple[str, float]:
    """(worker, seconds) of a lease that is asked for."""
    if max_pulls is not None:
        whole_number("max_pulls", max_pulls, least=1, meaning="the pulls that are leased.")
    name = base.ANYONE if worker is None else worker
    if not isinstance(name, str) or not name.strip():
        raise InvalidInput(f"worker is {quoted(worker)}; give a name, so that we know who holds the lease.")
    return storable_text("worker", name), base.parse_duration(USUAL_LEASE if duration is None else duration)


def checked_time(log: base.Log) -> float:
    """The time, if leases can be judged by it."""
    now, latest = log.clock(), log.latest_time()
    if now < latest - BACKWARDS:
        raise OutOfTurn(
            f"Clock skew: it is {base.format_time(now)}, but the latest entry of this study is from "
            f"{base.format_time(latest)}. Leases need consistent clocks, so none was granted. Fix the clock (results "
            "can still be reported), or pass --trust-clock (lease(..., trust_clock=True)) if the earlier entries are "
            "wrong."
        )
    if latest > 0.0 and now > latest + LONGEST_PAUSE:
        raise OutOfTurn(
            f"Clock skew: it is {base.format_time(now)} here, more than a year after the latest entry of this study "
            f"({base.format_time(latest)}), so every lease of others would have run out. None was granted. Fix the "
            "clock, or pass --trust-clock (lease(..., trust_clock=True)) if the study rested for so long."
        )
    return now


def whole_arms(free: IntArray, most: int) -> int:
    """Of the free pulls, shape (K,), those of the first arms that need at most so many; an arm is answered by one."""
    ends = np.cumsum(free[free > 0])
    fitting = ends[ends <= most]
    return int(fitting[-1] if len(fitting) else ends[0]) if len(ends) else most
