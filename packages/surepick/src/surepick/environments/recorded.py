"""Recorded measurements as an environment: simulate a policy on what was really measured."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from surepick.core.arms import Arms
from surepick.core.random_streams import stream
from surepick.core.records import FloatArray, IntArray
from surepick.core.values import LARGEST_REWARD, positive_number
from surepick.environments.environment import Environment, RecordedAnswers
from surepick.environments.rewards import RecordedRewards, RewardLaw, TwoPointRewards
from surepick.errors import InvalidInput
from surepick.linalg.factorisations import thin_svd
from surepick.noise import Bounded, Noise, SubGaussian, unrounded
from surepick.tables import Grouped, Names, ReadOptions, Table, column_names, grouped_arms, read_table
from surepick.tables.selection import Unnamed, Unused, side_by_side
from surepick.tables.table import warn

MOST_PULLS = 2**53


def table(
    path: str | Path,
    id: Names | None = None,  # noqa: A002 (the public name)
    reward: Names | None = None,
    features: Names | Unnamed | Unused | None = None,
    *,
    pulls: str | None = None,
    sum: str | None = None,  # noqa: A002 (the public name)
    cost: str | None = None,
    segments: str | None = None,
    noise: Noise,
    minimize: bool | None = None,
    standardize: bool = False,
    intercept: bool = False,
    drop_candidates: bool = False,
    beside: Sequence[str] = (),
    **reading: Unpack[ReadOptions],
) -> Environment:
    """Recorded measurements: rows with the same id are repeats of one arm, and a pull draws one of them.

    An arm's mean is the average of its recorded rewards; with one row an arm a pull has no noise.

    Args:
        path: as in `read_table`.
        id, features, cost, segments, standardize, intercept, drop_candidates: as in `read_arms`; None for the id of an
            Olympus folder: all its parameters, so that repeats are found.
        reward: the column of the measurements, or several ("a,b" or a sequence) where repeats stand side by side, an
            empty cell being no measurement; None: the single measurement of an Olympus folder. It is no feature unless
            it is named as one.
        pulls, sum: in place of the reward: the columns of totals, how many measurements a row stands for and their sum,
            e.g. impressions and clicks. Only of Bernoulli rewards do totals say how single ones vary.
        noise: what is assumed of a reward, e.g. SubGaussian of at least the largest half-range of an arm's repeats.
        minimize: small rewards are good; None: as an Olympus folder says, else False.
        beside: columns of what else was measured in each row, for constraints; an empty cell was not measured. No
            features unless they are named as some.
        reading: how to read the file, as in `read_table`: sheet, header, decimal and others.

    Returns:
        An environment whose arms stand in the order in which their ids first appear.

    Raises:
        InvalidInput: the table cannot be read, a column is unknown, rows miss a cell, a reward is not a finite
            number or lies outside the noise's declared range, totals are no totals of 0 and 1, a cost is not a positive
            number, or rows of one id differ in a feature, in their cost or in their segment.
    """
    if drop_candidates:
        reading["drop_missing"] = True
    recorded = read_table(path, **reading)
    if id is not None:
        column_names(recorded, id)  # what is missing first is said first
    prepared: dict[str, Any] = {"segments": segments, "standardize": standardize, "intercept": intercept}
    prepared["drop_candidates"] = drop_candidates
    if pulls is not None or sum is not None:
        if pulls is None or sum is None or reward is not None or beside:
            raise InvalidInput(
                "totals are two columns, pulls and sum, in place of a reward and of what constraints are on."
            )
        used = (*column_names(recorded, [pulls]), *column_names(recorded, [sum]))
        grouped = grouped_arms(recorded, id, features, cost=cost, exclude=used, needed=used, **prepared)
        law: RewardLaw = TwoPointRewards(_shares(grouped, used[0], used[1], noise), 0.0, 1.0)
        return Environment(arms=grouped.arms, means=law.means, noise=noise, minimize=bool(minimize), law=law)
    recorded, reward = measured_column(recorded, reward)
    used = (reward, *beside)
    grouped = grouped_arms(recorded, id, features, cost=cost, exclude=used, needed=(reward,), **prepared)
    rewards = checked_rewards(grouped.table, reward, noise)
    others = [grouped.table.numbers_or_missing(name) for name in beside]
    for name, values in zip(beside, others, strict=True):
        _check_sizes(grouped.table, name, values)
    law = RecordedRewards(rewards, grouped.arm_of_row, np.stack(others, axis=1) if others else None)
    direction = bool(recorded.minimize) if minimize is None else minimize
    return Environment(arms=grouped.arms, means=law.means, noise=noise, minimize=direction, law=law)


def table_with_added_noise(
    path: str | Path,
    id: Names | None = None,  # noqa: A002 (the public name)
    reward: str | None = None,
    features: Names | None = None,
    *,
    sigma: float,
    minimize: bool | None = None,
    standardize: bool = False,
    intercept: bool = False,
) -> Environment:
    """A recorded table whose measurements were not repeated, made noisy: means scaled to [0, 1], noise N(0, sigma^2).

        mean = (value - worst)/(best - worst)

    Only the truth is recorded; the noise is invented, and says nothing about the instrument. Use `table` where
    measurements were repeated.

    Args:
        path, id, reward, features, standardize, intercept: as in `table`; several rows of an arm are averaged first.
        sigma: standard deviation of the added noise, in units of the distance from the worst arm to the best.
        minimize: small values are good; None: as an Olympus folder says, else False.

    Returns:
        An environment in which large rewards are good whatever the direction was: the best arm has mean 1, the worst 0.

    Raises:
        InvalidInput: as `table` does, sigma is not positive, or all arms have the same value.
    """
    noise = SubGaussian(positive_number("sigma", sigma, "the noise that is added."))
    recorded = table(
        path, id, reward, features, noise=noise, minimize=minimize, standardize=standardize, intercept=intercept
    )
    distance = float(np.ptp(recorded.means))
    if distance == 0.0:
        raise InvalidInput(
            f"all {recorded.num_arms} arms of {path} have the value {recorded.means[0]:g}; nothing could be chosen."
        )
    return Environment(arms=recorded.arms, means=np.clip(1.0 - recorded.gaps / distance, 0.0, 1.0), noise=noise)


def recorded_answers(scores: ArrayLike, ids: Sequence[object] | None = None) -> Environment:
    """What every arm scored on every one of a set of test items: for `certified-items`, and for any other policy.

    Args:
        scores: in [0, 1], shape (K, N), a row an arm, a column an item.
        ids: of the arms; None: "0" .. "K-1".

    Returns:
        An environment whose means are those over the N items; a pull that is a draw takes a random item.

    Raises:
        InvalidInput: the scores are no table of such numbers, or the ids are not K.
    """
    try:
        law = RecordedAnswers(np.array(scores, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise error if isinstance(error, InvalidInput) else InvalidInput(f"scores are no numbers: {error}.") from error
    arms = Arms(np.empty((len(law.scores), 0)), ids)
    return Environment(arms=arms, means=law.means, noise=Bounded(0.0, 1.0), law=law)


def _shares(grouped: Grouped, pulls: str, sums: str, noise: Noise) -> FloatArray:
    """The share of ones of each arm, shape (K,)."""
    number, ones = totals_of_ones(grouped, pulls, sums, noise)
    return ones / number


def totals_of_ones(grouped: Grouped, pulls: str, sums: str, noise: Noise) -> tuple[FloatArray, FloatArray]:
    """(how many measurements each arm has, and how many of them are 1), from totals in rows, each (K,)."""
    if noise.spec != "bernoulli":
        raise InvalidInput(
            f"totals do not say how single measurements vary, which a rehearsal with {noise.spec!r} would need: give "
            "--noise bernoulli if each measurement is 0 or 1, else a table with a row for each."
        )
    table = grouped.table
    counts, totals = table.numbers(pulls), table.numbers(sums)
    whole = (counts == np.floor(counts)) & (totals == np.floor(totals)) & (counts < MOST_PULLS)
    bad = np.flatnonzero(~(whole & (totals >= 0) & (totals <= counts)))
    if bad.size:
        row = bad[0]
        raise InvalidInput(
            f"{table.source}, row {table.line_of(row)}: {sums!r} is {totals[row]:g} of {counts[row]:g} {pulls!r}. Of "
            "measurements that are 0 or 1 the sum is a whole number from 0 to how many there are."
        )
    number, ones = (np.asarray(np.bincount(grouped.arm_of_row, one), np.float64) for one in (counts, totals))
    without = np.flatnonzero(number == 0)
    if without.size:
        name = grouped.arms.ids[without[0]]
        raise InvalidInput(f"{table.source}: candidate {name!r} has no measurement ({pulls!r} is 0). Leave it out.")
    return number, ones


def _check_sizes(recorded: Table, column: str, values: FloatArray) -> None:
    """Refuse values that a study could not add up."""
    huge = np.flatnonzero(np.abs(values) > LARGEST_REWARD)
    if huge.size:
        raise InvalidInput(
            f"{recorded.source}, row {recorded.line_of(huge[0])}: {values[huge[0]]:g} in column {column!r} is beyond "
            f"{LARGEST_REWARD:g}, and could not be added up. Write the column in a larger unit."
        )


def measured_column(recorded: Table, reward: Names | None) -> tuple[Table, str]:
    """(the table with one measurement a row, the column of the measurements)."""
    if reward is None:
        if len(recorded.measurements) != 1:
            known = ", ".join(repr(name) for name in recorded.measurements or recorded.columns)
            raise InvalidInput(
                f"which column of {recorded.source} holds the rewards, that is what was measured? Name one with "
                f"--reward (in Python reward=) of {known}."
            )
        reward = recorded.measurements[0]
    return side_by_side(recorded, reward)


def checked_rewards(recorded: Table, reward: str, noise: Noise) -> FloatArray:
    """The rewards, shape (rows,), as the noise declares them."""
    written = recorded.numbers(reward)
    rewards = unrounded(written, noise)
    if (moved := np.flatnonzero((rewards != written) & ~np.isnan(written))).size:
        warn(
            f"{recorded.source}: rewards that pass a bound by rounding alone are that bound, e.g. "
            f"{float(written[moved[0]])!r} in row {recorded.line_of(moved[0])}."
        )
    bad = np.flatnonzero(~np.isfinite(rewards))
    if bad.size:
        rows = ", ".join(str(recorded.line_of(row)) for row in bad[:3])
        raise InvalidInput(
            f"{recorded.source}: {bad.size} rewards in column {reward!r} are not finite (rows {rows}). "
            "Drop these rows: a lost measurement is not a reward."
        )
    _check_sizes(recorded, reward, rewards)
    low, high = noise.support or (-np.inf, np.inf)
    outside = np.flatnonzero((rewards < low) | (rewards > high))
    if outside.size:
        cure = "Declare bounds that hold, or subgaussian:SIGMA."
        if noise.spec == "bernoulli":
            cure = "Declare bounds that hold; of totals (impressions and clicks) give --pulls COLUMN --sum COLUMN."
        raise InvalidInput(
            f"{recorded.source}, row {recorded.line_of(outside[0])}: the reward {rewards[outside[0]]:g} lies "
            f"outside [{low:g}, {high:g}], as do {outside.size} of {len(rewards)}; every width of a certificate "
            f"rests on the declared noise {noise.spec!r}. {cure}"
        )
    between = np.flatnonzero((rewards != 0.0) & (rewards != 1.0)) if noise.spec == "bernoulli" else outside
    if between.size:
        raise InvalidInput(
            f"{recorded.source}, row {recorded.line_of(between[0])}: the reward {rewards[between[0]]:g} is neither 0 "
            "nor 1, so it is not Bernoulli. Declare bounded:0:1."
        )
    return rewards


# --- Handwritten digits as arms: "find a seven". The 8 x 8 images that come with scikit-learn.

NUM_CLASSES = 10
REWARDS = np.array([0.5, 0.8, 0.8, 0.5, 0.5, 0.5, 0.5, 1.0, 0.5, 0.8])  # 7 is best; 1, 2 and 9 resemble it


def digits(seed: int = 0, per_digit: int = 6) -> Environment:
    """Real handwritten digits (8 x 8): an image of a 7 is worth 1, of a 1, 2 or 9 .8, any other .5; noise N(0, 1).

    The features are the 64 grey levels in [0, 1] and the 112 products of neighbouring ones, horizontal and vertical
    ("is there a stroke?"). Grey levels alone would not do: few images use the outer pixels, so 60 of them have rank
    about 53, and no linear function of them takes these values. With the products 60 images have rank 60.

    Args:
        seed: decides which images are drawn.
        per_digit: images of each digit, drawn without replacement, 1 to 174 (there are 174 images of an 8).

    Returns:
        10 * per_digit arms with ids like "7-#123" (digit, number of the image). Images are redrawn, up to 100 times,
        until the features have full row rank, so that the rewards are exactly linear in them. That succeeds up to
        per_digit = 14, for some seeds at 15, and hardly ever beyond (all images together have rank 162): the images
        then stand as drawn, and the rewards are not linear in the features.

    Raises:
        InvalidInput: per_digit is out of range, or scikit-learn is absent.

    Source: the paper's MNIST experiment, on smaller images. Differs from the paper: the products.
    """
    try:
        from sklearn.datasets import load_digits  # noqa: PLC0415 (heavy, and an extra)
    except ImportError as error:
        raise InvalidInput('the digits need scikit-learn, which is absent: pip install "surepick[demo]".') from error
    images, labels = load_digits(return_X_y=True)
    pixels = (images / 16.0).reshape(-1, 8, 8)
    across, down = pixels[:, :, 1:] * pixels[:, :, :-1], pixels[:, 1:, :] * pixels[:, :-1, :]
    features = np.concatenate([part.reshape(len(pixels), -1) for part in (pixels, across, down)], axis=1)
    rng = stream(seed, "digits", per_digit)
    chosen = draw_images(labels, per_digit, rng)
    for _ in range(100 if len(chosen) <= features.shape[1] else 0):
        if row_rank(features[chosen]) == len(chosen):
            break
        chosen = draw_images(labels, per_digit, rng)
    return digit_environment(features[chosen], labels, chosen)


def draw_images(labels: IntArray, per_digit: int, rng: np.random.Generator) -> IntArray:
    """Numbers of `per_digit` images of each digit, drawn without replacement, shape (10 * per_digit,)."""
    most = int(np.bincount(labels, minlength=NUM_CLASSES).min())
    if not 1 <= per_digit <= most:
        raise InvalidInput(f"per_digit is {per_digit}; it must be 1 to {most}, the images of the rarest digit.")
    of_each = [rng.choice(np.flatnonzero(labels == digit), per_digit, replace=False) for digit in range(NUM_CLASSES)]
    return np.concatenate(of_each)


def row_rank(features: FloatArray, *, tolerance: float = 1e-9) -> int:
    """Singular values above `tolerance` times the largest."""
    _, singular, _ = thin_svd(features)
    return int(np.sum(singular > tolerance * singular[0]))


def digit_environment(features: FloatArray, labels: IntArray, chosen: IntArray) -> Environment:
    """The chosen images as arms, with the paper's rewards and unit normal noise."""
    ids = [f"{labels[image]}-#{image}" for image in chosen]
    return Environment(arms=Arms(features, ids), means=REWARDS[labels[chosen]], noise=SubGaussian(1.0))
