"""Arms that are not ruled out, against pulls: how elimination proceeds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from surepick.bench.figures.replicates import Replicates, numbers, texts
from surepick.core.arrays import FloatArray, IntArray, record
from surepick.reports.figure_page import Looks, label_powers, open_page, scale_pulls
from surepick.tables import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NUM_POINTS = 300  # of a curve
COLUMNS = ("key", "total_pulls", "active")


@record
class Rounds:
    """Rounds of all replicates, sorted by key: pulls so far and arms left, and where each replicate's begin and end."""

    pulls: FloatArray
    active: FloatArray
    span: dict[str, tuple[int, int]]


def read_rounds(table: Table) -> Rounds | None:
    """The rounds of the table that `surepick bench run` wrote; None if it lacks a column that is drawn."""
    if any(name not in table.columns for name in COLUMNS):
        return None
    keys, pulls, active = texts(table.column("key")), numbers(table.column("total_pulls")), table.column("active")
    order: IntArray = np.lexsort((pulls, keys)).astype(np.int64)
    names, first = np.unique(keys[order], return_index=True)
    ends = [*first[1:].tolist(), len(order)]
    span = {name: (start, end) for name, start, end in zip(names.tolist(), first.tolist(), ends, strict=True)}
    return Rounds(pulls[order], numbers(active)[order], span)


def arms_left_figure(rows: Replicates, rounds: Rounds, styles: Looks, *, title: str) -> Figure | None:
    """One panel an environment: the median number of arms left over the runs of each policy that eliminates.

    Args:
        rows: replicates of one experiment at one epsilon and delta.
        rounds: of these and perhaps other replicates.
        styles: the looks of the policies.
        title: above the figure.

    Returns:
        The figure; None if no run of a policy that eliminates has rounds.
    """
    here = rows.where((rows.eliminates == 1.0) & ~np.isnan(rows.num_arms) & np.isin(rows.key, list(rounds.span)))
    if not here.num_rows:
        return None
    places = here.environments
    page = open_page(len(places), columns=3, width=4.0, height=3.2, room=2.6)
    page.name_series({policy: styles[policy] for policy in here.policies}, {}, marker=False)
    for axes, place in zip(page.axes, places, strict=True):
        part = here.where(here.environment == place)
        curves = {policy: median_curve(part.where(part.policy == policy), rounds) for policy in part.policies}
        _draw(axes, curves, styles)
        axes.set_title(place, fontsize="medium")
        axes.set_xlabel("pulls")
        axes.set_ylabel("arms not ruled out")
    page.notes.append("Median over runs. A run that has ended keeps its last number; the line ends with the last run.")
    return page.finish(f"{title}: arms left")


def median_curve(rows: Replicates, rounds: Rounds) -> tuple[FloatArray, FloatArray]:
    """Pulls, increasing, and the median over the rows' runs of the arms left after so many.

    All arms are left until the first round of a run has ended.
    """
    spans = [rounds.span[key] for key in rows.key.tolist()]
    ends = np.concatenate([rounds.pulls[start:end] for start, end in spans])
    grid = np.geomspace(max(ends.min(), 1.0) / 1.5, max(ends.max(), 1.0), NUM_POINTS)
    grid[-1] = max(ends.max(), 1.0)  # not a rounding error below it
    left = []
    for (start, end), num_arms in zip(spans, rows.num_arms.tolist(), strict=True):
        told = np.concatenate([[num_arms], rounds.active[start:end]])
        left.append(told[np.searchsorted(rounds.pulls[start:end], grid, side="right")])
    return grid, np.median(left, axis=0)


def _draw(axes: Axes, curves: Mapping[str, tuple[FloatArray, FloatArray]], styles: Looks) -> None:
    """Steps on two logarithmic axes.

    Args:
        curves: policy -> (pulls, arms left).
    """
    for policy, (pulls, left) in curves.items():
        look = styles[policy]
        axes.plot(pulls, left, color=look.colour, linestyle=look.line, linewidth=1.6, drawstyle="steps-post")
    scale_pulls(axes, "x", [value for pulls, _ in curves.values() for value in (pulls[0], pulls[-1])])
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.8)
    label_powers(axes.yaxis)
