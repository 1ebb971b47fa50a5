"""How each arm stands to the bounds of the constraints, as far as the past says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, freeze, record
from surepick.core.observations import Observations, Quantity
from surepick.embeddings import IndependentEmbedding
from surepick.estimators import noise_mgf_after
from surepick.noise import Noise, largest_scale
from surepick.policies.base import Problem
from surepick.policies.questions.outlook import Ground, Outlook
from surepick.policies.questions.sheets import NUMBER, Bet
from surepick.questions import Constraint

UNEVEN = "Measurements of a candidate give different values of {}, which was said to have no noise"
EXACT = 1e-9  # of its size, within which repeats of a quantity without noise agree


@record
class Standing:
    """How the arms stand to one constraint.

    Args:
        room: by how much each arm keeps the bound, as guessed, shape (K,), in the quantity's units; negative where it
            does not.
        errors: standard errors of `room`, shape (K,); 0 where there is no noise.
        scales: of the noise, shape (K,); 0 without noise.
        known: arms of which the quantity was measured, shape (K,).
        tolerance: how far beyond the bound the answer may be.
        exact: there is no noise, so that the room of known arms is a fact.
        outlook: guesses, for bets; None where there is no noise.
    """

    room: FloatArray
    errors: FloatArray
    scales: FloatArray
    known: BoolArray
    tolerance: float
    exact: bool
    outlook: Outlook | None

    def __post_init__(self) -> None:
        freeze(self, room=np.float64, errors=np.float64, scales=np.float64, known=np.bool_)


@record
class Limit:
    """A constraint with what it takes to judge it: its arms have no structure.

    Args:
        problem: the question about the reward.
        constraint: b, its direction, its tolerance and its noise.
    """

    problem: Problem
    constraint: Constraint

    def standing(self, seen: Quantity) -> Standing:
        """What the past suggests."""
        one, known = self.constraint, seen.counts > 0
        if one.noise is None:
            room = np.where(known, self._within(seen.means), 0.0)
            nothing = np.zeros(len(known))
            return Standing(room, nothing, nothing, known, one.tolerance, True, None)
        told = seen.observations
        scales = noise_mgf_after(one.noise, told).noise_scales(one.tolerance)
        if not known.any():
            unknown = np.full(len(known), np.inf)
            outlook = Outlook(np.full(len(known), one.bound), one.bound, lambda _: unknown)
            return Standing(np.zeros(len(known)), unknown, scales, known, one.tolerance, False, outlook)
        outlook = self._ground(one.noise).outlook(told)
        room = outlook.leads(NUMBER, high=not one.at_most)
        return Standing(room, outlook.errors(NUMBER), scales, known, one.tolerance, False, outlook)

    def gains(self, bet: Bet, past: Quantity, seen: Quantity, standing: Standing) -> FloatArray:
        """The log e-values of a batch for one bet on this quantity, shape (K,)."""
        if self.constraint.noise is None or standing.outlook is None or not standing.known.any():
            return np.zeros(len(bet.arms))
        ground = self._ground(self.constraint.noise)
        return ground.gains(bet, past.observations, seen.observations, standing.outlook)

    def contradicted(self, seen: Quantity) -> BoolArray:
        """The arms whose measurements differ although there is no noise, shape (K,)."""
        if self.constraint.noise is not None:
            return np.zeros(len(seen.counts), bool)
        spread = seen.squares * seen.counts - seen.sums**2
        return np.asarray(spread > EXACT * seen.squares * seen.counts)

    def _within(self, values: FloatArray) -> FloatArray:
        room = self.constraint.bound - values
        return room if self.constraint.at_most else -room

    def _ground(self, noise: Noise) -> Ground:
        num_arms = self.problem.num_arms
        asked = replace(self.problem, noise=noise, epsilon=self.constraint.tolerance, question=None)
        return Ground(asked, IndependentEmbedding(num_arms), num_arms, self.constraint.bound, 0.05)


def told_beside(seen: Observations, number: int) -> tuple[Quantity, ...]:
    """The totals of each quantity; zeros where nothing was told."""
    return seen.quantities or tuple(Quantity.nothing(len(seen.counts)) for _ in range(number))


def assumed_of(constraints: tuple[Constraint, ...], seen: Observations) -> tuple[str, ...]:
    """What the evidence on the constraints rests on, as sentences."""
    found = []
    for one, told in zip(constraints, told_beside(seen, len(constraints)), strict=True):
        if one.noise is None:
            found.append(f"A measurement of {one.name} has no noise.")
        elif one.noise.support is not None:
            low, high = one.noise.support
            found.append(
                f"The measurements of {one.name} are such draws around its mean, between {low:g} and {high:g}."
            )
        else:
            scale = largest_scale(one.noise)
            found.append(
                f"The measurements of {one.name} are such draws around its mean, with sub-Gaussian noise of scale at "
                f"most {scale:g}."
            )
        if (told.counts < seen.counts).any():
            found.append(f"Whether {one.name} was measured does not depend on its value, nor on the reward.")
    return tuple(found)
