"""Answers to test items, what blocks had, and who was withdrawn, in a certificate: to JSON data and back."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from surepick.core.json import encode
from surepick.core.observations import Answers, BlockTotals, Observations
from surepick.core.plan import Plan
from surepick.items import ItemOrder
from surepick.studies.deviations import EarlyEnd
from surepick.studies.logs.base import Addition, Deviations, Withdrawal
from surepick.studies.replay import Closed

MOST = 2**53
ROUNDING = 1e-9  # of the sums of absolute values: each block's sum is rounded by itself


def items_entry(order: ItemOrder | None) -> dict[str, Any] | None:
    """The set and its order; None where measurements are draws."""
    if order is None:
        return None
    return {"number": order.items.num_items, "sha256": order.items.digest, "seed": order.seed, "seed_by": order.by}


def answers_entry(plan: Plan, seen: Observations) -> dict[str, Any]:
    """The items that a plan asked for, and each answer; nothing where measurements are draws."""
    if plan.first_items is None or seen.answers is None:
        return {}
    found = seen.answers
    columns = {"arms": found.arms.tolist(), "items": found.items.tolist(), "scores": found.scores.tolist()}
    return {"first_items": plan.first_items.tolist(), "answers": columns}


def with_answers(seen: Observations, look: Mapping[str, Any], num_arms: int) -> Observations:
    """What was received, with its single answers where the look has some.

    Raises:
        ValueError: they are no answers, or do not add up to the totals.
    """
    if "answers" not in look:
        return seen
    columns = look["answers"]
    arms, items, scores = (columns[name] for name in ("arms", "items", "scores"))
    whole = all(type(entry) is int and entry >= 0 for entry in (*arms, *items))
    if not (whole and len(arms) == len(items) == len(scores) and all(arm < num_arms for arm in arms)):
        raise ValueError(f"plan {look['plan']}: the answers are not one candidate, item and score each")
    if not all(isinstance(score, float) and 0.0 <= score <= 1.0 for score in scores):
        raise ValueError(f"plan {look['plan']}: a score is no number between 0 and 1")
    own: list[list[float]] = [[] for _ in range(num_arms)]
    for arm, score in zip(arms, scores, strict=True):
        own[arm].append(score)
    sums = np.array([math.fsum(each) for each in own])
    if not (np.array_equal([len(each) for each in own], seen.counts) and np.array_equal(sums, seen.sums)):
        raise ValueError(f"plan {look['plan']}: the answers do not add up to the totals")
    answers = Answers(np.array(arms, np.int64), np.array(items, np.int64), np.array(scores))
    return replace(seen, answers=answers)


def blocks_entry(seen: Observations, *, minimize: bool) -> dict[str, Any]:
    """What each block had, in the user's sign; nothing where results name no blocks."""
    if seen.blocks is None:
        return {}
    found, sign = seen.blocks, -1.0 if minimize else 1.0
    columns = {"blocks": found.blocks, "arms": found.arms, "pulls": found.counts, "sums": sign * found.sums}
    return {"blocks": {name: column.tolist() for name, column in columns.items()}}


def with_blocks(seen: Observations, look: Mapping[str, Any], *, wanted: bool, minimize: bool) -> Observations:
    """What was received, with what each block had.

    Args:
        seen: the totals, in the policy's sign.
        wanted: the policy has blocks.

    Raises:
        ValueError: blocks are missing or not wanted, are none, or do not add up to the totals.
    """
    number = look["plan"]
    if ("blocks" in look) != (wanted and seen.total > 0):
        raise ValueError(f"plan {number}: results {'do not name their blocks' if wanted else 'name blocks'}")
    if "blocks" not in look:
        return seen
    columns = look["blocks"]
    blocks, arms, pulls, sums = (columns[name] for name in ("blocks", "arms", "pulls", "sums"))
    whole = all(type(entry) is int and entry >= 0 for entry in (*blocks, *arms, *pulls))
    cells = list(zip(blocks, arms, strict=True)) if len(blocks) == len(arms) == len(pulls) == len(sums) else []
    known = sorted(set(blocks)) == list(range(len(set(blocks)))) if whole else False
    if not (known and cells and cells == sorted(set(cells)) and max(arms) < len(seen.counts) and min(pulls) > 0):
        raise ValueError(f"plan {number}: what blocks had is not one block, candidate, number and sum each")
    if max(pulls) > MOST or not all(isinstance(total, float) and math.isfinite(total) for total in sums):
        raise ValueError(f"plan {number}: a sum of a block is no number")
    sign = -1.0 if minimize else 1.0
    totals = BlockTotals(np.array(blocks), np.array(arms), np.array(pulls), sign * np.array(sums))
    size = len(seen.counts)
    counts = np.bincount(totals.arms, totals.counts, minlength=size)
    added = np.bincount(totals.arms, totals.sums, minlength=size)
    scale = np.bincount(totals.arms, np.abs(totals.sums), minlength=size)
    if not (np.array_equal(counts, seen.counts) and np.all(np.abs(added - seen.sums) <= ROUNDING * scale)):
        raise ValueError(f"plan {number}: the blocks do not add up to the totals")
    return replace(seen, blocks=totals)


CARRIED_OUT = ("withdrawn", "added", "undone", "confirmed", "unasked")  # of `Deviations`


def deviations_entry(deviations: Deviations) -> dict[str, Any]:
    """Who went or came after a look, and the numbers of results that were taken back, or are unusual."""
    return {name: encode(getattr(deviations, name)) for name in CARRIED_OUT}


def withdrawn_arms(looks: Sequence[Closed], end: EarlyEnd | None) -> list[int]:
    """All candidates that were withdrawn, after a look or when the study was closed early."""
    groups = [*(look.deviations.withdrawn for look in looks), () if end is None else end.withdrawn]
    return [one.arm for group in groups for one in group]


def waiting_arms(looks: Sequence[Closed], later: Sequence[int]) -> list[int]:
    """The candidates that were declared to come later, and did not."""
    return sorted(set(later).difference(one.arm for look in looks for one in look.deviations.added))


def additions_of(look: Mapping[str, Any], waiting: set[int]) -> tuple[Addition, ...]:
    """The candidates that came after a look.

    Args:
        look: an entry of a certificate.
        waiting: who may still come; who comes is taken out.

    Raises:
        ValueError: they were not declared to come, are there already, or not ascending.
    """
    found: list[Addition] = []
    for entry in look["added"]:
        arm, at = entry["arm"], entry["at"]
        known = type(arm) is int and arm in waiting and isinstance(at, float) and math.isfinite(at)
        if not known or set(entry) != {"arm", "at"} or (found and arm <= found[-1].arm):
            raise ValueError(f"plan {look['plan']}: who came is not one of those who may, and a time, ascending")
        found.append(Addition(arm, at))
    waiting.difference_update(one.arm for one in found)
    return tuple(found)


def dropped_arms(deviations: Deviations) -> list[int]:
    """The candidates that went after a look without being ruled out."""
    return [one.arm for one in deviations.withdrawn if one.independent]


def withdrawals_of(look: Mapping[str, Any], num_arms: int, before: set[int]) -> tuple[Withdrawal, ...]:
    """The candidates that were withdrawn after a look.

    Args:
        look: an entry of a certificate, or its end.
        num_arms: K.
        before: who was withdrawn earlier; who is now is added.

    Raises:
        ValueError: they are no candidates of the study, not ascending, gone already, or the last one.
    """
    number = look.get("plan", "that was open")
    found: list[Withdrawal] = []
    for entry in look["withdrawn"]:
        arm, reason, at = entry["arm"], entry["reason"], entry["at"]
        known = type(arm) is int and 0 <= arm < num_arms and arm not in before
        if not known or set(entry) != {"arm", "reason", "at"} or (found and arm <= found[-1].arm):
            raise ValueError(f"plan {number}: who was withdrawn is not one candidate, reason and time each, ascending")
        if not (isinstance(reason, str) and reason and isinstance(at, float) and math.isfinite(at)):
            raise ValueError(f"plan {number}: a withdrawal has no reason or no time")
        found.append(Withdrawal(arm, reason, at))
    before.update(one.arm for one in found)
    return tuple(found)
