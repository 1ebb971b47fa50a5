"""How far the cells of an old workbook (.xls) reach, found without laying them out.

Such a file is a compound file: sectors, a table that chains them, and names of streams. Its workbook has records of
a number, a length and so many bytes; a cell begins with its row and its column.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

ENDS = 0xFFFFFFFA  # and beyond: no sector
HEADER_ENTRIES = 109  # sectors of the table that the header names itself
CELLS = frozenset({0x02, 0x03, 0x04, 0x05, 0x06, 0xBD, 0xD6, 0xFD, 0x203, 0x204, 0x205, 0x206, 0x207, 0x27E, 0x406})
SEVERAL = 0xBD  # cells side by side: the last two bytes are the last column
STREAMS = ("Workbook", "Book")


def cells_reach(content: bytes) -> tuple[int, int]:
    """(rows, columns) between the first and the last filled cell of any sheet; (0, 0) where there are none.

    Raises:
        ValueError, IndexError, struct.error: it is no such file.
    """
    rows: set[int] = set()
    columns: set[int] = set()
    for number, record in _records(_workbook(content)):
        if number in CELLS and len(record) >= 4:
            row, column = struct.unpack_from("<HH", record)
            rows.add(row)
            columns.add(column)
            if number == SEVERAL:
                columns.add(struct.unpack_from("<H", record, len(record) - 2)[0])
    return (max(rows) - min(rows) + 1, max(columns) - min(columns) + 1) if rows else (0, 0)


def _records(stream: bytes) -> Iterator[tuple[int, bytes]]:
    place = 0
    while place + 4 <= len(stream):
        number, length = struct.unpack_from("<HH", stream, place)
        yield number, stream[place + 4 : place + 4 + length]
        place += 4 + length


def _workbook(content: bytes) -> bytes:
    """The stream with the workbook."""
    shift, small_shift = struct.unpack_from("<HH", content, 30)
    if not 7 <= shift <= 16 or not 2 <= small_shift <= shift:
        raise ValueError(f"its sectors have 2^{shift} bytes")
    size = 1 << shift
    first, _, cutoff, small_start, _, more, _ = struct.unpack_from("<IIIIIII", content, 48)
    tables = list(struct.unpack_from(f"<{HEADER_ENTRIES}I", content, 76))
    seen: set[int] = set()
    while more < ENDS and more not in seen:
        seen.add(more)
        *entries, more = _numbers(_sector(content, more, size))
        tables += entries
    table = [entry for place in tables if place < ENDS for entry in _numbers(_sector(content, place, size))]

    def stream(start: int, length: int) -> bytes:
        return b"".join(_sector(content, place, size) for place in _chain(table, start))[:length]

    names = {}
    listed = stream(first, len(content))
    for place in range(0, len(listed) - 127, 128):
        entry = listed[place : place + 128]
        length = struct.unpack_from("<H", entry, 64)[0]
        names[entry[: max(length - 2, 0)].decode("utf-16-le", errors="replace")] = struct.unpack_from("<II", entry, 116)
    found = next((names[name] for name in STREAMS if name in names), None)
    if found is None:
        raise ValueError("it has no workbook")
    if found[1] >= cutoff:
        return stream(*found)
    small_table, small = _numbers(stream(small_start, len(content))), stream(*struct.unpack_from("<II", listed, 116))
    step = 1 << small_shift
    return b"".join(small[place * step : (place + 1) * step] for place in _chain(small_table, found[0]))[: found[1]]


def _sector(content: bytes, place: int, size: int) -> bytes:
    return content[(place + 1) * size : (place + 2) * size]


def _numbers(sector: bytes) -> list[int]:
    return list(struct.unpack(f"<{len(sector) // 4}I", sector[: len(sector) // 4 * 4]))


def _chain(table: Sequence[int], start: int) -> Iterator[int]:
    seen: set[int] = set()
    while start < ENDS and start not in seen:
        seen.add(start)
        yield start
        start = table[start]
