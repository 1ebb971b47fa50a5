"""The figure of a forecast."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from surepick.forecasts import ForecastRow
from surepick.reports.figure_page import COLOURS, open_page, reproducible, scale_pulls, write_figure

BLUE, ORANGE, GREY = *COLOURS[:2], COLOURS[-1]


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
    with reproducible():
        page = open_page(1, columns=1, width=8.0, height=0.6 + 0.42 * len(rows), room=0.0, legend="below")
        (axes,) = page.axes
        drawn = [float(max(uniform, 1))]
        for height, row in enumerate(rows):
            if row.guess is not None and row.worst is not None:
                axes.plot([row.guess.total, row.worst.total], [height] * 2, color=GREY, linewidth=1, zorder=1)
                axes.plot([row.guess.lowest, row.guess.highest], [height] * 2, color=BLUE, linewidth=4, alpha=0.35)
                axes.plot(row.guess.total, height, "o", color=BLUE)
                drawn += [row.guess.lowest, row.guess.total]
            if row.worst is not None:
                face = ORANGE if row.believable else "white"
                axes.plot(row.worst.total, height, "s", color=ORANGE, markerfacecolor=face)
                drawn.append(row.worst.total)
        axes.axvline(drawn[0], color=GREY, linestyle="--")
        scale_pulls(axes, "x", drawn)
        axes.set_yticks(range(len(rows)), [row.name if row.worst else f"{row.name} (refused)" for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel("measurements")
        if any(row.guess is not None for row in rows):
            page.name_mark("under your guess (band: all simulated studies)", color=BLUE, marker="o", linestyle="")
        page.name_mark("worst case", color=ORANGE, marker="s", linestyle="")
        if any(row.worst is not None and not row.believable for row in rows):
            hollow: dict[str, Any] = {"marker": "s", "linestyle": "", "markerfacecolor": "white"}
            page.name_mark("not credible (see warnings)", color=ORANGE, **hollow)
        page.name_mark("uniform sampling", color=GREY, linestyle="--")
        write_figure(page.finish(title), path, dpi=150)
