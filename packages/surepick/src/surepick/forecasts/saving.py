"""What naming a class of means would save, for somebody who named none: both policies, played on made-up means."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from surepick.assumptions.likely_norm import noise_scale
from surepick.core.arms import Arms
from surepick.core.observations import Observations
from surepick.core.random_streams import stream
from surepick.core.records import FloatArray, record
from surepick.environments import Environment
from surepick.noise import SubGaussian
from surepick.policies.registry import make_policy
from surepick.simulation import simulate

MOST_ARMS = 300  # a study of more takes seconds
FEWEST = 8  # arms beyond the features' number, without which a linear function fits anything
STUDIES = 3
DRAWN = 60  # made-up means, of which those are played that are a sixth, half and five sixths as dear as the others
USUAL_SPREAD = 3.0  # of means, in units of the noise: their standard deviation, where nothing was measured
WORTH = 0.85  # of the measurements: a smaller share is a saving
LONGEST = 60  # letters of the features' names
FEW = 2.5  # measurements a candidate


@record
class Saving:
    """What `assume="linear"` would save."""

    epsilon: float
    columns: str  # of the features
    off: float | None  # standard deviation of what measured means lie off a linear function; None: none was measured
    spread: float  # standard deviation of the made-up means, in reward units
    named: int = 0  # measurements with it, 0: not simulated; and without
    independent: int = 0  # of a study that took place: what it took
    num_arms: int = 0
    unseen_noise: float | None = None  # the declared scale, where repeats that were measured were all equal

    def __str__(self) -> str:
        near, few = f"a linear function of {self.columns}", "about two results a candidate suffice anyway"
        enough = self.independent <= FEW * self.num_arms
        if not self.named:
            why = f"{few}, and means" if enough else "means"
            return (
                f"`--assume linear` would save nothing: {why} lie typically {self.off:.2g} off {near}, too far for "
                f"epsilon {self.epsilon:g}."
            )
        where = f"each mean is within {self.epsilon:g} of {near}"
        where += "" if self.off is not None else f" and the means spread by {self.spread:.3g} (standard deviation)"
        if self.unseen_noise is not None:
            where += f", with noise of {self.unseen_noise:g}, which repeats here do not have"
        if self.named <= WORTH * self.independent:
            return f"`--assume linear`: about {self.named:,} measurements in place of {self.independent:,}, if {where}."
        why = few if enough else f"about {self.named:,} measurements in place of {self.independent:,}"
        return f"`--assume linear` would save nothing: {why}, also if {where}."


def saving(
    arms: Arms, *, epsilon: float, delta: float, noise: SubGaussian, seen: Observations | None = None, seed: int = 0
) -> Saving | None:
    """A rough forecast of what naming the class of linear functions would save; None where a cheap one is not known.

    Both policies are simulated on the same made-up means: linear functions, each mean off by N(0, (epsilon / 2)^2).
    With results the function is their least-squares fit; without, directions are drawn for features that are scaled
    alike, and means spread by three times the noise.

    Args:
        arms: with their features.
        noise: of one scale.
        seen: what was measured of the arms, in the user's sign.
        seed: decides means and noise.

    Cost: six simulated studies, about a second for 45 arms and four for 200.
    """
    dim = arms.features.shape[1]
    if dim == 0 or arms.num_arms < dim + FEWEST or arms.costs is not None or not isinstance(noise.sigma, float):
        return None
    centred = np.asarray(arms.features, np.float64) - arms.features.mean(axis=0)
    z = np.column_stack([centred / np.maximum(centred.std(axis=0), 1e-300), np.ones(arms.num_arms)])
    columns = ", ".join(arms.columns or ())
    columns = columns if 0 < len(columns) <= LONGEST else f"the {dim} features"
    made, off, surely = _typical(z, epsilon, noise.sigma, seed), None, 0.0
    if seen is not None:
        fit = _fitted(z, seen, noise_scale(seen, noise.sigma))
        if fit is None:
            return None
        linear, off, surely = fit
        made = np.tile(linear, (STUDIES, 1))
    known = Saving(epsilon, columns, off, float(np.mean(made.std(axis=1))), num_arms=arms.num_arms)
    if seen is not None and (seen.counts > 1).any() and noise_scale(seen, np.inf) == np.inf:
        known = replace(known, unseen_noise=noise.sigma)
    if surely > 0.5 * epsilon:
        return replace(known, independent=0 if seen is None else seen.total)
    if arms.num_arms > MOST_ARMS:
        return None
    totals = []
    for number, linear in enumerate(made):
        off_it = stream(seed, "off", number).normal(0.0, 0.5 * epsilon, arms.num_arms)
        means = linear + np.clip(off_it, -epsilon, epsilon)
        world = Environment(arms=arms, means=means, noise=noise)
        pulls = 10_000_000
        plays: list[tuple[str, dict[str, Any]]] = [
            ("certified-independent", {}),
            ("certified-readings", {"assume": "linear"}),
        ]
        for name, options in plays:
            policy = make_policy(name, arms, epsilon=epsilon, delta=delta, noise=noise, **options)
            pulls = simulate(policy, world, seed=number, max_pulls=4 * pulls).pulls
            totals.append(pulls)
    independent, named = (int(float(f"{np.mean(totals[first::2]):.2g}")) for first in (0, 1))
    return replace(known, named=named, independent=independent)


def _typical(z: FloatArray, epsilon: float, sigma: float, seed: int) -> FloatArray:
    """Linear functions of three grades of difficulty, (3, K)."""
    drawn = stream(seed, "saving").standard_normal((DRAWN, z.shape[1] - 1)) @ z[:, :-1].T
    drawn *= USUAL_SPREAD * sigma / np.maximum(drawn.std(axis=1, keepdims=True), 1e-300)
    dear = np.sum((drawn.max(axis=1, keepdims=True) - drawn + epsilon) ** -2.0, axis=1)
    return np.asarray(drawn[np.argsort(dear)[[DRAWN // 6, DRAWN // 2, 5 * DRAWN // 6]]])


def _fitted(z: FloatArray, seen: Observations, sigma: float) -> tuple[FloatArray, float, float] | None:
    """(the linear function by least squares, (K,), what means lie off it, at least); None: too few were measured."""
    rows = np.flatnonzero(seen.counts)
    coefficients, *_ = np.linalg.lstsq(z[rows], seen.means[rows])
    freedom, noise = len(rows) - z.shape[1], sigma**2 * float(np.mean(1.0 / np.maximum(seen.counts[rows], 1)))
    if freedom < FEWEST - 1:
        return None
    off = float(np.sum((seen.means[rows] - z[rows] @ coefficients) ** 2)) / freedom - noise
    least = off - 2.0 * (noise + max(off, 0.0)) * (2.0 / freedom) ** 0.5  # two standard errors
    return z @ coefficients, max(off, 0.0) ** 0.5, max(least, 0.0) ** 0.5
