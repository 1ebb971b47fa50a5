"""Pulls of one experiment at one epsilon and delta: lines against K or D, or boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from surepick.bench.figures.panels import draw_boxes, draw_lines, filled_looks
from surepick.bench.figures.replicates import (
    FILLED,
    ORACLE,
    OWN_STOP,
    Measure,
    Replicates,
    always_certified,
    missing,
    own_stop_notes,
)
from surepick.core.arrays import FloatArray, record
from surepick.reports.figure_page import Looks, Page, open_page, say

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Published = Mapping[tuple[str, str, str], float]  # (experiment, environment, policy) -> oracle pulls
AXES = MappingProxyType({"num_arms": "number of arms K", "dim": "dimension D"})


@record
class Layout:
    """How the pulls of an experiment are drawn.

    Args:
        title: of its figures.
        across: the column along the axis, with a line a policy; None: boxes.
        panels: the column that tells the panels of lines apart; None: one panel.
        measures: what is drawn.
        pools_epsilon: each environment has an epsilon of its own, so all are drawn together.
    """

    title: str
    across: str | None = None
    panels: str | None = None
    measures: tuple[Measure, ...] = (ORACLE, OWN_STOP)
    pools_epsilon: bool = False


def pulls_figure(
    rows: Replicates,
    measure: Measure,
    layout: Layout,
    styles: Looks,
    *,
    title: str,
    published: Published | None = None,
) -> Figure:
    """Pulls of one experiment at one epsilon and delta.

    Args:
        rows: its replicates.
        measure: which number.
        layout: lines or boxes; lines become boxes where they would mix environments.
        styles: the looks of the policies.
        title: above the figure.
        published: drawn with oracle pulls only, as that is what was published.
    """
    counted = np.isin(rows.policy, rows.policy[~np.isnan(measure.of(rows))])
    drawn = rows.where(counted) if counted.any() else rows
    marks = dict(published or {}) if measure is ORACLE else {}
    if layout.across is not None and counted.any() and _is_a_function(drawn, layout.across, layout.panels):
        page = _lines(drawn, measure, layout.across, layout.panels, styles, marks)
    else:
        page = _boxes(drawn, measure, styles, marks)
    if _marks(drawn, marks):
        page.name_mark("published", color="black", marker="D", linestyle="", markerfacecolor="none", markersize=8)
    if measure is OWN_STOP:
        page.notes.append(FILLED)
    page.notes.extend(missing(rows, measure))
    if (measure.of(rows) == 0.0).any():
        page.notes.append("Runs that needed no pull at all are drawn at 1.")
    return page.finish(title)


def _is_a_function(rows: Replicates, across: str, panels: str | None) -> bool:
    """Whether each panel has one environment at each setting."""
    at, other = getattr(rows, across), _panel_of(rows, panels)
    places = {(x, y, name) for x, y, name in zip(at.tolist(), other.tolist(), rows.environment.tolist(), strict=True)}
    known = not np.isnan(at).any() and not np.isnan(other).any()
    return known and len(places) == len({place[:2] for place in places})


def _panel_of(rows: Replicates, panels: str | None) -> FloatArray:
    return np.zeros(rows.num_rows) if panels is None else getattr(rows, panels)


def _drawable(rows: Replicates, measure: Measure) -> FloatArray:
    """The number of each row, at least 1: a logarithmic axis has no place for 0."""
    return np.maximum(measure.of(rows), 1.0)


def _lines(
    rows: Replicates,
    measure: Measure,
    across: str,
    panels: str | None,
    styles: Looks,
    published: Published,
) -> Page:
    other = _panel_of(rows, panels)
    values = np.unique(other)
    page = open_page(len(values), columns=2, width=5.2, height=4.2, room=2.6)
    drawn = filled_looks(styles, rows.policies, _filled(rows, measure))
    page.name_series(drawn, own_stop_notes(rows) if measure is OWN_STOP else {})
    page.name_mark("mean outside the quartiles", color="white", marker="*", linestyle="", markeredgecolor="black")
    for axes, value in zip(page.axes, values.tolist(), strict=True):
        part = rows.where(other == value)
        at, numbers = getattr(part, across), _drawable(part, measure)
        settings = np.unique(at)
        measured = {
            policy: [numbers[(part.policy == policy) & (at == x) & ~np.isnan(numbers)] for x in settings]
            for policy in rows.policies
        }
        where = dict(zip(part.environment.tolist(), at.tolist(), strict=True))
        marks = {(policy, where[place]): number for (policy, place), number in _marks(part, published).items()}
        draw_lines(axes, settings, measured, drawn, marks)
        axes.set_xlabel(AXES[across])
        axes.set_ylabel(measure.label)
        if panels is not None:
            axes.set_title(f"{AXES[panels]} = {value:g}", fontsize="medium")
    page.notes.append("Marker: median; bar: quartiles. Policies are set apart sideways so that bars can be told apart.")
    return page


def _boxes(rows: Replicates, measure: Measure, styles: Looks, published: Published) -> Page:
    places, policies, numbers = rows.environments, rows.policies, _drawable(rows, measure)
    page = open_page(len(places), columns=3, width=3.6, height=1.2 + 0.36 * len(policies), room=2.8, legend="above")
    drawn = filled_looks(styles, policies, _filled(rows, measure))
    notes = own_stop_notes(rows) if measure is OWN_STOP else {}
    marks = _marks(rows, published)
    page.name_mark("mean", color="black", marker="*", linestyle="")
    for axes, place in zip(page.axes, places, strict=True):
        here = rows.environment == place
        known = here & ~np.isnan(numbers)
        measured = {policy: numbers[known & (rows.policy == policy)] for policy in policies}
        runs = {policy: int((here & (rows.policy == policy)).sum()) for policy in policies}
        told = {policy: number for (policy, where), number in marks.items() if where == place}
        draw_boxes(axes, measured, runs, drawn, told)
        if not known.any():
            say(axes, "no run gave a number")
        axes.set_title(place, fontsize="medium")
        axes.set_xlabel(measure.label)
        first_in_row = axes.get_subplotspec().is_first_col()  # type: ignore[union-attr]
        names = [f"{policy}\n{notes[policy]}" if policy in notes else policy for policy in policies]
        axes.set_yticks(range(len(names)), names if first_in_row else [""] * len(names), fontsize="small")
    page.notes.append("Box: quartiles and median; whiskers: to 1.5 box lengths. On the right: runs drawn, of all runs.")
    return page


def _filled(rows: Replicates, measure: Measure) -> Sequence[str]:
    """Certified policies are filled; a verdict belongs to the own stop, so oracle pulls are all alike."""
    return rows.policies if measure is ORACLE else always_certified(rows)


def _marks(rows: Replicates, published: Published) -> dict[tuple[str, str], float]:
    """(policy, environment) -> the published number, for those that are in the rows."""
    experiment = rows.experiment[0]
    there = set(zip(rows.policy.tolist(), rows.environment.tolist(), strict=True))
    return {
        (policy, place): number
        for (name, place, policy), number in published.items()
        if name == experiment and (policy, place) in there
    }
