"""Studies: the list of them, a new one, what it would cost, where one stands, and how it ends."""

from http import HTTPStatus
from pathlib import Path
from typing import Annotated, Any

import fastapi
from fastapi import Request

from surepick.core.descriptions import Scale
from surepick.core.records import encode
from surepick.errors import InvalidInput
from surepick.policies.base import spec_of
from surepick.studies.study import Study
from surepick.tables import keeping_notes
from surepick.tables.content import refuse_foreign
from surepick.tables.delimited import Delimited, read_delimited
from surepick.tables.numbers import Notation, Written, cell_number, is_missing, truth
from surepick.tables.rows import FAILED, key_column
from surepick.tables.table import Understood, check_distinct
from surepick.text import did_you_mean
from surepick_server.access.tokens import Role, Token
from surepick_server.access.webhooks import Webhook
from surepick_server.api import models
from surepick_server.api.routing import API, Admin, Owner, Routes, Shared, Viewer, Visibility
from surepick_server.web.auth import address_of
from surepick_server.web.open_studies import HTTPError

routes = Routes(prefix=API, tags=["studies"])


def study_status(study: Study, name: str) -> dict[str, Any]:
    """Where a study stands; of the open round who has what, and how many results are in."""
    progress = study.progress()
    return {
        "study": name,
        "candidates": len(study.ids),
        "minimize": study.minimize,
        "noise": study.noise.spec,
        "registration": study.registration,
        "constraints": [one.text for one in study.constraints],
        "block": None if study.blocking is None else study.blocking.name,
        "words": str(progress),
        "progress": encode(progress),
    }


@routes.add("GET", "/studies", Visibility.closed, who=Role.viewer)
def read_studies(server: Shared, caller: Viewer) -> dict[str, Any]:
    """All studies that the caller may see, with what their closed rounds say."""
    found = server.studies.database.list()
    return {"studies": [encode(one) for one in found if caller.study in (None, one.name)]}


@routes.add("POST", "/studies", Visibility.terms, who=Role.owner, status_code=HTTPStatus.CREATED)
def start_study(new: models.NewStudy, request: Request, server: Shared, caller: Owner) -> dict[str, Any]:
    """A new study. A name is used once: a second study of that name is refused."""
    arms, notes = models.candidates_of(new)
    policy = models.policy_of(new, arms)
    name = new.name.strip()
    if server.studies.has(name):
        raise HTTPError(
            HTTPStatus.CONFLICT, f"There is a study {name!r} already. Open that one, or choose another name."
        )
    more: dict[str, Any] = {"id_column": new.candidates.id_column, "reward_column": new.reward_column}
    more |= {"judge": new.judge, "study_id": new.study_id, "surplus": new.own_surplus}
    more |= {
        "scale": Scale(new.scale.unit.strip(), new.scale.low, new.scale.high),
        "owner": caller.name if caller.token else "",
    }
    study = server.studies.database.create(name, arms, policy, minimize=new.minimize, **more)
    server.trail.add(caller.name, address_of(request), "create", name)
    return {**study_status(study, name), "policy": spec_of(policy), "notes": notes}


@routes.add("POST", "/forecasts", Visibility.nothing, who=Role.owner)
def forecast_study(asked: models.ForecastOf, server: Shared, caller: Owner) -> dict[str, Any]:  # noqa: ARG001 (the role counts)
    """What a study would cost, before it is made."""
    return models.forecast_of(asked)


@routes.add("GET", "/studies/{name}", Visibility.closed, who=Role.viewer)
def show_study(name: str, server: Shared, caller: Viewer) -> dict[str, Any]:  # noqa: ARG001
    """Where a study stands."""
    with server.studies.open(name) as study:
        return study_status(study, name)


@routes.add("GET", "/studies/{name}/candidates", Visibility.terms, who=Role.viewer)
def candidates(name: str, server: Shared, caller: Viewer) -> dict[str, Any]:  # noqa: ARG001
    """The ids of the candidates, and what each of them is."""
    with server.studies.open(name) as study:
        return {"study": name, "ids": study.ids, "described": encode(study.described)}


@routes.add("POST", "/studies/{name}/abandon", Visibility.closed, who=Role.owner)
def abandon_round(name: str, why: models.ReasonFor, request: Request, server: Shared, caller: Owner) -> dict[str, Any]:
    """Give up the missing measurements of the open round, or those of some candidates."""
    with server.studies.open(name) as study:
        study.abandon(why.reason, why.ids)
        study.ask()  # the next plan, if that was all that was missing
        server.trail.add(caller.name, address_of(request), "abandon", name, why.reason)
        return study_status(study, name)


@routes.add("POST", "/studies/{name}/withdraw", Visibility.closed, who=Role.owner)
def withdraw_candidates(
    name: str, why: models.ReasonFor, request: Request, server: Shared, caller: Owner
) -> dict[str, Any]:
    """Go on without some candidates."""
    with server.studies.open(name) as study:
        study.withdraw(why.ids or [], why.reason)
        study.ask()
        server.trail.add(caller.name, address_of(request), "withdraw", name, why.reason)
        return study_status(study, name)


@routes.add("POST", "/studies/{name}/add", Visibility.closed, who=Role.owner)
def add_candidates(name: str, which: models.Ids, request: Request, server: Shared, caller: Owner) -> dict[str, Any]:
    """From the next round on, some candidates that were declared to come later."""
    with server.studies.open(name) as study:
        study.add(which.ids)
        server.trail.add(caller.name, address_of(request), "add", name, ", ".join(which.ids[:20]))
        return study_status(study, name)


@routes.add("POST", "/studies/{name}/interim", Visibility.closed, who=Role.owner)
def interim_judgement(name: str, request: Request, server: Shared, caller: Owner) -> dict[str, Any]:
    """Judge what is in of the open round, in a study that judges results as they come."""
    with server.studies.open(name) as study:
        judged = study.interim()
        study.ask()
        server.trail.add(caller.name, address_of(request), "interim", name)
        return {**study_status(study, name), "judged": judged}


@routes.add("POST", "/studies/{name}/close", Visibility.closed, who=Role.owner)
def close_study(name: str, why: models.Reason, request: Request, server: Shared, caller: Owner) -> dict[str, Any]:
    """End a study early."""
    with server.studies.open(name) as study:
        study.close(why.reason)
        server.trail.add(caller.name, address_of(request), "close", name, why.reason)
        return study_status(study, name)


# --- Results in the body of a request: JSON, or a table.

THE_TABLE = Path("the table")


def results_in(body: bytes, kind: str, study: Study) -> tuple[models.ResultsBody, list[str]]:
    """The results of a body, and what is to be known of how its numbers were read."""
    if kind == "application/json":
        return models.brought(models.ResultsBody, body, "The results are"), []
    if kind == "text/csv":
        rows, notes = uploaded_rows(body, study)
        return models.ResultsBody(results=rows), notes
    raise HTTPError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "Results come as application/json or text/csv.")


def uploaded_rows(body: bytes, study: Study) -> tuple[list[models.ResultBody], list[str]]:
    """The rows of a table, and notes; a row without a reward is left out (it is still to be measured).

    Notes show cells. They are no warnings, which another thread of the process could catch.
    """
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"the table cannot be read: {error}.") from None
    refuse_foreign(THE_TABLE, body)
    if not text.strip():
        raise InvalidInput("the table is empty; it needs a header and at least one row.")
    with keeping_notes():  # how cells are separated needs no note
        table = read_delimited(THE_TABLE, text)
    (_, header), *lines = table.rows
    columns = [name.strip() for name in header]
    check_distinct("the table", [name for name in columns if name])
    key = key_column("the table", columns)
    beside = [one.name for one in study.constraints]
    block = None if study.blocking is None else study.blocking.name
    id_columns, reward = _names(study, columns)
    for wanted in (*id_columns, reward, *beside):
        if wanted not in columns:
            meant = did_you_mean(wanted, columns)
            raise InvalidInput(
                f"the table has no column {wanted!r}; it has {', '.join(map(repr, columns)) or 'none'}.{meant}"
            )
    if len(lines) > models.MOST_ROWS:
        raise InvalidInput(f"the table has more than {models.MOST_ROWS:,} rows; send it in parts.")
    for line, cells in lines:
        if len(cells) != len(columns):
            raise InvalidInput(f"row {line} has another number of cells than the header.")
    rows = [(line, dict(zip(columns, cells, strict=True))) for line, cells in lines]
    how = {name: _notation([row[name] for _, row in rows], name, table) for name in (reward, *beside)}
    understood = Understood()
    notes = [note for name, one in how.items() for note in understood.news("the table", name, one)]
    found = []
    for line, row in rows:
        cell = row[reward].strip()
        if not cell:
            continue
        failed = cell.lower() == FAILED
        found.append(
            models.ResultBody(
                id=_text("/".join(row[one].strip() for one in id_columns), line),
                reward=None if failed else _number(cell, reward, line, how),
                failed=failed,
                key=None if key is None or is_missing(row[key]) else row[key].strip(),
                block=None if block is None else row.get(block, "").strip() or None,
                item=row.get("item", "").strip() or None,
                quantities={
                    name: _number(row[name].strip(), name, line, how) if row[name].strip() else None for name in beside
                },
            )
        )
    return found, notes


def _names(study: Study, columns: list[str]) -> tuple[list[str], str]:
    """(the columns of the ids, the column of the results) of a table."""
    found = study.column_names.id_in(columns)
    ids = [found] if found in columns else [one.strip() for one in found.split(",")]
    return ids, study.column_names.reward_in(columns)


def _text(cell: str, line: int) -> str:
    if not cell.strip() or len(cell) > 500:
        raise InvalidInput(f"row {line} names no candidate.")
    return cell.strip()


def _notation(cells: list[str], name: str, table: Delimited) -> Notation:
    """How the numbers of a column are written."""
    words = [cell for cell in cells if cell.strip().lower() != FAILED]
    found = Notation.of(words, Written(continental=table.separator == ";"))
    if found.doubt:
        raise InvalidInput(f"the table, column {name!r}: {found.question} {models.PLAIN} Nothing was stored.")
    return found


def _number(cell: str, column: str, line: int, how: dict[str, Notation]) -> float:
    value = cell_number(cell, decimal=how[column].decimal)
    value = truth(cell) if value is None and how[column].truths else value
    if value is None and cell.rstrip().endswith("%"):
        raise InvalidInput(
            f"row {line}: {cell[:40]!r} in column {column!r} is a percentage: write 0.013 for 1.3%. Nothing was stored."
        )
    if value is None or not abs(value) <= 1e308:
        raise InvalidInput(f"row {line}: {cell[:40]!r} in column {column!r} is no number. Nothing was stored.")
    return value


# --- Tokens, for admins. Nobody is created by asking.

token_routes = Routes(prefix=API, tags=["tokens"])


def _said_of_token(token: Token) -> dict[str, Any]:
    fields = ("name", "role", "study", "made_by", "made_at", "expires_at", "revoked_at", "identities")
    return {name: getattr(token, name) for name in fields} | {"role": token.role.name}


@token_routes.add("GET", "/tokens", Visibility.nothing, who=Role.admin)
def tokens(server: Shared, caller: Admin) -> dict[str, Any]:  # noqa: ARG001 (the role counts)
    """All tokens that were ever made, without what they are."""
    return {"tokens": [_said_of_token(one) for one in server.tokens.list()]}


@token_routes.add("POST", "/tokens", Visibility.nothing, who=Role.admin, status_code=HTTPStatus.CREATED)
def issue_token(new: models.NewToken, request: Request, server: Shared, caller: Admin) -> dict[str, Any]:
    """A new token; it is shown this once."""
    role = Role[new.role]
    text, token = server.tokens.make(
        new.name, role, study=new.study, seconds=new.days * 86400.0, identity=new.identity, made_by=caller.name
    )
    words = ", ".join((new.name, role.name, *token.identities))
    server.trail.add(caller.name, address_of(request), "make token", new.study, words)
    return {**_said_of_token(token), "token": text}


@token_routes.add("DELETE", "/tokens/{token_name}", Visibility.nothing, who=Role.admin)
def revoke_token(token_name: str, request: Request, server: Shared, caller: Admin) -> dict[str, Any]:
    """From now on it is worth nothing."""
    token = server.tokens.revoke(token_name)
    server.trail.add(caller.name, address_of(request), "revoke token", token.study, token.name)
    return _said_of_token(token)


# --- Webhooks of a study: set by its owner, allowed by an admin.

webhook_routes = Routes(prefix=API, tags=["webhooks"])
Number = Annotated[int, fastapi.Path(ge=1, le=2**31 - 1)]


def _said_of_webhook(webhook: Webhook) -> dict[str, Any]:
    return {name: getattr(webhook, name) for name in ("id", "url", "events", "set_by", "allowed", "private")}


@webhook_routes.add("GET", "/studies/{name}/webhooks", Visibility.terms, who=Role.owner)
def webhooks(name: str, server: Shared, caller: Owner) -> dict[str, Any]:  # noqa: ARG001 (the role counts)
    """The webhooks of a study, without their secrets."""
    with server.studies.open(name):
        return {"webhooks": [_said_of_webhook(one) for one in server.webhooks.list(name)]}


@webhook_routes.add(
    "POST", "/studies/{name}/webhooks", Visibility.terms, who=Role.owner, status_code=HTTPStatus.CREATED
)
def add_webhook(name: str, new: models.NewWebhook, request: Request, server: Shared, caller: Owner) -> dict[str, Any]:
    """A new webhook, with the secret that its messages are signed with, shown this once.

    Nothing is sent before an admin has allowed it; then it is told what happened since it was set.
    """
    with server.studies.open(name) as study:
        judged, planned = study.progress().judged, study.log.last_plan()
        reached = {"opened": 0 if planned is None else planned.number, "judged": judged}
        made = server.webhooks.add(name, new.url, tuple(new.events), caller.name, **reached)
    server.trail.add(caller.name, address_of(request), "add webhook", name, made.url)
    return {**_said_of_webhook(made), "secret": made.secret}


@webhook_routes.add("POST", "/studies/{name}/webhooks/{number}/allow", Visibility.terms, who=Role.admin)
def allow(
    name: str, number: Number, how: models.AllowWebhook, request: Request, server: Shared, caller: Admin
) -> dict[str, Any]:
    """From now on it sends; to addresses of this machine or of its network only if that is said."""
    allowed = server.webhooks.allow(name, number, caller.name, private=how.private)
    server.trail.add(caller.name, address_of(request), "allow webhook", name, allowed.url)
    return _said_of_webhook(allowed)


@webhook_routes.add("DELETE", "/studies/{name}/webhooks/{number}", Visibility.terms, who=Role.owner)
def remove(name: str, number: Number, request: Request, server: Shared, caller: Owner) -> dict[str, Any]:
    """Send nothing more to it."""
    gone = server.webhooks.remove(name, number)
    server.trail.add(caller.name, address_of(request), "remove webhook", name, gone.url)
    return _said_of_webhook(gone)


ROUTERS = tuple(one.router for one in (routes, token_routes, webhook_routes))
