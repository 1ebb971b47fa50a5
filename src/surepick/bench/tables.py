"""The two tidy tables of an experiment: a row per replicate, and a row per round."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, slots=True)
class Replicate:
    """What one replicate spent, and whether its answer was right.

    Args:
        key: unique; the tables are sorted by it.
        experiment, environment, policy: names, as in the tables and figures.
        num_arms, dim: K and the columns of the features.
        seed: of environment and rewards.
        epsilon, delta, max_pulls: settings.
        pulls: until the policy stopped by itself, or its budget or max_pulls did it: what a user pays; None if failed.
        success: it stopped by itself, and the arm is epsilon-best, or no arm is on a wrong list; None if failed.
        best_arm: id of the recommended arm.
        verdict: of the certificate.
        true_gap: how much worse than the best arm the recommended one is. Needs the truth.
        oracle_pulls: until the active set first held only epsilon-best arms. Needs the truth; None if never, and for
            policies that do not eliminate.
        best_eliminated: the best arm, the first of equals, was ruled out; None for policies that do not eliminate.
        all_best_eliminated: all arms that are exactly as good as the best were ruled out.
        num_rounds: rounds opened.
        stops: "own", "never" or "budget": how the policy ends.
        eliminates: whether `oracle_pulls` has a meaning.
        reference_pulls: 2 sigma^2 rho* log(1/(2.4 delta)) of this instance. Needs the truth.
        failure: why there is no result; "" when there is one.
        seconds: wall-clock time of the study.
        ended_by: "policy", by itself; "batches", "pulls" or "seconds", the budget that was exhausted.
        proved: its verdict is "certified", or, if a budget ended it, would have been at its own stop; False: the stop
            is a heuristic.
        listed: arms on the first list, where the question is answered by lists; else None.
        wrong_share: of the list of which more is wrong, the share that is; None likewise. Needs the truth.
    """

    key: str
    experiment: str
    environment: str
    num_arms: int | None
    dim: int | None
    policy: str
    seed: int
    epsilon: float
    delta: float
    max_pulls: int
    pulls: int | None = None
    success: bool | None = None
    best_arm: str | None = None
    verdict: str | None = None
    true_gap: float | None = None
    oracle_pulls: int | None = None
    best_eliminated: bool | None = None
    all_best_eliminated: bool | None = None
    num_rounds: int | None = None
    stops: str | None = None
    eliminates: bool | None = None
    reference_pulls: float | None = None
    failure: str = ""
    seconds: float | None = None
    ended_by: str | None = None
    proved: bool | None = None
    listed: int | None = None
    wrong_share: float | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """One row of the trace of a replicate.

    Args:
        key, experiment, environment, policy, seed: as in `Replicate`.
        round, look, looks, dim, value, lower_bound, misspecification, pulls, total_pulls, certified_gap: as in the
            trace.
        active: arms not ruled out.
        only_good: all of them are epsilon-best. Needs the truth.
        best_active: the best arm, the first of equals, is among them. Needs the truth.
        leader: id of the arm that would be recommended now.
        alarms: what the checks of the embedding found.
    """

    key: str
    experiment: str
    environment: str
    policy: str
    seed: int
    round: int
    look: int
    looks: int
    dim: int
    value: float | None
    lower_bound: float | None
    misspecification: float
    pulls: int
    total_pulls: int
    active: int
    only_good: bool
    best_active: bool
    leader: str
    certified_gap: float | None
    alarms: str


WITHOUT_OWN_STOP = ("budget-exhausted", "not-yet")  # verdicts of runs that something else ended


def ended_by_itself(*, failure: str, stops: str, verdict: str) -> bool:
    """Whether a run has own-stop pulls: no failure, no outer budget, and a policy that ends at all."""
    return failure == "" and stops != "never" and verdict not in WITHOUT_OWN_STOP


def column_kinds(row: type[Any]) -> dict[str, type]:
    """The type of each column of a row type: int, float, bool or str."""
    kinds = {kind.__name__: kind for kind in (int, float, bool, str)}
    return {column.name: kinds[str(column.type).partition(" ")[0]] for column in fields(row)}
