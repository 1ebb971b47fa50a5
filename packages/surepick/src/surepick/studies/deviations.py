"""What the certificate says of deviations from what a policy asked: parts, surplus, missing results, an early end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from surepick.core.arms import Arms
from surepick.core.certificate import Certificate
from surepick.core.plans import Plan, RoundRecord, Step
from surepick.core.records import record
from surepick.policies.base import Policy
from surepick.policies.prices import Costs
from surepick.policies.verdict import certificate_of
from surepick.studies.logs import base
from surepick.studies.origins import TableOrigin
from surepick.studies.progress import times
from surepick.studies.replay import relisted

AS_THEY_CAME = (
    "Results were judged in parts, as they came: which results are in a part, and when it is judged, does not depend "
    "on values that were not judged before."
)


@record
class EarlyEnd:
    """A study was closed before its policy stopped."""

    reason: str  # why, in the user's words; may be empty
    at: float  # when, seconds since 1970 (UTC)
    missing: int  # pulls that were not in, of the plan that was open or would have been next
    predicted: float | None  # how many were predicted to be enough, None where that is not known
    withdrawn: tuple[base.Withdrawal, ...] = ()  # arms that would not have been asked for after the open plan

    @staticmethod
    def of(ended: base.Event, plan: Plan, missing: int, withdrawn: tuple[base.Withdrawal, ...] = ()) -> EarlyEnd:
        """The end, when `missing` pulls of that plan were not in."""
        predicted = None if plan.predicted_pulls is None else max(plan.predicted_pulls, missing)
        return EarlyEnd(ended.reason, ended.at, missing, predicted, withdrawn)


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
    study_id: str = "",
    measured: Callable[[], Mapping[int, int]],
) -> Certificate:
    """The certificate of a study, from where its policy stands and how its plans were carried out."""
    late = [] if end is None or not end.withdrawn else [base.Deviations(withdrawn=end.withdrawn)]
    answer = certificate_of(policy, relisted(policy, Step.at(state), late[0]).state if late else state)
    prepared = arms.preparation if policy.traits.assumptions else ()
    waiting = set(policy.traits.later) - {each.arm for one in deviations for each in one.added}
    answer = replace(answer, best_arm=arms.ids[answer.arm], minimize=minimize, rounds=rounds)
    answer = replace(answer, dropped=tuple(sorted(waiting)) or None)
    answer = with_deviations(answer, prepared, [*deviations, *late], judge)
    origin = TableOrigin.of(study_id)
    if origin is not None and answer.pulls > 0:
        answer = replace(answer, assumptions=(*answer.assumptions, origin.sentence(answer.pulls)))
    prices = Costs.of(policy, arms)
    if prices is not None:
        batches = sum(not one.alone for one in deviations)
        answer = replace(answer, cost=prices.spent(measured(), arms.num_arms, batches=batches))
    if end is None:
        return answer
    why = f" ({end.reason})" if end.reason else ""
    more = f"The next batch would have taken {times(end.missing, 'more measurement')}"
    if end.predicted is not None:
        more += f", and about {end.predicted:,.0f} were predicted to be enough"
    return replace(answer, reason=f"{answer.reason} The study was closed on {base.to_the_minute(end.at)}{why}. {more}.")


def with_deviations(
    answer: Certificate, prepared: tuple[str, ...], deviations: Sequence[base.Deviations], judge: str
) -> Certificate:
    """The answer with prepared features, and how its plans were carried out, in its assumptions and its reason. Missing
    results become an assumption when they are declared to be independent of their values; else they take the theorem
    away, as do repeats that contradict the noise (docs/certified-elimination.md, line 35)."""
    if answer.pulls > 0:
        answer = replace(answer, assumptions=(*answer.assumptions, *_facts(prepared, deviations, judge)))
    reasons = [one.abandoned for one in deviations if one.abandoned]
    dubious = [reason for given in reasons for reason in given if reason != base.INDEPENDENT_OF_VALUE]
    if dubious:
        answer = _unproved(answer, f"A plan was closed short ({dubious[0]!r}), which may depend on the values.")
    elif reasons:
        sentence = (
            f"Plans closed with results missing: {len(reasons)}; which ones are missing has nothing to do with "
            "their values."
        )
        answer = replace(answer, assumptions=(*answer.assumptions, sentence))
    found = ""
    for one in deviations:  # what was found stays, unless results were corrected
        found = one.contradicted if one.corrected else found or one.contradicted
    if found:
        answer = _unproved(
            answer,
            f"The data speak against the declared noise: {found}. Look at these measurements, and start anew, with "
            "fresh ones, and a scale that holds.",
        )
    come = sum(len(one.added) for one in deviations)
    if come:
        words = f"{times(come, 'candidate')} added while the study ran, with the share of delta that was set aside."
        answer = replace(answer, reason=f"{answer.reason} {words}")
    gone = [each for one in deviations for each in one.withdrawn]
    dropped, others = [each for each in gone if each.independent], [each for each in gone if not each.independent]
    if dropped:
        sentence = (
            f"{times(len(dropped), 'candidate')} withdrawn between "
            f"{base.to_the_minute(min(each.at for each in dropped))} and "
            f"{base.to_the_minute(max(each.at for each in dropped))}: which ones, and when, has nothing to do with "
            "results. The promise is about the others; each list of candidates that the study had has a delta of its "
            "own."
        )
        left_out = tuple(sorted({*(answer.dropped or ()), *(each.arm for each in dropped)}))
        answer = replace(answer, assumptions=(*answer.assumptions, sentence), dropped=left_out)
    if others:
        given = ", ".join(sorted({repr(each.reason) for each in others}))
        words = f"{times(len(others), 'candidate')} withdrawn ({given}), and compared like all others with what was"
        answer = replace(answer, reason=f"{answer.reason} {words} measured of them.")
    return answer


def _unproved(answer: Certificate, why: str) -> Certificate:
    """The answer without a theorem."""
    verdict = "heuristic" if answer.verdict == "certified" else answer.verdict
    return replace(answer, verdict=verdict, certified_gap=None, reason=f"{why} {answer.reason}")


def _facts(prepared: tuple[str, ...], deviations: Sequence[base.Deviations], judge: str) -> list[str]:
    """What is assumed of how the plans were carried out, where something was measured."""

    def total(name: str) -> int:
        return sum(getattr(one, name) for one in deviations)

    facts = []
    if prepared:
        facts.append(f"The features were prepared ({', then '.join(prepared)}); a norm bound refers to the result.")
    if judge == base.AS_THEY_COME:
        facts.append(AS_THEY_CAME)  # and so of the results beyond what was asked
    elif surplus := total("surplus"):
        facts.append(
            f"More results came than were asked, in {times(surplus, 'plan')}; how many has nothing to do with any "
            "values seen in the same round."
        )
    if repeated := total("repeated"):
        facts.append(
            f"Measurements that failed or did not come in time and were asked again: {repeated}; whether one fails or "
            "is late has nothing to do with its value."
        )
    if undone := total("undone"):
        facts.append(
            f"{times(undone, 'result')} taken back by whoever reported them, while their round was open: because each "
            "was not what was read, whatever its value."
        )
    if corrected := sum(len(one.corrected) for one in deviations):
        facts.append(
            f"{times(corrected, 'result')} corrected after their round was closed: because each was not what was read, "
            "whatever its value; what counts instead was read for that very measurement."
        )
    if confirmed := total("confirmed"):
        facts.append(
            f"{times(confirmed, 'unusual result')} confirmed by whoever reported them, and used like all others; where "
            "the answer was a correction, it was of a typing error, whatever the value."
        )
    if unasked := total("unasked"):
        facts.append(
            f"{times(unasked, 'unusual result')} of a program, about which nobody was asked, used like all others."
        )
    return facts
