"""Write the tables and figures of docs/reproduction.md from results of `surepick bench run`.

    surepick bench run paper --runs 50 --out paper.parquet
    surepick bench run peers --runs 5 --out peers.parquet
    surepick bench run error-rate --runs 200 --out errors.parquet
    python benchmarks/reproduction.py paper.parquet peers.parquet errors.parquet

A table stands between <!-- table KIND EXPERIMENT [ENVIRONMENTS] --> and <!-- end -->; KIND is own, oracle, rounds or
errors, ENVIRONMENTS a part of their labels.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from surepick.cli.bench_tables import number
from surepick.experiments import CellSummary, read_results, summarize
from surepick.experiments.published import read_off
from surepick.experiments.summary import Share, Spread
from surepick.reports.experiment_figures import experiment_figures
from surepick.tables import read_table

DOCUMENT = Path(__file__).parents[1] / "docs/reproduction.md"
BLOCK = re.compile(r"(<!-- table (\w+) ([\w-]+) ?([^>]*?) -->\n).*?(<!-- end -->)", re.DOTALL)
FIGURES = (
    "oracle-paper-linear",
    "own-stop-paper-linear",
    "oracle-paper-nonlinear",
    "oracle-mnist",
    "own-stop-mnist",
    "oracle-yahoo-like",
    "own-stop-yahoo-like",
    "oracle-high-dimensional",
    "own-stop-peers",
    "errors-error-rate",
)


def share(found: Share | None) -> str:
    return "" if found is None else f"{found.count}/{found.total} ({found.low:.0%} to {found.high:.0%})"


def spread(found: Spread | None) -> list[str]:
    if found is None:
        return ["", "", ""]
    return [number(found.mean), number(found.median), f"{number(found.lower)} to {number(found.upper)}"]


def ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}" if value < 100 else number(value)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def own(cells: Sequence[CellSummary]) -> str:
    heads = (
        "environment",
        "policy",
        "right (95 %)",
        "verdict",
        "mean",
        "median",
        "quartiles",
        "x reference",
        "seconds",
    )
    return table(
        heads,
        [
            [
                cell.environment,
                f"`{cell.policy}`",
                share(cell.right),
                ", ".join(cell.verdicts)
                if len(cell.verdicts) == 1
                else ", ".join(f"{count} {name}" for name, count in cell.verdicts.items()),
                *spread(cell.own),
                ratio(cell.own_to_reference),
                "" if cell.seconds is None else f"{cell.seconds:.2f}",
            ]
            for cell in cells
        ],
    )


def oracle(cells: Sequence[CellSummary]) -> str:
    heads = (
        "environment",
        "policy",
        "reached (95 %)",
        "paper's success",
        "mean",
        "median",
        "quartiles",
        "paper's figure",
        "reimplementation",
        "ratio of means",
        "of medians",
        "best arm out",
    )
    return table(
        heads,
        [
            [
                cell.environment,
                f"`{cell.policy}`",
                share(cell.reached),
                "" if cell.published.success is None else f"{cell.published.success:.0%}",
                *spread(cell.oracle),
                cell.published.figure,
                number(cell.published.expected),
                ratio(cell.oracle_to_expected),
                ratio(cell.oracle_median_to_expected),
                "" if cell.best_eliminated is None else f"{cell.best_eliminated.count}/{cell.best_eliminated.total}",
            ]
            for cell in cells
            if cell.reached is not None
        ],
    )


def rounds(cells: Sequence[CellSummary]) -> str:
    several = [cell for cell in cells if cell.rounds]
    most = max(len(cell.rounds) for cell in several)
    rows = []
    for cell in several:
        for name, pairs in (
            (f"`{cell.policy}`", [(row.mean_dim, row.done) for row in cell.rounds]),
            ("the paper's", list(cell.published.rounds)),
        ):
            if pairs:
                shown = [f"{dim:.4g}, {done:.0%}" for dim, done in pairs]
                rows.append([cell.environment, name, *shown, *[""] * (most - len(shown))])
    return table(["environment", "policy", *(f"d_{k}, s_{k}" for k in range(1, most + 1))], rows)


def errors(cells: Sequence[CellSummary]) -> str:
    rows = [
        [
            f"`{cell.policy}`",
            f"{cell.delta:g}",
            share(cell.wrong),
            ", ".join(cell.verdicts),
            number(cell.own.mean if cell.own else None),
        ]
        for cell in cells
    ]
    return table(("policy", "delta", "wrong (95 %)", "verdict", "own-stop pulls, mean"), rows)


KINDS = {"own": own, "oracle": oracle, "rounds": rounds, "errors": errors}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--document", type=Path, default=DOCUMENT)
    chosen = parser.parse_args()
    cells = [cell for path in chosen.results for cell in summarize(read_results(path))]

    def written(block: re.Match[str]) -> str:
        start, kind, experiment, part, end = block.groups()
        mine = [cell for cell in cells if cell.experiment == experiment and part.strip() in cell.environment]
        return start + (KINDS[kind](mine) if mine else block[0][len(start) : -len(end)]) + end

    text = chosen.document.read_text(encoding="utf-8")
    chosen.document.write_text(BLOCK.sub(written, text), encoding="utf-8")
    folder = chosen.document.parent / "figures"
    for path in chosen.results:
        tables = read_table(path), read_table(path.with_suffix(".rounds.parquet"))
        for figure in experiment_figures(*tables, folder, published=read_off()):
            if figure.stem not in FIGURES or figure.suffix != ".png":
                figure.unlink()


if __name__ == "__main__":
    sys.exit(main())
