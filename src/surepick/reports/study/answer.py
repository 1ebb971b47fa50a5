"""What the certificate says of its answer, made ready for readers: its reasons without its alarms, in plain words."""

from __future__ import annotations

from typing import Literal

from surepick.core.arrays import record
from surepick.embeddings.norm_bound import ESTIMATED_NORM
from surepick.reports.study.facts import CONCLUSION, NETWORKS, Facts
from surepick.reports.study.format import plain
from surepick.studies.logs.base import INDEPENDENT_OF_VALUE

Doubt = Literal["contradicted", "missing-results", "network", "rule-of-thumb", "estimated-norm", "unknown"]


@record
class Answer:
    """What is said of the answer in the certificate's own words.

    Args:
        doubt: what keeps the answer from being proved.
        grounds: the certificate's reason without its alarms, and without what its rule concludes.
        promise: its promise; "" where nothing is proved, so that it would mislead.
        reason: its reason, with a word in place of its alarms, up to what its rule concludes.
        conclusion: what only the rule concludes, to be said as such; "" where it is proved.
        abandoned: why measurements were given up, each reason once.
    """

    doubt: Doubt
    grounds: str
    promise: str
    reason: str
    conclusion: str
    abandoned: tuple[str, ...]


def answer_of(study: Facts) -> Answer:
    """The certificate's sentences for the head of the report."""
    document = study.document
    abandoned = tuple(dict.fromkeys(reason for look in study.looks for reason in look["abandoned"]))
    own = users_words(study)
    promise, gap = document["promise"], document["certified_gap"]
    if not study.proved and gap is not None and not study.bounds(gap):
        promise = ""
    reason, conclusion = _without_alarms(study, "(Alarms: see below.)"), ""
    if study.unproved and (found := CONCLUSION.search(reason)):
        reason, conclusion = reason[: found.start()].strip(), found[0].strip()
    return Answer(
        doubt=_doubt(study, abandoned),
        grounds=plain(CONCLUSION.sub("", _without_alarms(study, "")).strip(), own),
        promise=plain(promise, own),
        reason=plain(reason, own),
        conclusion=plain(conclusion, own),
        abandoned=abandoned,
    )


def users_words(study: Facts) -> list[str]:
    """What people wrote into the study, longest first: reasons, and the candidate's name."""
    reasons = [reason for look in study.looks for reason in look["abandoned"]]
    reasons += [reason for _, reason in study.withdrawals]
    ended = study.document["ended"]
    closed = [] if ended is None else [ended["reason"]]
    return sorted({*reasons, *closed, study.document["best_arm"]} - {""}, key=len, reverse=True)


def _doubt(study: Facts, abandoned: tuple[str, ...]) -> Doubt:
    if study.standing == "contradicted":
        return "contradicted"
    if set(abandoned) - {INDEPENDENT_OF_VALUE}:
        return "missing-results"
    if study.algorithm in NETWORKS:
        return "network"
    if study.guesses:
        return "rule-of-thumb"
    return "estimated-norm" if ESTIMATED_NORM in study.document["reason"] else "unknown"


def _without_alarms(study: Facts, instead: str) -> str:
    reason: str = study.document["reason"]
    for alarm in study.alarms:
        reason = reason.replace(f"The data speak against the embedding: {alarm}.", instead)
        instead = ""
    return " ".join(reason.split())
