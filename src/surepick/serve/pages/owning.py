"""Forms of owners: candidates that go or come, measurements that will not come, an early end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import APIRouter, Request, Response

from surepick.errors import InvalidInput, SurepickError
from surepick.serve.access.roles import Principal, Role
from surepick.serve.api import studies
from surepick.serve.api.models import Ids, Reason, ReasonFor, brought
from surepick.serve.api.routing import Owner, Routes, Shared, Shows
from surepick.serve.pages.forms import Form, Posted
from surepick.serve.pages.shell import study_path, to
from surepick.serve.pages.study import show
from surepick.serve.web.callers import Server
from surepick.serve.web.problems import status_of
from surepick.studies.logs.base import INDEPENDENT_OF_VALUE

router = APIRouter(include_in_schema=False)
routes = Routes(router)


@routes.add("POST", "/studies/{name}/abandon", Shows.closed, who=Role.owner)
def abandon(name: str, request: Request, server: Shared, caller: Owner, form: Posted) -> Response:
    """Give missing measurements up."""

    def act() -> str:
        fields = {"reason": _reason(form), "ids": _ids(form) or None}
        studies.abandon(name, brought(ReasonFor, fields, "The reason is"), request, server, caller)
        return "The measurements were given up."

    return _done(act, request, server, caller, name)


@routes.add("POST", "/studies/{name}/withdraw", Shows.closed, who=Role.owner)
def withdraw(name: str, request: Request, server: Shared, caller: Owner, form: Posted) -> Response:
    """Go on without some candidates."""

    def act() -> str:
        ids = _named(form, "go")
        why = brought(ReasonFor, {"reason": _reason(form), "ids": ids}, "The reason is")
        studies.withdraw(name, why, request, server, caller)
        return f"Withdrawn: {_listed(ids)}."

    return _done(act, request, server, caller, name)


@routes.add("POST", "/studies/{name}/add", Shows.closed, who=Role.owner)
def add(name: str, request: Request, server: Shared, caller: Owner, form: Posted) -> Response:
    """Candidates that were declared to come later are there."""

    def act() -> str:
        ids = _named(form, "come")
        studies.add(name, brought(Ids, {"ids": ids}, "The candidates are"), request, server, caller)
        return f"From the next round on: {_listed(ids)}."

    return _done(act, request, server, caller, name)


@routes.add("POST", "/studies/{name}/judge", Shows.closed, who=Role.owner)
def judge(name: str, request: Request, server: Shared, caller: Owner, form: Posted) -> Response:  # noqa: ARG001
    """Judge what is in."""

    def act() -> str:
        judged = studies.judge(name, request, server, caller)["judged"]
        return "What was in is judged." if judged else "Nothing was in, so nothing was judged."

    return _done(act, request, server, caller, name)


@routes.add("POST", "/studies/{name}/close", Shows.closed, who=Role.owner)
def close(name: str, request: Request, server: Shared, caller: Owner, form: Posted) -> Response:
    """End the study early."""

    def act() -> str:
        studies.close(name, brought(Reason, {"reason": form.text("reason")}, "The reason is"), request, server, caller)
        return "The study is closed. Its answer says what the closed rounds prove."

    return _done(act, request, server, caller, name)


def _done(act: Callable[[], str], request: Request, server: Server, caller: Principal, name: str) -> Response:
    """Do it, and show the study again with what was done, or why it was not."""
    try:
        said = act()
    except SurepickError as error:
        more: dict[str, Any] = {"status": status_of(error), "error": str(error)}
        return show(request, server, caller, name, **more)
    return to(request, study_path(name), said)


def _reason(form: Form) -> str:
    """Why: that it has nothing to do with values, or in words."""
    return INDEPENDENT_OF_VALUE if form.text("independent") == "yes" else form.text("reason")


def _named(form: Form, do: str) -> list[str]:
    """Candidates, at least one.

    Raises:
        InvalidInput: there is none.
    """
    ids = _ids(form)
    if not ids:
        raise InvalidInput(f"Name the candidates that {do}.")
    return ids


def _listed(ids: list[str]) -> str:
    return f"{', '.join(ids[:5])}{' and more' if len(ids) > 5 else ''}"


def _ids(form: Form) -> list[str]:
    """Candidates: those that were chosen, or one a line."""
    return [*form.many("ids"), *(line.strip() for line in form.raw("typed_ids").splitlines() if line.strip())]
