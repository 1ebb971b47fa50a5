"""The figures of an experiment, from the tables that `surepick bench run` wrote.

    oracle-NAME      pulls until only epsilon-best arms are left: the paper's number, which needs the truth
    own-stop-NAME    pulls until the policy stops by itself: what a user pays
    errors-NAME      share of wrong answers at the own stop, against delta
    arms-left-NAME   arms not ruled out, against pulls

The first two numbers never share an axis. A run without the number is never drawn; how many there are is always said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from surepick.core.records import BoolArray, FloatArray, IntArray, record
from surepick.reports import figure_page
from surepick.tables import Table
from surepick_bench.figures import panels as panel
from surepick_bench.figures.pages import Page, open_page
from surepick_bench.figures.panels import ORACLE, OWN_STOP, Looks, Measure, Replicates

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# --- Arms that are not ruled out, against pulls: how elimination proceeds.

NUM_POINTS = 300  # of a curve
COLUMNS = ("key", "total_pulls", "active")


@record
class RoundCurves:
    """Rounds of all replicates, sorted by key: pulls so far and arms left, and where each replicate's begin and end."""

    pulls: FloatArray
    active: FloatArray
    span: dict[str, tuple[int, int]]


def read_rounds(table: Table) -> RoundCurves | None:
    """The rounds of the table that `surepick bench run` wrote; None if it lacks a column that is drawn."""
    if any(name not in table.columns for name in COLUMNS):
        return None
    keys, pulls, active = (
        panel.texts(table.column("key")),
        panel.numbers(table.column("total_pulls")),
        table.column("active"),
    )
    order: IntArray = np.lexsort((pulls, keys)).astype(np.int64)
    names, first = np.unique(keys[order], return_index=True)
    ends = [*first[1:].tolist(), len(order)]
    span = {name: (start, end) for name, start, end in zip(names.tolist(), first.tolist(), ends, strict=True)}
    return RoundCurves(pulls[order], panel.numbers(active)[order], span)


def arms_left_figure(rows: Replicates, rounds: RoundCurves, styles: Looks, *, title: str) -> Figure | None:
    """One panel an environment: the median number of arms left over the runs of each policy that eliminates."""
    here = rows.where((rows.eliminates == 1.0) & ~np.isnan(rows.num_arms) & np.isin(rows.key, list(rounds.span)))
    if not here.num_rows:
        return None
    places = here.environments
    page = open_page(len(places), columns=3, width=4.0, height=3.2, room=2.6)
    panel.name_series(page, {policy: styles[policy] for policy in here.policies}, {}, marker=False)
    for axes, place in zip(page.axes, places, strict=True):
        part = here.where(here.environment == place)
        curves = {policy: median_curve(part.where(part.policy == policy), rounds) for policy in part.policies}
        _draw(axes, curves, styles)
        axes.set_title(place, fontsize="medium")
        axes.set_xlabel("pulls")
        axes.set_ylabel("arms not ruled out")
    page.notes.append("Median over runs. A run that has ended keeps its last number; the line ends with the last run.")
    return page.finish(f"{title}: arms left")


def median_curve(rows: Replicates, rounds: RoundCurves) -> tuple[FloatArray, FloatArray]:
    """Pulls, increasing, and the median over the runs of the arms left after so many; all before a first round."""
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
    """Steps on two logarithmic axes."""
    for policy, (pulls, left) in curves.items():
        look = styles[policy]
        axes.plot(pulls, left, color=look.colour, linestyle=look.line, linewidth=1.6, drawstyle="steps-post")
    figure_page.scale_pulls(axes, "x", [value for pulls, _ in curves.values() for value in (pulls[0], pulls[-1])])
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.8)
    figure_page.label_powers(axes.yaxis)


# --- Shares of wrong answers against delta, with exact intervals: does a policy err more often than it says?

INTERVAL = (
    "Bar: exact 95 % interval (Clopper-Pearson), each by itself: even a policy that errs exactly at the rate delta "
    "lies wholly above it in up to one case of 40."
)


def error_figure(rows: Replicates, styles: Looks, *, title: str) -> Figure:
    """One panel an environment: the share of wrong answers of each policy at each delta, and the line error = delta."""
    judged = rows.where(rows.own_stop & ~np.isnan(rows.success))
    drawn = panel.filled_looks(styles, judged.policies, panel.always_certified(judged))
    deltas = np.unique(rows.delta).tolist()
    places = rows.environments
    width = max(3.4, 0.6 + 0.22 * len(drawn) * len(deltas))
    page = open_page(len(places), columns=max(1, min(3, int(13.0 / width))), width=width, height=3.6, room=2.8)
    panel.name_series(page, drawn, panel.only_certified(judged), line=False)
    page.name_mark("error = delta", color="black", linestyle="--")
    exceeding = []
    for axes, place in zip(page.axes, places, strict=True):
        answers = answers_by_cell(judged.where(judged.environment == place))
        exceeding += [f"{policy} ({place})" for policy in panel.draw_error_rates(axes, answers, drawn, deltas=deltas)]
        axes.set_title(place, fontsize="medium")
        axes.set_xlabel("delta")
        axes.set_ylabel("wrong answers at the own stop")
        if not answers:
            panel.write_note(axes, "no run ended at its own stop")
    page.notes.extend((INTERVAL, panel.FILLED))
    if exceeding:
        page.notes.append(f"Wholly above delta (ringed): {', '.join(exceeding)}.")
    page.notes.extend(panel.missing(rows, OWN_STOP))
    return page.finish(title)


def answers_by_cell(rows: Replicates) -> dict[tuple[str, float], tuple[int, int]]:
    """(policy, delta) -> (wrong answers, answers), of rows that are all answers."""
    found = {}
    for policy in rows.policies:
        for delta in np.unique(rows.delta[rows.policy == policy]).tolist():
            success = rows.success[(rows.policy == policy) & (rows.delta == delta)]
            found[policy, delta] = (int((success == 0.0).sum()), len(success))
    return found


# --- Pulls of one experiment at one epsilon and delta: lines against K or D, or boxes.

Published = Mapping[tuple[str, str, str], float]  # (experiment, environment, policy) -> oracle pulls
AXES = MappingProxyType({"num_arms": "number of arms K", "dim": "dimension D"})


@record
class Layout:
    """How the pulls of an experiment are drawn."""

    title: str  # of its figures
    across: str | None = None  # the column along the axis, with a line a policy; None: boxes
    panels: str | None = None  # the column that tells the panels of lines apart; None: one panel
    measures: tuple[Measure, ...] = (ORACLE, OWN_STOP)  # what is drawn
    pools_epsilon: bool = False  # each environment has an epsilon of its own, so all are drawn together


def pulls_figure(
    rows: Replicates, measure: Measure, layout: Layout, styles: Looks, *, title: str, published: Published | None = None
) -> Figure:
    """Pulls of one experiment at one epsilon and delta."""
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
        page.notes.append(panel.FILLED)
    page.notes.extend(panel.missing(rows, measure))
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
    rows: Replicates, measure: Measure, across: str, panels: str | None, styles: Looks, published: Published
) -> Page:
    other = _panel_of(rows, panels)
    values = np.unique(other)
    page = open_page(len(values), columns=2, width=5.2, height=4.2, room=2.6)
    drawn = panel.filled_looks(styles, rows.policies, _filled(rows, measure))
    panel.name_series(page, drawn, panel.own_stop_notes(rows) if measure is OWN_STOP else {})
    page.name_mark("mean outside the quartiles", color="white", marker="*", linestyle="", markeredgecolor="black")
    for axes, value in zip(page.axes, values.tolist(), strict=True):
        part = rows.where(other == value)
        at, drawable = getattr(part, across), _drawable(part, measure)
        settings = np.unique(at)
        measured = {
            policy: [drawable[(part.policy == policy) & (at == x) & ~np.isnan(drawable)] for x in settings]
            for policy in rows.policies
        }
        where = dict(zip(part.environment.tolist(), at.tolist(), strict=True))
        marks = {(policy, where[place]): number for (policy, place), number in _marks(part, published).items()}
        panel.draw_lines(axes, settings, measured, drawn, marks)
        axes.set_xlabel(AXES[across])
        axes.set_ylabel(measure.label)
        if panels is not None:
            axes.set_title(f"{AXES[panels]} = {value:g}", fontsize="medium")
    page.notes.append("Marker: median; bar: quartiles. Policies are set apart sideways so that bars can be told apart.")
    return page


def _boxes(rows: Replicates, measure: Measure, styles: Looks, published: Published) -> Page:
    places, policies, drawable = rows.environments, rows.policies, _drawable(rows, measure)
    page = open_page(len(places), columns=3, width=3.6, height=1.2 + 0.36 * len(policies), room=2.8, legend="above")
    drawn = panel.filled_looks(styles, policies, _filled(rows, measure))
    notes = panel.own_stop_notes(rows) if measure is OWN_STOP else {}
    marks = _marks(rows, published)
    page.name_mark("mean", color="black", marker="*", linestyle="")
    for axes, place in zip(page.axes, places, strict=True):
        here = rows.environment == place
        known = here & ~np.isnan(drawable)
        measured = {policy: drawable[known & (rows.policy == policy)] for policy in policies}
        runs = {policy: int((here & (rows.policy == policy)).sum()) for policy in policies}
        told = {policy: number for (policy, where), number in marks.items() if where == place}
        panel.draw_boxes(axes, measured, runs, drawn, told)
        if not known.any():
            panel.write_note(axes, "no run gave a number")
        axes.set_title(place, fontsize="medium")
        axes.set_xlabel(measure.label)
        first_in_row = axes.get_subplotspec().is_first_col()  # type: ignore[union-attr]
        names = [f"{policy}\n{notes[policy]}" if policy in notes else policy for policy in policies]
        axes.set_yticks(range(len(names)), names if first_in_row else [""] * len(names), fontsize="small")
    page.notes.append("Box: quartiles and median; whiskers: to 1.5 box lengths. On the right: runs drawn, of all runs.")
    return page


def _filled(rows: Replicates, measure: Measure) -> Sequence[str]:
    """Certified policies are filled; a verdict belongs to the own stop, so oracle pulls are all alike."""
    return rows.policies if measure is ORACLE else panel.always_certified(rows)


def _marks(rows: Replicates, published: Published) -> dict[tuple[str, str], float]:
    """(policy, environment) -> the published number, for those that are in the rows."""
    experiment = rows.experiment[0]
    there = set(zip(rows.policy.tolist(), rows.environment.tolist(), strict=True))
    return {
        (policy, place): number
        for (name, place, policy), number in published.items()
        if name == experiment and (policy, place) in there
    }


LAYOUTS = MappingProxyType(
    {
        "paper-linear": Layout("Linear rewards, two clusters of arms", "num_arms", "dim"),
        "paper-nonlinear": Layout("Nonlinear rewards, two clusters of arms", "dim", "num_arms"),
        "mnist": Layout("MNIST: find a seven"),
        "yahoo-like": Layout("Yahoo-like clicks (generated data)"),
        "high-dimensional": Layout("The paper's high-dimensional example", "dim"),
        "peers": Layout("Other algorithms of the field", measures=(OWN_STOP,)),
        "small-epsilon": Layout("Epsilon from the gap to a thousandth of it", measures=(OWN_STOP,), pools_epsilon=True),
        "slippage": Layout("All others worse by epsilon", measures=(OWN_STOP,)),
        "error-rate": Layout("One better arm of many", measures=(OWN_STOP,)),
    }
)


def experiment_figures(
    replicates: Table, rounds: Table | None, directory: str | Path, *, published: Published | None = None
) -> list[Path]:
    """Draw every figure for which there is an experiment, as PNG and SVG; equal tables give equal files."""
    everything = panel.read_replicates(replicates)
    styles = panel.looks(everything.policies)
    traces = None if rounds is None else read_rounds(rounds)
    paths: list[Path] = []
    with figure_page.reproducible():
        for experiment in sorted(set(everything.experiment.tolist())):
            rows = everything.where(everything.experiment == experiment)
            for name, figure in _figures(rows, traces, experiment, styles, published or {}):
                paths += panel.save(figure, Path(directory), name)
    return paths


def _figures(
    rows: Replicates, rounds: RoundCurves | None, experiment: str, styles: Looks, published: Published
) -> Iterator[tuple[str, Figure]]:
    """Every figure of one experiment, with its name."""
    layout = LAYOUTS.get(experiment, Layout(experiment, measures=(OWN_STOP,)))
    if layout.pools_epsilon:
        rows = rows.of_any_epsilon()
    settings = _settings(rows)
    for part, said, suffix in settings:
        ending = experiment + (suffix if len(settings) > 1 else "")
        title = f"{layout.title}; {said}" if said else layout.title
        for measure in layout.measures:
            figure = pulls_figure(part, measure, layout, styles, title=title, published=published)
            yield f"{measure.name}-{ending}", figure
        left = None if rounds is None else arms_left_figure(part, rounds, styles, title=title)
        if left is not None:
            yield f"arms-left-{ending}", left
    epsilons = np.unique(rows.epsilon).tolist()
    for epsilon in epsilons:
        part = rows.where(_equal(rows.epsilon, epsilon) & ~np.isnan(rows.delta))
        if part.num_rows:
            said = "" if np.isnan(epsilon) else f"; epsilon {epsilon:g}"
            figure = error_figure(part, styles, title=f"{layout.title}{said}")
            yield f"errors-{experiment}{f'-epsilon-{epsilon:g}' if len(epsilons) > 1 else ''}", figure


def _settings(rows: Replicates) -> list[tuple[Replicates, str, str]]:
    """The rows of each epsilon and delta, which are never pooled; in words, and as the end of a file's name."""
    found = []
    pairs = [
        (epsilon, delta)
        for epsilon in np.unique(rows.epsilon).tolist()
        for delta in np.unique(rows.delta[_equal(rows.epsilon, epsilon)]).tolist()
    ]
    for epsilon, delta in pairs:
        part = rows.where(_equal(rows.epsilon, epsilon) & _equal(rows.delta, delta))
        named = [(name, value) for name, value in (("epsilon", epsilon), ("delta", delta)) if not np.isnan(value)]
        said = ", ".join(f"{name} {value:g}" for name, value in named)
        found.append((part, said, "".join(f"-{name}-{value:g}" for name, value in named)))
    return found


def _equal(values: FloatArray, value: float) -> BoolArray:
    return np.isnan(values) if np.isnan(value) else values == value
