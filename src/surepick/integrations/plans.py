"""Folders with a file for each candidate, for programs to read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from surepick.errors import InvalidInput


def sanitized(name: str) -> str:
    """A name in which a file can be stored."""
    return re.sub(r"[\"<>:/|\\?*\[\]\s]+", "__", name)


def files_of(candidates: Sequence[str], folder: Path) -> dict[str, Path]:
    """The file of each candidate."""
    return {name: folder / f"{sanitized(name)}.json" for name in candidates}


def check_folder(candidates: Sequence[str], folder: Path) -> None:
    """Refuse a folder in which a file for each candidate cannot be written.

    Raises:
        InvalidInput: it holds files or is none, or two candidates have one name as files.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInput(f"{folder} is there already, and is not an empty folder; give another name.")
    if len({sanitized(name).lower() for name in candidates}) < len(candidates):
        raise InvalidInput(
            "two candidates would have one file, since their names differ in / or : or capitals only; rename one, or "
            "ask and tell tables."
        )
