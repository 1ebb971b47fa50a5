"""`surepick confirm`: the last round of a search, by a program that measures its finalists anew."""

from collections.abc import Collection
from typing import Annotated, Any, Literal

from typer import Option

from surepick.cli import options
from surepick.cli.commands.run_study import SINGLE_BATCH, measure_until_done
from surepick.cli.open_study import VARIABLE, given_url
from surepick.cli.options import REQUIRED, Reading, opt
from surepick.cli.output import note, say
from surepick.cli.policy_options import WITHOUT_FEATURES, PolicyOptions, declared_noise
from surepick.core.arms import Arms
from surepick.find_best import Finalists
from surepick.studies.logs.base import parse_duration
from surepick.studies.opening import kept_study
from surepick.studies.program import RowCommand
from surepick.tables import Names, column_names, read_table
from surepick.tables.arms import column_of_arms
from surepick.tables.selection import row_ids
from surepick.tables.table import Table

NEEDED = (
    "confirm needs --epsilon: how much worse than the best finalist the answer may be, in the unit of the results; or "
    "--budget N: how many measurements it may take."
)
Url = Annotated[
    str | None,
    Option(
        "--study",
        metavar="URL",
        help="Keep results in this database, sqlite:///FILE, or on a server, so that the same command goes on after a "
        f"kill; - for the one in {VARIABLE}.",
        callback=lambda url: None if url is None else given_url(url),
    ),
]


def confirm(
    source: options.TableArgument,
    *,
    command: str = opt(
        "A program that makes one new measurement and prints it. It is run without a shell; {COLUMN} becomes the "
        "candidate's cell, {id} its id, {seed} a number of the measurement's own (with --streams one for all "
        "candidates).",
        "'COMMAND {COLUMN} {seed}'",
        default=REQUIRED,
    ),
    id_columns: str | None = opt('Column(s) that name a candidate, "n,theta"; none: the row number.', flag="--id"),
    reward: str | None = opt("The column of the search's scores, by which --top are chosen; none: all are finalists."),
    top: int | None = opt("How many finalists, those with the best scores; none: 10.", min=1),
    minimize: bool = options.MINIMIZE,
    goal: options.AskedGoal,
    noise: options.NoiseOption = "",
    prefer: str | None = opt("The column, e.g. price: of all that are certified the one with the smallest is named."),
    streams: str | None = opt(
        'Measurements of the same one share random numbers, e.g. "seed"; with --noise normal.', "NAME"
    ),
    jobs: int = opt("Programs at a time.", default=1, min=1),
    timeout: str | None = opt("Kill a call after this time: 90s, 10m."),
    retries: int = opt("Failed calls in a row for one candidate before giving up.", default=3, min=0),
    budget: str | None = opt("All measurements; the answer is as good as they can show.", "NUMBER"),
    max_pulls: int | None = opt("Begin no round that would pass this many; none: 20 uniform plans.", min=0),
    unusual: Literal["warn", "accept", "refuse"] = opt(
        "Results that stand out: they count with a warning, without one, or the loop ends.", default="warn"
    ),
    url: Url = None,
    name: str = opt("With --study: what the study is called there.", default="confirm"),
    reading: Reading,
    output: options.FormatOption = options.Format.text,
) -> None:
    """The last round of a search: measure its best candidates anew until one is certified.

    TABLE has a row for each candidate that was tried, with its parameters and its score. Scores choose the finalists
    and never count. Exit code 3 if it ends without a certificate.
    """
    wanted = goal.settled(lambda _: NEEDED, budget=budget)
    table = read_table(source, **reading.options)
    ids = id_columns or table.usual_id or None
    found = _finalists(table, ids, reward, top, minimize=minimize)
    liked = {} if prefer is None else {"prefer": column_of_arms(table, found.arms, ids, prefer)}
    asked = PolicyOptions(policy=WITHOUT_FEATURES, streams=streams, budget=budget)
    policy = asked.chosen(found.arms, declared_noise(noise), wanted, more=liked)
    seconds, rows = None if timeout is None else parse_duration(timeout), _rows(table, ids, set(found.arms.ids))
    RowCommand(command, seconds, rows).check(found.arms.ids)  # before a study is made
    if url is None:
        note("results are kept in memory only; --study sqlite:///FILE keeps them, so that the same command goes on.")
    study, was_there = kept_study(url, name, found.arms, policy, minimize=minimize)
    if was_there:
        note(f"goes on with {study.progress().pulls:,} results of before.")
    program = RowCommand(command, seconds, rows, study.study_id)
    if output is options.Format.text:
        say(f"{found.arms.num_arms:,} finalists{f' of {found.tried:,}' if found.tried else ''}: measured anew.")
    how: dict[str, Any] = {"slots": jobs, "retries": retries, "batch": SINGLE_BATCH, "most": max_pulls}
    said = {"finalists": list(found.arms.ids), "tried": found.tried, "promise": found.promise}
    measure_until_done(study, name, program, None, output, said=said, unusual=unusual, **how)


def _finalists(table: Table, ids: Names | None, reward: str | None, top: int | None, *, minimize: bool) -> Finalists:
    """The candidates of the table with the best scores."""
    arms = Arms(ids=list(row_ids(table, ids)))
    scores = None if reward is None else table.numbers_or_missing(column_names(table, reward)[0])
    found = Finalists.of(arms, scores, top, minimize=minimize)
    if scores is not None and found.tried < arms.num_arms:
        note(f"{arms.num_arms - found.tried:,} of {arms.num_arms:,} rows have no score, and are no finalists.")
    return found


def _rows(table: Table, ids: Names | None, finalists: Collection[str]) -> dict[str, dict[str, str]]:
    """The cells of each finalist by column."""
    cells = {column: table.text(column) for column in table.columns}
    return {
        name: {column: cell[row].strip() for column, cell in cells.items()}
        for row, name in enumerate(row_ids(table, ids))
        if name in finalists
    }
