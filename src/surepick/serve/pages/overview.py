"""The list of studies, with what each waits for."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from surepick.core.arrays import record
from surepick.errors import StorageError
from surepick.serve.access.roles import Principal, Role
from surepick.serve.api.routing import Routes, Shared, Shows, Viewer
from surepick.serve.pages.shell import page, sentence
from surepick.serve.web.callers import Server
from surepick.studies.progress import Listed, Progress, times

router = APIRouter(include_in_schema=False)
routes = Routes(router)
A_PAGE = 50  # studies


@record
class Line:
    """A study of the list.

    Args:
        study: at a glance.
        waits: for what it waits.
        mine: it waits for the caller.
        running: it still waits for something.
        best: what the closed rounds say.
    """

    study: Listed
    waits: str
    mine: bool
    running: bool
    best: str


@routes.add("GET", "/", Shows.closed, who=Role.viewer)
def overview(request: Request, server: Shared, caller: Viewer, part: int = 1) -> Response:
    """The studies that the caller may see, the newest first."""
    found = [one for one in server.studies.database.list() if caller.study in (None, one.name)]
    found.sort(key=lambda one: (-one.created_at, one.name))
    parts = max(-(-len(found) // A_PAGE), 1)
    part = min(max(part, 1), parts)
    shown = [_line(server, one, caller) for one in found[(part - 1) * A_PAGE : part * A_PAGE]]
    return page(request, "list.html", caller, lines=shown, total=len(found), part=part, parts=parts)


def _line(server: Server, one: Listed, caller: Principal) -> Line:
    try:
        with server.studies.open(one.name) as study:
            progress = study.progress()
    except StorageError as error:
        return Line(one, str(error), False, False, "")
    waits, mine = waits_for(progress, caller)
    running = not progress.stopped and progress.ended is None
    return Line(one, waits, mine, running, sentence(progress.best, progress.leader))


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
