"""Somebody who holds a certificate and wants it to say more: one thing altered, all that follows computed anew."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import certificate_flips as flips

from surepick.certificates import document as certificate, verify_facts
from surepick.certificates.document import document_of  # as it is before tests compare what it makes with the schema
from surepick.certificates.signature import sealed
from surepick.certificates.verify import BROKEN, verify_certificate
from surepick.errors import SurepickError

ANOTHER_MACHINE = "0" * 16

# What a registration code does not stand for, and why; everything else must be refused.
RESULTS = "what was told: the results are not known when the code is made"
CONDUCT = "how the study was carried out: not known when the code is made, and named in the certificate"
NAMING = "a name: it promises nothing"
WRITER = "which program wrote the file, and what it computed again: the promise does not rest on it"
DESIGN = (
    "a plan that was asked for on another machine than the writer's, which the file may say: another design may be as "
    "good, and the promise rests on what was measured, not on why"
)
LOOK = ("rounds", "#", "looks", "#")
NOT_COVERED = {
    ("study",): NAMING,
    ("made_by",): WRITER,
    ("reproduced",): WRITER,
    ("ended",): CONDUCT,
    ("rounds",): RESULTS,  # cut off at the end, it is the certificate of an earlier moment
    ("rounds", "#", "looks"): RESULTS,
    (*LOOK, "told", "squares"): RESULTS,  # a number alone would not agree with the deviations beside it
    **{(*LOOK, name): CONDUCT for name in ("repeated", "abandoned", "undone", "confirmed", "unasked")},
    (*LOOK, "asked", "pulls", "#"): DESIGN,
    (*LOOK, "value"): DESIGN,
    (*LOOK, "lower_bound"): DESIGN,
}
PLAUSIBLE: dict[tuple[str, ...], tuple[Any, ...]] = {  # other values that make sense there
    ("policy", "noise"): ("bounded:-2.5:2.0", "bounded:-3.0:3.0", "subgaussian:1.0", "subgaussian:0.1"),
    ("policy", "gap_bound"): (0.5, 3.0),
    ("policy", "dim"): (1, 2),
    ("policy", "largest_batch"): (5, 1000),
    ("policy", "max_rank"): (1, 2),
    ("policy", "norm_source"): ("estimated", "declared", "known"),
    ("policy", "bound"): ("paper", "tight", "pointwise"),
    ("policy", "schedule"): ("paper", "uniform", "convergent"),
    ("policy", "union"): ("all", "best-pairs"),
    ("policy", "floor"): ("published", "support"),
    ("policy", "stopping"): ("rounds", "certified"),
    ("policy", "dimension"): ("effective", "cheapest"),
    ("policy", "checkable"): (True, False),
    ("ended",): ({"reason": "no more money", "at": 1.7e9, "missing": 3, "predicted": None, "withdrawn": []},),
    ("rounds", "#", "looks", "#", "abandoned"): (["independent-of-value"], ["it looked good"]),
    ("arms", "columns"): (["y", "x"],),
    ("arms", "preparation"): (["standardize"],),
}


@dataclass
class Forgeries:
    """What became of the forgeries of a certificate.

    Args:
        tried: files that were handed to `verify`.
        nothing: alterations that computing anew took back.
        passed: kinds of places -> forgeries that hold although the code is given.
        needed: kinds of places -> forgeries that hold unless the code is given.
    """

    tried: int = 0
    nothing: int = 0
    passed: Counter[tuple[str, ...]] = field(default_factory=Counter)
    needed: Counter[tuple[str, ...]] = field(default_factory=Counter)


def others(path: flips.Path, value: Any) -> list[Any]:
    """Other values for a place: some that somebody would want, others of the same kind, and of another."""
    found = list(PLAUSIBLE.get(flips.kind(path), ()))
    if isinstance(value, float):
        found += [value / 2.0, value * 1e-4]
    if isinstance(value, list) and len(value) > 1:
        found += [value[::-1], value[1:]]
    found += flips.altered(value)
    if isinstance(value, int) and not isinstance(value, bool):
        found += [-1, 10**30]
    return [other for other in found if other != value or type(other) is not type(value)]


def computed_anew(spoilt: dict[str, Any], *, plans: bool = False) -> dict[str, Any] | None:
    """What an honest writer would write if these were the facts; None if they are none.

    Args:
        spoilt: a certificate with altered facts.
        plans: state for each plan the value that its design would have had under these facts.
    """
    try:
        arms = verify_facts.stated_arms(spoilt["arms"], None)
        facts = verify_facts.stated_facts(spoilt, arms, verify_facts.stated_policy(spoilt["policy"], arms, None))
        facts = with_new_values(facts) if plans else facts
        repeated = certificate.signature.Repeated(facts.policy, len(facts.looks))
        document = document_of(facts, watch=repeated.watch)
    except (SurepickError, *BROKEN):
        return None
    written_elsewhere = spoilt["arithmetic"] == ANOTHER_MACHINE
    return sealed({**document, "reproduced": 0 if written_elsewhere else repeated.equal})


def with_new_values(facts: certificate.Facts) -> certificate.Facts:
    """The facts, each plan with the value, the bound and the bias that the policy would have found."""
    state, looks = facts.policy.init(), []
    for look in facts.looks:
        again = facts.policy.ask(state)
        plan = replace(
            look.plan,
            design_value=again.design_value,
            predicted_pulls=again.predicted_pulls,
            lower_bound=again.lower_bound,
            misspecification=again.misspecification,
        )
        looks.append(replace(look, plan=plan))
        state = facts.policy.tell(state, plan, look.seen).state
    return replace(facts, looks=tuple(looks))


def altered(document: dict[str, Any], path: flips.Path, value: Any) -> dict[str, Any]:
    """The certificate with another value there; a candidate with another name has it everywhere."""
    if path[:2] == ("arms", "ids") and len(path) == 3:
        old = flips.at(document, path)
        for place in list(flips.paths(document["rounds"])):
            if place[-1] == "candidate" and flips.at(document["rounds"], place) == old:
                document = flips.replaced(document, ("rounds", *place), value)
    return flips.replaced(document, path, value)


def files(document: dict[str, Any], path: flips.Path, value: Any) -> Iterator[dict[str, Any]]:
    """The files that a forger can make of one alteration: with a new digest; with everything new; with the old code
    beside it; with plans whose values fit.
    """
    spoilt = altered(document, path, value)
    yield sealed(spoilt)
    anew = computed_anew(spoilt)
    if anew is None:
        return
    yield anew
    if anew["registration"] != document["registration"]:
        yield sealed({**anew, "registration": document["registration"]})
        better = computed_anew(spoilt, plans=True)
        if better not in (None, anew):
            yield better


def forge(
    document: dict[str, Any],
    *,
    each: int,
    values: int = 10**6,
    beyond: dict[str, Any] | None = None,
    within: tuple[str, ...] | None = None,
) -> Forgeries:
    """Alter so many places of each kind, in so many ways, and hand what comes of it to `verify` with the true code.

    Args:
        document: the certificate.
        each: places of each kind.
        values: other values of a place.
        beyond: another certificate, whose kinds of places are passed over.
        within: the fields whose places are altered; None: all.
    """
    known = {flips.kind(path) for path in flips.paths(beyond or {})}
    code, found = document["registration"], Forgeries()
    for path in flips.some_of_each_kind(document, each):
        if path == ("sha256",) or flips.kind(path) in known or path[0] not in (within or path):
            continue
        for value in others(path, flips.at(document, path))[:values]:
            for file in files(document, path, value):
                if file == document:
                    found.nothing += 1
                    continue
                found.tried += 1
                wrong = [line.what for line in verify_certificate(file, registered=code).lines if not line.holds]
                if not wrong:
                    found.passed[flips.kind(path)] += 1
                elif wrong == ["the registration"]:
                    found.needed[flips.kind(path)] += 1
    return found


def as_if_elsewhere(document: dict[str, Any]) -> dict[str, Any]:
    """The certificate as another machine would have written it: plans are compared by their brackets then."""
    return sealed({**document, "arithmetic": ANOTHER_MACHINE, "reproduced": 0})
