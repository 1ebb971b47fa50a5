"""JSON answers on standard output."""

from __future__ import annotations

import json
from typing import Any

import typer


def print_json(answer: dict[str, Any]) -> None:
    """One JSON object on standard output."""
    typer.echo(json.dumps(answer, indent=2, ensure_ascii=False, allow_nan=False))
