"""Which Gaussian kernel, from a pilot: its gamma, and an estimate (never a bound) of the norm of the mean rewards."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from surepick.core.arms import Arms
from surepick.core.observations import Observations
from surepick.core.records import FloatArray, IntArray, frozen, record
from surepick.core.values import check_choice, positive_number
from surepick.embeddings.kernel_functions import distances
from surepick.errors import InvalidInput
from surepick.linalg.factorisations import symmetric_spectrum
from surepick.noise import Noise, scales

MARGINAL_LIKELIHOOD, CROSS_VALIDATION = "marginal-likelihood", "cross-validation"
CRITERIA = (MARGINAL_LIKELIHOOD, CROSS_VALIDATION)
SMALLEST_SQUARE, LARGEST_SQUARE = 1e-290, 1e290  # squares and their reciprocals are then far from 0 and infinity
HEURISTIC_DECADES = 3  # of the grid of gammas, to either side of one over the mean squared distance
HEURISTIC_STEPS = 4  # gammas a decade
HEURISTIC_REFINED = 3  # further gammas between the best and each neighbour
HEURISTIC_CLEAR = 3.0  # nats: gammas that score less than this below the best cannot be told from it
HEURISTIC_MOSTLY = 3.0  # times what the fit shows of the squared norm
HEURISTIC_LARGEST_GRAM = 2_000  # arms whose gram matrix is decomposed to count its directions
ESTIMATE = (
    "The norm is an estimate, not a bound: a certificate that uses it is heuristic unless you can vouch for it. "
    "Rewards that change where nothing was measured, or between the measured candidates, have a larger norm."
)


@frozen
class KernelChoice:
    """What a pilot says about the Gaussian kernel exp(-gamma ||x - z||^2)."""

    gamma: float  # the one of best score, in 1 / squared feature units
    # estimate of the norm of the mean rewards in the kernel's space, in reward units: what the pilot shows, what its
    # noise hides, and as much again for each candidate that it did not measure
    norm_estimate: float
    gammas: FloatArray  # all that were tried, rising, (m,)
    scores: FloatArray  # their scores in nats, (m,); large is good
    norms_of_fit: FloatArray  # norm of the fit for each, the part that the pilot shows, (m,), in reward units
    plausible: tuple[float, float]  # the smallest and the largest gamma tried that cannot be told from the best
    criterion: str  # "marginal-likelihood" or "cross-validation"
    warnings: tuple[str, ...]  # what a user should know before using it, in sentences

    @property
    def silent(self) -> bool:
        """The pilot says nothing about gamma: all that were tried score alike."""
        return len(self.scores) > 1 and bool(np.ptp(self.scores) < HEURISTIC_CLEAR)

    @property
    def norm_of_fit(self) -> float:
        """Norm of the fit for the chosen gamma, in reward units."""
        return float(self.norms_of_fit[int(np.argmax(self.scores))])

    @property
    def sentence(self) -> str:
        """The choice and what it may be used for, in words."""
        if self.silent:
            return "The pilot says nothing about gamma: every one that was tried explains it about equally well."
        low, high = self.plausible
        return (
            f"gamma {self.gamma:.4g}, not to be told from {low:.4g} to {high:.4g}; norm about {self.norm_estimate:.4g} "
            f"({self.norm_of_fit:.4g} without what noise hides). {ESTIMATE}"
        )


@record
class _Fitted:
    """The best fit for one gamma: its score, its signal variance, and the squared norms of what is and is not seen."""

    score: float
    variance: float
    shown: float
    hidden: float


def choose_kernel(
    features: FloatArray,
    pilot: Observations,
    noise: Noise,
    *,
    gammas: Sequence[float] | None = None,
    criterion: str = MARGINAL_LIKELIHOOD,
) -> KernelChoice:
    """The Gaussian kernel under which the means of a pilot are most plausible.

        means of the pilot ~ N(0, s^2 G + diag(sigma_x^2 / n_x)),   G_xz = exp(-gamma ||x - z||^2)

        marginal-likelihood: log density of the means          cross-validation: sum of the log densities of each mean
                                                                given all the others
        for each gamma with the signal variance s^2 >= 0 of best score

        norm_estimate^2 = E[h' G_K^-1 h | pilot] = ||fit||^2 + s^2 tr((s^2 G + N)^-1 N) + s^2 (rank G_K - rank G),
        ||fit||^2 = a' G a,   a = s^2 (s^2 G + N)^-1 means,   N = diag(sigma_x^2 / n_x),   G_K of all K arms

    The expectation is over functions that are as rough as draws of the Gaussian process. Rewards are taken as they are,
    because a policy's norm bound refers to them as they are: a large constant in them is part of the norm.

    Args:
        features: shape (K, D), as the policy will see them.
        pilot: what was measured; arms without pulls only enter the norm. A study must not use these pulls again.
        noise: what is assumed of a reward.
        gammas: those to try; None: six orders of magnitude around one over the mean squared distance of the measured
            arms (the median of two tight clusters may be the width of one), refined around the best.
        criterion: how gammas are compared.

    Returns:
        The choice. Nothing of it is a theorem: no certificate may rest on it without a reason from outside.

    Raises:
        InvalidInput: another shape, a gamma that is not positive, no feature, fewer than three measured arms that
            differ in features, an unknown criterion, or features, noise or rewards of a size whose squares, or their
            ratios, are 0 or not finite.

    Source: Rasmussen and Williams, Gaussian Processes for Machine Learning (2006), eqs. (2.30), (5.10) to (5.12); the
    norm is ours.
    Cost: O(p^3) time a gamma for p measured arms, and O(K^3) once, for the norm (none above 2,000 arms).
    """
    check_choice("criterion", criterion, CRITERIA)
    matrix = np.asarray(Arms(features).features, dtype=np.float64)
    pulled = _measured(matrix, pilot)
    variances = _variances(scales(noise, len(matrix))[pulled], pilot.counts[pulled])
    means = pilot.means[pulled]
    squared = _squared_distances(matrix, pulled)

    def fit(gamma: float) -> _Fitted:
        with np.errstate(all="ignore"):  # what overflows is refused
            return _fitted(np.exp(-gamma * squared), means, variances, criterion)

    tried = {float(gamma): fit(gamma) for gamma in (_grid(squared) if gammas is None else _checked(gammas))}
    if gammas is None:  # those between the best and its neighbours, too
        ordered = sorted(tried)
        best = max(range(len(ordered)), key=lambda place: tried[ordered[place]].score)
        sides = [ordered[one] for one in (best - 1, best + 1) if 0 <= one < len(ordered)]
        inner = [np.geomspace(ordered[best], side, HEURISTIC_REFINED + 2)[1:-1].tolist() for side in sides]
        tried |= {gamma: fit(gamma) for part in inner for gamma in part}
    return _choice(matrix, pulled, dict(sorted(tried.items())), criterion)


def _measured(matrix: FloatArray, pilot: Observations) -> IntArray:
    """Indices of the measured arms, shape (p,); InvalidInput where they are too few, or the pilot is of other arms."""
    if matrix.shape[1] == 0:
        raise InvalidInput("the arms have no feature column; a kernel compares features.")
    if pilot.counts.shape != (len(matrix),):
        raise InvalidInput(
            f"the pilot has results for {len(pilot.counts)} arms and there are features of {len(matrix)}; give one "
            "count and one sum per arm, 0 for those that were not measured."
        )
    if not np.all(np.isfinite(pilot.sums)):
        raise InvalidInput("a sum of rewards of the pilot is not finite.")
    pulled = np.flatnonzero(pilot.counts)
    distinct = len(np.unique(matrix[pulled], axis=0))
    if distinct < 3:
        raise InvalidInput(
            f"the pilot measured {distinct} candidates that differ in features; how quickly rewards change with the "
            "features shows from three on, and clearly from some dozens. Measure more candidates."
        )
    return pulled


def _variances(sigma: FloatArray, counts: IntArray) -> FloatArray:
    """sigma_x^2 / n_x of the measured arms, shape (p,); InvalidInput where one is too close to 0 or infinity."""
    with np.errstate(over="ignore", under="ignore"):
        variances: FloatArray = sigma**2 / counts
    if not np.all((variances >= SMALLEST_SQUARE) & (variances <= LARGEST_SQUARE)):
        raise InvalidInput(
            f"noise of scale {float(sigma.min()):.3g} to {float(sigma.max()):.3g} has squares that computers round to "
            "0 or infinity; state rewards and noise in other units."
        )
    return variances


def _squared_distances(matrix: FloatArray, pulled: IntArray) -> FloatArray:
    """||x - z||^2 of the measured arms, shape (p, p); InvalidInput where they are too close to 0 or infinity."""
    with np.errstate(over="ignore", under="ignore"):
        span = np.ptp(matrix, axis=0)
        largest = float(np.sum(span**2))  # at least the square of any distance
    squared = distances(matrix[pulled], matrix[pulled], squared=True)
    if not (largest <= LARGEST_SQUARE and float(squared.max()) >= SMALLEST_SQUARE):
        raise InvalidInput(
            f"the candidates differ by up to {float(np.max(span)):.3g} in a feature, whose squares computers round to "
            "0 or infinity; rescale the features."
        )
    return squared


def _grid(squared: FloatArray) -> FloatArray:
    """Gammas around one over the mean squared distance, rising, shape (m,)."""
    steps = HEURISTIC_DECADES * HEURISTIC_STEPS
    return 10.0 ** (np.arange(-steps, steps + 1) / HEURISTIC_STEPS) / float(np.mean(squared[squared > 0]))


def _checked(gammas: Sequence[float]) -> list[float]:
    """The gammas to try, refused unless there is one and all are positive."""
    meaning = "one over the squared distance at which two arms stop telling about each other."
    found = [positive_number("gamma", gamma, meaning) for gamma in gammas]
    if not found:
        raise InvalidInput("gammas is empty; give at least one, or None for a grid.")
    return found


def _fitted(gram: FloatArray, means: FloatArray, variances: FloatArray, criterion: str) -> _Fitted:
    """The signal variance of best score, from one spectrum: N^-1/2 G N^-1/2 = V diag(l) V', for G of shape (p, p)."""
    roots = np.sqrt(variances)
    scaled = gram / roots[:, None] / roots
    if not (np.all(np.isfinite(scaled)) and np.all(np.isfinite((means / roots) ** 2))):
        raise _out_of_range(means, variances)
    spectrum = symmetric_spectrum(scaled)
    values, vectors = np.maximum(spectrum.values, 0.0), spectrum.vectors
    shares = vectors.T @ (means / roots)
    log_noise = float(np.sum(np.log(2.0 * np.pi * variances)))

    def score(s2: FloatArray) -> FloatArray:
        grown = s2[:, None] * values + 1.0
        if criterion == MARGINAL_LIKELIHOOD:
            terms = np.log(grown) + shares**2 / grown
        else:
            solved = (shares / grown) @ vectors.T  # of (s^2 G + N)^-1 means, times the root of N
            diagonal = (1.0 / grown) @ (vectors**2).T  # of (s^2 G + N)^-1, times N
            terms = solved**2 / diagonal - np.log(diagonal)
        return np.asarray(-0.5 * (np.sum(terms, axis=1) + log_noise))

    unit = max(float(shares @ shares), 1.0) / max(float(values.sum()), 1e-300)
    best, variance = _maximised(score, unit)
    grown = variance * values + 1.0
    shown = variance * float(np.sum(variance * values * shares**2 / grown**2))  # s^2 l has no unit: no square overflows
    hidden = variance * float(np.sum(1.0 / grown[: _directions(values)]))
    if not (math.isfinite(best) and math.isfinite(shown) and math.isfinite(hidden)):
        raise _out_of_range(means, variances)
    return _Fitted(best, variance, shown, hidden)


def _out_of_range(means: FloatArray, variances: FloatArray) -> InvalidInput:
    """What to say where means and variances, shape (p,), cannot be computed with."""
    return InvalidInput(
        f"mean rewards of up to {float(np.max(np.abs(means))):.3g} beside noise of scale "
        f"{math.sqrt(float(variances.min())):.3g} in a mean give squares that are not finite; check the units of the "
        "rewards and of the noise."
    )


def _maximised(score: Callable[[FloatArray], FloatArray], unit: float) -> tuple[float, float]:
    """(best score, signal variance): on a grid, then on finer ones around the best; 0 is one of those tried."""
    tried = np.concatenate([[0.0], unit * 10.0 ** np.linspace(-6.0, 9.0, 61)])
    scores = score(tried)
    best = int(np.argmax(scores))
    for _ in range(3):
        low, high = tried[max(best - 1, 0)], tried[min(best + 1, len(tried) - 1)]
        tried = np.linspace(low, high, 21)
        scores = score(tried)
        best = int(np.argmax(scores))
    return float(scores[best]), float(tried[best])


def _directions(values: FloatArray) -> int:
    """Eigenvalues, decreasing, that stand out of rounding: directions of the kernel that these arms can show."""
    return int(np.sum(values > len(values) * np.finfo(np.float64).eps * values[0]))


def _unmeasured(matrix: FloatArray, pulled: IntArray, gamma: float) -> int:
    """rank G_K - rank G: directions that only show on arms without pulls (for very many arms: all of those)."""
    rows = np.unique(matrix, axis=0)
    seen = np.unique(matrix[pulled], axis=0)
    if len(rows) > HEURISTIC_LARGEST_GRAM:
        return len(rows) - len(seen)
    ranks = [
        _directions(symmetric_spectrum(np.exp(-gamma * distances(part, part, squared=True))).values)
        for part in (rows, seen)
    ]
    return max(0, ranks[0] - ranks[1])


def _choice(matrix: FloatArray, pulled: IntArray, tried: dict[float, _Fitted], criterion: str) -> KernelChoice:
    """The gamma of best score among those tried, for features (K, D) of which the rows `pulled` were measured."""
    gammas = np.array(list(tried))
    scores = np.array([fitted.score for fitted in tried.values()])
    best = int(np.argmax(scores))
    gamma, fitted = float(gammas[best]), tried[float(gammas[best])]
    unmeasured = fitted.variance * _unmeasured(matrix, pulled, gamma)
    close = gammas[scores > scores[best] - HEURISTIC_CLEAR]
    return KernelChoice(
        gamma=gamma,
        norm_estimate=math.sqrt(fitted.shown + fitted.hidden + unmeasured),
        gammas=gammas,
        scores=scores,
        norms_of_fit=np.sqrt([each.shown for each in tried.values()]),
        plausible=(float(close[0]), float(close[-1])),
        criterion=criterion,
        warnings=_warnings(gammas, scores, fitted, unmeasured),
    )


def _warnings(gammas: FloatArray, scores: FloatArray, fitted: _Fitted, unmeasured: float) -> tuple[str, ...]:
    """What is doubtful about the choice, in sentences."""
    found = []
    best = int(np.argmax(scores))
    if len(scores) > 1 and np.ptp(scores) < HEURISTIC_CLEAR:
        found.append(
            f"The best and the worst of {len(scores)} gammas differ by {np.ptp(scores):.2g} nats only: the choice is "
            "arbitrary. Take a larger pilot, on more candidates, or a policy that ignores the features."
        )
    elif len(scores) > 1 and best == 0:
        found.append(
            f"The best gamma, {gammas[best]:.4g}, is the smallest tried: the rewards seem nearly constant or linear in "
            "the features. Try smaller ones, or a linear embedding."
        )
    elif len(scores) > 1 and best == len(scores) - 1:
        found.append(
            f"The best gamma, {gammas[best]:.4g}, is the largest tried: no candidate seems to tell about another. Try "
            "larger ones, or a policy that ignores the features."
        )
    if fitted.variance == 0.0:
        found.append("No reward differs from 0 by more than noise explains, so there is no estimate of the norm.")
    elif unmeasured + fitted.hidden > HEURISTIC_MOSTLY * fitted.shown:
        share = fitted.shown / (fitted.shown + fitted.hidden + unmeasured)
        found.append(
            f"The fit shows {share:.0%} of the squared norm; the rest is a guess at what noise hides and at candidates "
            "that were not measured, as if the rewards were as rough there as the kernel allows."
        )
    return tuple(found)
