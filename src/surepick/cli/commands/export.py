"""`surepick export`: the results of a durable study as a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from surepick.cli import options
from surepick.cli.open_study import NameArgument, UrlArgument, opened
from surepick.cli.output import print_json, say
from surepick.studies.reading.export import export_results
from surepick.tables.writing import check_suffix


def export(
    url: UrlArgument,
    name: NameArgument,
    *,
    out: Annotated[Path, Option(help="A .csv, .parquet or .jsonl file.")],
    output: options.FormatOption = options.Format.text,
) -> None:
    """Write the results of the complete rounds to a table.

    Results that were set aside are in it too; those of the open round are not.
    """
    check_suffix(out)
    rows = export_results(opened(url, name), out)
    if output is options.Format.json:
        print_json({"study": name, "rows": rows, "file": str(out)})
    else:
        say(f"{out}: {rows:,} rows.")
