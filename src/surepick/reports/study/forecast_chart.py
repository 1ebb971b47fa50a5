"""What was spent, beside what was forecast before the first measurement."""

from __future__ import annotations

from typing import Any

from surepick.core.arrays import record
from surepick.errors import SurepickError
from surepick.forecasts import Forecast, forecast
from surepick.policies.base import Policy
from surepick.reports.study.sections import Figure, Part, absent
from surepick.reports.study.svg import Drawing, Scale, across_axis, mark, staircase, upright_axis
from surepick.reports.study.tables import Table, row, table
from surepick.reports.study.verdict import PROVED, Document, is_unproved, step_word, steps
from surepick.studies.progress import times

LEAST_SHARE = 0.01
LEFT, RIGHT, TOP, BOTTOM = 92.0, 620.0, 62.0, 310.0


@record
class Foreseen:
    """A forecast, or why there is none.

    Args:
        forecast: None if there is none.
        why: the sentence then.
    """

    forecast: Forecast | None
    why: str = ""


def foreseen(policy: Policy[Any], *, most_arms: int) -> Foreseen:
    """The forecast of a policy, if it is cheap enough; a report never fails because of it.

    Args:
        most_arms: with more candidates none is made.
    """
    if most_arms == 0:
        return Foreseen(None, "There is no forecast here: none was asked for.")
    if policy.problem.num_arms > most_arms:
        return Foreseen(
            None,
            f"There is no forecast here: with {policy.problem.num_arms:,} candidates it would take long to compute "
            f"(made up to {most_arms:,}; surepick forecast makes it).",
        )
    if policy.traits.stops == "never":
        return Foreseen(None, "There is no forecast: this algorithm goes on until it is told to stop.")
    if policy.traits.network_depth:
        return Foreseen(None, "There is no forecast: it would train a network many times.")
    try:
        return Foreseen(forecast(policy))
    except (SurepickError, ArithmeticError, LookupError, ValueError) as error:
        return Foreseen(None, f"No forecast could be made: {error}")


def spending(document: Document, seen: Foreseen) -> Part:
    """The part about spending."""
    heading = "Spending against the forecast"
    if seen.forecast is None:
        return absent(seen.why)
    plan, spent = seen.forecast, document["pulls"]
    actual = [(entry["round"], entry["total_pulls"]) for entry in document["rounds"]]
    ahead = [(each.round, each.total) for each in plan.rounds]
    sentence = (
        f"Without any measurement, a study with these settings was forecast to take up to about "
        f"{times(plan.total, 'measurement')}. That is a worst case (candidates that are all alike); usually it is far "
        f"less. It has taken {spent:,} so far."
    )
    if document["verdict"] in PROVED:
        sentence = sentence.replace("It has taken", "It took").replace(" so far", "")
    sentences = [sentence]
    if plan.uniform > spent > 0:
        sentences.append(_equally_often(document, plan.uniform))
    word = step_word(document)
    if not actual or not ahead:
        return Part("spending", heading, tuple(sentences))
    figure = Figure(_drawing(actual, ahead, word), _table(actual, ahead, word))
    return Part("spending", heading, tuple(sentences), (figure,))


def _equally_often(document: Document, uniform: int) -> str:
    share = document["pulls"] / uniform
    part = f"{share:.0%}" if share >= LEAST_SHARE else f"less than {LEAST_SHARE:.0%}"
    took = f" This study took {part} of it." if document["verdict"] in PROVED else ""
    if is_unproved(document):
        return f"Measuring all candidates equally often takes {uniform:,}, and would prove its answer.{took}"
    return f"Measuring all candidates equally often, for the same promise, takes {uniform:,}.{took}"


def _drawing(actual: list[tuple[int, int]], ahead: list[tuple[int, int]], word: str) -> Drawing:
    rounds = max(actual[-1][0], ahead[-1][0])
    most = max(actual[-1][1], ahead[-1][1], 1)
    across = Scale(0.0, float(rounds), LEFT, RIGHT, whole=True)
    up = Scale(0.0, float(most), BOTTOM, TOP, whole=True)
    marks = [
        *across_axis(across, top=TOP, bottom=BOTTOM, name="batches" if word == "batch" else "rounds"),
        *upright_axis(up, left=LEFT, right=RIGHT, name="", most=4),
        mark("text", "axis", "measurements so far", x=0.0, y=TOP - 14.0),
    ]
    for points, style in ((ahead, "line loose possible-line"), (actual, "line main")):
        corners = [(across.at(0.0), up.at(0.0)), *((across.at(place), up.at(total)) for place, total in points)]
        marks.append(mark("path", style, d=staircase([*corners, corners[-1]])))
    marks += [
        mark("circle", "dot main", cx=across.at(actual[-1][0]), cy=up.at(actual[-1][1]), r=5.0),
        mark("path", "line main", d="M230 18H266"),
        mark("text", "tick", "spent", x=274.0, y=23.0),
        mark("path", "line loose possible-line", d="M380 18H416"),
        mark("text", "tick", "forecast, worst case", x=424.0, y=23.0),
    ]
    finding = f"Spent: {times(actual[-1][1], 'measurement')} in {steps(len(actual), word)}. "
    finding += f"Forecast: up to {ahead[-1][1]:,} in {steps(len(ahead), word)}."
    return Drawing("chart-spending", "Measurements spent and forecast", finding, BOTTOM + 56.0, tuple(marks))


def _table(actual: list[tuple[int, int]], ahead: list[tuple[int, int]], word: str) -> Table:
    spent, expected = dict(actual), dict(ahead)
    rows = []
    for place in sorted({*spent, *expected}):
        cells = [f"{found[place]:,}" if place in found else "" for found in (spent, expected)]
        rows.append(row(str(place), *cells))
    headers = (word, "spent", "forecast, worst case")
    return table(f"Measurements up to the end of each {word}", headers, rows, printed=False)
