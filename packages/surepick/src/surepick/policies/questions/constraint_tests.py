"""How each arm stands to the bounds of the constraints, and what is evidence on them."""

from dataclasses import replace

import numpy as np

from surepick.core.observations import Observations, Quantity
from surepick.core.records import BoolArray, FloatArray, record
from surepick.embeddings import IndependentEmbedding
from surepick.estimators import noise_mgf_after
from surepick.estimators.posterior import NUMBER, Posterior
from surepick.noise import Noise, largest_scale
from surepick.policies.base import Problem
from surepick.policies.questions.outlook import Ground
from surepick.questions import Constraint
from surepick.questions.protocol import Bet, ConstraintEstimate

UNEVEN = "Measurements of a candidate give different values of {}, which was said to have no noise"
EXACT = 1e-9  # of its size, within which repeats of a quantity without noise agree


@record
class ConstraintTest:
    """A constraint with what it takes to judge it: its arms have no structure."""

    problem: Problem  # the question about the reward
    constraint: Constraint  # b, its direction, its tolerance and its noise

    def standing(self, seen: Quantity) -> ConstraintEstimate:
        """What the past suggests."""
        one, known = self.constraint, seen.counts > 0
        if one.noise is None:
            room = np.where(known, self._within(seen.means), 0.0)
            nothing = np.zeros(len(known))
            return ConstraintEstimate(room, nothing, nothing, known, one.tolerance, True, None)
        told = seen.observations
        scales = noise_mgf_after(one.noise, told).noise_scales(one.tolerance)
        if not known.any():
            unknown = np.full(len(known), np.inf)
            posterior = Posterior(np.full(len(known), one.bound), lambda _: unknown, one.bound)
            return ConstraintEstimate(np.zeros(len(known)), unknown, scales, known, one.tolerance, False, posterior)
        posterior = self._ground(one.noise).posterior(told)
        room = posterior.leads(NUMBER, high=not one.at_most)
        return ConstraintEstimate(room, posterior.errors(NUMBER), scales, known, one.tolerance, False, posterior)

    def gains(self, bet: Bet, past: Quantity, seen: Quantity, standing: ConstraintEstimate) -> FloatArray:
        """The log e-values of a batch for one bet on this quantity, shape (K,)."""
        if self.constraint.noise is None or standing.posterior is None or not standing.known.any():
            return np.zeros(len(bet.arms))
        ground = self._ground(self.constraint.noise)
        return ground.gains(bet, past.observations, seen.observations, standing.posterior)

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
