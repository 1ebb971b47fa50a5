"""What a file is by its first bytes, whatever its name says."""

from __future__ import annotations

import re
from pathlib import Path

from surepick.core.arrays import record
from surepick.errors import InvalidInput

LOOKED_AT = 1024  # bytes
SAVE = "Save the table as CSV (UTF-8)"


@record
class Kind:
    """A kind of file that is no table in text.

    Args:
        name: by which callers say that they read it.
        starts: its first bytes, a pattern.
        words: what it is, and what to do.
    """

    name: str
    starts: re.Pattern[bytes]
    words: str


def _kind(name: str, starts: bytes, words: str) -> Kind:
    return Kind(name, re.compile(starts, re.DOTALL | re.IGNORECASE if name == "page" else re.DOTALL), words)


KINDS = (
    _kind("lfs", rb"version https://git-lfs", "a pointer of Git LFS, not the file itself. Fetch it: git lfs pull"),
    _kind(
        "page",
        rb"\s*<(!doctype|html|head|body|table|div|script|meta|!--)|MIME-Version:",
        "a web page, not the table itself (one to sign in, or to see the file?). Download the file, or save it as CSV",
    ),
    _kind("xml", rb"\s*<\?xml", f"an XML document. {SAVE}"),
    _kind("zip", rb"PK\x03\x04", "a workbook or another zip archive. A workbook's name ends in .xlsx, .xlsb or .ods"),
    _kind("ole", rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old workbook. Let its name end in .xls"),
    _kind("gzip", rb"\x1f\x8b\x08", "packed by gzip. Let its name end in .gz"),
    _kind(
        "packed",
        rb"BZh[1-9]1AY|\xfd7zXZ\0|\x28\xb5\x2f\xfd|7z\xbc\xaf\x27\x1c|Rar!\x1a\x07",
        "a packed file. Unpack it first",
    ),
    _kind("parquet", rb"PAR1[\0-\x1f]", "a Parquet file. Let its name end in .parquet"),
    _kind("arrow", rb"ARROW1\0|FEA1[\0-\x1f]", "an Arrow file. Let its name end in .arrow"),
    _kind("pdf", rb"%PDF-|%!PS", f"a document for printing (PDF). {SAVE}"),
    _kind("text", rb"\{\\rtf", f"a text of a word processor. {SAVE}"),
    _kind("picture", rb"\x89PNG|\xff\xd8\xff|GIF8[79]a", f"a picture. {SAVE}"),
    _kind("numpy", rb"\x93NUMPY", "an array of numpy. Let its name end in .npy, or write it as CSV"),
    _kind("database", rb"SQLite format 3", "a SQLite database. Export the table as CSV"),
    _kind("hdf", rb"\x89HDF", "an HDF5 file. Write the table as CSV or Parquet"),
    _kind("pickle", rb"\x80[\x02-\x05][\x95c\x8c}\]K(]", "a pickled object. Write the table as CSV or Parquet"),
)


def refuse_foreign(path: str | Path, content: bytes, *reads: str) -> None:
    """Refuse a file that its first bytes show to be of another kind than its name says.

    Args:
        path: for the message.
        content: the file, or its first bytes.
        reads: names of kinds that the caller reads.

    Raises:
        InvalidInput: it is of another kind.
    """
    first = content[:LOOKED_AT].removeprefix(b"\xef\xbb\xbf")
    for kind in KINDS:
        if kind.name not in reads and kind.starts.match(first):
            raise InvalidInput(f"{path} is {kind.words}.")
