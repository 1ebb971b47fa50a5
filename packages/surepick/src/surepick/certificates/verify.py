"""`verify`: we compute every number of a certificate again from its results, without the study or its database."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from surepick.assumptions import Assumption, Reading, parse_assumption
from surepick.certificates.answers import DocumentComparison, Line
from surepick.certificates.document import FORMAT, VERSION, Facts, document_of
from surepick.certificates.signature import check_signature, digest, quick_plans, trusted_key
from surepick.certificates.verify_facts import ELSEWHERE, PlansAgain, stated_arms, stated_facts, stated_policy
from surepick.chunks.sources import LongListed, RowBlocks
from surepick.core.arms import Arms
from surepick.core.files import as_path, read_regular
from surepick.core.records import TOLERANCE, read_json
from surepick.errors import InvalidInput, SurepickError
from surepick.linalg.rows import one_thread
from surepick.policies.base import Policy, name_of
from surepick.studies.logs.base import CLOSED_ROUNDS
from surepick.studies.logs.hash_chain import UNREADABLE
from surepick.studies.progress import times
from surepick.studies.readings import Evidence, read_evidence
from surepick.studies.registration import read_code
from surepick.text import printable, quoted

# --- What a certificate cannot say of itself: whether its promise was fixed before the first result, and of whom it is.

MEASURED = "What this cannot check: that the measurements were made as they were reported, and what is assumed of them."
TRIED = (
    "It cannot tell whether other studies of this question, other samples of the list, or other orders of test items "
    "were tried before this one: each of them has a registration code of its own."
)
KEPT = "It cannot tell when this registration code was written down: that is known to whoever kept it."
UNSELECTED = (
    "It cannot tell whether these candidates are rightly selected from {total:,}: that takes the list itself (--arms "
    "FOLDER), and some minutes."
)
UNTOLD = (
    "It cannot tell whether epsilon, delta, noise and policy were fixed before the first result: that takes the "
    "registration code that was written down then (--registered CODE)."
)


ALL_IN = "all that was asked"
BROKEN = (SurepickError, MemoryError, OSError, RuntimeError, *UNREADABLE)  # RecursionError is a RuntimeError
LARGEST = 2**30  # bytes of a certificate: 10,000 candidates of 4,000 features each have less
ANSWER = {  # line -> the fields that it is about
    "the answer": ("best_arm", "lists", "epsilon", "delta", "certified_gap", "minimize"),
    "the measurements spent": ("pulls", "cost"),
    "the verdict": ("verdict", "promise", "reason"),
    "the assumptions and checks": ("assumptions", "checks"),
    "the intervals": ("intervals",),
    "the candidates": ("candidates",),
}
FIRST = (
    *("format", "version", "made_by", "arithmetic", "reproduced", "study", "study_id", "arms", "policy", "algorithm"),
    *("registration", "ended", "judge", "items"),
)
COMPARED = {"the configuration": FIRST, **ANSWER}


@dataclass(frozen=True, slots=True)
class Verification:
    """What `verify_certificate` found."""

    lines: tuple[Line, ...]  # all that was checked, in order
    verdict: str  # that the file states
    registration: str | None  # the code that the file amounts to; None: it has none, or none can be computed
    unchecked: tuple[str, ...]  # what could not be checked, a sentence each
    readings: tuple[Reading, ...] = ()  # under the assumptions that were named; none where a line fails

    @property
    def holds(self) -> bool:
        """Everything that was checked holds."""
        return all(line.holds for line in self.lines)

    def __str__(self) -> str:
        lines = (f"{'holds' if line.holds else 'FAILS'}: {line.what}: {line.words}" for line in self.lines)
        return "\n".join((*lines, *self.unchecked, *map(str, self.readings)))


@dataclass(slots=True)
class _Findings:
    lines: list[Line] = field(default_factory=list)
    document: dict[str, Any] = field(default_factory=dict)  # computed again; empty if it cannot be
    unselected: str = ""  # of candidates that were selected from a longer list, in words
    evidence: Evidence | None = None  # None: what was told cannot be computed again

    @property
    def holds(self) -> bool:
        """All that was found so far holds."""
        return all(line.holds for line in self.lines)

    def add(self, what: str, wrong: str, words: str) -> None:
        """A line that holds with these words, or fails with the fault."""
        self.lines.append(Line(what, not wrong, printable(wrong or words)))

    def attempt(self, what: str, check: Callable[[], str]) -> None:
        """A line about a check that returns its words, or raises the fault."""
        try:
            self.add(what, "", check())
        except BROKEN as error:
            self.add(what, _one_line(error), "")


def verify_certificate(
    source: str | Path | Mapping[str, Any],
    *,
    arms: Arms | None = None,
    policy: Policy[Any] | None = None,
    most_plans: int | None = None,
    registered: str | None = None,
    public_key: str | Path | None = None,
    long_list: RowBlocks | None = None,
    assume: Sequence[str | Assumption] = (),
) -> Verification:
    """Compute again all that a certificate states, from its results.

    The study is replayed, plan by plan, by a policy built from the file; words, counts, candidates and verdicts must
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
        registered: the registration code that was written down before the first result. A certificate of any other
            promise, by another policy or about other candidates does not hold then.
        public_key: a file with the Ed25519 key that must have signed the certificate, in PEM or as OpenSSH writes it.
        long_list: the list from which the arms were selected, where they were: then they are selected again. Without
            it, only the rows that the file has paths for are shown to be on that list.
        assume: assumptions of the reader's own, under which the results are read ("linear:norm=10", ...; docs/
            certificates.md): that needs the results and the features, which the file has, and nothing else.

    Raises:
        InvalidInput: the file or the key cannot be read, is no certificate or no key, or the code is none; or an
            assumption is none, or cannot be read of this study.
    """
    code = None if registered is None else read_code(registered)
    trusted = None if public_key is None else trusted_key(public_key)
    assumed = [parse_assumption(one) for one in assume]
    document = read_certificate(source)
    found = _Findings()
    stated = document.get("sha256")
    found.attempt("the file is whole", lambda: _whole(document, stated))
    kind, number, wrong = document.get("format"), document.get("version"), ""
    if not isinstance(kind, str) or kind != FORMAT:
        wrong = f"the format is {quoted(kind)}, not {FORMAT!r}"
    elif type(number) is not int or number != VERSION:
        wrong = (
            f"the version is {quoted(number)}, and this surepick reads version {VERSION}. Write it anew with surepick "
            "certificate, or check it with the one in made_by"
        )
    found.add("the format", wrong, f"{FORMAT}, version {number}")
    if document.get("signature") is not None or trusted is not None:
        found.attempt("the signature", lambda: check_signature(document, trusted))
    if not wrong:
        with one_thread():  # as the writer does
            _recompute(document, found, arms, policy, most_plans, long_list)
    amounts = found.document.get("registration")
    if code is not None:
        found.attempt("the registration", lambda: _registered(found, code))
    untold = UNTOLD
    if found.document:
        has = "has no code: its policy has parts without a name" if amounts is None else f"amounts to {amounts}"
        untold = f"{UNTOLD} This file {has}."
    unchecked = [untold if code is None else KEPT]
    if found.unselected and long_list is None:
        unchecked.insert(0, found.unselected)
    if found.document.get("pulls") and found.holds:
        unchecked = [MEASURED, *unchecked, TRIED]
    readings: tuple[Reading, ...] = ()
    if assumed and found.evidence is not None and found.holds:
        with one_thread():
            readings = read_evidence(found.evidence, *assumed)
    return Verification(tuple(found.lines), str(document.get("verdict")), amounts, tuple(unchecked), readings)


def read_certificate(source: str | Path | Mapping[str, Any]) -> dict[str, Any]:
    """The JSON data of a certificate, unchecked."""
    if isinstance(source, Mapping):
        document = dict(source)
    else:
        path = as_path(source, meaning="or the certificate as JSON data.")
        content = read_regular(path, LARGEST)
        try:
            document = read_json(content.decode())
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"{path} cannot be read as JSON: {_one_line(error)}.") from error
    if not isinstance(document, dict) or not {"format", "rounds", "sha256"} & set(document):
        raise InvalidInput(
            "this is no certificate: it lacks format, rounds and sha256. Write one with "
            "surepick certificate URL NAME --out FILE, or sp.write_certificate(study, FILE)."
        )
    return document


def _whole(document: Mapping[str, Any], stated: object) -> str:
    found = digest(dict(document))
    if stated != found:
        raise ValueError(f"its SHA-256 is {found[:16]}..., and it states {str(stated)[:16]}...: something was changed")
    return f"its SHA-256 is {found}"


def _recompute(
    document: dict[str, Any],
    found: _Findings,
    arms: Arms | None,
    policy: Policy[Any] | None,
    most_plans: int | None,
    long_list: RowBlocks | None,
) -> None:
    what = "the candidates and their features"
    try:
        chosen = stated_arms(document["arms"], arms)
        found.add(what, "", f"{chosen.num_arms:,} candidates")
        what = "the policy"
        built = stated_policy(document["policy"], chosen, policy)
        stated = f"epsilon {built.problem.epsilon:g}, delta {built.problem.delta:g}"
        found.add(what, "", f"built again: {name_of(built)}, {stated}")
        what = "what was told"
        facts = stated_facts(document, chosen, built)
        found.add(what, "", _told(facts))
        what = "the decisions"
        plans = PlansAgain(facts, quick_plans(built, len(facts.looks)) if most_plans is None else most_plans)
        again = document_of(facts, watch=plans.watch)
        found.add(what, "", "all taken again, from the first to the last")
    except BROKEN as error:
        found.add(what, _one_line(error), "")
        return
    made = [one for look in facts.looks for one in look.deviations.corrected]
    if made:
        said = (f"{one.typed:.12g} of {chosen.ids[one.arm]!r} in plan {one.of} became {one.read:.12g}" for one in made)
        found.add("the corrections", "", f"{times(len(made), 'result')}, by what was read: {'; '.join(said)}")
    listed: LongListed | None = built.traits.long_list
    if listed is not None:
        found.unselected = UNSELECTED.format(total=listed.total)
    if long_list is not None and listed is not None:
        found.attempt("the selection", partial(listed.check, long_list))
    elif long_list is not None:
        wrong = "the certificate does not say that its candidates were selected from a longer list"
        found.add("the selection", wrong, "")
    found.document = again
    found.evidence = Evidence(built, chosen, facts.looks, facts.minimize)
    _compare(document, again, found, TOLERANCE if plans.here else ELSEWHERE)
    found.lines.append(plans.line())


def _told(facts: Facts) -> str:
    """What was told, in words."""
    pulls = sum(look.seen.total for look in facts.looks)
    missing = sum(int(np.maximum(look.plan.counts - look.seen.counts, 0).sum()) for look in facts.looks)
    words = f"{times(pulls, 'measurement')} in {times(len(facts.looks), 'plan')}"
    if facts.judge != CLOSED_ROUNDS:
        return f"{words}, judged as they came"
    return f"{words}; {missing:,} more were asked, and given up with a reason" if missing else f"{words}, {ALL_IN}"


def _compare(document: dict[str, Any], again: dict[str, Any], found: _Findings, tolerance: float) -> None:
    """Every field of the file with the one computed."""
    compared = {what: tuple(name for name in names if name in again) for what, names in COMPARED.items()}
    unlike = {"rounds", "sha256", "signature"} & set(again)  # compared in another way, or of the rest
    listed = {name for fields in compared.values() for name in fields} | unlike
    surplus, missing = sorted(set(document) - listed), sorted(listed - set(document))
    odd = [*(f"unknown field {name!r}" for name in surplus), *(f"field {name!r} is missing" for name in missing)]
    found.add("the fields", "; ".join(odd), "all that a certificate has, and no other")
    same = DocumentComparison(tolerance, again["epsilon"])
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


def _registered(found: _Findings, code: str) -> str:
    """That a certificate promises what was registered."""
    if not found.document:
        raise ValueError(f"what was registered, {code}, cannot be compared: the file does not say what was asked")
    amounts = found.document["registration"]
    if amounts is None:
        raise ValueError(f"the policy has parts without a name, so no code stands for it, and {code} was registered")
    if amounts != code:
        raise ValueError(
            f"the file amounts to {amounts}, and {code} was registered: epsilon, delta, noise, an option of the "
            "policy, the candidates or what is minimized is another one, or it is another study of the same question"
        )
    return f"{code}, as it was registered"


def _one_line(error: BaseException) -> str:
    text = str(error) or type(error).__name__
    if isinstance(error, KeyError):
        text = f"there is no {error}"
    return " ".join(text.split())
