"""What stands in a file: its bytes, or its text. Only regular files are read; each kind of bad one has its words."""

import codecs
import gzip
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from surepick.core.files import read_regular
from surepick.errors import InvalidInput, SurepickError
from surepick.tables.table import warn

# --- What a file is by its first bytes, whatever its name says.

LOOKED_AT = 1024  # bytes
SAVE = "Save the table as CSV (UTF-8)"


KINDS = (  # name by which callers say that they read it, a pattern of its first bytes, what it is and what to do
    ("lfs", rb"version https://git-lfs", "a pointer of Git LFS, not the file itself. Fetch it: git lfs pull"),
    (
        "page",
        rb"(?i)\s*<(!doctype|html|head|body|table|div|script|meta|!--)|MIME-Version:",
        "a web page, not the table itself (one to sign in, or to see the file?). Download the file, or save it as CSV",
    ),
    ("xml", rb"\s*<\?xml", f"an XML document. {SAVE}"),
    ("zip", rb"PK\x03\x04", "a workbook or another zip archive. A workbook's name ends in .xlsx, .xlsb or .ods"),
    ("ole", rb"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old workbook. Let its name end in .xls"),
    ("gzip", rb"\x1f\x8b\x08", "packed by gzip. Let its name end in .gz"),
    (
        "packed",
        rb"BZh[1-9]1AY|\xfd7zXZ\0|\x28\xb5\x2f\xfd|7z\xbc\xaf\x27\x1c|Rar!\x1a\x07",
        "a packed file. Unpack it first",
    ),
    ("parquet", rb"PAR1[\0-\x1f]", "a Parquet file. Let its name end in .parquet"),
    ("arrow", rb"ARROW1\0|FEA1[\0-\x1f]", "an Arrow file. Let its name end in .arrow"),
    ("pdf", rb"%PDF-|%!PS", f"a document for printing (PDF). {SAVE}"),
    ("text", rb"\{\\rtf", f"a text of a word processor. {SAVE}"),
    ("picture", rb"\x89PNG|\xff\xd8\xff|GIF8[79]a", f"a picture. {SAVE}"),
    ("numpy", rb"\x93NUMPY", "an array of numpy. Let its name end in .npy, or write it as CSV"),
    ("database", rb"SQLite format 3", "a SQLite database. Export the table as CSV"),
    ("hdf", rb"\x89HDF", "an HDF5 file. Write the table as CSV or Parquet"),
    ("pickle", rb"\x80[\x02-\x05][\x95c\x8c}\]K(]", "a pickled object. Write the table as CSV or Parquet"),
)


def refuse_foreign(path: str | Path, content: bytes, *reads: str) -> None:
    """Refuse a file that its first bytes show to be of another kind than its name says."""
    first = content[:LOOKED_AT].removeprefix(b"\xef\xbb\xbf")
    for name, starts, words in KINDS:
        if name not in reads and re.match(starts, first, re.DOTALL):
            raise InvalidInput(f"{path} is {words}.")


STOPS = (KeyboardInterrupt, SystemExit, GeneratorExit)


UNICODE = {  # by byte-order mark; that of UTF-16 begins that of UTF-32
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}
END_OF_FILE = re.compile(r"\x1a[\x1a\0\s]*\Z")  # of DOS


def file_bytes(path: Path, *reads: str) -> bytes:
    """The bytes of a regular file; those of a *.gz file unpacked."""
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
    """The text of a file, as in `decoded`, without the mark of DOS for the end of a file."""
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
    """A text in UTF-8, or, with a warning, in UTF-16 or UTF-32 with a byte-order mark; without that mark."""
    for mark, name in UNICODE.items():
        if content.startswith(mark):
            text = content.decode(name)
            warn(f"{path}: we read {name}, which its first bytes show.")
            return text.lstrip("\ufeff")
    return content.decode("utf-8").lstrip("\ufeff")


@contextmanager
def readable(path: str | Path, kind: str) -> Iterator[None]:
    """Whatever another package raises over a damaged file, panics of Rust among it, as one InvalidInput."""
    try:
        yield
    except (SurepickError, *STOPS):
        raise
    except BaseException as error:
        reason = " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__
        raise InvalidInput(f"{path} is not a readable {kind} file: {reason}. Obtain or write it again.") from error


# --- Texts that a spreadsheet would take for formulas, made harmless in CSV files and read back as they were.
#
# A cell that begins with = + - @ (also as wide letters), a tab, a carriage return or a line feed is computed where the
# file is opened in a spreadsheet. Such a text is written with an apostrophe in front, by which spreadsheets know a
# text. A text that already begins with apostrophes and one of these gets one more, so that no two texts are written
# alike. What stands behind a semicolon, a tab, a bar or a line break begins a cell for spreadsheets that split there,
# and is treated alike.

BEGINS = r"(?:^|(?<=[;|\t\r\n]))"  # of a cell, wherever a spreadsheet splits
FORMULA = r"(?='*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20])"
TO_ESCAPE, ESCAPED = re.compile(BEGINS + FORMULA), re.compile(f"{BEGINS}'{FORMULA}")


def escaped(text: str) -> str:
    """The text as a cell that no spreadsheet computes; `unescaped` gives it back."""
    return TO_ESCAPE.sub("'", text)


def unescaped(cell: str) -> str:
    """The text of a cell: apostrophes that could be those of `escaped` are taken away."""
    return ESCAPED.sub("", cell)
