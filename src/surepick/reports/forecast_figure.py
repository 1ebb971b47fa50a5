"""Figures. Matplotlib is imported when one is drawn, never before."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from surepick.errors import InvalidInput
from surepick.forecasts import ForecastRow
from surepick.reports.figure_files import write_figure

BLUE, ORANGE, GREY = "#0072b2", "#d55e00", "#777777"


def forecast_figure(rows: Sequence[ForecastRow], uniform: int, path: str | Path, *, title: str = "") -> None:
    """What each choice is forecast to cost, on a logarithmic axis: guess and worst case, and sampling equally often.

    Args:
        rows: from `compare`; rows that refuse to run are listed without a mark.
        uniform: pulls of sampling all arms equally often, drawn as a line.
        path: a .png, .pdf or .svg file.
        title: above the figure.

    Raises:
        InvalidInput: matplotlib is absent, or the file cannot be written in that format.
    """
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 (heavy, and an extra)
        from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter  # noqa: PLC0415
    except ImportError as error:
        raise InvalidInput('figures need matplotlib, which is absent: pip install "surepick[reports]".') from error
    figure = Figure(figsize=(8.0, 1.7 + 0.42 * len(rows)), layout="constrained")
    axes = figure.add_subplot()
    for height, row in enumerate(rows):
        if row.guess is not None and row.worst is not None:
            axes.plot([row.guess.total, row.worst.total], [height] * 2, color=GREY, linewidth=1, zorder=1)
            axes.plot([row.guess.lowest, row.guess.highest], [height] * 2, color=BLUE, linewidth=4, alpha=0.35)
            axes.plot(row.guess.total, height, "o", color=BLUE)
        if row.worst is not None:
            axes.plot(row.worst.total, height, "s", color=ORANGE, markerfacecolor=ORANGE if row.believable else "white")
    if any(row.guess is not None for row in rows):
        axes.plot([], [], "o", color=BLUE, label="under the guess (band: all rehearsals)")
    axes.plot([], [], "s", color=ORANGE, label="worst case")
    if any(row.worst is not None and not row.believable for row in rows):
        axes.plot([], [], "s", color=ORANGE, markerfacecolor="white", label="not to be believed (see warnings)")
    axes.axvline(max(uniform, 1), color=GREY, linestyle="--", label="all equally often")
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(base=10.0, subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_yticks(range(len(rows)), [row.name if row.worst else f"{row.name} (refused)" for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlabel("measurements")
    axes.grid(axis="x", alpha=0.3)
    axes.set_title(title, loc="left", fontsize="medium")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize="small")
    write_figure(figure, path, dpi=150)
