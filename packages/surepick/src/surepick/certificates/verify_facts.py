"""The facts of a certificate, read from the file: we refuse values of another kind or out of range."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from surepick.certificates import answers
from surepick.certificates.document import Facts, version
from surepick.certificates.signature import arithmetic, plan_difference
from surepick.core.arms import Arms, KnownIds
from surepick.core.observations import Observations, Quantity
from surepick.core.plans import Plan
from surepick.core.records import TOLERANCE, IntArray, encode
from surepick.designs import design_value
from surepick.noise import Noise, Normal
from surepick.policies.base import Policy, spec_of, stopped
from surepick.questions import constraints_of
from surepick.studies.deviations import EarlyEnd
from surepick.studies.logs.base import CLOSED_ROUNDS, Deviations
from surepick.studies.replay import Closed
from surepick.studies.validation import check_sums, checked_judge
from surepick.text import printable

WHOLE = {  # of a look -> the least that it can be
    **dict.fromkeys(("plan", "look", "looks"), 1),
    **dict.fromkeys(("dim", "repeated", "undone", "confirmed", "unasked"), 0),
}
LARGEST = 2**63 - 1  # what a database can hold
ARITHMETIC = re.compile("[0-9a-f]{16}")


def stated_arms(entry: Mapping[str, Any], given: Arms | None) -> Arms:
    """The candidates."""
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


def stated_policy(spec: Any, arms: Arms, given: Policy[Any] | None) -> Policy[Any]:
    """The policy, built from its name and options."""
    from surepick.policies.registry import built_policy  # noqa: PLC0415 (loads what the algorithm needs)

    if given is not None:
        if encode(spec_of(given)) != spec:
            raise ValueError("the policy that was given is not that of the certificate")
        return given
    if spec is None:
        raise ValueError("the policy has parts without a name; give it: verify_certificate(file, policy=...)")
    return built_policy(arms=arms, **spec)


def stated_facts(document: Mapping[str, Any], arms: Arms, policy: Policy[Any]) -> Facts:
    """All that a certificate rests on."""
    texts = {name: document[name] for name in ("study_id", "made_by", "arithmetic")}
    texts["study"] = "" if document["study"] is None else document["study"]
    wrong = [name for name, text in texts.items() if not isinstance(text, str)]
    if wrong:
        raise ValueError(f"{', '.join(wrong)}: no text")
    if not ARITHMETIC.fullmatch(document["arithmetic"]):
        raise ValueError(f"arithmetic is {_short(document['arithmetic'])}, not 16 hexadecimal digits")
    minimize = document["minimize"]
    if not isinstance(minimize, bool):
        raise ValueError("minimize is neither true nor false")
    judge = checked_judge(document["judge"], policy, minimize=minimize)
    in_parts = judge != CLOSED_ROUNDS
    looks = sorted(_looks(document["rounds"], arms, policy, minimize, in_parts), key=lambda look: look.number)
    if [look.number for look in looks] != list(range(1, len(looks) + 1)):
        raise ValueError("the plans are not numbered 1, 2, 3, ...")
    _check_asked(looks, arms)
    retold = {look["plan"]: look.get("retold", []) for entry in document["rounds"] for look in entry["looks"]}
    looks = _corrected(looks, retold, arms, policy, minimize)
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


def _end(ended: Any, num_arms: int, gone: set[int]) -> EarlyEnd | None:
    """How the study was closed early."""
    if ended is None:
        return None
    end = EarlyEnd(**{**ended, "withdrawn": answers.withdrawals_of(ended, num_arms, gone)})
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
            seen = _with_quantities(_seen(look, arms, policy, minimize), look, arms, policy)
            counts = answers.dense(look["asked"], arms.num_arms)
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
                allocation=None if allocation is None else answers.dense(allocation, arms.num_arms),
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
                withdrawn=answers.withdrawals_of(look, arms.num_arms, gone),
                added=answers.additions_of(look, waiting),
                undone=look["undone"],
                confirmed=look["confirmed"],
                unasked=look["unasked"],
                corrected=answers.corrections_of(look, arms.num_arms),
                alone="corrections" in look and not counts.any(),
            )
            yield Closed(number, plan, seen, came)


def _corrected(
    looks: Sequence[Closed],
    retold: Mapping[int, Sequence[Mapping[str, Any]]],
    arms: Arms,
    policy: Policy[Any],
    minimize: bool,
) -> list[Closed]:
    """The plans, each with those before it as they were read, where results were corrected with it."""
    now, found = [look.seen for look in looks], list[Closed]()
    for look in looks:
        made = look.deviations.corrected
        if [entry["plan"] for entry in retold[look.number]] != sorted({one.of for one in made}):
            raise ValueError(f"plan {look.number}: corrections are not of the plans whose totals are told again")
        for entry in retold[look.number]:
            before = now[entry["plan"] - 1]
            seen = _seen(entry, arms, policy, minimize)
            answers.check_corrected(before, seen, [one for one in made if one.of == entry["plan"]], minimize=minimize)
            now[entry["plan"] - 1] = replace(seen, quantities=before.quantities)
        past = tuple(replace(one, seen=seen, past=()) for one, seen in zip(found, now, strict=False)) if made else ()
        found.append(replace(look, past=past))
    return found


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


def _seen(look: Mapping[str, Any], arms: Arms, policy: Policy[Any], minimize: bool) -> Observations:
    """What was received in a look, in the policy's sign, with its single answers and blocks where it has some."""
    seen = _totals(look["told"], arms, policy.problem.noise, minimize)
    seen = answers.with_answers(seen, look, arms.num_arms)
    return answers.with_blocks(seen, look, wanted=policy.traits.blocks is not None, minimize=minimize)


def _with_quantities(seen: Observations, look: Mapping[str, Any], arms: Arms, policy: Policy[Any]) -> Observations:
    """What was received, with the totals of what else was measured."""
    found, wanted = look.get("quantities", []), constraints_of(policy.problem.question) if seen.total > 0 else ()
    if len(found) != len(wanted):
        raise ValueError(
            f"plan {look['plan']}: {len(found)} quantities beside the reward, and there are {len(wanted)} constraints"
        )
    read = []
    for entry, constraint in zip(found, wanted, strict=True):
        one = _totals(entry, arms, constraint.noise or Normal(), minimize=False)
        if one.squares is None or np.any(one.counts > seen.counts):
            raise ValueError(f"plan {look['plan']}: a quantity has no squares, or more measurements than the reward")
        read.append(Quantity(one.counts, one.sums, one.squares, one.within))
    return replace(seen, quantities=tuple(read)) if read else seen


def _totals(totals: Mapping[str, Any], arms: Arms, noise: Noise, minimize: bool) -> Observations:
    """Totals in the policy's sign; those that no measurements within the declared bounds have are refused."""
    counts = answers.dense(totals, arms.num_arms)
    measured = np.flatnonzero(counts)
    sums, squares, within = _scattered(totals["sums"], measured, arms), None, None
    if totals["squares"] is not None:
        squares = _scattered(totals["squares"], measured, arms)
    check_sums(counts, sums, squares, noise, arms.ids)
    if "deviations" in totals:
        within = _scattered(totals["deviations"], measured, arms)
        answers.check_deviations(counts, sums, squares, within)
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


# --- The plans of a certificate: computed again, or, where numbers round otherwise, checked for what must be right.

SLOW = "their designs take long (--every-plan), and the promise does not rest on them"
ELSEWHERE = 1e-6  # relative, where numbers round otherwise; a bias that is rounding times a norm bound drifts by 1e-9
MOST_GAP = 2.0  # of a design's value over its lower bound


class PlansAgain:
    """The plans, computed again while the study is replayed, or their brackets checked where this rounds otherwise."""

    def __init__(self, facts: Facts, most: int) -> None:
        self._facts = facts
        self._most = most
        self.here = facts.arithmetic == arithmetic() and facts.made_by == f"surepick {version()}"
        self._equal = facts.reproduced if self.here else 0
        self._done = 0
        self._wrong: list[str] = []

    def watch(self, look: Closed, state: Any) -> None:
        """Compare one plan with what the policy asks in that state."""
        policy = self._facts.policy
        if look.deviations.alone:  # it asks for nothing, and was opened for a correction, also after the last plan
            self._done += self._done < self._most
            return
        if stopped(policy, state):
            self._wrong.append(f"plan {look.number}: the policy had stopped before it")
            return
        difference = next(filter(None, _impossible(look.plan, policy, state, look.seen)), "")
        if not difference and self._done < self._most:
            self._done += 1
            again = policy.ask(state)
            if policy.traits.misspecification(look.plan.dim) is not None:  # then it was judged above
                again = replace(again, misspecification=look.plan.misspecification)
            compare = plan_difference if look.number <= self._equal else _brackets
            difference = compare(look.plan, again)
        self._wrong += [f"plan {look.number}: {difference}"] if difference else []

    def line(self) -> answers.Line:
        """What became of it."""
        if self._wrong:
            return answers.Line("the plans", False, printable(self._wrong[0]))
        number = len(self._facts.looks)
        if number == 0:
            return answers.Line("the plans", True, "none was judged yet")
        equal = min(self._equal, self._done)
        parts = []
        if equal == number:
            parts.append(f"what the policy asks, with their designs and brackets ({number:,})")
        elif equal:
            parts.append(f"the first {equal:,} of {number:,} are what the policy asks, with their designs and brackets")
        if self._done > equal:
            these = f"all {number:,}" if self._done - equal == number else f"{self._done - equal:,}"
            parts.append(
                f"the brackets of {these} are compatible with those found here, where other designs as good may be "
                "found: numbers round otherwise here, or did where they were asked for"
            )
        if self._done < number:
            parts.append(f"{number - self._done:,} were not computed again: {SLOW}")
        return answers.Line("the plans", True, "; ".join(parts))


def _impossible(plan: Plan, policy: Policy[Any], state: Any, seen: Observations) -> Iterator[str]:
    """Why the policy cannot have asked for this in that state, as far as it can be said without a design.

    What `tell` reads of a plan must be right on every machine: the round, whose share of delta is spent, the looks,
    and the misspecification, against which the results are checked. That of collinear features is all rounding, and
    differs from machine to machine: a millionth of epsilon is no difference.
    """
    for name in ("design_value", "predicted_pulls", "lower_bound", "misspecification"):
        number = getattr(plan, name)
        if number is not None and not (isinstance(number, float) and math.isfinite(number) and number >= 0.0):
            yield f"its {name} is {number!r}"
            return
    value = plan.value
    if value is not None and plan.lower_bound is not None and plan.lower_bound > value * (1.0 + TOLERANCE):
        yield f"its lower bound {plan.lower_bound!r} is above its value {value!r}"
    if plan.round != state.round:
        yield f"it is of round {plan.round}, and the study was in round {state.round}"
    embedding, opened = policy.traits.embedding, getattr(state, "opened", None)
    if opened is not None or (embedding is None and policy.traits.features is None):
        yield plan_difference(plan, policy.ask(state))  # nothing is designed: a part of a round, or plain counts
        return
    if plan.look != 1:
        yield f"it is look {plan.look} of a round that had not begun"
    yield _unlike_an_opening(plan, policy)
    expected = policy.traits.misspecification(plan.dim)
    if expected is not None and abs(plan.misspecification - expected) > ELSEWHERE * max(
        expected, policy.problem.epsilon
    ):
        yield f"its misspecification is {plan.misspecification!r}, and that of {plan.dim} dimensions is {expected!r}"
    if policy.traits.long_list is None:  # else the study goes on from a selection, and its first design is no opening
        yield _unlikely_value(plan, embedding, seen)


def _unlike_an_opening(plan: Plan, policy: Policy[Any]) -> str:
    """Why a plan is not the first part of its round; delta is divided by how often that is judged, fixed before."""
    rounds = policy.traits.rounds
    if rounds is None:
        return "" if plan.looks == 1 else f"it is look 1 of {plan.looks}, and the policy judges each plan once"
    if plan.allocation is None:
        return "it opens a round, and does not say what all of it is"
    return plan_difference(plan, rounds.first_look(replace(plan, counts=plan.allocation)))


def _unlikely_value(plan: Plan, embedding: Any, seen: Observations) -> str:
    """Why the value of the first design, by which `collapsed` judges, is not that of what was measured."""
    if embedding is None or plan.round != 1 or plan.dim >= embedding.max_dim or seen.total == 0:
        return ""
    if plan.design_value is None or plan.lower_bound is None:
        return "its design has no value"
    realised = design_value(embedding.at(plan.dim).features, seen.counts) * seen.total
    if realised >= plan.lower_bound * (1.0 - ELSEWHERE) and plan.design_value <= MOST_GAP * plan.lower_bound:
        return ""
    return (
        f"no design has a value below {plan.lower_bound:.6g}, it says, its own has {plan.design_value:.6g}, and what "
        f"was measured has {realised:.6g}"
    )


def _brackets(stored: Plan, again: Plan) -> str:
    """Whether both brackets can hold the value of one best design; "" if so, or if the plans solve other problems."""
    value, found = stored.value, again.value
    if value is None or stored.lower_bound is None or found is None or again.lower_bound is None:
        return ""
    if (stored.dim, stored.candidate, stored.round) != (again.dim, again.candidate, again.round):
        return ""
    reach = 1.0 + ELSEWHERE
    if again.lower_bound > value * reach or stored.lower_bound > found * reach:
        return (
            f"its bracket {stored.lower_bound:.6g} to {value:.6g} does not meet the one found here, "
            f"{again.lower_bound:.6g} to {found:.6g}"
        )
    return ""
