"""What stands in a file: its bytes, or its text. Only regular files are read; each kind of bad one has its words."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from surepick.core.files import read_regular
from surepick.errors import InvalidInput, SurepickError

STOPS = (KeyboardInterrupt, SystemExit, GeneratorExit)


def file_bytes(path: Path) -> bytes:
    """The bytes of a regular file; those of a *.gz file unpacked.

    Raises:
        InvalidInput: it is missing, unreadable, no regular file, or no complete gzip file.
    """
    content = read_regular(path)
    if path.suffix.lower() == ".gz":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise InvalidInput(f"{path} is not a complete gzip file: {error}. Obtain it again.") from error
    return content


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
