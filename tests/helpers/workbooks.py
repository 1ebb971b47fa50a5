"""Small spreadsheets written by hand, and tables as a spreadsheet shows them, without a package for it."""

import csv
import re
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
KIND = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
ODS = "application/vnd.oasis.opendocument.spreadsheet"
ODS_NAMES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text")
)


def write_xlsx(path: Path, sheets: dict[str, list[list]], *, cells: dict[str, object] | None = None) -> Path:
    """A workbook; a cell is a number, a text, True or False, an error such as "#DIV/0!", or None.

    Args:
        sheets: name -> rows, from A1 on.
        cells: more cells of the first sheet, by their place ("XFD1048576").
    """
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="xml" '
        f'ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="{KIND}"/></Types>',
        "_rels/.rels": _relations({"rId1": (f"{OFFICE}/officeDocument", "xl/workbook.xml")}),
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>'
        + "".join(
            f'<sheet name={quoteattr(name)} sheetId="{n}" r:id="rId{n}"/>' for n, name in enumerate(sheets, start=1)
        )
        + "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": _relations(
            {f"rId{n}": (f"{OFFICE}/worksheet", f"worksheets/sheet{n}.xml") for n in range(1, len(sheets) + 1)}
        ),
    }
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
            f'<worksheet xmlns="{MAIN}"><sheetData>{body}</sheetData></worksheet>'
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
