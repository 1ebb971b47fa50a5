"""What a study will cost before it starts: any policy, fed with made-up rewards instead of measurements."""

import math
from collections.abc import Mapping
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from surepick.chunks.sources import RowBlocks
from surepick.core.plans import Plan
from surepick.core.records import FloatArray
from surepick.core.values import real_numbers, whole_number
from surepick.errors import ContractError, InvalidInput, NotConverged
from surepick.forecasts import simulated_studies
from surepick.forecasts.result import Forecast, ForecastOfRows, ForecastRound, ForecastRow
from surepick.forecasts.warnings import Doubts, forecast_price_of_blocks, guess_in_embedding
from surepick.noise import Noise, SubGaussian, known_scale, largest_scale, scales
from surepick.policies.base import Policy, Traits
from surepick.policies.dimension import bias
from surepick.policies.prices import Costs, checked_budget
from surepick.policies.uniform import uniform_pulls_for
from surepick.questions import constraints_of
from surepick.text import about

ENDLESS_PULLS = 10_000_000
MOST_PULLS = 10**13
MOST_ROUNDS = 20_000
MOST_SECONDS = 60.0
ASSUMED_SCALE = (
    "Measurements were made up with the standard deviation that you guessed: the pulls are about proportional to its "
    "square. The study finds its own, and its certificate does not rest on the guess."
)
AT_THE_BOUNDS = (
    "What the constraints are on is not guessed: all candidates are taken to be right at the bounds, where they are "
    "hardest to tell apart."
)


@overload
def forecast(
    policy: Policy[Any],
    means: ArrayLike | None = None,
    *,
    minimize: bool = False,
    seed: int = 0,
    max_pulls: int | None = None,
    max_cost: float | None = None,
    rehearsals: int = simulated_studies.MOST_STUDIES,
    assume_scale: ArrayLike | None = None,
    most_rounds: float = MOST_ROUNDS,
    most_seconds: float = MOST_SECONDS,
) -> Forecast: ...


@overload
def forecast(policy: RowBlocks, means: ArrayLike | None = None, **asked: Any) -> ForecastOfRows: ...


def forecast(
    policy: Policy[Any] | RowBlocks,
    means: ArrayLike | None = None,
    *,
    minimize: bool = False,
    seed: int = 0,
    max_pulls: int | None = None,
    max_cost: float | None = None,
    rehearsals: int | None = None,
    assume_scale: ArrayLike | None = None,
    most_rounds: float = MOST_ROUNDS,
    most_seconds: float = MOST_SECONDS,
    **asked: Any,
) -> Forecast | ForecastOfRows:
    """What the study would cost, without a single measurement.

    Without a guess: the worst case. For policies of rounds no arm ever falls behind, every round is played in full with
    all arms, and the study ends only where the widths alone force it to:

        sum over k <= n* of N_k(all arms),   n* the first round with t_n* <= epsilon,   of it the looks until
        t_n* sqrt(looks / look) <= epsilon

    A real study whose allocations shrink with its arms never costs more, up to what the designs' tolerance, rounding
    and a dimension chosen anew after an elimination change. Other policies that eliminate are fed equal rewards without
    noise. Of policies that certify a candidate no worst rewards are known; theirs is the most expensive of 8 simulated
    studies of equal arms.

    With a guess: the mean of simulated studies, at least 8 (or `rehearsals`, if fewer), and more, up to that number,
    until the standard error is below 6 %. Rewards are normal with the declared sigma; bounded ones are low or high, the
    widest law with that mean.

    What constraints are on is guessed for nobody: with a guess it lies at the bounds, in the worst case halfway into
    the tolerances.

    Where measurements have blocks, the simulated ones have no effects, and studies with the same seeds are simulated
    without blocks too: so the forecast says what blocks cost where they help nothing.

    Of rows in blocks it is what `find_best` takes there, short list and all: see `forecast_of_rows`, for which `means`
    are coefficients. Nothing is a worst case then.

    Args:
        policy: the algorithm; or rows in blocks.
        means: a guess of the mean rewards, shape (K,), in the user's sign and unit; None: the worst case.
        minimize: small rewards are good; matters for a guess only.
        seed: decides the simulated rewards.
        max_pulls: a simulated study ends before passing it; None: 10 million for a policy that never stops by itself,
            else no limit that matters.
        max_cost: the same in money, for arms that have costs; None: no limit.
        rehearsals: most studies to simulate under a guess; fewer are quicker and less exact.
        asked: with rows in blocks, what `find_best` is asked: epsilon, delta, noise, norm_bound, ...
        most_rounds, most_seconds: simulating ends after so many rounds, all studies together, or so many seconds of
            processor time; then the forecast says "more than". `math.inf`: no limit. Where rounds end it, the forecast
            is the same on every machine.
        assume_scale: with noise of unknown scale a guess of its standard deviation, one number or one an arm, in reward
            units: made-up rewards are normal with it. The policy does not know it; the study rests on none of it.

    Raises:
        InvalidInput: the guess is not K finite numbers in the range of the noise, max_pulls or
            max_cost is negative, max_cost is given and nothing has a cost, rehearsals below 1, the policy asks for test
            items, nobody knows the scale of the noise and assume_scale is no guess of it, or it is given and not
            needed.
        ContractError, NotConverged: from the policy: its misspecification leaves no room, or a design is not solved.

    Source: ours. Cost: that of the policy's own computations, once for the worst case, 8 to 200 times for a guess.
    """
    if not isinstance(policy, Policy):
        rows: object = policy
        if not isinstance(rows, RowBlocks):
            raise InvalidInput(
                f"forecast was given a {type(policy).__name__}; give a policy, from make_policy for instance, or rows "
                "in blocks."
            )
        if minimize or max_cost is not None or assume_scale is not None:
            raise InvalidInput("rows in blocks have no costs, a known scale, and a guess in which large is good.")
        limits = {"rehearsals": rehearsals, "max_pulls": max_pulls}
        given: dict[str, Any] = {limit: value for limit, value in limits.items() if value is not None}
        return simulated_studies.forecast_of_rows(rows, means, seed=seed, **given, **asked)
    if asked:
        raise InvalidInput(f"{', '.join(asked)}: the policy knows what is asked; these are for rows in blocks.")
    if policy.traits.items is not None:
        raise InvalidInput(
            "what answers to test items will cost depends on how they go together, item by item, and means do not say "
            "that. Play it on scores that you have: simulate(policy, environments.recorded_answers(scores))."
        )
    drawn = noise_to_draw(policy.problem.noise, assume_scale, policy.problem.num_arms)
    if max_pulls is not None and max_pulls < 0:
        raise InvalidInput(f"max_pulls is {max_pulls}; it must be zero or more.")
    most = simulated_studies.MOST_STUDIES if rehearsals is None else rehearsals
    whole_number("rehearsals", most, least=1, meaning="a mean needs at least one simulated study.")
    pulls = max_pulls if max_pulls is not None else ENDLESS_PULLS if policy.traits.stops == "never" else MOST_PULLS
    prices, bare = Costs.of(policy), simulated_studies.unblocked(policy)
    budget = checked_budget(max_cost, prices)
    limit = simulated_studies.Limit(
        pulls, math.inf if budget is None else budget, prices, simulated_studies.Effort(most_rounds, most_seconds)
    )
    if means is None:
        both = [policy] if bare is None else [policy, bare]
        worst = [simulated_studies.worst_case(one, drawn, limit, seed=seed) for one in both]
        return _summary(policy, worst[:1], None, prices, worst[1:], drawn, over=bool(limit.effort.over))
    guess = _checked_guess(means, policy.problem.noise, policy.problem.num_arms)
    sign = -1.0 if minimize else 1.0
    runs = simulated_studies.simulate_studies(policy, guess, drawn, limit, most=most, seed=seed, sign=sign)
    others = []
    if bare is not None:
        others = simulated_studies.simulate_studies(bare, guess, drawn, limit, most=most, seed=seed, sign=sign)
    return _summary(policy, runs, -guess if minimize else guess, prices, others, drawn, over=bool(limit.effort.over))


def compare_settings(
    policies: Mapping[str, Policy[Any]],
    means: ArrayLike | None = None,
    *,
    minimize: bool = False,
    rehearsals: int = simulated_studies.MOST_STUDIES,
    **limits: Any,
) -> tuple[ForecastRow, ...]:
    """Forecasts side by side, a row for each policy; `limits` are other arguments of each `forecast`."""
    rows = []
    for name, policy in policies.items():
        try:
            worst, guess = forecast(policy, **limits), None
            if means is not None:
                guess = forecast(policy, means, minimize=minimize, rehearsals=rehearsals, **limits)
        except (ContractError, NotConverged) as refusal:
            rows.append(ForecastRow(name, None, None, str(refusal)))
        else:
            rows.append(ForecastRow(name, worst, guess))
    return tuple(rows)


def advice(rows: tuple[ForecastRow, ...], uniform: int | None) -> str:
    """What to take, in words: the cheapest credible row, and what it rests on."""
    if uniform is None:
        return "These rows answer different questions: choose what you want to know, not what costs least."
    known = [row for row in rows if row.believable and row.worst is not None]
    if not known:
        return "None of these is credible as it stands; read the notes, and change what they name."

    def cost(of: tuple[ForecastRow, Forecast]) -> tuple[float, bool]:
        return of[1].total if of[1].cost is None else of[1].cost, "norm_bound" in of[0].name

    pairs = [(row, chosen) for row in known if (chosen := row.guess or row.worst) is not None]
    best, chosen = min(pairs, key=cost)  # of equals the one that claims less
    under = "if your guess is right" if best.guess else "in the worst case"
    paid = f" for {chosen.cost_said} in money" if chosen.cost_said else ""
    sentence = f"Cheapest credible option: {best.name}. Expect {chosen.total_said} measurements in "
    sentence += f"{chosen.batches_said}{paid} {under}"
    if best.guess and best.worst:
        sentence += f", at most about {best.worst.total:,}"
        sentence += f" for {best.worst.cost_said}" if best.worst.cost_said else ""
    evenly = chosen.uniform_cost
    sentence += f"; uniform sampling needs {uniform:,}" + ("." if evenly is None else f" for {about(evenly)}.")
    if best.guess and (uniform if evenly is None else evenly) < cost((best, chosen))[0]:
        sentence += " Under this guess, to choose where to measure saves nothing."
    if "norm_bound" in best.name:
        sentence += " A norm bound is a claim about the world: give the smallest that you are sure of."
    return sentence


def noise_to_draw(noise: Noise, assume_scale: ArrayLike | None, num_arms: int) -> Noise:
    """What made-up measurements are drawn with: the noise itself, or normal noise of a guessed scale."""
    if known_scale(noise):
        if assume_scale is not None:
            raise InvalidInput(
                f"assume_scale is a guess for noise whose scale nobody knows, and noise {noise.spec!r} says it. Leave "
                "it out, or forecast with noise normal."
            )
        return noise
    if assume_scale is None:
        raise InvalidInput(
            "a forecast makes measurements up, and with noise normal nobody knows how much they vary. Guess it: "
            "--assume-scale SIGMA, in Python assume_scale=SIGMA (one number, or one for each candidate). The study "
            "itself needs no guess and rests on none."
        )
    drawn = SubGaussian(real_numbers("assume_scale", assume_scale).tolist())
    scales(drawn, num_arms)
    return drawn


def _checked_guess(means: ArrayLike, noise: Noise, num_arms: int) -> FloatArray:
    guess = np.array(real_numbers("means", means, wrong="the guess of the means is not an array of numbers"))
    if guess.shape != (num_arms,) or not np.isfinite(guess).all():
        raise InvalidInput(
            f"the guess of the means has shape {guess.shape}, {np.count_nonzero(np.isfinite(guess))} of its values "
            f"finite; give one finite number for each of the {num_arms} arms."
        )
    if noise.support is not None and (guess.min() < noise.support[0] or guess.max() > noise.support[1]):
        raise InvalidInput(
            f"guessed means go from {guess.min():g} to {guess.max():g}, beyond the range of the noise {noise.spec!r}: "
            "no such rewards exist. Correct the guess or declare another noise."
        )
    return guess


def _summary(
    policy: Policy[Any],
    runs: list[simulated_studies.SimulatedStudy],
    guess: FloatArray | None,
    prices: Costs | None,
    unblocked_runs: list[simulated_studies.SimulatedStudy],
    drawn: Noise,
    *,
    over: bool,
) -> Forecast:
    totals = np.array([run.total for run in runs], dtype=np.float64)
    batches = np.array([len(run.plans) for run in runs])
    rounds = _mean_rounds(policy, runs)
    uniform = uniform_pulls_for(policy.problem, largest_scale(drawn))
    norm, misfit = (None, 0.0) if guess is None else guess_in_embedding(policy, guess)
    doubts = Doubts(policy, tuple(runs), rounds, guess, norm, misfit)
    fatal, mild = doubts.fatal(), list(doubts.mild(round(totals.mean()), uniform))
    without = round(np.mean([run.total for run in unblocked_runs])) if unblocked_runs else None
    blocks = policy.traits.blocks
    if without is not None and blocks is not None:
        mild.append(forecast_price_of_blocks(blocks.name, round(totals.mean()), without, guess=guess is not None))
    if not known_scale(policy.problem.noise):
        mild.append(ASSUMED_SCALE)
    if constraints_of(policy.problem.question):
        mild.append(AT_THE_BOUNDS)
    return Forecast(
        rounds=rounds,
        total=round(totals.mean()),
        lowest=int(totals.min()),
        highest=int(totals.max()),
        batches=math.ceil(np.median(batches)),
        fewest_batches=int(batches.min()),
        most_batches=int(batches.max()),
        rehearsals=len(runs),
        guess=guess is not None,
        epsilon=policy.problem.epsilon,
        delta=policy.problem.delta,
        uniform=uniform,
        guess_norm=norm,
        warnings=(*fatal, *mild),
        believable=not fatal,
        without_blocks=without,
        at_least=True if over else None,
        **({} if prices is None else _money(runs, prices, uniform, policy.problem.num_arms)),
    )


def _money(
    runs: list[simulated_studies.SimulatedStudy], prices: Costs, uniform: int, num_arms: int
) -> dict[str, float]:
    """What a forecast says of money."""
    costs = [float(f"{run.cost:.12g}") for run in runs]
    evenly = np.full(num_arms, -(-uniform // num_arms))
    return {
        "cost": float(f"{math.fsum(costs) / len(costs):.12g}"),
        "lowest_cost": min(costs),
        "highest_cost": max(costs),
        "uniform_cost": prices.total(evenly, batches=1),
    }


def _mean_rounds(policy: Policy[Any], runs: list[simulated_studies.SimulatedStudy]) -> tuple[ForecastRound, ...]:
    """The rounds of all simulated studies as one list; a study that has ended keeps its total and its active arms."""
    traits = policy.traits
    longest = max(len(run.rounds) for run in runs)
    before, result = 0, []
    for k in range(longest):
        here = [run.rounds[k] for run in runs if k < len(run.rounds)]
        ended = [run.rounds[min(k, len(run.rounds) - 1)][1] for run in runs if run.rounds]
        total = round(sum(row.total_pulls for row in ended) / len(runs))
        plans = [plan for plan, _ in here]
        values = [tau for plan in plans if (tau := plan.design_value) is not None]
        result.append(
            ForecastRound(
                round=plans[0].round,
                dim=int(np.median([plan.dim for plan in plans])) if traits.uses_features else 0,
                value=float(np.mean(values)) if values else None,
                misspecification=float(np.mean([plan.misspecification for plan in plans])),
                bias=float(np.mean([_bias(traits, plan) for plan in plans])),
                accuracy=None if traits.rounds is None else traits.rounds.accuracy(plans[0].round),
                pulls=total - before,
                total=total,
                active=sum(len(row.active) for row in ended) / len(ended),
                reached=len(here) / len(runs),
            )
        )
        before = total
    return tuple(result)


def _bias(traits: Traits, plan: Plan) -> float:
    tau = plan.design_value
    if tau is None or not traits.narrows:
        return 2.0 * plan.misspecification
    return bias(plan.misspecification, tau, traits.slack)
