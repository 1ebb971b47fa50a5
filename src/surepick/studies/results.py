"""The border: what is refused before it can enter a log."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from surepick.errors import InvalidInput
from surepick.noise import Bernoulli, Noise
from surepick.records import FloatArray, Observations

ROUNDING = 1e-9


def check_rewards(rewards: ArrayLike, noise: Noise, expected: int, ids: Sequence[str]) -> FloatArray:
    """Single rewards, shape (n,).

    Raises:
        InvalidInput: not numeric, wrong number, not finite, or outside what the noise declares.
    """
    values = _numbers(rewards, "rewards")
    if values.shape != (expected,):
        raise InvalidInput(f"there are {expected} ids and rewards of shape {values.shape}; give one reward per id.")
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise InvalidInput(
            f"{len(bad)} rewards are not finite, the first is {values[bad[0]]} of arm {ids[bad[0]]!r}. "
            "A measurement that failed is not told; measure again, or abandon it."
        )
    if isinstance(noise, Bernoulli):
        wrong = np.flatnonzero((values != 0) & (values != 1))
    elif noise.support is not None:
        wrong = np.flatnonzero((values < noise.support[0]) | (values > noise.support[1]))
    else:
        return values
    if len(wrong):
        raise InvalidInput(
            f"{len(wrong)} rewards are outside what was declared ({noise.spec}), the first is {values[wrong[0]]:g} of "
            f"arm {ids[wrong[0]]!r}. The certificate rests on the declaration; start a study with one that holds."
        )
    return values


def check_sums(
    counts: ArrayLike, sums: ArrayLike, squares: ArrayLike | None, noise: Noise, ids: Sequence[str]
) -> Observations:
    """Totals per arm, each of shape (K,).

    Raises:
        InvalidInput: wrong shape, counts not whole or negative, totals not finite, totals that no rewards within the
            declared bounds can have, or squares smaller than the totals imply.
    """
    pulls, totals = _numbers(counts, "counts"), _numbers(sums, "sums")
    energies = None if squares is None else _numbers(squares, "squares")
    named = [("counts", pulls), ("sums", totals)] + ([("squares", energies)] if energies is not None else [])
    for name, array in named:
        if array.shape != (len(ids),):
            raise InvalidInput(f"{name} has shape {array.shape}; it must have one entry per arm, ({len(ids)},).")
        bad = np.flatnonzero(~np.isfinite(array))
        if len(bad):
            raise InvalidInput(f"{name} of arm {ids[bad[0]]!r} is {array[bad[0]]}; totals must be finite.")
    if np.any(pulls < 0) or np.any(pulls != np.floor(pulls)):
        raise InvalidInput("counts must be whole numbers, zero or more.")
    slack = ROUNDING * (np.abs(totals) + pulls)
    if noise.support is not None:
        low, high = noise.support
        slack = slack + ROUNDING * pulls * max(abs(low), abs(high))
        _refuse((totals < low * pulls - slack) | (totals > high * pulls + slack), ids, f"are outside {noise.spec}")
    if isinstance(noise, Bernoulli):
        _refuse(totals != np.floor(totals), ids, "are not whole, which rewards of 0 and 1 cannot give")
    _refuse((pulls == 0) & (totals != 0), ids, "belong to no pull")
    if energies is not None:
        implied = np.divide(totals**2, pulls, out=np.zeros_like(totals), where=pulls > 0)
        _refuse(energies < implied * (1 - 1e-6) - ROUNDING, ids, "have squares smaller than their totals imply")
    return Observations(pulls.astype(np.int64), totals, energies)


def _numbers(values: ArrayLike, name: str) -> FloatArray:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{name} are not numbers: {error}.") from error


def _refuse(wrong: np.ndarray, ids: Sequence[str], what: str) -> None:
    rows = np.flatnonzero(wrong)
    if len(rows):
        raise InvalidInput(f"the totals of {len(rows)} arms {what}, the first is arm {ids[rows[0]]!r}.")
