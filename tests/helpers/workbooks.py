"""Small spreadsheets written by hand, and tables as a spreadsheet shows them, without a package for it."""

import csv
import re
import struct
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
KIND = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
HIDDEN = ' state="hidden"'
ODS = "application/vnd.oasis.opendocument.spreadsheet"
ODS_NAMES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text")
)


def write_xlsx(
    path: Path,
    sheets: dict[str, list[list]],
    *,
    cells: dict[str, object] | None = None,
    merged: str = "",
    hidden: tuple[str, ...] = (),
) -> Path:
    """A workbook; a cell is a number, a text, True or False, an error such as "#DIV/0!", or None.

    Args:
        sheets: name -> rows, from A1 on.
        cells: more cells of the first sheet, by their place ("XFD1048576").
        merged: cells of each sheet that are one ("A2:A3").
        hidden: names of sheets that are hidden.
    """
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="xml" '
        f'ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="{KIND}"/></Types>',
        "_rels/.rels": _relations({"rId1": (f"{OFFICE}/officeDocument", "xl/workbook.xml")}),
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>'
        + "".join(
            f'<sheet name={quoteattr(name)} sheetId="{n}" r:id="rId{n}"{HIDDEN * (name in hidden)}/>'
            for n, name in enumerate(sheets, start=1)
        )
        + "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": _relations(
            {f"rId{n}": (f"{OFFICE}/worksheet", f"worksheets/sheet{n}.xml") for n in range(1, len(sheets) + 1)}
        ),
    }
    joined = f'<mergeCells count="1"><mergeCell ref="{merged}"/></mergeCells>' if merged else ""
    for number, rows in enumerate(sheets.values(), start=1):
        body = "".join(
            f'<row r="{line}">'
            + "".join(_xlsx(f"{chr(65 + at)}{line}", cell) for at, cell in enumerate(row))
            + "</row>"
            for line, row in enumerate(rows, start=1)
        )
        if number == 1:
            body += "".join(f"<row>{_xlsx(place, cell)}</row>" for place, cell in (cells or {}).items())
        parts[f"xl/worksheets/sheet{number}.xml"] = (
            f'<worksheet xmlns="{MAIN}"><sheetData>{body}</sheetData>{joined}</worksheet>'
        )
    return _zipped(path, parts)


def csv_rows(path: Path) -> list[dict[str, str]]:
    """The cells of a CSV file as a spreadsheet shows them: without the apostrophe that says that one is a text."""
    shown = re.compile(r"^'(?='*[=+@\t\r-])")
    with path.open(encoding="utf-8", newline="") as lines:
        return [{name: shown.sub("", cell) for name, cell in row.items()} for row in csv.DictReader(lines)]


def _relations(targets: dict[str, tuple[str, str]]) -> str:
    lines = "".join(f'<Relationship Id="{n}" Type="{kind}" Target="{to}"/>' for n, (kind, to) in targets.items())
    return f'<Relationships xmlns="{PACKAGE}/relationships">{lines}</Relationships>'


def _xlsx(place: str, cell: object) -> str:
    if cell is None:
        return f'<c r="{place}"/>'
    if isinstance(cell, bool):
        return f'<c r="{place}" t="b"><v>{int(cell)}</v></c>'
    if isinstance(cell, int | float):
        return f'<c r="{place}"><v>{cell}</v></c>'
    if str(cell).startswith("#") and str(cell).endswith("!"):
        return f'<c r="{place}" t="e"><v>{cell}</v></c>'
    return f'<c r="{place}" t="inlineStr"><is><t xml:space="preserve">{escape(str(cell))}</t></is></c>'


def write_xls(path: Path, sheets: dict[str, list[list]]) -> Path:
    """A workbook of the old kind (BIFF8, in a compound file); a cell is a number, a text, True or False, or None."""
    bodies = []
    for rows in sheets.values():
        cells = [(line, at, cell) for line, row in enumerate(rows) for at, cell in enumerate(row) if cell is not None]
        bodies.append(_biff(0x809, _beginning(0x10)) + b"".join(_xls(*one) for one in cells) + _biff(0x0A, b""))
    names = [name.encode("utf-16-le") for name in sheets]
    start = len(_biff(0x809, _beginning(5))) + sum(12 + len(name) for name in names) + 4
    globals_, place = _biff(0x809, _beginning(5)), start
    for name, body in zip(names, bodies, strict=True):
        globals_ += _biff(0x85, struct.pack("<IBBBB", place, 0, 0, len(name) // 2, 1) + name)
        place += len(body)
    return _compound(path, globals_ + _biff(0x0A, b"") + b"".join(bodies))


def _beginning(kind: int) -> bytes:
    return struct.pack("<HHHHII", 0x600, kind, 0, 1997, 0, 6)


def _biff(number: int, content: bytes) -> bytes:
    return struct.pack("<HH", number, len(content)) + content


def _xls(line: int, at: int, cell: object) -> bytes:
    place = struct.pack("<HHH", line, at, 0)
    if isinstance(cell, bool):
        return _biff(0x205, place + bytes([cell, 0]))
    if isinstance(cell, int | float):
        return _biff(0x203, place + struct.pack("<d", cell))
    text = str(cell).encode("utf-16-le")
    return _biff(0x204, place + struct.pack("<HB", len(text) // 2, 1) + text)


def _compound(path: Path, stream: bytes) -> Path:
    """A compound file with one stream, "Workbook": a sector of the header, of the table of sectors, of the names."""
    stream = stream.ljust(4096, b"\0")  # shorter ones would be kept elsewhere
    stream += b"\0" * (-len(stream) % 512)
    count, free, end = len(stream) // 512, 0xFFFFFFFF, 0xFFFFFFFE
    chain = [0xFFFFFFFD, end, *(place + 3 for place in range(count - 1)), end]
    table = struct.pack("<128I", *chain, *[free] * (128 - len(chain)))
    header = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(16) + struct.pack("<HHHHH", 0x3E, 3, 0xFFFE, 9, 6) + bytes(6)
    header += struct.pack("<IIIIIIIII", 0, 1, 1, 0, 4096, end, 0, end, 0) + struct.pack("<109I", 0, *[free] * 108)

    def entry(name: str, kind: int, child: int, first: int, size: int) -> bytes:
        text = name.encode("utf-16-le")
        ends = struct.pack("<HBBIII", len(text) + 2, kind, 1, free, free, child)
        return text.ljust(64, b"\0") + ends + bytes(36) + struct.pack("<IQ", first, size)

    names = entry("Root Entry", 5, 1, end, 0) + entry("Workbook", 2, free, 2, len(stream)) + bytes(256)
    path.write_bytes(header + table + names + stream)
    return path


def write_xlsb(path: Path, sheets: dict[str, list[list]], *, far: tuple[int, int] | None = None) -> Path:
    """A workbook of the binary kind; a cell is a number, a text, True or False, or None; `far` is a filled place."""
    targets = {f"rId{n}": (f"{OFFICE}/worksheet", f"worksheets/sheet{n}.bin") for n in range(1, len(sheets) + 1)}
    book = _record(0x83) + _record(0x8F)
    for number, name in enumerate(sheets, start=1):
        book += _record(0x9C, struct.pack("<II", 0, number) + _wide(f"rId{number}") + _wide(name))
    parts: dict[str, bytes] = {
        "[Content_Types].xml": f'<?xml version="1.0"?><Types xmlns="{PACKAGE}/content-types"><Default Extension="bin" '
        'ContentType="application/vnd.ms-excel.sheet.binary.macroEnabled.main"/></Types>'.encode(),
        "_rels/.rels": _relations({"rId1": (f"{OFFICE}/officeDocument", "xl/workbook.bin")}).encode(),
        "xl/workbook.bin": book + _record(0x90) + _record(0x84),
        "xl/_rels/workbook.bin.rels": _relations(targets).encode(),
    }
    for number, rows in enumerate(sheets.values(), start=1):
        body = _record(0x81) + _record(0x94, struct.pack("<IIII", 0, len(rows), 0, 9)) + _record(0x91)
        for line, row in enumerate(rows):
            body += _record(0x00, struct.pack("<I", line) + bytes(13))
            body += b"".join(_xlsb(at, cell) for at, cell in enumerate(row) if cell is not None)
        if far is not None:
            body += _record(0x00, struct.pack("<I", far[0]) + bytes(13)) + _xlsb(far[1], 1.0)
        parts[f"xl/worksheets/sheet{number}.bin"] = body + _record(0x92) + _record(0x82)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def _record(number: int, content: bytes = b"") -> bytes:
    kind = bytes([number]) if number < 0x80 else bytes([number, 1])
    return kind + bytes([len(content)]) + content


def _wide(text: str) -> bytes:
    return struct.pack("<I", len(text)) + text.encode("utf-16-le")


def _xlsb(at: int, cell: object) -> bytes:
    place = struct.pack("<II", at, 0)
    if isinstance(cell, bool):
        return _record(4, place + bytes([cell]))
    return (
        _record(5, place + struct.pack("<d", cell))
        if isinstance(cell, int | float)
        else _record(6, place + _wide(cell))
    )


def write_ods(path: Path, sheets: dict[str, list[list]]) -> Path:
    """As `write_xlsx`, without errors and far cells."""
    body = "".join(
        f"<table:table table:name={quoteattr(name)}>"
        + "".join(f"<table:table-row>{''.join(map(_ods, row))}</table:table-row>" for row in rows)
        + "</table:table>"
        for name, rows in sheets.items()
    )
    manifest = (
        '<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">'
        f'<manifest:file-entry manifest:full-path="/" manifest:media-type="{ODS}"/></manifest:manifest>'
    )
    content = (
        f"<office:document-content {ODS_NAMES}><office:body><office:spreadsheet>{body}</office:spreadsheet>"
        "</office:body></office:document-content>"
    )
    return _zipped(path, {"mimetype": ODS, "META-INF/manifest.xml": manifest, "content.xml": content})


def _ods(cell: object) -> str:
    if cell is None:
        return "<table:table-cell/>"
    if isinstance(cell, int | float):
        return f'<table:table-cell office:value-type="float" office:value="{cell}"/>'
    return f'<table:table-cell office:value-type="string"><text:p>{escape(str(cell))}</text:p></table:table-cell>'


def _zipped(path: Path, parts: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text if name == "mimetype" else f'<?xml version="1.0"?>{text}')
    return path
