"""What programs need that work with a study over HTTP as they would with one in a database (`surepick.client`)."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from fastapi import APIRouter

from surepick.core.json import encode
from surepick.serve.access.roles import Role
from surepick.serve.api.models import Keys, PlanOf
from surepick.serve.api.routing import API, Measurer, Routes, Shared, Shows, Viewer
from surepick.studies.reading.audit import audit

router = APIRouter(prefix=API, tags=["library"])
routes = Routes(router)


@routes.add("GET", "/me", Shows.nothing, who=Role.viewer)
def me(caller: Viewer) -> dict[str, Any]:
    """Whose token this is, and what it is for."""
    return {"name": caller.name, "role": caller.role.name, "study": caller.study, "local": caller.token == 0}


@routes.add("GET", "/studies/{name}/terms", Shows.terms, who=Role.viewer)
def terms(name: str, server: Shared, caller: Viewer, check: bool = False) -> dict[str, Any]:  # noqa: ARG001 (the role counts)
    """What a study asks and by which policy, but for the features; with `check` all decisions are computed again."""
    with server.studies.open(name) as study:
        if check:
            audit(study, name)
        stated = server.studies.database.configuration(name)
        return {"study": name.strip(), "ids": study.ids, "registration": study.registration, "configuration": stated}


@routes.add("GET", "/studies/{name}/features", Shows.terms, who=Role.viewer)
def features(name: str, server: Shared, caller: Viewer) -> dict[str, Any]:  # noqa: ARG001
    """The features of the candidates, by the bytes of their numbers."""
    with server.studies.open(name):
        matrix = np.asarray(server.studies.database.arms(name).features, dtype="<f8")
    return {"packed": base64.b64encode(matrix.tobytes()).decode(), "shape": list(matrix.shape)}


@routes.add("POST", "/studies/{name}/plan", Shows.closed, who=Role.measurer)
def plan(name: str, which: PlanOf, server: Shared, caller: Measurer) -> dict[str, Any]:  # noqa: ARG001
    """The open plan, or a new one; with `free` what of it is neither in nor leased. Nothing is leased."""
    with server.studies.open(name) as study:
        batch = study.free_part() if which.free else study.ask()
        return {"batch": None if batch is None else batch.sent()}


@routes.add("GET", "/studies/{name}/open", Shows.closed, who=Role.viewer)
def open_plan(name: str, server: Shared, caller: Viewer) -> dict[str, Any]:  # noqa: ARG001
    """How many measurements of each candidate the open plan lacks, and whether the study has stopped."""
    with server.studies.open(name) as study:
        return {"stopped": study.stopped, "missing": study.missing.tolist()}


@routes.add("POST", "/studies/{name}/recorded", Shows.closed, who=Role.measurer)
def recorded(name: str, which: Keys, server: Shared, caller: Measurer) -> dict[str, Any]:  # noqa: ARG001
    """Whether each of these keys was reported; nothing is said of rewards."""
    with server.studies.open(name) as study:
        return {"recorded": study.recorded(which.ids, which.keys)}


@routes.add("GET", "/studies/{name}/answer", Shows.closed, who=Role.viewer)
def answer(name: str, server: Shared, caller: Viewer) -> dict[str, Any]:  # noqa: ARG001
    """The answer of the closed rounds, what it rests on, and how the study was closed early, if it was."""
    with server.studies.open(name) as study:
        return {
            "certificate": encode(study.certificate(), sparse=True),
            "early_end": encode(study.early_end()),
            "best_arm": study.recommend(),
            "trace": [encode(row, sparse=True) for row in study.trace],
        }
