"""`surepick design`: the optimal design alone, with its certificate."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from surepick.cli import options
from surepick.cli.output import Text, print_json
from surepick.cli.table_options import reads_tables
from surepick.core.arms import Arms
from surepick.core.design import Design
from surepick.designs import solve_design
from surepick.errors import InvalidInput
from surepick.tables import ReadOptions, grouped_arms, read_arms, read_table

MOST_ROWS = 20


@reads_tables
def design(
    source: options.TableArgument,
    name: options.IdOption = None,
    features: options.FeaturesOption = None,
    tolerance: Annotated[float, typer.Option("--tolerance", help="Relative gap to the optimum that is proved.")] = 0.01,
    reward: Annotated[
        str | None,
        typer.Option("--reward", help="A column of measurements: no feature, and rows of one id are repeats."),
    ] = None,
    standardize: options.StandardizeOption = False,
    intercept: options.InterceptOption = False,
    *,
    reading: ReadOptions,
    output: options.FormatOption = options.Format.text,
) -> None:
    """Where to measure so that every difference between two candidates is known equally well: the optimal design.

    The value is the largest variance of a difference, times the number of measurements, over the noise variance.
    """
    if reward is None:
        arms = read_arms(source, id=name, features=features, standardize=standardize, intercept=intercept, **reading)
    else:
        arms = grouped_arms(
            read_table(source, **reading),
            name,
            features,
            exclude=(reward,),
            standardize=standardize,
            intercept=intercept,
        ).arms
    if arms.features.shape[1] == 0:
        raise InvalidInput(f"{source} has no feature column; a design needs features. Name them with --features.")
    found = solve_design(arms.features, tolerance=tolerance)
    if output is options.Format.json:
        print_json(
            {
                "value": found.value,
                "lower_bound": found.lower_bound,
                "gap": found.gap,
                "rank": found.rank,
                "weights": {arms.ids[arm]: found.weights[arm] for arm in np.flatnonzero(found.weights)},
            }
        )
    else:
        _print(arms, found)


def _print(arms: Arms, found: Design) -> None:
    console = Console(highlight=False, soft_wrap=True)
    supported = np.flatnonzero(found.weights)
    ranked = supported[np.argsort(-found.weights[supported], kind="stable")]
    table = Table(title="share of the measurements", title_justify="left", title_style="bold")
    table.add_column("candidate")
    table.add_column("share", justify="right")
    for arm in ranked[:MOST_ROWS]:
        table.add_row(Text(arms.ids[arm]), f"{found.weights[arm]:.4f}")
    console.print(table)
    if len(ranked) > MOST_ROWS:
        console.print(f"({MOST_ROWS} of {len(ranked)} candidates with a share shown)", style="dim")
    console.print(
        f"Measure {len(supported):,} of {arms.num_arms:,} candidates. Design value {found.value:.6g}; no design in "
        f"these {found.rank} dimensions goes below {found.lower_bound:.6g} (proved gap {found.gap:.3%})."
    )
