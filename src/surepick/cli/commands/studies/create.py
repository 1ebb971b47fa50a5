"""`surepick create`: a new study in a database."""

from __future__ import annotations

from typing import Annotated, Any

from typer import Option

from surepick.blocks.rows import RowBlocks
from surepick.cli import options
from surepick.cli.open_study import NameArgument, UrlArgument, command_line
from surepick.cli.output import note, print_json, say
from surepick.cli.policy_options import PolicyOptions, declared_noise
from surepick.cli.table_options import TableOptions
from surepick.cli.tolerances import advice_for
from surepick.errors import InvalidInput
from surepick.policies.base import caveats_of, spec_of
from surepick.studies.addresses import is_http
from surepick.studies.logs.base import AS_THEY_COME, CLOSED_ROUNDS
from surepick.studies.opening import create_study
from surepick.studies.registration import subject_of

SHOWN = 3  # candidates whose names a new study shows


def create(
    url: UrlArgument,
    name: NameArgument,
    *,
    arms: Annotated[
        str, Option(metavar="TABLE", help="The candidates, one row each; of a folder of files, too many for memory.")
    ],
    in_blocks: Annotated[
        bool, Option("--in-blocks", help="Read --arms in blocks, as of a folder; a short list is looked for first.")
    ] = False,
    table: TableOptions,
    reward: Annotated[
        str | None, Option(help="What tables of results call the column of the measurements; none: reward.")
    ] = None,
    minimize: options.MinimizeOption = False,
    asked: options.AskedGoal,
    noise: options.NoiseOption = "",
    policy: PolicyOptions,
    seed: Annotated[int | None, Option(min=0, help="For policies that draw at random.")] = None,
    judge: options.JudgeOption = options.JudgeChoice.closed_rounds,
    surplus: options.SurplusOption = None,
    output: options.FormatOption = options.Format.text,
) -> None:
    """Start a study in a database: candidates, noise, and the goal.

    The database is made if it is absent. Then repeat until it is done: ask what to measure, tell the results.
    """
    assumed = declared_noise(noise, "Every certificate rests on it.")
    when = AS_THEY_COME if judge is options.JudgeChoice.as_they_come else CLOSED_ROUNDS
    reader = table.of([policy.single()[0]])
    found = reader.candidates(arms, in_blocks=in_blocks, reward=reward)
    if isinstance(found, RowBlocks):
        _check_list(url, when)
    number = found.num_rows if isinstance(found, RowBlocks) else found.num_arms
    goal = asked.settled(advice_for(number, assumed))
    chosen = policy.chosen(found, assumed, goal, seed=seed)
    candidates, _ = subject_of(chosen)
    spec = spec_of(chosen) or {}
    note(*reader.not_used, *caveats_of(chosen))
    named: dict[str, Any] = {"id_column": table.id, "reward_column": reward}
    named["surplus"] = None if surplus is None else surplus.value
    study = create_study(url, name, candidates, chosen, minimize=minimize, judge=when, **named)
    if output is options.Format.json:
        answer = {"study": name, "candidates": candidates.num_arms, "policy": spec, "next": study.progress().asked}
        print_json({**answer, "registration": study.registration})
        return
    names = ", ".join(candidates.ids[:SHOWN]) + (", ..." if candidates.num_arms > SHOWN else "")
    words = policy.asked(goal, by_segment=candidates.segments is not None)
    say(f"Study {name!r}: {number:,} candidates, policy {spec['name']}. Asked: {words}")
    if isinstance(found, RowBlocks):
        say("It looks for a short list first; surepick shortlist then makes the study of that list.")
    say(f"Candidates: {names}")
    if candidates.features_said:
        say(f"{candidates.features_said}")
    say(f"{name}: {study.progress()}")
    later = ": surepick verify --registered CODE then refuses a certificate of any other promise."
    if isinstance(found, RowBlocks):
        later = ". It stands for the whole question; the study of the short list has one of its own."
    say(
        f"Registration code: {study.registration}. Keep it outside of the database, for instance in the protocol{later}"
    )
    if candidates is found:
        say("This is the first round only; surepick forecast says how many measurements all rounds may take.")
    say(f"Next: {command_line('ask', url, name)}")


def _check_list(url: str, judge: str) -> None:
    """Refuse what a study of a list in files cannot do, before the files are gone through."""
    if is_http(url):
        raise InvalidInput("a server does not see the files of a long list: make the study on the database itself.")
    if judge == AS_THEY_COME:
        raise InvalidInput("a list is shortened after whole rounds: leave out --judge as-they-come.")
