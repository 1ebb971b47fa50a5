"""`surepick list`: the studies of a database, or of a server."""

from __future__ import annotations

from surepick.cli import options
from surepick.cli.open_study import UrlArgument
from surepick.cli.output import picked, print_json, print_table, say
from surepick.studies import opening
from surepick.studies.logs.leases import format_utc

HEADERS = ("study", "policy", "verdict", "candidates", "epsilon", "delta", "rounds", "measured")


def list_studies(url: UrlArgument, output: options.FormatOption = options.Format.text) -> None:
    """List the studies of a database."""
    found = opening.list_studies(url)
    if output is options.Format.json:
        same = ("name", "candidates", "policy", "epsilon", "delta", "rounds", "pulls", "verdict", "registration")
        more = [{"created": format_utc(one.created_at), "closed_early": one.ended} for one in found]
        print_json({"studies": [picked(one, *same) | added for one, added in zip(found, more, strict=True)]})
        return
    if not found:
        say("No studies yet; start one with surepick create.")
        return
    rows = []
    for one in found:
        verdict = "shortened" if one.shortens and one.verdict == "heuristic" else one.verdict
        verdict += ", closed early" if one.ended else ""
        promise = (f"{one.shortens or one.candidates:,}", f"{one.epsilon:g}", f"{one.delta:g}")
        rows.append((one.name, one.policy, verdict, *promise, f"{one.rounds:,}", f"{one.pulls:,}"))
    print_table(HEADERS, rows, left=HEADERS[:3])
