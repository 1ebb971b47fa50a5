"""`verify`: every number of a certificate computed again from what was told, without the study or its database."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surepick.codec import encode
from surepick.errors import InvalidInput, SurepickError
from surepick.paths import read_regular
from surepick.records import Arms, IntArray, Observations, Plan
from surepick.studies.audit import TOLERANCE
from surepick.studies.certificate import (
    FORMAT,
    VERSION,
    Facts,
    Look,
    dense,
    digest,
    document_of,
    quick_plans,
)
from surepick.studies.circumstances import EarlyEnd
from surepick.studies.comparison import Comparison
from surepick.studies.legible import UNREADABLE
from surepick.studies.log import Circumstances
from surepick.studies.progress import times
from surepick.studies.results import check_sums
from surepick.studies.verify_lines import Line
from surepick.studies.verify_plans import ELSEWHERE, Plans, written_here
from surepick.text import printable
from surepick.threads import one_thread

if TYPE_CHECKING:
    from surepick.policies import Policy

BROKEN = (SurepickError, MemoryError, OSError, RuntimeError, *UNREADABLE)  # RecursionError is a RuntimeError
LARGEST = 2**30  # bytes of a certificate: 10,000 candidates of 4,000 features each have less
ANSWER = {  # line -> the fields that it is about
    "the answer": ("best_arm", "epsilon", "delta", "certified_gap", "minimize"),
    "the measurements spent": ("pulls",),
    "the verdict": ("verdict", "promise", "reason"),
    "the assumptions and checks": ("assumptions", "checks"),
    "the intervals": ("intervals",),
    "the candidates": ("candidates",),
}
WHOLE = ("plan", "look", "looks", "dim", "repeated")
FIRST = ("format", "version", "made_by", "arithmetic", "reproduced", "study", "arms", "policy", "algorithm", "ended")


@dataclass(frozen=True, slots=True)
class Verification:
    """What `verify_certificate` found.

    Args:
        lines: all that was checked, in order.
        verdict: the verdict that the file states.
    """

    lines: tuple[Line, ...]
    verdict: str

    @property
    def holds(self) -> bool:
        """Everything that was checked holds."""
        return all(line.holds for line in self.lines)

    def __str__(self) -> str:
        return "\n".join(f"{'holds' if line.holds else 'FAILS'}: {line.what}: {line.words}" for line in self.lines)


@dataclass(slots=True)
class _Findings:
    lines: list[Line] = field(default_factory=list)

    def add(self, what: str, wrong: str, words: str) -> bool:
        """A line that holds with these words, or fails with what is wrong."""
        self.lines.append(Line(what, not wrong, printable(wrong or words)))
        return not wrong

    def attempt(self, what: str, check: Callable[[], str]) -> bool:
        """A line about a check that gives its words, or raises what is wrong."""
        try:
            return self.add(what, "", check())
        except BROKEN as error:
            return self.add(what, _one_line(error), "")


def verify_certificate(
    source: str | Path | Mapping[str, Any],
    *,
    arms: Arms | None = None,
    policy: Policy[Any] | None = None,
    most_plans: int | None = None,
) -> Verification:
    """Compute again all that a certificate states, from what was told.

    The study is folded anew, plan by plan, by a policy built from the file; words, counts, candidates and verdicts must
    be equal, numbers equal within 1e-9 of their size. Where this process rounds as the one that wrote the file, and the
    versions are equal, the plans that came out equal there must come out equal here. Elsewhere another design is as
    good as the one that was used: then the stored bracket of its value must be compatible with the one found here. The
    promise rests on what was measured, not on why.

    Args:
        source: a file, or the certificate as JSON data.
        arms: the arms, where they are too many to be in the file (over 10,000).
        policy: the policy, where it was made of parts that have no name, so that the file cannot say it.
        most_plans: how many plans, from the first, are computed again; None: as many as take seconds (`quick_plans`).
            Everything else always is.

    Raises:
        InvalidInput: the file cannot be read, or is no certificate.
    """
    document = read_certificate(source)
    found = _Findings()
    stated = document.get("sha256")
    found.attempt("the file is whole", lambda: _whole(document, stated))
    wrong = _wrong_format(document)
    found.add("the format", wrong, f"{FORMAT}, version {VERSION}")
    if not wrong:
        with one_thread():  # as whoever writes one
            _recompute(document, found, arms, policy, most_plans)
    return Verification(tuple(found.lines), str(document.get("verdict")))


def read_certificate(source: str | Path | Mapping[str, Any]) -> dict[str, Any]:
    """The JSON data of a certificate, unchecked.

    Raises:
        InvalidInput: the file cannot be read, has more than 1 GiB (1,073,741,824 bytes), or is no certificate.
    """
    if isinstance(source, Mapping):
        document = dict(source)
    else:
        path = Path(source)
        content = read_regular(path, LARGEST)
        try:
            document = json.loads(content.decode(), parse_constant=_no_constant, object_pairs_hook=_no_repeats)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"{path} cannot be read as JSON: {_one_line(error)}.") from error
    if not isinstance(document, dict) or not {"format", "rounds", "sha256"} & set(document):
        raise InvalidInput(
            "this is no certificate: it lacks format, rounds and sha256. Write one with "
            "surepick certificate URL NAME --out FILE, or sp.write_certificate(study, FILE)."
        )
    return document


def _no_constant(text: str) -> float:
    raise ValueError(f"{text} is not a finite number")


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a field stands in it twice, and readers would disagree about which one counts")
    return found


def _whole(document: Mapping[str, Any], stated: object) -> str:
    found = digest(dict(document))
    if stated != found:
        raise ValueError(f"its SHA-256 is {found[:16]}..., and it states {str(stated)[:16]}...: something was changed")
    return f"its SHA-256 is {found}"


def _wrong_format(document: Mapping[str, Any]) -> str:
    if document.get("format") != FORMAT:
        return f"the format is {document.get('format')!r}, not {FORMAT!r}"
    number = document.get("version")
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        return f"the version is {number!r}, not a whole number from 1"
    if number > VERSION:
        return f"version {number} was written by a newer surepick; this one reads up to {VERSION}. Upgrade to check it"
    return ""


def _recompute(
    document: dict[str, Any],
    found: _Findings,
    arms: Arms | None,
    policy: Policy[Any] | None,
    most_plans: int | None,
) -> None:
    box: dict[str, Any] = {}

    def choose_arms() -> str:
        box["arms"] = _arms(document["arms"], arms)
        return f"{box['arms'].num_arms:,} candidates"

    def choose_policy() -> str:
        box["policy"] = _policy(document["policy"], box["arms"], policy)
        built = box["policy"]
        name = built.name if built.spec is None else built.spec["name"]
        return f"built again: {name}, epsilon {built.epsilon:g}, delta {built.delta:g}"

    def read_told() -> str:
        box["facts"] = _facts(document, box["arms"], box["policy"])
        told = sum(look.seen.total for look in box["facts"].looks)
        plans = times(len(box["facts"].looks), "plan")
        missing = sum(int(np.maximum(look.plan.counts - look.seen.counts, 0).sum()) for look in box["facts"].looks)
        words = f"{times(told, 'measurement')} in {plans}, all that was asked"
        if missing:
            words = f"{times(told, 'measurement')} in {plans}; {missing:,} more were asked, and given up with a reason"
        return words

    def fold() -> str:
        quick = quick_plans(box["policy"], len(box["facts"].looks))
        plans = Plans(box["facts"], quick if most_plans is None else most_plans)
        box["again"], box["plans"] = document_of(box["facts"], watch=plans.watch), plans
        return "all taken again, from the first to the last"

    steps = (
        ("the candidates and their features", choose_arms),
        ("the policy", choose_policy),
        ("what was told", read_told),
        ("the decisions", fold),
    )
    for what, step in steps:
        if not found.attempt(what, step):
            return
    _compare(document, box["again"], found, TOLERANCE if written_here(box["facts"]) else ELSEWHERE)
    found.lines.append(box["plans"].line())


def _compare(document: dict[str, Any], again: dict[str, Any], found: _Findings, tolerance: float) -> None:
    """Every field of the file with the one computed."""
    compared = {"the configuration": FIRST, **ANSWER}
    listed = {name for fields in compared.values() for name in fields} | {"rounds", "sha256"}
    surplus, missing = sorted(set(document) - listed), sorted(listed - set(document))
    odd = [*(f"unknown field {name!r}" for name in surplus), *(f"field {name!r} is missing" for name in missing)]
    found.add("the fields", "; ".join(odd), "all that a certificate has, and no other")
    same = Comparison(tolerance, again["epsilon"])
    for what, names in compared.items():
        wrong = next(filter(None, (same.difference(document.get(name), again[name], name) for name in names)), "")
        found.add(what, wrong, "as computed")
    stored, computed = document.get("rounds"), again["rounds"]
    if not isinstance(stored, list) or len(stored) != len(computed):
        found.add("the rounds", f"{len(computed)} rounds follow from what was told", "")
        return
    for row, (theirs, ours) in enumerate(zip(stored, computed, strict=True)):
        words = f"{times(ours['pulls'], 'measurement')}, {times(ours['active'], 'candidate')} left"
        found.add(f"round {ours['round']}", same.difference(theirs, ours, f"rounds[{row}]"), words)


# the facts


def _arms(entry: Mapping[str, Any], given: Arms | None) -> Arms:
    for name in ("columns", "preparation"):
        if entry[name] is not None and not (
            isinstance(entry[name], list) and all(isinstance(text, str) for text in entry[name])
        ):
            raise ValueError(f"{name} are not texts")
    if entry["ids"] is None:
        if given is None:
            raise ValueError(
                f"the {entry['number']:,} candidates are too many to be in the file; give their table (--arms TABLE)"
            )
        return Arms(given.features, given.ids, columns=entry["columns"], preparation=entry["preparation"])
    if entry["features"] is None:
        raise ValueError("the ids are in the file and the features are not")
    features = np.array(entry["features"], np.float64).reshape(len(entry["ids"]), -1)
    return Arms(features, entry["ids"], columns=entry["columns"], preparation=entry["preparation"])


def _policy(spec: Any, arms: Arms, given: Policy[Any] | None) -> Policy[Any]:
    from surepick.policies import make_policy  # noqa: PLC0415 (loads what the algorithm needs)

    if given is not None:
        if encode(given.spec) != spec:
            raise ValueError("the policy that was given is not that of the certificate")
        return given
    if spec is None:
        raise ValueError("the policy has parts without a name; give it: verify_certificate(file, policy=...)")
    return make_policy(arms=arms, **spec)


def _facts(document: Mapping[str, Any], arms: Arms, policy: Policy[Any]) -> Facts:
    minimize, ended = document["minimize"], document["ended"]
    if not isinstance(minimize, bool):
        raise ValueError("minimize is neither true nor false")
    if type(document["reproduced"]) is not int:
        raise ValueError("reproduced is no whole number")
    texts = {name: document[name] for name in ("made_by", "arithmetic")}
    texts["study"] = "" if document["study"] is None else document["study"]
    wrong = [name for name, text in texts.items() if not isinstance(text, str)]
    if wrong:
        raise ValueError(f"{', '.join(wrong)}: no text")
    looks = sorted(_looks(document["rounds"], arms, policy, minimize), key=lambda look: look.number)
    if [look.number for look in looks] != list(range(1, len(looks) + 1)):
        raise ValueError("the plans are not numbered 1, 2, 3, ...")
    return Facts(
        study=document["study"],
        made_by=document["made_by"],
        arithmetic=document["arithmetic"],
        reproduced=document["reproduced"],
        arms=arms,
        policy=policy,
        minimize=minimize,
        looks=tuple(looks),
        end=None if ended is None else EarlyEnd(**ended),
    )


def _looks(rounds: Sequence[Mapping[str, Any]], arms: Arms, policy: Policy[Any], minimize: bool) -> Iterator[Look]:
    index = {name: arm for arm, name in enumerate(arms.ids)}
    for entry in rounds:
        for look in entry["looks"]:
            wrong = [name for name in WHOLE if type(look[name]) is not int or look[name] < 0]
            if wrong or not all(isinstance(reason, str) for reason in look["abandoned"]):
                raise ValueError(f"{', '.join(wrong) or 'abandoned'} of a look is of another kind")
            number = look["plan"]
            seen = _seen(look["told"], arms, policy, minimize)
            counts = dense(look["asked"], arms.num_arms)
            missing = int(np.maximum(counts - seen.counts, 0).sum())
            if missing and not look["abandoned"]:
                raise ValueError(f"plan {number}: {missing} of the measurements asked were neither told nor given up")
            allocation = look["allocation"]
            plan = Plan(
                round=entry["round"],
                counts=counts,
                look=look["look"],
                looks=look["looks"],
                allocation=None if allocation is None else dense(allocation, arms.num_arms),
                dim=look["dim"],
                value=look["value"],
                lower_bound=look["lower_bound"],
                misspecification=look["misspecification"],
                candidate=None if look["candidate"] is None else index[look["candidate"]],
            )
            abandoned = tuple(look["abandoned"])
            came = Circumstances(bool(np.any(seen.counts > counts)), look["repeated"], abandoned)
            yield Look(number, plan, seen, came)


def _seen(told: Mapping[str, Any], arms: Arms, policy: Policy[Any], minimize: bool) -> Observations:
    """What was received, in the policy's sign; totals that no rewards within the declared bounds have are refused."""
    counts = dense(told, arms.num_arms)
    measured = np.flatnonzero(counts)
    sums, squares = _scattered(told["sums"], measured, arms), None
    if told["squares"] is not None:
        squares = _scattered(told["squares"], measured, arms)
    check_sums(counts, sums, squares, policy.noise, arms.ids)
    return Observations(counts, -sums if minimize else sums, squares)


def _scattered(values: Sequence[float], measured: IntArray, arms: Arms) -> np.ndarray:
    if len(values) != len(measured) or not all(isinstance(value, float) for value in values):
        raise ValueError("totals must be one number for each candidate that was measured")
    column = np.zeros(arms.num_arms)
    column[measured] = values
    return column


def _one_line(error: BaseException) -> str:
    text = str(error) or type(error).__name__
    if isinstance(error, KeyError):
        text = f"there is no {error}"
    return " ".join(text.split())
