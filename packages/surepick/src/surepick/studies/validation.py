"""The border of the log: we check results before they enter, and add them up afterwards."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.observations import EPS, Observations, Quantity
from surepick.core.plans import Blocking
from surepick.core.records import FloatArray, IntArray
from surepick.core.values import LARGEST_REWARD, check_order, real_numbers, storable_text, texts_of
from surepick.errors import InvalidInput
from surepick.items import ItemOrder
from surepick.noise import Bernoulli, Noise, known_scale, unrounded
from surepick.policies.base import Policy, name_of
from surepick.questions import Constraint, number_of
from surepick.studies.batch import Batch
from surepick.studies.logs.base import AS_THEY_COME, CLOSED_ROUNDS, COUNT, REFUSE, Judge, Results, Surplus
from surepick.studies.logs.keys import (
    block_totals,
    canonical_blocks,
    canonical_keys,
    deviations_of,
    keys_of,
    known_deviations,
    quantity_totals,
    read_item_key,
    single_values,
    split_values,
    total_values,
)
from surepick.text import did_you_mean, quoted

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
    if isinstance(noise, Bernoulli):
        wrong = np.flatnonzero((values != 0) & (values != 1))
    elif noise.support is not None:
        wrong = np.flatnonzero((values < noise.support[0]) | (values > noise.support[1]))
    else:
        return values
    if len(wrong):
        number = "1 reward is" if len(wrong) == 1 else f"{len(wrong)} rewards are"
        raise InvalidInput(
            f"{number} outside what was declared ({noise.spec}), the first is {values[wrong[0]]:g} of arm "
            f"{ids[wrong[0]]!r}. If it was mistyped, correct it. If it was measured so, the declaration does not hold, "
            "and the certificate rests on it: start a study with one that holds."
        )
    return values


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


def received(results: Sequence[Results], num_arms: int, *, minimize: bool) -> Observations:
    """Totals per arm in the policy's sign, each formed exactly, so that the order of arrival changes no bit."""
    sign = -1.0 if minimize else 1.0
    blocks, quantities = block_totals(results, sign=sign), quantity_totals(results, num_arms)
    if (
        blocks is None
        and quantities is None
        and len(results) == 1
        and len(np.unique(results[0].arms)) == len(results[0].arms)
    ):
        return _single(results[0], sign, num_arms)
    counts = np.zeros(num_arms, np.int64)
    sums: dict[int, list[float]] = defaultdict(list)
    squares: dict[int, list[float]] = defaultdict(list)
    for part in results:
        np.add.at(counts, part.arms, part.pulls)
        energies = [0.0] * len(part.arms) if part.squares is None else part.squares.tolist()
        for arm, total, energy in zip(part.arms.tolist(), part.sums.tolist(), energies, strict=True):
            sums[arm].append(total)
            squares[arm].append(energy)
    totals, energies_of = np.zeros(num_arms), np.zeros(num_arms)
    for arm, parts in sums.items():
        totals[arm] = sign * math.fsum(parts)
        energies_of[arm] = math.fsum(squares[arm])
    energies = energies_of if all(part.squares is not None for part in results) else None
    within = deviations_of([(part.arms, part.pulls, part.sums, part.within) for part in results], num_arms)
    rests = None if within is None else _rests(sums, counts, totals, within, sign)
    return Observations(counts, totals, energies, blocks=blocks, quantities=quantities, within=within, rests=rests)


def _rests(
    parts: Mapping[int, list[float]], counts: IntArray, totals: FloatArray, within: FloatArray, sign: float
) -> FloatArray | None:
    """What rounding took from the totals, shape (K,); None where it is far below what the rewards of any arm vary."""
    coarse = np.abs(totals) * EPS > FINE * np.sqrt(within / np.maximum(counts, 1))
    rests = np.zeros(len(totals))
    for arm in np.flatnonzero(coarse & (counts > 1)).tolist():
        rests[arm] = sign * math.fsum([*parts[arm], -sign * float(totals[arm])])
    return rests if rests.any() else None


def _single(results: Results, sign: float, num_arms: int) -> Observations:
    counts, sums = np.zeros(num_arms, np.int64), np.zeros(num_arms)
    counts[results.arms] = results.pulls
    sums[results.arms] = sign * results.sums

    def placed(column: FloatArray | None) -> FloatArray | None:
        if column is None:
            return None
        found = np.zeros(num_arms)
        found[results.arms] = column
        return found

    return Observations(
        counts, sums, placed(results.squares), within=placed(known_deviations(results.pulls, results.within))
    )


def check_given(granted: IntArray, arm: int, ordinal: int, key: str) -> None:
    """Refuse a key of a pull that was never leased: it would collide with the key of one that will be.

    Args:
        granted: pulls of each arm that were ever leased of its plan, shape (K,).
    """
    if ordinal >= granted[arm]:
        raise InvalidInput(never_given(key))


def never_given(key: str) -> str:
    """What is said of such a key."""
    return (
        f"key {key!r} looks like one that ask gave, and this study never gave it: it is of another study, or was given "
        "after the backup from which this database was restored. Nothing of this call was stored. Give the results "
        "keys of their own."
    )


def check_asked(asked: IntArray, arms: IntArray, ids: Sequence[str]) -> None:
    """Refuse results of arms that the plan does not ask for.

    Args:
        asked: its counts, shape (K,).
    """
    stray = arms[asked[arms] == 0]
    if len(stray):
        raise InvalidInput(
            f"{len(stray)} results are of arms that the open plan did not ask for, the first is "
            f"{ids[stray[0]]!r}. Which arms are measured must not depend on a hunch, or the certificate means "
            "nothing. Nothing of this call was stored. To keep such results apart: tell_prior(), or tell --as-prior."
        )


def check_no_surplus(wanted: IntArray, results: Results, ids: Sequence[str]) -> None:
    """Refuse results beyond what the plan asks for, whatever they are.

    Args:
        wanted: pulls that have not come yet, shape (K,); below 0 where more came.
    """
    came = np.zeros(len(wanted), np.int64)
    np.add.at(came, results.arms, results.pulls)
    over = np.flatnonzero((came > 0) & (came > np.maximum(wanted, 0)))
    if len(over):
        arm = int(over[0])
        raise InvalidInput(
            f"{int(came[arm])} results are of {quoted(ids[arm])}, of which this round wants {max(int(wanted[arm]), 0)} "
            "more. This study counts no results beyond what it asked, since somebody could go on until a mean suits. "
            "Nothing of this call was stored. To keep such results apart: tell_prior(), or tell --as-prior."
        )


def checked_surplus(surplus: object, judge: Judge) -> Surplus:
    """What becomes of results beyond what was asked."""
    if surplus == COUNT:
        return COUNT
    if surplus != REFUSE:
        raise InvalidInput(f"surplus is {quoted(surplus)}; write 'count' or 'refuse'.")
    if judge != CLOSED_ROUNDS:
        raise InvalidInput("surplus='refuse' is for closed rounds: leave it out where results are judged as they come.")
    return REFUSE


def names_of(ids: Sequence[object]) -> list[str]:
    """Ids as texts."""
    return list(texts_of("ids", ids))


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


# --- What users report, checked by itself: by the ids of the arms, without what is stored.


class ResultParser:
    """What a study takes.

    Args:
        ids: ids of the arms, K of them.
        noise: what is assumed of a reward.
        blocks: gives what the study says of blocks.
        constraints: gives those on what else is measured.
        items: gives the order of the test items.
    """

    def __init__(
        self,
        ids: tuple[str, ...],
        noise: Noise,
        blocks: Callable[[], Blocking | None] = lambda: None,
        constraints: Callable[[], tuple[Constraint, ...]] = tuple,
        items: Callable[[], ItemOrder | None] = lambda: None,
    ) -> None:
        self.ids = ids
        self.noise = noise
        self._blocks = blocks
        self._constraints = constraints
        self._items = items
        self._index = {name: arm for arm, name in enumerate(ids)}

    @property
    def blocking(self) -> Blocking | None:
        """What the study says of blocks; None where measurements are independent."""
        return self._blocks()

    def arms_of(self, ids: Sequence[object]) -> tuple[IntArray, Sequence[str]]:
        """(indices, names) of the arms of these ids."""
        if ids is self.ids:
            return np.arange(len(self.ids)), self.ids
        names = names_of(ids)
        unknown = [name for name in names if name not in self._index]
        if unknown:
            raise InvalidInput(
                f"{len(unknown)} ids are not arms of this study, the first is {quoted(unknown[0])}."
                f"{did_you_mean(unknown[0], self.ids)}"
            )
        return np.array([self._index[name] for name in names], np.int64), names

    def keys_by_item(
        self, ids: Sequence[object] | Batch, keys: Sequence[object] | None, items: Sequence[object]
    ) -> list[str]:
        """The keys of answers of these arms to these items."""
        if keys is not None or isinstance(ids, Batch):
            raise InvalidInput("an answer is known by its arm and its item: give ids and items, without keys or batch.")
        return keys_of(self._items(), names_of(ids), items)

    def singles(
        self,
        ids: Sequence[object],
        rewards: ArrayLike,
        keys: Sequence[object] | None,
        worker: str | None,
        blocks: Sequence[object] | None = None,
        *,
        prior: bool = False,
    ) -> Results:
        """Results of one pull each; those that are kept apart name no block."""
        arms, names = self.arms_of(ids)
        check_order("rewards", rewards, names)
        rewards, beside = split_values(rewards, self._constraints())
        values = check_rewards(rewards, self.noise, len(arms), names)
        labels = canonical_keys(keys, names)
        named = None if prior else canonical_blocks(self.blocking, blocks, len(arms))
        ones, who = np.ones(len(arms), np.int64), source(worker)
        quantities = single_values(beside)
        apart: dict[str, Any] = {"blocks": named, "items": self._items_in(labels), "quantities": quantities}
        return Results(arms, ones, values, values**2, labels, source=who, **apart)

    def totals(
        self,
        ids: Sequence[object],
        pulls: ArrayLike,
        sums: ArrayLike,
        squares: ArrayLike | None,
        keys: Sequence[object] | None,
        worker: str | None,
        blocks: Sequence[object] | None = None,
        quantities: Sequence[Quantity] | None = None,
        within: FloatArray | None = None,
    ) -> Results:
        """Results that add up several pulls; rows without pulls are left out."""
        arms, names = self.arms_of(ids)
        seen = check_sums(pulls, sums, squares, self.noise, names)
        alone = seen.counts == 1  # its square is known, whatever was told
        energies = None if seen.squares is None else np.where(alone, seen.sums**2, seen.squares)
        labels = canonical_keys(keys, names)
        named = canonical_blocks(self.blocking, blocks, len(arms))
        who, beside = source(worker), total_values(quantities, self._constraints(), len(arms))
        apart: dict[str, Any] = {"blocks": named, "items": self._items_in(labels), "quantities": beside}
        rows = Results(arms, seen.counts, seen.sums, energies, labels, source=who, within=within, **apart)
        return rows.rows(np.flatnonzero(seen.counts))

    def _items_in(self, keys: Sequence[str | None] | None) -> IntArray | None:
        """The number of the item that each key names, shape (n,), -1 for none; None where results are draws."""
        items = np.array([read_item_key(key) for key in keys or ()], np.int64)
        return items if np.any(items >= 0) and self._items() is not None else None

    def owner_of(self, batch: Batch, worker: str | None, plan: int | None) -> tuple[str | None, int]:
        """(worker, number of the plan) of the results of a batch."""
        if batch.ids != self.ids:
            raise InvalidInput("this batch is of another study: its candidates are others.")
        holder = batch.lease.worker if worker is None and batch.lease is not None else worker
        return holder, batch.number if plan is None else plan

    def told(
        self,
        ids: Sequence[object] | Batch,
        rewards: ArrayLike,
        keys: Sequence[object] | None,
        items: Sequence[object] | None,
        blocks: Sequence[object] | None,
        worker: str | None,
        plan: int | None,
    ) -> tuple[Results, str | None, int | None]:
        """(results, worker, plan) of what `Study.tell` was given, which has the arguments."""
        if items is not None:
            ids = ids if isinstance(ids, Batch) else names_of(ids)
            keys = self.keys_by_item(ids, keys, items)
        if isinstance(ids, Batch):
            worker, plan = self.owner_of(ids, worker, plan)
            blocks = ids.blocks or None if blocks is None else blocks
            ids, keys = pulls_and_keys(ids, keys)
        return self.singles(ids, rewards, keys, worker, blocks), worker, plan


def pulls_and_keys(batch: Batch, keys: Sequence[object] | None) -> tuple[list[str], Sequence[object] | None]:
    """The ids of a batch, one a pull, and their keys: those of the lease where it has one."""
    if batch.lease is None and batch.items is None:
        return batch.pulls(), keys
    if keys is not None:
        raise InvalidInput("the pulls of a leased batch have keys already; leave keys out, or give ids.")
    rows = batch.keys()
    return [name for name, _ in rows], [key for _, key in rows]
