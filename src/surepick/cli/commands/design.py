"""`surepick design`: the optimal design alone, with its certificate."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from typer import Option

from surepick.cli import options
from surepick.cli.output import picked, print_json, print_table, say
from surepick.cli.table_options import TableOptions
from surepick.core.arms import Arms
from surepick.core.design import Design
from surepick.designs import solve_design
from surepick.errors import InvalidInput

MOST_ROWS = 20


def design(
    source: options.TableArgument,
    *,
    table: TableOptions,
    reward: Annotated[str | None, Option(help="A column of measurements; rows of one id are repeats.")] = None,
    tolerance: Annotated[float, Option(help="Relative gap to the optimum to prove.")] = 0.01,
    output: options.FormatOption = options.Format.text,
) -> None:
    """Compute where to measure to know every difference of two candidates equally well: the optimal design.

    Its value is the largest variance of a difference, times the number of measurements, over the noise variance.
    """
    arms = table.arms(source) if reward is None else table.grouped_arms(source, reward)
    if arms.features.shape[1] == 0:
        raise InvalidInput(f"{source} has no feature column; a design needs features. Name them with --features.")
    found = solve_design(arms.features, tolerance=tolerance)
    supported = np.flatnonzero(found.weights)
    if output is options.Format.json:
        weights = {arms.ids[arm]: found.weights[arm] for arm in supported}
        print_json(picked(found, "value", "lower_bound", "gap", "rank") | {"weights": weights})
        return
    ranked = supported[np.argsort(-found.weights[supported], kind="stable")]
    _print(arms, found, ranked.tolist())


def _print(arms: Arms, found: Design, ranked: list[int]) -> None:
    rows = [(arms.ids[arm], f"{found.weights[arm]:.4f}") for arm in ranked[:MOST_ROWS]]
    print_table(("candidate", "share"), rows, left=("candidate",), title="share of the measurements")
    if len(ranked) > MOST_ROWS:
        say((f"({MOST_ROWS} of {len(ranked)} candidates with a share shown)", "dim"))
    say(
        f"Measure {len(ranked):,} of {arms.num_arms:,} candidates. Design value {found.value:.6g}; no design in "
        f"these {found.rank} dimensions goes below {found.lower_bound:.6g} (proved gap {found.gap:.3%})."
    )
