"""What recorded measurements say against the noise that is declared for them, in sentences."""

from __future__ import annotations

import numpy as np

from surepick.core.observations import Observations
from surepick.environments.environment import Environment
from surepick.environments.rewards import RecordedRewards
from surepick.errors import InvalidInput
from surepick.noise import PilotGaussian, known_scale, scales
from surepick.text import quoted

ENOUGH_RECORDS = 20  # of a candidate; draws from fewer values are far from normal
LARGEST = 1e150  # scale whose square is a number
QUIET = 0.7  # of the declared standard deviation; a study of rewards that vary less ends clearly earlier


def doubts_of_noise(recorded: Environment) -> list[str]:
    """Why the declared noise may be too small: a certificate is worthless then. Empty where nothing speaks against it.

    Args:
        recorded: an environment; of one that is not made of records nothing is said.
    """
    law, noise = recorded.law, recorded.noise
    if not isinstance(law, RecordedRewards):
        return []
    if isinstance(noise, PilotGaussian):
        return _doubts_of_pilot(recorded, law, noise)
    if not known_scale(noise):
        return _doubts_of_unknown(law)
    half, declared = law.half_ranges, scales(noise, recorded.num_arms)
    if not half.any():
        return ["every candidate has one measured value, so repeating a measurement gives the same number: no noise."]
    worst = int(np.argmax(half - declared))
    if half[worst] <= declared[worst]:
        return []
    return [
        f"the repeats of {recorded.arms.ids[worst]} span {2 * half[worst]:.4g}; half of that is more than the declared "
        f"noise scale {declared[worst]:.4g}. If that scale is too small, the certificate is worthless."
    ]


def _doubts_of_pilot(recorded: Environment, law: RecordedRewards, noise: PilotGaussian) -> list[str]:
    """That candidates vary more than the bound that a pilot found for all of them."""
    off = (law.rewards - law.means[law.arm_of_row]) ** 2
    deviations = np.sqrt(np.bincount(law.arm_of_row, weights=off) / law.repeats)
    larger, worst = int(np.count_nonzero(deviations > noise.sigma)), int(np.argmax(deviations))
    if larger == 0:
        return []
    return [
        f"the recorded measurements of {recorded.arms.ids[worst]} have standard deviation {deviations[worst]:.4g}, and "
        f"the pilot's bound is {noise.sigma:.4g}, which {larger:,} of {recorded.num_arms:,} candidates exceed. A "
        "rehearsal draws from these records. They share no such standard deviation, so its certificate may be "
        "worthless."
    ]


def recorded_totals(recorded: Environment) -> Observations | None:
    """What the repeats on record say of spreads, as if each was measured once; None of an environment without."""
    law = recorded.law
    if not isinstance(law, RecordedRewards):
        return None
    return Observations(law.repeats, law.means * law.repeats, within=law.variances * law.repeats)


def check_repeats(recorded: Environment, *, features: bool) -> None:
    """Refuse a rehearsal that could not end: repeats alone show a scale, and those of candidates that decide do not.

    Args:
        recorded: an environment; of one that is not made of records nothing is said.
        features: the policy lets others speak for a candidate; then half of them may lack repeats that differ.

    Raises:
        InvalidInput: it could not.
    """
    law = recorded.law
    if known_scale(recorded.noise) or not isinstance(law, RecordedRewards):
        return
    equal = np.flatnonzero(law.half_ranges == 0.0)
    if len(equal) == 0 or (features and 2 * len(equal) <= recorded.num_arms):
        return
    raise InvalidInput(
        f"{len(equal):,} of {recorded.num_arms:,} candidates have no two measured values that differ (the first is "
        f"{quoted(recorded.arms.ids[equal[0]])}). With --noise normal repeats alone show how much measurements vary, "
        "so that this rehearsal would not end. Leave these candidates out; or declare bounded:LOW:HIGH, if rewards "
        "have a range, or subgaussian:SIGMA."
    )


def _doubts_of_unknown(law: RecordedRewards) -> list[str]:
    """That draws from a few records are not normal."""
    few = int(law.repeats.min())
    if few >= ENOUGH_RECORDS:
        return []
    return [
        f"a rehearsal draws from the recorded measurements, and of some candidates there are only {few}. Draws from so "
        "few values are not normal, so its certificate shows what a study says and costs, not that the answer is right."
    ]


def quieter_records(recorded: Environment) -> list[str]:
    """Why a study of the records may end clearly earlier than a forecast with the declared noise says, if it may."""
    if not isinstance(recorded.law, RecordedRewards) or not known_scale(recorded.noise):
        return []
    assumed = np.minimum(scales(recorded.noise, recorded.num_arms), LARGEST) ** 2
    if recorded.noise.support is not None:  # simulated rewards are low or high, the widest law with that mean
        low, high = recorded.noise.support
        assumed = (recorded.means - low) * (high - recorded.means)
    drawn, simulated = (float(np.sqrt(np.mean(variances))) for variances in (recorded.law.variances, assumed))
    if drawn >= QUIET * simulated:
        return []
    return [
        f"the guess simulates measurements with the declared noise (standard deviation {simulated:.3g}); repeats in "
        f"this table vary by {drawn:.3g}. surepick run draws from the table, so it may end after half as many "
        "measurements or fewer. Expect the guess where the noise is as declared; if it is smaller, declare less."
    ]
