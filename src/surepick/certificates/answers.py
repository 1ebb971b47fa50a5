"""Answers to test items in a certificate: to JSON data and back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from surepick.core.observations import Answers, Observations
from surepick.core.plan import Plan
from surepick.items import ItemOrder


def items_entry(order: ItemOrder | None) -> dict[str, Any] | None:
    """The set and its order; None where measurements are draws."""
    if order is None:
        return None
    return {"number": order.items.num_items, "sha256": order.items.digest, "seed": order.seed}


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
    return Observations(seen.counts, seen.sums, seen.squares, answers)
