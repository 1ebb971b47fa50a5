"""The answer of a study, in words: what is recommended, what is promised, what was spent, what is missing."""

from __future__ import annotations

from surepick.records import record
from surepick.reports.study_sections import PROVED, Document, Item, is_empty, looks_of
from surepick.reports.study_words import VERDICTS, chance, number, plain
from surepick.studies.progress import times


@record
class Answer:
    """The head of the report.

    Args:
        candidate: the recommended one; None while nothing is known.
        headline: what is said of it.
        verdict: the certificate's word.
        symbol, label, meaning: of the verdict.
        facts: what is promised, how sure it is, what was spent, what is missing.
        words: the sentences of the certificate itself.
    """

    candidate: str | None
    headline: str
    verdict: str
    symbol: str
    label: str
    meaning: str
    facts: tuple[Item, ...]
    words: str


def answer_of(document: Document) -> Answer:
    """The answer in words."""
    verdict, nothing = document["verdict"], is_empty(document)
    symbol, label, meaning = VERDICTS.get(verdict, ("", verdict, ""))
    proved = verdict in PROVED
    headline = "Recommended" if proved else "Best so far, nothing is promised"
    missing = () if verdict == "certified" else _missing(document)
    kept = users_words(document)
    return Answer(
        candidate=None if nothing else document["best_arm"],
        headline="No candidate can be named yet" if nothing else headline,
        verdict=verdict,
        symbol=symbol,
        label=label,
        meaning=meaning,
        facts=(*_promise(document), Item("What was spent", _spent(document)), *missing),
        words=plain(f"{document['promise']} {document['reason']}".strip(), kept),
    )


def users_words(document: Document) -> list[str]:
    """What people wrote into the study, longest first: reasons, and the candidate's name."""
    reasons = [reason for look in looks_of(document) for reason in look["abandoned"]]
    ended = [] if document["ended"] is None else [document["ended"]["reason"]]
    return sorted({*reasons, *ended, document["best_arm"]} - {""}, key=len, reverse=True)


def _promise(document: Document) -> tuple[Item, ...]:
    verdict, epsilon, delta = document["verdict"], number(document["epsilon"]), document["delta"]
    best = "the smallest mean of all" if document["minimize"] else "the largest mean of all"
    if verdict == "certified":
        return (
            Item(
                "What is promised",
                f"Its true mean is within {epsilon} of {best} (in the unit of the rewards): no other candidate is "
                "better by more.",
            ),
            Item(
                "How sure that is",
                f"Wrong {chance(delta)} (delta = {delta!r}), as long as the assumptions below hold.",
            ),
        )
    if verdict == "heuristic":
        return (
            Item(
                "What is believed",
                f"Its true mean should be within {epsilon} of {best}. This is a good guess and not a promise.",
            ),
        )
    gap = document["certified_gap"]
    asked = Item(
        "What is asked for",
        f"A candidate whose true mean is within {epsilon} of {best}, in a way that is wrong {chance(delta)}.",
    )
    if gap is None or document["pulls"] == 0:
        return (asked,)
    return asked, Item("What is proved so far", f"It is at most {number(gap)} worse than the best candidate.")


def _spent(document: Document) -> str:
    if document["pulls"] == 0:
        return "No measurement counts yet: no round is complete."
    batches, rounds = len(looks_of(document)), len(document["rounds"])
    steps = times(rounds, "round")
    if batches != rounds:
        steps += f" ({batches:,} batches, judged one after the other)"
    number_of = document["arms"]["number"]
    return f"{times(document['pulls'], 'measurement')} of {times(number_of, 'candidate')}, in {steps}."


def _missing(document: Document) -> tuple[Item, ...]:
    """Why it is not certified, and what would help."""
    verdict, ended = document["verdict"], document["ended"]
    number_of = document["arms"]["number"]
    left = document["rounds"][-1]["active"] if document["rounds"] else number_of
    open_ones = f"{times(left, 'candidate')} of {number_of:,} {'is' if left == 1 else 'are'} still possible"
    if verdict == "heuristic":
        text = "A proof. " + plain(document["reason"], users_words(document))
    elif verdict == "budget-exhausted":
        text = f"A larger budget: {open_ones}."
    else:
        text = f"{open_ones[0].upper()}{open_ones[1:]}; more measurements are needed to tell them apart."
    if ended is not None:
        more = times(ended["missing"], "measurement")
        text += f" The study was closed before it was done; its next batch would have taken {more} more."
    return (Item("What is missing", text),)
