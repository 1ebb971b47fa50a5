"""Templates as all pages of surepick have them: nothing is unescaped or undefined, and numbers are written alike."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from surepick.studies.progress import confidence_of, times
from surepick.text import about, money, percent

if TYPE_CHECKING:
    from jinja2 import Environment


def environment_of(folder: Path) -> Environment:
    """The templates of a folder."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 (an extra)

    found = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.filters |= {
        "about": about,
        "confidence": lambda delta: percent(confidence_of(delta)),
        "money": money,
        "percent": percent,
        "times": times,
    }
    return found
