"""What stands in a file: its bytes, or its text. Only regular files are read; each kind of bad one has its words."""

from __future__ import annotations

import gzip
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from surepick.errors import InvalidInput, SurepickError

STOPS = (KeyboardInterrupt, SystemExit, GeneratorExit)


def check_regular(path: Path) -> None:
    """Refuse what is not a regular file: a device or a pipe has no end that could be waited for.

    Raises:
        InvalidInput: it is missing, cannot be looked at, or is no regular file.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise InvalidInput(f"there is no file {path}; check the path (it is relative to {Path.cwd()}).") from None
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    if stat.S_ISDIR(mode):
        raise InvalidInput(f"{path} is a folder; give a file.")
    if not stat.S_ISREG(mode):
        raise InvalidInput(f"{path} is not a regular file (it is a device, a pipe or a socket); give a file on a disk.")


def file_bytes(path: Path) -> bytes:
    """The bytes of a regular file; those of a *.gz file unpacked.

    Raises:
        InvalidInput: it is missing, unreadable, no regular file, or no complete gzip file.
    """
    check_regular(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error
    if path.suffix.lower() == ".gz":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise InvalidInput(f"{path} is not a complete gzip file: {error}. Obtain it again.") from error
    return content


def _unreadable(path: Path, error: OSError | ValueError) -> InvalidInput:
    return InvalidInput(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.")


def file_text(path: Path) -> str:
    """The text of a file in UTF-8, without a byte-order mark.

    Raises:
        InvalidInput: as `file_bytes`, or it is not UTF-8, holds zero bytes, or is empty.
    """
    content = file_bytes(path)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidInput(
            f"{path} is not UTF-8 text: byte 0x{content[error.start]:02x} in line {line}. Save the table as UTF-8 "
            "(spreadsheets call it CSV UTF-8)."
        ) from error
    if "\0" in text:
        raise InvalidInput(f"{path} is not text (it holds zero bytes); a table is CSV, Parquet or JSON lines.")
    if not text.strip():
        raise InvalidInput(f"{path} is empty; a table needs a header and at least one row.")
    return text


@contextmanager
def readable(path: str | Path, kind: str) -> Iterator[None]:
    """Whatever another package raises over a damaged file as one InvalidInput: which errors these are depends on the
    byte that is wrong, and panics of packages in Rust are not even an Exception.

    Raises:
        InvalidInput: the block raised; errors of our own pass as they are.
    """
    try:
        yield
    except (SurepickError, *STOPS):
        raise
    except BaseException as error:
        reason = " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__
        raise InvalidInput(f"{path} is not a readable {kind} file: {reason}. Obtain or write it again.") from error
