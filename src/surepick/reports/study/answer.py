"""The answer of a study, in words: what is recommended, what is promised, what was spent, what is missing."""

from __future__ import annotations

from surepick.core.arrays import record
from surepick.embeddings.norm_bound import ESTIMATED_NORM
from surepick.reports.study.format import VERDICTS, chance, number, plain, shortened
from surepick.reports.study.history import History, time
from surepick.reports.study.sections import Item, best_place, is_empty, looks_of, names_of
from surepick.reports.study.verdict import (
    CONCLUSION,
    NETWORKS,
    PROVED,
    Document,
    alarms_of,
    by_the_rule,
    guesses,
    is_unproved,
    says_something,
    standing_of,
    step_word,
    steps,
    uses_features,
)
from surepick.studies.logs.base import INDEPENDENT_OF_VALUE
from surepick.studies.progress import times


@record
class Answer:
    """The head of the report.

    Args:
        candidate: the recommended one; None while nothing is known.
        headline: what is said of it.
        verdict: where the study stands: the certificate's word, "closed" or "contradicted".
        symbol, label, meaning: of that.
        facts: what is promised, how sure it is, what was spent, what is missing.
        out: what candidates are called that are out of question, and what that says.
        words: the sentences of the certificate itself.
    """

    candidate: str | None
    headline: str
    verdict: str
    symbol: str
    label: str
    meaning: str
    facts: tuple[Item, ...]
    out: Item
    words: str


def answer_of(document: Document, kept: History) -> Answer:
    """The answer in words."""
    standing, nothing = standing_of(document), is_empty(document)
    symbol, label, meaning = VERDICTS.get(standing, ("", standing, ""))
    headline = "Recommended" if document["verdict"] in PROVED else "Best so far, nothing is promised"
    if standing == "contradicted":
        headline = "Best by the rule, but nothing is promised"
    return Answer(
        candidate=None if nothing else document["best_arm"],
        headline="No candidate can be named yet" if nothing else headline,
        verdict=standing,
        symbol=symbol,
        label=label,
        meaning=meaning,
        facts=(
            *_promise(document),
            *_average(document),
            Item("What was spent", _spent(document)),
            *_when(document, kept),
            *_missing(document),
        ),
        out=_out(document),
        words=_words(document),
    )


def users_words(document: Document) -> list[str]:
    """What people wrote into the study, longest first: reasons, and the candidate's name."""
    reasons = [reason for look in looks_of(document) for reason in look["abandoned"]]
    ended = [] if document["ended"] is None else [document["ended"]["reason"]]
    return sorted({*reasons, *ended, document["best_arm"]} - {""}, key=len, reverse=True)


def _promise(document: Document) -> tuple[Item, ...]:
    epsilon, delta = number(document["epsilon"]), document["delta"]
    best = "the smallest mean of all" if document["minimize"] else "the largest mean of all"
    if document["verdict"] == "certified":
        sure = chance(delta)
        return (
            Item(
                "What is promised",
                f"Its true mean is within {epsilon} of {best} (in the unit of the rewards): no other candidate is "
                "better by more.",
            ),
            Item(
                "How sure that is",
                f"{sure[0].upper()}{sure[1:]} (delta = {delta!r}), as long as the assumptions below hold.",
            ),
        )
    if document["verdict"] == "heuristic":
        rests = "This is a good guess and not a promise."
        if standing_of(document) == "contradicted":
            rests = "But the results contradict what that rests on, so it may be wrong by any amount."
        return (Item("What is believed", f"Its true mean should be within {epsilon} of {best}. {rests}"),)
    gap = document["certified_gap"]
    asked = Item(
        "What is asked for",
        f"A candidate whose true mean is within {epsilon} of {best}, such that {chance(delta)}.",
    )
    if document["pulls"] == 0:
        return (asked,)
    proved = "Nothing is proved yet."
    if says_something(document, gap):
        proved = f"It is at most {number(gap)} worse than the best candidate."
        if is_unproved(document):
            proved = f"Nothing. {by_the_rule(document).capitalize()}, it is at most {number(gap)} worse than the best."
    return asked, Item("What is proved so far", proved)


def _average(document: Document) -> tuple[Item, ...]:
    best = best_place(document)
    if best is None or document["candidates"]["means"][best] is None:
        return ()
    mean, pulls = document["candidates"]["means"][best], document["candidates"]["pulls"][best]
    return (Item("Its average", f"{number(mean)} in {times(pulls, 'measurement')}; not part of the promise."),)


def _spent(document: Document) -> str:
    if document["pulls"] == 0:
        return "No measurement counts yet: no round is complete." if document["rounds"] == [] else "Nothing."
    batches, word = len(looks_of(document)), step_word(document)
    taken = steps(len(document["rounds"]), word)
    if word == "round":
        taken += f" ({batches:,} batches, judged one after the other)"
    number_of = document["arms"]["number"]
    text = f"{times(document['pulls'], 'measurement')} of {times(number_of, 'candidate')}, in {taken}."
    best = best_place(document)
    if best is not None and document["candidates"]["pulls"][best] == 0:
        text += f" {shortened(names_of(document)[best], 60)} itself was never measured"
        if uses_features(document):
            text += "; what is said of it comes from similar candidates and rests on the assumption about the features"
        text += "."
    return text


def _when(document: Document, kept: History) -> tuple[Item, ...]:
    if not looks_of(document) or not kept.kept:
        return ()
    over = document["verdict"] != "not-yet" or document["ended"] is not None
    label = "When it ended" if over else "How recent it is"
    return (Item(label, f"The last batch that counts was complete on {time(kept.kept[-1].closed_at)}."),)


def _missing(document: Document) -> tuple[Item, ...]:
    """Why it is not certified, and what would help."""
    if document["verdict"] == "certified":
        return ()
    number_of = document["arms"]["number"]
    left = document["rounds"][-1]["active"] if document["rounds"] else number_of
    open_ones = f"{times(left, 'candidate')} of {number_of:,} {'is' if left == 1 else 'are'} still possible"
    parts = []
    if document["verdict"] == "heuristic" or standing_of(document) == "contradicted":
        parts.append(_doubt(document))
    if document["verdict"] == "heuristic":
        parts.append(plain(_grounds_of_doubt(document), users_words(document)))
    elif document["verdict"] == "budget-exhausted":
        parts.append(f"A larger budget: {open_ones}.")
    else:
        parts.append(f"{open_ones[0].upper()}{open_ones[1:]}; more measurements are needed to tell them apart.")
    parts.append(_closed(document))
    return (Item("What is missing", " ".join(part for part in parts if part)),)


def _doubt(document: Document) -> str:
    """What keeps the answer from being proved, in a plain sentence."""
    dubious = {reason for look in looks_of(document) for reason in look["abandoned"]} - {INDEPENDENT_OF_VALUE}
    if standing_of(document) == "contradicted":
        return (
            'Assumptions that fit: the results contradict what was assumed (the alarms under "What the answer rests '
            'on" say how).'
        )
    if dubious:
        return "Some results are missing, and which ones may depend on their values."
    if document["algorithm"] in NETWORKS:
        return "A network's predictions were used, and nobody can prove how wrong they are."
    if guesses(document):
        return "A proof: the algorithm follows a rule of thumb, and nobody can tell how often that is wrong."
    if ESTIMATED_NORM in document["reason"]:
        return "A bound that is known: one that the answer rests on was only estimated from measurements."
    return "A proof."


def _grounds_of_doubt(document: Document) -> str:
    """The certificate's reason without its alarms, which are listed below, and without what its rule concludes."""
    return CONCLUSION.sub("", _without_alarms(document, "")).strip()


def _without_alarms(document: Document, instead: str) -> str:
    reason: str = document["reason"]
    for alarm in alarms_of(document):
        reason = reason.replace(f"The data speak against the embedding: {alarm}.", instead)
        instead = ""
    return " ".join(reason.split())


def _closed(document: Document) -> str:
    ended = document["ended"]
    if ended is None:
        return ""
    why = f" ({ended['reason']})" if ended["reason"] else ""
    more = f"Its next batch would have taken {times(ended['missing'], 'more measurement')}"
    if ended["predicted"] is not None:
        more += f"; about {ended['predicted']:,.0f} were predicted to be enough"
    return (
        f"The study was closed early, on {time(ended['at'])}{why}. {more}. Results of a batch that was not complete "
        "are not used."
    )


def _out(document: Document) -> Item:
    if is_unproved(document):
        rule = by_the_rule(document)
        return Item(
            "dropped",
            f"{rule[0].upper()}{rule[1:]}, this candidate need not be looked at any more. That does not rule it out, "
            "and it does not say that it is bad.",
        )
    return Item(
        "ruled out",
        "What was measured shows that this candidate cannot be better than the answer by more than is tolerated, or "
        "that it is not the best. It does not say that it is bad.",
    )


def _words(document: Document) -> str:
    """The certificate's sentences; what only a rule concludes is said to be so."""
    promise, reason = document["promise"], _without_alarms(document, "(Alarms: see below.)")
    gap = document["certified_gap"]
    if document["verdict"] not in PROVED and gap is not None and not says_something(document, gap):
        promise = f"Not certified to within {number(document['epsilon'])}: nothing is proved yet."
    if is_unproved(document) and (found := CONCLUSION.search(reason)):
        rule, said = by_the_rule(document), found[0].strip()
        begun = reason[: found.start()].strip()
        reason = f"{begun} {rule[0].upper()}{rule[1:]}, {said[0].lower()}{said[1:]}".strip()
    return plain(f"{promise} {reason}".strip(), users_words(document))
