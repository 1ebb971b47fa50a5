"""One replicate: a cell and a seed, played to the end, as rows of the two tables."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from surepick.bench.datasets.registry import make_environment
from surepick.bench.spec import Cell
from surepick.bench.tables import Replicate, Round
from surepick.core.arrays import record
from surepick.core.design import Embedding, IndependentArms
from surepick.core.json import encode
from surepick.embeddings import LinearEmbedding
from surepick.environments import Environment
from surepick.errors import DatasetMissing, InvalidInput
from surepick.linalg.blas_threads import one_thread
from surepick.noise import largest_scale
from surepick.policies.base import Policy, Problem
from surepick.policies.questions.truth import wrongly_listed
from surepick.policies.registry import make_policy
from surepick.policies.verdict import certificate
from surepick.simulation import Run, simulate
from surepick.theory.hardness import hardness, reference_pulls

AS_IN_TRACE = (
    *("round", "look", "looks", "dim", "lower_bound"),
    *("misspecification", "pulls", "total_pulls", "certified_gap"),
)


@record
class Played:
    """A replicate and its rounds, as rows."""

    replicate: dict[str, Any]
    rounds: tuple[dict[str, Any], ...]


def play(cell: Cell, seed: int, data: str | Path = ".") -> Played:
    """Make the environment and the policy, and simulate until the own stop; an error is kept as a failure.

    Args:
        cell: the environment, the policy and their settings.
        seed: of environment and rewards.
        data: the folder of data sets.

    Returns:
        Rows that depend on (cell, seed) only, but for `seconds` and where max_seconds ends them; one thread is used, so
        that they are equal bit for bit whatever the number of workers.

    Raises:
        DatasetMissing: the files of the environment are not there; that is no failure of a policy.
    """
    named = {
        "key": cell.key(seed),
        "experiment": cell.experiment,
        "environment": cell.environment.label,
        "policy": cell.policy.label,
        "seed": seed,
    }
    pulls = cell.max_pulls if cell.policy.max_pulls is None else cell.policy.max_pulls
    settings: dict[str, Any] = {**named, "epsilon": cell.epsilon, "delta": cell.delta, "max_pulls": pulls}
    try:
        with one_thread():
            environment, policy = _instance(cell, seed, data)
            settings["epsilon"] = policy.problem.epsilon
        with one_thread():  # once more, for what the policy has loaded in the meantime
            reference = _reference(cell, environment, policy.problem)
            run = simulate(policy, environment, seed=seed, max_pulls=pulls, max_seconds=cell.max_seconds)
    except DatasetMissing:
        raise
    except Exception as error:  # kept and reported: one failure must not end a night's run
        failed = Replicate(**settings, num_arms=None, dim=None, failure=f"{type(error).__name__}: {error}")
        return Played(_plain(failed), ())
    replicate = _replicate(settings, environment, policy, run, reference)
    return Played(_plain(replicate), tuple(map(_plain, _rounds(named, policy.problem.epsilon, environment, run))))


def _plain(row: Replicate | Round) -> dict[str, Any]:
    """The row as plain data; a number that is not finite is missing."""
    values: dict[str, Any] = encode(row)
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in values.items()
    }


def _instance(cell: Cell, seed: int, data: str | Path) -> tuple[Environment, Policy[Any]]:
    """The environment and the policy of a replicate."""
    environment = make_environment(cell.environment.name, seed=seed, data=data, **cell.environment.options)
    policy = make_policy(
        cell.policy.name,
        environment.arms,
        epsilon=cell.epsilon if cell.gap_share is None else cell.gap_share * smallest_gap(environment),
        delta=cell.delta,
        noise=environment.noise if cell.policy.noise is None else cell.policy.noise,
        **cell.policy.options,
    )
    return environment, policy


def smallest_gap(environment: Environment, *, rounding: float = 1e-12) -> float:
    """How much worse the best of the worse arms is than the best arm, in reward units.

    Args:
        rounding: arms that are at most this times the largest |mean| worse count as equal to the best.

    Raises:
        InvalidInput: all arms are equal, so that epsilon has no unit.
    """
    worse = environment.gaps[~environment.epsilon_best(0.0, rounding=rounding)]
    if worse.size == 0:
        raise InvalidInput("all arms are equally good, so no epsilon is a share of the gap to the next worse arm.")
    return float(worse.min())


def _proved(policy: Policy[Any], run: Run) -> bool:
    """Whether the answer is certified, or would have been if it had ended by ruling the others out."""
    if run.verdict != "budget-exhausted":
        return run.verdict == "certified"
    if policy.traits.certifies == "nothing":
        return False
    replay = run.study.replay
    claim = replace(policy.claim(replay.state_of(replay.settle().decision)), finished="single")
    return certificate(policy.problem, claim).verdict == "certified"


def _reference(cell: Cell, environment: Environment, problem: Problem) -> float | None:
    """2 sigma^2 rho* log(1/(2.4 delta)) with the vectors that the cell names; None where it has no meaning.

    It is a bound for normal noise, means linear in those vectors and one best arm; elsewhere a unit of measurement.
    """
    if not 2.4 * cell.delta < 1.0 or problem.question is not None:
        return None
    vectors: Embedding | IndependentArms = IndependentArms(environment.num_arms)
    if cell.environment.reference == "linear":
        family = LinearEmbedding(environment.arms.features, norm_bound=1.0)
        dim = cell.environment.reference_dim
        vectors = family.at(family.max_dim if dim is None else dim)
    found = hardness(vectors, -environment.means if environment.minimize else environment.means, problem.epsilon)
    return reference_pulls(found.value, sigma=largest_scale(environment.noise), delta=cell.delta)


def _replicate(
    settings: dict[str, Any], environment: Environment, policy: Policy[Any], run: Run, reference: float | None
) -> Replicate:
    last = run.rounds[-1].active if run.rounds else np.arange(environment.num_arms)
    tied = environment.gaps[last] == 0.0
    return Replicate(
        **settings,
        num_arms=environment.num_arms,
        dim=int(environment.arms.features.shape[1]),
        pulls=run.pulls,
        success=run.success,
        best_arm=run.best_arm,
        verdict=run.verdict,
        true_gap=run.true_gap,
        oracle_pulls=run.oracle_pulls,
        best_eliminated=environment.best not in last if policy.traits.narrows else None,
        all_best_eliminated=not bool(tied.any()) if policy.traits.narrows else None,
        num_rounds=run.rounds[-1].round if run.rounds else 0,
        stops=policy.traits.stops,
        eliminates=policy.traits.narrows,
        reference_pulls=reference,
        seconds=run.seconds,
        ended_by=run.ended_by,
        proved=_proved(policy, run),
        **_listed(environment, policy, run),
    )


def _listed(environment: Environment, policy: Policy[Any], run: Run) -> dict[str, Any]:
    """What a replicate says of lists; nothing where the answer is an arm."""
    lists = run.certificate.lists
    if lists is None:
        return {}
    means = -environment.means if environment.minimize else environment.means
    bad = wrongly_listed(policy.problem, lists, environment.arms, means, environment.quantity_means)
    wrong = {environment.arms.ids[arm] for arm in np.flatnonzero(bad)}
    shares = [len(wrong.intersection(ids)) / max(len(ids), 1) for ids in (lists.inside, lists.outside)]
    return {"listed": len(lists.inside), "wrong_share": max(shares)}


def _rounds(named: dict[str, Any], epsilon: float, environment: Environment, run: Run) -> Iterator[Round]:
    good = environment.epsilon_best(epsilon)
    for row in run.rounds:
        yield Round(
            **named,
            **{name: getattr(row, name) for name in AS_IN_TRACE},
            value=row.value,
            active=len(row.active),
            only_good=bool(good[row.active].all()),
            best_active=environment.best in row.active,
            leader=environment.arms.ids[row.leader],
            alarms="; ".join(row.alarms),
        )
