"""A new study: a table, what is measured and asked, what it will take beside two alternatives, and its creation."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Request, Response

from surepick.core.arrays import record
from surepick.errors import InvalidInput, SurepickError
from surepick.serve.access.roles import Role
from surepick.serve.api import making, studies
from surepick.serve.api.models import ForecastOf, NewStudy, brought
from surepick.serve.api.routing import Owner, Routes, Shared, Shows
from surepick.serve.pages.forms import Form, Posted
from surepick.serve.pages.shell import page, study_path, to
from surepick.serve.pages.table_form import Given, table_in
from surepick.serve.web.problems import Refused

router = APIRouter(include_in_schema=False)
routes = Routes(router)
CHOICE = {  # a field of the form -> what stands there first
    "name": "",
    "id_column": "",
    "cost_column": "",
    "segment_column": "",
    "reward_column": "",
    "good": "large",
    "noise": "",
    "low": "0",
    "high": "10",
    "sigma": "",
    "guess": "",
    "epsilon": "",
    "delta": "0.05",
    "question": "best",
    "threshold": "",
    "control": "",
    "m": "3",
    "norm_bound": "",
}
REHEARSALS = 5  # of a forecast under equal means, so that the page comes soon


@record
class Option:
    """A way to do the study, with what it takes.

    Args:
        words: what it is.
        epsilon: of it.
        total: measurements in the worst case; None where it is refused.
        batches: in words.
        cost: money in words; "" where nothing has a cost.
        refusal: why there is no forecast.
        notes: what to know of it.
    """

    words: str
    epsilon: float
    total: int | None
    batches: str
    cost: str
    refusal: str
    notes: tuple[str, ...]


@routes.add("GET", "/new", Shows.nothing, who=Role.owner)
def new_page(request: Request, server: Shared, caller: Owner) -> Response:  # noqa: ARG001
    """Where a table is uploaded, pasted or typed."""
    return page(request, "new.html", caller, error="", pasted="", names="")


@routes.add("POST", "/new", Shows.terms, who=Role.owner)
def new_step(request: Request, server: Shared, caller: Owner, form: Posted) -> Response:
    """The next step: the columns, the forecast, or the study itself."""
    try:
        given = table_in(form, largest=server.settings.largest_body)
    except InvalidInput as error:
        typed = {"pasted": form.raw("table"), "names": form.raw("names")}
        return page(request, "new.html", caller, status=HTTPStatus.UNPROCESSABLE_ENTITY, error=str(error), **typed)
    step, error_said, status = form.text("step"), "", HTTPStatus.OK
    options: list[Option] = []
    uniform: int | None = None
    try:
        if step == "create":
            goal = brought(NewStudy, _named(form) | goal_of(form, given), "The study is")
            made = studies.create_study(goal, request, server, caller)
            name = goal.name.strip()
            said = f"The study {name} is made. Write down its registration code before the first result."
            return to(request, study_path(name), " ".join([said, *made["notes"]]))
        if step == "forecast":
            options, uniform = forecast_beside(form, given)
    except (SurepickError, Refused) as error:
        error_said = error.sentence if isinstance(error, Refused) else str(error)
        status = error.status if isinstance(error, Refused) else HTTPStatus.UNPROCESSABLE_ENTITY
    chosen = {name: form.text(name, first) for name, first in CHOICE.items()}
    chosen["id_column"] = chosen["id_column"] or given.likely_id
    shown: dict[str, Any] = {"chosen": chosen, "features": form.many("features"), "error": error_said}
    shown |= {"options": options, "uniform": uniform}
    return page(request, "columns.html", caller, status=status, given=given, **shown)


def _named(form: Form) -> dict[str, Any]:
    """What a form calls the study and its results."""
    return {"name": form.text("name"), "reward_column": form.text("reward_column") or None}


def goal_of(form: Form, given: Given) -> dict[str, Any]:
    """What a form asks, as the API takes it.

    Raises:
        InvalidInput: something is missing, or has no meaning.
    """
    epsilon = form.number("epsilon", "how much worse the answer may be")
    if epsilon is None:
        raise InvalidInput("Give the tolerance, a positive number: how much worse than the best the answer may be.")
    delta = form.number("delta", "how often it may be wrong")
    bound = form.number("norm_bound", "the bound on the coefficients")
    features = form.many("features")
    if (bound is None) != (not features):
        raise InvalidInput("To use columns, tick some and give the bound on their coefficients; or leave both out.")
    candidates = {
        "table": given.text,
        "kind": given.kind,
        "id_column": form.text("id_column") or None,
        "feature_columns": features or None,
        "cost_column": form.text("cost_column") or None,
        "segment_column": form.text("segment_column") or None,
    }
    return {
        "candidates": candidates,
        "epsilon": epsilon,
        "delta": 0.05 if delta is None else delta,
        "noise": noise_of(form),
        "minimize": form.text("good") == "small",
        "options": question_of(form) | ({} if bound is None else {"norm_bound": bound}),
    }


def noise_of(form: Form) -> str:
    """What is known of a measurement, as the library writes it.

    Raises:
        InvalidInput: nothing is said.
    """
    kind = form.text("noise")
    if kind == "bounded":
        low, high = form.number("low", "the least number"), form.number("high", "the largest number")
        if low is None or high is None:
            raise InvalidInput("Give the least and the largest number that a measurement can be.")
        return f"bounded:{low!r}:{high!r}"
    if kind == "subgaussian":
        sigma = form.number("sigma", "the scatter")
        if sigma is None:
            raise InvalidInput("Give how far repeated measurements scatter: their standard deviation at most.")
        return f"subgaussian:{sigma!r}"
    if kind not in ("bernoulli", "normal"):
        raise InvalidInput("Say what a measurement is: choose one of the four kinds.")
    return kind


def question_of(form: Form) -> dict[str, Any]:
    """What is asked, as options of a policy.

    Raises:
        InvalidInput: something is missing.
    """
    kind = form.text("question", "best")
    if kind == "above":
        threshold = form.number("threshold", "the threshold")
        if threshold is None:
            raise InvalidInput("Give the threshold that the candidates are compared with.")
        return {"question": "above", "threshold": threshold}
    if kind == "control":
        if not form.text("control"):
            raise InvalidInput("Name the candidate that the others are compared with.")
        return {"question": "above", "control": form.text("control")}
    if kind == "top":
        most = form.number("m", "how many of the best") or 0.0
        return {"question": "top", "m": int(most) if most.is_integer() else most}
    return {"question": "all-good"} if kind == "all-good" else {}


def forecast_beside(form: Form, given: Given) -> tuple[list[Option], int | None]:
    """(what the study takes, with two alternatives; measurements of all candidates equally often).

    Raises:
        InvalidInput: the form asks something without a meaning.
    """
    goal = goal_of(form, given)
    guess = form.number("guess", "the guess of the scatter")
    if goal["noise"] == "normal" and guess is None:
        raise InvalidInput("A forecast needs a guess of how far repeats scatter; the study itself does not use it.")
    goal |= {"rehearsals": REHEARSALS, "assume_scale": guess if goal["noise"] == "normal" else None}
    ways = [("as you have it", goal), ("half the tolerance", {**goal, "epsilon": goal["epsilon"] / 2})]
    if "norm_bound" in goal["options"]:
        plain = {key: value for key, value in goal["options"].items() if key != "norm_bound"}
        ways.append(("without the columns", {**goal, "options": plain}))
    else:
        ways.append(("twice the tolerance", {**goal, "epsilon": goal["epsilon"] * 2}))
    found: list[Option] = []
    uniform: int | None = None
    for place, (words, asked) in enumerate(ways):
        try:
            answer = making.forecast_of(brought(ForecastOf, asked, "The study is"))
        except SurepickError as error:
            if place == 0:
                raise
            found.append(Option(words, asked["epsilon"], None, "", "", str(error), ()))
            continue
        if place == 0:
            uniform = answer["uniform_pulls"]
        found.append(_option(words, asked["epsilon"], answer["rows"][0]))
    return found, uniform


def _option(words: str, epsilon: float, row: dict[str, Any]) -> Option:
    worst, notes = row["worst"], tuple(row["warnings"])
    if worst is None:
        return Option(words, epsilon, None, "", "", row["refusal"], notes)
    batches = f"{worst['batches']:,}"
    cost = "" if worst.get("cost") is None else f"{worst['cost']:,.2f}"
    return Option(words, epsilon, worst["total"], batches, cost, "", notes)
