"""`surepick report`: a study as a page that anybody can read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from surepick.cli import options
from surepick.cli.commands.studies import NameArgument, UrlArgument
from surepick.cli.commands.studies import check_extra as check_studies
from surepick.cli.output import note, noted, print_json, say
from surepick.errors import InvalidInput

SUFFIXES = (".html", ".htm")


def report(
    url: UrlArgument,
    name: NameArgument,
    out: Annotated[Path, typer.Option("--out", help="An .html file; one file, which needs no network.")],
    forecast_up_to: Annotated[
        int,
        typer.Option(
            "--forecast-up-to",
            min=0,
            help="With more candidates, leave out the comparison with a forecast, which takes long to compute.",
        ),
    ] = 1_000,
    open_page: Annotated[bool, typer.Option("--open", help="Show it in the browser.")] = False,
    output: options.FormatOption = options.Format.text,
) -> None:
    """Write what the complete rounds say as one page to pass on: answer, pictures, assumptions and log."""
    from surepick.linalg.blas_threads import one_thread  # noqa: PLC0415
    from surepick.reports.study.page import write_report  # noqa: PLC0415 (others stay quick)

    check_page(out)
    check_studies()
    from surepick.studies.database import open_study  # noqa: PLC0415 (SQLAlchemy: heavy, and an extra)

    with noted():
        study = open_study(url, name)  # all that was decided is computed again
    with one_thread():
        write_report(study, out, name=name, forecast_up_to=forecast_up_to)
    answer = study.certificate()
    if output is options.Format.json:
        size = out.stat().st_size
        print_json({"study": name, "verdict": answer.verdict, "file": str(out), "uri": address(out), "bytes": size})
    else:
        say(f"{out}: {answer.verdict}, {out.stat().st_size / 1e6:.2f} MB.")
        say(address(out))
    if open_page:
        show_page(out)


def address(path: Path) -> str:
    """Where the file is, as terminals and browsers can follow it."""
    return path.resolve().as_uri()


def show_page(path: Path) -> None:
    """Open the file in the browser; say so if there is none."""
    import webbrowser  # noqa: PLC0415 (only where a page is shown)

    if not webbrowser.open(address(path)):
        note(f"no browser could be started here; open {address(path)} in one.")


def check_page(path: Path) -> None:
    """Refuse to go on without what a report needs.

    Raises:
        InvalidInput: the file is not named as a page, or jinja2 is absent.
    """
    from surepick.reports.study.page import check_extra  # noqa: PLC0415 (others stay quick)

    if path.suffix.lower() not in SUFFIXES:
        raise InvalidInput(f"{str(path)!r} does not end in .html; a report is a page for a browser, so name it so.")
    check_extra()
