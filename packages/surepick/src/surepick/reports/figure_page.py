"""Figures as files, and that of a forecast. Matplotlib is imported when one is drawn."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from surepick.core.files import write_whole
from surepick.errors import InvalidInput
from surepick.forecasts import ForecastRow

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


# Okabe and Ito's palette without yellow, which white paper swallows; black is kept for means
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#666666")


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
LARGE_PER_INCH = 11.5  # letters of a title


def forecast_figure(rows: Sequence[ForecastRow], uniform: int, path: str | Path, *, title: str = "") -> None:
    """What each choice is forecast to cost, on a logarithmic axis: guess and worst case, and sampling equally often."""
    with reproducible():
        from matplotlib.figure import Figure  # noqa: PLC0415 (heavy, and an extra)
        from matplotlib.lines import Line2D  # noqa: PLC0415

        figure = Figure(figsize=(8.0, 1.7 + 0.42 * len(rows)))
        figure.set_layout_engine("constrained", wspace=0.05)
        axes = figure.subplots()
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
        key = [Line2D([], [], label="worst case", color=ORANGE, marker="s", linestyle="")]
        if any(row.guess is not None for row in rows):
            guessed = "under your guess (band: all simulated studies)"
            key.insert(0, Line2D([], [], label=guessed, color=BLUE, marker="o", linestyle=""))
        if any(row.worst is not None and not row.believable for row in rows):
            hollow: dict[str, Any] = {"marker": "s", "linestyle": "", "markerfacecolor": "white"}
            key.append(Line2D([], [], label="not credible (see warnings)", color=ORANGE, **hollow))
        key.append(Line2D([], [], label="uniform sampling", color=GREY, linestyle="--"))
        figure.suptitle("\n".join(textwrap.wrap(title, int(8.0 * LARGE_PER_INCH))), x=0.01, ha="left", fontsize="large")
        figure.legend(handles=key, loc="outside lower center", ncols=2, frameon=False, fontsize="small")
        write_figure(figure, path, dpi=150)
