"""`surepick run`: rehearse on recorded measurements."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console

from surepick.certificates.document import write_certificate
from surepick.cli import options
from surepick.cli.commands.report import check_page
from surepick.cli.format_certificate import print_certificate, print_registration, print_rounds, run_json
from surepick.cli.output import NOT_CERTIFIED, Text, print_json
from surepick.cli.pilot import TO_BE_FOUND, Pilot, pilot_pulls, spread_doubts, take_pilot, with_pilot
from surepick.cli.policy_options import chosen_policy, norm_options
from surepick.cli.progress import round_bars
from surepick.cli.table_options import reads_tables
from surepick.core.plan import Plan
from surepick.environments import Environment, RecordedRewards, table
from surepick.errors import InvalidInput
from surepick.linalg.blas_threads import one_thread
from surepick.noise import PilotGaussian, parse_noise, scales
from surepick.policies.base import Policy, spec_of
from surepick.simulation import Run, simulate
from surepick.studies import Study
from surepick.studies.registration import registration_code
from surepick.tables import ReadOptions


@reads_tables
def run(
    source: options.TableArgument,
    reward: Annotated[str | None, typer.Option("--reward", help="Column that holds the measurements.")] = None,
    name: options.IdOption = None,
    features: options.FeaturesOption = None,
    epsilon: options.EpsilonOption = 0.1,
    delta: options.DeltaOption = 0.05,
    noise: options.PilotOrNoiseOption = "",
    policy: options.PolicyOption = None,
    norm_bound: options.NormBoundOption = None,
    norm_estimate: options.NormEstimateOption = None,
    gamma: options.GammaOption = None,
    kernel: options.KernelOption = None,
    expansion: options.ExpansionOption = None,
    misspecification: options.MisspecificationOption = None,
    gap_bound: options.GapBoundOption = None,
    minimize: Annotated[bool, typer.Option("--minimize", help="Small measurements are good.")] = False,
    standardize: options.StandardizeOption = False,
    intercept: options.InterceptOption = False,
    *,
    reading: ReadOptions,
    seed: options.SeedOption = 0,
    max_pulls: options.MaxPullsOption = 10_000_000,
    certificate: Annotated[
        Path | None, typer.Option("--certificate", help="Write the certificate to this JSON file: surepick verify.")
    ] = None,
    report: Annotated[Path | None, typer.Option("--report", help="Write the report to this .html file.")] = None,
    output: options.FormatOption = options.Format.text,
) -> None:
    """Rehearse on recorded measurements: which candidate is best, and what would finding it out have cost?

    Rows with the same id are repeats of one candidate; each simulated measurement draws one of them with replacement.
    """
    if not noise:
        raise InvalidInput(
            "say what is known of a single measurement with --noise: bernoulli, bounded:LOW:HIGH, or subgaussian:SIGMA "
            "(normal noise of standard deviation SIGMA, or at least half the range of any candidate's repeats). "
            "Every certificate rests on it. If it is normal and SIGMA is not known, measure it: --noise pilot."
        )
    if report is not None:
        check_page(report)
    norm = norm_options(norm_bound, norm_estimate)
    asked = pilot_pulls(noise)
    environment = table(
        source,
        id=name,
        reward=reward,
        features=features,
        noise=parse_noise(noise) if asked is None else TO_BE_FOUND,
        minimize=True if minimize else None,
        standardize=standardize,
        intercept=intercept,
        **reading,
    )
    pilot = None
    if asked is not None:
        pilot = take_pilot(environment, asked, delta=delta, seed=seed, max_pulls=max_pulls)
        environment = replace(environment, noise=pilot.noise)
        max_pulls -= pilot.pulls
    chosen = chosen_policy(
        environment.arms,
        environment.noise,
        policy,
        epsilon=epsilon,
        delta=delta,
        **norm,
        misspecification=misspecification,
        gap_bound=gap_bound,
        gamma=gamma,
        kernel=kernel,
        expansion=expansion,
    )
    warn((*chosen.traits.caveats, *_doubts(environment)))
    rehearsed = [Study(environment.arms, chosen, minimize=environment.minimize)]
    with one_thread(), round_bars() as show:

        def follow(plan: Plan, study: Study) -> None:
            rehearsed[0] = study
            show(plan, study)

        finished = simulate(chosen, environment, seed=seed, max_pulls=max_pulls, on_plan=follow)
        if certificate is not None:
            write_certificate(rehearsed[0], certificate)
        if report is not None:
            from surepick.reports.study.page import write_report  # noqa: PLC0415 (jinja2: an extra)

            write_report(rehearsed[0], report)
    if pilot is not None:
        finished = with_pilot(finished, pilot)
    _print(finished, environment, chosen, pilot, output)
    if finished.verdict != "certified":
        raise typer.Exit(NOT_CERTIFIED)


def _print(
    finished: Run, environment: Environment, chosen: Policy[Any], pilot: Pilot | None, output: options.Format
) -> None:
    code = registration_code(environment.arms, chosen, minimize=environment.minimize)
    if output is options.Format.json:
        spent = {} if pilot is None else {"pilot_pulls": pilot.pulls}
        print_json({**run_json(finished), **spent, "policy": spec_of(chosen), "registration": code})
        return
    if pilot is not None:
        Console(highlight=False, soft_wrap=True).print(Text(pilot.sentence))
    print_rounds(finished.rounds, chosen)
    print_certificate(finished.certificate, chosen.problem.noise)
    print_registration(code)
    print_truth(finished, environment, chosen)


def _doubts(environment: Environment) -> list[str]:
    """What the recorded measurements say against the declared noise."""
    if not isinstance(environment.law, RecordedRewards):
        return []
    if isinstance(environment.noise, PilotGaussian):
        return spread_doubts(environment, environment.noise)
    half, declared = environment.law.half_ranges, scales(environment.noise, environment.num_arms)
    if not half.any():
        return ["every candidate has one measured value, so repeating a measurement gives the same number: no noise."]
    worst = int(np.argmax(half - declared))
    if half[worst] <= declared[worst]:
        return []
    return [
        f"the repeats of {environment.arms.ids[worst]} span {2 * half[worst]:.4g}; half of that is more than the "
        f"declared noise scale {declared[worst]:.4g}. If that is too small, the certificate is worthless."
    ]


def warn(sentences: Iterable[str]) -> None:
    """Print what a user should know before spending, on standard error."""
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    for sentence in sentences:
        console.print(Text.assemble(("note: ", "bold yellow"), sentence))


def print_truth(run: Run, environment: Environment, policy: Policy[Any]) -> None:
    """What a rehearsal can say and a real study cannot: whether the answer is right."""
    right = environment.is_epsilon_best(run.arm, policy.problem.epsilon)
    best = environment.arms.ids[environment.best]
    sentence = (
        f"The truth is known here: the best is {best} with mean {environment.means[environment.best]:.6g}; "
        f"{run.best_arm} has mean {environment.means[run.arm]:.6g}, {run.true_gap:.4g} worse. "
    )
    if right:
        sentence += "The answer is right."
    elif run.verdict == "certified":
        sentence += "The answer is WRONG: bad luck, or more likely something above that it rests on is false here."
    else:
        sentence += "The answer is WRONG, and it was not certified."
    Console(highlight=False, soft_wrap=True).print(Text(sentence))
