"""Simulated studies: a policy fed with made-up rewards, around a guess or in the worst case."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surepick.chunks.sources import RowBlocks
from surepick.core.arms import Arms
from surepick.core.observations import BlockTotals, Observations, Quantity
from surepick.core.plans import Blocking, Plan, RoundRecord
from surepick.core.random_streams import stream
from surepick.core.records import FloatArray, IntArray, record, rows_of
from surepick.core.values import positive_number, real_numbers, whole_number
from surepick.environments import Environment
from surepick.errors import InvalidInput
from surepick.forecasts.result import ForecastOfRows
from surepick.noise import Noise, SubGaussian, known_scale, largest_scale, parse_noise, scales
from surepick.policies.base import Policy, Rounds, spec_of, stopped, trace_row
from surepick.policies.long_lists import after_selection
from surepick.policies.options import OF_BLOCKS, fitting_policy, independent
from surepick.policies.prices import Costs
from surepick.policies.registry import built_policy, policy_spec
from surepick.policies.verdict import certificate_of
from surepick.questions import Constraint, constraints_of, number_of
from surepick.simulation import simulate
from surepick.studies.replay import Closed, replay

FEWEST_STUDIES, MOST_STUDIES = 8, 200
STANDARD_ERROR = 0.06
EQUAL_STUDIES = 8
MOST_PLANS = 50_000
HALFWAY = 0.5  # of a tolerance: there it is hardest to tell whether a bound is kept
FIRST_DOUBT = 16  # the plan before which a simulated study first asks the certificate whether more pulls would help
NO_HELP = "More of them may not help: "  # in the reason of such a certificate, and why follows


@dataclass(slots=True)
class Effort:
    """What simulating may take, all studies of a forecast together; where rounds end it, the same on every machine."""

    rounds: float = math.inf  # that are left
    seconds: float = math.inf  # of processor time of this thread
    over: str = ""
    _began: float = field(default_factory=time.thread_time)

    def spend(self) -> bool:
        """Take one round; False, and `over` says why, if nothing is left."""
        if self.rounds < 1:
            self.over = self.over or "the rounds that a forecast simulates were over"
        elif self.late:
            self.over = self.over or f"the {self.seconds:g} s that a forecast takes were over"
        self.rounds -= 1
        return not self.over

    @property
    def late(self) -> bool:
        """Whether the seconds are over."""
        return time.thread_time() - self._began > self.seconds


@dataclass(frozen=True, slots=True)
class Limit:
    """What a simulated study may spend."""

    pulls: int  # measurements
    cost: float = math.inf  # money
    prices: Costs | None = None  # of the measurements; None: nothing has a cost
    effort: Effort = field(default_factory=Effort)  # what simulating itself may take

    def cost_of(self, plan: Plan) -> float:
        """Money for a plan, 0 without costs."""
        if self.prices is None:
            return 0.0
        return float(plan.counts @ self.prices.each(len(plan.counts))) + self.prices.batch


@dataclass(frozen=True, slots=True)
class SimulatedStudy:
    """One simulated study."""

    rounds: tuple[tuple[Plan, RoundRecord], ...]  # (plan, trace row) of the last look of each round
    plans: tuple[Plan, ...]  # everything that was asked, in order
    total: int  # pulls
    cost: float  # money for them, 0 without costs
    recommended: int  # the arm at the end
    verdict: str  # of the certificate, and its reason
    reason: str
    cut: str  # why it was ended before the policy stopped, "" if it was not
    hopeless: str = ""  # why more pulls would not have helped where it was ended, "" if they might


def simulate_studies(
    policy: Policy[Any], means: FloatArray, noise: Noise, limit: Limit, *, most: int, seed: int, sign: float
) -> list[SimulatedStudy]:
    """Simulated studies until the mean of their pulls is known well enough, or until two seemed endless."""
    opening, runs = _opening(policy), list[SimulatedStudy]()

    def rewards(number: int) -> _Rewards:
        return _Rewards(means, noise, sign, stream(seed, "forecast", number))

    wanted = FEWEST_STUDIES
    while len(runs) < most:
        numbers = range(len(runs), min(max(wanted, len(runs) + len(runs) // 4 + 1), most))
        for run in _studies(policy, limit, opening, [partial(rewards, number) for number in numbers]):
            runs.append(run)
            if sum(bool(run.hopeless) for run in runs) == 2 or limit.effort.over:
                return runs
            totals = np.array([run.total for run in runs], dtype=np.float64)
            spread = totals.std(ddof=1) if len(runs) > 1 else math.inf
            if len(runs) >= FEWEST_STUDIES and spread <= STANDARD_ERROR * totals.mean() * math.sqrt(len(runs)):
                return runs
            wanted = math.ceil(min((spread / (STANDARD_ERROR * max(totals.mean(), 1.0))) ** 2, most))
    return runs


def simulate_each(
    policy: Policy[Any], means: Sequence[FloatArray], noise: Noise, limit: Limit, *, seed: int, sign: float
) -> list[SimulatedStudy]:
    """A simulated study for each of these means, large ones good, until the effort is over."""
    runs = list[SimulatedStudy]()

    def rewards(number: int) -> _Rewards:
        return _Rewards(sign * means[number], noise, sign, stream(seed, "forecast", number))

    for run in _studies(policy, limit, _opening(policy), [partial(rewards, one) for one in range(len(means))]):
        runs.append(run)
        if limit.effort.over:
            break
    return runs


def _opening(policy: Policy[Any]) -> tuple[Plan, ...]:
    """The first plan, if there is one."""
    start = policy.init()
    return () if stopped(policy, start) else (policy.ask(start),)


@dataclass(frozen=True, slots=True)
class _Rewards:
    """Rewards around a guess of the means, in the user's sign; `sign` turns them into the policy's. What constraints
    are on lies at the bounds, or beyond them by a share of the tolerance."""

    means: FloatArray
    noise: Noise
    sign: float
    rng: np.random.Generator
    beyond: float = 0.0

    def draw(self, counts: IntArray) -> Observations:
        if self.noise.support is not None:
            low, high = self.noise.support
            highs = self.rng.binomial(counts, np.clip((self.means - low) / (high - low), 0.0, 1.0))
            lows = counts - highs
            sums = self.sign * (lows * low + highs * high)
            within = (high - low) ** 2 * (lows * (highs / np.maximum(counts, 1)))
            return Observations(counts, sums, lows * low**2 + highs * high**2, within=within)
        sigma, n = scales(self.noise, len(counts)), counts.astype(np.float64)
        sums = self.sign * (n * self.means + sigma * np.sqrt(n) * self.rng.standard_normal(len(n)))
        spread = 2.0 * self.rng.standard_gamma(np.maximum(n - 1.0, 0.0) / 2.0)
        squares = np.divide(sums**2, n, out=np.zeros_like(sums), where=n > 0) + sigma**2 * spread
        return Observations(counts, sums, squares, within=sigma**2 * spread)


@dataclass(frozen=True, slots=True)
class _Equal:
    """Equal rewards without noise; where arms differ in noise, the noisiest leads by a hair."""

    scales: FloatArray
    level: ArrayLike = 0.0
    beyond: float = HALFWAY

    def draw(self, counts: IntArray) -> Observations:
        uneven = np.ptp(self.scales) > 0.0
        means = np.asarray(self.level) + (1e-9 * self.scales if uneven else np.zeros(len(counts)))
        return Observations(counts, counts * means, counts * means**2, within=np.zeros(len(counts)))


def _beside(rewards: _Rewards | _Equal, constraints: tuple[Constraint, ...], counts: IntArray) -> tuple[Quantity, ...]:
    """Totals of what constraints are on, with noise where rewards have some and it is declared."""
    found = []
    for one in constraints:
        further = rewards.beyond * one.tolerance if one.noise is not None else 0.0
        level = np.full(len(counts), one.bound + (further if one.at_most else -further))
        drawn: _Rewards | _Equal = _Equal(np.zeros(len(counts)), level)
        if isinstance(rewards, _Rewards) and one.noise is not None:
            drawn = _Rewards(level, one.noise, 1.0, rewards.rng)
        seen = drawn.draw(counts)
        found.append(Quantity(counts, seen.sums, np.asarray(seen.squares), seen.within))
    return tuple(found)


def _dealt(rewards: _Rewards | _Equal, blocking: Blocking, counts: IntArray) -> Observations:
    """Rewards of blocks that have no effect, the pulls dealt as a study proposes it."""
    table = np.zeros((blocking.number_for(counts), len(counts)), np.int64)
    np.add.at(table, (blocking.dealt(counts), np.repeat(np.arange(len(counts)), counts)), 1)
    parts = [rewards.draw(row) for row in table]
    blocks, arms = np.nonzero(table)
    sums = np.array([part.sums for part in parts])
    squares = np.sum([part.squares for part in parts if part.squares is not None], axis=0)
    return Observations(
        counts, sums.sum(axis=0), squares, blocks=BlockTotals(blocks, arms, table[blocks, arms], sums[blocks, arms])
    )


def unblocked(policy: Policy[Any]) -> Policy[Any] | None:
    """The policy as it would be if its measurements were independent; None where they are."""
    if policy.traits.blocks is None:
        return None
    spec, arms = spec_of(policy), policy.problem.arms
    if spec is None or arms is None:
        return None
    kept = {option: value for option, value in spec.items() if option not in OF_BLOCKS}
    if policy_spec(spec["name"]).parts is independent:  # then it has the usual evidence, whose options are others
        made: Any = policy
        usual = {each.name: each.default for each in fields(made)}
        kept = {option: value for option, value in kept.items() if option not in usual or value != usual[option]}
    return built_policy(arms=arms, **kept)


def worst_case(policy: Policy[Any], noise: Noise, limit: Limit, *, seed: int = 0) -> SimulatedStudy:
    """The most expensive study that we know of: the rounds in full, or a study of equal arms."""
    if not known_scale(policy.problem.noise):  # without noise there would be no scale to find
        return _dearest(_studies_of_equals(policy, noise, limit, _opening(policy), seed))
    planned = policy.traits.rounds
    equal = _Equal(scales(policy.problem.noise, policy.problem.num_arms), number_of(policy.problem) or 0.0)
    if not policy.traits.narrows:
        return _most_expensive_of_equals(policy, limit, _Simulation(policy, limit, (), equal).ended(), seed)
    if planned is None or policy.traits.stops != "own" or planned.stopping != "certified":
        return _Simulation(policy, limit, (), equal).ended()
    enduring: Policy[Any] = replace(policy, stopping="rounds")  # type: ignore[type-var]
    run = _Simulation(enduring, limit, (), equal, planned).ended()
    if run.cut or planned.accuracy(planned.num_rounds) > planned.epsilon:
        return run
    last = _Simulation(policy, limit, run.plans, equal).ended()  # the same plans: only `tell` stops earlier
    return replace(run, verdict=last.verdict, reason=last.reason)


def _most_expensive_of_equals(policy: Policy[Any], limit: Limit, quiet: SimulatedStudy, seed: int) -> SimulatedStudy:
    """The most expensive of some studies of equal arms with noise, without which bets on the data are all won."""
    if quiet.cut or quiet.hopeless:
        return quiet
    most_expensive = _dearest(_studies_of_equals(policy, policy.problem.noise, limit, quiet.plans[:1], seed))
    if "budget-exhausted" in (most_expensive.verdict, quiet.verdict):
        return most_expensive
    return replace(most_expensive, verdict=quiet.verdict, reason=quiet.reason)


def _studies_of_equals(
    policy: Policy[Any], noise: Noise, limit: Limit, opening: tuple[Plan, ...], seed: int
) -> list[SimulatedStudy]:
    """Studies of equal arms with noise, all with the same first plan; one where there is none."""
    middle = 0.0 if noise.support is None else 0.5 * sum(noise.support)
    means = np.full(policy.problem.num_arms, number_of(policy.problem) or middle)

    def rewards(number: int) -> _Rewards:
        return _Rewards(means, noise, 1.0, stream(seed, "forecast", "equal", number), HALFWAY)

    runs: list[SimulatedStudy] = []
    made = [partial(rewards, one) for one in range(EQUAL_STUDIES if opening else 1)]
    for run in _studies(policy, limit, opening, made):
        runs.append(run)
        if limit.effort.over:
            break
    return runs


def _dearest(runs: list[SimulatedStudy]) -> SimulatedStudy:
    return max(runs, key=lambda run: (bool(run.cut or run.hopeless), run.cost, run.total))


class _Simulation:
    """The closed plans of one study whose rewards are made up, as `replay` wants them."""

    def __init__(
        self,
        policy: Policy[Any],
        limit: Limit,
        known: tuple[Plan, ...],  # what it asks first, if that is known
        rewards: _Rewards | _Equal,
        certain: Rounds | None = None,  # it ends after the look at which the promise of these rounds alone certifies
    ) -> None:
        self._policy, self._limit, self._known = policy, limit, known
        self._rewards, self._certain, self._doubted = rewards, certain, False
        self.plans: list[Plan] = []
        self.total = 0
        self.cost = 0.0
        self.cut = self.hopeless = ""

    def next_plan(self, state: Any) -> Closed | None:
        """What the policy asks in that state, measured; None at the end of the study."""
        number = len(self.plans)
        if self._certain is not None and self.plans:  # its promise may be kept
            last, rounds = self.plans[-1], self._certain
            if rounds.accuracy(last.round) * math.sqrt(last.looks / last.look) <= rounds.epsilon:
                return None
        if stopped(self._policy, state) or self._beyond_help(state, number):
            return None
        plan = self._known[number] if number < len(self._known) else self._policy.ask(state)
        due = self.cost + self._limit.cost_of(plan)
        if self.total + plan.total > self._limit.pulls or due > self._limit.cost or number == MOST_PLANS:
            self.cut = f"after {self.total:,} pulls, before it stopped by itself"
            return None
        if not self._limit.effort.spend():
            self.cut = f"after {self.total:,} pulls, when {self._limit.effort.over}"
            return None
        self.plans.append(plan)
        self.total += plan.total
        self.cost = due
        blocking = self._policy.traits.blocks
        drawn = self._rewards.draw(plan.counts) if blocking is None else _dealt(self._rewards, blocking, plan.counts)
        if constraints := constraints_of(self._policy.problem.question):
            drawn = replace(drawn, quantities=_beside(self._rewards, constraints, plan.counts))
        return Closed(number + 1, plan, drawn)

    def _beyond_help(self, state: Any, number: int) -> bool:
        """Whether the certificate said twice that more pulls would not help."""
        if number < FIRST_DOUBT or number.bit_count() != 1:  # 16, 32, 64, ...: seldom, as it costs as much as a plan
            return False
        _, _, why = certificate_of(self._policy, state).reason.partition(NO_HELP)
        if why and self._doubted:
            self.hopeless = why
        self._doubted = bool(why)
        return self.hopeless != ""

    def ended(self) -> SimulatedStudy:
        """The study, from its start to its end."""
        state, last = self._policy.init(), {}
        for judged in replay(self._policy, self.next_plan, state=state):
            state = judged.step.state
            last[judged.closed.plan.round] = (judged.closed.plan, judged.step.record)
        answer = certificate_of(self._policy, state)
        said = answer.arm, answer.verdict, answer.reason, self.cut, self.hopeless
        return SimulatedStudy(tuple(last.values()), tuple(self.plans), self.total, self.cost, *said)


def _studies(
    policy: Policy[Any], limit: Limit, known: tuple[Plan, ...], rewards: Sequence[Callable[[], _Rewards]]
) -> Iterator[SimulatedStudy]:
    """A study for each of these rewards, one after the other; at once where the policy can, and they fit the effort."""
    early = _played_together(policy, limit, known, [make() for make in rewards]) if len(rewards) > 1 else []
    for number, make in enumerate(rewards):
        run = early[number] if number < len(early) else None
        if run is None or len(run.plans) > limit.effort.rounds:
            run = _Simulation(policy, limit, known, make()).ended()
        elif run.cut and limit.effort.late:
            limit.effort.spend()
        else:
            limit.effort.rounds -= len(run.plans)
        yield run


def _played_together(
    policy: Policy[Any], limit: Limit, known: tuple[Plan, ...], rewards: list[_Rewards]
) -> list[SimulatedStudy | None]:
    """These studies, played at once; None where one takes more rounds than there are."""
    rule, number = policy.traits.together, len(rewards)
    if rule is None or not known or known[0].total > limit.pulls:
        return []
    played, ended = [list[tuple[Plan, RoundRecord]]() for _ in rewards], dict[int, SimulatedStudy]()
    at, rows, planned, totals = np.arange(number), None, rule.first(number), np.zeros(number, np.int64)
    for round_number in range(1, MOST_PLANS + 1):
        drawn = [rewards[study].draw(counts) for study, counts in zip(at, planned.counts, strict=True)]
        columns = (np.array([getattr(one, name) for one in drawn]) for name in ("counts", "sums", "squares", "within"))
        counts, sums, squares, within = columns
        rows = rule.tell(rows, planned, Observations(counts, sums, squares, within=within))
        totals[at] += counts.sum(axis=1)
        for row, study in enumerate(at.tolist()):
            plan = known[0] if round_number == 1 else Plan(round=round_number, counts=counts[row], dim=counts.shape[1])
            after = rule.state_of(rows, row, round_number + 1)
            played[study].append((plan, trace_row(plan, after, pulls=plan.total, gap=None)))
        left = np.flatnonzero(~rows.finished)
        planned = rule.ask(rows_of(rows, left))
        fits = totals[at[left]] + planned.counts.sum(axis=1) <= limit.pulls
        late = limit.effort.late
        for row in np.setdiff1d(np.arange(len(at)), [] if late else left[fits]).tolist():
            answer, study = certificate_of(policy, rule.state_of(rows, row, round_number + 1)), int(at[row])
            why = f"when the {limit.effort.seconds:g} s that a forecast takes were over"
            why = why if late else "before it stopped by itself"
            cut = "" if rows.finished[row] else f"after {totals[study]:,} pulls, {why}"
            plans, said = tuple(plan for plan, _ in played[study]), (answer.arm, answer.verdict, answer.reason)
            ended[study] = SimulatedStudy(tuple(played[study]), plans, int(totals[study]), 0.0, *said, cut)
        before = np.cumsum([len(one) for one in played]) - [len(one) for one in played]
        fits &= before[at[left]] + round_number < limit.effort.rounds
        if late or not fits.any():
            break
        rows, planned, at = rows_of(rows, left[fits]), rows_of(planned, fits), at[left[fits]]
    return [ended.get(study) for study in range(number)]


# --- What the best of a list in files will cost: both steps of it, played on the list itself against truths made up.

USUAL_STUDIES = 20
DRAWN = (
    "Nothing was guessed of the rewards: their direction was drawn anew for each simulated study, with norm {norm:g}. "
    "Rewards that differ less take more: give a smaller norm=, or a guess."
)
NORMAL = "Made-up rewards are normal with the largest scale that the noise allows; others may take fewer."
CUT = "{cut} of {studies} simulated studies had not ended after {pulls:,} measurements: what they take is more."
WRONG = "The answer was wrong in {wrong} of {studies} simulated studies."


def forecast_of_rows(
    rows: RowBlocks,
    coefficients: ArrayLike | None = None,
    *,
    epsilon: float,
    delta: float = 0.05,
    noise: Noise | str,
    norm_bound: float | None = None,
    norm: float | None = None,
    seed: int = 0,
    rehearsals: int = USUAL_STUDIES,
    max_pulls: int = 10_000_000,
    **options: Any,
) -> ForecastOfRows:
    """What `find_best` will take on rows in blocks: measurements for the short list, its length, the rest.

    Both policies are those of `find_best`, and they see all rows: each simulated study goes through the files as the
    real one would. What is made up is the truth and the noise. The first looks and the design are shared.

    Args:
        rows: the candidates.
        coefficients: a guess of the linear reward's coefficients, shape (D,); None: a direction is drawn for each
            simulated study, uniformly among those that the selection sees.
        epsilon, delta, noise, norm_bound, options: as in `find_best`.
        norm: of the drawn ones, in reward units; None: the norm bound, the easiest case that it allows.
        seed: decides truths and noise.
        rehearsals: simulated studies.
        max_pulls: a simulated study ends before passing it.

    Raises:
        InvalidInput: as `find_best`; or the guess is not D finite numbers, has a larger norm than the norm bound, or is
            given beside `norm` or a kernel.

    Source: ours. Cost: what `find_best` computes before its first measurement, and for each simulated study the passes
        of a real one, 2 or 3, and its second step in memory.
    """
    whole_number("rehearsals", rehearsals, least=1, meaning="a mean needs at least one simulated study.")
    given = options if norm_bound is None else {"norm_bound": norm_bound, **options}
    assumed = parse_noise(noise) if isinstance(noise, str) else noise
    drawn = SubGaussian(largest_scale(assumed)) if known_scale(assumed) else assumed
    selection: Any = built_policy(fitting_policy(given), rows, epsilon=epsilon, delta=delta, noise=drawn, **given)
    guess = _checked(coefficients, selection, norm)
    length = selection.rules.norm_bound if norm is None else norm

    def means(arms: Arms, number: int) -> FloatArray:
        if guess is not None:
            return np.asarray(arms.features @ guess)
        direction = stream(seed, "forecast", "truth", number).standard_normal(selection.where.rank)
        return np.asarray(selection.where.of(arms.features) @ (direction * (length / np.linalg.norm(direction))))

    played = [_played(selection, means, drawn, number, seed=seed, max_pulls=max_pulls) for number in range(rehearsals)]
    totals, listed = np.array([one.total for one in played]), np.array([one.listed for one in played])
    cut, wrong = sum(one.cut for one in played), sum(one.wrong for one in played)
    warnings = [NORMAL] if guess is not None else [DRAWN.format(norm=length), NORMAL]
    warnings += [CUT.format(cut=cut, studies=rehearsals, pulls=max_pulls)] if cut else []
    warnings += [WRONG.format(wrong=wrong, studies=rehearsals)] if wrong > max(0.25, 3.0 * delta) * rehearsals else []
    return ForecastOfRows(
        num_rows=rows.num_rows,
        total=round(totals.mean()),
        lowest=int(totals.min()),
        highest=int(totals.max()),
        selection=round(np.mean([one.selection for one in played])),
        listed=round(np.median(listed)),
        shortest_list=int(listed.min()),
        longest_list=int(listed.max()),
        batches=round(np.median([one.batches for one in played])),
        rehearsals=rehearsals,
        guess=guess is not None,
        epsilon=epsilon,
        delta=delta,
        warnings=tuple(warnings),
    )


@record
class _Played:
    """One simulated study: what its first step took, and both; the candidates of the second; how it ended."""

    selection: int
    total: int
    listed: int
    batches: int
    cut: bool = False
    wrong: bool = False


def _played(
    selection: Any, means: Callable[[Arms, int], FloatArray], noise: Noise, number: int, *, seed: int, max_pulls: int
) -> _Played:
    """Both steps against the truth of that number."""
    draws = int(stream(seed, "forecast", "noise", number).integers(2**62))
    world = Environment(arms=selection.arms, means=means(selection.arms, number), noise=noise)
    first = simulate(selection, world, seed=draws, max_pulls=max_pulls)
    state = first.study.state
    if not state.finished:
        return _Played(first.pulls, first.pulls, state.left, len(first.rounds), cut=True)
    second: Any = after_selection(built_policy, selection, state)
    arms = second.problem.arms
    world = Environment(arms=arms, means=means(arms, number), noise=noise)
    then = simulate(second, world, seed=draws + 1, max_pulls=max_pulls - first.pulls)
    ended = then.ended_by == "policy"
    total, batches = first.pulls + then.pulls, len(first.rounds) + len(then.rounds)
    return _Played(first.pulls, total, arms.num_arms, batches, cut=not ended, wrong=ended and not then.success)


def _checked(coefficients: ArrayLike | None, selection: Any, norm: float | None) -> FloatArray | None:
    """The guess as an array, shape (D,)."""
    if norm is not None:
        positive_number("norm", norm, "the norm of the rewards that are drawn.")
        if coefficients is not None:
            raise InvalidInput("norm is that of rewards that are drawn; with coefficients nothing is drawn.")
    bound, columns = selection.rules.norm_bound, selection.passes.rows.num_columns
    if norm is not None and norm > bound:
        raise InvalidInput(f"norm is {norm:g}, more than the norm bound {bound:g}.")
    if coefficients is None:
        return None
    if selection.rules.kernel is not None:
        raise InvalidInput("with a kernel rewards have no coefficients to guess; leave them out, and they are drawn.")
    guess = np.array(real_numbers("coefficients", coefficients))
    if guess.shape != (columns,) or not np.isfinite(guess).all():
        raise InvalidInput(
            f"the guess has shape {guess.shape}; give one finite coefficient for each of the {columns} columns."
        )
    if float(np.linalg.norm(guess)) > bound * (1.0 + 1e-9):
        raise InvalidInput(
            f"the guess has norm {np.linalg.norm(guess):.4g}, more than the norm bound {bound:g}: one is wrong."
        )
    return guess
