"""How far the answer of a study can be relied upon, and the words that follow from it in all parts of its report."""

from __future__ import annotations

import re
from typing import Any

from surepick.reports.study.format import number

Document = dict[str, Any]  # the certificate's and what the policy says of itself (`traits`): plain JSON data
PROVED = {"certified", "heuristic"}  # verdicts with which a candidate is recommended
NETWORKS = {"neural-embedding", "certified-neural"}
CONCLUSION = re.compile(r"\s?(?:No other candidate can be better by more than [0-9.e+-]+|All others were ruled out)\.$")


def standing_of(document: Document) -> str:
    """The certificate's verdict, or what matters more: "contradicted" by the results, or "closed" early."""
    verdict: str = document["verdict"]
    if verdict != "certified" and alarms_of(document):
        return "contradicted"
    return "closed" if verdict == "not-yet" and document["ended"] is not None else verdict


def alarms_of(document: Document) -> list[str]:
    """What the checks found, each once."""
    return list(dict.fromkeys(alarm for entry in document["rounds"] for alarm in entry["alarms"]))


def is_unproved(document: Document) -> bool:
    """Whether what the algorithm says of candidates is no more than its rule."""
    if document["verdict"] == "certified":
        return False
    standing = standing_of(document)
    return standing in {"heuristic", "contradicted"} or guesses(document)


def by_the_rule(document: Document) -> str:
    """What restricts a sentence that is not proved: "by the rule of the algorithm, which is not proved"."""
    why = "which the results contradict" if standing_of(document) == "contradicted" else "which is not proved"
    return f"by the rule of the algorithm, {why}"


def out_word(document: Document) -> str:
    """What candidates are that are out of question: nobody has ruled out what only a rule dropped."""
    return "dropped" if is_unproved(document) else "ruled out"


def uses_features(document: Document) -> bool:
    """Whether a result of one candidate says something of others."""
    said: bool = document["traits"]["uses_features"]
    return said


def tries_a_candidate(document: Document) -> bool:
    """Whether the algorithm tests one candidate against all others."""
    said: bool = document["traits"]["certifies"] == "candidate"
    return said


def guesses(document: Document) -> bool:
    """Whether the algorithm recommends by a rule that proves nothing."""
    said: bool = document["traits"]["certifies"] == "nothing"
    return said


def says_something(document: Document, gap: float | None) -> bool:
    """Whether a bound on a difference of two candidates is smaller than what the rewards allow anyway."""
    return gap is not None and gap < _widest(document)


def proved_gap(document: Document, gap: float | None) -> str:
    """How much worse than the best a candidate is at most, for a table."""
    return number(gap) if says_something(document, gap) else "nothing proved"


def _widest(document: Document) -> float:
    """The largest difference that was possible before any measurement."""
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


def step_word(document: Document) -> str:
    """What one step of the study is called: a round that is one batch is called batch."""
    rounds = document["rounds"]
    return "batch" if sum(len(entry["looks"]) for entry in rounds) == len(rounds) else "round"


def steps(number_of: int, word: str) -> str:
    """A number of them: "1 batch", "12 rounds"."""
    plural = f"{word}es" if word == "batch" else f"{word}s"
    return f"{number_of:,} {word if number_of == 1 else plural}"
