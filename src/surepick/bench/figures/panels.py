"""One panel of a figure of an experiment: lines with quartiles, boxes, error rates; and how each policy looks."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from surepick.bench.figures.replicates import error_interval
from surepick.core.arrays import FloatArray, record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

# Okabe and Ito's palette without yellow, which white paper swallows; black is kept for means
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#666666")
MARKERS = ("o", "s", "^", "v", "P", "X", "h", "<", ">", "p", "d", "8", "H")
LINES = ("-", "--", ":", "-.")
SPREAD = 0.3  # share of the distance between two settings over which policies are set apart
LARGE_RATIO = 8.0  # settings that differ by more are drawn on a logarithmic axis
ROOM_ABOVE = 0.7  # an error rate above it leaves no room for a number on top


@record
class Look:
    """Colour, marker and line of a policy, the same in all figures of a table."""

    colour: str
    marker: str
    line: str


def looks(policies: Sequence[str]) -> dict[str, Look]:
    """A look for each policy; no two are equal up to 91 of them."""
    return {
        policy: Look(COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)], LINES[i // len(COLOURS) % len(LINES)])
        for i, policy in enumerate(policies)
    }


def short_number(value: float, _position: int = 0) -> str:
    """A tick's label: 300, 2k, 10M."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{name}"
    return f"{value:g}"


def scale_pulls(axes: Axes, which: str, values: Sequence[float]) -> None:
    """A logarithmic axis for these numbers of pulls, from one round number to another, however close they are."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: PLC0415 (heavy)

    values = [max(value, 1.0) for value in values]  # no pull at all is at the edge
    axis: Axis = getattr(axes, f"{which}axis")
    getattr(axes, f"set_{which}scale")("log")
    lowest, highest = _round_below(0.9 * min(values, default=1.0)), _round_above(1.1 * max(values, default=10.0))
    getattr(axes, f"set_{which}lim")(lowest, highest)
    wide, narrow = highest > 200.0 * lowest, highest < 6.0 * lowest
    steps = (1.0,) if wide else tuple(map(float, range(1, 10))) if narrow else (1.0, 2.0, 5.0)
    axis.set_major_locator(LogLocator(base=10.0, subs=steps))
    axis.set_major_formatter(FuncFormatter(short_number))
    axis.set_minor_formatter(NullFormatter())
    axes.grid(axis="x" if which == "x" else "y", alpha=0.3)


def _round_below(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return max(step * power for step in (1.0, 2.0, 5.0) if step * power <= value * (1.0 + 1e-9))


def _round_above(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return min(step * power for step in (1.0, 2.0, 5.0, 10.0) if step * power >= value * (1.0 - 1e-9))


def apart(settings: FloatArray, place: int, places: int) -> FloatArray:
    """The settings moved sideways for one of several policies, so that their bars do not cover each other."""
    logarithmic = len(settings) > 1 and settings[0] > 0 and settings[-1] >= LARGE_RATIO * settings[0]
    where = np.log(settings) if logarithmic else settings
    step = float(np.diff(where).min()) if len(settings) > 1 else 1.0
    moved = where + SPREAD * step * ((place + 0.5) / places - 0.5)
    return np.exp(moved) if logarithmic else moved


def draw_lines(
    axes: Axes,
    settings: FloatArray,
    measured: Mapping[str, Sequence[FloatArray]],
    styles: Mapping[str, Look],
    *,
    filled: Collection[str],
    published: Mapping[tuple[str, float], float],
) -> None:
    """One line a policy through the medians, with quartiles; a star where the mean lies outside them.

    Args:
        settings: K or D, increasing.
        measured: policy -> its pulls at each setting, an empty array where it has none.
        filled: policies with filled markers.
        published: (policy, setting) -> number, drawn as a diamond.
    """
    drawn: list[float] = []
    for place, (policy, several) in enumerate(measured.items()):
        at = apart(settings, place, len(measured))
        drawn += _line(axes, policy, at, several, styles[policy], filled=policy in filled)
        for x, setting in zip(at.tolist(), settings.tolist(), strict=True):
            if (policy, setting) in published:
                _diamond(axes, x, published[policy, setting], styles[policy])
                drawn.append(published[policy, setting])
    _scale_settings(axes, settings)
    scale_pulls(axes, "y", drawn)


def _line(
    axes: Axes, policy: str, at: FloatArray, several: Sequence[FloatArray], look: Look, *, filled: bool
) -> list[float]:
    """The line of one policy; all heights at which something is drawn."""
    low, middle, high = np.array([_quartiles(pulls) or (np.nan,) * 3 for pulls in several]).T
    axes.errorbar(
        at,
        middle,
        yerr=(middle - low, high - middle),
        color=look.colour,
        linestyle=look.line,
        marker=look.marker,
        markersize=6,
        markerfacecolor=look.colour if filled else "white",
        linewidth=1.3,
        capsize=2,
        label=policy,
    )
    drawn = [value for pulls in several for value in _quartiles(pulls)]
    for x, pulls, below, above in zip(at.tolist(), several, low, high, strict=True):
        if len(pulls) and not below <= (mean := float(pulls.mean())) <= above:
            axes.plot(
                x, mean, "*", color=look.colour, markeredgecolor="black", markersize=8, markeredgewidth=0.8, zorder=4
            )
            drawn.append(mean)
    return drawn


def _quartiles(pulls: FloatArray) -> tuple[float, ...]:
    return tuple(np.percentile(pulls, (25, 50, 75)).tolist()) if len(pulls) else ()


def _diamond(axes: Axes, x: float, y: float, look: Look) -> None:
    axes.plot(x, y, "D", color=look.colour, markerfacecolor="none", markersize=8, markeredgewidth=1.2, zorder=5)


def _scale_settings(axes: Axes, settings: FloatArray) -> None:
    from matplotlib.ticker import NullLocator  # noqa: PLC0415 (heavy)

    if len(settings) > 1 and settings[0] > 0 and settings[-1] >= LARGE_RATIO * settings[0]:
        axes.set_xscale("log")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(settings.tolist(), [f"{setting:g}" for setting in settings])


def draw_boxes(
    axes: Axes,
    measured: Mapping[str, FloatArray],
    runs: Mapping[str, int],
    styles: Mapping[str, Look],
    *,
    filled: Collection[str],
    published: Mapping[str, float],
) -> None:
    """One horizontal box a policy, the first on top; a black star at the mean, and how many of its runs are drawn.

    Args:
        measured: policy -> its pulls.
        runs: policy -> all its runs, with or without a number.
        filled: policies with filled boxes.
        published: policy -> number, drawn as a diamond.
    """
    for height, (policy, pulls) in enumerate(measured.items()):
        if len(pulls):
            _box(axes, height, pulls, styles[policy], filled=policy in filled)
        if policy in published:
            _diamond(axes, published[policy], height, styles[policy])
        counted = f"{len(pulls)}/{runs.get(policy, 0)}"
        axes.text(
            1.01,
            height,
            counted,
            transform=axes.get_yaxis_transform(),
            va="center",
            fontsize="x-small",
            color="black" if len(pulls) == runs.get(policy, 0) else "#b00020",
        )
    axes.set_ylim(len(measured) - 0.5, -0.5)
    scale_pulls(axes, "x", [*(value for pulls in measured.values() for value in pulls.tolist()), *published.values()])


def _box(axes: Axes, height: float, pulls: FloatArray, look: Look, *, filled: bool) -> None:
    """Quartiles and median, whiskers to the last value within 1.5 box lengths, the others as points."""
    low, middle, high = _quartiles(pulls)
    inside = pulls[(pulls >= low - 1.5 * (high - low)) & (pulls <= high + 1.5 * (high - low))]
    outside = pulls[(pulls < inside.min()) | (pulls > inside.max())]
    axes.plot([inside.min(), low], [height] * 2, color=look.colour, linewidth=1.2)
    axes.plot([high, inside.max()], [height] * 2, color=look.colour, linewidth=1.2)
    axes.barh(
        height,
        high - low,
        left=low,
        height=0.56,
        edgecolor=look.colour,
        linewidth=1.2,
        facecolor=(look.colour, 0.45) if filled else "white",
        zorder=2,
    )
    axes.plot([middle] * 2, [height - 0.28, height + 0.28], color=look.colour, linewidth=2.2, zorder=3)
    axes.plot(outside, np.full(len(outside), height), ".", color=look.colour, markersize=4, alpha=0.6)
    axes.plot(pulls.mean(), height, "*", color="black", markersize=7, zorder=4)


def draw_error_rates(
    axes: Axes,
    answers: Mapping[tuple[str, float], tuple[int, int]],
    styles: Mapping[str, Look],
    *,
    deltas: Sequence[float],
    filled: Collection[str],
) -> list[str]:
    """Shares of wrong answers with exact intervals, policies side by side over each delta, and the line error = delta.

    Args:
        answers: (policy, delta) -> (wrong answers, runs), runs at least 1.
        deltas: increasing; each has a place of its own on the axis.
        filled: policies with filled markers.

    Returns:
        The policies whose interval lies wholly above delta; they are drawn large, ringed, with the rate.
    """
    exceeding: set[str] = set()
    policies = list(styles)
    for (policy, delta), (wrong, runs) in answers.items():
        x = deltas.index(delta) + 0.84 * ((policies.index(policy) + 0.5) / len(policies) - 0.5)
        if _rate(axes, x, wrong, runs, styles[policy], delta=delta, filled=policy in filled):
            exceeding.add(policy)
    for place, delta in enumerate(deltas):
        axes.plot([place - 0.48, place + 0.48], [delta] * 2, color="black", linestyle="--", linewidth=1.2, zorder=1)
    _scale_rates(axes, deltas)
    return sorted(exceeding)


def _rate(axes: Axes, x: float, wrong: int, runs: int, look: Look, *, delta: float, filled: bool) -> bool:
    """One share with its interval; whether the interval lies wholly above delta."""
    low, high = error_interval(wrong, runs)
    rate, above = wrong / runs, low > delta
    axes.errorbar(
        x,
        rate,
        yerr=[[rate - low], [high - rate]],
        color=look.colour,
        marker=look.marker,
        markersize=9 if above else 6,
        markerfacecolor=look.colour if filled else "white",
        markeredgecolor="black" if above else look.colour,
        linewidth=2.6 if above else 1.2,
    )
    if above:
        room = high < ROOM_ABOVE
        axes.annotate(
            f" {rate:.0%} ",
            (x, high if room else low),
            rotation=90,
            fontsize="small",
            fontweight="bold",
            ha="center",
            va="bottom" if room else "top",
        )
    return above


def _scale_rates(axes: Axes, deltas: Sequence[float]) -> None:
    """A square-root axis: it shows zero, and tells 0.01 from 0.05."""
    axes.set_yscale(
        "function",
        functions=(lambda rate: np.sign(rate) * np.sqrt(np.abs(rate)), lambda root: np.sign(root) * np.square(root)),
    )
    axes.set_ylim(-0.002, 1.03)
    axes.set_yticks(
        [0.0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0],
        ["0", "1 %", "5 %", "10 %", "20 %", "40 %", "60 %", "80 %", "100 %"],
    )
    axes.set_xticks(range(len(deltas)), [f"{delta:g}" for delta in deltas])
    axes.set_xlim(-0.55, len(deltas) - 0.45)
    axes.grid(axis="y", alpha=0.3)
