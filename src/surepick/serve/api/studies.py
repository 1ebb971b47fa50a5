"""Studies: the list of them, a new one, what it would cost, where one stands, and how it ends."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request

from surepick.core.json import encode
from surepick.policies.base import spec_of
from surepick.serve.access.roles import Role
from surepick.serve.api import making
from surepick.serve.api.models import ForecastOf, Ids, NewStudy, Reason, ReasonFor
from surepick.serve.api.routing import API, Owner, Routes, Shared, Shows, Viewer
from surepick.serve.web.callers import address_of
from surepick.serve.web.problems import Refused
from surepick.studies.study import Study

router = APIRouter(prefix=API, tags=["studies"])
routes = Routes(router)


def status_of(study: Study, name: str) -> dict[str, Any]:
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


@routes.add("GET", "/studies", Shows.closed, who=Role.viewer)
def list_studies(server: Shared, caller: Viewer) -> dict[str, Any]:
    """All studies that the caller may see, with what their closed rounds say."""
    found = server.studies.database.list()
    return {"studies": [encode(one) for one in found if caller.study in (None, one.name)]}


@routes.add("POST", "/studies", Shows.terms, who=Role.owner, status_code=HTTPStatus.CREATED)
def create_study(new: NewStudy, request: Request, server: Shared, caller: Owner) -> dict[str, Any]:
    """A new study. A name is used once: a second study of that name is refused."""
    arms, notes = making.arms_of(new)
    policy = making.policy_of(new, arms)
    name = new.name.strip()
    if server.studies.has(name):
        raise Refused(HTTPStatus.CONFLICT, f"There is a study {name!r} already. Open that one, or choose another name.")
    more: dict[str, Any] = {"id_column": new.candidates.id_column, "reward_column": new.reward_column}
    more |= {"judge": new.judge, "study_id": new.study_id, "surplus": new.own_surplus}
    study = server.studies.database.create(name, arms, policy, minimize=new.minimize, **more)
    server.trail.add(caller.name, address_of(request), "create", name)
    return {**status_of(study, name), "policy": spec_of(policy), "notes": notes}


@routes.add("POST", "/forecasts", Shows.nothing, who=Role.owner)
def forecast(asked: ForecastOf, server: Shared, caller: Owner) -> dict[str, Any]:  # noqa: ARG001 (the role counts)
    """What a study would cost, before it is made."""
    return making.forecast_of(asked)


@routes.add("GET", "/studies/{name}", Shows.closed, who=Role.viewer)
def study_status(name: str, server: Shared, caller: Viewer) -> dict[str, Any]:  # noqa: ARG001
    """Where a study stands."""
    with server.studies.open(name) as study:
        return status_of(study, name)


@routes.add("GET", "/studies/{name}/candidates", Shows.terms, who=Role.viewer)
def candidates(name: str, server: Shared, caller: Viewer) -> dict[str, Any]:  # noqa: ARG001
    """The ids of the candidates."""
    with server.studies.open(name) as study:
        return {"study": name, "ids": study.ids}


@routes.add("POST", "/studies/{name}/abandon", Shows.closed, who=Role.owner)
def abandon(name: str, why: ReasonFor, request: Request, server: Shared, caller: Owner) -> dict[str, Any]:
    """Give up the missing measurements of the open round, or those of some candidates."""
    with server.studies.open(name) as study:
        study.abandon(why.reason, why.ids)
        study.ask()  # the next plan, if that was all that was missing
        server.trail.add(caller.name, address_of(request), "abandon", name, why.reason)
        return status_of(study, name)


@routes.add("POST", "/studies/{name}/withdraw", Shows.closed, who=Role.owner)
def withdraw(name: str, why: ReasonFor, request: Request, server: Shared, caller: Owner) -> dict[str, Any]:
    """Go on without some candidates."""
    with server.studies.open(name) as study:
        study.withdraw(why.ids or [], why.reason)
        study.ask()
        server.trail.add(caller.name, address_of(request), "withdraw", name, why.reason)
        return status_of(study, name)


@routes.add("POST", "/studies/{name}/add", Shows.closed, who=Role.owner)
def add(name: str, which: Ids, request: Request, server: Shared, caller: Owner) -> dict[str, Any]:
    """From the next round on, some candidates that were declared to come later."""
    with server.studies.open(name) as study:
        study.add(which.ids)
        server.trail.add(caller.name, address_of(request), "add", name, ", ".join(which.ids[:20]))
        return status_of(study, name)


@routes.add("POST", "/studies/{name}/judge", Shows.closed, who=Role.owner)
def judge(name: str, request: Request, server: Shared, caller: Owner) -> dict[str, Any]:
    """Judge what is in of the open round, in a study that judges results as they come."""
    with server.studies.open(name) as study:
        judged = study.judge()
        study.ask()
        server.trail.add(caller.name, address_of(request), "judge", name)
        return {**status_of(study, name), "judged": judged}


@routes.add("POST", "/studies/{name}/close", Shows.closed, who=Role.owner)
def close(name: str, why: Reason, request: Request, server: Shared, caller: Owner) -> dict[str, Any]:
    """End a study early."""
    with server.studies.open(name) as study:
        study.close(why.reason)
        server.trail.add(caller.name, address_of(request), "close", name, why.reason)
        return status_of(study, name)
