"""The border of the log: we check results before they enter, and add them up afterwards."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.observations import EPS, Observations, Quantity
from surepick.core.records import BoolArray, FloatArray, IntArray
from surepick.core.values import LARGEST_REWARD, real_numbers, storable_text
from surepick.errors import InvalidInput
from surepick.noise import Bernoulli, Noise, Normal, known_scale, unrounded
from surepick.policies.base import Policy, name_of
from surepick.questions import Constraint, number_of
from surepick.studies.logs import keys as keyed
from surepick.studies.logs.base import AS_THEY_COME, CLOSED_ROUNDS, COUNT, REFUSE, Judge, Results, Surplus
from surepick.text import quoted

JUDGES = (CLOSED_ROUNDS, AS_THEY_COME)
ROUNDING = 1e-9
FINE = 1e-6  # of a standard deviation: what rounding of a sum may be
MOST_PULLS = 2**53


def check_rewards(rewards: ArrayLike, noise: Noise, expected: int, ids: Sequence[str]) -> FloatArray:
    """Single rewards, shape (n,); one that passes a declared bound by rounding alone is that bound."""
    values = real_numbers("rewards", rewards)
    if values.shape != (expected,):
        raise InvalidInput(f"there are {expected} ids and rewards of shape {values.shape}; give one reward per id.")
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise InvalidInput(
            f"{len(bad)} rewards are not finite, the first is {values[bad[0]]} of arm {ids[bad[0]]!r}. "
            "Do not report a failed measurement as a reward; measure again, or abandon it."
        )
    huge = np.flatnonzero(np.abs(values) > LARGEST_REWARD)
    if len(huge):
        raise InvalidInput(
            f"{len(huge)} rewards are beyond {LARGEST_REWARD:g}, the first is {values[huge[0]]:g} of arm "
            f"{ids[huge[0]]!r}; they could not be added up. Report them in a larger unit."
        )
    values = unrounded(values, noise)
    wrong = np.flatnonzero(_outside(values, noise))
    if len(wrong):
        number = "1 reward is" if len(wrong) == 1 else f"{len(wrong)} rewards are"
        raise InvalidInput(
            f"{number} outside what was declared ({noise.spec}), the first is {values[wrong[0]]:g} of arm "
            f"{ids[wrong[0]]!r}. If it was mistyped, correct it. If it was measured so, the declaration does not hold, "
            "and the certificate rests on it: start a study with one that holds."
        )
    return values


def _outside(values: FloatArray, noise: Noise) -> BoolArray:
    """Which of single values the noise does not allow; none that is not a number."""
    low, high = noise.support or (-np.inf, np.inf)
    broken = isinstance(noise, Bernoulli) & (values > low) & (values < high)
    return np.asarray(broken | (values < low) | (values > high))


def check_sums(
    counts: ArrayLike, sums: ArrayLike, squares: ArrayLike | None, noise: Noise, ids: Sequence[str]
) -> Observations:
    """Totals of the arms with these ids, each of shape (n,)."""
    pulls, totals = real_numbers("counts", counts, truths=False), real_numbers("sums", sums, truths=False)
    energies = None if squares is None else real_numbers("squares", squares, truths=False)
    named = [("counts", pulls), ("sums", totals)] + ([("squares", energies)] if energies is not None else [])
    for name, array in named:
        if array.shape != (len(ids),):
            raise InvalidInput(f"{name} has shape {array.shape}; it must have one entry per arm, ({len(ids)},).")
        bad = np.flatnonzero(~np.isfinite(array))
        if len(bad):
            raise InvalidInput(f"{name} of arm {ids[bad[0]]!r} is {array[bad[0]]}; totals must be finite.")
    if np.any(pulls < 0) or np.any(pulls != np.floor(pulls)) or np.any(pulls > MOST_PULLS):
        raise InvalidInput("counts must be whole numbers, zero or more, and at most 2^53.")
    _refuse(np.abs(totals) > LARGEST_REWARD, ids, f"are beyond {LARGEST_REWARD:g} and could not be added up")
    if energies is not None:
        _refuse(
            energies > LARGEST_REWARD**2, ids, f"have squares beyond {LARGEST_REWARD**2:g}, which could not be added up"
        )
    slack = ROUNDING * (np.abs(totals) + pulls)
    if noise.support is not None:
        low, high = noise.support
        slack = slack + ROUNDING * pulls * max(abs(low), abs(high))
        _refuse((totals < low * pulls - slack) | (totals > high * pulls + slack), ids, f"are outside {noise.spec}")
    if isinstance(noise, Bernoulli):
        _refuse(totals != np.floor(totals), ids, "are not whole, which rewards of 0 and 1 cannot give")
    if energies is None and not known_scale(noise):
        _refuse(
            pulls > 1,
            ids,
            "come without squares. Where the scale of the noise is unknown, repeats must show it: give the sums of the "
            "squared rewards too, or each reward by itself",
        )
        energies = totals**2
    _refuse((pulls == 0) & (totals != 0), ids, "belong to no pull")
    if energies is not None:
        implied = np.divide(totals**2, pulls, out=np.zeros_like(totals), where=pulls > 0)
        _refuse(energies < implied * (1 - 1e-6) - ROUNDING, ids, "have squares smaller than their totals imply")
    return Observations(pulls.astype(np.int64), totals, energies)


def _refuse(wrong: np.ndarray, ids: Sequence[str], what: str) -> None:
    rows = np.flatnonzero(wrong)
    if len(rows):
        raise InvalidInput(f"the totals of {len(rows)} arms {what}, the first is arm {ids[rows[0]]!r}.")


# --- Quantities that are measured beside the reward: how they are given.


def split_values(given: ArrayLike, constraints: Sequence[Constraint]) -> tuple[ArrayLike, FloatArray | None]:
    """(rewards, the other quantities, shape (n, r)) of what measurements gave; None in a study without constraints."""
    # given: (n,), or (n, 1 + r) with r constraints, the reward first; NaN for a quantity that was not measured
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
    name, noise = constraint.name, constraint.noise
    if np.any(np.abs(column) > LARGEST_REWARD):
        raise InvalidInput(f"a value of {name} is infinite or beyond {LARGEST_REWARD:g}; it could not be added up.")
    if noise is not None and len(outside := column[_outside(column, noise)]):
        raise InvalidInput(
            f"{len(outside)} values of {name} are outside what was declared ({noise.spec}), the first is "
            f"{outside[0]:g}. The certificate rests on the declaration; start a study with one that holds."
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
    given: Sequence[Quantity] | None, constraints: Sequence[Constraint], ids: Sequence[str]
) -> tuple[Quantity, ...] | None:
    """The quantities of rows of the arms with these ids that add up several measurements."""
    if not constraints:
        if given is not None:
            raise InvalidInput("this study has no constraints, and takes rewards alone; leave the quantities out.")
        return None
    names = ", ".join(one.name for one in constraints)
    if given is None or len(given) != len(constraints) or any(len(one.counts) != len(ids) for one in given):
        raise InvalidInput(f"give the totals of {names}: a Quantity each, with an entry for each row.")
    for one, constraint in zip(given, constraints, strict=True):
        try:
            check_sums(one.counts, one.sums, one.squares, constraint.noise or Normal(), ids)
        except InvalidInput as error:
            raise InvalidInput(f"totals of {constraint.name}: {error}") from None
    return tuple(given)


def received(results: Sequence[Results], num_arms: int, *, minimize: bool) -> Observations:
    """Totals per arm in the policy's sign, each formed exactly, so that the order of arrival changes no bit."""
    sign = -1.0 if minimize else 1.0
    blocks, quantities = keyed.block_totals(results, sign=sign), keyed.quantity_totals(results, num_arms)
    alone = blocks is None and quantities is None and len(results) == 1
    if alone and len(np.unique(results[0].arms)) == len(results[0].arms):
        return _single(results[0], sign, num_arms)
    counts, arms = np.zeros(num_arms, np.int64), np.concatenate([np.empty(0, np.int64), *(one.arms for one in results)])
    for part in results:
        np.add.at(counts, part.arms, part.pulls)
    totals = np.where(counts > 0, sign * keyed.exact_sums(arms, [one.sums for one in results], num_arms), 0.0)
    squares = [one.squares for one in results if one.squares is not None]
    energies = keyed.exact_sums(arms, squares, num_arms) if len(squares) == len(results) else None
    within = keyed.deviations_of([(part.arms, part.pulls, part.sums, part.within) for part in results], num_arms)
    rests = None if within is None else _rests(results, counts, totals, within, sign)
    return Observations(counts, totals, energies, blocks=blocks, quantities=quantities, within=within, rests=rests)


def _rests(
    results: Sequence[Results], counts: IntArray, totals: FloatArray, within: FloatArray, sign: float
) -> FloatArray | None:
    """What rounding took from the totals, shape (K,); None where it is far below what the rewards of any arm vary."""
    coarse = np.abs(totals) * EPS > FINE * np.sqrt(within / np.maximum(counts, 1))
    rests = np.zeros(len(totals))
    for arm in np.flatnonzero(coarse & (counts > 1)).tolist():
        parts = np.concatenate([part.sums[part.arms == arm] for part in results]).tolist()
        rests[arm] = sign * math.fsum([*parts, -sign * float(totals[arm])])
    return rests if rests.any() else None


def _single(results: Results, sign: float, num_arms: int) -> Observations:
    """The totals where each arm has one row at most: nothing is added up."""
    within = keyed.known_deviations(results.pulls, results.within)
    columns = [results.pulls, sign * results.sums, results.squares, within]
    placed: list[Any] = [None if column is None else np.zeros(num_arms, column.dtype) for column in columns]
    for found, column in zip(placed, columns, strict=True):
        if found is not None:
            found[results.arms] = column
    return Observations(placed[0], placed[1], placed[2], within=placed[3])


def checked_surplus(surplus: object, judge: Judge) -> Surplus:
    """What becomes of results beyond what was asked."""
    if surplus == COUNT:
        return COUNT
    if surplus != REFUSE:
        raise InvalidInput(f"surplus is {quoted(surplus)}; write 'count' or 'refuse'.")
    if judge != CLOSED_ROUNDS:
        raise InvalidInput("surplus='refuse' is for closed rounds: leave it out where results are judged as they come.")
    return REFUSE


def source(worker: str | None) -> str:
    """Who reported, for the log; "" where nobody is named."""
    return "" if worker is None else storable_text("worker", worker)


def checked_reason(reason: str) -> str:
    """A reason, for the log."""
    return storable_text("the reason", reason).strip()


def checked_judge(judge: str, policy: Policy[Any], *, minimize: bool = False) -> Judge:
    """When results are judged, if the policy can."""
    if minimize and policy.traits.items is not None:
        raise InvalidInput("scores of test items are shares of points, so large ones are good: report 1 - score.")
    listed = policy.traits.long_list
    if listed is not None and listed.minimize != minimize:
        was, is_now = ("small", "large") if listed.minimize else ("large", "small")
        raise InvalidInput(
            f"the candidates were selected where {was} rewards were good, and here {is_now} ones are to be: give "
            f"minimize={listed.minimize}."
        )
    if minimize and number_of(policy.problem) is not None:
        raise InvalidInput(
            "a threshold is for rewards of which large ones are good: leave minimize out, and the second list has the "
            "candidates below it."
        )
    if judge not in JUDGES:
        raise InvalidInput(f"judge is {quoted(judge)}; it must be 'closed rounds' or 'as they come'.")
    if judge == AS_THEY_COME and not policy.traits.judges_parts:
        raise InvalidInput(
            f"{name_of(policy)} judges whole rounds only; judge='as they come' needs evidence that is carried on: "
            "certified-linear, certified-kernel or certified-independent, with evidence='carried'."
        )
    return judge
