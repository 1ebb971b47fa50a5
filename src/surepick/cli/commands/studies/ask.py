"""`surepick ask`: what to measure next, and leases on it."""

from __future__ import annotations

from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from surepick.cli import options
from surepick.cli.open_study import NameArgument, UrlArgument, WorkerOption, command_line, resumed
from surepick.cli.output import note, print_json, print_table, say
from surepick.cli.program_options import ANSWERS, check_program, how_to_run, write_plan
from surepick.core.files import is_file
from surepick.errors import InvalidInput
from surepick.integrations.recognised import Program
from surepick.studies.batch import Batch
from surepick.studies.logs.base import AS_THEY_COME
from surepick.studies.logs.item_keys import ITEM
from surepick.studies.logs.leases import ANYONE, format_time, format_utc
from surepick.studies.progress import Progress, times
from surepick.studies.study import Study
from surepick.tables.reading import read_table
from surepick.tables.result_rows import KEY, row_keys
from surepick.tables.selection import row_ids
from surepick.tables.writing import check_suffix, write_table
from surepick.text import money

MOST_ROWS = 40
ID, REWARD = "id", "reward"


def ask(
    url: UrlArgument,
    name: NameArgument,
    *,
    max_pulls: Annotated[int | None, Option(help="Lease at most so many; none: all that are free.")] = None,
    worker: WorkerOption = None,
    lease: Annotated[str | None, Option(help="How long this worker has them: 30m, 2d; none: 8h.")] = None,
    out: Annotated[Path | None, Option(help="Lease, and write a .csv, .parquet or .jsonl file to fill in.")] = None,
    program: Annotated[
        Program | None, Option("--as", help="Make --out a folder with a file for this program for each candidate.")
    ] = None,
    trust_clock: Annotated[bool, Option("--trust-clock", help="Lease though the study has entries of later.")] = False,
    output: options.FormatOption = options.Format.text,
) -> None:
    """Show what to measure next.

    --worker, --max-pulls, --lease and --out lease the measurements: nobody else is given them before the lease has run
    out, and asking again gives what is left of it.
    """
    study = _checked(url, name, out, program)
    leased = any(value is not None for value in (max_pulls, worker, lease, out))
    if leased:
        plan = study.lease(max_pulls, worker=worker or None, duration=lease, trust_clock=trust_clock)
    else:
        plan = study.free_part()
    holder = ANYONE if plan is None or plan.lease is None else plan.lease.worker
    if plan is not None and max_pulls is not None and plan.total > max_pulls:
        note(f"{holder} holds these {plan.total:,} from before; --max-pulls limits new leases.")
    if leased and worker is None and holder == ANYONE:
        note(f"leased to {ANYONE!r}: two people who give no --worker are given the same measurements.")
    if out is not None and plan is not None and plan.total:
        _write_plan(plan, out, program, _beside(study))
    progress = study.progress()
    if output is options.Format.json:
        print_json(_plan_json(progress, plan) | _cost(study, progress, plan))
    elif plan is None:
        say(f"Nothing to measure. {name}: {progress}")
    else:
        _print_plan(progress, plan, _cost(study, progress, plan), out, [url, name], program, _beside(study))


def _checked(url: str, name: str, out: Path | None, program: Program | None) -> Study:
    """The study; what cannot be written is refused before anything is leased."""
    if program is not None and out is None:
        raise InvalidInput(f"--as {program} writes a file for each candidate; name a folder for them with --out.")
    if out is not None and program is None:
        check_suffix(out)
    study = resumed(url, name)
    if out is not None and program is None:
        _keep_rewards(study, out)
    elif out is not None and program is not None:
        check_program(program, study, out)
    return study


def _plan_json(progress: Progress, plan: Batch | None) -> dict[str, Any]:
    lease = None if plan is None else plan.lease
    keyed = () if plan is None or (lease is None and plan.items is None) else plan.keys()
    items = () if plan is None else plan.item_ids
    blocks = () if plan is None else plan.blocks
    return {
        "table": [] if plan is None else [{"id": name, "pulls": pulls} for name, pulls in plan.table()],
        "stopped": plan is None,
        "plan": progress.plan,
        "round": progress.round,
        "pulls": 0 if plan is None else plan.total,
        "out": sum(part.pulls for part in progress.out),
        "worker": None if lease is None else lease.worker,
        "lease_until": None if lease is None else format_utc(lease.until),
        "measurements": [
            {
                "id": name,
                **({ITEM: item} if item is not None else {}),
                **({"block": block} if block is not None else {}),
                "key": key,
            }
            for (name, key), item, block in zip_longest(keyed, items, blocks if keyed else ())
        ],
    }


def _cost(study: Study, progress: Progress, plan: Batch | None) -> dict[str, float]:
    """What these measurements cost, and the batch, as far as nothing of it is in or out; {} without costs."""
    if plan is None or study.prices is None:
        return {}
    begins = plan.number == progress.plan and progress.told == 0 and plan.total == progress.asked
    return {"cost": study.prices.total(plan.counts, batches=int(begins))}


def _print_plan(
    progress: Progress,
    plan: Batch,
    cost: dict[str, float],
    out: Path | None,
    study: list[str],
    program: Program | None,
    measured: tuple[str, ...],
) -> None:
    leases = [f"  {part.pulls:,} with {part.worker} until {format_time(part.until)}" for part in progress.out]
    if plan.total == 0:
        missing = sum(part.pulls for part in progress.out)
        for line in (f"Nothing is free now: the {missing:,} missing pulls are out.", *leases):
            say(line)
        if progress.judge == AS_THEY_COME and progress.told:
            say(f"To go on with the {times(progress.told, 'result')} that came: {command_line('judge', *study)}")
        return
    until = "" if plan.lease is None else f" for {plan.lease.worker}, until {format_time(plan.lease.until)}"
    paid = "".join(f", which cost {money(amount)}" for amount in cost.values())
    say(f"Round {progress.round}: {plan.total:,} measurements{paid}{until}")
    rows = [(candidate, f"{pulls:,} times" if pulls > 1 else "once") for candidate, pulls in plan.table()]
    print_table(("candidate", "measure"), rows[:MOST_ROWS], left=("candidate",))
    if plan.items is not None:
        names = list(dict.fromkeys(plan.item_ids))
        say(f"Items: {', '.join(names[:MOST_ROWS])}{', ...' if len(names) > MOST_ROWS else ''}")
    if len(rows) > MOST_ROWS:
        say(f"({MOST_ROWS} of {len(rows):,} candidates shown; --out FILE or --format json has all)")
    whose = () if plan.lease is None or plan.lease.worker == ANYONE else ("--worker", plan.lease.worker)
    then = command_line("tell", *study, "RESULTS" if out is None else str(out), *whose)
    if out is not None and program is not None:
        then = command_line("tell", *study, ANSWERS[program], "--as", program, *whose)
        for line in how_to_run(program, plan, out, then):
            say(line)
    elif out is None:
        beside = f", {plan.block_name}" if plan.blocks else ", item" if plan.items is not None else ""
        columns = f"id{beside} and {' and '.join([REWARD, *measured])}"
        say(f"Then: {then}   (a table with the columns {columns})")
    else:
        if plan.blocks:
            say(f"The column {plan.block_name} says what goes together; where yours are others, write what they are.")
        say(f"{out} has one row a measurement. Fill in {columns_named(measured)}, then: {then}")
    for line in leases:
        say(line)


def columns_named(beside: tuple[str, ...]) -> str:
    """What is to be filled in."""
    return f"the columns {', '.join([REWARD, *beside])}" if beside else f"the column {REWARD}"


def _beside(study: Study) -> tuple[str, ...]:
    """The columns of what is measured beside the reward."""
    return tuple(one.name for one in study.constraints)


def _write_plan(plan: Batch, out: Path, program: Program | None, beside: tuple[str, ...]) -> None:
    """A table with one row a measurement, whose rewards are to be filled in; or files for a program."""
    if program is not None:
        write_plan(program, plan, out)
        return
    ids, keys = zip(*plan.keys(), strict=True)
    items = {ITEM: plan.item_ids} if plan.items is not None else {}
    blocks = {plan.block_name: plan.blocks} if plan.blocks else {}
    measured = (REWARD, *beside)
    columns = {ID: ids, **items, **blocks, KEY: keys, **{name: [None] * len(ids) for name in measured}}
    write_table(out, columns, kinds={**dict.fromkeys(columns, str), **dict.fromkeys(measured, float)})


def _keep_rewards(study: Study, out: Path) -> None:
    """Refuse to write over a file with rewards that the study does not have.

    Raises:
        InvalidInput: the file is there, and has such rewards or is no table of results.
    """
    if not is_file(out):
        return
    table = read_table(out)
    if not {ID, KEY, REWARD} <= table.columns.keys():
        raise InvalidInput(f"{out} is there already, and is not a table that ask wrote; give another name.")
    filled = [row for row, cell in enumerate(table.text(REWARD)) if cell.strip() not in ("", "nan")]
    ids, keys = row_ids(table, ID), row_keys(table) or []
    lost = study.recorded([ids[row] for row in filled], [keys[row] for row in filled]).count(False)
    if lost:
        raise InvalidInput(
            f"{out} has results that were not told ({times(lost, 'row')}), and would be written over. Tell it first, "
            "or give another name."
        )
