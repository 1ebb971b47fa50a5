"""`surepick report`: a study as a page that anybody can read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from surepick.cli import options
from surepick.cli.open_study import NameArgument, UrlArgument, opened
from surepick.cli.output import note, print_json, say
from surepick.errors import InvalidInput
from surepick.studies.addresses import is_http

SUFFIXES = (".html", ".htm")


def report(
    url: UrlArgument,
    name: NameArgument,
    *,
    out: Annotated[Path, Option(help="An .html file; one file, which needs no network.")],
    forecast_up_to: Annotated[int, Option(min=0, help="Leave out the slow forecast with more candidates.")] = 1_000,
    open_page: Annotated[bool, Option("--open", help="Show it in the browser.")] = False,
    output: options.FormatOption = options.Format.text,
) -> None:
    """Write a study as one page to pass on: answer, pictures, assumptions and log.

    The page says what the complete rounds say, and nothing of the open round.
    """
    from surepick.linalg.blas_threads import one_thread  # noqa: PLC0415 (`run` imports this module)
    from surepick.reports.study.page import write_report  # noqa: PLC0415

    check_page(out, drawn_here=not is_http(url))
    study = opened(url, name)
    with one_thread():
        write_report(study, out, name=name, forecast_up_to=forecast_up_to)
    verdict, size, uri = study.certificate().verdict, out.stat().st_size, out.resolve().as_uri()
    if output is options.Format.json:
        print_json({"study": name, "verdict": verdict, "file": str(out), "uri": uri, "bytes": size})
    else:
        say(f"{out}: {verdict}, {size / 1e6:.2f} MB.")
        say(uri)
    if open_page:
        import webbrowser  # noqa: PLC0415 (only where a page is shown)

        if not webbrowser.open(uri):
            note(f"no browser could be started here; open {uri} in one.")


def check_page(path: Path, *, drawn_here: bool = True) -> None:
    """Refuse to go on without what a report needs.

    Args:
        path: of the page.
        drawn_here: not by a server.

    Raises:
        InvalidInput: the file is not named as a page, or jinja2 is absent.
    """
    from surepick.reports.study.page import check_extra  # noqa: PLC0415 (`run` needs it for --report only)

    if path.suffix.lower() not in SUFFIXES:
        raise InvalidInput(f"{str(path)!r} does not end in .html; a report is a page for a browser, so name it so.")
    if drawn_here:
        check_extra()
