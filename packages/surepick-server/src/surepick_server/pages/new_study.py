"""A new study in three steps with addresses of their own: the candidates, the measurement, the question."""

import csv
import io
import re
from collections import defaultdict
from http import HTTPStatus
from typing import Any

from fastapi import Request, Response

from surepick.core.records import record
from surepick.drawings.forecasts import Ranges
from surepick.errors import InvalidInput, SurepickError
from surepick.forecasts.forecast import forecast as forecast_worst
from surepick.forecasts.saving import saving
from surepick.forecasts.scenarios import forecast_ranges
from surepick.linalg.rows import one_thread
from surepick.noise import SubGaussian, known_scale
from surepick.questions import BEST, NAMES
from surepick.questions.best import FORM
from surepick.studies.study import Study
from surepick_server.access.tokens import Principal, Role
from surepick_server.api import models, studies
from surepick_server.api.models import NewStudy, brought
from surepick_server.api.routing import Owner, Routes, Shared, Visibility
from surepick_server.pages.layout import Form, Posted, page, study_path, to, typed_number
from surepick_server.pages.measuring import not_a_number
from surepick_server.pages.uploads import GivenTable, example, read, table_in
from surepick_server.web.auth import ServerState
from surepick_server.web.open_studies import HTTPError, status_of

routes = Routes(include_in_schema=False)

FORMS = {one.choice: (name, one) for name, made in NAMES.items() for one in made.forms}  # ways to ask a question
ASKED = (FORM, *(one for _, one in FORMS.values()))
NAME, SHOWN, PREDICTS, COST = "name", "shown", "predicts", "cost"
SEGMENT, RESULTS, UNUSED = "segment", "results", "unused"
MOST_SECONDS = 3.0  # of processor time that a forecast takes
USES = (
    (NAME, "Name of candidate"),
    (SHOWN, "Shown to measurers"),
    (PREDICTS, "Shown, and predicts"),
    (COST, "Cost of measuring"),
    (SEGMENT, "A separate answer for each"),
    (RESULTS, "Earlier results"),
    (UNUSED, "Not used"),
)
LIKELY_RESULTS = re.compile(r"yield|result|results|reward|score|clicks?", re.IGNORECASE)
CHOICE = {  # a field of the steps -> what stands there first
    **dict.fromkeys(
        ("name", "what", "unit", "noise", "sigma", "least", "most", "epsilon", "batch", "cap", "guess"), ""
    ),
    **{"norm_bound": "", "good": "large", "low": "0", "high": "10", "delta": "0.05", "question": BEST},
    **{one.option: one.first for _, one in FORMS.values() if one.option},
}
STEPS = {  # the fields of each
    "candidates": ("name",),
    "measurement": ("what", "unit", "good", "noise", "low", "high", "sigma", "least", "most"),
    "question": (
        *("batch", "question", "epsilon", "delta", "cap", "norm_bound", "guess"),
        *(one.option for _, one in FORMS.values() if one.option),
    ),
}
FIELD_OF = {"batch_size": "batch", "budget": "cap", "epsilon": "epsilon", "norm_bound": "norm_bound"}  # of options
LABELS = {
    "name": "the name of the study",
    "noise-bernoulli": "what you know of repeats",
    "sigma": "how far results scatter",
    "low": "the least number",
    "high": "the largest number",
    "least": "the lowest result that you expect",
    "most": "the highest result that you expect",
    "batch": "how many at once",
    "epsilon": "the tolerance",
    "delta-other": "the confidence",
    "cap": "the most measurements",
    "norm_bound": "the bound on weights",
    "guess": "the guess of the scatter",
    "what": "its name",
    "unit": "the unit",
}


@record
class Outlook:
    """What a study will take."""

    ranges: (
        Ranges | None
    )  # clear, usual and nearly equal candidates; None where another question than the best is asked
    worst: int | None  # then: measurements of nearly equal candidates, which take the most
    notes: tuple[str, ...]


@record
class Draft:
    """What was said of a new study so far."""

    given: GivenTable
    uses: tuple[str, ...]  # of each column
    chosen: dict[str, str]  # field -> what stands there

    def columns(self, *uses: str) -> list[str]:
        """The columns with these uses."""
        return [one.name for one, use in zip(self.given.columns, self.uses, strict=True) if use in uses]

    def number(self, field: str, wrong: dict[str, str]) -> float | None:
        """A number of a field; what is wrong with it is noted."""
        try:
            return typed_number(self.chosen[field], field)
        except InvalidInput:
            wrong[field] = not_a_number(self.chosen[field])
            return None


def draft_of(form: Form, server: ServerState) -> Draft:
    """What the steps say so far."""
    given = table_in(form, largest=server.settings.largest_body)
    known = {use for use, _ in USES}
    likely = likely_uses(given)
    said = [form.text(f"use.{place}") for place in range(len(given.columns))]
    uses = tuple(one if one in known else first for one, first in zip(said, likely, strict=True))
    chosen = {name: form.text(name, first if name not in form.fields else "") for name, first in CHOICE.items()}
    if not chosen["what"] and "what" not in form.fields:
        chosen["what"] = next((one.name for one, use in zip(given.columns, uses, strict=True) if use == RESULTS), "")
    return Draft(given, uses, chosen)


def likely_uses(given: GivenTable) -> list[str]:
    """What columns are most likely for."""
    named = given.likely_id
    found = []
    for one in given.columns:
        results = one.name != named and one.numeric and LIKELY_RESULTS.fullmatch(one.name.strip())
        found.append(NAME if one.name == named else RESULTS if results else SHOWN)
    return found


# --- What is wrong with each step, field by field, all at once.


def wrong_candidates(draft: Draft, server: ServerState) -> dict[str, str]:
    """Of step 1."""
    wrong = {}
    name = draft.chosen["name"]
    if not name:
        wrong["name"] = "Give the study a name."
    elif len(name) > 200 or "/" in name or name in (".", "..") or not name.isprintable():
        wrong["name"] = "A name has at most 200 characters, no slash, and more than dots."
    elif server.studies.has(name):
        wrong["name"] = f"There is a study {name!r} already. Choose another name."
    for use, most in ((NAME, 99), (COST, 1), (SEGMENT, 1)):
        places = [place for place, one in enumerate(draft.uses) if one == use]
        if use == NAME and not places:
            wrong["use.0"] = "No column names the candidates; choose one."
        elif len(places) > most:
            wrong[f"use.{places[1]}"] = "Another column is used so already; a study takes one."
    names = [place for place, one in enumerate(draft.uses) if one == NAME]
    if len(names) == 1 and draft.given.columns[names[0]].distinct < draft.given.rows and RESULTS not in draft.uses:
        wrong[f"use.{names[0]}"] = "Some names stand twice, and each row is a candidate: let two columns name it."
    if draft.given.rows < 2:
        wrong.setdefault("use.0", "Give two candidates at least: one alone is the best without a measurement.")
    return wrong


def wrong_measurement(draft: Draft) -> dict[str, str]:
    """Of step 2."""
    wrong: dict[str, str] = {}
    kind = draft.chosen["noise"]
    for field, most_letters in (("what", 100), ("unit", models.MOST_UNIT)):
        if len(draft.chosen[field]) > most_letters:
            wrong[field] = f"At most {most_letters} characters."
    if kind not in ("bernoulli", "bounded", "subgaussian", "normal"):
        wrong["noise-bernoulli"] = "Say what a measurement is: choose one of the four."
    if kind == "subgaussian":
        sigma = draft.number("sigma", wrong)
        if "sigma" not in wrong and (sigma is None or sigma <= 0):
            wrong["sigma"] = "Give a number above 0: the standard deviation of repeats, at most."
    if kind == "bounded":
        low, high = (draft.number(name, wrong) for name in ("low", "high"))
        for name, value in (("low", low), ("high", high)):
            if value is None and name not in wrong:
                wrong[name] = "Give a number that no result is beyond."
        if low is not None and high is not None and low >= high:
            wrong["high"] = f"Give a number above {low:g}."
    least, most = (draft.number(name, wrong) for name in ("least", "most"))
    if least is not None and most is not None and least >= most:
        wrong["most"] = f"Give a number above {least:g}; else every result is asked about."
    if kind == "normal" and draft.columns(PREDICTS) and not draft.chosen["norm_bound"]:
        wrong["noise-bernoulli"] = (
            "A column predicts: then say how far repeats scatter at most, give a bound on the weights in step 3, or "
            "let no column predict."
        )
    return wrong


def wrong_question(draft: Draft) -> dict[str, str]:
    """Of step 3."""
    wrong: dict[str, str] = {}
    epsilon, delta = draft.number("epsilon", wrong), draft.number("delta", wrong)
    if "epsilon" not in wrong and (epsilon is None or epsilon <= 0):
        wrong["epsilon"] = "Give a number above 0: how much worse than the best the answer may be."
    if "delta" in wrong or delta is None or not 0 < delta < 1:
        wrong.pop("delta", None)
        wrong["delta-other"] = "Choose how often such an answer may be wrong: delta lies between 0 and 1."
    for field, what in (("batch", "measurements a round"), ("cap", "measurements")):
        value = draft.number(field, wrong)
        if value is not None and (value < 1 or not value.is_integer()):
            wrong[field] = f"Give a whole number of {what}, or leave it empty."
    for field in ("norm_bound", "guess"):
        value = draft.number(field, wrong)
        if value is not None and value <= 0:
            wrong[field] = "Give a number above 0, or leave it empty."
    if draft.chosen["norm_bound"] and not draft.columns(PREDICTS):
        wrong["norm_bound"] = (
            "A bound on weights is about columns that predict: choose some in step 1, or leave it out."
        )
    _, asked = FORMS.get(draft.chosen["question"], (BEST, FORM))
    if asked.option:
        empty = not draft.chosen[asked.option].strip()
        if not empty and asked.kind != "text":
            draft.number(asked.option, wrong)
        if empty:
            wrong[asked.option] = f"Give {asked.label}."
    return wrong


# --- The study that the steps ask for, as the API takes it.


def goal_of(draft: Draft) -> dict[str, Any]:
    """What is asked, once every step is right."""
    chosen, wrong = draft.chosen, dict[str, str]()
    numbers = {name: draft.number(name, wrong) for name in ("epsilon", "delta", "batch", "cap", "norm_bound")}
    predicts = draft.columns(PREDICTS)
    options = question_in(draft)
    if numbers["norm_bound"] is not None:
        options["norm_bound"] = numbers["norm_bound"]
    elif predicts:
        options["assume"] = "linear"
    if numbers["batch"] is not None and numbers["batch"] > 1:
        options["batch_size"] = int(numbers["batch"])
    if numbers["cap"] is not None:
        options["budget"] = int(numbers["cap"])
    ids = draft.columns(NAME)
    candidates = {
        "table": draft.given.text,
        "kind": draft.given.kind,
        "feature_columns": predicts or None,
        "id_column": ids[0] if len(ids) == 1 else ",".join(ids),
        "cost_column": next(iter(draft.columns(COST)), None),
        "segment_column": next(iter(draft.columns(SEGMENT)), None),
        "described_columns": draft.columns(SHOWN, PREDICTS),
    }
    least, most = (draft.number(name, wrong) for name in ("least", "most"))
    return {
        "name": chosen["name"],
        "candidates": candidates,
        "epsilon": numbers["epsilon"],
        "delta": numbers["delta"],
        "noise": noise_of(draft),
        "minimize": chosen["good"] == "small",
        "options": options,
        "reward_column": chosen["what"] or None,
        "scale": {"unit": chosen["unit"], "low": least, "high": most},
    }


def noise_of(draft: Draft) -> str:
    """What is known of a measurement, as the library writes it."""
    kind, wrong = draft.chosen["noise"], dict[str, str]()
    if kind == "bounded":
        low, high = (draft.number(name, wrong) for name in ("low", "high"))
        return f"bounded:{low!r}:{high!r}"
    return f"subgaussian:{draft.number('sigma', wrong)!r}" if kind == "subgaussian" else kind


def question_in(draft: Draft) -> dict[str, Any]:
    """What is asked, as options of a policy."""
    name, asked = FORMS.get(draft.chosen["question"], (BEST, FORM))
    if not asked.option:
        return {} if name == BEST else {"question": name}
    value: Any = draft.chosen[asked.option] if asked.kind == "text" else draft.number(asked.option, {})
    whole = asked.kind == "whole" and float(value).is_integer()
    return {"question": name, asked.option: int(value) if whole else value}


# --- The pages.


@routes.add("GET", "/new", Visibility.terms, who=Role.owner)
def new_page(request: Request, server: Shared, caller: Owner, example: str = "", like: str = "") -> Response:
    """Where a table is uploaded, pasted or typed; or that of an example or of another study, with its answers."""
    fields = like_study(server, caller, like) if like else example_fields(server, example)
    if not fields:
        return first_page(request, caller)
    return shown(request, caller, "candidates", draft_of(Form(fields, {}), server), fields)


@routes.add("GET", "/new/measurement", Visibility.nothing, who=Role.owner)
@routes.add("GET", "/new/question", Visibility.nothing, who=Role.owner)
def from_the_start(request: Request, server: Shared, caller: Owner) -> Response:  # noqa: ARG001
    """A later step begins with the first."""
    return first_page(request, caller)


@routes.add("POST", "/new", Visibility.terms, who=Role.owner)
def candidates_step(request: Request, server: Shared, caller: Owner, form: Posted) -> Response:
    """Step 1: the columns of a table, and their use."""
    return step(request, server, caller, form, "candidates")


@routes.add("POST", "/new/measurement", Visibility.terms, who=Role.owner)
def measurement_step(request: Request, server: Shared, caller: Owner, form: Posted) -> Response:
    """Step 2: what is measured."""
    return step(request, server, caller, form, "measurement")


@routes.add("POST", "/new/question", Visibility.terms, who=Role.owner)
def question_step(request: Request, server: Shared, caller: Owner, form: Posted) -> Response:
    """Step 3: what is asked."""
    return step(request, server, caller, form, "question")


@routes.add("POST", "/new/forecast", Visibility.terms, who=Role.owner)
def forecast_step(request: Request, server: Shared, caller: Owner, form: Posted) -> Response:
    """What it will take: a part of step 3, or the page with it."""
    return step(request, server, caller, form, "forecast")


@routes.add("POST", "/new/create", Visibility.terms, who=Role.owner)
def create_step(request: Request, server: Shared, caller: Owner, form: Posted) -> Response:
    """The study itself."""
    return step(request, server, caller, form, "create")


def step(request: Request, server: ServerState, caller: Principal, form: Form, wanted: str) -> Response:
    """The step that is wanted, or the first before it in which something is wrong."""
    try:
        draft = draft_of(form, server)
    except InvalidInput as error:
        typed = {"pasted": form.raw("pasted") or form.raw("table"), "names": form.raw("names")}
        return first_page(request, caller, status=HTTPStatus.UNPROCESSABLE_ENTITY, error=str(error), **typed)
    due, wrong = first_wrong(draft, server, wanted)
    if wanted == "forecast" and "hx-request" in request.headers:
        return forecast_part(request, caller, draft, " ".join(wrong.values()))
    if due in STEPS:
        status = HTTPStatus.UNPROCESSABLE_ENTITY if wrong else HTTPStatus.OK
        status = HTTPStatus.CONFLICT if "already" in wrong.get("name", "") else status
        return shown(request, caller, due, draft, form.fields, status=status, errors=wrong)
    try:
        if wanted == "create":
            return created(request, server, caller, draft)
        more: dict[str, Any] = {"outlook": forecast(draft)}
    except (SurepickError, HTTPError) as error:
        beside = beside_fields(str(error))
        more = {"status": status_of(error), **({"errors": beside} if beside else {"error": str(error)})}
    return shown(request, caller, "question", draft, form.fields, **more)


def beside_fields(refusal: str) -> dict[str, str]:
    """What the library says of an option, beside the field that it comes from."""
    option, _, rest = refusal.partition(" is ")
    _, _, needed = rest.partition("; ")
    if option not in FIELD_OF or not needed:
        return {}
    return {FIELD_OF[option]: needed[0].upper() + needed[1:]}


def first_wrong(draft: Draft, server: ServerState, wanted: str) -> tuple[str, dict[str, str]]:
    """The first step before the wanted one in which something is wrong, and what; the wanted one where nothing is."""
    order = list(STEPS)
    for name in order[: order.index(wanted)] if wanted in order else order:
        if name == "candidates":
            wrong = wrong_candidates(draft, server)
        else:
            wrong = wrong_measurement(draft) if name == "measurement" else wrong_question(draft)
        if wrong:
            return name, wrong
    return wanted, {}


def forecast_part(request: Request, caller: Principal, draft: Draft, refusal: str) -> Response:
    """What it will take, for its place on the page of step 3; or why nobody can say."""
    outlook = None
    try:
        outlook = None if refusal else forecast(draft)
    except (SurepickError, HTTPError) as error:
        refusal = str(error)
    more: dict[str, Any] = {"outlook": outlook, "refusal": refusal, "chosen": draft.chosen, "errors": {}, "error": ""}
    return page(request, "forecast.html", caller, **more)


def created(request: Request, server: ServerState, caller: Principal, draft: Draft) -> Response:
    """Make the study."""
    goal = brought(NewStudy, goal_of(draft), "The study is")
    made = studies.start_study(goal, request, server, caller)
    name = goal.name.strip()
    said = f"The study {name} is made. Write down its registration code before the first result."
    return to(request, study_path(name), " ".join([said, *made["notes"]]))


def forecast(draft: Draft) -> Outlook:
    """What the study will take."""
    goal = goal_of(draft)
    asked = brought(NewStudy, goal | {"name": goal["name"] or "forecast"}, "The study is")
    arms, _ = models.candidates_of(asked)
    saved = (
        "assume" in goal["options"]
    )  # what columns save is said beside it: with nearly equal means they save nothing
    if saved:
        plain = {name: value for name, value in goal["options"].items() if name != "assume"}
        asked = asked.model_copy(update={"options": plain})
    policy = models.policy_of(asked, arms)
    problem, notes = policy.problem, list[str]()
    scale = None if known_scale(problem.noise) else draft.number("guess", {}) or problem.epsilon
    if scale is not None:
        notes.append(f"Nobody knows the scatter: {scale:g} was taken for it. The study finds it out.")
    if saved and isinstance(problem.noise, SubGaussian):
        found = saving(arms, epsilon=problem.epsilon, delta=problem.delta, noise=problem.noise)
        words = "" if found is None else str(found).replace("`--assume linear`", "With the columns")
        notes.append(f"Without the columns. {words}".strip())
    limits: dict[str, Any] = {"minimize": asked.minimize, "assume_scale": scale}
    with one_thread():
        if problem.question is None:
            return Outlook(forecast_ranges(policy, most_seconds=MOST_SECONDS, **limits), None, tuple(notes))
        worst = forecast_worst(policy, most_seconds=MOST_SECONDS, rehearsals=5, **limits)
    return Outlook(None, worst.total, tuple(notes))


def first_page(request: Request, caller: Principal, *, status: int = HTTPStatus.OK, **more: Any) -> Response:
    """Step 1 without a table."""
    known: dict[str, Any] = {
        "error": "",
        "errors": {},
        "pasted": "",
        "names": "",
        "draft": None,
        "labels": LABELS,
        "carried": [],
    }
    return page(request, "new.html", caller, status=status, **(known | more))


def shown(
    request: Request,
    caller: Principal,
    name: str,
    draft: Draft,
    fields: dict[str, list[str]],
    *,
    status: int = HTTPStatus.OK,
    errors: dict[str, str] | None = None,
    error: str = "",
    outlook: Outlook | None = None,
) -> Response:
    """A step, with what was said in the others as hidden fields."""
    others = [one for step, own in STEPS.items() if step != name for one in own]
    carried = [(one, draft.chosen[one]) for one in others if one in fields or step_before(one, name)]
    if name != "candidates":
        carried += [(f"use.{place}", use) for place, use in enumerate(draft.uses)]
    labels = LABELS | {f"use.{place}": f"the use of {one.name}" for place, one in enumerate(draft.given.columns)}
    labels |= {one.option: one.label for _, one in FORMS.values() if one.option}
    more: dict[str, Any] = {"errors": errors or {}, "error": error, "draft": draft, "carried": carried}
    more |= {"labels": labels, "uses": USES, "asked": ASKED, "outlook": outlook, "refusal": ""}
    more |= {"chosen": defaultdict(str, draft.chosen), "predicts": bool(draft.columns(PREDICTS))}
    template = {"candidates": "new.html", "measurement": "new_measurement.html", "question": "new_question.html"}[name]
    return page(request, template, caller, status=status, **more)


def step_before(field: str, name: str) -> bool:
    """Whether a field is of a step before this one, and so was seen."""
    order = list(STEPS)
    return any(field in STEPS[one] for one in order[: order.index(name)])


# --- What a new study begins with: an example, or another study.

EXAMPLES: dict[str, dict[str, str]] = {
    "lab": {
        **{"name": "Suzuki coupling screen", "what": "Yield", "unit": "%", "least": "0", "most": "100"},
        **{"noise": "subgaussian", "sigma": "3.5", "epsilon": "5", "batch": "12"},
    },
    "headlines": {
        **{"name": "Spring newsletter", "what": "Clicked", "noise": "bernoulli", "epsilon": "0.02"},
        "batch": "500",
    },
    "models": {"name": "Support assistant", "what": "Score", "noise": "bernoulli", "epsilon": "0.1", "batch": "40"},
}


def example_fields(server: ServerState, name: str) -> dict[str, list[str]]:
    """The fields of an example; {} where there is none of that name."""
    text = example(name)
    if not text:
        return {}
    fields = {**EXAMPLES[name], "table": text, "kind": "csv"}
    fields["name"] = free_name(server, fields["name"]) if server.studies.has(fields["name"]) else fields["name"]
    return {field: [value] for field, value in fields.items()}


def like_study(server: ServerState, caller: Principal, name: str) -> dict[str, list[str]]:
    """The fields that would make a study again; what the steps have no field for is left out."""
    if not server.studies.has(name) or caller.study not in (None, name):
        raise HTTPError(HTTPStatus.NOT_FOUND, f"There is no study {name!r}.")
    with server.studies.open(name) as study:
        text, uses = table_of(study)
        spec = server.studies.database.configuration(name)["policy"]
        fields = {
            "table": text,
            "kind": "csv",
            "name": free_name(server, name),
            "what": study.column_names.reward or "",
        }
        fields |= {f"use.{place}": use for place, use in enumerate(uses)}
        fields |= {"unit": study.scale.unit, "good": "small" if study.minimize else "large"}
        limits = {"least": study.scale.low, "most": study.scale.high}
        kind, *numbers = study.noise.spec.split(":")
    numbered = {"epsilon": spec.get("epsilon"), "delta": spec.get("delta"), "batch": spec.get("batch_size")}
    numbered |= {"norm_bound": spec.get("norm_bound"), "cap": spec.get("budget"), **limits}
    fields |= {field: f"{value:.12g}" for field, value in numbered.items() if isinstance(value, int | float)}
    fields["noise"] = kind if kind in ("bernoulli", "bounded", "subgaussian", "normal") else ""
    fields |= dict(zip({"bounded": ("low", "high"), "subgaussian": ("sigma",)}.get(kind, ()), numbers, strict=False))
    asked = spec.get("question") or {}
    for choice, (question, form) in FORMS.items():
        value = asked.get(form.option) if form.option else asked.get("name")
        if asked.get("name") == question and value is not None:
            fields |= {"question": choice, **({form.option: str(value)} if form.option else {})}
    return {field: [value] for field, value in fields.items()}


def free_name(server: ServerState, name: str) -> str:
    """A name that no study has."""
    base = re.sub(r" \d+$", "", name)
    return next(one for one in (f"{base} {number}" for number in range(2, 10_000)) if not server.studies.has(one))


def table_of(study: Study) -> tuple[str, list[str]]:
    """(the candidates of a study as a table again, the use of each column)."""
    arms, said = study.arms, study.described
    known = study.column_names.id or "id"
    columns: list[tuple[str, str, list[str]]] = [("id" if "," in known else known, NAME, list(study.ids))]
    features = arms.columns or tuple(f"x{place}" for place in range(arms.features.shape[1]))
    columns += [
        (one, PREDICTS if one in features else SHOWN, list(cells))
        for one, cells in zip(said.columns, said.cells, strict=True)
    ]
    for place, one in enumerate(features):
        if one not in said.columns:
            columns.append((one, PREDICTS, [f"{value:.17g}" for value in arms.features[:, place].tolist()]))
    if arms.costs is not None:
        columns.append(("cost of measuring", COST, [f"{value:.12g}" for value in arms.costs.tolist()]))
    if arms.segments is not None:
        columns.append(("segment", SEGMENT, list(arms.segments)))
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows(
        [[one for one, _, _ in columns], *map(list, zip(*(cells for _, _, cells in columns), strict=True))]
    )
    read(written.getvalue(), "csv")
    return written.getvalue(), [use for _, use, _ in columns]
