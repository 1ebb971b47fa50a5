"""What was spent, beside what was forecast before the first measurement."""

from __future__ import annotations

from typing import Any, Literal

from surepick.core.arrays import record
from surepick.errors import SurepickError
from surepick.forecasts import Forecast, forecast
from surepick.policies.base import Policy
from surepick.reports.study.facts import Facts
from surepick.reports.study.scales import Frame, Scale, staircase

ROUNDS, SECONDS = 1_000, 4.0  # that the forecast of a report may simulate, and take
FRAME = Frame(92.0, 620.0, 62.0, 310.0)


@record
class Foreseen:
    """A forecast, or why there is none.

    Args:
        forecast: None if there is none.
        why: the reason then, "" otherwise.
        limit: candidates up to which a forecast is made.
        error: what the forecast said when it failed.
    """

    forecast: Forecast | None
    why: Literal["", "not-asked", "too-many", "never-stops", "network", "failed"] = ""
    limit: int = 0
    error: str = ""


def foreseen(policy: Policy[Any], *, most_arms: int) -> Foreseen:
    """The forecast of a policy, if it is cheap enough; a report never fails because of it.

    Args:
        most_arms: with more candidates none is made.
    """
    if most_arms == 0:
        return Foreseen(None, "not-asked")
    if policy.problem.num_arms > most_arms:
        return Foreseen(None, "too-many", limit=most_arms)
    if policy.traits.stops == "never":
        return Foreseen(None, "never-stops")
    if policy.traits.network_depth:
        return Foreseen(None, "network")
    try:
        return Foreseen(forecast(policy, most_rounds=ROUNDS, most_seconds=SECONDS))
    except (SurepickError, ArithmeticError, LookupError, ValueError) as error:
        return Foreseen(None, "failed", error=str(error))


@record
class Spending:
    """Measurements after each step, beside the forecast.

    Args:
        total, uniform: of the forecast, and of sampling all candidates equally often.
        actual, ahead: step -> measurements up to its end.
        spent, forecast: the two lines.
        end: where the line of what was spent ends.
    """

    frame: Frame
    across: Scale
    up: Scale
    total: int
    uniform: int
    actual: dict[int, int]
    ahead: dict[int, int]
    spent: str
    forecast: str
    end: tuple[float, float]


def spending(study: Facts, seen: Foreseen) -> Spending | None:
    """What was spent beside the forecast; None without one."""
    if seen.forecast is None:
        return None
    actual = {entry["round"]: entry["total_pulls"] for entry in study.document["rounds"]}
    ahead = {each.round: each.total for each in seen.forecast.rounds}
    across = FRAME.across(0.0, float(max([*actual, *ahead, 1])), whole=True)
    up = FRAME.up(0.0, float(max([*actual.values(), *ahead.values(), 1])), whole=True)
    lines = [[(across.at(step), up.at(total)) for step, total in {0: 0, **one}.items()] for one in (actual, ahead)]
    spent, expected = (staircase([*corners, corners[-1]]) for corners in lines)
    return Spending(
        frame=FRAME,
        across=across,
        up=up,
        total=seen.forecast.total,
        uniform=seen.forecast.uniform,
        actual=actual,
        ahead=ahead,
        spent=spent,
        forecast=expected,
        end=lines[0][-1],
    )
