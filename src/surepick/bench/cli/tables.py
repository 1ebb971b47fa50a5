"""The tables of experiments as people read them, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from surepick.bench.paper_experiments import experiment, experiment_names
from surepick.bench.question_experiment import NAME as QUESTIONS
from surepick.bench.question_experiment import ratio_lines
from surepick.bench.ranking_experiment import NAME as RANKING
from surepick.bench.ranking_experiment import procedures_for, right_in_the_long_run
from surepick.bench.results import Results
from surepick.bench.summary import AtLeast, CellSummary, Share, Spread, summarize
from surepick.cli.output import Text
from surepick.core.json import encode

WIDTH = 215  # of the tables, which are too wide for most terminals; narrower, their numbers would be cut
OWN = "own stop: pulls until the policy stopped by itself, which is what a user pays"
ORACLE = "ORACLE: pulls until only epsilon-best arms were left; needs the truth, so that nobody can stop there"
ROUNDS = (
    "rounds: mean dimension d_k, and share s_k of runs whose active set held only epsilon-best arms (needs the truth)"
)
OTHERS = "published totals of other procedures, which assume and promise something else: no ratio is made of them"
TEXTS = ("environment", "policy", "constants", "procedure", "assumes", "promises")
LEGEND = (
    "x reference: median over 2 sigma^2 rho* log(1/(2.4 delta)). expected: measured with the published settings by "
    "another implementation; ratio: ours over it.\nbest out: runs that ruled out the best arm, the first of equals. "
    "(95 %): exact intervals. stopped: runs that ended at their own\nstop, if a budget ended others; those count as "
    "not right and are not in the numbers beside. -: no run. median of all: with those, as more pulls than they had.\n"
    "stop: proved, or a heuristic. budget-exhausted, out of time: ended by the budget of pulls or of seconds.\n"
    "listed, wrong share: of answers by lists, arms on the first list, and the share of the worse list that is wrong."
)
NEEDS_THE_TRUTH = (
    *("oracle", "oracle_to_expected", "oracle_median_to_expected", "reached", "best_eliminated"),
    *("right", "wrong", "wrong_share", "reference", "own_to_reference", "rounds.done"),
)


def summary_json(results: Results) -> dict[str, Any]:
    """All cells with all numbers; the names of those that need the truth are listed."""
    cells = [
        {
            **encode(cell),
            "oracle_to_expected": cell.oracle_to_expected,
            "oracle_median_to_expected": cell.oracle_median_to_expected,
            "own_to_expected": cell.own_to_expected,
        }
        for cell in summarize(results)
    ]
    return {
        "needs_the_truth": list(NEEDS_THE_TRUTH),
        "notes": {name: experiment(name).note for name in results.experiments if _note(name)},
        "cells": cells,
        "published_procedures": [
            {"experiment": name, "environment": place, **encode(each)}
            for name, place in dict.fromkeys((cell["experiment"], cell["environment"]) for cell in cells)
            for each in procedures_for(name, place)
        ],
    }


def print_summary(results: Results) -> None:
    """For each experiment: own stop, oracle's stop, rounds; each table says which it is."""
    console = wide_console()
    cells = summarize(results)
    for name in results.experiments:
        mine = [cell for cell in cells if cell.experiment == name]
        title = experiment(name).title if name in experiment_names() else ""
        console.print()
        console.print(Text.assemble((name, "bold"), f"   {title}"))
        if _note(name):
            console.print(Text(_note(name), "yellow"))
        tables = {
            OWN: [own_row(cell) for cell in mine],
            ORACLE: [oracle_row(cell) for cell in mine if cell.reached is not None],
            ROUNDS: [row for cell in mine if cell.rounds for row in rounds_rows(cell)],
            OTHERS: published_rows(mine),
        }
        for heading, rows in tables.items():
            if rows:
                console.print(table_of(heading, rows))
        if name == RANKING:
            console.print(long_run_line(results))
        if name == QUESTIONS:
            done = [cell for cell in mine if cell.own is not None and not cell.cut and not cell.failures]
            for line in ratio_lines({(cell.environment, cell.policy): cell.own.mean for cell in done if cell.own}):
                console.print(line)
    console.print(LEGEND, style="dim")


def _note(name: str) -> str:
    return experiment(name).note if name in experiment_names() else ""


def own_row(cell: CellSummary) -> dict[str, str]:
    """What a user pays: column -> text."""
    stopped = 0 if cell.own is None else cell.own.count
    return {
        "environment": cell.environment,
        "policy": cell.policy,
        "delta": f"{cell.delta:g}",
        "right (95 %)": share_text(cell.right),
        "stop": _proof(cell.proved),
        "verdict": _verdicts(cell),
        "stopped": "" if stopped == cell.runs else f"{stopped} of {cell.runs}",
        **_spread(cell.own),
        "listed": number(cell.listed),
        "wrong share": "" if cell.wrong_share is None else f"{cell.wrong_share:.2%}",
        "median of all": _at_least(cell.median_of_all),
        "x reference": _ratio(cell.own_to_reference),
        "expected": number(cell.published.own),
        "ratio": _ratio(cell.own_to_expected),
        "seconds": "" if cell.seconds is None else f"{cell.seconds:.2f}",
    }


def oracle_row(cell: CellSummary) -> dict[str, str]:
    """The paper's metric, beside what was published: column -> text."""
    known, out = cell.published, cell.best_eliminated
    return {
        "environment": cell.environment,
        "policy": cell.policy,
        "delta": f"{cell.delta:g}",
        "reached (95 %)": share_text(cell.reached),
        "paper's success": "" if known.success is None else f"{known.success:.0%}",
        **_spread(cell.oracle),
        "paper's figure": known.figure,
        "expected": number(known.expected),
        "mean ratio": _ratio(cell.oracle_to_expected),
        "median ratio": _ratio(cell.oracle_median_to_expected),
        "best out": "" if out is None else f"{out.count}/{out.total}",
    }


def published_rows(cells: Sequence[CellSummary]) -> list[dict[str, str]]:
    """What procedures of others are published with on these environments: column -> text."""
    places = dict.fromkeys((cell.experiment, cell.environment) for cell in cells)
    return [
        {
            "environment": place,
            "procedure": each.name,
            "observations": number(each.total),
            "assumes": each.assumes,
            "promises": each.promises,
        }
        for experiment, place in places
        for each in procedures_for(experiment, place)
    ]


def long_run_line(results: Results) -> str:
    """How many answers of `ranking-and-selection` are right by the throughput too, in a sentence."""
    right, ended = right_in_the_long_run([each.replicate for each in results.played])
    return (
        f"right by the throughput of the exact chain too, within epsilon of the best one: {right} of {ended} own stops."
    )


def rounds_rows(cell: CellSummary) -> list[dict[str, str]]:
    """(d_k, s_k) of the cell, and in a second row the paper's where it has them: column -> text."""
    ours = [(row.mean_dim, row.done) for row in cell.rounds]
    several = [(cell.policy, ours), ("  (the paper's)", list(cell.published.rounds))]
    return [
        {"environment": cell.environment, "policy": name, "delta": f"{cell.delta:g}"}
        | {f"d_{k}, s_{k}": f"{dim:.4g}, {done:.0%}" for k, (dim, done) in enumerate(pairs, start=1)}
        for name, pairs in several
        if pairs
    ]


def filled(rows: Sequence[dict[str, str]]) -> tuple[list[str], list[list[str]]]:
    """The columns in which some row has a text, and the rows in them; "delta" only where it varies."""
    heads = [head for head in dict.fromkeys(head for row in rows for head in row) if any(row.get(head) for row in rows)]
    if len({row.get("delta") for row in rows}) == 1:
        heads = [head for head in heads if head != "delta"]
    return heads, [[row.get(head, "") for head in heads] for row in rows]


def wide_console() -> Console:
    """Standard output, as wide as the tables need."""
    console = Console(highlight=False, soft_wrap=True)
    console.width = max(console.width, WIDTH)
    return console


def table_of(title: str, rows: Sequence[dict[str, str]], *, style: str = "italic") -> Table:
    """Rows as a table, each environment named once."""
    table = Table(title=title, title_justify="left", title_style=style, box=box.SIMPLE_HEAD, pad_edge=False)
    heads, cells = filled(rows)
    for head in heads:
        table.add_column(head, justify="left" if head in TEXTS else "right", no_wrap=True)
    above = None
    for row in cells:
        table.add_row(*(Text(cell) for cell in ("" if row[0] == above else row[0], *row[1:])))
        above = row[0]
    return table


def _verdicts(cell: CellSummary) -> str:
    counts = dict(cell.verdicts)
    if late := cell.cut.get("seconds", 0):
        counts |= {"budget-exhausted": counts["budget-exhausted"] - late, "out of time": late}
    counts = {name: count for name, count in counts.items() if count} | (
        {"failed": cell.failures} if cell.failures else {}
    )
    return next(iter(counts)) if len(counts) == 1 else ", ".join(f"{count} {name}" for name, count in counts.items())


def share_text(share: Share | None) -> str:
    """49/50 (89%-100%); "" for None."""
    return "" if share is None else f"{share.count}/{share.total} ({share.low:.0%}-{share.high:.0%})"


def _spread(spread: Spread | None) -> dict[str, str]:
    if spread is None:
        return {"mean": "-", "median": "-", "quartiles": "-"}
    quartiles = f"{number(spread.lower)}-{number(spread.upper)}"
    return {"mean": number(spread.mean), "median": number(spread.median), "quartiles": quartiles}


def _proof(proved: Share | None) -> str:
    if proved is None:
        return ""
    if proved.count == proved.total:
        return "proved"
    return "heuristic" if proved.count == 0 else f"{proved.count} of {proved.total} proved"


def _at_least(bound: AtLeast | None) -> str:
    if bound is None:
        return ""
    return number(bound.pulls) if bound.exact else f"> {number(bound.pulls)}"


def number(value: float | None) -> str:
    """A number of pulls in at most five characters: 3,215, 60.2k, 2.88M; "" for None."""
    if value is None:
        return ""
    for unit, letter, least in ((1e6, "M", 999_500), (1e3, "k", 9_999.5)):
        if value >= least:
            return f"{value / unit:.3g}{letter}" if value < 999.5 * unit else f"{value / unit:,.0f}{letter}"
    return f"{value:,.0f}"


def _ratio(value: float | None) -> str:
    if value is None:
        return ""
    return number(value) if value >= 100 else f"{value:.3g}"
