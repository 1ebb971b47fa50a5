"""The facts of a certificate, read from the file: we refuse values of another kind or out of range."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from surepick.certificates.answers import additions_of, with_answers, with_blocks, withdrawals_of
from surepick.certificates.columns import dense
from surepick.certificates.document import Facts
from surepick.certificates.quantities import check_deviations, with_quantities
from surepick.core.arms import Arms, KnownIds
from surepick.core.arrays import IntArray
from surepick.core.json import encode
from surepick.core.observations import Observations
from surepick.core.plan import Plan
from surepick.policies.base import Policy, spec_of
from surepick.questions import constraints_of
from surepick.studies.deviations import EarlyEnd
from surepick.studies.logs.base import CLOSED_ROUNDS, Deviations
from surepick.studies.replay import Closed
from surepick.studies.validation import check_sums, checked_judge

WHOLE = {  # of a look -> the least that it can be
    **dict.fromkeys(("plan", "look", "looks"), 1),
    **dict.fromkeys(("dim", "repeated", "undone", "confirmed", "unasked"), 0),
}
LARGEST = 2**63 - 1  # what a database can hold
ARITHMETIC = re.compile("[0-9a-f]{16}")


def arms_of(entry: Mapping[str, Any], given: Arms | None) -> Arms:
    """The candidates.

    Args:
        entry: what the file says of them.
        given: they themselves, where they are too many to be in the file.

    Raises:
        ValueError, InvalidInput: they are not there, or are no candidates.
    """
    for name in ("columns", "preparation"):
        if entry[name] is not None and not (
            isinstance(entry[name], list) and all(isinstance(text, str) for text in entry[name])
        ):
            raise ValueError(f"{name} are not texts")
    described: dict[str, Any] = {"columns": entry["columns"], "preparation": entry["preparation"]}
    if entry["ids"] is None:
        if given is None:
            raise ValueError(
                f"the {entry['number']:,} candidates are too many to be in the file; give their table (--arms TABLE)"
            )
        if "costs" in entry and given.costs is None:
            raise ValueError("these candidates had costs; name their column (--cost COLUMN)")
        if "segments" in entry and given.segments is None:
            raise ValueError("these candidates had segments; name their column (--segments COLUMN)")
        described["segments"] = given.segments if "segments" in entry else None
        return Arms(given.features, KnownIds(given.ids), **described, costs=given.costs if "costs" in entry else None)
    if entry["features"] is None:
        raise ValueError("the ids are in the file and the features are not")
    features = np.array(entry["features"], np.float64).reshape(len(entry["ids"]), -1)
    costs = entry.get("costs")
    if "costs" in entry and not (isinstance(costs, list) and all(_is_number(cost) for cost in costs)):
        raise ValueError("costs are not one number for each candidate")
    segments = entry.get("segments")
    if "segments" in entry and not (isinstance(segments, list) and all(isinstance(one, str) for one in segments)):
        raise ValueError("segments are not one text for each candidate")
    ids = KnownIds(entry["ids"]) if isinstance(entry["ids"], list) else entry["ids"]
    return Arms(features, ids, **described, costs=costs, segments=segments)


def policy_of(spec: Any, arms: Arms, given: Policy[Any] | None) -> Policy[Any]:
    """The policy, built from its name and options.

    Args:
        spec: these; None if it has parts without a name.
        arms: what it chooses among.
        given: the policy, where it has parts without a name.

    Raises:
        ValueError, InvalidInput: it cannot be built, or the one given is another.
    """
    from surepick.policies.registry import built_policy  # noqa: PLC0415 (loads what the algorithm needs)

    if given is not None:
        if encode(spec_of(given)) != spec:
            raise ValueError("the policy that was given is not that of the certificate")
        return given
    if spec is None:
        raise ValueError("the policy has parts without a name; give it: verify_certificate(file, policy=...)")
    return built_policy(arms=arms, **spec)


def facts_of(document: Mapping[str, Any], arms: Arms, policy: Policy[Any]) -> Facts:
    """All that a certificate rests on.

    Raises:
        ValueError, LookupError, TypeError, InvalidInput: something is missing, of another kind, or impossible.
    """
    _check_texts(document)
    minimize = document["minimize"]
    if not isinstance(minimize, bool):
        raise ValueError("minimize is neither true nor false")
    judge = checked_judge(document["judge"], policy, minimize=minimize)
    in_parts = judge != CLOSED_ROUNDS
    looks = sorted(_looks(document["rounds"], arms, policy, minimize, in_parts), key=lambda look: look.number)
    if [look.number for look in looks] != list(range(1, len(looks) + 1)):
        raise ValueError("the plans are not numbered 1, 2, 3, ...")
    _check_asked(looks, arms)
    reproduced = document["reproduced"]
    if type(reproduced) is not int or not 0 <= reproduced <= len(looks):
        raise ValueError(f"reproduced is {_short(reproduced)}, which is not a number of plans from 0 to {len(looks)}")
    return Facts(
        study=document["study"],
        study_id=document["study_id"],
        made_by=document["made_by"],
        arithmetic=document["arithmetic"],
        reproduced=reproduced,
        arms=arms,
        policy=policy,
        minimize=minimize,
        looks=tuple(looks),
        end=_end(document["ended"], arms.num_arms, {one.arm for look in looks for one in look.deviations.withdrawn}),
        judge=judge,
    )


def _check_texts(document: Mapping[str, Any]) -> None:
    """Refuse texts that are no text, or no arithmetic."""
    texts = {name: document[name] for name in ("study_id", "made_by", "arithmetic")}
    texts["study"] = "" if document["study"] is None else document["study"]
    wrong = [name for name, text in texts.items() if not isinstance(text, str)]
    if wrong:
        raise ValueError(f"{', '.join(wrong)}: no text")
    if not ARITHMETIC.fullmatch(document["arithmetic"]):
        raise ValueError(f"arithmetic is {_short(document['arithmetic'])}, not 16 hexadecimal digits")


def _end(ended: Any, num_arms: int, gone: set[int]) -> EarlyEnd | None:
    """How the study was closed early.

    Args:
        ended: what the file says.
        num_arms: K.
        gone: who was withdrawn before.
    """
    if ended is None:
        return None
    end = EarlyEnd(**{**ended, "withdrawn": withdrawals_of(ended, num_arms, gone)})
    if not isinstance(end.reason, str):
        raise ValueError("ended.reason is no text")
    if not _is_number(end.at):
        raise ValueError(f"ended.at is {_short(end.at)}, which is no time")
    if type(end.missing) is not int or not 0 <= end.missing <= LARGEST:
        raise ValueError(f"ended.missing is {_short(end.missing)}, which is no number of measurements")
    if end.predicted is not None and not (_is_number(end.predicted) and end.predicted >= end.missing):
        raise ValueError(
            f"ended.predicted is {_short(end.predicted)}, and no fewer measurements than the {end.missing} that were "
            "missing can have been predicted"
        )
    return end


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _short(value: object) -> str:
    """The value in an error message; an integer may have thousands of digits."""
    if type(value) is int and abs(value) > LARGEST:
        return f"a whole number of {value.bit_length():,} bits"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _looks(
    rounds: Sequence[Mapping[str, Any]], arms: Arms, policy: Policy[Any], minimize: bool, in_parts: bool
) -> Iterator[Closed]:
    index, gone = {name: arm for arm, name in enumerate(arms.ids)}, set[int]()
    waiting = set(policy.traits.later)
    for entry in rounds:
        if type(entry["round"]) is not int or not 1 <= entry["round"] <= LARGEST:
            raise ValueError(f"a round has the number {_short(entry['round'])}, not a whole number from 1")
        for look in entry["looks"]:
            _check_look(look)
            number = look["plan"]
            seen = with_answers(_seen(look["told"], arms, policy, minimize), look, arms.num_arms)
            seen = with_blocks(seen, look, wanted=policy.traits.blocks is not None, minimize=minimize)
            seen = with_quantities(seen, look, wanted=len(constraints_of(policy.problem.question)))
            counts = dense(look["asked"], arms.num_arms)
            missing = sum(np.maximum(counts - seen.counts, 0).tolist())  # as whole numbers: a sum of int64 may wrap
            if missing and not look["abandoned"] and not in_parts:
                raise ValueError(
                    f"plan {number}: {missing} of the measurements asked were neither reported nor given up"
                )
            allocation = look["allocation"]
            lists = policy.traits.certifies == "lists" and entry["round"] > 1
            value = "predicted_pulls" if lists or look["candidate"] is not None else "design_value"
            plan = Plan(
                round=entry["round"],
                counts=counts,
                look=look["look"],
                looks=look["looks"],
                allocation=None if allocation is None else dense(allocation, arms.num_arms),
                dim=look["dim"],
                **{value: look["value"]},
                lower_bound=look["lower_bound"],
                misspecification=look["misspecification"],
                predicted_cost=look.get("predicted_cost"),
                candidate=None if look["candidate"] is None else index[look["candidate"]],
                first_items=_places(look, policy),
            )
            came = Deviations(
                bool(np.any(seen.counts > counts)),
                look["repeated"],
                tuple(look["abandoned"]),
                withdrawn=withdrawals_of(look, arms.num_arms, gone),
                added=additions_of(look, waiting),
                undone=look["undone"],
                confirmed=look["confirmed"],
                unasked=look["unasked"],
            )
            yield Closed(number, plan, seen, came)


def _places(look: Mapping[str, Any], policy: Policy[Any]) -> IntArray | None:
    """The place of the first item that each arm was asked for; None where measurements are draws."""
    first, items = look.get("first_items"), policy.traits.items
    if (first is None) != (items is None):
        raise ValueError(f"plan {look['plan']} asks for test items, or its policy does, and not both")
    if first is None or items is None:
        return None
    last = items.items.num_items
    if len(first) != policy.problem.num_arms or not all(type(one) is int and 0 <= one < last for one in first):
        raise ValueError(f"plan {look['plan']}: first_items is not one place among {last:,} for each candidate")
    return np.array(first, np.int64)


def _check_asked(looks: Sequence[Closed], arms: Arms) -> None:
    """Refuse results of arms that neither their plan nor one before it asked for."""
    asked = np.zeros(arms.num_arms, bool)
    for look in looks:
        asked |= look.plan.counts > 0
        stray = np.flatnonzero(~asked & (look.seen.counts > 0))
        if len(stray):
            raise ValueError(f"plan {look.number}: {arms.ids[stray[0]]!r} has results, and no plan asked for any")


def _check_look(look: Mapping[str, Any]) -> None:
    """Refuse numbers of a look that no look can have."""
    for name, least in WHOLE.items():
        if type(look[name]) is not int or not least <= look[name] <= LARGEST:
            raise ValueError(f"{name} of a look is {_short(look[name])}, not a whole number from {least}")
    if look["look"] > look["looks"]:
        raise ValueError(f"plan {look['plan']} is look {look['look']} of {look['looks']}")
    cost = look.get("predicted_cost", 0.0)
    if not _is_number(cost) or cost < 0.0:
        raise ValueError(f"predicted_cost of plan {look['plan']} is {_short(cost)}, which is no amount of money")
    reasons = look["abandoned"]
    if not isinstance(reasons, list) or not all(isinstance(reason, str) and reason for reason in reasons):
        raise ValueError(f"plan {look['plan']}: abandoned is not a list of reasons")


def _seen(totals: Mapping[str, Any], arms: Arms, policy: Policy[Any], minimize: bool) -> Observations:
    """What was received, in the policy's sign; totals that no rewards within the declared bounds have are refused."""
    counts = dense(totals, arms.num_arms)
    measured = np.flatnonzero(counts)
    sums, squares, within = _scattered(totals["sums"], measured, arms), None, None
    if totals["squares"] is not None:
        squares = _scattered(totals["squares"], measured, arms)
    check_sums(counts, sums, squares, policy.problem.noise, arms.ids)
    if "deviations" in totals:
        within = _scattered(totals["deviations"], measured, arms)
        check_deviations(counts, sums, squares, within)
    sign, rests = -1.0 if minimize else 1.0, None
    if "rests" in totals:
        rests = sign * _scattered(totals["rests"], measured, arms)
        if not np.all(np.abs(rests) <= np.spacing(np.abs(sums))):
            raise ValueError("rests of totals are more than rounding takes")
    return Observations(counts, sign * sums, squares, within=within, rests=rests)


def _scattered(values: Sequence[float], measured: IntArray, arms: Arms) -> np.ndarray:
    if len(values) != len(measured) or not all(isinstance(value, float) for value in values):
        raise ValueError("totals must be one number for each candidate that was measured")
    column = np.zeros(arms.num_arms)
    column[measured] = values
    return column
