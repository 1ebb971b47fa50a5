"""`surepick verify`: a certificate checked by somebody else, on another machine, without the database."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from surepick.certificates.lines import Line
from surepick.certificates.verify import Verification, read_certificate, verify_certificate
from surepick.cli import options
from surepick.cli.output import NOT_CERTIFIED, picked, print_json, say
from surepick.core.arms import Arms
from surepick.core.certificate import Listed
from surepick.core.json import from_json
from surepick.errors import InvalidInput
from surepick.studies.registration import read_code
from surepick.tables import Names, read_arms


def verify(
    file: Annotated[Path, Argument(metavar="CERTIFICATE", help="A certificate in JSON.", show_default=False)],
    *,
    arms: Annotated[
        str | None,
        Option(
            metavar="TABLE",
            help="The candidates, if the file has none (over 10,000); or the folder of the list from which they were "
            "selected.",
        ),
    ] = None,
    id_column: options.IdOption = None,
    features: options.FeaturesOption = None,
    cost: options.CostOption = None,
    segments: options.SegmentsOption = None,
    registered: Annotated[
        str | None, Option(metavar="CODE", help="The registration code of surepick create; refuse any other study.")
    ] = None,
    public_key: Annotated[
        Path | None, Option(metavar="FILE", help="The Ed25519 key that must have signed it, in PEM or from OpenSSH.")
    ] = None,
    reading: options.Reading,
    every_plan: Annotated[bool, Option("--every-plan", help="Compute every plan again, even for hours.")] = False,
    output: options.FormatOption = options.Format.text,
) -> None:
    """Compute every number of a certificate again, from its measurements.

    Exit code 3 unless all of it holds.
    """
    document = read_certificate(file)
    candidates, long_list = None, None
    if arms is not None and _was_selected(document):
        long_list = read_arms(arms, id_column, features, blocks=True)
    elif arms is not None:
        candidates = _prepared_arms(arms, id_column, features, cost, segments, reading, document)
    elif any(column is not None for column in (id_column, features, cost, segments)) or options.given(reading):
        raise InvalidInput(
            "--id, --features, --cost, --segments, --sheet, --percent and --drop-missing say how to read the table of "
            "--arms, which is not given."
        )
    result = verify_certificate(
        document,
        arms=candidates,
        most_plans=sys.maxsize if every_plan else None,
        registered=registered,
        public_key=public_key,
        long_list=long_list,
    )
    if output is options.Format.json:
        code = None if registered is None else read_code(registered)
        lines = [picked(line, "what", "holds", "words") for line in result.lines]
        found = picked(result, "holds", "verdict", "registration", "unchecked")
        print_json({"file": str(file), **found, "registered": code, "lines": lines})
    else:
        _print(document, result)
    if not result.holds:
        raise typer.Exit(NOT_CERTIFIED)


def _was_selected(document: dict[str, Any]) -> bool:
    """Whether the candidates are those left of a list too long for memory."""
    described = document.get("policy")
    return isinstance(described, dict) and "selected" in described


def _prepared_arms(
    source: str,
    id_column: str | None,
    features: str | None,
    cost: str | None,
    segments: str | None,
    reading: options.Reading,
    document: dict[str, Any],
) -> Arms:
    """The candidates of the table, prepared as the certificate says."""
    described = document.get("arms")
    steps = described.get("preparation") if isinstance(described, dict) else None
    steps = steps if isinstance(steps, list) else []
    standardize, intercept = "standardize" in steps, "intercept" in steps
    prepare: dict[str, Any] = {"cost": cost, "segments": segments, "standardize": standardize, "intercept": intercept}
    named: Names | None = features
    columns = described.get("columns") if isinstance(described, dict) else None
    if features is None and not columns:
        named = ()  # the certificate's candidates have no features
    return read_arms(source, id_column, named, **prepare, **reading.options)


def _print(document: dict[str, Any], result: Verification) -> None:
    lines = _shortened(result.lines)
    width = max(len(line.what) for line in lines)
    for line in lines:
        mark = ("holds  ", "green") if line.holds else ("FAILS  ", "bold red")
        say(mark, (line.what.ljust(width), "bold"), f"  {line.words}")
    failed = sum(not line.holds for line in result.lines)
    if failed:
        lines_fail = "one line does not hold" if failed == 1 else f"{failed} lines do not hold"
        say(f"Do not rely on this file: {lines_fail}.")
    elif document["pulls"] == 0 and result.verdict == "not-yet":
        say("All of it holds. No round is complete, so there is no answer yet.")
    else:
        lists = document.get("lists")
        answer = document["best_arm"] if lists is None else from_json(Listed, json.dumps(lists)).headline
        say(f"All of it holds: {answer}, {result.verdict}. {document['promise']}")
    for sentence in result.unchecked:
        say(sentence)


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
