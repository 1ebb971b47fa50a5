"""Recorded measurements as an environment: rehearse a policy on what was really measured."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import numpy as np

from surepick.core.arrays import FloatArray
from surepick.environments.environment import Environment
from surepick.environments.rewards import RecordedRewards
from surepick.errors import InvalidInput
from surepick.noise import Noise
from surepick.tables import Names, ReadOptions, Table, grouped_arms, read_table


def table(
    path: str | Path,
    id: Names | None = None,  # noqa: A002 (the public name)
    reward: str | None = None,
    features: Names | None = None,
    *,
    noise: Noise,
    minimize: bool | None = None,
    standardize: bool = False,
    intercept: bool = False,
    **reading: Unpack[ReadOptions],
) -> Environment:
    """Recorded measurements: rows with the same id are repeats of one arm, and a pull draws one of them.

    An arm's mean is the average of its recorded rewards; with one row an arm a pull has no noise.

    Args:
        path: as in `read_table`.
        id, features, standardize, intercept: as in `read_arms`; None for the id of an Olympus folder: all its
            parameters, so that repeats are found.
        reward: the column of the measurements; None: the single measurement of an Olympus folder. It is no feature
            unless it is named as one.
        noise: what is assumed of a reward, e.g. SubGaussian of at least the largest half-range of an arm's repeats.
        minimize: small rewards are good; None: as an Olympus folder says, else False.
        reading: sheet, percent and drop_missing, as in `read_table`.

    Returns:
        An environment whose arms stand in the order in which their ids first appear.

    Raises:
        InvalidInput: the table cannot be read, a column is unknown, rows miss a cell, a reward is not a finite
            number or lies outside the noise's declared range, or rows of one id differ in a feature.
    """
    recorded = read_table(path, **reading)
    if reward is None:
        if len(recorded.measurements) != 1:
            known = ", ".join(repr(name) for name in recorded.measurements or recorded.columns)
            raise InvalidInput(f"which column of {recorded.source} holds the rewards? Name one of {known}.")
        reward = recorded.measurements[0]
    grouped = grouped_arms(
        recorded,
        id,
        features,
        exclude=(reward,),
        needed=(reward,),
        standardize=standardize,
        intercept=intercept,
    )
    rewards = _checked_rewards(grouped.table, reward, noise)
    law = RecordedRewards(rewards, grouped.arm_of_row)
    direction = bool(recorded.minimize) if minimize is None else minimize
    return Environment(arms=grouped.arms, means=law.means, noise=noise, minimize=direction, law=law)


def _checked_rewards(recorded: Table, reward: str, noise: Noise) -> FloatArray:
    rewards = recorded.numbers(reward)
    bad = np.flatnonzero(~np.isfinite(rewards))
    if bad.size:
        rows = ", ".join(str(recorded.line_of(row)) for row in bad[:3])
        raise InvalidInput(
            f"{recorded.source}: {bad.size} rewards in column {reward!r} are not finite (rows {rows}). "
            "Drop these rows: a lost measurement is not a reward."
        )
    if noise.support is not None:
        low, high = noise.support
        outside = np.flatnonzero((rewards < low) | (rewards > high))
        if outside.size:
            raise InvalidInput(
                f"{recorded.source}, row {recorded.line_of(outside[0])}: the reward {rewards[outside[0]]:g} lies "
                f"outside [{low:g}, {high:g}], as do {outside.size} of {len(rewards)}; every width of a certificate "
                f"rests on the declared noise {noise.spec!r}. Declare bounds that hold, or subgaussian:SIGMA."
            )
    if noise.spec == "bernoulli" and np.any((rewards != 0.0) & (rewards != 1.0)):
        row = np.flatnonzero((rewards != 0.0) & (rewards != 1.0))[0]
        raise InvalidInput(
            f"{recorded.source}, row {recorded.line_of(row)}: the reward {rewards[row]:g} is neither 0 nor 1, so "
            "it is not Bernoulli. Declare bounded:0:1."
        )
    return rewards
