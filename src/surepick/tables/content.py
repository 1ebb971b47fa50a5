"""What stands in a file: its bytes, or its text. Only regular files are read; each kind of bad one has its words."""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from surepick.core.files import read_regular
from surepick.errors import InvalidInput, SurepickError
from surepick.tables.kinds import refuse_foreign
from surepick.tables.table import warn

STOPS = (KeyboardInterrupt, SystemExit, GeneratorExit)


UNICODE = {  # by byte-order mark; that of UTF-16 begins that of UTF-32
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
END_OF_FILE = re.compile(r"\x1a[\x1a\0\s]*\Z")  # of DOS


def file_bytes(path: Path, *reads: str) -> bytes:
    """The bytes of a regular file; those of a *.gz file unpacked.

    Args:
        path: the file.
        reads: what it may be by its first bytes, beside text: kinds of `kinds.KINDS`.

    Raises:
        InvalidInput: it is missing, unreadable, no regular file, no complete gzip file, or of another kind.
    """
    content = read_regular(path)
    if path.suffix.lower() == ".gz":
        refuse_foreign(path, content, "gzip")
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise InvalidInput(f"{path} is not a complete gzip file: {error}. Obtain it again.") from error
    refuse_foreign(path, content, *reads)
    return content


def file_text(path: Path) -> str:
    """The text of a file in UTF-8, or in UTF-16 or UTF-32 with a byte-order mark; without that mark, and without the
    mark of DOS for the end of a file.

    Raises:
        InvalidInput: as `file_bytes`, or it is not such text, holds zero bytes, or is empty.

    Warns:
        TableWarning: it is not UTF-8.
    """
    content = file_bytes(path)
    try:
        text = decoded(path, content)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidInput(
            f"{path} is not {error.encoding.upper()} text: byte 0x{content[error.start]:02x} in line {line}. Save the "
            "table as UTF-8 (spreadsheets call it CSV UTF-8)."
        ) from error
    text = END_OF_FILE.sub("", text)
    if "\0" in text:
        if content.count(0) > len(content) // 4:
            raise InvalidInput(f"{path} looks like UTF-16 without a byte-order mark. Save the table as UTF-8.")
        raise InvalidInput(f"{path} is not text (it holds zero bytes); a table is CSV, Parquet or JSON lines.")
    if not text.strip():
        raise InvalidInput(f"{path} is empty; a table needs a header and at least one row.")
    return text


def decoded(path: Path | str, content: bytes) -> str:
    """A text in UTF-8, or in UTF-16 or UTF-32 with a byte-order mark; without that mark.

    Raises:
        UnicodeDecodeError: it is none.

    Warns:
        TableWarning: it is not UTF-8.
    """
    for mark, name in UNICODE.items():
        if content.startswith(mark):
            text = content.decode(name)
            warn(f"{path}: we read {name}, which its first bytes show.")
            return text.lstrip("\ufeff")
    return content.decode("utf-8").lstrip("\ufeff")


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
