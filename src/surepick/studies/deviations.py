"""What a study knows and its policy does not: how the plans were carried out, in the words of the certificate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from surepick.core.arrays import record
from surepick.core.certificate import Certificate
from surepick.core.plan import Plan
from surepick.studies.logs.base import INDEPENDENT_OF_VALUE, Deviations, Event
from surepick.studies.logs.leases import to_the_minute
from surepick.studies.progress import times


def with_deviations(answer: Certificate, prepared: tuple[str, ...], deviations: Sequence[Deviations]) -> Certificate:
    """The answer with prepared features, surplus, repeated and missing results among its assumptions.

    Missing results become an assumption when they are declared to be independent of their values, and otherwise take
    the theorem away.
    """
    return _with_missing(_with_facts(answer, prepared, deviations), deviations)


def _with_facts(answer: Certificate, prepared: tuple[str, ...], deviations: Sequence[Deviations]) -> Certificate:
    if answer.pulls == 0:
        return answer
    facts = []
    if prepared:
        steps = ", then ".join(prepared)
        facts.append(f"The features were prepared ({steps}); a norm bound refers to the result.")
    surplus = sum(one.surplus for one in deviations)
    if surplus:
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
    return replace(answer, assumptions=(*answer.assumptions, *facts))


def _with_missing(answer: Certificate, deviations: Sequence[Deviations]) -> Certificate:
    reasons = [one.abandoned for one in deviations if one.abandoned]
    if not reasons:
        return answer
    dubious = [reason for given in reasons for reason in given if reason != INDEPENDENT_OF_VALUE]
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


@record
class EarlyEnd:
    """A study was closed before its policy stopped.

    Args:
        reason: why, in the user's words; may be empty.
        at: when, seconds since 1970 (UTC).
        missing: pulls that were not in, of the plan that was open or would have been next.
        predicted: how many were predicted to be enough, None where that is not known.
    """

    reason: str
    at: float
    missing: int
    predicted: float | None

    @staticmethod
    def of(ended: Event, plan: Plan, missing: int) -> EarlyEnd:
        """The end, when `missing` pulls of that plan were not in."""
        predicted = None if plan.predicted_pulls is None else max(plan.predicted_pulls, missing)
        return EarlyEnd(ended.reason, ended.at, missing, predicted)


def with_early_end(answer: Certificate, end: EarlyEnd) -> Certificate:
    """The answer of a study that was closed before its policy stopped, and what more it would have taken."""
    why = f" ({end.reason})" if end.reason else ""
    more = f"The next batch would have taken {times(end.missing, 'more measurement')}"
    if end.predicted is not None:
        more += f", and about {end.predicted:,.0f} were predicted to be enough"
    return replace(answer, reason=f"{answer.reason} The study was closed on {to_the_minute(end.at)}{why}. {more}.")
