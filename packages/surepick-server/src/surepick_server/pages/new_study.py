"""A new study: a table, what is measured and asked, what it will take beside two alternatives, and its creation."""

import csv
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi import Request, Response

from surepick.core.records import record
from surepick.errors import InvalidInput, SurepickError
from surepick.forecasts.saving import saving
from surepick.noise import SubGaussian
from surepick.questions import BEST, NAMES
from surepick.questions.best import FORM
from surepick.tables import Table, keeping_notes, read_table, write_table
from surepick.tables.content import decoded, refuse_foreign
from surepick.tables.numbers import Notation, Written
from surepick.tables.selection import looks_numeric
from surepick_server.access.tokens import Role
from surepick_server.api import models, studies
from surepick_server.api.models import ForecastOf, NewStudy, brought
from surepick_server.api.routing import Owner, Routes, Shared, Visibility
from surepick_server.pages.layout import Form, Posted, page, study_path, to
from surepick_server.web.open_studies import HTTPError

# --- Spreadsheets and Parquet files that somebody uploaded, as CSV: read in a process of its own, with little memory.
#
# Such a file is packed: a small one may unpack to more than a machine holds. So what reads it may fail alone.

PACKED = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", ".parquet")
MOST_MEMORY = 2 * 2**30  # bytes of addresses
MOST_SECONDS = 20
MOST_WAITING = 3 * MOST_SECONDS
TURN = threading.BoundedSemaphore(1)  # all that is uploaded to a process is unpacked one after the other
BUSY = "Others' tables are being read. Send this one again in a moment, or save it as CSV (UTF-8)."
READER = "from surepick_server.pages.new_study import read_in_child; read_in_child()"
TOO_LARGE = "is too large to be read here, or damaged. Save the table as CSV (UTF-8), and give that."


def as_csv(content: bytes, suffix: str, shown: str) -> tuple[str, tuple[str, ...]]:
    """(the table of a file as CSV, what is to be noted about it). Of a spreadsheet it is the first sheet."""
    with tempfile.TemporaryDirectory() as folder:
        path, written = Path(folder) / f"table{suffix}", Path(folder) / "read.csv"
        path.write_bytes(content)
        command = [sys.executable, "-c", READER, str(path), str(written)]
        alone = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        if not TURN.acquire(timeout=MOST_WAITING):
            raise HTTPError(HTTPStatus.SERVICE_UNAVAILABLE, BUSY, {"retry-after": str(MOST_SECONDS)})
        try:
            done = subprocess.run(command, capture_output=True, timeout=MOST_SECONDS, env=alone, check=False)
            said = json.loads(done.stdout)
        except (subprocess.TimeoutExpired, ValueError):
            raise InvalidInput(f"{shown} {TOO_LARGE}") from None
        finally:
            TURN.release()
        if said["error"]:
            raise InvalidInput(said["error"].replace(str(path), shown))
        notes = (note.replace(str(path), shown).partition(" --sheet")[0] for note in said["notes"])
        return written.read_text(encoding="utf-8"), tuple(notes)


def read_in_child() -> None:
    """Read the file that is named first, write the second, and say in JSON what there is to say."""
    path, written = sys.argv[1:]
    _limit()
    notes: list[str] = []
    error = ""
    try:
        with keeping_notes() as notes:
            table = read_table(path)
            write_table(written, {name: _cells(table, name) for name in table.columns})
    except InvalidInput as refused:
        error = str(refused)
    except MemoryError:
        error = f"{path} {TOO_LARGE}"
    sys.stdout.write(json.dumps({"error": error, "notes": notes}))


def _cells(table: Table, name: str) -> tuple[str, ...]:
    """The cells of a column as texts, from which its numbers are read as they are: 987.0 beside 1.234."""
    cells = table.text(name)
    typed = not isinstance(table.column(name), tuple) or not table.notation(name).question
    if not typed or not Notation.of([str(cell) for cell in cells], Written()).question:
        return cells
    return tuple(cell + ".0" if cell.removeprefix("-").isdigit() else cell for cell in cells)


def _limit() -> None:
    with suppress(ImportError, ValueError, OSError):  # where a system has no such limits, the time is one
        import resource  # noqa: PLC0415 (not on every system)

        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))


# --- A table that somebody uploaded, pasted or typed: its text goes along in the form, its columns are shown.

KINDS = {".csv": "csv", ".tsv": "csv", ".txt": "csv", ".json": "json", ".jsonl": "jsonl"}
EXAMPLES = 3
ROOM = 2**16  # bytes that the other fields of a form may take
TYPED = "name"  # the column of names that were typed


@record
class Column:
    """A column of a table."""

    name: str  # its header
    numeric: bool  # it holds numbers
    distinct: int  # how many different cells it has
    examples: tuple[str, ...]  # the first of them


@record
class GivenTable:
    """A table."""

    text: str  # as it came
    kind: str  # csv, json or jsonl
    rows: int  # how many it has
    columns: tuple[Column, ...]  # that it has
    notes: tuple[str, ...]  # what is to be known of how it was read

    @property
    def likely_id(self) -> str:
        """The column that most likely names the candidates: the first without a repeated cell, words before numbers."""
        alone = [one for one in self.columns if one.distinct == self.rows]
        alone.sort(key=lambda one: one.numeric)
        return (alone or self.columns)[0].name


def table_in(form: Form, *, largest: int) -> GivenTable:
    """The table of a form."""
    text, kind = form.raw("table"), form.text("kind", "csv")
    notes: tuple[str, ...] = ()
    if "file" in form.files:
        text, kind, notes = _in_file(*form.files["file"])
    elif form.text("names"):
        lines = [line.strip() for line in form.raw("names").splitlines()]
        written = io.StringIO()
        csv.writer(written).writerows([[TYPED], *([line] for line in lines if line)])
        text, kind = written.getvalue(), "csv"
    if not text.strip():
        raise InvalidInput("There is no table yet: choose a file, paste one, or type the names.")
    if (size := len(text.encode())) > (most := largest - ROOM):
        raise InvalidInput(
            f"As text the table has {size:,} bytes, and this page takes {most:,}. Leave out columns that nobody needs."
        )
    found = read(text, kind)
    return replace(found, notes=(*notes, *found.notes))


def _in_file(name: str, content: bytes) -> tuple[str, str, tuple[str, ...]]:
    """(text, kind, notes) of a file that was uploaded."""
    shown, suffix = repr(name[:80]), Path(name).suffix.lower()
    if suffix in PACKED:
        text, notes = as_csv(content, suffix, shown)
        return text, "csv", notes
    if suffix not in KINDS:
        raise InvalidInput(f"{shown} is none of {', '.join((*KINDS, *PACKED))}. Save the table as CSV (UTF-8).")
    refuse_foreign(shown, content)
    with keeping_notes() as said:
        try:
            text = decoded(shown, content)
        except UnicodeDecodeError:
            raise InvalidInput(f"{shown} is no text in UTF-8. Save it as CSV (UTF-8).") from None
    return text, KINDS[suffix], tuple(said)


def read(text: str, kind: str) -> GivenTable:
    """What a table says."""
    if kind not in KINDS.values():
        raise InvalidInput("This kind of table is not known.")
    text = text.replace("\r\n", "\n")
    with tempfile.TemporaryDirectory() as folder, keeping_notes() as said:
        path = Path(folder) / f"candidates.{kind}"
        path.write_text(text, encoding="utf-8")
        try:
            table = read_table(path)
            numeric = {name: looks_numeric(table, name) for name in table.columns}
        except InvalidInput as error:
            raise InvalidInput(str(error).replace(str(path), "the table")) from None
    notes = dict.fromkeys(note.replace(str(path), "the table") for note in said)
    columns = []
    for name in table.columns:
        cells = [str(cell) for cell in table.column(name)]
        distinct = tuple(dict.fromkeys(cells))
        columns.append(Column(name, numeric[name], len(distinct), distinct[:EXAMPLES]))
    return GivenTable(text, kind, table.num_rows, tuple(columns), tuple(notes))


routes = Routes(include_in_schema=False)
FORMS = {one.choice: (name, one) for name, made in NAMES.items() for one in made.forms}  # ways to ask a question
CHOICE = {  # a field of the form -> what stands there first
    **dict.fromkeys(("name", "id_column", "cost_column", "segment_column", "reward_column", "noise", "sigma"), ""),
    **dict.fromkeys(("guess", "epsilon", "norm_bound"), ""),
    **{"good": "large", "low": "0", "high": "10", "delta": "0.05", "question": BEST},
    **{one.option: one.first for _, one in FORMS.values() if one.option},
}
REHEARSALS = 5  # of a forecast under equal means, so that the page comes soon


@record
class Option:
    """A way to do the study, with what it takes."""

    words: str  # what it is
    epsilon: float  # of it
    total: int | None  # measurements in the worst case; None where it is refused
    batches: str  # in words
    cost: str  # money in words; "" where nothing has a cost
    refusal: str  # why there is no forecast
    notes: tuple[str, ...]  # what to know of it


@routes.add("GET", "/new", Visibility.nothing, who=Role.owner)
def new_page(request: Request, server: Shared, caller: Owner) -> Response:  # noqa: ARG001
    """Where a table is uploaded, pasted or typed."""
    return page(request, "new.html", caller, error="", pasted="", names="")


@routes.add("POST", "/new", Visibility.terms, who=Role.owner)
def new_step(request: Request, server: Shared, caller: Owner, form: Posted) -> Response:
    """The next step: the columns, the forecast, or the study itself."""
    try:
        given = table_in(form, largest=server.settings.largest_body)
    except InvalidInput as error:
        typed = {"pasted": form.raw("table"), "names": form.raw("names")}
        return page(request, "new.html", caller, status=HTTPStatus.UNPROCESSABLE_ENTITY, error=str(error), **typed)
    step, error_said, status = form.text("step"), "", HTTPStatus.OK
    options: list[Option] = []
    uniform: int | None = None
    try:
        if step == "create":
            called = {"name": form.text("name"), "reward_column": form.text("reward_column") or None}
            goal = brought(NewStudy, called | goal_of(form, given), "The study is")
            made = studies.start_study(goal, request, server, caller)
            name = goal.name.strip()
            said = f"The study {name} is made. Write down its registration code before the first result."
            return to(request, study_path(name), " ".join([said, *made["notes"]]))
        if step == "forecast":
            options, uniform = forecast_beside(form, given)
    except (SurepickError, HTTPError) as error:
        error_said = str(error)
        status = error.status if isinstance(error, HTTPError) else HTTPStatus.UNPROCESSABLE_ENTITY
    chosen = {name: form.text(name, first) for name, first in CHOICE.items()}
    chosen["id_column"] = chosen["id_column"] or given.likely_id
    asked = [FORM, *(one for _, one in FORMS.values())]
    shown: dict[str, Any] = {"asked": asked, "features": form.many("features"), "options": options, "uniform": uniform}
    return page(request, "columns.html", caller, status=status, given=given, chosen=chosen, error=error_said, **shown)


def goal_of(form: Form, given: GivenTable) -> dict[str, Any]:
    """What a form asks, as the API takes it."""
    epsilon = form.number("epsilon", "how much worse the answer may be")
    if epsilon is None:
        raise InvalidInput("Give the tolerance, a positive number: how much worse than the best the answer may be.")
    delta = form.number("delta", "how often it may be wrong")
    bound = form.number("norm_bound", "the bound on the coefficients")
    features = form.many("features")
    if bound is not None and not features:
        raise InvalidInput("A bound on weights is about columns: tick some, or leave the bound out.")
    noise = noise_of(form)
    columns: dict[str, Any] = {} if bound is None else {"norm_bound": bound}
    if features and bound is None:
        columns = {"assume": "linear"}
        if noise == "normal":
            raise InvalidInput("Columns need a bound on their weights, or how far repeats scatter at most; or none.")
    candidates = {
        "table": given.text,
        "kind": given.kind,
        "feature_columns": features or None,
        **{name: form.text(name) or None for name in ("id_column", "cost_column", "segment_column")},
    }
    return {
        "candidates": candidates,
        "epsilon": epsilon,
        "delta": 0.05 if delta is None else delta,
        "noise": noise,
        "minimize": form.text("good") == "small",
        "options": question_in(form) | columns,
    }


def noise_of(form: Form) -> str:
    """What is known of a measurement, as the library writes it."""
    kind = form.text("noise")
    if kind == "bounded":
        low, high = form.number("low", "the least number"), form.number("high", "the largest number")
        if low is None or high is None:
            raise InvalidInput("Give the least and the largest number that a measurement can be.")
        return f"bounded:{low!r}:{high!r}"
    if kind == "subgaussian":
        sigma = form.number("sigma", "the scatter")
        if sigma is None:
            raise InvalidInput("Give how far repeated measurements scatter: their standard deviation at most.")
        return f"subgaussian:{sigma!r}"
    if kind not in ("bernoulli", "normal"):
        raise InvalidInput("Say what a measurement is: choose one of the four kinds.")
    return kind


def question_in(form: Form) -> dict[str, Any]:
    """What is asked, as options of a policy."""
    name, asked = FORMS.get(form.text("question", BEST), (BEST, FORM))
    if not asked.option:
        return {} if name == BEST else {"question": name}
    value: Any = form.text(asked.option) if asked.kind == "text" else form.number(asked.option, asked.label)
    if value in (None, ""):
        raise InvalidInput(f"{asked.words} Give {asked.label}.")
    whole = asked.kind == "whole" and float(value).is_integer()
    return {"question": name, asked.option: int(value) if whole else value}


def forecast_beside(form: Form, given: GivenTable) -> tuple[list[Option], int | None]:
    """(what the study takes, with two alternatives; measurements of all candidates equally often)."""
    goal = goal_of(form, given)
    guess = form.number("guess", "the guess of the scatter")
    if goal["noise"] == "normal" and guess is None:
        raise InvalidInput("A forecast needs a guess of how far repeats scatter; the study itself does not use it.")
    goal |= {"rehearsals": REHEARSALS, "assume_scale": guess if goal["noise"] == "normal" else None}
    ways = [("as you have it", goal), ("half the tolerance", {**goal, "epsilon": goal["epsilon"] / 2})]
    if "assume" in goal["options"]:
        return _of_columns(goal)
    if "norm_bound" in goal["options"]:
        plain = {key: value for key, value in goal["options"].items() if key != "norm_bound"}
        ways.append(("without the columns", {**goal, "options": plain}))
    else:
        ways.append(("twice the tolerance", {**goal, "epsilon": goal["epsilon"] * 2}))
    found: list[Option] = []
    uniform: int | None = None
    for place, (words, asked) in enumerate(ways):
        try:
            answer = models.forecast_of(brought(ForecastOf, asked, "The study is"))
        except SurepickError as error:
            if place == 0:
                raise
            found.append(Option(words, asked["epsilon"], None, "", "", str(error), ()))
            continue
        if place == 0:
            uniform = answer["uniform_pulls"]
        found.append(_option(words, asked["epsilon"], answer["rows"][0]))
    return found, uniform


def _of_columns(goal: dict[str, Any]) -> tuple[list[Option], int | None]:
    """The study without the columns, and what they may save: with nearly equal means they save nothing."""
    plain = {key: value for key, value in goal["options"].items() if key != "assume"}
    answer = models.forecast_of(brought(ForecastOf, {**goal, "options": plain}, "The study is"))
    asked = brought(ForecastOf, goal, "The study is")
    arms, _ = models.candidates_of(asked)
    problem, notes = models.policy_of(asked, arms).problem, list[str]()
    if isinstance(problem.noise, SubGaussian):
        found = saving(arms, epsilon=problem.epsilon, delta=problem.delta, noise=problem.noise)
        notes += [] if found is None else [str(found).replace("`--assume linear`", "With the columns")]
    row = _option("without the columns", goal["epsilon"], answer["rows"][0])
    return [replace(row, notes=(*notes, *row.notes))], answer["uniform_pulls"]


def _option(words: str, epsilon: float, row: dict[str, Any]) -> Option:
    worst, notes = row["worst"], tuple(row["warnings"])
    if worst is None:
        return Option(words, epsilon, None, "", "", row["refusal"], notes)
    batches = f"{worst['batches']:,}"
    cost = "" if worst.get("cost") is None else f"{worst['cost']:,.2f}"
    return Option(words, epsilon, worst["total"], batches, cost, "", notes)
