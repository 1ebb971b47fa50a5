"""The figures of an experiment, from the tables that `surepick bench run` wrote.

    oracle-NAME      pulls until only epsilon-best arms are left: the paper's number, which needs the truth
    own-stop-NAME    pulls until the policy stops by itself: what a user pays
    errors-NAME      share of wrong answers at the own stop, against delta
    arms-left-NAME   arms not ruled out, against pulls

The first two numbers never share an axis. A run without the number is never drawn; how many there are is always said.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from surepick.bench.figures.active_figure import Rounds, arms_left_figure, read_rounds
from surepick.bench.figures.error_figure import error_figure
from surepick.bench.figures.pulls_figure import Layout, Published, pulls_figure
from surepick.bench.figures.replicates import OWN_STOP, Replicates, read_replicates
from surepick.core.arrays import BoolArray, FloatArray
from surepick.reports.figure_page import Looks, looks, reproducible, save
from surepick.tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    """Draw every figure for which there is an experiment, as PNG and SVG; equal tables give equal files.

    Args:
        replicates: a row a replicate; columns of values may be absent or have gaps.
        rounds: a row a round; None: the arms that are left are not drawn.
        directory: where the files go; it is made if need be.
        published: oracle pulls that are drawn as diamonds beside those of the table.

    Returns:
        The files, in the order in which they were written.

    Raises:
        InvalidInput: matplotlib is absent, the table names no experiment, environment or policy, or a file cannot be
            written.
    """
    everything = read_replicates(replicates)
    styles = looks(everything.policies)
    traces = None if rounds is None else read_rounds(rounds)
    paths: list[Path] = []
    with reproducible():
        for experiment in sorted(set(everything.experiment.tolist())):
            rows = everything.where(everything.experiment == experiment)
            for name, figure in _figures(rows, traces, experiment, styles, published or {}):
                paths += save(figure, Path(directory), name)
    return paths


def _figures(
    rows: Replicates, rounds: Rounds | None, experiment: str, styles: Looks, published: Published
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
