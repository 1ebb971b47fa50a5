"""Synthetic instances: the paper's two clusters and its high-dimensional example, and classics of the field."""

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from surepick.core.arms import Arms
from surepick.core.random_streams import stream
from surepick.core.records import FloatArray, IntArray
from surepick.core.values import check_choice, positive_number, whole_number
from surepick.environments.environment import Environment
from surepick.errors import InvalidInput
from surepick.noise import Bernoulli, Noise, SubGaussian

LINEAR_CENTRES = (0.8, 0.5)  # squared norms of x1 and x2
LINEAR_PRODUCT = (0.395, 0.405)  # the product of x1 and x2 lies strictly between
NORM_CENTRES = (0.8, 0.4)  # norms of x1 and x2


def two_clusters(
    *,
    num_arms: int = 250,
    dim: int = 20,
    reward: Literal["linear", "norm"] = "linear",
    perturbation: float = 1e-5,
    seed: int = 0,
) -> Environment:
    """Two tight clusters of arms that span all of R^D, with Bernoulli rewards.

        linear: <x, x1>, |x1|^2 = .8, |x2|^2 = .5, .395 < <x1, x2> < .405        norm: |x|, |x1| = .8, |x2| = .4

    The arms are x1, x2, then (K - 2)/2 copies of each, every copy moved along one random axis by N(0, perturbation^2).
    The centres are uniform directions of the positive orthant; x2 is redrawn until the product fits.

    Args:
        num_arms: K, even, at least D and at least 4.
        dim: D, at least 2.
        reward: the mean reward, "linear" or "norm".
        perturbation: standard deviation of the step, positive; so large a step that a mean leaves [0, 1] is refused.
        seed: decides everything that is random.

    Returns:
        An environment whose K x D features have rank D.

    Raises:
        InvalidInput: an argument is out of range, or no choice of axes could give rank D.

    Source: "Detailed descriptions of datasets", with the steps' axes redrawn until the columns have full rank.
        Differs from the paper: it does not say how; after 100 redraws, repeated axes are replaced by missing ones.
    """
    check_choice("reward", reward, ("linear", "norm"))
    whole_number("dim", dim, least=2, meaning="two directions of the positive orthant differ.")
    positive_number("perturbation", perturbation, "else the arms would be two points.")
    if num_arms < max(4, dim) or num_arms % 2:
        raise InvalidInput(
            f"num_arms is {num_arms}; two clusters of equal size that span {dim} dimensions need an even number, at "
            f"least {max(4, dim + dim % 2)}."
        )
    rng = stream(seed, "two_clusters", reward, num_arms, dim)
    if reward == "linear":
        first, second = _linear_centres(dim, rng)
    else:
        first, second = (norm * _positive_direction(1, dim, rng)[0] for norm in NORM_CENTRES)
    copies = num_arms // 2 - 1
    centres = np.vstack([first, second, np.repeat([first, second], copies, axis=0)])
    features = centres.copy()
    steps = perturbation * rng.standard_normal(num_arms - 2)
    features[np.arange(2, num_arms), _spanning_axes(first, second, num_arms - 2, rng)] += steps
    if np.any(np.all(features[2:] == centres[2:], axis=1)):
        raise InvalidInput(
            f"perturbation {perturbation:g} is lost in the rounding of the coordinates, so the arms would not span "
            f"R^{dim}. Use at least 1e-14."
        )
    means = features @ first if reward == "linear" else np.sqrt(np.sum(features**2, axis=1))
    return Environment(arms=Arms(features), means=means, noise=Bernoulli())


def _unit(points: FloatArray) -> FloatArray:
    """The points scaled to length 1, shape (count, dim)."""
    return np.asarray(points / np.sqrt(np.sum(points**2, axis=1, keepdims=True)))


def _positive_direction(count: int, dim: int, rng: np.random.Generator) -> FloatArray:
    """Uniform directions of the positive orthant, shape (count, dim)."""
    return _unit(np.abs(rng.standard_normal((count, dim))))


def _linear_centres(dim: int, rng: np.random.Generator, *, draws: int = 256, batches: int = 40) -> list[FloatArray]:
    """x1 and x2 by rejection, x1 redrawn too when no x2 is found (in the plane some x1 have none); quick, as the cosine
    needed is .632, and that of two random directions tends to 2/pi = .637 as D grows."""
    low, high = LINEAR_PRODUCT
    while True:
        first = math.sqrt(LINEAR_CENTRES[0]) * _positive_direction(1, dim, rng)[0]
        for _ in range(batches):
            seconds = math.sqrt(LINEAR_CENTRES[1]) * _positive_direction(draws, dim, rng)
            products = seconds @ first
            fits = np.flatnonzero((low < products) & (products < high))
            if fits.size:
                return [first, seconds[fits[0]]]


def _spanning_axes(
    first: FloatArray, second: FloatArray, count: int, rng: np.random.Generator, *, redraws: int = 100
) -> IntArray:
    """An axis for each step such that x1, x2 and the axes together span R^D, decided exactly: x1 and x2 can stand for
    at most two missing axes, and do so when their coordinates there are independent."""
    dim = len(first)

    def spans(axes: IntArray) -> bool:
        missing = np.setdiff1d(np.arange(dim), axes)
        if len(missing) < 2:
            return len(missing) == 0 or bool(first[missing[0]] != 0.0)
        a, b = missing[:2]
        return len(missing) == 2 and abs(first[a] * second[b] - first[b] * second[a]) > 1e-3 / dim

    axes, tries = rng.integers(dim, size=count), 0
    while not spans(axes):
        axes, tries = rng.integers(dim, size=count), tries + 1
        if tries <= redraws:
            continue
        _, kept = np.unique(axes, return_index=True)
        spare = rng.permutation(np.setdiff1d(np.arange(count), kept))
        missing = rng.permutation(np.setdiff1d(np.arange(dim), axes))[: len(spare)]
        axes[spare[: len(missing)]] = missing
    return axes


def high_dimensional(dim: int, epsilon: float, seed: int = 0) -> Environment:
    """The paper's example on which its method does not feel the dimension and RAGE does; normal rewards, sigma 1.

        x1 = -1/sqrt(D) (1, ..., 1) = theta,    x2 = (1 - 2 epsilon) x1,    arms x1, x1 + eta e_i, x2 + eta e_i
        eta = epsilon / (8 sqrt(2) (2 + sqrt(5 D)) D)

    so x1 is best, the x1 + eta e_i are epsilon-best, and the x2 + eta e_i lie between epsilon and 3 epsilon below it.

    Args:
        dim: D, at least 1.
        epsilon: in (0, 1/4).
        seed: decides the order of the arms, so that no policy gains by their numbering; their ids tell them apart.

    Raises:
        InvalidInput: an argument is out of range.

    Source: appendix, "Example for high-dimensional linear bandits", condition (4) with equality.
    """
    if dim < 1 or not 0 < epsilon < 0.25:
        raise InvalidInput(
            f"dim is {dim} and epsilon {epsilon!r}; the example needs dim >= 1 and 0 < epsilon < 1/4, "
            "else its sub-optimal arms are not."
        )
    first = np.full(dim, -1.0 / math.sqrt(dim))
    eta = epsilon / (8.0 * math.sqrt(2.0) * (2.0 + math.sqrt(5.0 * dim)) * dim)
    steps = eta * np.eye(dim)
    features = np.vstack([first, first + steps, (1.0 - 2.0 * epsilon) * first + steps])
    ids = ["x1", *(f"{centre}+e{axis + 1}" for centre in ("x1", "x2") for axis in range(dim))]
    return _shuffled(features, first, ids, stream(seed, "high_dimensional", dim))


def sphere(num_arms: int, dim: int, seed: int = 0, *, sigma: float = 1.0) -> Environment:
    """Arms and theta uniform on the unit sphere, reward <x, theta>; normal rewards.

    Args:
        num_arms: K, at least 1.
        dim: D, at least 1.
        seed: decides everything that is random.
        sigma: standard deviation of a reward, positive.

    Raises:
        InvalidInput: an argument is out of range.

    Source: a standard instance of linear best-arm identification (Tao et al. 2018).
    """
    whole_number("num_arms", num_arms, least=1, meaning="something must be chosen among.")
    whole_number("dim", dim, least=1, meaning="a sphere has directions.")
    normals = stream(seed, "sphere", num_arms, dim).standard_normal((num_arms + 1, dim))
    points = _unit(normals)
    return _linear(points[1:], points[0], None, sigma=sigma)


def soare(dim: int, angle: float, seed: int = 0, *, sigma: float = 1.0) -> Environment:
    """D unit vectors and one arm close to the best of them, theta = e1; normal rewards.

        arms e1, ..., eD, cos(angle) e1 + sin(angle) e2

    The second-best arm is told from e1 mostly by pulling e2, which looks bad: the standard test of adaptive designs.

    Args:
        dim: D, at least 2.
        angle: in radians, in (0, pi/2).
        seed: decides the order of the arms; their ids ("e1", ..., "near-e1") tell them apart.
        sigma: standard deviation of a reward, positive; .5 is the instance of Xu et al. (2018), whose theta is 2 e1
            with sigma 1, in units half as large.

    Raises:
        InvalidInput: an argument is out of range.

    Source: Soare, Lazaric and Munos 2014, with theta = e1.
    """
    if dim < 2 or not 0 < angle < math.pi / 2:
        raise InvalidInput(f"dim is {dim} and angle {angle!r}; dim must be at least 2, the angle in (0, pi/2).")
    axes = np.eye(dim)
    features = np.vstack([axes, math.cos(angle) * axes[0] + math.sin(angle) * axes[1]])
    ids = [*(f"e{axis + 1}" for axis in range(dim)), "near-e1"]
    return _shuffled(features, axes[0], ids, stream(seed, "soare", dim), sigma=sigma)


def one_better(num_arms: int = 100, gap: float = 0.15, seed: int = 0, *, sigma: float = 1.0) -> Environment:
    """Arms that share nothing, one of them better than all others by `gap`; normal rewards.

        features e1, ..., eK,   means .5 + gap for one arm, .5 for the others

    With a gap just above epsilon every other arm is a wrong answer, so a rule that spares pulls by luck is found out.
    With a gap of exactly epsilon it is the slippage configuration of ranking and selection, for which its procedures
    promise the best arm; here every answer is epsilon-best then.

    Args:
        num_arms: K, at least 1.
        gap: in reward units, positive.
        seed: decides which arm is better.
        sigma: standard deviation of a reward, positive.

    Raises:
        InvalidInput: an argument is out of range.

    Source: the slippage configuration of Bechhofer (1954).
    """
    whole_number("num_arms", num_arms, least=1, meaning="something must be chosen among.")
    positive_number("gap", gap, "how much better the best arm is.")
    means = np.full(num_arms, 0.5)
    means[stream(seed, "one_better", num_arms).integers(num_arms)] += gap
    return Environment(arms=Arms(np.eye(num_arms)), means=means, noise=_normal(sigma))


def falling_means(
    num_arms: int = 100, *, best: float = 0.5, spread: float = 0.5, power: float = 0.6, seed: int = 0
) -> Environment:
    """Arms without features whose means fall from `best` by a power law; Bernoulli rewards.

        mean of the arm of rank i = best - spread ((i - 1) / (K - 1))^power,   i = 1, ..., K

    The smaller the power, the fewer arms are close to the best one.

    Args:
        num_arms: K, at least 2.
        best: the largest mean, at most 1.
        spread: the largest mean minus the smallest, positive, at most `best`.
        power: positive; 1 for means that are equally far apart.
        seed: decides the order of the arms; their ids ("1", ..., "K") are their ranks.

    Raises:
        InvalidInput: an argument is out of range, or a mean is outside [0, 1].

    Source: the alpha-model of Jamieson and Nowak (2014), with best = spread = 1 and power .3 or .6.
    """
    whole_number("num_arms", num_arms, least=2, meaning="one arm is no choice.")
    positive_number("spread", spread, "the largest mean minus the smallest.")
    positive_number("power", power, "how fast the means fall.")
    means = best - spread * (np.arange(num_arms) / (num_arms - 1)) ** power
    order = stream(seed, "falling_means", num_arms).permutation(num_arms)
    return Environment(arms=Arms(None, [str(rank + 1) for rank in order]), means=means[order], noise=Bernoulli())


def some_better(
    num_arms: int = 100,
    better: int = 5,
    shift: float = 0.4,
    *,
    control: bool = False,
    rest: float = 0.0,
    sigma: float = 1.0,
    seed: int = 0,
) -> Environment:
    """Arms that share nothing, some of them better than the others by a shift; normal rewards.

        mean = shift for `better` of the arms, `rest` for the others, 0 for the control

    Args:
        num_arms: K, at least 2, without the control.
        better: how many are better, 1 to K - 1.
        shift: in reward units, more than `rest`.
        control: there is one more arm, with id "control".
        rest: the mean of the others.
        sigma: standard deviation of a reward, positive.
        seed: decides which arms are better.

    Raises:
        InvalidInput: an argument is out of range.

    Source: the usual simulation of multiple testing, as in Jamieson and Jain (2018).
    """
    whole_number("num_arms", num_arms, least=2, meaning="some are better than others.")
    whole_number("better", better, least=1, meaning="some are better.")
    if better >= num_arms or not shift > rest:
        raise InvalidInput(
            f"better is {better} of {num_arms} arms and shift {shift:g}, beside {rest:g} for the others; fewer than "
            "all are better, by a positive shift."
        )
    means = np.full(num_arms + control, rest)
    means[stream(seed, "some_better", num_arms, better).permutation(num_arms)[:better]] = shift
    means[num_arms:] = 0.0
    ids = [str(arm) for arm in range(num_arms)] + ["control"] * control
    return Environment(arms=Arms(None, ids), means=means, noise=_normal(sigma))


def given_means(means: Sequence[float], *, sigma: float | None = None, seed: int = 0) -> Environment:
    """Arms without features that have these means.

    Args:
        means: in reward units.
        sigma: standard deviation of normal rewards; None: rewards are 0 or 1.
        seed: decides the order of the arms; their ids ("1", ..., "K") are their places in `means`.

    Raises:
        InvalidInput: there is none, one is not finite, or, without sigma, one is outside [0, 1].
    """
    truth = np.array(means, dtype=np.float64)
    whole_number("the number of means", truth.size, least=1, meaning="something must be chosen among.")
    order = stream(seed, "given_means", truth.size).permutation(truth.size)
    noise: Noise = Bernoulli() if sigma is None else _normal(sigma)
    return Environment(arms=Arms(None, [str(place + 1) for place in order]), means=truth[order], noise=noise)


def _normal(sigma: float) -> SubGaussian:
    return SubGaussian(positive_number("sigma", sigma, "the standard deviation of a reward."))


def _shuffled(
    features: FloatArray, theta: FloatArray, ids: list[str], rng: np.random.Generator, *, sigma: float = 1.0
) -> Environment:
    order = rng.permutation(len(ids))
    return _linear(features[order], theta, [ids[arm] for arm in order], sigma=sigma)


def _linear(features: FloatArray, theta: FloatArray, ids: list[str] | None, *, sigma: float) -> Environment:
    return Environment(arms=Arms(features, ids), means=features @ theta, noise=_normal(sigma))
