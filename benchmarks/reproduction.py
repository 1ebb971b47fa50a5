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

from surepick.core.files import write_whole
from surepick.tables import read_table
from surepick_bench.commands import filled, number, oracle_row, own_row, rounds_rows, share_text
from surepick_bench.experiments import read_off
from surepick_bench.figures.figures import experiment_figures
from surepick_bench.results import read_results
from surepick_bench.summary import CellSummary, summarize

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


def table(rows: Sequence[dict[str, str]]) -> str:
    heads, cells = filled(rows)
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in cells)]) + "\n"


def own(cells: Sequence[CellSummary]) -> str:
    return table([own_row(cell) for cell in cells])


def oracle(cells: Sequence[CellSummary]) -> str:
    return table([oracle_row(cell) for cell in cells if cell.reached is not None])


def rounds(cells: Sequence[CellSummary]) -> str:
    return table([row for cell in cells if cell.rounds for row in rounds_rows(cell)])


def errors(cells: Sequence[CellSummary]) -> str:
    return table(
        [
            {
                "policy": cell.policy,
                "delta": f"{cell.delta:g}",
                "wrong (95 %)": share_text(cell.wrong),
                "verdict": ", ".join(cell.verdicts),
                "own-stop pulls, mean": number(cell.own.mean if cell.own else None),
            }
            for cell in sorted(cells, key=lambda cell: cell.policy)
        ]
    )


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
    write_whole(chosen.document, BLOCK.sub(written, text).encode())
    folder = chosen.document.parent / "figures"
    for path in chosen.results:
        tables = read_table(path), read_table(path.with_suffix(".rounds.parquet"))
        for figure in experiment_figures(*tables, folder, published=read_off()):
            if figure.stem not in FIGURES or figure.suffix != ".png":
                figure.unlink()


if __name__ == "__main__":
    sys.exit(main())
