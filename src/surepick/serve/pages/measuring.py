"""Forms of those who measure: take measurements, enter results, give measurements back."""

from __future__ import annotations

from collections import Counter, defaultdict
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request, Response

from surepick.errors import InvalidInput, SurepickError, UnusualResult
from surepick.serve.access.roles import Role
from surepick.serve.api import results
from surepick.serve.api.models import LeaseOf, Result, Results, Undone, Worker, brought
from surepick.serve.api.routing import Measurer, Routes, Shared, Shows
from surepick.serve.api.tables import results_in
from surepick.serve.pages.forms import Form, Posted, number_in
from surepick.serve.pages.shell import study_path, to
from surepick.serve.pages.study import show, tasks_of
from surepick.serve.web.callers import address_of
from surepick.serve.web.problems import Refused, status_of
from surepick.studies.progress import times
from surepick.studies.study import Study

router = APIRouter(include_in_schema=False)
routes = Routes(router)
NOTHING = "Nothing was stored."
QUESTION = (
    f"Is it a typing error? {NOTHING} If it is one, correct it below. If it is what was read, whatever its value, "
    "store it as it is with the second button."
)


@routes.add("POST", "/studies/{name}/take", Shows.own, who=Role.measurer)
def take(name: str, request: Request, server: Shared, caller: Measurer, form: Posted) -> Response:
    """Take measurements, as the API's lease."""
    try:
        most = form.number("max_pulls", "how many")
        whole = int(most) if most is not None and most.is_integer() else most
        fields = {"max_pulls": whole, "duration": form.text("duration") or None}
        wanted = brought(LeaseOf, fields, "The measurements that you want are")
        answer = results.lease(name, wanted, request, server, caller)
    except SurepickError as error:
        return show(request, server, caller, name, status=status_of(error), error=str(error))
    if answer["stopped"]:
        said = "The study needs no more measurements."
    elif not answer["pulls"]:
        said = "Others have taken all measurements of this round that are missing. Look again later."
    else:
        said = f"You hold {times(answer['pulls'], 'measurement')}. Enter each result below once you have it."
    return to(request, study_path(name), said)


@routes.add("POST", "/studies/{name}/results", Shows.own, who=Role.measurer)
def tell(name: str, request: Request, server: Shared, caller: Measurer, form: Posted) -> Response:
    """Store results: of the fields, of a pasted table, or of a file.

    A result that stands out is asked about: the page comes back with what was typed, and a button that stores it as it
    is. Pressing it holds for the results that were asked about, with their values.
    """
    came: list[Result] = []
    notes: list[str] = []

    def read(study: Study) -> Results:
        found = rows_given(study)
        came[:] = found.results
        return found

    def rows_given(study: Study) -> Results:
        if form.text("way") == "rows":
            return Results(results=rows_in(form, study))
        content = form.files["file"][1] if "file" in form.files else form.raw("pasted").strip().encode()
        if not content.strip():
            raise InvalidInput("There is no table: choose a file, or paste its rows with their header.")
        table, notes[:] = results_in(content, "text/csv", study)
        return table.model_copy(update={"results": with_keys(table.results, study, tasks_of(study, caller))})

    def accepted(study: Study) -> Results:
        return read(study).model_copy(update={"accept_unusual": True})

    where = (server, name, caller, address_of(request))
    try:
        try:
            answer, _ = results.store_results(*where, read)
        except UnusualResult as question:
            if not form.text("accept_unusual") or not set(said_of_unusual(came, question)) <= set(form.many("asked")):
                raise
            answer, _ = results.store_results(*where, accepted)
    except UnusualResult as question:
        asked = said_of_unusual(came, question)
        typed = {field: texts[0] for field, texts in form.fields.items()}
        if "file" in form.files:
            typed["pasted"] = form.files["file"][1].decode(errors="replace")
        said = f"{str(question).partition(' Is it a typing error?')[0]} {QUESTION}"
        return show(request, server, caller, name, status=status_of(question), error=said, typed=typed, asked=asked)
    except (SurepickError, Refused) as error:
        refused = isinstance(error, Refused)
        status = error.status if isinstance(error, Refused) else status_of(error)
        typed = {field: texts[0] for field, texts in form.fields.items()}
        said = error.sentence if isinstance(error, Refused) else str(error)
        if isinstance(error, InvalidInput) and NOTHING not in said:
            said = f"{said} {NOTHING} Look at what you typed, and store it again."
        if refused and status == HTTPStatus.NOT_FOUND:
            raise
        return show(request, server, caller, name, status=status, error=said, typed=typed)
    return to(request, study_path(name), " ".join([said_of(answer), *map(spoken_note, notes)]))


@routes.add("POST", "/studies/{name}/undo", Shows.own, who=Role.measurer)
def undo(name: str, request: Request, server: Shared, caller: Measurer, form: Posted) -> Response:
    """Take back a result of the open round, as the API's undo."""
    try:
        fields = {"keys": [form.raw("key")], "worker": form.text("worker") or None}
        answer = results.undo(name, brought(Undone, fields, "The result is"), request, server, caller)
    except SurepickError as error:
        return show(request, server, caller, name, status=status_of(error), error=str(error))
    said = (
        f"The result of {', '.join(answer['ids'])} was taken back. Take its measurement again to enter the right one."
    )
    return to(request, study_path(name), said)


@routes.add("POST", "/studies/{name}/release", Shows.own, who=Role.measurer)
def release(name: str, request: Request, server: Shared, caller: Measurer, form: Posted) -> Response:
    """Give measurements back; an owner may do it for others."""
    try:
        whose = brought(Worker, {"worker": form.text("worker") or None}, "The name is")
        answer = results.release(name, whose, request, server, caller)
    except SurepickError as error:
        return show(request, server, caller, name, status=status_of(error), error=str(error))
    said = f"{times(answer['released'], 'measurement')} of {answer['worker']} can be taken by others now."
    return to(request, study_path(name), said)


def said_of_unusual(came: list[Result], question: UnusualResult) -> list[str]:
    """The results that are asked about, each with its value; what was reported before has no place among them."""
    rows = [came[row] for row in question.rows if row < len(came)]
    return [f"{one.key} {one.reward!r}" for one in rows] or [str(question)]


def spoken_note(note: str) -> str:
    """A note on a table, as a sentence of a page."""
    return note[:1].upper() + note[1:]


def said_of(answer: dict[str, Any]) -> str:
    """What became of results, in a sentence."""
    if not answer["stored"] and not answer["failed"]:
        return "Nothing was entered, so nothing was stored."
    parts = [f"{times(answer['counted'], 'result')} stored"]
    if answer["late"]:
        parts.append(f"{times(answer['late'], 'result')} came after the round was closed: kept, and not used")
    if answer["failed"]:
        parts.append(f"{times(answer['failed'], 'failed measurement')} offered again")
    return "; ".join(parts) + "."


def with_keys(rows: list[Result], study: Study, tasks: list[dict[str, Any]]) -> list[Result]:
    """The rows of a table, where one without a key gets that of the measurement that its caller holds.

    Rows without keys are matched by candidate (and block), if there are as many of them as measurements that the caller
    holds: then it does not matter which is which, and a table that is given twice finds nothing left to match.

    Args:
        rows: of the table; those of items need no key.
        study: of which they are.
        tasks: what the caller holds, as `tasks_of` says it.

    Raises:
        InvalidInput: there are more or fewer.
    """
    held: dict[tuple[str, str | None], list[str]] = defaultdict(list)
    in_blocks = study.blocking is not None
    for one in (row for task in tasks for row in task["measurements"]):
        held[one["id"], one.get("block") if in_blocks else None].append(one["key"])
    named = {row.key for row in rows}
    wanted = Counter((row.id, row.block) for row in rows if row.key is None and row.item is None)
    for (name, block), number in wanted.items():
        keys = [key for key in held[name, block] if key not in named]
        where = "" if block is None else f" in {block!r}"
        if number != len(keys):
            raise InvalidInput(
                f"{name!r}{where} has {times(number, 'row')} without a key, and you hold "
                f"{times(len(keys), 'measurement')} of it. A key says which measurement a result is of, so that it "
                "counts once: take the keys from the table that you can download, or give a row for each that you "
                f"hold. {NOTHING}"
            )
        held[name, block] = keys
    found = []
    for row in rows:
        free = row.key is None and row.item is None
        found.append(row.model_copy(update={"key": held[row.id, row.block].pop(0)}) if free else row)
    return found


def rows_in(form: Form, study: Study) -> list[Result]:
    """The rows of the fields that were filled in, or marked as failed.

    Raises:
        InvalidInput: one has no meaning.
    """
    found = []
    for place in range(len([field for field in form.fields if field.startswith("key.")])):
        name, key = form.raw(f"id.{place}"), form.raw(f"key.{place}")
        reward, failed = number_in(form.text(f"reward.{place}"), name), bool(form.text(f"failed.{place}"))
        if reward is not None and failed:
            raise InvalidInput(f"{name!r} has a result and is marked as failed; choose one. {NOTHING}")
        if reward is None and not failed:
            continue
        beside = {
            one.name: number_in(form.text(f"quantity.{place}.{number}"), f"{name}, {one.name}")
            for number, one in enumerate(study.constraints)
        }
        fields = {"id": name, "key": key, "reward": reward, "failed": failed, "quantities": {} if failed else beside}
        fields |= {field: form.text(f"{field}.{place}") or None for field in ("block", "item")}
        found.append(brought(Result, fields, f"The result of {name!r} is"))
    return found
