"""What a study says of its blocks, and plans that fill them. Validity rests on none of the latter."""

from __future__ import annotations

import numpy as np

from surepick.core.arrays import IntArray
from surepick.core.plan import Blocking
from surepick.errors import InvalidInput
from surepick.policies.base import Problem
from surepick.text import did_you_mean, quoted


def blocking_of(
    problem: Problem, name: str | None, size: int | None, control: str | None, once: bool
) -> Blocking | None:
    """What is said of blocks; None where measurements are independent.

    Raises:
        InvalidInput: the control is no arm of the study.
    """
    if name is None:
        return None
    if control is None:
        return Blocking(name, size, None, once)
    ids = () if problem.arms is None else problem.arms.ids
    if control not in ids:
        meant = did_you_mean(control, ids)
        raise InvalidInput(f"control is {quoted(control)}, which is not the id of a candidate of this study.{meant}")
    return Blocking(name, size, ids.index(control), once)


def shared_effect(name: str) -> str:
    """The assumption, as a sentence."""
    return (
        f"Measurements of the same {name} may all be off by the same amount, whatever it is; it is fixed before their "
        f"own noise. Which results a {name} has does not depend on their values."
    )


def price_of_blocks(name: str) -> str:
    """What a user should know before the first pull, as a sentence."""
    return (
        f"Measurements are compared within a {name} only. Where no {name} has an effect of its own, this may take more "
        "of them: a forecast says how many."
    )


def filled(counts: IntArray, blocking: Blocking | None, centre: int | None, *, exact: bool) -> IntArray:
    """The pulls of a plan, with those that give each of its blocks the centre and the control.

    Args:
        counts: shape (K,).
        centre: the arm that others are compared with; None: there is none.
        exact: the number of pulls stays; arms with the most pulls lose some.
    """
    if blocking is None:
        return counts
    shared = list({arm: None for arm in (centre, blocking.control) if arm is not None})
    if not shared:
        return counts
    found, number = np.array(counts), 0
    while number < blocking.number_for(found):
        number = blocking.number_for(found)
        if number > 1 or blocking.control is not None:
            found[shared] = np.maximum(found[shared], number)
        surplus = int(found.sum() - counts.sum()) if exact else 0
        for _ in range(surplus):
            loses = np.array(found)
            loses[shared] -= number
            found[int(np.argmax(loses))] -= 1
    return found
