"""JSON answers on standard output, and the exit codes of all commands."""

from __future__ import annotations

import json
from typing import Any

import typer

DONE, FAILURE, BAD_INPUT, NOT_CERTIFIED = 0, 1, 2, 3


def print_json(answer: dict[str, Any]) -> None:
    """One JSON object on standard output."""
    typer.echo(json.dumps(answer, indent=2, ensure_ascii=False, allow_nan=False))
