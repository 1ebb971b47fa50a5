"""`surepick ask`: what to measure next, and leases on it."""

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike
from typer import Argument

from surepick.cli import options, programs
from surepick.cli.open_study import NameArgument, UrlArgument, WorkerOption, command_line
from surepick.cli.options import opt
from surepick.cli.output import note, picked, print_either, print_json, print_table, say
from surepick.core.files import is_file
from surepick.errors import InvalidInput, SurepickError
from surepick.integrations.recognised import RecognisedProgram
from surepick.studies.ledger import Batch
from surepick.studies.logs.base import ANYONE, AS_THEY_COME, format_time, format_utc
from surepick.studies.logs.keys import ITEM, with_items
from surepick.studies.opening import resume_study
from surepick.studies.progress import Progress, times
from surepick.studies.recording import Receipt
from surepick.studies.study import Study
from surepick.tables.delimited import check_suffix, write_table
from surepick.tables.reading import read_table
from surepick.tables.rows import KEY, ResultRows, result_rows, row_keys
from surepick.tables.selection import column_names, complete_rows, row_ids, side_by_side
from surepick.tables.table import Table
from surepick.text import money

MOST_ROWS = 40
ID, REWARD = "id", "reward"


def ask(
    url: UrlArgument,
    name: NameArgument,
    *,
    max_pulls: int | None = opt("Lease at most so many; none: all that are free."),
    worker: WorkerOption = None,
    lease: str | None = opt("How long this worker has them: 30m, 2d; none: 8h."),
    out: Path | None = opt("Lease, and write a .csv, .parquet or .jsonl file to fill in."),
    program: RecognisedProgram | None = opt(
        "Make --out a folder with a file for this program for each candidate.", flag="--as"
    ),
    trust_clock: bool = opt("Lease though the study has entries of later.", default=False),
    output: options.FormatOption = options.Format.text,
) -> None:
    """Show what to measure next.

    --worker, --max-pulls, --lease and --out lease the measurements: nobody else is given them before the lease has run
    out, and asking again gives what is left of it.
    """
    study = _checked(url, name, out, program)
    beside = tuple(one.name for one in study.constraints)  # the columns of what is measured beside the reward
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
        _write_plan(plan, out, program, beside)
    progress = study.progress()
    if output is options.Format.json:
        print_json(plan_json(progress, plan) | _cost(study, progress, plan))
    elif plan is None:
        say(f"Nothing to measure. {name}: {progress}")
    else:
        _print_plan(progress, plan, _cost(study, progress, plan), out, [url, name], program, beside)


def _checked(url: str, name: str, out: Path | None, program: RecognisedProgram | None) -> Study:
    """The study; what cannot be written is refused before anything is leased."""
    if program is not None and out is None:
        raise InvalidInput(f"--as {program} writes a file for each candidate; name a folder for them with --out.")
    if out is not None and program is None:
        check_suffix(out)
    study = resume_study(url, name)
    if out is not None and program is None:
        _keep_rewards(study, out)
    elif out is not None and program is not None:
        programs.check_program(program, study, out)
    return study


def plan_json(progress: Progress, plan: Batch | None) -> dict[str, Any]:
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
            {what: one for what, one in (("id", name), (ITEM, item), ("block", block), ("key", key)) if one is not None}
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
    program: RecognisedProgram | None,
    measured: tuple[str, ...],
) -> None:
    leases = [f"  {part.pulls:,} with {part.worker} until {format_time(part.until)}" for part in progress.out]
    if plan.total == 0:
        missing = sum(part.pulls for part in progress.out)
        for line in (f"Nothing is free now: the {missing:,} missing pulls are out.", *leases):
            say(line)
        if progress.judge == AS_THEY_COME and progress.told:
            say(f"To go on with the {times(progress.told, 'result')} that came: {command_line('interim', *study)}")
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
        then = command_line("tell", *study, programs.ANSWERS[program], "--as", program, *whose)
        for line in programs.how_to_run(program, plan, out, then):
            say(line)
    elif out is None:
        beside = f", {plan.block_name}" if plan.blocks else ", item" if plan.items is not None else ""
        columns = f"id{beside} and {' and '.join([REWARD, *measured])}"
        say(f"Then: {then}   (a table with the columns {columns})")
    else:
        if plan.blocks:
            say(f"The column {plan.block_name} says what goes together; where yours are others, write what they are.")
        columns = f"columns {', '.join([REWARD, *measured])}" if measured else f"column {REWARD}"
        say(f"{out} has one row a measurement. Fill in the {columns}, then: {then}")
    for line in leases:
        say(line)


def _write_plan(plan: Batch, out: Path, program: RecognisedProgram | None, beside: tuple[str, ...]) -> None:
    """A table with one row a measurement, whose rewards are to be filled in; or files for a program."""
    if program is not None:
        programs.write_plan(program, plan, out)
        return
    ids, keys = zip(*plan.keys(), strict=True)
    items = {ITEM: plan.item_ids} if plan.items is not None else {}
    blocks = {plan.block_name: plan.blocks} if plan.blocks else {}
    measured = (REWARD, *beside)
    columns = {ID: ids, **items, **blocks, KEY: keys, **{name: [None] * len(ids) for name in measured}}
    write_table(out, columns, kinds={**dict.fromkeys(columns, str), **dict.fromkeys(measured, float)})


def _keep_rewards(study: Study, out: Path) -> None:
    """Refuse to write over a file with rewards that the study does not have."""
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


# --- `surepick tell`: results of measurements for a durable study.


def tell(
    url: UrlArgument,
    name: NameArgument,
    results: Annotated[str, Argument(metavar="RESULTS", help="A table with one row a measurement.")],
    *,
    id_column: str | None = opt("Column(s) that name the candidate. None: as in create, or id.", flag="--id"),
    reward: str | None = opt("The column of the measurements. None: as in create, or reward."),
    pulls: str | None = options.PULLS,
    sum_column: str | None = options.SUM,
    key: str | None = opt('Column of keys: a key counts once. None: "key", in any spelling.'),
    block: str | None = opt("The column of the blocks. None: as the study calls them."),
    worker: WorkerOption = None,
    plan: int | None = opt("The plan that they belong to, if keys and worker do not say it."),
    accept_unusual: bool = opt("Results that stand out were looked at, and are what was read.", default=False),
    as_prior: bool = opt("Keep them apart: nothing is computed from them.", default=False),
    answers: programs.AnswerOptions,
    reading: options.Reading,
    output: options.FormatOption = options.Format.text,
) -> None:
    """Report what was measured, in any order and in any part.

    A row without a reward is left out (it is still to be measured); one with the word "failed" is asked again. A table
    with the columns pulls and sum (and squares), or those of --pulls and --sum, in place of the reward has totals.
    --reward rep1,rep2 takes repeats that stand side by side. Where test items are answered the column item says which
    one, in place of a key. Where measurements have blocks a column says which one, named as in create --blocks.
    Where there are constraints the columns of their names have what else was measured; an empty cell was not.
    --as takes the files of a program that evaluates models, as they are. A result that stands out from what is known
    is asked about, and nothing is stored: it may be a typing error.
    """
    programs.check_command_options(answers, beside=bool(key or block or as_prior or options.given(reading)))
    if answers.program is not None:
        study = resume_study(url, name)
        came = answers.answers(study, Path(results))
        receipt = study.tell(
            came.candidates, came.scores, items=came.items, worker=worker, plan=plan, accept_unusual=accept_unusual
        )
        _report(study, name, receipt, came.empty, output)
        return
    programs.refuse_untold(Path(results))
    table = read_table(results, **reading.options)
    study = resume_study(url, name)
    id_column = id_column or study.column_names.id_in(table.columns)
    reward = reward or study.column_names.reward_in(table.columns)
    whose: dict[str, Any] = {"worker": worker, "plan": plan, "accept_unusual": accept_unusual}
    of_totals = (pulls or "pulls", sum_column or "sum")
    totals = bool(pulls or sum_column) or (reward not in table.columns and set(of_totals) <= table.columns.keys())
    if not totals:
        table, reward = _measurements(study, table, reward, key)
    if table.drop_missing:
        needed = of_totals if totals else (reward,)
        table = complete_rows(table, column_names(table, id_column), needed)
    ids, keys = row_ids(table, id_column, known=set(study.ids)), row_keys(table, key)
    if key is None and ITEM in table.columns and study.policy.traits.items is not None:
        keys = with_items(study.policy.traits.items, ids, table.text(ITEM), keys)
    blocks = _blocks(study, table, block)
    if totals and as_prior:
        raise InvalidInput("--as-prior takes single measurements, not totals.")
    if totals and study.constraints:
        raise InvalidInput("a study with constraints takes single measurements from a table, not totals.")
    if totals:
        counts, sums = (table.numbers(one) for one in of_totals)
        squares = table.numbers("squares") if "squares" in table.columns else None
        receipt = study.tell_totals(ids, counts, sums, squares, keys, blocks=blocks, **whose)
        empty = 0
    else:
        rows = result_rows(table, reward)
        empty = rows.empty
        measured = [ids[row] for row in rows.measured]
        labels = None if keys is None else [keys[row] for row in rows.measured]
        if as_prior:
            receipt = study.tell_prior(measured, _with_beside(study, table, rows), labels, worker=worker)
        else:
            failed = [(ids[row], None if keys is None else keys[row]) for row in rows.failed]
            named = None if blocks is None else [blocks[row] for row in rows.measured]
            told = _with_beside(study, table, rows)
            receipt = study.tell(measured, told, labels, blocks=named, failed=failed, **whose)
    _report(study, name, receipt, empty, output)


def _measurements(study: Study, table: Table, reward: str, key: str | None) -> tuple[Table, str]:
    """(the table with a row for each measurement, the column of the rewards)."""
    if reward in table.columns or "," not in reward:
        return table, reward
    if row_keys(table, key) is not None or study.constraints:
        raise InvalidInput(
            f"{table.source}: repeats side by side have neither keys nor constraints, which belong to one measurement. "
            "Write a row for each."
        )
    return side_by_side(table, reward)


def _report(study: Study, name: str, receipt: Receipt, empty: int, output: options.Format) -> None:
    """Say what became of the results; where they complete a plan, make the next one."""
    if receipt.closed or study.progress().complete:  # complete: the process that completed it was killed before
        try:
            study.ask()  # the next plan, so that asking for it is quick
        except SurepickError as error:  # what came is stored, so that this call has not failed
            note(str(error))
    if output is options.Format.json:
        counted = picked(receipt, "plan", "counted", "repeated", "late", "prior", "failed")
        print_json({**counted, "empty": empty, "closed": receipt.closed, "stopped": study.stopped})
        return
    _print_receipt(receipt, empty)
    say(f"{name}: {study.progress()}")


def _with_beside(study: Study, table: Table, rows: ResultRows) -> ArrayLike:
    """The rewards; with constraints a row for each, with what else was measured."""
    if not study.constraints:
        return rows.rewards
    names = [one.name for one in study.constraints]
    if lacking := [name for name in names if name not in table.columns]:
        raise InvalidInput(
            f"{table.source} has no column {lacking[0]!r}, on which this study has a constraint. Add it; leave cells "
            "empty where it was not measured."
        )
    there = table.without(sorted(set(range(table.num_rows)) - set(rows.measured)))
    return np.column_stack([rows.rewards, *(there.numbers_or_missing(name) for name in names)])


def _blocks(study: Study, table: Table, column: str | None) -> Sequence[str] | None:
    """The block of each row; None where the table has no column of them, which a study with blocks refuses."""
    blocking = study.blocking
    if column is None and (blocking is None or blocking.name not in table.columns):
        return None
    return table.text(column or ("" if blocking is None else blocking.name))


def _print_receipt(receipt: Receipt, empty: int) -> None:
    parts = (
        (receipt.counted, "counted"),
        (receipt.repeated, "told before: each counts once"),
        (receipt.late, "late: their round is closed; kept, and not used"),
        (receipt.prior, "kept apart as prior: they enter no estimate and no certificate"),
        (receipt.failed, "failed: asked again"),
        (empty, "without a reward: left out, still to be measured"),
    )
    for number, fate in parts:
        if number:
            say(f"{number:,} result{'s' * (number != 1)} {fate}.")
    if not any(number for number, _ in parts):
        say("The table has no result, so nothing was stored.")
    if receipt.late and receipt.plan and not receipt.counted:
        say(f"If they are of the open round, tell them with --plan {receipt.plan} and keys of their own.")


# --- `surepick undo`: take back results that were typed wrongly, while their round is open.


def undo(
    url: UrlArgument,
    name: NameArgument,
    keys: Annotated[list[str] | None, Argument(metavar="[KEY]...", help="Which; none: the latest one.")] = None,
    *,
    worker: WorkerOption = None,
    reason: str = opt("Why, for the record.", default="a typing error"),
    output: options.FormatOption = options.Format.text,
) -> None:
    """Take back results that were typed wrongly, while their round is open.

    You can take back what you reported, nothing else. The measurements are wanted again: tell the right values, under
    the same keys. The log keeps what was taken back, and the certificate says how many were. Do so only because a
    result is not what was read, whatever its value. Once a round is closed its results stay.
    """
    study = resume_study(url, name)
    ids = study.undo(keys or None, worker=worker, reason=reason)
    taken = f"{times(len(ids), 'result')} taken back, of {', '.join(dict.fromkeys(ids))}."
    print_either(output, {"study": name, "undone": ids}, taken, f"{name}: {study.progress()}")


# --- `surepick correct`: what was read takes the place of what was typed, after its round was closed.


def correct(
    url: UrlArgument,
    name: NameArgument,
    key: Annotated[str, Argument(metavar="KEY", help="Of the result; or the candidate's id, if that is enough.")],
    value: Annotated[float, Argument(metavar="VALUE", help="What was read.")],
    *,
    typed: float | None = opt("What was typed, where a candidate has several results."),
    worker: WorkerOption = None,
    reason: str = opt("Why, for the record.", default="a typing error"),
    output: options.FormatOption = options.Format.text,
) -> None:
    """Put what was read in the place of a result that was typed wrongly, after its round was closed.

    What was planned because of it stays planned; from then on all that is said rests on what was read. Do so only
    because the result is not what was read for this very measurement, whatever its value: a second measurement is no
    correction. The certificate says how many there were, and the log keeps both values.
    """
    study = resume_study(url, name)
    told = study.correct(key, value, typed=typed, worker=worker, reason=reason)
    if output is options.Format.json:
        print_json({"study": name, **picked(told, "id", "typed", "read", "plan", "waits")})
        return
    progress, when = study.progress(), " from now on."
    if told.waits:
        when = f" once round {progress.round} is complete, which stays as it was planned."
    say(f"{told.read:.12g} counts in the place of {told.typed:.12g} of {told.id}{when}")
    if told.waits and not progress.told:
        say("If nobody has begun to measure it, `surepick abandon --reason independent-of-value` makes it anew.")
    say(f"{name}: {progress}")
