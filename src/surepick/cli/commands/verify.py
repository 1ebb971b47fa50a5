"""`surepick verify`: a certificate checked by somebody else, on another machine, without the database."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from surepick.certificates.lines import Line
from surepick.certificates.verify import Verification, read_certificate, verify_certificate
from surepick.cli import options
from surepick.cli.output import NOT_CERTIFIED, Text, print_json
from surepick.cli.table_options import given_options, reads_tables
from surepick.errors import InvalidInput
from surepick.studies.registration import read_code
from surepick.tables import ReadOptions, read_arms
from surepick.text import printable


@reads_tables
def verify(
    file: Annotated[
        Path,
        typer.Argument(metavar="CERTIFICATE", help="A JSON file that surepick certificate wrote.", show_default=False),
    ],
    arms: Annotated[
        str | None,
        typer.Option(
            "--arms", metavar="TABLE", help="The candidates, where they are too many to be in the file (over 10,000)."
        ),
    ] = None,
    id_column: options.IdOption = None,
    features: options.FeaturesOption = None,
    registered: Annotated[
        str | None,
        typer.Option(
            "--registered",
            metavar="CODE",
            help="The registration code that surepick create gave; any other promise, policy or candidate is refused.",
        ),
    ] = None,
    public_key: Annotated[
        Path | None,
        typer.Option(
            "--public-key", metavar="FILE", help="The Ed25519 key that must have signed it, in PEM or from OpenSSH."
        ),
    ] = None,
    *,
    reading: ReadOptions,
    every_plan: Annotated[
        bool,
        typer.Option("--every-plan", help="Compute every plan again, however long the designs take."),
    ] = False,
    output: options.FormatOption = options.Format.text,
) -> None:
    """Compute every number of a certificate again, from what was measured. Exit code 3 unless all of it holds."""
    document = read_certificate(file)
    candidates = None
    if arms is not None:
        prepared = document.get("arms")
        steps = prepared.get("preparation") if isinstance(prepared, dict) else None
        steps = steps if isinstance(steps, list) else []
        candidates = read_arms(
            arms,
            id_column,
            features,
            standardize="standardize" in steps,
            intercept="intercept" in steps,
            **reading,
        )
    elif id_column is not None or features is not None or given_options(reading):
        raise InvalidInput(
            "--id, --features, --sheet, --percent and --drop-missing say how to read the table of --arms, which is not "
            "given."
        )
    result = verify_certificate(
        document,
        arms=candidates,
        most_plans=sys.maxsize if every_plan else None,
        registered=registered,
        public_key=public_key,
    )
    if output is options.Format.json:
        print_json(
            {
                "file": str(file),
                "holds": result.holds,
                "verdict": result.verdict,
                "registration": result.registration,
                "registered": None if registered is None else read_code(registered),
                "unchecked": list(result.unchecked),
                "lines": [{"what": line.what, "holds": line.holds, "words": line.words} for line in result.lines],
            }
        )
    else:
        _print(document, result)
    if not result.holds:
        raise typer.Exit(NOT_CERTIFIED)


def _print(document: dict[str, object], result: Verification) -> None:
    console = Console(highlight=False, soft_wrap=True)
    lines = _shortened(result.lines)
    width = max(len(line.what) for line in lines)
    for line in lines:
        mark = ("holds  ", "green") if line.holds else ("FAILS  ", "bold red")
        console.print(Text.assemble(mark, (line.what.ljust(width), "bold"), f"  {line.words}"))
    failed = sum(not line.holds for line in result.lines)
    if failed:
        said = "one line does not hold" if failed == 1 else f"{failed} lines do not hold"
        console.print(Text(f"Do not rely on this file: {said}."))
    elif document["pulls"] == 0 and result.verdict == "not-yet":
        console.print(Text("All of it holds. No round is complete, so there is no answer yet."))
    else:
        promised = f"All of it holds: {document['best_arm']}, {result.verdict}. {document['promise']}"
        console.print(Text(printable(promised)))
    for sentence in result.unchecked:
        console.print(Text(sentence))


def _shortened(lines: tuple[Line, ...]) -> list[Line]:
    """The lines, but rounds that hold in one."""
    rounds = [line for line in lines if line.what.startswith("round ") and line.holds]
    if len(rounds) < 2:
        return list(lines)
    first, last = (line.what.removeprefix("round ") for line in (rounds[0], rounds[-1]))
    whole = Line(f"rounds {first} to {last}", True, f"as computed; the last took {rounds[-1].words}")
    shown = [line for line in lines if line not in rounds]
    shown.insert(lines.index(rounds[0]), whole)
    return shown
