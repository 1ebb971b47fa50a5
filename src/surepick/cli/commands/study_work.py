"""`surepick ask`, `tell`, `abandon` and `close`: the daily work on a durable study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.table import Table as Shown

from surepick.cli import options
from surepick.cli.commands.studies import NameArgument, UrlArgument, check_extra, command_line
from surepick.cli.output import Text, note, noted, print_json, say
from surepick.cli.table_options import reads_tables
from surepick.core.files import is_file
from surepick.errors import InvalidInput
from surepick.studies.batch import Batch
from surepick.studies.logs.base import INDEPENDENT_OF_VALUE
from surepick.studies.logs.leases import ANYONE, format_time, format_utc
from surepick.studies.progress import Progress, times
from surepick.studies.recording import Receipt
from surepick.studies.study import Study
from surepick.tables.reading import ReadOptions, read_table
from surepick.tables.selection import column_names, complete_rows, row_ids
from surepick.tables.table import Table
from surepick.tables.writing import write_table

MOST_ROWS = 40
ID, KEY, REWARD = "id", "key", "reward"
FAILED = "failed"  # in place of a reward: the measurement gave none and is asked again
WorkerOption = Annotated[str | None, typer.Option("--worker", help="Who measures, e.g. lab-2.")]


def resumed(url: str, name: str) -> Study:
    """The study, without computing anything again."""
    check_extra()
    from surepick.studies.database import resume_study  # noqa: PLC0415 (SQLAlchemy: heavy, and an extra)

    with noted():
        return resume_study(url, name)


def ask(
    url: UrlArgument,
    name: NameArgument,
    max_pulls: Annotated[
        int | None, typer.Option("--max-pulls", help="Lease at most so many measurements; none: all that are free.")
    ] = None,
    worker: WorkerOption = None,
    lease: Annotated[
        str | None, typer.Option("--lease", help="How long they are this worker's: 30m, 2d; none: 8h.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Write them to a CSV, Parquet or JSON-lines file, one row each, with keys; leases."),
    ] = None,
    trust_clock: Annotated[
        bool,
        typer.Option("--trust-clock", help="This machine's clock is right, though entries are from later than now."),
    ] = False,
    output: options.FormatOption = options.Format.text,
) -> None:
    """What to measure next. With --worker, --max-pulls, --lease or --out the measurements are leased: nobody else is
    given them before the lease has run out, and asking again gives what is left of it.
    """
    if out is not None:
        check_table_name(out)  # before anything is leased
    study = resumed(url, name)
    if out is not None:
        _keep_rewards(study, out)
    leased = any(value is not None for value in (max_pulls, worker, lease, out))
    if leased:
        plan = study.ask(max_pulls, worker=worker or ANYONE, lease=lease, trust_clock=trust_clock)
    else:
        plan = study.free_part()
    if plan is not None and max_pulls is not None and plan.total > max_pulls:
        note(f"{worker or ANYONE} holds these {plan.total:,} from before; --max-pulls limits what is leased anew.")
    if leased and worker is None:
        note(f"leased to {ANYONE!r}: two people who give no --worker are given the same measurements.")
    if out is not None and plan is not None and plan.total:
        ids, keys = zip(*plan.keys(), strict=True)
        write_table(
            out, {"id": ids, "key": keys, "reward": [None] * len(ids)}, kinds={"id": str, "key": str, "reward": float}
        )
    if output is options.Format.json:
        print_json(_plan_json(study, plan))
    else:
        _print_plan(study, plan, url, name, out)


def check_table_name(path: Path) -> None:
    """Refuse a file of a kind that no table is written as."""
    if path.suffix not in (".csv", ".parquet", ".jsonl"):
        raise InvalidInput(f"{path} is no table that can be written; its name must end in .csv, .parquet or .jsonl.")


def _keep_rewards(study: Study, out: Path) -> None:
    """Refuse to write over a file whose rewards were not told."""
    if not is_file(out):
        return
    with noted():
        table = read_table(out)
    if not {ID, KEY, REWARD} <= table.columns.keys():
        raise InvalidInput(f"{out} is there already, and is not a table that ask wrote; give another name.")
    filled = [row for row, cell in enumerate(table.text(REWARD)) if cell.strip() not in ("", "nan")]
    ids, keys = row_ids(table, ID), _keys(table, KEY) or []
    lost = study.recorded([ids[row] for row in filled], [keys[row] for row in filled]).count(False)
    if lost:
        raise InvalidInput(
            f"{out} has results that were not told ({times(lost, 'row')}), and would be written over. Tell it first, "
            "or give another name."
        )


def _plan_json(study: Study, plan: Batch | None) -> dict[str, Any]:
    progress = study.progress()
    answer: dict[str, Any] = {
        "table": [] if plan is None else [{"id": name, "pulls": pulls} for name, pulls in plan.table()],
        "stopped": plan is None,
        "plan": progress.plan,
        "round": progress.round,
        "pulls": 0 if plan is None else plan.total,
        "out": sum(part.pulls for part in progress.out),
        "worker": None,
        "lease_until": None,
        "measurements": [],
    }
    if plan is not None and plan.lease is not None:
        keyed = plan.keys()
        answer |= {
            "worker": plan.lease.worker,
            "lease_until": format_utc(plan.lease.until),
            "measurements": [dict(zip(("id", "key"), pair, strict=True)) for pair in keyed],
        }
    return answer


def _print_plan(study: Study, plan: Batch | None, url: str, name: str, out: Path | None) -> None:
    console = Console(highlight=False, soft_wrap=True)
    progress = study.progress()
    if plan is None:
        console.print(Text(f"Nothing to measure. {name}: {progress}"))
        return
    if plan.total == 0:
        console.print(
            Text(f"Nothing is free now: the {sum(part.pulls for part in progress.out):,} missing pulls are out.")
        )
        _print_out(progress, console)
        return
    until = "" if plan.lease is None else f" for {plan.lease.worker}, until {format_time(plan.lease.until)}"
    console.print(Text(f"Round {progress.round}: {plan.total:,} measurements{until}"))
    rows = plan.table()
    table = Shown(box=box.SIMPLE_HEAD)
    table.add_column("candidate", no_wrap=True)
    table.add_column("measure", justify="right", no_wrap=True)
    for candidate, pulls in rows[:MOST_ROWS]:
        table.add_row(Text(candidate), f"{pulls:,} times" if pulls > 1 else "once")
    console.print(table)
    if len(rows) > MOST_ROWS:
        console.print(Text(f"({MOST_ROWS} of {len(rows):,} candidates shown; --out FILE or --format json has all)"))
    whose = () if plan.lease is None or plan.lease.worker == ANYONE else ("--worker", plan.lease.worker)
    then = command_line("tell", url, name, "RESULTS" if out is None else str(out), *whose)
    if out is None:
        console.print(Text(f"Then: {then}   (a table with the columns id and reward)"))
    else:
        console.print(Text(f"{out} has one row a measurement. Fill in the column reward, then: {then}"))
    _print_out(progress, console)


def _print_out(progress: Progress, console: Console) -> None:
    for part in progress.out:
        console.print(Text(f"  {part.pulls:,} with {part.worker} until {format_time(part.until)}"))


@reads_tables
def tell(
    url: UrlArgument,
    name: NameArgument,
    results: Annotated[
        str, typer.Argument(metavar="RESULTS", help="One row a measurement: a CSV, Excel, Parquet, Arrow or JSON file.")
    ],
    id_column: Annotated[str, typer.Option("--id", help="Column(s) that name the candidate, as in create.")] = ID,
    reward: Annotated[str, typer.Option("--reward", help="Column of the measurements.")] = REWARD,
    key: Annotated[
        str | None, typer.Option("--key", help='Column of keys: a key counts once. None: "key", if there is one.')
    ] = None,
    worker: WorkerOption = None,
    plan: Annotated[
        int | None, typer.Option("--plan", help="The plan that they belong to, if keys and worker do not say it.")
    ] = None,
    as_prior: Annotated[
        bool, typer.Option("--as-prior", help="Keep them apart: they never enter an estimate or a certificate.")
    ] = False,
    *,
    reading: ReadOptions,
    output: options.FormatOption = options.Format.text,
) -> None:
    """Tell what was measured, in any order and in any part.

    A row without a reward is left out (it is still to be measured); one with the word "failed" is asked again. A table
    with the columns pulls and sum (and squares) in place of the reward has totals.
    """
    table = read_table(results, **reading)
    study = resumed(url, name)
    receipt, empty = _told(study, table, id_column, reward, key, worker=worker, plan=plan, as_prior=as_prior)
    if receipt.closed or study.progress().complete:  # complete: whoever completed it was killed before it was judged
        study.ask()  # the next plan, so that asking for it is quick
    progress = study.progress()
    if output is options.Format.json:
        counted = {
            field: getattr(receipt, field) for field in ("plan", "counted", "repeated", "late", "prior", "failed")
        }
        print_json({**counted, "empty": empty, "closed": receipt.closed, "stopped": study.stopped})
        return
    for line in _receipt_lines(receipt, empty):
        say(line)
    if receipt.late and receipt.plan and not receipt.counted:
        say(f"If they are of the open round, tell them with --plan {receipt.plan} and keys of their own.")
    say(f"{name}: {progress}")


def _told(
    study: Study,
    table: Table,
    id_column: str,
    reward: str,
    key: str | None,
    *,
    worker: str | None,
    plan: int | None,
    as_prior: bool,
) -> tuple[Receipt, int]:
    """(what became of the rows, how many had no reward)."""
    totals = reward not in table.columns and {"pulls", "sum"} <= table.columns.keys()
    if table.drop_missing:
        table = complete_rows(table, column_names(table, id_column), ("pulls", "sum") if totals else (reward,))
    ids = row_ids(table, id_column, known=set(study.ids))
    keys = _keys(table, key)
    if totals:
        if as_prior:
            raise InvalidInput("--as-prior takes single measurements, not totals.")
        squares = table.numbers("squares") if "squares" in table.columns else None
        return (
            study.tell_totals(
                ids, table.numbers("pulls"), table.numbers("sum"), squares, keys, worker=worker, plan=plan
            ),
            0,
        )
    told, failed, empty = _sorted_rows(table, reward)
    rest = sorted(set(range(table.num_rows)) - set(told))
    rewards = table.without(rest).numbers(reward).tolist()

    def of(rows: list[int]) -> tuple[list[str], list[str | None] | None]:
        return [ids[row] for row in rows], None if keys is None else [keys[row] for row in rows]

    if as_prior:
        names, labels = of(told)
        return study.tell_prior(names, rewards, labels, worker=worker), empty
    names, labels = of(told)
    gone, gone_keys = of(failed)
    pairs = list(zip(gone, gone_keys or [None] * len(gone), strict=True))
    return study.tell(names, rewards, labels, worker=worker, plan=plan, failed=pairs), empty


def _keys(table: Table, key: str | None) -> list[str | None] | None:
    """The keys of the rows, None for a row without; None when no column has them."""
    if key is None and KEY not in table.columns:
        return None
    cells, texts = table.column(key or KEY), table.text(key or KEY)
    if not isinstance(cells, tuple):  # a column of numbers, or one of a Parquet or JSON-lines file with nothing in it
        return [None if np.isnan(cell) else text for cell, text in zip(cells, texts, strict=True)]
    return [text if text.strip() else None for text in texts]


def _sorted_rows(table: Table, reward: str) -> tuple[list[int], list[int], int]:
    """(rows with a reward, rows that failed, number of rows without one).

    Raises:
        InvalidInput: a cell is neither a number, nor empty, nor "failed"; its row is named.
    """
    cells = table.column(reward)
    if not isinstance(cells, tuple):
        filled = np.flatnonzero(~np.isnan(cells)).tolist()
        return filled, [], len(cells) - len(filled)
    failed = [row for row, cell in enumerate(cells) if cell.strip().lower() == FAILED]
    empty = [row for row, cell in enumerate(cells) if not cell.strip()]
    told = sorted(set(range(len(cells))) - set(failed) - set(empty))
    bad = [row for row in table.bad_rows(reward) if row not in set(failed) | set(empty)]
    if bad and not table.are_percentages(reward, bad):  # these have their own words
        raise InvalidInput(
            f"{table.source}, row {table.line_of(bad[0])}: the reward {cells[bad[0]]!r} is not a number ({len(bad)} "
            f"such rows). Leave a cell empty that is still to be measured, and write {FAILED} where a measurement gave "
            "no result."
        )
    return told, failed, len(empty)


def _receipt_lines(receipt: Receipt, empty: int) -> list[str]:
    parts = (
        (receipt.counted, "counted"),
        (receipt.repeated, "told before: each counts once"),
        (receipt.late, "late: their round is closed; kept, and not used"),
        (receipt.prior, "kept apart as prior: they enter no estimate and no certificate"),
        (receipt.failed, "failed: asked again"),
        (empty, "without a reward: left out, still to be measured"),
    )
    lines = [f"{number:,} result{'s' * (number != 1)} {what}." for number, what in parts if number]
    return lines or ["Nothing was told: the table has no result."]


def abandon(
    url: UrlArgument,
    name: NameArgument,
    reason: Annotated[
        str,
        typer.Option(
            "--reason",
            help=f"Why. {INDEPENDENT_OF_VALUE}: which results are missing has nothing to do with their values; with "
            "any other reason the answer cannot be certified.",
        ),
    ],
    ids: Annotated[
        list[str] | None, typer.Option("--id", help="A candidate whose missing measurements are given up; none: all.")
    ] = None,
    output: options.FormatOption = options.Format.text,
) -> None:
    """Give up what is missing of the open round; once nothing else is missing, the round is judged with what came."""
    study = resumed(url, name)
    study.abandon(reason, ids or None)
    study.ask()  # the next plan, if that was all that was missing
    if reason.strip() != INDEPENDENT_OF_VALUE:
        note(f"the reason is not {INDEPENDENT_OF_VALUE}, so the answer of this study will be heuristic, not certified.")
    _print_status(study, name, output)


def release(
    url: UrlArgument,
    name: NameArgument,
    worker: Annotated[str, typer.Option("--worker", help="Whose leases end.")],
    output: options.FormatOption = options.Format.text,
) -> None:
    """Give back what a worker holds, before the lease runs out: it is offered to others at once."""
    study = resumed(url, name)
    pulls = study.release(worker)
    if output is options.Format.json:
        print_json({"study": name, "worker": worker, "released": pulls})
        return
    say(f"{pulls:,} measurements of {worker} are free." if pulls else f"{worker} holds nothing.")
    say(f"{name}: {study.progress()}")


def close(
    url: UrlArgument,
    name: NameArgument,
    reason: Annotated[str, typer.Option("--reason", help="Why, for the record.")] = "",
    output: options.FormatOption = options.Format.text,
) -> None:
    """End a study early. Its certificate says what the complete rounds prove, and what more it would have taken."""
    study = resumed(url, name)
    study.close(reason)
    _print_status(study, name, output)


def _print_status(study: Study, name: str, output: options.Format) -> None:
    if output is options.Format.json:
        print_json({"study": name, "status": str(study.progress()), "stopped": study.stopped})
        return
    say(f"{name}: {study.progress()}")
