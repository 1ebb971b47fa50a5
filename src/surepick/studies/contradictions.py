"""When the repeats of a study speak against the scale that it declares: in every policy, from what was told."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.core.observations import Observations, Quantity
from surepick.estimators.declared_scale import spread_of, with_least_squares
from surepick.noise import Noise, known_scale, scales
from surepick.policies.base import Policy
from surepick.questions import constraints_of
from surepick.text import quoted

FALSE_ALARM = 1e-6  # of a study, at all times together


def declares_scale(noise: Noise | None) -> bool:
    """Whether results can lie farther apart than the noise allows, and no policy looks whether they do."""
    return noise is not None and known_scale(noise) and noise.support is None


def _declared(policy: Policy[Any]) -> list[tuple[str, int, FloatArray]]:
    """(name, place, scales) of what declares a scale: the reward, at -1, and quantities with a constraint.

    Nothing where repeats differ for other reasons: by the effect of their block, or because each answers another item.
    """
    if policy.traits.blocks is not None or policy.traits.items is not None:
        return []
    problem = policy.problem
    found = [("", -1, problem.noise)] + [
        (one.name, place, one.noise) for place, one in enumerate(constraints_of(problem.question))
    ]
    return [
        (name, place, np.asarray(scales(noise, problem.num_arms)))
        for name, place, noise in found
        if noise is not None and declares_scale(noise)
    ]


class Repeats:
    """All that was told in the judged plans of a study, and what it says against declared scales.

    Args:
        policy: whose study it is.
        told: what was told before; None: nothing.
        found: what was found before, in words; it stays.
    """

    def __init__(self, policy: Policy[Any], told: Observations | None = None, found: str = "") -> None:
        self._policy = policy
        self._declared = _declared(policy)
        self._told = told
        self.found = found

    def after(self, seen: Observations) -> str:
        """What was found so far in words, with one more plan; "" if nothing was.

        Source: docs/certified-elimination.md, line 35.
        """
        if self.found or not self._declared:
            return self.found
        news = with_least_squares(seen)
        self._told = news if self._told is None else self._told.plus(news)
        for name, place, each in self._declared:
            totals = self._told if place < 0 else _observations((self._told.quantities or ())[place : place + 1])
            spread = None if totals is None else spread_of(totals, each)
            if spread is not None and totals is not None and spread.evidence >= -math.log(self._level):
                self.found = self._words(name, totals, spread.worst, float(spread.within[spread.worst]), each)
                break
        return self.found

    @property
    def _level(self) -> float:
        return FALSE_ALARM / len(self._declared)

    def _words(self, name: str, totals: Observations, arm: int, within: float, each: FloatArray) -> str:
        arms, number = self._policy.problem.arms, int(totals.counts[arm])
        who = f"number {arm}" if arms is None else quoted(arms.ids[arm])
        what = f" of {quoted(name)}" if name else ""
        deviation = math.sqrt(within / max(number - 1, 1))
        return (
            f"repeats{what} lie farther apart than the declared noise allows, most of all {number} results of {who}, "
            f"whose standard deviation is {deviation:.4g} where a scale of {each[arm]:g} is declared"
        )


def _observations(quantity: tuple[Quantity, ...]) -> Observations | None:
    return quantity[0].observations if quantity else None
