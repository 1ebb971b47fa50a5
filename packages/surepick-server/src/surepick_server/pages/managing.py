"""The tab "Settings" of a study: its name, its note, its people's measurements, and what owners may do to it."""

from collections.abc import Callable
from typing import Any

from fastapi import Request, Response

from surepick.errors import InvalidInput
from surepick.studies.logs.base import INDEPENDENT_OF_VALUE
from surepick.studies.logs.sql.descriptions import ARCHIVED, NOTE, TITLE
from surepick_server.access.tokens import Principal, Role
from surepick_server.api import models, studies
from surepick_server.api.routing import Owner, Routes, Shared, Visibility
from surepick_server.pages.layout import Form, page
from surepick_server.pages.measuring import Act, form as form_of
from surepick_server.pages.standing import standing_of
from surepick_server.web.auth import ServerState, address_of

routes = Routes(include_in_schema=False)

MOST_NAMED = 500  # candidates that are offered for choice
MOST_TITLE, MOST_NOTE = 200, 4_000  # characters


@routes.add("GET", "/studies/{name}/settings", Visibility.closed, who=Role.owner)
def settings_page(name: str, request: Request, server: Shared, caller: Owner) -> Response:
    """What owners may change."""
    return show(request, server, caller, name)


def show(
    request: Request, server: ServerState, caller: Principal, name: str, *, status: int = 200, error: str = ""
) -> Response:
    """The tab "Settings", e.g. after a form that was refused."""
    with server.studies.open(name) as study:
        shown = standing_of(server, study, name, caller)
        shown["ids"] = study.ids if len(study.ids) <= MOST_NAMED else ()
        shown["in_parts"] = shown["progress"].judge != "closed rounds"
    return page(request, "settings.html", caller, status=status, error=error, **shown)


def form(verb: str, back: str = "settings") -> Callable[[Act], Act]:
    """A form of this tab, after which another one may be shown."""
    return form_of(verb, Visibility.closed, who=Role.owner, back=back, shown=show, routes=routes)


def say(name: str, said: dict[str, str], what: str, request: Request, server: ServerState, caller: Principal) -> None:
    """Store what is said of a study, and note in its history who did it."""
    server.studies.database.say(name.strip(), said, caller.name)
    server.trail.add(caller.name, address_of(request), what, name.strip(), next(iter(said.values()))[:200])


@form("rename")
def rename_form(name: str, form: Form, *call: Any) -> str:
    """Another title; addresses and commands go on with the name."""
    title = form.text("title")
    if not title or len(title) > MOST_TITLE or not title.isprintable():
        raise InvalidInput(f"Give a title of 1 to {MOST_TITLE} characters that can be printed.")
    say(name, {TITLE: title}, "rename", *call)
    return f"It is shown as {title} now; commands go on with {name}."


@form("note")
def note_form(name: str, form: Form, *call: Any) -> str:
    """What its people want to remember."""
    note = form.text("note")
    if len(note) > MOST_NOTE:
        raise InvalidInput(f"The note has {len(note):,} characters, and may have {MOST_NOTE:,}.")
    say(name, {NOTE: note}, "note", *call)
    return "The note is stored." if note else "The note is gone."


@form("archive")
def archive_form(name: str, form: Form, *call: Any) -> str:
    """Keep it out of the list, or put it back."""
    if form.text("archived") not in ("yes", "no"):
        raise InvalidInput("Say whether the study is to be archived, or put back into the list.")
    away = form.text("archived") == "yes"
    say(name, {ARCHIVED: "yes" if away else ""}, "archive" if away else "put back", *call)
    return "It is archived: the list shows it under Archived only." if away else "It is in the list again."


# --- What changes the study: candidates that go or come, measurements that will not come, an early end.


@form("abandon")
def abandon_form(name: str, form: Form, *call: Any) -> str:
    """Give missing measurements up."""
    fields = {"reason": _reason(form), "ids": _ids(form) or None}
    studies.abandon_round(name, models.brought(models.ReasonFor, fields, "The reason is"), *call)
    return "The measurements were given up."


@form("withdraw")
def withdraw_form(name: str, form: Form, *call: Any) -> str:
    """Go on without some candidates."""
    ids = _named(form, "go")
    fields = {"reason": _reason(form), "ids": ids}
    studies.withdraw_candidates(name, models.brought(models.ReasonFor, fields, "The reason is"), *call)
    return f"Withdrawn: {_listed(ids)}."


@form("add")
def add_form(name: str, form: Form, *call: Any) -> str:
    """Candidates that were declared to come later are there."""
    ids = _named(form, "come")
    studies.add_candidates(name, models.brought(models.Ids, {"ids": ids}, "The candidates are"), *call)
    return f"From the next round on: {_listed(ids)}."


@form("interim")
def interim_form(name: str, form: Form, *call: Any) -> str:  # noqa: ARG001
    """Judge what is in."""
    judged = studies.interim_judgement(name, *call)["judged"]
    return "What was in is judged." if judged else "Nothing was in, so nothing was judged."


@form("close", back="")
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
