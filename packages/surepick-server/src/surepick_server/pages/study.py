"""The page of a study: where it stands, what its caller has to measure, and what its owners may do."""

import csv
import io
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Depends, Request, Response

from surepick.core.records import record
from surepick.errors import InvalidInput, StorageError, SurepickError, UnusualResult
from surepick.questions import asked_of
from surepick.studies.logs.base import INDEPENDENT_OF_VALUE
from surepick.studies.progress import ListedSoFar, Progress, times
from surepick.studies.study import Study
from surepick_server.access.tokens import Principal, Role
from surepick_server.api import documents, models, results, studies
from surepick_server.api.results import part_of
from surepick_server.api.routing import Measurer, Routes, Shared, Viewer, Visibility
from surepick_server.api.studies import results_in, study_status
from surepick_server.pages.drawings import drawings_of
from surepick_server.pages.layout import Form, Posted, page, sentence, study_path, to, typed_number
from surepick_server.web.auth import ServerState, address_of, needs
from surepick_server.web.open_studies import HTTPError, status_of

routes = Routes(include_in_schema=False)

# --- The list of studies, with what each waits for.

A_PAGE = 50  # studies


@record
class StudyLine:
    """A study of the list."""

    study: ListedSoFar  # at a glance
    waits: str  # for what it waits
    mine: bool  # it waits for the caller
    running: bool  # it still waits for something
    best: str  # what the closed rounds say


@routes.add("GET", "/", Visibility.closed, who=Role.viewer)
def overview(request: Request, server: Shared, caller: Viewer, part: int = 1) -> Response:
    """The studies that the caller may see, the newest first."""
    found = [one for one in server.studies.database.list() if caller.study in (None, one.name)]
    found.sort(key=lambda one: (-one.created_at, one.name))
    parts = max(-(-len(found) // A_PAGE), 1)
    part = min(max(part, 1), parts)
    shown = [_line(server, one, caller) for one in found[(part - 1) * A_PAGE : part * A_PAGE]]
    return page(request, "list.html", caller, lines=shown, total=len(found), part=part, parts=parts)


def _line(server: ServerState, one: ListedSoFar, caller: Principal) -> StudyLine:
    try:
        with server.studies.open(one.name) as study:
            progress = study.progress()
    except StorageError as error:
        return StudyLine(one, str(error), False, False, "")
    waits, mine = waits_for(progress, caller)
    running = not progress.stopped and progress.ended is None
    return StudyLine(one, waits, mine, running, sentence(progress.best, progress.leader))


def waits_for(progress: Progress, caller: Principal) -> tuple[str, bool]:
    """(what a study waits for, or how it ended; whether it waits for something of the caller)."""
    if progress.stopped:
        return "done", False
    if progress.ended is not None:
        return "closed early", False
    held = sum(one.pulls for one in progress.out if caller.is_worker(one.worker))
    if held:
        return f"you: {times(held, 'measurement')}", True
    if progress.free:
        return f"somebody who measures: {times(progress.free, 'measurement')} to take", caller.role >= Role.measurer
    if progress.out:
        names = list(dict.fromkeys(one.worker for one in progress.out))
        others = f" and {len(names) - 3} more" if len(names) > 3 else ""
        return f"{', '.join(names[:3])}{others}: {times(sum(one.pulls for one in progress.out), 'measurement')}", False
    return "somebody who takes the first measurements of the next round", caller.role >= Role.measurer


MOST_ROWS = 40  # measurements with a field of their own; others go by a table
MOST_ROUNDS = 50  # of which results are offered to be corrected
MOST_NAMED = 500  # candidates that are offered for choice


@routes.add("GET", "/studies/{name}", Visibility.own, who=Role.viewer)
def study_page(name: str, request: Request, server: Shared, caller: Viewer) -> Response:
    """A study."""
    return show(request, server, caller, name)


def show(
    request: Request,
    server: ServerState,
    caller: Principal,
    name: str,
    *,
    status: int = HTTPStatus.OK,
    error: str = "",
    typed: dict[str, str] | None = None,
    asked: Sequence[str] = (),
) -> Response:
    """The page of a study, e.g. after a form that was refused."""
    with server.studies.open(name) as study:
        shown = standing_of(study, name, caller)
        tasks = tasks_shown(study, caller) if caller.role >= Role.measurer else []
        mine = own_results(study, caller) if caller.role >= Role.measurer else []
        closed = closed_results(study, caller) if caller.role >= Role.measurer else []
        ids = study.ids if len(study.ids) <= MOST_NAMED else ()
        constraints = [one.name for one in study.constraints]
        in_parts = shown["progress"].judge != "closed rounds"
        words = {"question": question_of(study), "noise_words": noise_words(shown["asked"]["noise"])}
        shown |= {**words, "can_withdraw": study.policy.traits.withdraw is not None}
    shown |= {"tasks": tasks, "ids": ids, "constraints": constraints, "in_parts": in_parts}
    shown |= {
        "closed_results": closed,
        "own_results": mine,
        "asked_about": list(asked),
        "odd_keys": {one.rpartition(" ")[0] for one in asked},
    }
    shown |= {"error": error, "typed": defaultdict(str, typed or {}), "most_rows": MOST_ROWS}
    return page(request, "study.html", caller, status=status, **shown)


@routes.add("GET", "/studies/{name}/standing", Visibility.closed, who=Role.viewer)
def standing(name: str, request: Request, server: Shared, caller: Viewer) -> Response:
    """The part of the page that changes while others measure."""
    with server.studies.open(name) as study:
        shown = standing_of(study, name, caller)
    return page(request, "standing.html", caller, **shown)


@routes.add("GET", "/studies/{name}/tasks.csv", Visibility.own, who=Role.measurer)
def tasks_table(name: str, server: Shared, caller: Measurer) -> Response:
    """What the caller holds, as a table whose rewards are to be filled in."""
    with server.studies.open(name) as study:
        text = shown_table(tasks_shown(study, caller))
    return Response(
        text, media_type="text/csv; charset=utf-8", headers={"content-disposition": 'attachment; filename="tasks.csv"'}
    )


def standing_of(study: Study, name: str, caller: Principal) -> dict[str, Any]:
    """Where a study stands, for templates."""
    progress = study.progress()
    waits, mine = waits_for(progress, caller)
    over = progress.stopped or progress.ended is not None
    shown = {"name": name, "asked": study_status(study, name), "progress": progress}
    return shown | {"waits": waits, "mine": mine, "over": over}


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
        {"id": study.ids[one.arm], "key": one.key, "worker": one.source, "value": one.total / one.pulls}
        for one in reversed(own[-MOST_ROWS:])
    ]


def closed_results(study: Study, caller: Principal) -> list[dict[str, Any]]:
    """What the caller reported in the last closed rounds and can correct, the latest first."""
    if not study.policy.traits.corrects or study.log.ended() is not None:
        return []
    judged, found = study.progress().judged, list[dict[str, Any]]()
    now = {one.result: one.read for one in study.log.corrections()}
    for number in range(judged, max(judged - MOST_ROUNDS, 0), -1):
        for one in reversed(study.log.reported(number, None)):
            if caller.is_worker(one.source) and one.key and one.pulls == 1:
                value = now.get(one.number, one.total)
                found.append({"id": study.ids[one.arm], "key": one.key, "worker": one.source, "value": value})
        if len(found) >= MOST_ROWS:
            break
    return found[:MOST_ROWS]


def question_of(study: Study) -> str:
    """What is asked, and what is promised of the answer."""
    problem, by_segment = study.policy.problem, study.arms.segments is not None
    wanted = asked_of(problem.question, by_segment=by_segment)
    if wanted is None:
        largest = "smallest" if study.minimize else "largest"
        if study.policy.traits.any_gap:
            return (
                f"One as near to the {largest} as {study.policy.traits.budget:,} measurements can show. How near, the "
                f"answer says; that may be wrong with probability {problem.delta:g} at most."
            )
        return (
            f"One whose mean is within {problem.epsilon:g} of the {largest}; that may be wrong with probability "
            f"{problem.delta:g} at most."
        )
    return " ".join((*wanted.said(problem.epsilon, by_segment=by_segment), wanted.guarantee(problem.delta)))


def noise_words(spec: str) -> str:
    """What is assumed of a measurement, for people who never saw how we write it; "" for kinds that are seldom."""
    kind, *numbers = spec.split(":")
    if kind == "bernoulli":
        return "0 or 1"
    if kind == "normal":
        return "scatters like a bell curve, nobody knows how far"
    if kind == "bounded" and len(numbers) == 2:
        return f"between {float(numbers[0]):g} and {float(numbers[1]):g}"
    if kind == "subgaussian" and len(numbers) == 1:
        return f"scatters like a bell curve with a standard deviation of {float(numbers[0]):g}, or less"
    return ""


def shown_table(tasks: list[dict[str, Any]]) -> str:
    """Tasks as a table, with an empty column for each number that is measured."""
    rows = [row for task in tasks for row in task["measurements"]]
    beside = list(tasks[0]["quantities"]) if tasks else []
    block = tasks[0]["block"] if tasks else None
    items = any("item" in row for row in rows)
    header = ["id", "key", *(["item"] if items else []), *([block] if block else []), "reward", *beside]
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        extra = ([row.get("item", "")] if items else []) + ([row.get("block", "")] if block else [])
        writer.writerow([row["id"], row["key"], *extra, "", *("" for _ in beside)])
    return written.getvalue()


# --- Forms of those who measure: take measurements, enter results, give measurements back.

Act = Callable[..., str]  # does what a form asks, and says what was done
NOTHING = "Nothing was stored."
QUESTION = (
    f"Is it a typing error? {NOTHING} If it is one, correct it below. If it is what was read, whatever its value, "
    "store it as it is with the second button."
)


def form(verb: str, shows: Visibility, *, who: Role) -> Callable[[Act], Act]:
    """A form of the page of a study: it shows the page again, with what was done, or why it was not."""

    def added(act: Act) -> Act:
        def posted(name: str, request: Request, server: Shared, caller: Principal, form: Posted) -> Response:
            try:
                said = act(name, form, request, server, caller)
            except SurepickError as error:
                return show(request, server, caller, name, status=status_of(error), error=str(error))
            return to(request, study_path(name), said)

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

    A result that stands out is asked about: the page comes back with what was typed, and a button that stores it as it
    is. Pressing it holds for the results that were asked about, with their values.
    """
    came: list[models.ResultBody] = []
    notes: list[str] = []

    def read(study: Study) -> models.ResultsBody:
        if form.text("way") == "rows":
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
    typed = {field: texts[0] for field, texts in form.fields.items()}
    try:
        try:
            answer = reporter.results(name, read)
        except UnusualResult as question:
            if not form.text("accept_unusual") or not set(said_of_unusual(came, question)) <= set(form.many("asked")):
                raise
            answer = reporter.results(name, accepted)
    except UnusualResult as question:
        if "file" in form.files:
            typed["pasted"] = form.files["file"][1].decode(errors="replace")
        more: dict[str, Any] = {"typed": typed, "asked": said_of_unusual(came, question)}
        said = f"{str(question).partition(' Is it a typing error?')[0]} {QUESTION}"
        return show(request, server, caller, name, status=status_of(question), error=said, **more)
    except (SurepickError, HTTPError) as error:
        status, said = status_of(error), str(error)
        if isinstance(error, InvalidInput) and NOTHING not in said:
            said = f"{said} {NOTHING} Look at what you typed, and store it again."
        if isinstance(error, HTTPError) and status == HTTPStatus.NOT_FOUND:
            raise
        return show(request, server, caller, name, status=status, error=said, typed=typed)
    return to(request, study_path(name), " ".join([said_of(answer), *(note[:1].upper() + note[1:] for note in notes)]))


def said_of_unusual(came: list[models.ResultBody], question: UnusualResult) -> list[str]:
    """The results that are asked about, each with its value; what was reported before has no place among them."""
    rows = [came[row] for row in question.rows if row < len(came)]
    return [f"{one.key} {one.reward!r}" for one in rows] or [str(question)]


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
    found = []
    for place in range(len([field for field in form.fields if field.startswith("key.")])):
        name, key = form.raw(f"id.{place}"), form.raw(f"key.{place}")
        reward, failed = typed_number(form.text(f"reward.{place}"), name), bool(form.text(f"failed.{place}"))
        if reward is not None and failed:
            raise InvalidInput(f"{name!r} has a result and is marked as failed; choose one. {NOTHING}")
        if reward is None and not failed:
            continue
        beside = {
            one.name: typed_number(form.text(f"quantity.{place}.{number}"), f"{name}, {one.name}")
            for number, one in enumerate(study.constraints)
        }
        fields = {"id": name, "key": key, "reward": reward, "failed": failed, "quantities": {} if failed else beside}
        fields |= {field: form.text(f"{field}.{place}") or None for field in ("block", "item")}
        found.append(models.brought(models.ResultBody, fields, f"The result of {name!r} is"))
    return found


# --- Forms of owners: candidates that go or come, measurements that will not come, an early end.


@form("abandon", Visibility.closed, who=Role.owner)
def abandon_form(name: str, form: Form, *call: Any) -> str:
    """Give missing measurements up."""
    fields = {"reason": _reason(form), "ids": _ids(form) or None}
    studies.abandon_round(name, models.brought(models.ReasonFor, fields, "The reason is"), *call)
    return "The measurements were given up."


@form("withdraw", Visibility.closed, who=Role.owner)
def withdraw_form(name: str, form: Form, *call: Any) -> str:
    """Go on without some candidates."""
    ids = _named(form, "go")
    fields = {"reason": _reason(form), "ids": ids}
    studies.withdraw_candidates(name, models.brought(models.ReasonFor, fields, "The reason is"), *call)
    return f"Withdrawn: {_listed(ids)}."


@form("add", Visibility.closed, who=Role.owner)
def add_form(name: str, form: Form, *call: Any) -> str:
    """Candidates that were declared to come later are there."""
    ids = _named(form, "come")
    studies.add_candidates(name, models.brought(models.Ids, {"ids": ids}, "The candidates are"), *call)
    return f"From the next round on: {_listed(ids)}."


@form("interim", Visibility.closed, who=Role.owner)
def interim_form(name: str, form: Form, *call: Any) -> str:  # noqa: ARG001
    """Judge what is in."""
    judged = studies.interim_judgement(name, *call)["judged"]
    return "What was in is judged." if judged else "Nothing was in, so nothing was judged."


@form("close", Visibility.closed, who=Role.owner)
def close_form(name: str, form: Form, *call: Any) -> str:
    """End the study early."""
    studies.close_study(name, models.brought(models.Reason, {"reason": form.text("reason")}, "The reason is"), *call)
    return "The study is closed. Its answer says what the closed rounds prove."


def _reason(form: Form) -> str:
    """Why: that it has nothing to do with values, or in words."""
    return INDEPENDENT_OF_VALUE if form.text("independent") == "yes" else form.text("reason")


def _named(form: Form, do: str) -> list[str]:
    """Candidates, at least one."""
    ids = _ids(form)
    if not ids:
        raise InvalidInput(f"Name the candidates that {do}.")
    return ids


def _listed(ids: list[str]) -> str:
    return f"{', '.join(ids[:5])}{' and more' if len(ids) > 5 else ''}"


def _ids(form: Form) -> list[str]:
    """Candidates: those that were chosen, or one a line."""
    return [*form.many("ids"), *(line.strip() for line in form.raw("typed_ids").splitlines() if line.strip())]


# --- Answer, history, certificate, report and results of a study; and certificates that are checked.

MOST_DRAWN = 5_000  # candidates of a study whose pictures are drawn here; the report has those of larger ones


@routes.add("GET", "/studies/{name}/answer", Visibility.closed, who=Role.viewer)
def answer_page(name: str, request: Request, server: Shared, caller: Viewer) -> Response:
    """What the closed rounds say."""
    with server.studies.open(name) as study:
        shown = standing_of(study, name, caller)
        found = study.certificate() if shown["progress"].judged or shown["over"] else None
        drawn = shown["progress"].judged and len(study.ids) <= MOST_DRAWN
        problem = study.policy.problem
    drawings = drawings_of(server, name) if drawn else []
    asked = asked_of(problem.question, by_segment=True)
    names = None if asked is None else asked.called(problem.epsilon)
    return page(request, "answer.html", caller, answer=found, drawings=drawings, names=names, **shown)


@routes.add("GET", "/studies/{name}/history", Visibility.closed, who=Role.viewer)
def history_page(name: str, request: Request, server: Shared, caller: Viewer) -> Response:
    """Who told how much of each closed round, and what was done over HTTP."""
    found = documents.read_history(name, server, caller)
    with server.studies.open(name) as study:
        shown = standing_of(study, name, caller)
    return page(request, "history.html", caller, history=found["history"], trail=found["trail"], **shown)


@routes.add("GET", "/studies/{name}/report", Visibility.closed, who=Role.viewer)
def report_page(name: str, server: Shared, caller: Viewer) -> Response:
    """The report, with a policy of its own."""
    return documents.read_report(name, server, caller)


@routes.add("GET", "/studies/{name}/certificate.json", Visibility.closed, who=Role.viewer)
def certificate_page(name: str, server: Shared, caller: Viewer) -> Response:
    """The certificate, as a file."""
    text = json.dumps(documents.show_certificate(name, server, caller), indent=1, ensure_ascii=False)
    named = {"content-disposition": 'attachment; filename="certificate.json"'}
    return Response(text, media_type="application/json", headers=named)


@routes.add("GET", "/studies/{name}/results.csv", Visibility.closed, who=Role.viewer)
def results_table(name: str, server: Shared, caller: Viewer) -> Response:
    """The results of the closed rounds, as a file."""
    found = documents.read_export(name, "csv", server, caller)
    found.headers["content-disposition"] = 'attachment; filename="results.csv"'
    return found


@routes.add("GET", "/verify", Visibility.nothing, who=Role.viewer)
def verify_page(request: Request, server: Shared, caller: Viewer) -> Response:  # noqa: ARG001
    """Where a certificate is dropped."""
    return page(request, "verify.html", caller, result=None, error="", code="", pasted="")


@routes.add("POST", "/verify", Visibility.nothing, who=Role.viewer)
def verify(request: Request, server: Shared, caller: Viewer, form: Posted) -> Response:  # noqa: ARG001
    """Compute the certificate's numbers again."""
    content = form.files["file"][1] if "file" in form.files else form.raw("pasted").encode()
    code, error, result, status = form.text("code"), "", None, HTTPStatus.OK
    try:
        result = documents.verify_document(_document(content), caller, code or None)
    except SurepickError as problem:
        error, status = str(problem), status_of(problem)
    pasted = "" if "file" in form.files else form.raw("pasted")
    return page(request, "verify.html", caller, status=status, result=result, error=error, code=code, pasted=pasted)


def _document(content: bytes) -> dict[str, Any]:
    if not content.strip():
        raise InvalidInput("There is no certificate: choose its file, or paste its text.")
    try:
        found = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        raise InvalidInput("This is no certificate: it is no JSON in UTF-8.") from None
    if not isinstance(found, dict):
        raise InvalidInput("This is no certificate: it is JSON of another kind.")
    return found
