"""What every section of a report needs to know of its study, read once from the certificate. No sentence is here."""

from __future__ import annotations

import re
from typing import Any, Literal

from surepick.core.arrays import record
from surepick.questions import ListNames, list_names, parse_question
from surepick.studies.logs.base import INDEPENDENT_OF_VALUE

Document = dict[str, Any]  # the certificate's and what the policy says of itself (`traits`): plain JSON data
Fate = Literal["recommended", "possible", "left", "withdrawn", "waiting", "aside"]
PROVED = {"certified", "heuristic"}  # verdicts with which a candidate is recommended
NETWORKS = {"neural-embedding", "certified-neural"}
CONCLUSION = re.compile(r"\s?(?:No other candidate can be better by more than [0-9.e+-]+|All others were ruled out)\.$")


@record
class Facts:
    """A study as the sections of its report see it.

    Args:
        document: the certificate with ids, candidates and traits.
        standing: the certificate's verdict, or what matters more: "contradicted" by the results, or "closed" early.
        alarms: what the checks of the assumptions found, each once.
        looks: the closed batches, in order, each with its round.
        names: of the candidates.
        fates: of the candidates; of an answer by lists, on which one they are.
        best: position of the recommended candidate, or of the best so far; None while nothing is known.
        widest: the largest difference of two candidates that was possible before any measurement.
    """

    document: Document
    standing: str
    alarms: tuple[str, ...]
    looks: tuple[dict[str, Any], ...]
    names: tuple[str, ...]
    fates: tuple[Fate, ...]
    best: int | None
    widest: float

    @property
    def algorithm(self) -> str:
        """Its name."""
        return str(self.document["algorithm"])

    @property
    def proved(self) -> bool:
        """Whether the verdict recommends a candidate."""
        return self.document["verdict"] in PROVED

    @property
    def empty(self) -> bool:
        """Whether no measurement speaks for a candidate yet."""
        return is_empty(self.document)

    @property
    def uses_features(self) -> bool:
        """Whether a result of one candidate says something of others."""
        return bool(self.document["traits"]["uses_features"])

    @property
    def shortens(self) -> bool:
        """The study makes a long list shorter, and its candidates are a few of it."""
        return "first_look" in (self.document.get("policy") or {})

    @property
    def lists(self) -> dict[str, Any] | None:
        """The answer by lists; None where the question is which candidate is the best."""
        found: dict[str, Any] | None = self.document.get("lists")
        return found

    @property
    def list_names(self) -> ListNames | None:
        """What the lists are called; None where the question is which candidate is the best."""
        asked = parse_question((self.document["policy"] or {}).get("question"), {})
        return None if asked is None else list_names(asked, float(self.document["epsilon"]))

    @property
    def tests_one(self) -> bool:
        """Whether the algorithm tests one candidate against all others."""
        return bool(self.document["traits"]["certifies"] == "candidate")

    @property
    def guesses(self) -> bool:
        """Whether the algorithm recommends by a rule that proves nothing."""
        return bool(self.document["traits"]["certifies"] == "nothing")

    @property
    def ruled_out(self) -> int | None:
        """Candidates that are proved not to be the best; None where the algorithm rules out none for good."""
        rounds, eliminates = self.document["rounds"], self.document["traits"].get("eliminates", False)
        if not rounds or not eliminates or self.guesses or self.unproved:
            return None
        dropped = sum(reason == INDEPENDENT_OF_VALUE for _, reason in self.withdrawals)
        return len(self.names) - self.fates.count("waiting") - dropped - int(rounds[-1]["active"])

    @property
    def withdrawals(self) -> tuple[tuple[str, str], ...]:
        """(candidate, reason) of those that were withdrawn."""
        places = [*self.looks, *([self.document["ended"]] if self.document["ended"] else [])]
        return tuple((self.names[one["arm"]], one["reason"]) for place in places for one in place["withdrawn"])

    @property
    def whom(self) -> str:
        """Whom the promise is about."""
        dropped = any(reason == INDEPENDENT_OF_VALUE for _, reason in self.withdrawals)
        return "all that are left" if dropped or "waiting" in self.fates else "all"

    @property
    def additions(self) -> tuple[str, ...]:
        """The candidates that came while the study ran."""
        return tuple(self.names[one["arm"]] for look in self.looks for one in look["added"])

    @property
    def unproved(self) -> bool:
        """Whether what the algorithm says of candidates is no more than its rule."""
        if self.document["verdict"] == "certified":
            return False
        return self.standing in {"heuristic", "contradicted"} or self.guesses

    @property
    def step(self) -> Literal["batch", "round"]:
        """What one step of the study is called: a round that is one batch is a batch."""
        return "batch" if len(self.looks) == len(self.document["rounds"]) else "round"

    def bounds(self, gap: float | None) -> bool:
        """Whether a bound on a difference of two candidates is smaller than the rewards allow anyway."""
        return gap is not None and gap < self.widest


def facts_of(document: Document) -> Facts:
    """Read what the sections need from the certificate with its candidates."""
    number_of, ids = document["arms"]["number"], document["arms"]["ids"]
    alarms = tuple(dict.fromkeys(alarm for entry in document["rounds"] for alarm in entry["alarms"]))
    standing: str = document["verdict"]
    if standing != "certified" and alarms:
        standing = "contradicted"
    elif standing == "not-yet" and document["ended"] is not None:
        standing = "closed"
    fates = tuple(document["candidates"]["fates"])
    best = fates.index("recommended") if "recommended" in fates else None
    names = tuple(map(str, range(number_of))) if ids is None else tuple(ids)
    if document.get("lists") is not None:
        fates = fates_of(names, document["lists"], fates)
    return Facts(
        document=document,
        standing=standing,
        alarms=alarms,
        looks=tuple(look | {"round": entry["round"]} for entry in document["rounds"] for look in entry["looks"]),
        names=names,
        fates=fates,
        best=best,
        widest=_widest(document),
    )


def fates_of(names: tuple[str, ...], lists: Document, fates: tuple[Fate, ...]) -> tuple[Fate, ...]:
    """Of each candidate: "recommended" on the first list, "left" on the second, "possible" while undecided.

    Args:
        names: of the candidates.
        lists: the answer.
        fates: what became of them without regard to lists: "withdrawn" and "waiting" stay; "aside" are the others that
            the question does not ask about, e.g. its control.
    """
    lists_of: tuple[tuple[str, Fate], ...] = (("inside", "recommended"), ("outside", "left"), ("undecided", "possible"))
    listed = {name: fate for key, fate in reversed(lists_of) for name in lists[key]}
    return tuple(
        fate
        if fate in ("withdrawn", "waiting") and listed.get(name, "possible") == "possible"
        else listed.get(name, "aside")
        for name, fate in zip(names, fates, strict=True)
    )


def is_empty(document: Document) -> bool:
    """Whether nothing was measured that could speak for a candidate."""
    return document["pulls"] == 0 and document["verdict"] not in PROVED


def _widest(document: Document) -> float:
    policy = document["policy"] or {}
    kind, _, rest = str(policy.get("noise", "")).partition(":")
    known = [float("inf")]
    if kind == "bernoulli":
        known.append(1.0)
    if kind == "bounded":
        low, _, high = rest.partition(":")
        known.append(float(high) - float(low))
    declared = policy.get("gap_bound")
    return min(*known, float("inf") if declared is None else float(declared))
