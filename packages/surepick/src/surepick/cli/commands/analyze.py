"""`surepick analyze`: a verdict on a finished table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer import Argument

from surepick.analysis.continued import continue_analysis
from surepick.analysis.finished import analyze as analyzed, check_analysis
from surepick.cli import options
from surepick.cli.open_study import VARIABLE, command_line, given_database
from surepick.cli.options import Reading, opt
from surepick.cli.output import FAILURE, print_either, say
from surepick.cli.policy_options import named_items
from surepick.errors import InvalidInput
from surepick.noise import parse_noise


def analyze(
    source: Annotated[
        list[str],
        Argument(metavar="TABLE", help="A table; or results of lm-eval, inspect_ai, promptfoo, every-eval-ever."),
    ],
    *,
    id_columns: str | None = opt('Column(s) that name a candidate, "n,theta".', flag="--id"),
    reward: str | None = options.REWARD,
    item: str | None = opt("The column of the test item, block or task, which all candidates have in common."),
    across: str | None = opt('The columns that are candidates, "a,b" or all, and rows items; rows: the other way.'),
    order: str | None = opt("The column of when a row was measured; none: orders of rows are drawn."),
    pulls: str | None = options.PULLS,
    sum_column: str | None = options.SUM,
    squares: str | None = opt("With them: the column of the sum of squares, of normal noise."),
    control: str | None = opt("A candidate: who is better, and who is worse?", metavar="ID"),
    top: int | None = opt("Who is among the so many best, and who is not?", min=1),
    tiers: Literal["all", "fdr"] = opt(
        "All claims of the tiers hold, or of those that they make a share of at most delta is wrong on average.",
        default="all",
    ),
    minimize: bool | None = opt("Are small measurements good, or large ones?", flag="--minimize/--maximize"),
    noise: str = opt(
        "bernoulli, bounded:LOW:HIGH, normal, subgaussian:SCALE; none: 0 to 1 if all lie there, else normal.",
        default="",
    ),
    metric: str | None = opt("Of results of a program: the score that counts; none: the first."),
    filter_name: str | None = opt("Of lm-eval: which of its filters; none: the first.", flag="--filter"),
    delta: options.DeltaOption = 0.05,
    seed: int | None = opt("Of the orders of rows; none: drawn, and stored.", min=0),
    reading: Reading,
    out: Path | None = opt("Write the result to this JSON file.", metavar="FILE"),
    go_on: tuple[str, str] | None = opt(
        f"Make a study of it, which begins with its rows; without --epsilon, use rows left. URL -: {VARIABLE}.",
        metavar="URL NAME",
        flag="--continue",
    ),
    epsilon: float | None = opt(f"With --continue: {options.EPSILON}"),
    items: str | None = opt("With --continue: all items of one finite set, those of the table among them.", "TABLE"),
    check: Path | None = opt("Compute this result again, and say what differs.", metavar="FILE"),
    output: options.FormatOption = options.Format.text,
) -> None:
    """Judge a finished table: the best, who may still be the best, tiers.

    For data that exist, by a plan that did not look at values: repeats of candidates, or items that all have in common
    (--item). Columns that are unmistakable need not be named. Nothing is drawn again, as `run` does.
    """
    table = source[0] if len(source) == 1 else source
    if check is not None:
        differing = check_analysis(check, table)
        print_either(output, {"differs": differing}, f"Differs: {', '.join(differing)}." if differing else "As stored.")
        if differing:
            raise typer.Exit(FAILURE)
        return
    given: dict[str, Any] = {"reward": reward, "item": item, "across": across, "order": order, "pulls": pulls}
    given |= {name: value for name, value in reading.options.items() if value not in (None, False)}
    found = analyzed(
        table,
        id=id_columns,
        sum=sum_column,
        squares=squares,
        control=control,
        top=top,
        tiers=tiers,
        noise=parse_noise(noise) if noise else None,
        delta=delta,
        minimize=minimize,
        metric=metric,
        filter=filter_name,
        seed=seed,
        **given,
    )
    if out is not None:
        found.write(out)
    document, lines = found.to_dict(), found.lines()
    if go_on is not None:
        url, name = given_database(go_on[0]), go_on[1]
        study = continue_analysis(found, table, url, name, epsilon=epsilon, items=_names(items))
        document = {"analysis": document, "study": study.to_dict()}
        lines += ["", f"Study {name!r}: {study}"]
        lines += [f"Registration code: {study.study.registration}. Keep it outside of the database."]
        lines += [] if study.study.stopped else [f"Next: {command_line('ask', url, name)}"]
    elif epsilon is not None or items is not None:
        raise InvalidInput("--epsilon and --items are of a study that goes on: name it with --continue URL NAME.")
    print_either(output, document, *lines)
    if out is not None and output is options.Format.text:
        say(f"Written to {out}. `surepick analyze {' '.join(source)} --check {out}` computes it again.")


def _names(given: str | None) -> list[str] | None:
    """The items that --items names."""
    found = None if given is None else named_items(given)
    return list(map(str, range(1, found + 1))) if isinstance(found, int) else found
