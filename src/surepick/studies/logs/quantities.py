"""Quantities that are measured beside the reward: how they are given, stored and added up."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.arrays import FloatArray
from surepick.core.observations import Quantity
from surepick.core.validation import LARGEST_REWARD
from surepick.core.values import real_numbers
from surepick.errors import InvalidInput
from surepick.noise import Bernoulli
from surepick.questions import Constraint
from surepick.studies.logs.base import Results, Values
from surepick.studies.logs.centred import deviations_of


def split_values(given: ArrayLike, constraints: Sequence[Constraint]) -> tuple[ArrayLike, FloatArray | None]:
    """(rewards, the other quantities, shape (n, r)) of what measurements gave; None in a study without constraints.

    Args:
        given: shape (n,) without constraints; with r of them shape (n, 1 + r), the reward first; NaN for a quantity
            that was not measured.

    Raises:
        InvalidInput: there are constraints and no columns for them, or a value that cannot be.
    """
    if not constraints:
        return given, None
    names = ", ".join(one.name for one in constraints)
    wrong = f"results are no rows of numbers (the reward, then {names})"
    values = real_numbers("results", given, wrong=wrong)
    if values.size == 0:
        values = values.reshape(0, 1 + len(constraints))
    if values.ndim != 2 or values.shape[1] != 1 + len(constraints):
        raise InvalidInput(
            f"results have shape {values.shape}; each measurement of this study gives {1 + len(constraints)} numbers: "
            f"the reward, then {names} (NaN for one that was not measured). Nothing of this call was stored."
        )
    for column, one in enumerate(constraints, 1):
        _check_values(values[:, column], one)
    return values[:, 0], values[:, 1:]


def _check_values(column: FloatArray, constraint: Constraint) -> None:
    name, known = constraint.name, column[~np.isnan(column)]
    if np.any(np.abs(known) > LARGEST_REWARD):
        raise InvalidInput(f"a value of {name} is infinite or beyond {LARGEST_REWARD:g}; it could not be added up.")
    noise = constraint.noise
    if noise is None or noise.support is None:
        return
    low, high = noise.support
    outside = (known < low) | (known > high)
    if isinstance(noise, Bernoulli):
        outside = (known != 0.0) & (known != 1.0)
    if outside.any():
        raise InvalidInput(
            f"{int(outside.sum())} values of {name} are outside what was declared ({noise.spec}), the first is "
            f"{known[outside][0]:g}. The certificate rests on the declaration; start a study with one that holds."
        )


def single_values(values: FloatArray | None) -> tuple[Quantity, ...] | None:
    """The quantities of rows of one measurement each, from shape (n, r); NaN where one was not measured."""
    if values is None:
        return None
    there, known = ~np.isnan(values), np.nan_to_num(values)
    return tuple(
        Quantity(there[:, at].astype(np.int64), known[:, at], known[:, at] ** 2, np.zeros(len(known)))
        for at in range(values.shape[1])
    )


def total_values(
    given: Sequence[Quantity] | None, constraints: Sequence[Constraint], number: int
) -> tuple[Quantity, ...] | None:
    """The quantities of rows that add up several measurements.

    Raises:
        InvalidInput: they are not one `Quantity` of n entries for each constraint, or totals that cannot be.
    """
    if not constraints:
        if given is not None:
            raise InvalidInput("this study has no constraints, and takes rewards alone; leave the quantities out.")
        return None
    names = ", ".join(one.name for one in constraints)
    if given is None or len(given) != len(constraints) or any(len(one.counts) != number for one in given):
        raise InvalidInput(f"give the totals of {names}: a Quantity each, with an entry for each row.")
    for one, constraint in zip(given, constraints, strict=True):
        wrong = (
            (one.counts < 0) | ~np.isfinite(one.sums) | ~np.isfinite(one.squares) | (np.abs(one.sums) > LARGEST_REWARD)
        )
        wrong |= (one.counts == 0) & (one.sums != 0.0)
        wrong |= one.squares * np.maximum(one.counts, 1) < one.sums**2 * (1.0 - 1e-6) - 1e-9
        support = None if constraint.noise is None else constraint.noise.support
        if support is not None:
            slack = 1e-9 * (np.abs(one.sums) + one.counts * max(abs(support[0]), abs(support[1])))
            outside = (one.sums < support[0] * one.counts - slack) | (one.sums > support[1] * one.counts + slack)
            if outside.any() and constraint.noise is not None:
                raise InvalidInput(
                    f"totals of {constraint.name} are outside what was declared ({constraint.noise.spec}). The "
                    "certificate rests on the declaration; start a study with one that holds."
                )
        if wrong.any():
            raise InvalidInput(f"the totals of {constraint.name} are none that measurements can have.")
    return tuple(given)


def read_values(text: str) -> Values:
    """The totals of each quantity in a row, as they are stored.

    Raises:
        ValueError: they are none.
    """
    found = tuple((int(number), float(total), float(squares)) for number, total, squares in json.loads(text))
    if not all(math.isfinite(entry) for one in found for entry in one):
        raise ValueError("a result does not say what was measured beside its reward")
    return found


def from_values(rows: Sequence[Values]) -> tuple[Quantity, ...]:
    """The quantities of rows, n entries each.

    Raises:
        ValueError: rows have not the same number of quantities.
    """
    columns = zip(*rows, strict=True)
    return tuple(Quantity(*map(np.array, zip(*column, strict=True))) for column in columns)


def quantity_totals(results: Sequence[Results], num_arms: int) -> tuple[Quantity, ...] | None:
    """Totals of each quantity, one entry an arm, each formed exactly, so that the order of arrival changes no bit.

    Args:
        results: of a plan.

    Returns:
        None where results have no quantities.
    """
    parts = [part for part in results if part.quantities is not None]
    if not parts:
        return None
    found = []
    for place in range(len(parts[0].quantities or ())):
        counts = np.zeros(num_arms, np.int64)
        sums: dict[int, list[float]] = defaultdict(list)
        squares: dict[int, list[float]] = defaultdict(list)
        columns = []
        for part in parts:
            one = (part.quantities or ())[place]
            columns.append((part.arms, one.counts, one.sums, one.within))
            np.add.at(counts, part.arms, one.counts)
            for arm, total, energy in zip(part.arms.tolist(), one.sums.tolist(), one.squares.tolist(), strict=True):
                sums[arm].append(total)
                squares[arm].append(energy)
        totals, energies = np.zeros(num_arms), np.zeros(num_arms)
        for arm, own in sums.items():
            totals[arm], energies[arm] = math.fsum(own), math.fsum(squares[arm])
        found.append(Quantity(counts, totals, energies, deviations_of(columns, num_arms)))
    return tuple(found)
