"""`surepick tell`: results of measurements for a durable study."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike
from typer import Argument, Option

from surepick.cli import options
from surepick.cli.open_study import NameArgument, UrlArgument, WorkerOption, resumed
from surepick.cli.output import note, picked, print_json, say
from surepick.cli.program_options import AnswerOptions, check_options, refuse_untold
from surepick.errors import InvalidInput, SurepickError
from surepick.studies.logs.item_keys import ITEM, with_items
from surepick.studies.recording import Receipt
from surepick.studies.study import Study
from surepick.tables.layout import side_by_side
from surepick.tables.reading import read_table
from surepick.tables.result_rows import ResultRows, result_rows, row_keys
from surepick.tables.selection import column_names, complete_rows, row_ids
from surepick.tables.table import Table


def tell(
    url: UrlArgument,
    name: NameArgument,
    results: Annotated[str, Argument(metavar="RESULTS", help="A table with one row a measurement.")],
    *,
    id_column: Annotated[
        str | None, Option("--id", help="Column(s) that name the candidate. None: as in create, or id.")
    ] = None,
    reward: Annotated[str | None, Option(help="The column of the measurements. None: as in create, or reward.")] = None,
    pulls: options.PullsOption = None,
    sum_column: options.SumOption = None,
    key: Annotated[str | None, Option(help='Column of keys: a key counts once. None: "key", in any spelling.')] = None,
    block: Annotated[str | None, Option(help="The column of the blocks. None: as the study calls them.")] = None,
    worker: WorkerOption = None,
    plan: Annotated[int | None, Option(help="The plan that they belong to, if keys and worker do not say it.")] = None,
    accept_unusual: Annotated[
        bool, Option("--accept-unusual", help="Results that stand out were looked at, and are what was read.")
    ] = False,
    as_prior: Annotated[bool, Option("--as-prior", help="Keep them apart: nothing is computed from them.")] = False,
    answers: AnswerOptions,
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
    check_options(answers, beside=bool(key or block or as_prior or options.given(reading)))
    if answers.program is not None:
        study = resumed(url, name)
        came = answers.answers(study, Path(results))
        receipt = study.tell(
            came.candidates, came.scores, items=came.items, worker=worker, plan=plan, accept_unusual=accept_unusual
        )
        _report(study, name, receipt, came.empty, output)
        return
    refuse_untold(Path(results))
    table = read_table(results, **reading.options)
    study = resumed(url, name)
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
    there = side_by_side(table, reward)
    return there.table, there.reward


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
