"""Deviations from what a policy asked: parts, pulls given up, early ends, and what the certificate says of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from surepick.core.arms import Arms
from surepick.core.certificate import Certificate
from surepick.core.plans import Plan, RoundRecord, Step
from surepick.core.records import record
from surepick.core.values import storable_text, text_of
from surepick.errors import InvalidInput, OutOfTurn
from surepick.policies.base import Policy, name_of
from surepick.policies.prices import Costs
from surepick.policies.verdict import certificate_of
from surepick.studies.ledger import StudyLog
from surepick.studies.logs import base
from surepick.studies.logs.keys import normal_form
from surepick.studies.progress import times
from surepick.studies.replay import relisted
from surepick.studies.validation import checked_reason, source
from surepick.text import quoted

AS_THEY_CAME = (
    "Results were judged in parts, as they came: which results are in a part, and when it is judged, does not depend "
    "on values that were not judged before."
)


def with_deviations(
    answer: Certificate,
    prepared: tuple[str, ...],
    deviations: Sequence[base.Deviations],
    judge: str = base.CLOSED_ROUNDS,
) -> Certificate:
    """The answer with prepared features, parts, surplus, repeated and missing results among its assumptions.

    Missing results become an assumption when they are declared to be independent of their values, and otherwise take
    the theorem away.
    """
    told = _with_missing(_with_facts(answer, prepared, deviations, judge), deviations)
    return _with_withdrawn(_with_contradicted(told, deviations), deviations)


def _with_facts(
    answer: Certificate, prepared: tuple[str, ...], deviations: Sequence[base.Deviations], judge: str
) -> Certificate:
    if answer.pulls == 0:
        return answer
    facts = []
    if prepared:
        steps = ", then ".join(prepared)
        facts.append(f"The features were prepared ({steps}); a norm bound refers to the result.")
    surplus = sum(one.surplus for one in deviations)
    if judge == base.AS_THEY_COME:
        facts.append(AS_THEY_CAME)  # and so of the results beyond what was asked
    elif surplus:
        facts.append(
            f"More results came than were asked, in {times(surplus, 'plan')}; how many has nothing to do with any "
            "values seen in the same round."
        )
    repeated = sum(one.repeated for one in deviations)
    if repeated:
        facts.append(
            f"Measurements that failed or did not come in time and were asked again: {repeated}; whether one fails or "
            "is late has nothing to do with its value."
        )
    facts += _of_entry(deviations)
    return replace(answer, assumptions=(*answer.assumptions, *facts))


def _of_entry(deviations: Sequence[base.Deviations]) -> list[str]:
    """What was asked about, or taken back, when results were reported."""
    undone, confirmed = sum(one.undone for one in deviations), sum(one.confirmed for one in deviations)
    unasked = sum(one.unasked for one in deviations)
    facts = []
    if undone:
        facts.append(
            f"{times(undone, 'result')} taken back by whoever reported them, while their round was open: because each "
            "was not what was read, whatever its value."
        )
    if confirmed:
        facts.append(
            f"{times(confirmed, 'unusual result')} confirmed by whoever reported them, and used like all others; where "
            "the answer was a correction, it was of a typing error, whatever the value."
        )
    if unasked:
        facts.append(
            f"{times(unasked, 'unusual result')} of a program, about which nobody was asked, used like all others."
        )
    return facts


def _with_missing(answer: Certificate, deviations: Sequence[base.Deviations]) -> Certificate:
    reasons = [one.abandoned for one in deviations if one.abandoned]
    if not reasons:
        return answer
    dubious = [reason for given in reasons for reason in given if reason != base.INDEPENDENT_OF_VALUE]
    if not dubious:
        sentence = (
            f"Plans closed with results missing: {len(reasons)}; which ones are missing has nothing to do with "
            "their values."
        )
        return replace(answer, assumptions=(*answer.assumptions, sentence))
    return replace(
        answer,
        verdict="heuristic" if answer.verdict == "certified" else answer.verdict,
        certified_gap=None,
        reason=f"A plan was closed short ({dubious[0]!r}), which may depend on the values. {answer.reason}",
    )


def _with_contradicted(answer: Certificate, deviations: Sequence[base.Deviations]) -> Certificate:
    """The answer without a theorem, where repeats contradict the declared noise.

    Source: docs/certified-elimination.md, line 35.
    """
    found = next((one.contradicted for one in deviations if one.contradicted), None)
    if found is None:
        return answer
    return replace(
        answer,
        verdict="heuristic" if answer.verdict == "certified" else answer.verdict,
        certified_gap=None,
        reason=f"The data speak against the declared noise: {found}. Look at these measurements, and start anew, with "
        f"fresh ones, and a scale that holds. {answer.reason}",
    )


def _with_withdrawn(answer: Certificate, deviations: Sequence[base.Deviations]) -> Certificate:
    """What is said of candidates that were withdrawn.

    Source: docs/changing-candidates.md, lines 29 and 30.
    """
    gone = [each for one in deviations for each in one.withdrawn]
    come = sum(len(one.added) for one in deviations)
    if come:
        words = f"{times(come, 'candidate')} added while the study ran, with the share of delta that was set aside."
        answer = replace(answer, reason=f"{answer.reason} {words}")
    dropped = [each for each in gone if each.independent]
    others = [each for each in gone if not each.independent]
    if dropped:
        sentence = (
            f"{times(len(dropped), 'candidate')} withdrawn between "
            f"{base.to_the_minute(min(each.at for each in dropped))} and "
            f"{base.to_the_minute(max(each.at for each in dropped))}: which ones, and when, has nothing to do with "
            "results. The promise is about the others; each list of candidates that the study had has a delta of its "
            "own."
        )
        assumptions = (*answer.assumptions, sentence)
        left_out = {*(answer.dropped or ()), *(each.arm for each in dropped)}
        answer = replace(answer, assumptions=assumptions, dropped=tuple(sorted(left_out)))
    if others:
        reasons = ", ".join(sorted({repr(each.reason) for each in others}))
        answer = replace(
            answer,
            reason=f"{answer.reason} {times(len(others), 'candidate')} withdrawn ({reasons}), and compared like all "
            "others with what was measured of them.",
        )
    return answer


@record
class EarlyEnd:
    """A study was closed before its policy stopped.

    Args:
        reason: why, in the user's words; may be empty.
        at: when, seconds since 1970 (UTC).
        missing: pulls that were not in, of the plan that was open or would have been next.
        predicted: how many were predicted to be enough, None where that is not known.
        withdrawn: the arms that would not have been asked for after the open plan any more.
    """

    reason: str
    at: float
    missing: int
    predicted: float | None
    withdrawn: tuple[base.Withdrawal, ...] = ()

    @staticmethod
    def of(ended: base.Event, plan: Plan, missing: int, withdrawn: tuple[base.Withdrawal, ...] = ()) -> EarlyEnd:
        """The end, when `missing` pulls of that plan were not in."""
        predicted = None if plan.predicted_pulls is None else max(plan.predicted_pulls, missing)
        return EarlyEnd(ended.reason, ended.at, missing, predicted, withdrawn)


def with_early_end(answer: Certificate, end: EarlyEnd) -> Certificate:
    """The answer of a study that was closed before its policy stopped, and what more it would have taken."""
    why = f" ({end.reason})" if end.reason else ""
    more = f"The next batch would have taken {times(end.missing, 'more measurement')}"
    if end.predicted is not None:
        more += f", and about {end.predicted:,.0f} were predicted to be enough"
    return replace(answer, reason=f"{answer.reason} The study was closed on {base.to_the_minute(end.at)}{why}. {more}.")


def abandon_open(ledger: StudyLog, reason: str, ids: Sequence[object] | None) -> None:
    """As `Study.abandon`, which has the arguments."""
    why = checked_reason(reason)
    if not why:
        raise InvalidInput(
            "an abandonment needs its reason: independent-of-value if which results are missing has nothing to do "
            "with their values, else what happened."
        )
    arms = np.arange(len(ledger.ids)) if ids is None else np.unique(ledger.arms_of(ids)[0])
    with ledger.turn():
        planned, open_plan = ledger.taking()
        missing, now = open_plan.missing, ledger.log.clock()
        for arm in arms[missing[arms] > 0].tolist():
            ledger.log.add_event(base.Event(base.ABANDONED, planned.number, arm, int(missing[arm]), 0, why, now))
        if not ledger.replay.look(planned).missing.any():
            ledger.log.add_event(base.Event(base.CLOSED, planned.number, at=now))
    ledger.replay.settle()


def withdraw_ids(ledger: StudyLog, ids: Sequence[object], reason: str) -> None:
    """As `Study.withdraw`, which has the arguments."""
    why, policy = checked_reason(reason), ledger.replay.policy
    if not why:
        raise InvalidInput(
            "a withdrawal needs its reason: independent-of-value if which candidate goes, and when, has nothing to do "
            "with results, else what happened."
        )
    if policy.traits.withdraw is None:
        raise InvalidInput(
            f"{name_of(policy)} cannot go on without a candidate here. certified-linear, certified-kernel and "
            "certified-independent can, with evidence='carried', for the best candidate, without blocks or test items, "
            "and with features only where the noise scale is declared. Close this study, and start one without it."
        )
    arms = np.unique(ledger.arms_of(ids)[0]).tolist()
    while not _withdrawn(ledger, arms, why):
        pass
    ledger.replay.settle()


def _withdrawn(ledger: StudyLog, arms: Sequence[int], why: str) -> bool:
    """Whether it was recorded; not if others closed the plan meanwhile."""
    planned, log = ledger.open_plan(), ledger.log
    if planned is None:
        raise OutOfTurn(ledger.why_closed())
    with ledger.turn():
        current, decision = log.last_plan(), log.last_decision()
        open_plan = ledger.replay.look(planned)
        if current is None or current.number != planned.number or not open_plan.takes_results:
            return False
        gone, waiting = {*open_plan.withdrawn, *_gone(decision)}, _waiting(ledger)
        early = [ledger.ids[arm] for arm in arms if arm in waiting or arm in open_plan.added]
        if early:
            raise InvalidInput(f"{early[0]!r} is not there yet, so that it cannot go.")
        if len(gone.union(arms, waiting, open_plan.added)) == len(ledger.ids):
            raise InvalidInput("all candidates would be withdrawn; close the study instead (surepick close).")
        missing, now = open_plan.missing, log.clock()
        for arm in [arm for arm in arms if arm not in gone]:
            log.add_event(base.Event(base.WITHDRAWN, planned.number, arm, reason=why, at=now))
            if why == base.INDEPENDENT_OF_VALUE and missing[arm] > 0:
                log.add_event(base.Event(base.ABANDONED, planned.number, arm, int(missing[arm]), 0, why, now))
        if not ledger.replay.look(planned).missing.any():
            log.add_event(base.Event(base.CLOSED, planned.number, at=now))
    return True


def _gone(decision: base.Decision | None) -> list[int]:
    """The arms that went before that decision."""
    row = None if decision is None else decision.row
    return [] if row is None or row.withdrawn is None else row.withdrawn.tolist()


def _waiting(ledger: StudyLog) -> set[int]:
    """The arms that may still come, but for those that come with the next plan."""
    come = (one.arm for decision in ledger.log.decisions() for one in decision.deviations.added)
    later = ledger.replay.policy.traits.later
    return set(later).difference(come) if later else set()


def add_declared(ledger: StudyLog, ids: Sequence[object]) -> None:
    """As `Study.add`, which has the arguments."""
    arms, log = np.unique(ledger.arms_of(ids)[0]).tolist(), ledger.log
    if not ledger.replay.policy.traits.later:
        raise InvalidInput(
            "this study was not told that candidates may come, and a share of delta must be set aside for them before "
            "the first result: begin one with later=[...] (surepick create --later ID), which has them in its list."
        )
    while True:
        planned = ledger.open_plan()
        if planned is None:
            raise OutOfTurn(ledger.why_closed())
        with ledger.turn():
            current, open_plan = log.last_plan(), ledger.replay.look(planned)
            if current is None or current.number != planned.number or not open_plan.takes_results:
                continue
            waiting, now = _waiting(ledger), log.clock()
            there = [ledger.ids[arm] for arm in arms if arm not in waiting]
            if there:
                raise InvalidInput(f"{there[0]!r} is there already, or was not declared to come later.")
            for arm in [arm for arm in arms if arm not in open_plan.added]:
                log.add_event(base.Event(base.ADDED, planned.number, arm, at=now))
            return


def judge_part(ledger: StudyLog) -> bool:
    """As `Study.judge`, which has the arguments."""
    if not ledger.in_parts:
        raise InvalidInput(
            "this study judges closed rounds: it was not promised that parts of them would be looked at. A study that "
            "begins with judge='as they come' (surepick create --judge as-they-come) judges what is in."
        )
    with ledger.turn():
        planned = ledger.log.last_plan()
        open_plan = None if planned is None else ledger.replay.look(planned)
        ready = open_plan is not None and open_plan.takes_results and bool(open_plan.recorded.any())
        if planned is not None and ready:
            ledger.log.add_event(
                base.Event(base.CLOSED, planned.number, reason=base.AS_THEY_COME, at=ledger.log.clock())
            )
    ledger.replay.settle()
    return ready


def close_open(ledger: StudyLog, reason: str) -> None:
    """As `Study.close`, which has the arguments."""
    log, replay = ledger.log, ledger.replay
    while not (head := replay.settle()).decision.stopped:
        with ledger.turn():
            planned, decision = log.last_plan(), log.last_decision()
            judged = -1 if decision is None else decision.plan
            waits = planned is not None and planned.number > judged and replay.look(planned).closed
            if waits and not head.refusal:
                continue  # its last result came meanwhile: it may have stopped the study
            if log.ended() is None:
                log.add_event(base.Event(base.ENDED, 0, reason=checked_reason(reason), at=log.clock()))
            return


def early_end(ledger: StudyLog) -> EarlyEnd | None:
    """How the study was closed before its policy stopped; None if it was not."""
    head, ended = ledger.replay.settle(), ledger.log.ended()
    if ended is None or head.decision.stopped:
        return None
    if head.planned is not None:
        open_plan = ledger.replay.look(head.planned)
        gone = open_plan.deviations.withdrawn
        return EarlyEnd.of(ended, head.planned.plan, int(open_plan.missing.sum()), gone)
    plan = ledger.replay.policy.ask(ledger.replay.state_of(head.decision))
    return EarlyEnd.of(ended, plan, plan.total)


def recommended(ledger: StudyLog) -> str:
    """As `Study.recommend`."""
    head, replay = ledger.replay.settle(), ledger.replay
    leader = head.decision.leader
    if head.planned is not None and leader in (open_plan := replay.look(head.planned)).withdrawn:
        step = Step.at(replay.state_of(head.decision))
        leader = replay.policy.claim(relisted(replay.policy, step, open_plan.deviations).state).leader
    return ledger.ids[leader]


def study_certificate(ledger: StudyLog, *, minimize: bool, judge: str) -> Certificate:
    """As `Study.certificate`."""
    replay = ledger.replay
    last = replay.settle().decision
    return answer_of(
        replay.policy,
        replay.arms,
        replay.state_of(last),
        minimize=minimize,
        rounds=replay.trace(last.plan),
        deviations=replay.deviations,
        end=early_end(ledger),
        judge=judge,
        measured=lambda: replay.log.measured(last.plan),
    )


def answer_of(
    policy: Policy[Any],
    arms: Arms,
    state: Any,
    *,
    minimize: bool,
    rounds: tuple[RoundRecord, ...],
    deviations: Sequence[base.Deviations],
    end: EarlyEnd | None,
    judge: str = base.CLOSED_ROUNDS,
    measured: Callable[[], Mapping[int, int]],
) -> Certificate:
    """The certificate of a study, from where its policy stands and how its plans were carried out."""
    late = [] if end is None or not end.withdrawn else [base.Deviations(withdrawn=end.withdrawn)]
    answer = certificate_of(policy, relisted(policy, Step.at(state), late[0]).state if late else state)
    prepared = arms.preparation if policy.traits.assumptions else ()
    answer = replace(answer, best_arm=arms.ids[answer.arm], minimize=minimize, rounds=rounds)
    waiting = set(policy.traits.later) - {each.arm for one in deviations for each in one.added}
    answer = replace(answer, dropped=tuple(sorted(waiting)) or None)
    answer = with_deviations(answer, prepared, [*deviations, *late], judge)
    prices = Costs.of(policy, arms)
    if prices is not None:
        answer = replace(answer, cost=prices.spent(measured(), arms.num_arms, batches=len(deviations)))
    return answer if end is None else with_early_end(answer, end)


# --- Undoing: whoever reported a result takes it back while its round is open. The row stays; an event says so.

NO_REASON = "a typing error"
MEANWHILE = (
    "it cannot be corrected: its round is closed, and what was judged stays judged. Leave it as it is; if it is far "
    "off, repeats of the candidate show it and the verdict becomes heuristic. To be sure, close this study and begin "
    "another, with fresh measurements."
)


def undo_keys(ledger: StudyLog, keys: Sequence[object] | None, worker: str | None, reason: str) -> list[base.Reported]:
    """As `Study.undo`, which has the arguments; gives the results that were taken back."""
    why = checked_reason(reason) or NO_REASON
    wanted = None if keys is None else _texts(keys)
    whose = {"", base.ANYONE} if worker is None else {source(worker)}
    with ledger.turn():
        planned, open_plan = ledger.log.last_plan(), None
        if planned is not None and (look := ledger.replay.look(planned)).takes_results:
            open_plan = look
        there = [] if planned is None or open_plan is None else ledger.log.reported(planned.number, None)
        own = [one for one in there if one.source in whose]
        if wanted is None:
            if not own:
                _refuse_nothing(worker, any_open=open_plan is not None)
            chosen = own[-1:]
        else:
            chosen = [_found(ledger, key, own) for key in wanted]
        now = ledger.log.clock()
        for one in chosen:
            number = 0 if planned is None else planned.number
            ledger.log.add_event(base.Event(base.UNDONE, number, one.arm, one.pulls, one.lease, why, now, one.number))
    return chosen


def _texts(keys: Sequence[object]) -> list[str]:
    if isinstance(keys, str | bytes) or not hasattr(keys, "__iter__"):
        raise InvalidInput(f"keys is {quoted(keys)}; give a sequence of keys, [{quoted(keys)}] for one.")
    found = [normal_form(storable_text("a key", text_of("a key", key))) for key in keys]
    return list(dict.fromkeys(found))


def _found(ledger: StudyLog, key: str, own: Sequence[base.Reported]) -> base.Reported:
    """The result of that key."""
    for one in own:
        if one.key is not None and normal_form(one.key) == key:
            return one
    stored = ledger.log.recorded([key]).get(key)
    if stored is None:
        raise InvalidInput(f"no result has the key {quoted(key)}, or it was undone already. Nothing was changed.")
    planned = ledger.log.last_plan()
    if stored.status == base.COUNTED and planned is not None and ledger.replay.look(planned).takes_results:
        there = ledger.log.reported(planned.number, None)
        if any(one.key == key for one in there):
            raise InvalidInput(
                f"the result {quoted(key)} was not reported under this name: only whoever reported a result may undo "
                "it (worker, --worker). Nothing was changed."
            )
    raise OutOfTurn(
        f"the result {quoted(key)} counts, and {MEANWHILE}" if stored.status == base.COUNTED else _aside(key)
    )


def _aside(key: str) -> str:
    return f"the result {quoted(key)} is kept apart and enters nothing, so there is nothing to undo."


def _refuse_nothing(worker: str | None, *, any_open: bool) -> None:
    """Say that there is nothing to undo."""
    whose = "you" if worker is None else quoted(worker)
    if any_open:
        raise OutOfTurn(f"nothing that {whose} reported in the open round is left to undo. Nothing was changed.")
    raise OutOfTurn(f"no round is open. If a result is wrong, {MEANWHILE}")
