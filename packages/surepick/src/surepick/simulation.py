"""One policy against one environment, from the first ask to its own stop."""

import itertools
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import field
from typing import Any, cast

import numpy as np

from surepick.core.certificate import Certificate
from surepick.core.observations import Observations
from surepick.core.plans import RoundRecord
from surepick.core.random_streams import stream, streams
from surepick.core.records import BoolArray, FloatArray, IntArray, frozen, record, rows_of
from surepick.core.values import not_negative, whole_number
from surepick.environments import Environment
from surepick.environments.environment import RecordedAnswers
from surepick.environments.rewards import DrawsMany, RecordedRewards, StreamedRewards
from surepick.errors import InvalidInput
from surepick.noise import Noise
from surepick.policies.base import Policy
from surepick.questions import constraints_of, wrongly_listed
from surepick.studies import Study
from surepick.studies.closed_loop import Askable, EndedBy, until_stopped
from surepick.studies.deviations import answer_of
from surepick.studies.ledger import Batch
from surepick.studies.logs.base import Deviations
from surepick.studies.registration import REHEARSAL
from surepick.studies.rehearsal import Rehearsal, plausible, received_as_drawn
from surepick.studies.slips import Repeats, doubtful_repeats
from surepick.studies.validation import check_sums


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
        counts: pulls of each arm, shape (K,).
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
    counts: IntArray = field(default_factory=lambda: np.zeros(0, np.int64), compare=False, repr=False)

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
    drawn, counts = _are_draws(environment, policy), np.zeros(environment.num_arms, np.int64)
    if on_plan is None and drawn:
        study = Rehearsal(environment.arms, policy, minimize=environment.minimize)
    else:
        study = Study(environment.arms, policy, minimize=environment.minimize, study_id=REHEARSAL)

    def pull(batch: Batch) -> None:
        np.add(counts, batch.counts, out=counts)
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
    right = environment.is_epsilon_best(answer.arm, answer.epsilon)
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
        counts=counts,
    )


@frozen
class Replications:
    """What many simulated studies of one policy spent, and whether their answers were right; an entry a seed, (n,)."""

    seeds: IntArray
    counts: IntArray  # pulls of each arm, (n, K)
    arms: IntArray  # index of the arm returned
    pulls: IntArray  # measurements until the policy stopped by itself
    rounds: IntArray  # batches that were measured
    verdicts: tuple[str, ...]  # of the certificates; "budget-exhausted" where the next plan would have passed max_pulls
    right: BoolArray  # whether the arm is epsilon-best, or no arm is on a wrong list
    success: BoolArray  # right, and stopped by itself
    certified_gaps: FloatArray  # by how much the arm is worse than the best one at most; infinite: unknown


def simulate_many(
    policy: Policy[Any], environment: Environment, *, seeds: Iterable[int] = range(1000), max_pulls: int = 10_000_000
) -> Replications:
    """Run a study for each seed: the same as by `simulate`, and many times as fast where studies can be played at once.

    That is so for `certified-independent` with noise of a known scale, rewards that are drawn from the noise, and
    batches that the policy chooses; others are played one by one.

    Args:
        policy, environment, max_pulls: as in `simulate`, of each study.
        seeds: one for each study.

    Raises:
        InvalidInput: as `simulate`.

    Cost: of ten arms about a tenth of a millisecond a round and study; about 300 bytes of memory an arm and study.
    """
    chosen = [whole_number("seed", seed, least=0, meaning="each study has its own.") for seed in seeds]
    ended: list[tuple[Any, ...]] = []
    step = max(ENTRIES_AT_ONCE // max(getattr(environment, "num_arms", 1), 1), 1)
    for some in (chosen[first : first + step] for first in range(0, len(chosen), step)):
        found = _played_together(policy, environment, some, max_pulls)
        if found is None:
            found = [_ended(simulate(policy, environment, seed=seed, max_pulls=max_pulls)) for seed in some]
        ended += found
    columns: list[Any] = list(zip(*ended, strict=True)) or [()] * 8
    counts = np.array(columns.pop(), np.int64).reshape(len(ended), environment.num_arms)
    return Replications(np.array(chosen), counts, *columns)


ENTRIES_AT_ONCE = 200_000  # studies that are played at once, times arms: what bounds the memory


def _ended(run: Run) -> tuple[Any, ...]:
    """What `Replications` says of one study, counts last."""
    gap = run.certificate.certified_gap
    known = math.inf if gap is None else gap
    return run.arm, run.pulls, len(run.rounds), run.verdict, run.right, run.success, known, run.counts


def _played_together(
    policy: Policy[Any], environment: Environment, seeds: list[int], max_pulls: int
) -> list[tuple[Any, ...]] | None:
    """Studies that are played at once; None where they cannot be, or where something is to be refused."""
    if not isinstance(environment, Environment) or not isinstance(policy, Policy):
        return None
    rule, law, num_arms = policy.traits.together, environment.law, environment.num_arms
    if rule is None or not isinstance(law, DrawsMany) or policy.problem.num_arms != num_arms or max_pulls < num_arms:
        return None
    minimize = environment.minimize
    ended, contradicted = dict[int, tuple[Any, ...]](), dict[int, str]()
    at, rows, planned = np.arange(len(seeds)), None, rule.first(len(seeds))  # the studies that go on
    nothing = np.zeros((len(seeds), num_arms))
    totals = Observations(nothing.astype(np.int64), nothing, nothing)
    for number in itertools.count():
        drawn = law.draw_many(planned.counts, streams([seeds[one] for one in at.tolist()], "rewards", number))
        if not _as_declared(drawn, policy.problem.noise):
            return None
        seen = received_as_drawn(drawn, minimize=minimize)
        before, totals = totals, totals.plus(seen)
        for row in doubtful_repeats(policy, totals).tolist():
            repeats, place = Repeats(policy, rows_of(before, row), contradicted.get(at[row], "")), int(at[row])
            contradicted[place] = repeats.after(rows_of(seen, row))
        rows = rule.tell(rows, planned, seen)
        left = np.flatnonzero(~rows.finished)
        planned = rule.ask(rows_of(rows, left))
        fits = totals.counts[left].sum(axis=1) + planned.counts.sum(axis=1) <= max_pulls
        for row in np.setdiff1d(np.arange(len(at)), left[fits]).tolist():
            place, own = int(at[row]), bool(rows.finished[row])
            answer = answer_of(
                policy,
                environment.arms,
                rule.state_of(rows, row, number + 2),
                minimize=minimize,
                rounds=(),
                deviations=[Deviations(contradicted=contradicted.get(place, ""))],
                end=None,
                measured=dict,
            )
            gap = math.inf if answer.certified_gap is None else answer.certified_gap
            verdict = answer.verdict if own else "budget-exhausted"
            right = environment.is_epsilon_best(answer.arm, answer.epsilon)
            said = verdict, right, own and right, gap
            ended[place] = (answer.arm, answer.pulls, number + 1, *said, np.array(totals.counts[row]))
        if not fits.any():
            break
        rows, planned, totals, at = (
            rows_of(rows, kept := left[fits]),
            rows_of(planned, fits),
            rows_of(totals, kept),
            at[kept],
        )
    return [ended[place] for place in range(len(seeds))]


def _as_declared(drawn: Observations, noise: Noise) -> bool:
    """Whether a study takes these totals of many, (n, K)."""
    if noise.support is None:
        return plausible(drawn)
    counts, sums, squares = drawn.counts.ravel(), drawn.sums.ravel(), drawn.squares
    try:
        check_sums(counts, sums, None if squares is None else squares.ravel(), noise, [""] * len(counts))
    except InvalidInput:
        return False
    return True


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
