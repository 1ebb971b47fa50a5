"""Figures as files: panels with a title, a legend outside and notes below. Matplotlib is imported when one is drawn."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from surepick.core.files import write_whole
from surepick.core.records import record
from surepick.errors import InvalidInput
from surepick.forecasts import ForecastRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


# Okabe and Ito's palette without yellow, which white paper swallows; black is kept for means
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#666666")
LETTERS_PER_INCH, LARGE_PER_INCH = 15.5, 11.5  # of the notes, and of the title
ROOM_FOR_ROW = 2.2  # inches, of a legend in a row beside the title
LEGENDS: dict[str, dict[str, Any]] = {
    "beside": {"loc": "outside right center", "ncols": 1, "handlelength": 3.2},
    "above": {"loc": "outside upper right", "ncols": 9, "handlelength": 1.5},
    "below": {"loc": "outside lower center", "ncols": 2},
}


@contextmanager
def reproducible() -> Iterator[None]:
    """Draw so that equal data give equal files."""
    try:
        import matplotlib  # noqa: PLC0415 (heavy, and an extra)
    except ImportError as error:
        raise InvalidInput('figures need matplotlib, which is absent: pip install "surepick[reports]".') from error
    with matplotlib.rc_context({"svg.hashsalt": "surepick"}):
        yield


def write_figure(figure: Figure, path: str | Path, **drawing: Any) -> None:
    """Draw the figure, then write it whole or not at all."""
    target = Path(path)
    if not target.suffix:
        target = target.with_name(f"{target.name}.png")
    drawn = io.BytesIO()
    try:
        figure.savefig(drawn, format=target.suffix[1:], **drawing)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"the figure cannot be written to {target}: {error}.") from error
    write_whole(target, drawn.getvalue(), what="the figure")


@record
class Page:
    """A figure that is being drawn."""

    figure: Figure
    axes: list[Axes]
    width: float
    legend: Literal["beside", "above", "below"]  # of the panels, in a row above them beside the title, or below them
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
    legend: Literal["beside", "above", "below"] = "beside",
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


def short_number(value: float, _position: int = 0) -> str:
    """A tick's label: 300, 2k, 10M."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{name}"
    return f"{value:g}"


def label_powers(axis: Axis, steps: Sequence[float] = (1.0, 2.0, 5.0)) -> None:
    """Labels at these multiples of the powers of ten, on a logarithmic axis."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: PLC0415 (heavy)

    axis.set_major_locator(LogLocator(base=10.0, subs=steps))
    axis.set_major_formatter(FuncFormatter(short_number))
    axis.set_minor_formatter(NullFormatter())


def scale_pulls(axes: Axes, which: Literal["x", "y"], values: Sequence[float]) -> None:
    """A logarithmic axis for these numbers of pulls, from one round number to another, however close they are."""
    values = [max(value, 1.0) for value in values]  # no pull at all is at the edge
    getattr(axes, f"set_{which}scale")("log")
    least, most = 0.9 * min(values, default=1.0), 1.1 * max(values, default=10.0)
    lowest = max(one for one in _round_numbers(least)[:3] if one <= least * (1.0 + 1e-9))
    highest = min(one for one in _round_numbers(most) if one >= most * (1.0 - 1e-9))
    getattr(axes, f"set_{which}lim")(lowest, highest)
    wide, narrow = highest > 200.0 * lowest, highest < 6.0 * lowest
    steps = (1.0,) if wide else tuple(map(float, range(1, 10))) if narrow else (1.0, 2.0, 5.0)
    label_powers(getattr(axes, f"{which}axis"), steps)
    axes.grid(axis=which, alpha=0.3)


def _round_numbers(value: float) -> list[float]:
    """1, 2, 5 and 10 times the power of ten below a value."""
    return [step * 10.0 ** math.floor(math.log10(value)) for step in (1.0, 2.0, 5.0, 10.0)]


# --- The figure of a forecast.

BLUE, ORANGE, GREY = *COLOURS[:2], COLOURS[-1]


def forecast_figure(rows: Sequence[ForecastRow], uniform: int, path: str | Path, *, title: str = "") -> None:
    """What each choice is forecast to cost, on a logarithmic axis: guess and worst case, and sampling equally often."""
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
