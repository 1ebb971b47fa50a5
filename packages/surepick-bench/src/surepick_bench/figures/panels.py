"""One panel of a figure of an experiment: lines with quartiles, boxes, error rates; and how its series are drawn."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from surepick.core.records import BoolArray, FloatArray, record
from surepick.errors import InvalidInput
from surepick.reports.figure_page import COLOURS, scale_pulls, write_figure
from surepick.tables import Table
from surepick.tables.numbers import number_or_none
from surepick.tables.table import Column
from surepick_bench.figures.pages import Page
from surepick_bench.results import ended_by_itself
from surepick_bench.summary import share

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKERS = ("o", "s", "^", "v", "P", "X", "h", "<", ">", "p", "d", "8", "H")
LINES = ("-", "--", ":", "-.")
SPREAD = 0.3  # share of the distance between two settings over which policies are set apart
LARGE_RATIO = 8.0  # settings that differ by more are drawn on a logarithmic axis
ROOM_ABOVE = 0.7  # an error rate above it leaves no room for a number on top
RATES = (0.0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0)


@record
class Look:
    """How a series is drawn: colour, marker and line are the same in all figures of a table."""

    colour: str
    marker: str
    line: str
    filled: bool = True

    @property
    def face(self) -> str:
        """The colour inside its marks."""
        return self.colour if self.filled else "white"


Looks = Mapping[str, Look]


def looks(names: Sequence[str]) -> dict[str, Look]:
    """A look for each series; no two are equal up to 91 of them."""
    return {
        name: Look(COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)], LINES[i // len(COLOURS) % len(LINES)])
        for i, name in enumerate(names)
    }


def name_series(page: Page, styles: Looks, notes: Mapping[str, str], *, marker: bool = True, line: bool = True) -> None:
    """A legend entry for each series, with what is to be said of it, and those of its marks that are drawn."""
    for name, look in styles.items():
        page.name_mark(
            f"{name} ({notes[name]})" if name in notes else name,
            color=look.colour,
            marker=look.marker if marker else "",
            linestyle=look.line if line else "",
            markerfacecolor=look.face,
        )


def save(figure: Figure, directory: Path, name: str) -> list[Path]:
    """Write the figure as PNG and SVG."""
    name = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in name)
    paths = [directory / f"{name}.png", directory / f"{name}.svg"]
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"the figure cannot be written to {directory}: {error}.") from error
    write_figure(figure, paths[0], dpi=150)
    figure.set_layout_engine("none")  # where everything is has been found, and takes most of the time
    write_figure(figure, paths[1], metadata={"Date": None})
    return paths


def write_note(axes: Axes, words: str) -> None:
    """A panel with nothing to draw says so."""
    axes.text(0.5, 0.5, words, transform=axes.transAxes, ha="center", va="center")


def filled_looks(styles: Looks, policies: Sequence[str], filled: Collection[str]) -> dict[str, Look]:
    """The looks of these policies, in their order, where only some are filled."""
    return {policy: replace(styles[policy], filled=policy in filled) for policy in policies}


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
    """One line a policy through the medians, with quartiles; a star where the mean lies outside them."""
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
    style: dict[str, Any] = {"color": look.colour, "linestyle": look.line, "linewidth": 1.3, "capsize": 2}
    style |= {"marker": look.marker, "markersize": 6, "markerfacecolor": look.face, "label": policy}
    axes.errorbar(at, middle, yerr=(middle - low, high - middle), **style)
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


def draw_boxes(
    axes: Axes,
    measured: Mapping[str, FloatArray],
    runs: Mapping[str, int],
    styles: Looks,
    published: Mapping[str, float],
) -> None:
    """One horizontal box a policy, the first on top; a black star at the mean, and how many of its runs are drawn."""
    for height, (policy, pulls) in enumerate(measured.items()):
        if len(pulls):
            _box(axes, height, pulls, styles[policy])
        if policy in published:
            _diamond(axes, published[policy], height, styles[policy])
        colour = "black" if len(pulls) == runs[policy] else "#b00020"
        where: dict[str, Any] = {"transform": axes.get_yaxis_transform(), "va": "center", "fontsize": "x-small"}
        axes.text(1.01, height, f"{len(pulls)}/{runs[policy]}", color=colour, **where)
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


def draw_error_rates(
    axes: Axes, answers: Mapping[tuple[str, float], tuple[int, int]], styles: Looks, *, deltas: Sequence[float]
) -> list[str]:
    """Shares of wrong answers and exact intervals, policies by delta, and the line error = delta."""
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
    style: dict[str, Any] = {"color": look.colour, "marker": look.marker, "markerfacecolor": look.face}
    style |= {"markersize": 9, "markeredgecolor": "black", "linewidth": 2.6} if above else {"markersize": 6}
    style = {"markeredgecolor": look.colour, "linewidth": 1.2, **style}
    axes.errorbar(x, rate, yerr=[[rate - found.low], [found.high - rate]], **style)
    if above:
        room = found.high < ROOM_ABOVE
        where = (x, found.high if room else found.low)
        bold: dict[str, Any] = {"rotation": 90, "fontsize": "small", "fontweight": "bold", "ha": "center"}
        axes.annotate(f" {rate:.0%} ", where, va="bottom" if room else "top", **bold)
    return above


# --- The table of replicates as arrays to draw from: which number of pulls a run has, and why others have none.

TextArray = NDArray[np.str_]


@record
class Replicates:
    """Rows of the table, shape (rows,) each; NaN, or "", where something is missing."""

    key: TextArray
    experiment: TextArray
    environment: TextArray
    policy: TextArray
    verdict: TextArray
    stops: TextArray
    failure: TextArray
    num_arms: FloatArray  # as `dim` of the environment, where a run failed
    dim: FloatArray
    epsilon: FloatArray
    delta: FloatArray
    pulls: FloatArray  # until the run ended, whatever ended it
    oracle_pulls: FloatArray  # until only epsilon-best arms were left. Needs the truth.
    success: FloatArray  # success, eliminates: 1 or 0
    eliminates: FloatArray

    def where(self, kept: BoolArray) -> Replicates:
        """The rows that are kept."""
        return Replicates(**{name: getattr(self, name)[kept] for name in self.__slots__})  # type: ignore[attr-defined]

    def of_any_epsilon(self) -> Replicates:
        """The same rows with no epsilon, so that those of several are drawn together."""
        return replace(self, epsilon=np.full(self.num_rows, np.nan))

    @property
    def num_rows(self) -> int:
        return len(self.policy)

    @property
    def policies(self) -> tuple[str, ...]:
        """Their labels, sorted."""
        return tuple(sorted(set(self.policy.tolist())))

    @property
    def environments(self) -> tuple[str, ...]:
        """Their labels, smaller problems first."""
        labels: list[str] = list(dict.fromkeys(self.environment.tolist()))
        return tuple(sorted(labels, key=lambda label: (self._size(label), label)))

    def _size(self, environment: str) -> tuple[float, float]:
        first = int(np.flatnonzero(self.environment == environment)[0])
        return float(np.nan_to_num(self.num_arms[first])), float(np.nan_to_num(self.dim[first]))

    @property
    def own_stop(self) -> BoolArray:
        """Whether the policy ended the run by itself: no failure, no budget, and one that does so at all."""
        columns = zip(self.failure.tolist(), self.stops.tolist(), self.verdict.tolist(), strict=True)
        named = [ended_by_itself(failure=failure, stops=stops, verdict=verdict) for failure, stops, verdict in columns]
        return np.asarray(np.array(named, dtype=bool) & ~np.isnan(self.pulls))


def read_replicates(table: Table) -> Replicates:
    """The rows of the table that `surepick bench run` wrote; columns of values may be absent."""

    def read(name: str, cells_as: Callable[[Column], NDArray[Any]]) -> NDArray[Any]:
        nothing: Column = ("",) * table.num_rows
        return cells_as(table.columns.get(name, nothing))

    columns: dict[str, Any] = {name: texts(table.column(name)) for name in ("experiment", "environment", "policy")}
    columns |= {name: np.char.replace(columns[name], "$", r"\$") for name in ("environment", "policy")}  # no formula
    columns |= {name: read(name, texts) for name in ("key", "verdict", "stops", "failure")}
    columns |= {name: _of_environment(columns, read(name, numbers)) for name in ("num_arms", "dim")}
    columns |= {name: read(name, numbers) for name in ("epsilon", "delta", "pulls", "oracle_pulls")}
    columns |= {name: read(name, true_answers) for name in ("success", "eliminates")}
    if np.isnan(columns["eliminates"]).all():
        columns["eliminates"] = _seen_to_eliminate(columns, read("best_eliminated", true_answers))
    return Replicates(**columns)


def _seen_to_eliminate(columns: dict[str, Any], best_eliminated: FloatArray) -> FloatArray:
    """Where the table does not tell: a policy eliminates if one of its runs has a number that needs it."""
    policy, ended = columns["policy"], columns["failure"] == ""
    counted = policy[~np.isnan(columns["oracle_pulls"]) | ~np.isnan(best_eliminated)]
    return np.where(ended, np.isin(policy, counted).astype(np.float64), np.nan)


def _of_environment(named: dict[str, Any], values: FloatArray) -> FloatArray:
    """Missing sizes filled from other runs in the same environment."""
    places = list(zip(named["experiment"].tolist(), named["environment"].tolist(), strict=True))
    known = {place: value for place, value in zip(places, values.tolist(), strict=True) if not np.isnan(value)}
    return np.where(np.isnan(values), [known.get(place, np.nan) for place in places], values)


def texts(cells: Column) -> TextArray:
    """Cells as text; a missing number is ""."""
    if isinstance(cells, tuple):
        return np.array(cells, dtype=np.str_)
    return np.array(["" if np.isnan(cell) else f"{cell:g}" for cell in cells], dtype=np.str_)


def numbers(cells: Column) -> FloatArray:
    """Cells as numbers; NaN for what is not one."""
    if not isinstance(cells, tuple):
        return np.asarray(cells, dtype=np.float64)
    found = [number_or_none(cell) for cell in cells]
    return np.array([np.nan if number is None else number for number in found], dtype=np.float64)


def true_answers(cells: Column) -> FloatArray:
    """Cells as 1 (true) and 0 (false), NaN where missing; they may be text ("True", "false", "1") or numbers."""
    if not isinstance(cells, tuple):
        return np.where(np.isnan(cells), np.nan, (np.nan_to_num(cells) != 0.0).astype(np.float64))
    meaning = {"true": 1.0, "1": 1.0, "1.0": 1.0, "false": 0.0, "0": 0.0, "0.0": 0.0}
    return np.array([meaning.get(cell.strip().lower(), np.nan) for cell in cells], dtype=np.float64)


@record
class Measure:
    """A number of pulls that is drawn: the name in file names, and the label of the axis."""

    name: str
    label: str

    def of(self, rows: Replicates) -> FloatArray:
        """The number of each row, NaN where it has none."""
        return rows.oracle_pulls if self is ORACLE else np.where(rows.own_stop, rows.pulls, np.nan)


ORACLE = Measure("oracle", "pulls until only epsilon-best arms are left\n(needs the truth: oracle)")
FILLED = "Filled: every own stop certified; hollow: heuristic, or not certified in every run."
OWN_STOP = Measure("own-stop", "pulls until the policy stops by itself\n(own stop)")


def only_certified(rows: Replicates) -> dict[str, str]:
    """Policies with runs that a theorem covers -> "certified", or in how many of their own stops if not in all."""
    found = {}
    for policy in rows.policies:
        verdicts = rows.verdict[(rows.policy == policy) & rows.own_stop]
        count = int((verdicts == "certified").sum())
        if count:
            found[policy] = "certified" if count == len(verdicts) else f"certified in {count} of {len(verdicts)}"
    return found


def always_certified(rows: Replicates) -> list[str]:
    """Policies all of whose own stops are certified: the filled ones."""
    return [policy for policy, words in only_certified(rows).items() if words == "certified"]


def own_stop_notes(rows: Replicates) -> dict[str, str]:
    """What stands beside a policy's name: whether it is certified, how many of its stops were wrong beyond chance."""
    found = only_certified(rows)
    for policy in rows.policies:
        mine = (rows.policy == policy) & rows.own_stop
        runs, wrong = int(mine.sum()), int((rows.success[mine] == 0.0).sum())
        if wrong and share(wrong, runs).low > float(np.max(rows.delta[mine])):
            found[policy] = ", ".join([*filter(None, [found.get(policy)]), f"wrong in {wrong} of {runs}"])
    return found


def missing(rows: Replicates, measure: Measure) -> list[str]:
    """Sentences that name the policies without the number, and how many runs of the others lack it and why."""
    lacks = np.isnan(measure.of(rows))
    failed = rows.failure != ""
    unsuited = _unsuited(rows, measure)
    notes = []
    if unsuited:
        reason = "do not eliminate arms, so have no oracle number" if measure is ORACLE else "do not stop by themselves"
        notes.append(f"Left out ({reason}): {', '.join(unsuited)}.")
    others = ~np.isin(rows.policy, unsuited)
    for words, which in (
        ("Runs that failed, left out", failed & others),
        (
            "Runs never down to epsilon-best arms, left out"
            if measure is ORACLE
            else "Runs ended by a budget, left out",
            lacks & ~failed & others,
        ),
    ):
        counts = [
            f"{policy} {int((which & (rows.policy == policy)).sum())} of {int((rows.policy == policy).sum())}"
            for policy in rows.policies
            if (which & (rows.policy == policy)).any()
        ]
        if counts:
            notes.append(f"{words}: {', '.join(counts)}.")
    return notes


def _unsuited(rows: Replicates, measure: Measure) -> list[str]:
    """Policies for which the number has no meaning."""
    if measure is ORACLE:
        known = {policy: rows.eliminates[rows.policy == policy] for policy in rows.policies}
        return [policy for policy, told in known.items() if (told == 0.0).any() and not (told == 1.0).any()]
    endless = rows.stops == "never"
    return [policy for policy in rows.policies if endless[rows.policy == policy].any()]
