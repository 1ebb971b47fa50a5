"""`surepick run`: rehearse on recorded measurements."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surepick.cli import options
from surepick.cli.answers import (
    advice_from,
    print_answer,
    print_certificate,
    print_picture,
    print_saving,
    print_truth,
    run_json,
)
from surepick.cli.options import opt
from surepick.cli.output import end_by, note, print_either, print_json, say
from surepick.cli.policy_options import PolicyOptions, declared_noise
from surepick.cli.tables import TableOptions
from surepick.core.files import write_whole
from surepick.core.values import whole_number
from surepick.environments import Environment, digits
from surepick.environments.environment import check_kind, check_recorded_repeats, doubts_of_noise, recorded_totals
from surepick.errors import InvalidInput
from surepick.linalg.rows import one_thread
from surepick.noise import SubGaussian
from surepick.policies.base import caveats_of, spec_of
from surepick.policies.dimension import uniform_pulls
from surepick.policies.prices import added
from surepick.policies.uniform import usual_limit
from surepick.simulation import Run, simulate
from surepick.studies.closed_loop import round_bars
from surepick.text import money

if TYPE_CHECKING:
    from surepick.tuning.noise_pilot import NoisePilot

MOST_PULLS = 10_000_000
USUAL = (
    "ended by the usual limit of {:,} measurements, 20 times what measuring every candidate equally often takes. More "
    "than that points at a mistake (in a result, the noise, the unit); --max-pulls N sets another limit."
)
USUAL_PULLS = 40  # of a pilot
UNKNOWN = SubGaussian(1.0)  # stands in the environment until the pilot is over; recorded rewards do not use it


def run(
    source: options.TableArgument,
    *,
    reward: str | None = options.REWARD,
    pulls: str | None = options.PULLS,
    sum_column: str | None = options.SUM,
    table: TableOptions,
    minimize: bool = options.MINIMIZE,
    asked: options.AskedGoal,
    noise: options.PilotOrNoiseOption = "",
    policy: PolicyOptions,
    seed: options.SeedOption = 0,
    max_pulls: int | None = opt("Give up before passing this many; none: 20 uniform plans.", min=0),
    max_cost: float | None = options.MAX_COST,
    certificate: Path | None = opt("Write the certificate to this JSON file."),
    report: Path | None = opt("Write the report to this .html file."),
    output: options.FormatOption = options.Format.text,
) -> None:
    """Rehearse on recorded measurements: which candidate is best, and what does it cost to know?

    Rows with the same id are repeats of one candidate; each simulated measurement draws one of them with replacement.
    """
    wanted = pilot_pulls(noise)
    assumed = UNKNOWN if wanted is not None else declared_noise(noise)
    _check_page(report)
    beside, totals = policy.measured_beside(), {"pulls": pulls, "sum": sum_column}
    reader = table.of([policy.single()[0]])
    environment = reader.recorded(source, reward, assumed, minimize=minimize, beside=beside, totals=totals)
    if not noise:
        check_kind(environment)
    goal = asked.settled(advice_from(environment, declared=wanted is None), budget=policy.budget)
    pilot = None
    if wanted is not None:
        allowed = MOST_PULLS if max_pulls is None else max_pulls
        pilot = _affordable_pilot(environment, wanted, goal.delta, seed, allowed, max_cost)
        environment = replace(environment, noise=pilot.noise)
        max_pulls = None if max_pulls is None else max_pulls - pilot.pulls
        max_cost = None if max_cost is None else added(max_cost, -pilot.cost)
    told: dict[str, Any] = {"rehearsal_seed": seed, "more": reader.preference(source, environment.arms)}
    chosen = policy.chosen(environment.arms, environment.noise, goal, **told)
    check_recorded_repeats(environment, features=chosen.traits.uses_features)
    note(*reader.not_used, *caveats_of(chosen), *doubts_of_noise(environment))
    most = max_pulls if max_pulls is not None else usual_limit(chosen, recorded_totals(environment)) or MOST_PULLS
    with one_thread(), round_bars() as show:
        finished = simulate(chosen, environment, seed=seed, max_pulls=most, max_cost=max_cost, on_plan=show)
        if certificate is not None:
            from surepick.certificates.document import write_certificate  # noqa: PLC0415 (audit, signatures)

            write_certificate(finished.study, certificate)
        if report is not None:
            from surepick.reports.study.page import write_report  # noqa: PLC0415 (jinja2: an extra)

            write_report(finished.study, report, source=Path(source).name)
    if max_pulls is None and finished.ended_by == "pulls":
        note(USUAL.format(most))
    if pilot is not None:
        finished = _with_pilot(finished, pilot)
    if output is options.Format.json:
        spent = {} if pilot is None else {"pilot_pulls": pilot.pulls}
        print_json({**run_json(finished), **spent, "policy": spec_of(chosen)})
    else:
        say("A rehearsal: draws again from your rows. To judge the rows that you have: surepick analyze.")
        if environment.arms.features_said:
            say(environment.arms.features_said)
        if pilot is not None:
            say(str(pilot))
        print_answer(finished.certificate, chosen, finished.study)
        print_truth(finished, environment, finished.certificate.epsilon)
        if policy.names_nothing and finished.pulls:
            how: dict[str, Any] = {"minimize": minimize, "beside": beside, "totals": totals}
            again = partial(table.with_features.recorded, source, reward, assumed, **how)
            print_saving(lambda: again().arms, environment.num_arms, environment.noise, goal, finished.study)
    end_by(finished.verdict)


def _check_page(report: Path | None) -> None:
    if report is not None:
        from surepick.cli.commands.certificate import check_page  # noqa: PLC0415 (verification)

        check_page(report)


def pilot_pulls(text: str) -> int | None:
    """The measurements that "pilot" or "pilot:PULLS" asks for; None when the text declares a noise."""
    kind, colon, rest = text.strip().partition(":")
    if kind != "pilot":
        return None
    if not colon:
        return USUAL_PULLS
    try:
        number = float(rest)
    except ValueError as error:
        raise InvalidInput(f"noise {text!r} is not understood. Write pilot, or pilot:PULLS, e.g. pilot:100.") from error
    return whole_number("the pilot", number, least=2, meaning="measurements, two or more of each candidate it takes.")


def _affordable_pilot(
    environment: Environment, pulls: int, delta: float, seed: int, budget: int, money_left: float | None
) -> NoisePilot:
    """The pilot, if the budgets of pilot and study together allow it."""
    if pulls > budget:
        raise InvalidInput(
            f"the pilot takes {pulls:,} measurements and --max-pulls is {budget:,}; nothing would be left to find "
            "the best candidate with. Allow more, or take a smaller pilot, e.g. --noise pilot:10."
        )
    from surepick.tuning.noise_pilot import take_pilot  # noqa: PLC0415 (where it is asked for)

    pilot = take_pilot(environment, pulls, delta=delta, seed=seed)
    if money_left is not None and pilot.cost > money_left:
        raise InvalidInput(
            f"the pilot costs {money(pilot.cost)} and --max-cost is {money(money_left)}; nothing would be left to find "
            "the best candidate with. Allow more, or take a smaller pilot, e.g. --noise pilot:10."
        )
    return pilot


def _with_pilot(run: Run, pilot: NoisePilot) -> Run:
    """The same study with the pilot's measurements in every count of measurements."""
    answer = run.certificate
    rounds = tuple(replace(row, total_pulls=row.total_pulls + pilot.pulls) for row in run.rounds)
    reason = answer.reason
    if answer.verdict == "budget-exhausted":
        reason += f" The pilot had taken {pilot.pulls:,} pulls of the budget before."
    cost = None if answer.cost is None else added(answer.cost, pilot.cost)
    return replace(
        run,
        pulls=run.pulls + pilot.pulls,
        cost=cost,
        oracle_pulls=None if run.oracle_pulls is None else run.oracle_pulls + pilot.pulls,
        rounds=rounds,
        certificate=replace(answer, pulls=answer.pulls + pilot.pulls, cost=cost, reason=reason, rounds=rounds),
    )


# --- `surepick demo`: the main job on real handwritten digits, without a download.

NORM_BOUND = "2"
TASTINGS = "coffee.csv"


def demo(
    *,
    epsilon: float = opt(options.EPSILON, default=0.1),
    delta: options.DeltaOption = 0.05,
    seed: options.SeedOption = 0,
    table: Path | None = opt("Write a small table to try commands on, made-up tastings of coffee, and do no more."),
    output: options.FormatOption = options.Format.text,
) -> None:
    """Find a seven among 60 real handwritten digits under heavy noise (no download)."""
    if table is not None:
        write_whole(table, files("surepick.environments").joinpath(TASTINGS).read_bytes())
        after = f"surepick run {table} --id recipe --reward taste --noise subgaussian:0.8 --epsilon 1"
        print_either(output, {"file": str(table)}, f"{table}: 45 tastings of 9 recipes. Next: {after}")
        return
    goal, environment = options.Goal(epsilon, delta), digits(seed)
    policy = PolicyOptions(norm_bound=NORM_BOUND).chosen(environment.arms, environment.noise, goal)
    if output is options.Format.text:
        say(
            f"{environment.num_arms} images of handwritten digits. Measuring an image gives its worth plus noise of "
            "standard deviation 1: a 7 is worth 1, a 1, 2 or 9 is worth 0.8, any other digit 0.5. The policy sees the "
            f"pixels and the noisy measurements. Asked: an image whose worth is within {goal.epsilon:g} of the best."
        )
        say()
    with one_thread(), round_bars() as show:
        run = simulate(policy, environment, seed=seed, on_plan=show)
    uniform = uniform_pulls(environment.num_arms, sigma=1.0, epsilon=goal.epsilon, delta=goal.delta)
    if output is options.Format.json:
        print_json({**run_json(run), "uniform_pulls": uniform, "policy": spec_of(policy)})
    else:
        print_picture(run.study.candidates())
        print_certificate(run.certificate, policy.problem)  # it assumes nothing of the images: no class is read
        say(_against_uniform(run.pulls, uniform))
        print_truth(run, environment, goal.epsilon)
    end_by(run.verdict)


def _against_uniform(pulls: int, uniform: int) -> str:
    sentence = f"Uniform sampling would need {uniform:,} for the same certificate"
    if uniform >= pulls:
        return f"{sentence}, {uniform / max(pulls, 1):.1f} times as many."
    return f"{sentence}: fewer, because choosing where to measure gains nothing for so coarse an epsilon."
