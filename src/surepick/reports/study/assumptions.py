"""What the answer rests on: what was checked, and what can only be believed."""

from __future__ import annotations

from surepick.reports.study.answer import users_words
from surepick.reports.study.format import plain
from surepick.reports.study.history import History
from surepick.reports.study.sections import Item, Part, looks_of
from surepick.reports.study.verdict import Document, alarms_of
from surepick.studies.logs.base import INDEPENDENT_OF_VALUE
from surepick.studies.progress import times

GLOSSES = (  # words of the assumptions that need explaining
    (
        "sub-Gaussian",
        "Sub-Gaussian noise of scale s: single measurements scatter around their mean no more widely than normal noise "
        "with standard deviation s.",
    ),
    (
        "independent draw",
        "Independent draws: no measurement is influenced by another one, and a candidate does not change while it is "
        "measured.",
    ),
    (
        "linear function",
        "Linear: every feature adds or takes away in proportion to its size, with the same weight for all candidates.",
    ),
    (
        "norm",
        "Norm: one number for how strongly the features can act together. It was declared before the study; the data "
        "can contradict it but never confirm it.",
    ),
)


def grounds(document: Document, kept: History) -> Part:
    """The part about assumptions and checks."""
    sentences = [plain(sentence) for sentence in document["assumptions"]]
    believed = [Item("believed", sentence) for sentence in sentences]
    together = " ".join(sentences)
    glosses = [Item("in other words", text) for word, text in GLOSSES if word in together]
    lists = [("What was checked", tuple(_checked(document, kept)))]
    if believed:
        lists.append(("What can only be believed", (*believed, *glosses)))
    head = (
        "A proof starts from assumptions. The software checked what it could; the rest is a statement about the world, "
        "and whoever knows the measurements has to judge it."
    )
    if not believed:
        head = "The software checked what it could. Nothing else has to be assumed for what is said above."
    return Part("grounds", "What the answer rests on", (head,), (), tuple(lists))


def _checked(document: Document, kept: History) -> list[Item]:
    items = [Item("checked", sentence) for sentence in (_values(document), _order(document, kept)) if sentence]
    alarms = alarms_of(document)
    own = users_words(document)
    items += [Item("alarm", f"The results speak against what was assumed: {plain(alarm, own)}.") for alarm in alarms]
    if document["rounds"] and not alarms:
        items += [
            Item("checked", f"{plain(sentence, own)} Nothing spoke against it; that does not prove it.")
            for sentence in document["checks"]
        ]
    return [*items, *_departures(document)]


def _values(document: Document) -> str:
    noise = "" if document["policy"] is None else str(document["policy"].get("noise", ""))
    kind, _, rest = noise.partition(":")
    if kind == "bernoulli":
        return "Every reward that was told is between 0 and 1; others are refused."
    if kind == "bounded":
        low, _, high = rest.partition(":")
        return f"Every reward that was told is between {low} and {high}; others are refused."
    return "Every reward that was told is a finite number; others are refused."


def _order(document: Document, kept: History) -> str:
    if not document["rounds"]:
        return ""
    done = "written down" if kept.durable else "decided"
    return (
        f"What to measure was {done} before it was measured, and the software used and showed no result of a "
        "batch before the batch was complete, so that nobody could stop in a good moment. (Whoever measures sees "
        "their own results; they must not act on them.)"
    )


def _departures(document: Document) -> list[Item]:
    """What did not go as planned."""
    looks = looks_of(document)
    items = []
    surplus, repeated = sum(look["surplus"] for look in looks), sum(look["repeated"] for look in looks)
    if surplus:
        several = f"{surplus:,} {'batch' if surplus == 1 else 'batches'}"
        items.append(Item("recorded", f"In {several} more results came than were asked for; they count."))
    if repeated:
        again = f"{times(repeated, 'measurement')} failed or came too late, and {'was' if repeated == 1 else 'were'}"
        items.append(Item("recorded", f"{again} asked for again."))
    reasons = dict.fromkeys(reason for look in looks for reason in look["abandoned"])
    for reason in reasons:
        if reason == INDEPENDENT_OF_VALUE:
            declared = "whoever did so declared that this has nothing to do with their values."
            items.append(Item("recorded", f"Some measurements were given up; {declared}"))
        else:
            doubt = "this may depend on their values, so nothing is proved."
            items.append(Item("alarm", f"Some measurements were given up ({reason}); {doubt}"))
    if looks and not (surplus or repeated or reasons):
        whole = "Each measurement that was asked for is in, exactly as often as asked; none failed or was given up."
        items.append(Item("checked", whole))
    return items
