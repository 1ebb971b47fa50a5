"""Files that are looked at: a name may be too long for any disk, and a path may lead to a device that never ends."""

from __future__ import annotations

import stat
from pathlib import Path

from surepick.errors import InvalidInput


def is_file(path: Path) -> bool:
    """Whether there is a file; False too where no file can be: a name of 300 characters, one with a zero byte."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def is_folder(path: Path) -> bool:
    """Whether there is a folder; False too where none can be."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def read_regular(path: Path, most: int) -> bytes:
    """All of a file on a disk.

    Args:
        path: what is read.
        most: its largest size in bytes; a larger file is not begun.

    Raises:
        InvalidInput: it cannot be read, is a folder, a pipe or a device, or is larger.
    """
    try:
        found = path.stat()
        if stat.S_ISDIR(found.st_mode):
            raise InvalidInput(f"{path} is a folder; give a file.")
        if not stat.S_ISREG(found.st_mode):
            raise InvalidInput(f"{path} is a pipe or a device, which may never end; give a file on a disk.")
        if found.st_size > most:
            raise InvalidInput(f"{path} has {found.st_size:,} bytes, and at most {most:,} are read.")
        return path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}.") from error
    except UnicodeError as error:
        raise InvalidInput(f"{path} is not the name of a file: it holds half of a character.") from error
    except ValueError as error:  # what Path says of a zero byte
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{path} is not the name of a file: {error}.") from error
