"""One panel of a figure of an experiment: lines with quartiles, boxes, error rates."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from surepick.bench.summary import share
from surepick.core.arrays import FloatArray
from surepick.reports.figure_page import Look, Looks, scale_pulls

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SPREAD = 0.3  # share of the distance between two settings over which policies are set apart
LARGE_RATIO = 8.0  # settings that differ by more are drawn on a logarithmic axis
ROOM_ABOVE = 0.7  # an error rate above it leaves no room for a number on top
RATES = (0.0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)


def filled_looks(styles: Looks, policies: Sequence[str], filled: Collection[str]) -> dict[str, Look]:
    """The looks of these policies, in their order, where only some are filled."""
    return {policy: replace(styles[policy], filled=policy in filled) for policy in policies}


# --- lines


def apart(settings: FloatArray, place: int, places: int) -> FloatArray:
    """The settings moved sideways for one of several policies, so that their bars do not cover each other."""
    logarithmic = _is_wide(settings)
    where = np.log(settings) if logarithmic else settings
    step = float(np.diff(where).min()) if len(settings) > 1 else 1.0
    moved = where + SPREAD * step * ((place + 0.5) / places - 0.5)
    return np.exp(moved) if logarithmic else moved


def _is_wide(settings: FloatArray) -> bool:
    return len(settings) > 1 and settings[0] > 0 and bool(settings[-1] >= LARGE_RATIO * settings[0])


def draw_lines(
    axes: Axes,
    settings: FloatArray,
    measured: Mapping[str, Sequence[FloatArray]],
    styles: Looks,
    published: Mapping[tuple[str, float], float],
) -> None:
    """One line a policy through the medians, with quartiles; a star where the mean lies outside them.

    Args:
        settings: K or D, increasing.
        measured: policy -> its pulls at each setting, an empty array where it has none.
        published: (policy, setting) -> number, drawn as a diamond.
    """
    from matplotlib.ticker import NullLocator  # noqa: PLC0415 (heavy)

    drawn: list[float] = []
    for place, (policy, several) in enumerate(measured.items()):
        at = apart(settings, place, len(measured))
        drawn += _line(axes, policy, at, several, styles[policy])
        for x, setting in zip(at.tolist(), settings.tolist(), strict=True):
            if (policy, setting) in published:
                _diamond(axes, x, published[policy, setting], styles[policy])
                drawn.append(published[policy, setting])
    if _is_wide(settings):
        axes.set_xscale("log")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(settings.tolist(), [f"{setting:g}" for setting in settings])
    scale_pulls(axes, "y", drawn)


def _line(axes: Axes, policy: str, at: FloatArray, several: Sequence[FloatArray], look: Look) -> list[float]:
    """The line of one policy; all heights at which something is drawn."""
    low, middle, high = np.array([_quartiles(pulls) for pulls in several]).T
    axes.errorbar(
        at,
        middle,
        yerr=(middle - low, high - middle),
        color=look.colour,
        linestyle=look.line,
        marker=look.marker,
        markersize=6,
        markerfacecolor=look.face,
        linewidth=1.3,
        capsize=2,
        label=policy,
    )
    drawn = [*low[~np.isnan(low)].tolist(), *high[~np.isnan(high)].tolist()]
    edge: dict[str, Any] = {"markeredgecolor": "black", "markersize": 8, "markeredgewidth": 0.8, "zorder": 4}
    for x, pulls, below, above in zip(at.tolist(), several, low, high, strict=True):
        if len(pulls) and not below <= (mean := float(pulls.mean())) <= above:
            axes.plot(x, mean, "*", color=look.colour, **edge)
            drawn.append(mean)
    return drawn


def _quartiles(pulls: FloatArray) -> FloatArray:
    return np.percentile(pulls, (25, 50, 75)) if len(pulls) else np.full(3, np.nan)


def _diamond(axes: Axes, x: float, y: float, look: Look) -> None:
    axes.plot(x, y, "D", color=look.colour, markerfacecolor="none", markersize=8, markeredgewidth=1.2, zorder=5)


# --- boxes


def draw_boxes(
    axes: Axes,
    measured: Mapping[str, FloatArray],
    runs: Mapping[str, int],
    styles: Looks,
    published: Mapping[str, float],
) -> None:
    """One horizontal box a policy, the first on top; a black star at the mean, and how many of its runs are drawn.

    Args:
        measured: policy -> its pulls.
        runs: policy -> all its runs, with or without a number.
        published: policy -> number, drawn as a diamond.
    """
    for height, (policy, pulls) in enumerate(measured.items()):
        if len(pulls):
            _box(axes, height, pulls, styles[policy])
        if policy in published:
            _diamond(axes, published[policy], height, styles[policy])
        axes.text(
            1.01,
            height,
            f"{len(pulls)}/{runs[policy]}",
            transform=axes.get_yaxis_transform(),
            va="center",
            fontsize="x-small",
            color="black" if len(pulls) == runs[policy] else "#b00020",
        )
    axes.set_ylim(len(measured) - 0.5, -0.5)
    scale_pulls(axes, "x", [*(value for pulls in measured.values() for value in pulls.tolist()), *published.values()])


def _box(axes: Axes, height: float, pulls: FloatArray, look: Look) -> None:
    """Quartiles and median, whiskers to the last value within 1.5 box lengths, the others as points."""
    low, middle, high = _quartiles(pulls)
    inside = pulls[(pulls >= low - 1.5 * (high - low)) & (pulls <= high + 1.5 * (high - low))]
    outside = pulls[(pulls < inside.min()) | (pulls > inside.max())]
    for ends in ([inside.min(), low], [high, inside.max()]):
        axes.plot(ends, [height] * 2, color=look.colour, linewidth=1.2)
    face = (look.colour, 0.45) if look.filled else "white"
    box: dict[str, Any] = {"height": 0.56, "edgecolor": look.colour, "linewidth": 1.2, "zorder": 2}
    axes.barh(height, high - low, left=low, facecolor=face, **box)
    axes.plot([middle] * 2, [height - 0.28, height + 0.28], color=look.colour, linewidth=2.2, zorder=3)
    axes.plot(outside, np.full(len(outside), height), ".", color=look.colour, markersize=4, alpha=0.6)
    axes.plot(pulls.mean(), height, "*", color="black", markersize=7, zorder=4)


# --- error rates


def draw_error_rates(
    axes: Axes, answers: Mapping[tuple[str, float], tuple[int, int]], styles: Looks, *, deltas: Sequence[float]
) -> list[str]:
    """Shares of wrong answers with exact intervals, policies side by side over each delta, and the line error = delta.

    Args:
        answers: (policy, delta) -> (wrong answers, runs), runs at least 1.
        deltas: increasing; each has a place of its own on the axis.

    Returns:
        The policies whose interval lies wholly above delta; they are drawn large, ringed, with the rate.
    """
    exceeding: set[str] = set()
    policies = list(styles)
    for (policy, delta), (wrong, runs) in answers.items():
        x = deltas.index(delta) + 0.84 * ((policies.index(policy) + 0.5) / len(policies) - 0.5)
        if _rate(axes, x, wrong, runs, styles[policy], delta):
            exceeding.add(policy)
    for place, delta in enumerate(deltas):
        axes.plot([place - 0.48, place + 0.48], [delta] * 2, color="black", linestyle="--", linewidth=1.2, zorder=1)
    signed_root = (lambda rate: np.sign(rate) * np.sqrt(np.abs(rate)), lambda root: np.sign(root) * np.square(root))
    axes.set_yscale("function", functions=signed_root)  # it shows zero, and tells 0.01 from 0.05
    axes.set_ylim(-0.002, 1.03)
    axes.set_yticks(RATES, ["0", *(f"{100 * rate:g} %" for rate in RATES[1:])])
    axes.set_xticks(range(len(deltas)), [f"{delta:g}" for delta in deltas])
    axes.set_xlim(-0.55, len(deltas) - 0.45)
    axes.grid(axis="y", alpha=0.3)
    return sorted(exceeding)


def _rate(axes: Axes, x: float, wrong: int, runs: int, look: Look, delta: float) -> bool:
    """One share with its interval; whether the interval lies wholly above delta."""
    found, rate = share(wrong, runs), wrong / runs
    above = found.low > delta
    axes.errorbar(
        x,
        rate,
        yerr=[[rate - found.low], [found.high - rate]],
        color=look.colour,
        marker=look.marker,
        markersize=9 if above else 6,
        markerfacecolor=look.face,
        markeredgecolor="black" if above else look.colour,
        linewidth=2.6 if above else 1.2,
    )
    if above:
        room = found.high < ROOM_ABOVE
        where = (x, found.high if room else found.low)
        bold: dict[str, Any] = {"rotation": 90, "fontsize": "small", "fontweight": "bold", "ha": "center"}
        axes.annotate(f" {rate:.0%} ", where, va="bottom" if room else "top", **bold)
    return above
