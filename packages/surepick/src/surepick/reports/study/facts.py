"""What every section of a report needs to know of its study, read once from the certificate. No sentence is here."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from surepick.core.records import record
from surepick.embeddings.base import ESTIMATED_NORM
from surepick.questions import parse_question
from surepick.questions.protocol import ListNames
from surepick.studies.logs import base
from surepick.studies.logs.memory import MemoryLog

Document = dict[str, Any]  # the certificate's and what the policy says of itself (`traits`): plain JSON data
Fate = Literal["recommended", "possible", "left", "withdrawn", "waiting", "aside"]
PROVED = {"certified", "heuristic"}  # verdicts with which a candidate is recommended
NETWORKS = {"neural-embedding", "certified-neural"}
CONCLUSION = re.compile(r"\s?(?:No other candidate can be better by more than [0-9.e+-]+|All others were ruled out)\.$")


@record
class StudyFacts:
    """A study as the sections of its report see it."""

    document: Document
    standing: str  # the certificate's verdict, or what matters more: "contradicted" by the results, or "closed" early
    alarms: tuple[str, ...]  # what the checks of the assumptions found, each once
    looks: tuple[dict[str, Any], ...]  # the closed batches, in order, each with its round
    names: tuple[str, ...]
    fates: tuple[Fate, ...]  # of the candidates; of an answer by lists, on which one they are
    best: int | None  # position of the recommended candidate, or of the best so far; None while nothing is known
    widest: float  # the largest difference of two candidates that was possible before any measurement

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
        return self.document.get("lists")

    @property
    def list_names(self) -> ListNames | None:
        """What the lists are called; None where the question is which candidate is the best."""
        asked = parse_question((self.document["policy"] or {}).get("question"), {})
        return None if asked is None else asked.called(float(self.document["epsilon"]))

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
        dropped = sum(reason == base.INDEPENDENT_OF_VALUE for _, reason in self.withdrawals)
        return len(self.names) - self.fates.count("waiting") - dropped - int(rounds[-1]["active"])

    @property
    def withdrawals(self) -> tuple[tuple[str, str], ...]:
        """(candidate, reason) of those that were withdrawn."""
        places = [*self.looks, *([self.document["ended"]] if self.document["ended"] else [])]
        return tuple((self.names[one["arm"]], one["reason"]) for place in places for one in place["withdrawn"])

    @property
    def whom(self) -> str:
        """Whom the promise is about."""
        dropped = any(reason == base.INDEPENDENT_OF_VALUE for _, reason in self.withdrawals)
        return "all that are left" if dropped or "waiting" in self.fates else "all"

    @property
    def additions(self) -> tuple[str, ...]:
        """The candidates that came while the study ran."""
        return tuple(self.names[one["arm"]] for look in self.looks for one in look["added"])

    @property
    def corrections(self) -> tuple[dict[str, Any], ...]:
        """The results that were corrected after their batch was complete."""
        return tuple(one for look in self.looks for one in look.get("corrections", ()))

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


def facts_of(document: Document) -> StudyFacts:
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
        on: dict[str, Fate] = {"undecided": "possible", "outside": "left", "inside": "recommended"}
        listed = {name: fate for part, fate in on.items() for name in document["lists"][part]}
        away = {"withdrawn", "waiting"}
        now = [
            listed.get(name, "possible" if fate in away else "aside") for name, fate in zip(names, fates, strict=True)
        ]
        fates = tuple(old if old in away and new == "possible" else new for old, new in zip(fates, now, strict=True))
    return StudyFacts(
        document=document,
        standing=standing,
        alarms=alarms,
        looks=tuple(look | {"round": entry["round"]} for entry in document["rounds"] for look in entry["looks"]),
        names=names,
        fates=fates,
        best=best,
        widest=_widest(document),
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


# --- The log of a study: what was asked when, what came, from whom, and what was set aside. Closed plans only.

EDGES = 150  # of very many batches the first and the last so many are listed
NOBODY = "without a name"


@record
class KeptPulls:
    """A plan that was judged."""

    number: int
    opened_at: float
    closed_at: float
    failed: int  # measurements that gave no result
    given_up: tuple[tuple[str, int], ...]  # (reason, measurements) that were abandoned
    tellers: tuple[tuple[str, int], ...]  # who told its results, and of how many measurements


@record
class History:
    """What the log says beyond the certificate."""

    kept: tuple[KeptPulls, ...]
    late: tuple[tuple[str, int], ...]  # who told results that are not used, of how many measurements
    prior: tuple[tuple[str, int], ...]
    durable: bool  # the log is in a database, where it was written before anything was measured


EVENTS = (2**62, 2**62, 0)  # where to go on: after all results and leases, at the first event


def history_of(log: base.Log, judged: int) -> History:
    """What the log says of the plans up to `judged`, and of what was set aside. No reward is looked at."""
    tellers: dict[tuple[str, int], Counter[str]] = {}
    for told in log.tellers(judged):
        found = tellers.setdefault((told.status, told.plan if told.status == base.COUNTED else 0), Counter())
        found[told.source or NOBODY] += told.pulls
    kept = []
    for planned in log.plans():
        if planned.number > judged:
            break
        events = log.arrivals(planned.number, EVENTS).events
        reasons: Counter[str] = Counter()
        for event in events:
            if event.kind == base.ABANDONED:
                reasons[event.reason] += event.pulls
        closed = [event.at for event in events if event.kind == base.CLOSED and event.plan == planned.number]
        kept.append(
            KeptPulls(
                planned.number,
                planned.opened_at,
                closed[0] if closed else planned.opened_at,
                sum(event.pulls for event in events if event.kind == base.FAILED),
                tuple(reasons.items()),
                tuple(tellers.get((base.COUNTED, planned.number), Counter()).items()),
            )
        )
    aside = {kind: tuple(tellers.get((kind, 0), Counter()).items()) for kind in (base.LATE, base.PRIOR)}
    return History(tuple(kept), aside[base.LATE], aside[base.PRIOR], not isinstance(log, MemoryLog))


def batches(study: StudyFacts, kept: History) -> list[tuple[dict[str, Any], KeptPulls | None]]:
    """The closed batches, each with what the log says of it; of very many the first and the last few."""
    by_number = {one.number: one for one in kept.kept}
    looks = study.looks if len(study.looks) <= 2 * EDGES else (*study.looks[:EDGES], *study.looks[-EDGES:])
    return [(look, by_number.get(int(look["plan"]))) for look in looks]


def time(seconds: float) -> str:
    """A time in UTC, to the minute: the same wherever the report is made."""
    try:
        return base.to_the_minute(seconds).replace(" ", "\N{NO-BREAK SPACE}")
    except base.BEYOND:
        return base.NO_TIME


# --- Numbers, names and lists as they are written in a report, for readers who know no statistics of this kind.

MINUS = "\N{MINUS SIGN}"
MOST_DECIMALS = 9
LARGEST_PLAIN = 1e12
FIELD_WORDS = {"arm": "candidate", "arms": "candidates", "pull": "measurement", "pulls": "measurements"}
MOST_ROWS = 300  # of a table


def number_text(value: float | None, digits: int = 4) -> str:
    """A number as people write it: "1,204", "0.153", "\N{MINUS SIGN}2.5", "3.1e-07"; "unknown" for None."""
    if value is None:
        return "unknown"
    if value == 0:
        return "0"
    size = abs(value)
    if math.isinf(value):
        return f"{MINUS}infinite" if value < 0 else "infinite"
    if 1e-3 <= size < 10**digits:
        text = f"{size:,.{digits}g}"
    elif 10**digits <= size < 1e12:
        text = f"{size:,.0f}"
    else:
        text = f"{size:.{digits - 1}e}"
    return (MINUS if value < 0 else "") + text


def listed_words(parts: Iterable[str]) -> str:
    """Things in a sentence: "a, b and c"."""
    *most, last = parts
    return f"{', '.join(most)} and {last}" if most else last


def column(values: Sequence[float | None], digits: int = 4, *, unknown: str = "unknown") -> list[str]:
    """Numbers of one column, with so many decimals that a usual one has `digits` digits; too small ones apart."""
    sizes = sorted(abs(value) for value in values if value is not None and value != 0 and math.isfinite(value))
    usual = sizes[len(sizes) // 2] if sizes else 1.0
    decimals = min(max(digits - 1 - math.floor(math.log10(usual)), 0), MOST_DECIMALS)

    def written(value: float | None) -> str:
        if value is None:
            return unknown
        text = f"{abs(value):,.{decimals}f}"
        if not math.isfinite(value) or (value != 0 and not text.strip("0.,")) or abs(value) >= LARGEST_PLAIN:
            return number_text(value, digits)
        return (MINUS if value < 0 else "") + text

    return [written(value) for value in values]


def signed_column(values: Sequence[float | None], digits: int = 4, *, unknown: str = "unknown") -> list[str]:
    """The same, with their signs."""
    texts = column(values, digits, unknown=unknown)
    return [f"+{text}" if value is not None and value > 0 else text for value, text in zip(values, texts, strict=True)]


def plain_words(sentence: str, kept: Iterable[str] = ()) -> str:
    """A sentence of the library with its readers' words for those of the field."""
    own = [rf"(?<!\w){re.escape(text)}(?!\w)" for text in kept if text]
    words = r"\b(?:arms?|pulls?)\b"
    found = re.compile("|".join([*own, words]))
    return found.sub(lambda match: FIELD_WORDS.get(match[0], match[0]), sentence)


def shortened_id(text: str, most: int) -> str:
    """At most so many letters, the middle left out; names often differ at their ends."""
    if len(text) <= most:
        return text
    head = (most - 1) // 2
    return f"{text[:head]}\N{HORIZONTAL ELLIPSIS}{text[len(text) - (most - 1 - head) :]}"


def labels(names: Sequence[str], most: int) -> list[str]:
    """At most so many letters of each name, different if that can be done: what all begin with is left out first."""
    if all(len(name) <= most for name in names):
        return list(names)
    first, last = min(names), max(names)  # what these two begin with, all begin with
    shared = next((place for place, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), 0)
    dots = "\N{HORIZONTAL ELLIPSIS}"
    cut = min(shared, max(map(len, names)) + 1 - most)
    rest = [f"{dots}{name[cut:]}" if cut > 2 else name for name in names]
    ways = (
        [shortened_id(name, most) for name in rest],
        [name if len(name) <= most else f"{dots}{name[1 - most :]}" for name in rest],
        [name if len(name) <= most else f"{name[: most - 1]}{dots}" for name in rest],
    )
    return max(ways, key=lambda way: len(set(way)))  # of equals the first


def distinct(names: Sequence[str], most: int, longest: int) -> list[str]:
    """`labels`, made longer until names that differ do so, with at most `longest` letters."""
    wanted, found = len(set(names)), labels(names, most)
    while most < longest and len(set(found)) < wanted:
        most += 1
        found = labels(names, most)
    return found


# --- What the certificate says of its answer, made ready for readers: its reasons without its alarms, in plain words.

Doubt = Literal["contradicted", "missing-results", "network", "rule-of-thumb", "estimated-norm", "unknown"]


@record
class AnswerSection:
    """What is said of the answer in the certificate's own words."""

    doubt: Doubt
    grounds: str  # the certificate's reason without its alarms, and without what its rule concludes
    promise: str  # its promise; "" where nothing is proved, so that it would mislead
    reason: str  # its reason, with a word in place of its alarms, up to what its rule concludes
    conclusion: str  # what only the rule concludes, to be said as such; "" where it is proved
    abandoned: tuple[str, ...]  # why measurements were given up, each reason once


def answer_section(study: StudyFacts) -> AnswerSection:
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
    return AnswerSection(
        doubt=_doubt(study, abandoned),
        grounds=plain_words(CONCLUSION.sub("", _without_alarms(study, "")).strip(), own),
        promise=plain_words(promise, own),
        reason=plain_words(reason, own),
        conclusion=plain_words(conclusion, own),
        abandoned=abandoned,
    )


def users_words(study: StudyFacts) -> list[str]:
    """What people wrote into the study, longest first: reasons, and the candidate's name."""
    reasons = [reason for look in study.looks for reason in look["abandoned"]]
    reasons += [reason for _, reason in study.withdrawals] + [one["reason"] for one in study.corrections]
    ended = study.document["ended"]
    closed = [] if ended is None else [ended["reason"]]
    return sorted({*reasons, *closed, study.document["best_arm"]} - {""}, key=len, reverse=True)


def _doubt(study: StudyFacts, abandoned: tuple[str, ...]) -> Doubt:
    if study.standing == "contradicted":
        return "contradicted"
    if set(abandoned) - {base.INDEPENDENT_OF_VALUE}:
        return "missing-results"
    if study.algorithm in NETWORKS:
        return "network"
    if study.guesses:
        return "rule-of-thumb"
    return "estimated-norm" if ESTIMATED_NORM in study.document["reason"] else "unknown"


def _without_alarms(study: StudyFacts, instead: str) -> str:
    reason: str = study.document["reason"]
    for alarm in study.alarms:
        reason = reason.replace(f"The data speak against the embedding: {alarm}.", instead)
        instead = ""
    return " ".join(reason.split())
