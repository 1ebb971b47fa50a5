"""The page of a study: where it stands, what its caller has to measure, and what its owners may do."""

from __future__ import annotations

import csv
import io
from collections import defaultdict
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request, Response

from surepick.policies.questions.words import guarantee_of, said
from surepick.questions import TopM
from surepick.serve.access.roles import Principal, Role
from surepick.serve.api.results import part_of
from surepick.serve.api.routing import Measurer, Routes, Shared, Shows, Viewer
from surepick.serve.api.studies import status_of
from surepick.serve.pages.overview import waits_for
from surepick.serve.pages.shell import page
from surepick.serve.web.callers import Server
from surepick.studies.study import Study

router = APIRouter(include_in_schema=False)
routes = Routes(router)
MOST_ROWS = 40  # measurements with a field of their own; others go by a table
MOST_NAMED = 500  # candidates that are offered for choice


@routes.add("GET", "/studies/{name}", Shows.own, who=Role.viewer)
def study_page(name: str, request: Request, server: Shared, caller: Viewer) -> Response:
    """A study."""
    return show(request, server, caller, name)


def show(
    request: Request,
    server: Server,
    caller: Principal,
    name: str,
    *,
    status: int = HTTPStatus.OK,
    error: str = "",
    typed: dict[str, str] | None = None,
    asked: Sequence[str] = (),
) -> Response:
    """The page of a study, e.g. after a form that was refused.

    Args:
        request, server, caller, name: as of a route.
        status: of the answer.
        error: why the form was refused.
        typed: what stood in its fields.
        asked: the results that it asks about, each a key and a value.
    """
    with server.studies.open(name) as study:
        shown = standing_of(study, name, caller)
        tasks = tasks_of(study, caller) if caller.role >= Role.measurer else []
        mine = own_results(study, caller) if caller.role >= Role.measurer else []
        ids = study.ids if len(study.ids) <= MOST_NAMED else ()
        constraints = [one.name for one in study.constraints]
        in_parts = shown["progress"].judge != "closed rounds"
        words = {"question": question_of(study), "noise_words": noise_words(shown["asked"]["noise"])}
        shown |= {**words, "can_withdraw": study.policy.traits.withdraw is not None}
    shown |= {"tasks": tasks, "ids": ids, "constraints": constraints, "in_parts": in_parts}
    shown |= {"own_results": mine, "asked_about": list(asked), "odd_keys": {one.rpartition(" ")[0] for one in asked}}
    shown |= {"error": error, "typed": defaultdict(str, typed or {}), "most_rows": MOST_ROWS}
    return page(request, "study.html", caller, status=status, **shown)


@routes.add("GET", "/studies/{name}/standing", Shows.closed, who=Role.viewer)
def standing(name: str, request: Request, server: Shared, caller: Viewer) -> Response:
    """The part of the page that changes while others measure."""
    with server.studies.open(name) as study:
        shown = standing_of(study, name, caller)
    return page(request, "standing.html", caller, **shown)


@routes.add("GET", "/studies/{name}/tasks.csv", Shows.own, who=Role.measurer)
def tasks_table(name: str, server: Shared, caller: Measurer) -> Response:
    """What the caller holds, as a table whose rewards are to be filled in."""
    with server.studies.open(name) as study:
        text = table_of(tasks_of(study, caller))
    return Response(
        text, media_type="text/csv; charset=utf-8", headers={"content-disposition": 'attachment; filename="tasks.csv"'}
    )


def standing_of(study: Study, name: str, caller: Principal) -> dict[str, Any]:
    """Where a study stands, for templates."""
    progress = study.progress()
    waits, mine = waits_for(progress, caller)
    return {
        "name": name,
        "asked": status_of(study, name),
        "progress": progress,
        "waits": waits,
        "mine": mine,
        "over": progress.stopped or progress.ended is not None,
    }


def tasks_of(study: Study, caller: Principal) -> list[dict[str, Any]]:
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


def question_of(study: Study) -> str:
    """What is asked, and what is promised of the answer."""
    problem, by_segment = study.policy.problem, study.arms.segments is not None
    asked = problem.question
    if asked is None and not by_segment:
        largest = "smallest" if study.minimize else "largest"
        return (
            f"One whose mean is within {problem.epsilon:g} of the {largest}; that may be wrong with probability "
            f"{problem.delta:g} at most."
        )
    wanted = TopM(1) if asked is None else asked
    return " ".join((*said(wanted, problem.epsilon, by_segment=by_segment), guarantee_of(wanted, problem.delta)))


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


def table_of(tasks: list[dict[str, Any]]) -> str:
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
