"""A pilot before a rehearsal: some candidates are measured twice or more, which bounds the scale of the noise."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from surepick.core.arrays import FloatArray, IntArray
from surepick.core.random_streams import stream
from surepick.core.validation import as_number, whole_number
from surepick.environments import Environment, RecordedRewards
from surepick.errors import InvalidInput
from surepick.noise import PilotGaussian, SubGaussian, pilot_noise
from surepick.simulation import Run

USUAL_PULLS = 40
SHARE_OF_DELTA = 0.1
TO_BE_FOUND = SubGaussian(1.0)  # stands in the environment until the pilot has spoken; recorded rewards do not use it


@dataclass(frozen=True, slots=True)
class Pilot:
    """What a pilot measured and found.

    Args:
        noise: normal noise with a bound on its standard deviation.
        pulls: measurements that it took.
        candidates: how many candidates they went to.
    """

    noise: PilotGaussian
    pulls: int
    candidates: int

    @property
    def sentence(self) -> str:
        """What the pilot cost and found, in words."""
        return (
            f"Pilot: {self.pulls:,} measurements on {self.candidates:,} candidate{'s' * (self.candidates > 1)}; "
            f"standard deviation at most {self.noise.sigma:g} (except with probability {self.noise.failure:g})."
        )


def pilot_pulls(text: str) -> int | None:
    """The measurements that "pilot" or "pilot:PULLS" asks for; None when the text declares a noise.

    Raises:
        InvalidInput: PULLS is not a whole number of at least 2.
    """
    kind, colon, rest = text.strip().partition(":")
    if kind != "pilot":
        return None
    if not colon:
        return USUAL_PULLS
    try:
        number = float(rest)
    except ValueError as error:
        raise InvalidInput(f"noise {text!r} is not understood. Write pilot, or pilot:PULLS, e.g. pilot:100.") from error
    return whole_number("the pilot", number, least=2, meaning="measurements, two or more of each candidate it takes.")


def take_pilot(environment: Environment, pulls: int, *, delta: float, seed: int, max_pulls: int) -> Pilot:
    """Measure candidates chosen at random, two times each or more, and bound the noise from their spread.

    Args:
        environment: what is measured.
        pulls: measurements in all, spread over at most pulls / 2 candidates as evenly as whole numbers can be.
        delta: the error probability of the study, of which the bound takes a tenth.
        seed: decides the candidates and their rewards.
        max_pulls: the budget of the pilot and the study together.

    Raises:
        InvalidInput: delta is no probability, the budget is too small, no candidate has two recorded measurements, or
            the repeats show no spread.
    """
    if not 0 < as_number("delta", delta) < 1:
        raise InvalidInput(
            f"delta is {delta!r}; it must lie strictly between 0 and 1: the probability of a wrong answer."
        )
    if pulls > max_pulls:
        raise InvalidInput(
            f"the pilot takes {pulls:,} measurements and --max-pulls is {max_pulls:,}; nothing would be left to find "
            "the best candidate with. Allow more, or take a smaller pilot, e.g. --noise pilot:10."
        )
    counts = _spread(_repeatable(environment), pulls, environment.num_arms, stream(seed, "pilot"))
    sums, squares = _centred(environment, counts, stream(seed, "pilot", "rewards"))
    noise = pilot_noise(counts, sums, squares, failure=SHARE_OF_DELTA * delta)
    return Pilot(noise, pulls, int(np.count_nonzero(counts)))


def _repeatable(environment: Environment) -> IntArray:
    """The candidates whose repeats can differ: those with two recorded measurements or more."""
    if not isinstance(environment.law, RecordedRewards):
        return np.arange(environment.num_arms)
    several = np.flatnonzero(environment.law.repeats >= 2)
    if several.size == 0:
        raise InvalidInput(
            "a pilot compares repeated measurements of one candidate, and every candidate of this table was measured "
            "once: drawing the same row again shows no noise. Name the candidates with --id if rows repeat them, or "
            "declare the noise with --noise subgaussian:SIGMA."
        )
    return several


def _spread(candidates: IntArray, pulls: int, num_arms: int, rng: np.random.Generator) -> IntArray:
    """Pulls of each arm, shape (K,): at most pulls / 2 of the candidates, two or more each."""
    taken = rng.choice(candidates, size=min(pulls // 2, len(candidates)), replace=False)
    counts = np.zeros(num_arms, dtype=np.int64)
    counts[taken] = pulls // len(taken)
    counts[taken[: pulls % len(taken)]] += 1
    return counts


def _centred(environment: Environment, counts: IntArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Sums and sums of squares of the rewards minus the first of their arm, measured one by one: no digit is lost."""
    first = environment.pull(np.minimum(counts, 1), rng).sums
    sums, squares = np.zeros(len(counts)), np.zeros(len(counts))
    for repeat in range(1, int(counts.max())):
        pulled = counts > repeat
        beyond = np.where(pulled, environment.pull(pulled.astype(np.int64), rng).sums - first, 0.0)
        sums, squares = sums + beyond, squares + beyond**2
    return sums, squares


def with_pilot(run: Run, pilot: Pilot) -> Run:
    """The same study with the pilot's measurements in every count of what was spent."""
    answer = run.certificate
    rounds = tuple(replace(row, total_pulls=row.total_pulls + pilot.pulls) for row in run.rounds)
    reason = answer.reason
    if answer.verdict == "budget-exhausted":
        reason += f" The pilot had taken {pilot.pulls:,} pulls of the budget before."
    return replace(
        run,
        pulls=run.pulls + pilot.pulls,
        oracle_pulls=None if run.oracle_pulls is None else run.oracle_pulls + pilot.pulls,
        rounds=rounds,
        certificate=replace(answer, pulls=answer.pulls + pilot.pulls, reason=reason, rounds=rounds),
    )


def spread_doubts(environment: Environment, noise: PilotGaussian) -> list[str]:
    """What the recorded measurements say against one standard deviation within the pilot's bound."""
    law = environment.law
    if not isinstance(law, RecordedRewards):
        return []
    off = (law.rewards - law.means[law.arm_of_row]) ** 2
    deviations = np.sqrt(np.bincount(law.arm_of_row, weights=off) / law.repeats)
    larger = np.flatnonzero(deviations > noise.sigma)
    if larger.size == 0:
        return []
    worst = int(np.argmax(deviations))
    return [
        f"the recorded measurements of {environment.arms.ids[worst]} have standard deviation {deviations[worst]:.4g}, "
        f"and the pilot's bound is {noise.sigma:.4g}, which {larger.size:,} of {environment.num_arms:,} candidates "
        "exceed. A rehearsal draws from these records: they share no such standard deviation, so its certificate may "
        "be worthless."
    ]
