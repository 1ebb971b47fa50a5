"""Files written whole or not at all: beside the target, then renamed over it."""

from __future__ import annotations

from pathlib import Path

from surepick.errors import InvalidInput


def write_whole(path: str | Path, content: bytes) -> None:
    """Write a file; whoever looks at any moment finds the old content or the new one.

    Args:
        path: where to.
        content: all of it.

    Raises:
        InvalidInput: it cannot be written; what was there before is untouched.
    """
    target = Path(path)
    part = target.with_name(target.name + ".part")
    try:
        part.write_bytes(content)
        part.replace(target)
    except OSError as error:
        raise InvalidInput(f"{target} cannot be written: {error.strerror}.") from error
