"""The tab "Measure" of a study: where it stands, what its caller has to measure, and the forms of those who measure."""

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Depends, Request, Response

from surepick.core.descriptions import SHOWN, Scale
from surepick.core.records import record
from surepick.errors import InvalidInput, SurepickError, UnusualResult
from surepick.studies.progress import times
from surepick.studies.study import Study
from surepick_server.access.tokens import Principal, Role
from surepick_server.api import models, results
from surepick_server.api.results import part_of
from surepick_server.api.routing import Measurer, Routes, Shared, Viewer, Visibility
from surepick_server.api.studies import results_in
from surepick_server.pages.drawings import MOST_DRAWN, closeness_of
from surepick_server.pages.layout import FieldErrors, Form, Posted, page, study_path, to, typed_number
from surepick_server.pages.standing import standing_of
from surepick_server.web.auth import ServerState, address_of, needs
from surepick_server.web.open_studies import HTTPError, status_of

routes = Routes(include_in_schema=False)

A_PAGE = 50  # measurements with a field of their own on one page
MOST_OWN = 50  # results of the caller that are shown to be taken back, or corrected
MOST_LOOKED = 10_000  # results among which those of the caller's programs are looked for, too
MOST_ROUNDS = 50  # of which results are offered to be corrected


@record
class Asked:
    """A result that stands out, as the page asks about it."""

    name: str  # of its field
    value: str  # as it was typed
    why: str  # a clause: beside what it stands out
    mended: str  # what it may have been meant to be; "" where nobody knows
    key: str  # what is ticked: of this measurement this value


@routes.add("GET", "/studies/{name}", Visibility.own, who=Role.viewer)
def study_page(name: str, request: Request, server: Shared, caller: Viewer, rows: int = 1) -> Response:
    """What there is to measure."""
    return show(request, server, caller, name, part=rows)


def show(
    request: Request,
    server: ServerState,
    caller: Principal,
    name: str,
    *,
    status: int = HTTPStatus.OK,
    error: str = "",
    errors: Mapping[str, str] | None = None,
    typed: dict[str, str] | None = None,
    asked: Sequence[Asked] = (),
    part: int = 1,
) -> Response:
    """The tab "Measure", e.g. after a form that was refused."""
    with server.studies.open(name) as study:
        shown = standing_of(server, study, name, caller)
        shown |= measuring_of(study, caller, part)
        if caller.role >= Role.measurer:
            shown |= {"own_results": own_results(study, caller), "closed_results": closed_results(study, caller)}
    drawn = shown["progress"].judged and shown["asked"]["candidates"] <= MOST_DRAWN
    shown["closeness"] = closeness_of(server, name) if drawn else {}
    shown |= {"error": error, "errors": dict(errors or {}), "typed": defaultdict(str, typed or {})}
    shown |= {"asked_about": list(asked), "odd": {one.name: one for one in asked}}
    return page(request, "study.html", caller, status=status, **shown)


@routes.add("GET", "/studies/{name}/standing", Visibility.own, who=Role.viewer)
def standing(name: str, request: Request, server: Shared, caller: Viewer, holds: str = "") -> Response:
    """What changes while others measure; and the caller's own measurements, if these are others than the page has."""
    with server.studies.open(name) as study:
        shown = standing_of(server, study, name, caller) | measuring_of(study, caller, 1)
    drawn = shown["progress"].judged and shown["asked"]["candidates"] <= MOST_DRAWN
    shown["closeness"] = closeness_of(server, name) if drawn else {}
    shown |= {"errors": {}, "typed": defaultdict(str), "odd": {}, "page_holds": holds, "swapped": True}
    return page(request, "changes.html", caller, **shown)


def measuring_of(study: Study, caller: Principal, part: int) -> dict[str, Any]:
    """What the caller holds: the rows of a page, and who else of them holds some."""
    found = tasks_shown(study, caller) if caller.role >= Role.measurer else []
    progress = study.progress()
    first = found[0] if found else None
    rows = first["measurements"] if first else []
    parts = max(-(-len(rows) // A_PAGE), 1)
    number = min(max(part, 1), parts)
    places = {one: arm for arm, one in enumerate(study.ids)} if found and study.described else {}
    each, nth = Counter(row["id"] for row in rows), Counter[str]()
    for row in rows:
        nth[row["id"]] += 1
        row["where"] = f"{nth[row['id']]} of {each[row['id']]}" if each[row["id"]] > 1 else ""
        row["cells"] = study.described.of(places[row["id"]])[:SHOWN] if places else ()
        row["line"] = study.described.line(places[row["id"]]) if places else ""
    held = len(rows)
    return {
        "tasks": found[:1],
        "others": found[1:],
        "rows": rows[(number - 1) * A_PAGE : number * A_PAGE],
        "first_row": (number - 1) * A_PAGE,
        "part": number,
        "parts": parts,
        "described": study.described.columns[:SHOWN] if found else (),
        "constraints": [one.name for one in study.constraints],
        "holds": "over" if progress.stopped or progress.ended is not None else holding(found, free=bool(progress.free)),
        "closes": bool(held) and progress.asked - progress.told == held,
    }


def holding(tasks: list[dict[str, Any]], *, free: bool) -> str:
    """What tells one set of measurements in hand from another; of none, whether some can be taken."""
    keys = [str(row["key"]) for task in tasks for row in task["measurements"]]
    return f"{len(keys)}.{keys[0]}.{keys[-1]}" if keys else "free" if free else "none"


def tasks_shown(study: Study, caller: Principal) -> list[dict[str, Any]]:
    """What the caller holds, a lease at a time."""
    out = list(dict.fromkeys(one.worker for one in study.progress().out if caller.is_worker(one.worker)))
    held = [part_of(study, part) for worker in out if (part := study.held(worker)) is not None]
    return [one for one in held if one["measurements"]]


def own_results(study: Study, caller: Principal) -> list[dict[str, Any]]:
    """What the caller reported in the open round and can take back, the latest first."""
    planned = study.log.last_plan()
    if planned is None or not study.replay.look(planned).takes_results:
        return []
    own = [one for one in study.log.reported(planned.number, None) if caller.is_worker(one.source) and one.key]
    return [
        {
            "id": study.ids[one.arm],
            "line": study.described.line(one.arm) if study.described else "",
            "key": one.key,
            "worker": one.source,
            "value": one.total / one.pulls,
            "at": one.at,
        }
        for one in reversed(own[-MOST_OWN:])
    ]


def closed_results(study: Study, caller: Principal) -> list[dict[str, Any]]:
    """What the caller reported in the last closed rounds and can correct, the latest first."""
    if not study.policy.traits.corrects or study.log.ended() is not None:
        return []
    progress, found = study.progress(), list[dict[str, Any]]()
    judged = progress.judged
    now = {one.result: one.read for one in study.log.corrections()}
    whose = None if progress.pulls <= MOST_LOOKED else caller.name  # of many results those under the very name
    for number in range(judged, max(judged - MOST_ROUNDS, 0), -1):
        for one in reversed(study.log.reported(number, whose)):
            if caller.is_worker(one.source) and one.key and one.pulls == 1:
                value = now.get(one.number, one.total)
                found.append({"id": study.ids[one.arm], "key": one.key, "worker": one.source, "value": value})
        if len(found) >= MOST_OWN:
            break
    return found[:MOST_OWN]


@routes.add("GET", "/studies/{name}/tasks.csv", Visibility.own, who=Role.measurer)
def tasks_table(name: str, server: Shared, caller: Measurer) -> Response:
    """What the caller holds, as a table whose results are to be filled in."""
    with server.studies.open(name) as study:
        text = shown_table(study, tasks_shown(study, caller))
    return Response(
        text, media_type="text/csv; charset=utf-8", headers={"content-disposition": 'attachment; filename="tasks.csv"'}
    )


def shown_table(study: Study, tasks: list[dict[str, Any]]) -> str:
    """Tasks as a table under the study's own names, with an empty column for each number that is measured."""
    rows = [row for task in tasks for row in task["measurements"]]
    beside = list(tasks[0]["quantities"]) if tasks else []
    block = tasks[0]["block"] if tasks else None
    items = any("item" in row for row in rows)
    extra = [*(["item"] if items else []), *([block] if block else [])]
    columns = study.column_names
    name = columns.id if columns.id is not None and "," not in columns.id else "id"
    header = [name, *extra, "key", columns.reward or "reward", *beside]
    places = {one: arm for arm, one in enumerate(study.ids)} if study.described else {}
    said = [
        (one, cells)
        for one, cells in zip(study.described.columns, study.described.cells, strict=True)
        if one not in header and one.strip().casefold() not in ("key", "keys", "id", "reward")
    ]
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow([name, *(one for one, _ in said), *header[1:]])
    for row in rows:
        made_of = [cells[places[row["id"]]] for _, cells in said]
        more = ([row.get("item", "")] if items else []) + ([row.get("block", "")] if block else [])
        writer.writerow([row["id"], *made_of, *more, row["key"], "", *("" for _ in beside)])
    return written.getvalue()


# --- Forms: take measurements, enter results, take one back, correct one, give measurements back.

Act = Callable[..., str]  # does what a form asks, and says what was done
NOTHING = "Nothing was stored."
QUESTION = (
    f"Is it a typing error? {NOTHING} If it is one, correct it below. If it is what was read, whatever its value, say "
    "so below and store it again."
)


def form(
    verb: str,
    shows: Visibility,
    *,
    who: Role,
    back: str = "",
    shown: Callable[..., Response] = show,
    routes: Routes = routes,
) -> Callable[[Act], Act]:
    """A form of a page of a study: it shows the page again, with what was done, or why it was not."""

    def added(act: Act) -> Act:
        def posted(name: str, request: Request, server: Shared, caller: Principal, form: Posted) -> Response:
            try:
                said = act(name, form, request, server, caller)
            except SurepickError as error:
                return shown(request, server, caller, name, status=status_of(error), error=str(error))
            return to(request, study_path(name, back), said)

        posted.__name__, posted.__doc__ = act.__name__, act.__doc__
        posted.__annotations__["caller"] = Annotated[Principal, Depends(needs(who))]
        routes.add("POST", f"/studies/{{name}}/{verb}", shows, who=who)(posted)
        return act

    return added


@form("take", Visibility.own, who=Role.measurer)
def take(name: str, form: Form, *call: Any) -> str:
    """Take measurements, as the API's lease."""
    most = form.number("max_pulls", "how many")
    whole = int(most) if most is not None and most.is_integer() else most
    fields = {"max_pulls": whole, "duration": form.text("duration") or None}
    answer = results.lease(name, models.brought(models.LeaseOf, fields, "The measurements that you want are"), *call)
    if answer["stopped"]:
        return "The study needs no more measurements."
    if not answer["pulls"]:
        return "Others have taken all measurements of this round that are missing. Look again later."
    return f"You hold {times(answer['pulls'], 'measurement')}. Enter each result below once you have it."


@form("undo", Visibility.own, who=Role.measurer)
def undo_form(name: str, form: Form, *call: Any) -> str:
    """Take back a result of the open round, as the API's undo."""
    fields = {"keys": [form.raw("key")], "worker": form.text("worker") or None}
    ids = results.undo_results(name, models.brought(models.Undone, fields, "The result is"), *call)["ids"]
    return f"The result of {', '.join(ids)} was taken back. Take its measurement again to enter the right one."


@form("correct", Visibility.own, who=Role.measurer)
def correct_form(name: str, form: Form, *call: Any) -> str:
    """Correct a result of a closed round, as the API's correct."""
    fields = {"key": form.raw("key"), "value": form.number("value", "what was read"), "reason": form.text("reason")}
    fields["worker"] = form.text("worker") or None
    told = results.correct_result(name, models.brought(models.Correction, fields, "What was read is"), *call)
    when = "once the round that is open is complete" if told["waits"] else "from now on"
    return f"{told['read']:.12g} counts in the place of {told['typed']:.12g} of {told['id']}, {when}."


@form("release", Visibility.own, who=Role.measurer)
def release_form(name: str, form: Form, *call: Any) -> str:
    """Give measurements back; an owner may do it for others."""
    whose = models.brought(models.Worker, {"worker": form.text("worker") or None}, "The name is")
    answer = results.release_worker(name, whose, *call)
    return f"{times(answer['released'], 'measurement')} of {answer['worker']} can be taken by others now."


@routes.add("POST", "/studies/{name}/results", Visibility.own, who=Role.measurer)
def tell_form(name: str, request: Request, server: Shared, caller: Measurer, form: Posted) -> Response:
    """Store results: of the fields, of a pasted table, or of a file.

    A result that stands out is asked about: the page comes back with what was typed. What is ticked there holds for
    the results that were asked about, with their values.
    """
    came: list[models.ResultBody] = []
    notes: list[str] = []
    by_rows = form.text("way") == "rows"
    typed = {field: texts[0] for field, texts in form.fields.items()}
    part = int(form.text("rows", "1")) if form.text("rows", "1").isdecimal() else 1
    if form.text("mend"):  # without scripts: what was proposed, and nothing is stored
        place, _, value = form.raw("mend").partition(":")
        return show(request, server, caller, name, typed=typed | {f"reward.{place}": value}, part=part)

    def read(study: Study) -> models.ResultsBody:
        if by_rows:
            came[:] = rows_in(form, study)
            return models.ResultsBody(results=came)
        content = form.files["file"][1] if "file" in form.files else form.raw("pasted").strip().encode()
        if not content.strip():
            raise InvalidInput("There is no table: choose a file, or paste its rows with their header.")
        table, notes[:] = results_in(content, "text/csv", study)
        came[:] = with_keys(table.results, study, tasks_shown(study, caller))
        return table.model_copy(update={"results": came})

    def accepted(study: Study) -> models.ResultsBody:
        return read(study).model_copy(update={"accept_unusual": True})

    reporter = results.Reporter(server, caller, address_of(request))
    more: dict[str, Any] = {"typed": typed, "part": part}
    try:
        try:
            answer = reporter.results(name, read)
        except UnusualResult as question:
            said = {one.key for one in asked_of(came, question, form)}
            sure = by_rows or bool(form.text("accept_unusual"))
            if not sure or not said <= set(form.many("asked")):
                raise
            answer = reporter.results(name, accepted)
    except UnusualResult as question:
        if "file" in form.files:
            typed["pasted"] = form.files["file"][1].decode(errors="replace")
        with server.studies.open(name) as study:
            more["asked"] = asked_of(came, question, form, study.scale)
        said_first = f"{str(question).partition(' Is it a typing error?')[0]} {QUESTION}"
        return show(request, server, caller, name, status=status_of(question), error=said_first, **more)
    except FieldErrors as wrong:
        return show(request, server, caller, name, status=status_of(wrong), errors=wrong.fields, **more)
    except (SurepickError, HTTPError) as error:
        status, words = status_of(error), str(error)
        if isinstance(error, InvalidInput) and NOTHING not in words:
            words = f"{words} {NOTHING} Look at what you typed, and store it again."
        if isinstance(error, HTTPError) and status == HTTPStatus.NOT_FOUND:
            raise
        return show(request, server, caller, name, status=status, error=words, **more)
    return to(request, study_path(name), " ".join([said_of(answer), *(note[:1].upper() + note[1:] for note in notes)]))


def asked_of(
    came: list[models.ResultBody], question: UnusualResult, form: Form, scale: Scale | None = None
) -> list[Asked]:
    """The results that are asked about, each with its value; what was reported before has no place among them."""
    places = {form.raw(field): field.removeprefix("key.") for field in form.fields if field.startswith("key.")}
    found = []
    for row, (against, why) in zip(question.rows, question.beside, strict=True):
        if row >= len(came):
            continue
        one = came[row]
        place, value = places.get(one.key or "", ""), one.reward if one.reward is not None else 0.0
        mended = "" if scale is None else mended_of(value, against, scale)
        key = f"{one.key} {one.reward!r}"
        found.append(Asked(f"reward.{place}", form.text(f"reward.{place}") or f"{value:.12g}", why, mended, key))
    return found or [Asked("", "", str(question), "", str(question))]


def mended_of(value: float, against: float, scale: Scale) -> str:
    """What a result may have been meant to be: with its point or its sign elsewhere, nearest to the others."""
    powers = [10.0**power for power in (1, 2, 3, 4)]
    moved = [-value, *(value / one for one in powers), *(value * one for one in powers)]
    known = [one for one in moved if one and scale.outside(one) is None]
    best = min(known, key=lambda one: abs(one - against), default=None)
    return "" if best is None or abs(best - against) >= abs(value - against) else f"{best:.12g}"


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


def with_keys(rows: list[models.ResultBody], study: Study, tasks: list[dict[str, Any]]) -> list[models.ResultBody]:
    """The rows of a table, where one without a key gets that of the measurement that its caller holds.

    Rows without keys are matched by candidate (and block), if there are as many of them as measurements that the caller
    holds: then it does not matter which is which, and a table that is given twice finds nothing left to match.
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


def rows_in(form: Form, study: Study) -> list[models.ResultBody]:
    """The rows of the fields that were filled in, or marked as failed."""
    found, wrong = [], dict[str, str]()
    places = [field.removeprefix("key.") for field in form.fields if field.startswith("key.")]
    for place in places:
        name, key, failed = form.raw(f"id.{place}"), form.raw(f"key.{place}"), bool(form.text(f"failed.{place}"))
        beside: dict[str, float | None] = {}
        reward = None
        numbers = {f"reward.{place}": name}
        numbers |= {f"quantity.{place}.{number}": one.name for number, one in enumerate(study.constraints)}
        for field, called in numbers.items():
            try:
                value = typed_number(form.text(field), called)
            except InvalidInput:
                wrong[field] = not_a_number(form.text(field))
                continue
            if field.startswith("reward."):
                reward = value
            else:
                beside[called] = value
        if reward is not None and failed:
            wrong[f"reward.{place}"] = "It has a result and is marked as without one; choose one."
        if reward is None and not failed:
            continue
        fields = {"id": name, "key": key, "reward": reward, "failed": failed, "quantities": {} if failed else beside}
        fields |= {field: form.text(f"{field}.{place}") or None for field in ("block", "item")}
        found.append(models.brought(models.ResultBody, fields, f"The result of {name!r} is"))
    if wrong:
        raise FieldErrors(wrong)
    return found


def not_a_number(cell: str) -> str:
    """Why what was typed is no number, and what may have been meant."""
    meant = cell.translate(str.maketrans("OolI", "0011"))
    digits = meant != cell and meant.replace(".", "", 1).replace(",", "", 1).lstrip("-").isdecimal()
    return f"“{cell[:40]}” is no number." + (f" Did you mean {meant}?" if digits else "")
