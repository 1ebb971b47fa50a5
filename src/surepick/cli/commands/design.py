"""`surepick design`: the optimal design alone, with its certificate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from typer import Option

from surepick.blocks.rows import RowBlocks
from surepick.cli import options
from surepick.cli.output import picked, print_json, print_table, say
from surepick.cli.table_options import TableOptions
from surepick.core.design import Design, DesignOfRows
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
    reader = table.with_features
    arms = reader.candidates(source) if reward is None else reader.grouped_arms(source, reward)
    if isinstance(arms, RowBlocks):
        _of_rows(arms, tolerance, output)
        return
    if arms.features.shape[1] == 0:
        raise InvalidInput(f"{source} has no feature column; a design needs features. Name them with --features.")
    found = solve_design(arms.features, tolerance=tolerance)
    supported = np.flatnonzero(found.weights)
    if output is options.Format.json:
        weights = {arms.ids[arm]: found.weights[arm] for arm in supported}
        print_json(picked(found, "value", "lower_bound", "gap", "rank") | {"weights": weights})
        return
    shares = [(arms.ids[arm], float(found.weights[arm])) for arm in supported.tolist()]
    _print(shares, arms.num_arms, found, found.rank)


def _of_rows(rows: RowBlocks, tolerance: float, output: options.Format) -> None:
    """The design of candidates in files."""
    found = solve_design(rows, tolerance=tolerance)
    shares = list(zip(rows.ids(found.rows), found.weights.tolist(), strict=True))
    if output is options.Format.json:
        print_json(picked(found, "value", "lower_bound", "gap", "exact", "passes") | {"weights": dict(shares)})
        return
    _print(shares, rows.num_rows, found, found.features.shape[1])
    say(f"{found.passes} passes over the files.")


def _print(shares: Sequence[tuple[str, float]], number: int, found: Design | DesignOfRows, rank: int) -> None:
    ranked = sorted(shares, key=lambda one: -one[1])
    rows = [(name, f"{share:.4f}") for name, share in ranked[:MOST_ROWS]]
    print_table(("candidate", "share"), rows, left=("candidate",), title="share of the measurements")
    if len(ranked) > MOST_ROWS:
        say((f"({MOST_ROWS} of {len(ranked)} candidates with a share shown)", "dim"))
    say(
        f"Measure {len(ranked):,} of {number:,} candidates. Design value {found.value:.6g}; no design in "
        f"these {rank} dimensions goes below {found.lower_bound:.6g} (proved gap {found.gap:.3%})."
    )
