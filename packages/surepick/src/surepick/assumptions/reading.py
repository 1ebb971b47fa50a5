"""What carried evidence says under an assumption that is named after the data are in.

With u = 1/T, lack = log(1/delta) - L_j and B(u) of the class (`lines.py`), for any u >= 0 and after any batch:

    h_{x*} - h_c <= U = lack u + B(u)
    U <= m for every norm up to              (m - lack u - rest(u)) / unit(u)
    U <= m with means off by up to           (m - lack u - B(u)) / sum |D|       beyond what B has
    U <= m with scales k times as large for  k^2 <= ((m - B(u)) / u - lack + cost) / cost

Each is valid at any u, so that a search finds no invalid one; m is epsilon for the answer, and 0 for "x* is not j".
Source: docs/certified-elimination.md, lines 38 to 42.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from surepick.assumptions import records
from surepick.assumptions.likely_norm import rounded
from surepick.assumptions.lines import Curve, Lines
from surepick.core.observations import Observations
from surepick.core.records import BoolArray, FloatArray, record
from surepick.estimators.flows import ArmFlows

MOST_WITNESSES = 4  # arms beside the answer against which it is looked whether others are the best
ROUNDED_DOWN = 1.0 - 1e-9
DECADES, PER_DECADE, STEPS = 12, 3, 42  # of the search for u around 2 / length of the flow
QUICK_DECADES, QUICK_STEPS = 6, 9  # the same where it may find a little less
GOLDEN = 0.5 * (5.0**0.5 - 1.0)


@record
class Question:
    """Of what a reading says something: whether c is within epsilon of the best."""

    features: FloatArray  # of all arms, (K, D)
    candidate: int  # c
    witnesses: tuple[int, ...]  # other arms that may show that one is not the best
    epsilon: float
    scale: float | None  # the largest declared scale of the noise; None: pulls do not cost s^2 w^2 / 2
    negated: bool = False  # small rewards are good
    block_name: str | None = None


@record
class LargestAssumed:
    """The most that each arm, as x*, leaves of what may be assumed: at most epsilon better than c, or not the best."""

    bounds: FloatArray  # the smallest U_jc, (K,), in reward units
    unlike: FloatArray  # the smallest U_jw over all witnesses w, (K,); below 0 j is beaten
    norms: tuple[FloatArray, FloatArray]  # the largest with U_jc <= epsilon, and with j beaten
    misses: tuple[FloatArray, FloatArray]  # the same for how far means are off
    scatters: tuple[FloatArray, FloatArray]  # the same for the squared factor of the noise

    @property
    def beaten(self) -> BoolArray:
        """The arms that are not the best under the assumption, (K,)."""
        return np.asarray(self.unlike < 0.0)

    def gap(self, candidate: int) -> float:
        """The candidate is at most this much worse than the best, in reward units; infinite: nothing is known."""
        rivals = np.delete(np.where(self.beaten, 0.0, np.maximum(self.bounds, 0.0)), candidate)
        return float(rivals.max(initial=0.0))

    def least(self, pair: tuple[FloatArray, FloatArray], candidate: int) -> float:
        """Up to where every arm but the candidate is within epsilon of it, or not the best."""
        either = np.maximum(*pair)
        return float(np.delete(either, candidate).min(initial=np.inf))


def compared(leaders: Sequence[int], seen: Observations) -> tuple[int, tuple[int, ...]]:
    """(the answer, the arms beside it that may show that one is not the best).

    Args:
        leaders: candidates and leaders so far, the last one now.
        seen: all results.
    """
    candidate, *witnesses = dict.fromkeys(reversed(leaders))
    if not witnesses and len(seen.counts) > 1:
        others = np.where(seen.counts > 0, seen.means, -np.inf)
        others[candidate] = -np.inf
        witnesses = [int(np.argmax(others))]
    return candidate, tuple(witnesses[:MOST_WITNESSES])


def best_along(
    values: Curve, lengths: FloatArray, special: tuple[FloatArray, ...], *, quick: bool = False
) -> FloatArray:
    """The largest value over u >= 0 that a search finds, for each of m lines of flows of these lengths, shape (m,). A
    grid in log u around 2 / length, then the golden section around its best entry: values have one peak. Of the special
    u those are tried that are positive."""
    middle = np.where(lengths > 0.0, 2.0 / np.where(lengths > 0.0, lengths, 1.0), 1.0)
    best, place = values(np.zeros_like(middle)), np.zeros_like(middle)
    decades, steps = (QUICK_DECADES, QUICK_STEPS) if quick else (DECADES, STEPS)
    grid = np.linspace(-0.5 * decades, 0.5 * decades, decades * PER_DECADE + 1)
    top = np.full_like(best, -np.inf)
    for power in grid:
        found = values(middle * 10.0**power)
        higher = found > top
        top, place = np.where(higher, found, top), np.where(higher, power, place)
    low, high = place - 1.0 / PER_DECADE, place + 1.0 / PER_DECADE
    best = np.fmax(best, top)
    inner = [high - GOLDEN * (high - low), low + GOLDEN * (high - low)]
    first, second = (values(middle * 10.0**power) for power in inner)
    for _ in range(steps):
        left = ~(first < second)
        best = np.fmax(best, np.fmax(first, second))
        high, low = np.where(left, inner[1], high), np.where(left, low, inner[0])
        new = np.where(left, high - GOLDEN * (high - low), low + GOLDEN * (high - low))
        value = values(middle * 10.0**new)
        inner = [np.where(left, new, inner[1]), np.where(left, inner[0], new)]
        first, second = np.where(left, value, second), np.where(left, first, value)
    for one in special:
        usable = (one > 0.0) & np.isfinite(one)
        best = np.where(usable, np.fmax(best, values(np.where(usable, one, middle))), best)
    return best


def _share(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    """numerator / denominator, rounded down; over 0 infinite, with the sign of the numerator."""
    with np.errstate(invalid="ignore", divide="ignore"):
        found = numerator / denominator
    found = np.where(denominator > 0.0, found, np.where(numerator > 0.0, np.inf, -np.inf))
    return np.where(found > 0.0, ROUNDED_DOWN, 1.0 / ROUNDED_DOWN) * found


class _Search:
    """The lines of some rivals against one arm, under one assumption."""

    def __init__(
        self, lines: Lines, part: records.Assumption, scatter: float | None, *, scaled: bool, quick: bool = False
    ) -> None:
        held, self.support, self.length = lines.held, part.support(lines), lines.length()
        self.known_off = records.off_by(part)
        self.lack, self.cost = held.lack, held.spent
        if scatter is not None:
            self.cost = 0.5 * scatter**2 * held.squares
            self.lack = held.lack - held.spent + self.cost
        self.cost = self.cost if scaled else np.full_like(self.lack, np.nan)
        self._lengths, self._quick = held.lengths, quick
        with np.errstate(divide="ignore"):
            self._special = (1.0 / lines.at(lines.candidate), -1.0 / lines.at(lines.rivals))

    def _best(self, values: Curve) -> FloatArray:
        return best_along(values, self._lengths, self._special, quick=self._quick)

    def bound(self) -> FloatArray:
        """U, (m,)."""
        return -self._best(lambda inverse: -(self.lack * inverse + self.support.at(inverse)))

    def norms(self, most: float) -> FloatArray:
        """The norms up to which U <= most, (m,)."""
        unit, rest = self.support.unit, self.support.rest
        if unit is None:
            return np.where(self.bound() <= most, np.inf, -np.inf)
        return self._best(lambda inverse: _share(most - self.lack * inverse - rest(inverse), unit(inverse)))

    def misses(self, most: float) -> FloatArray:
        """How far means may be off what else is assumed with U <= most, (m,)."""
        return self.known_off + self._best(
            lambda inverse: _share(most - self.lack * inverse - self.support.at(inverse), self.length(inverse))
        )

    def scatters(self, most: float) -> FloatArray:
        """The squared factors of the noise scales up to which U <= most, (m,)."""
        if not np.isfinite(self.cost).all():
            return np.full(len(self.lack), np.nan)
        fixed = self.lack - self.cost

        def factor(inverse: FloatArray) -> FloatArray:
            room = _share(most - self.support.at(inverse), inverse)
            return _share(room - fixed, self.cost)

        return self._best(factor)


def largest_of(
    question: Question,
    assumption: records.Assumption,
    past: Iterable[ArmFlows],
    *,
    edges: bool = True,
    quick: bool = False,
) -> LargestAssumed:
    """What the rows of flows that changed with each batch say of their arms, the best of all; bounds alone or edges.
    Quick: bounds may be a little larger than they need be."""
    num_arms, nothing = len(question.features), -np.inf
    bounds, unlike = np.full(num_arms, np.inf), np.full(num_arms, np.inf)
    columns = {name: [np.full(num_arms, nothing) for _ in range(2)] for name in ("norms", "misses", "scatters")}
    scatter = records.scatter_of(assumption)
    for held in past:
        for arm in (question.candidate, *question.witnesses):
            rows = np.flatnonzero(held.arms != arm)
            if len(rows) == 0:
                continue
            lines = Lines(question.features, arm, held.rows(rows), question.negated, question.block_name)
            for part in records.alternatives(assumption):
                search = _Search(lines, part, scatter, scaled=question.scale is not None, quick=quick)
                found, rivals = search.bound(), lines.rivals
                np.minimum.at(unlike, rivals, found)
                if arm == question.candidate:
                    np.minimum.at(bounds, rivals, found)
                for name, both in columns.items() if edges else ():
                    method: Callable[[float], FloatArray] = getattr(search, name)
                    if arm == question.candidate:
                        np.fmax.at(both[0], rivals, method(question.epsilon))
                    np.fmax.at(both[1], rivals, method(0.0))
    bounds[question.candidate] = 0.0
    norms, misses, scatters = ((both[0], both[1]) for both in columns.values())
    return LargestAssumed(bounds, unlike, norms, misses, scatters)


@record
class Reading:
    """What the evidence of a study says under one assumption: one joint claim.

    Each of `largest_norm`, `largest_misspecification` and `largest_scatter` is how far one number could grow with the
    others as they are in `assumption`; two of them together are not claimed.
    """

    assumption: records.Assumption  # as it was read, its norm filled in
    candidate: str  # the answer
    epsilon: float
    delta: float
    gap: float | None  # the answer is at most this much worse than the best, in reward units; None: nothing is known
    beaten: tuple[str, ...]  # candidates that are not the best
    refuted: bool  # every candidate would not be the best: the assumption is false, but for the same delta
    norm: float | None = None  # what was read; None: the class has none
    norm_named: bool = False  # somebody named it; False: half as much again as the results suggest
    suggested_norm: float | None = None  # what the results suggest
    largest_norm: float | None = None  # the answer stands under every norm up to it
    least_norm: float | None = None  # every smaller norm is refuted
    largest_misspecification: float | None = None  # how far each mean may be off the class, in reward units
    largest_scatter: float | None = None  # up to which scale of the noise it stands, in reward units
    declared_scatter: float | None = None  # the declared scale, and what repeats suggest
    suggested_scatter: float | None = None

    @property
    def stands(self) -> bool:
        """Whether the answer is within epsilon of the best under the assumption, which is not refuted."""
        return not self.refuted and self.gap is not None and self.gap <= self.epsilon

    def __str__(self) -> str:
        """The claim as a sentence."""
        if self.refuted:
            return (
                f"If {self.condition}: then no candidate could be the best, so this is false, with confidence "
                f"{100.0 * (1.0 - self.delta):.4g} %."
            )
        if self.gap is None:
            return (
                f"If {self.condition}: nothing is known yet of how much better than {self.candidate} another could be."
            )
        sure = f"{self.candidate} is within {self.gap:.4g} of the best ({100.0 * (1.0 - self.delta):.4g} %)"
        wanted = "" if self.stands else f"; {self.epsilon:g} was asked for"
        return f"{sure} if {self.condition}{wanted}."

    @property
    def kind(self) -> str:
        """The class as it is written, without its norm and without how far means are off it."""
        return str(records.mapped(_exact(self.assumption), _without_norm))

    @property
    def off_by(self) -> float | None:
        """How far each mean may be off the class, all else as it was read, rounded down; None where it does not stand
        or has no norm."""
        found = self.largest_misspecification
        return None if found is None or not self.stands else rounded(found, 3, math.floor)

    @property
    def survives(self) -> str:
        """The sentence with as large a misspecification as the answer survives; where there is none, the claim."""
        if self.off_by is None or isinstance(self.assumption, records.AllOf):
            return str(self)
        near = records.Near(_exact(self.assumption), self.off_by)
        return str(replace(self, assumption=near, gap=self.epsilon))

    @property
    def condition(self) -> str:
        """What is assumed, in words."""
        scatter, suggested = records.scatter_of(self.assumption), self.suggested_norm
        scale = self.declared_scatter if scatter is None else scatter
        data = "" if suggested is None else f" (the results suggest up to {suggested:.3g})"
        noise = [] if scale is None else [f"the noise is at most {scale:.4g}"]
        return " and ".join([class_in_words(one, data) for one in records.alternatives(self.assumption)] + noise)


def _exact(assumption: records.Assumption) -> records.Assumption:
    if isinstance(assumption, records.AllOf):
        return replace(assumption, parts=tuple(map(_exact, assumption.parts)))
    return assumption.assumption if isinstance(assumption, records.Near) else assumption


def _without_norm(one: records.Assumption) -> records.Assumption:
    return replace(one, norm=None) if isinstance(one, records.Linear | records.Smooth) else one


def class_in_words(assumption: records.Assumption, data: str) -> str:
    """What is said of the means, as a clause; `data` is what the results say of a norm."""
    if isinstance(assumption, records.Near):
        return f"{class_in_words(assumption.assumption, data)}, each off by at most {assumption.gamma:.4g}"
    if isinstance(assumption, records.InRange):
        return f"all means are {assumption}"
    if isinstance(assumption, records.NoStructure):
        return "the means are whatever they are"
    if not isinstance(assumption, records.Linear | records.Smooth):
        return f"the means are {assumption}"
    kind = "linear in the features"
    if isinstance(assumption, records.Smooth):
        kind = str(replace(assumption, norm=None, level=True)).replace("smooth:", "smooth (") + ")"
    level = " and a level" if assumption.level else ""
    return f"the means are {kind}{level}, with a norm of at most {assumption.norm:.4g}{data}"
