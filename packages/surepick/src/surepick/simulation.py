"""One policy against one environment, from the first ask to its own stop."""

import time
from collections.abc import Callable
from dataclasses import field
from typing import Any, cast

import numpy as np

from surepick.core.certificate import Certificate
from surepick.core.plans import RoundRecord
from surepick.core.random_streams import stream
from surepick.core.records import record
from surepick.core.values import not_negative
from surepick.environments import Environment
from surepick.environments.environment import RecordedAnswers
from surepick.environments.rewards import RecordedRewards, StreamedRewards
from surepick.errors import InvalidInput
from surepick.policies.base import Policy
from surepick.questions import constraints_of, wrongly_listed
from surepick.studies import Study
from surepick.studies.closed_loop import Askable, EndedBy, until_stopped
from surepick.studies.ledger import Batch
from surepick.studies.registration import REHEARSAL
from surepick.studies.rehearsal import Rehearsal


@record
class Run:
    """What one simulated study spent, and whether its answer was right.

    Args:
        best_arm: id of the arm returned at the policy's own stop.
        arm: its index.
        pulls: measurements until the policy stopped by itself: the number that a user pays.
        success: the arm is epsilon-best, or no arm is on a wrong list, and the policy stopped by itself.
        oracle_pulls: pulls when the active set first held only epsilon-best arms. Needs the truth: computed after the
            fact from the trace, never available to a user. None if never, and for policies that do not eliminate.
        verdict: of the certificate; "budget-exhausted" when the next plan would have passed max_pulls, max_cost,
            max_seconds or the batches that the policy allows.
        true_gap: how much worse than the best arm the returned one is, in reward units.
        rounds: the trace, one record a round.
        certificate: the answer as the user would see it.
        seconds: wall-clock time.
        played: the simulated study.
        ended_by: "policy", by itself; "batches", "pulls", "cost" or "seconds", the budget that was exhausted.
        cost: money spent on the pulls, in the currency of the costs; None where nothing has a cost.
        right: the same as success, for a study that was ended before.
    """

    best_arm: str
    arm: int
    pulls: int
    success: bool
    oracle_pulls: int | None
    verdict: str
    true_gap: float
    rounds: tuple[RoundRecord, ...]
    certificate: Certificate
    seconds: float
    played: Study | Rehearsal = field(compare=False, repr=False)
    ended_by: EndedBy = "policy"
    cost: float | None = None
    right: bool = True

    @property
    def study(self) -> Study:
        """The simulated study with its log, for its report and its certificate's file; where none was kept, it is
        played again with what was drawn."""
        return self.played if isinstance(self.played, Study) else self.played.study()


def simulate(
    policy: Policy[Any],
    environment: Environment,
    *,
    seed: int = 0,
    max_pulls: int = 10_000_000,
    max_cost: float | None = None,
    max_seconds: float | None = None,
    on_plan: Callable[[Batch, Askable], None] | None = None,
) -> Run:
    """Run a study on simulated rewards until the policy stops by itself or the budget ends.

    Args:
        policy: the algorithm, for the arms of the environment.
        environment: the hidden truth, of which the policy sees only the rewards that it asks for.
        seed: rewards are a function of it and of the number of the plan; the order of test items is the policy's.
        max_pulls: a plan that would pass it is not pulled.
        max_cost: the same in money, for arms that have costs, batches included; None: no limit.
        max_seconds: a plan that is made later than that is not pulled; None: no limit.
        on_plan: called with each plan before it is pulled, for progress displays.

    Returns:
        A `Run`; it depends on (policy, environment, seed, max_pulls, max_cost) only, but for `seconds`, and for
        where max_seconds ends it.

    Raises:
        InvalidInput: max_pulls, max_cost or max_seconds is negative, max_cost is given and nothing has a cost, or the
            policy is for another number of arms.
    """
    if max_pulls < 0:
        raise InvalidInput(f"max_pulls is {max_pulls}; it must be zero or more.")
    if max_seconds is not None:
        not_negative("max_seconds", max_seconds, "how long a study may take.")
    if not isinstance(environment, Environment) or not isinstance(policy, Policy):
        raise InvalidInput(
            f"simulate(policy, environment) was given a {type(policy).__name__} and a {type(environment).__name__}."
        )
    started = time.perf_counter()
    study: Study | Rehearsal
    drawn = _are_draws(environment, policy)
    if on_plan is None and drawn:
        study = Rehearsal(environment.arms, policy, minimize=environment.minimize)
    else:
        study = Study(environment.arms, policy, minimize=environment.minimize, study_id=REHEARSAL)

    def pull(batch: Batch) -> None:
        if isinstance(study, Rehearsal):
            study.tell_simulated(environment.pull(batch.counts, stream(seed, "rewards", study.number - 1)))
            return
        if batch.items is not None:
            arms = np.repeat(np.arange(len(batch.counts)), batch.counts)
            study.tell(batch, environment.answer(arms, batch.items), accept_unusual="unasked")
            return
        if batch.blocks:
            _pull_blocks(study, environment, batch, seed)
            return
        seen = environment.pull(batch.counts, stream(seed, "rewards", batch.number - 1))
        study.tell_simulated(batch, seen, drawn=drawn)

    limits: dict[str, Any] = {"max_pulls": max_pulls, "max_cost": max_cost, "max_seconds": max_seconds}
    ended = until_stopped(cast(Askable, study), pull, **limits, on_batch=on_plan)
    answer = ended.certificate
    right = environment.is_epsilon_best(answer.arm, policy.problem.epsilon)
    if answer.lists is not None:
        means = -environment.means if environment.minimize else environment.means
        beside = environment.quantity_means
        right = not wrongly_listed(policy.problem, answer.lists, environment.arms, means, beside).any()
    return Run(
        best_arm=answer.best_arm,
        arm=answer.arm,
        pulls=answer.pulls,
        success=ended.ended_by == "policy" and right,
        oracle_pulls=oracle_pulls(study.trace, environment, policy) if policy.traits.narrows else None,
        verdict=answer.verdict,
        true_gap=float(environment.gaps[answer.arm]),
        rounds=study.trace,
        certificate=answer,
        seconds=time.perf_counter() - started,
        played=study,
        ended_by=ended.ended_by,
        cost=answer.cost,
        right=bool(right),
    )


def _are_draws(environment: Environment, policy: Policy[Any]) -> bool:
    """Whether each result is a number that is drawn anew, which no log is needed for."""
    traits, drawn = policy.traits, not isinstance(environment.law, RecordedRewards | RecordedAnswers | StreamedRewards)
    return drawn and traits.items is None and traits.blocks is None and not constraints_of(policy.problem.question)


def _pull_blocks(study: Study, environment: Environment, batch: Batch, seed: int) -> None:
    """Pull a batch block by block: where rewards come from streams, each block is one, else a call of its own."""
    rng, arms = stream(seed, "rewards", batch.number - 1), np.repeat(np.arange(len(batch.counts)), batch.counts)
    if isinstance(environment.law, StreamedRewards):
        study.tell(batch, environment.law.observe(arms, batch.blocks, seed=seed), accept_unusual="unasked")
        return
    names, rows = np.array(batch.blocks), []
    for name in dict.fromkeys(batch.blocks):
        seen = environment.pull(np.bincount(arms[names == name], minlength=len(batch.counts)), rng)
        pulled = np.flatnonzero(seen.counts).tolist()
        unknown = np.full(len(seen.counts), np.nan) if seen.squares is None else seen.squares
        rows += [(batch.ids[arm], seen.counts[arm], seen.sums[arm], unknown[arm], name) for arm in pulled]
    ids, counts, sums, squares, blocks = zip(*rows, strict=True)
    known = None if np.isnan(squares).any() else squares
    study.tell_totals(ids, counts, sums, known, plan=batch.number, blocks=blocks, accept_unusual="unasked")


def oracle_pulls(trace: tuple[RoundRecord, ...], environment: Environment, policy: Policy[Any]) -> int | None:
    """Pulls when the active set first held only epsilon-best arms; 0 if all arms are, None if never."""
    good = environment.epsilon_best(policy.problem.epsilon)
    if good.all():
        return 0
    return next((row.total_pulls for row in trace if good[row.active].all()), None)
