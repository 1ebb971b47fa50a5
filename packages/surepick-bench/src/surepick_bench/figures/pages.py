"""Figures with panels: a title, a legend outside and notes below."""

from __future__ import annotations

import textwrap
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal

from surepick.core.records import record
from surepick.reports.figure_page import LARGE_PER_INCH

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

LETTERS_PER_INCH = 15.5  # of the notes
ROOM_FOR_ROW = 2.2  # inches, of a legend in a row beside the title
LEGENDS: dict[str, dict[str, Any]] = {
    "beside": {"loc": "outside right center", "ncols": 1, "handlelength": 3.2},
    "above": {"loc": "outside upper right", "ncols": 9, "handlelength": 1.5},
}


@record
class Page:
    """A figure that is being drawn."""

    figure: Figure
    axes: list[Axes]
    width: float
    legend: Literal["beside", "above"]  # of the panels, or in a row above them beside the title
    notes: list[str] = field(default_factory=list)
    key: list[Line2D] = field(default_factory=list)  # entries of the legend, filled while drawing

    def name_mark(self, label: str, **drawn: Any) -> None:
        """A legend entry for a mark, a line or both."""
        from matplotlib.lines import Line2D  # noqa: PLC0415 (heavy)

        self.key.append(Line2D([], [], label=label, **drawn))

    def finish(self, title: str) -> Figure:
        """Title, legend and notes; the figure is ready."""
        letters = int(LARGE_PER_INCH * (self.width - ROOM_FOR_ROW * (self.legend == "above")))
        self.figure.suptitle("\n".join(textwrap.wrap(title, letters)), x=0.01, ha="left", fontsize="large")
        if self.key:
            where = LEGENDS[self.legend]
            self.figure.legend(handles=self.key, frameon=False, fontsize="small", **where)
        lines = [line for note in self.notes for line in textwrap.wrap(note, int(LETTERS_PER_INCH * self.width))]
        if lines:
            self.figure.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize="x-small", color="#444444")
        return self.figure


def open_page(
    panels: int,
    *,
    columns: int,
    width: float,
    height: float,
    room: float,
    legend: Literal["beside", "above"] = "beside",
) -> Page:
    """An empty page."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (heavy, and an extra)

    across = panels if panels <= columns else min(columns, 2 if panels == 4 else 3)
    down = -(-panels // across)
    total = room + width * across
    figure = Figure(figsize=(total, 1.1 + height * down))
    figure.set_layout_engine("constrained", wspace=0.05)
    grid = figure.subplots(down, across, squeeze=False).ravel().tolist()
    for surplus in grid[panels:]:
        surplus.remove()
    return Page(figure, grid[:panels], total, legend)
