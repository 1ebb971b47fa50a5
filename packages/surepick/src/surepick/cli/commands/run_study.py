"""`surepick run-study`: close the loop with any program that prints one reward a line."""

import getpass
import signal
import socket
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

import typer

from surepick.cli import options
from surepick.cli.answers import certificate_json, print_answer
from surepick.cli.open_study import NameArgument, UrlArgument
from surepick.cli.options import opt
from surepick.cli.output import INTERRUPTED, end_by, note, print_json, say
from surepick.errors import InvalidInput
from surepick.policies.prices import checked_budget
from surepick.studies.logs.base import format_time, parse_duration
from surepick.studies.opening import open_study
from surepick.studies.program import BatchCommand, Command, Loop
from surepick.studies.recording import Receipt
from surepick.studies.study import Study
from surepick.text import money

USUAL = (
    "The next round would have passed {:,} measurements, the usual limit: 20 times what measuring every candidate "
    "equally often takes. More than that points at a mistake (in a result, the noise, the unit). The same command with "
    "--max-pulls N goes on."
)
SINGLE_BATCH, WHOLE_BATCH = 64, 1_000
NOTHING: Mapping[str, Any] = MappingProxyType({})


def run_study(
    url: UrlArgument,
    name: NameArgument,
    *,
    measure: str | None = opt(
        "Any program that prints one reward a line. It is run without a shell; {id}, {pulls} and {block} are "
        "replaced in its arguments. Without {pulls} it is called once a measurement. A non-zero exit is a failed "
        "one.",
        "'COMMAND {id} {pulls}'",
    ),
    measure_batch: str | None = opt(
        "In place of --measure, and faster where measuring is cheap: a program that reads ids from its "
        "standard input, one a line, and prints their rewards, one a line, in the same order.",
        "COMMAND",
    ),
    workers: int = opt("Calls at a time.", default=1, min=1),
    timeout: str | None = opt("Kill a call after this time: 90s, 10m."),
    retries: int = opt("Failed calls in a row for one candidate before giving up.", default=3, min=0),
    batch: int | None = opt("Most pulls in a lease; none: 64, or 1,000 in batches.", min=1),
    lease: str = opt("How long a lease lasts if this process dies.", default="1h"),
    worker: str | None = opt("Name of this loop, if several measure one study."),
    max_pulls: int | None = opt("Begin no round that would pass this many; none: 20 uniform plans.", min=0),
    max_cost: float | None = options.MAX_COST,
    unusual: Literal["warn", "accept", "refuse"] = opt(
        "Results that stand out: they count with a warning, without one, or the loop ends.", default="warn"
    ),
    output: options.FormatOption = options.Format.text,
) -> None:
    """Ask, measure with a program, tell, until it is certified.

    After a kill, the same command goes on. Exit code 3 if it ends without a certificate.
    """
    command = _program(measure, measure_batch, None if timeout is None else parse_duration(timeout))
    seconds = parse_duration(lease)
    study = open_study(url, name)
    settings: dict[str, Any] = {
        "slots": workers,
        "retries": retries,
        "batch": batch or (SINGLE_BATCH if measure_batch is None else WHOLE_BATCH),
        "lease": seconds,
        "most": max_pulls,
        "most_money": checked_budget(max_cost, study.prices),
        "unusual": unusual,
    }
    measure_until_done(study, name, command, worker, output, **settings)


def measure_until_done(
    study: Study,
    name: str,
    command: Command,
    worker: str | None,
    output: options.Format,
    *,
    said: Mapping[str, Any] = NOTHING,
    **settings: Any,
) -> None:
    """Close the loop of a study, and print what it came to, with more that is `said`; settings as in `Loop`."""
    mine = worker or study.worker_name(f"{getpass.getuser()}@{socket.gethostname()}")
    loop = Loop(study, command, mine, heard=_say_progress, idle=_say_who_has_the_rest, **settings)
    signal.signal(signal.SIGTERM, _interrupt)  # as Ctrl-C: the programs at work are ended too
    try:
        finished = loop.run()
    except KeyboardInterrupt:
        note("interrupted. Every result so far is stored; the same command goes on.")
        raise typer.Exit(INTERRUPTED) from None
    answer = study.certificate()
    if output is options.Format.json:
        print_json({"study": name, **said, **certificate_json(answer, study.progress())})
    else:
        print_answer(answer, study.policy, study)
        if not finished:
            progress, max_cost = study.progress(), loop.most_money
            over = max_cost is not None and (progress.cost_after or 0.0) > max_cost
            passed = f"--max-cost {money(max_cost or 0.0)}" if over else f"--max-pulls {loop.most or 0:,}"
            if not over and loop.most is None:
                say(USUAL.format(loop.limit or 0))
            else:
                say(f"The next round would have passed {passed}; the same command with more goes on.")
        if "promise" in said:
            say(str(said["promise"]))
    end_by(answer.verdict)


def _program(measure: str | None, measure_batch: str | None, timeout: float | None) -> Command:
    if measure is not None and measure_batch is None:
        return Command(measure, timeout)
    if measure_batch is not None and measure is None:
        return BatchCommand(measure_batch, timeout)
    raise InvalidInput(
        "give one program that measures: --measure 'COMMAND {id} {pulls}' for one that is called for each candidate, "
        "or --measure-batch COMMAND for one that reads many ids."
    )


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _say_progress(study: Study, receipt: Receipt) -> None:
    if receipt.closed:
        study.ask()
        say(str(study.progress()), err=True)


def _say_who_has_the_rest(study: Study) -> None:
    """Or a user would wait for hours and not know why."""
    out = [f"{part.pulls:,} with {part.worker} until {format_time(part.until)}" for part in study.progress().out]
    note(f"waiting for measurements that are out: {'; '.join(out)}. We measure here what has not come by then.")
