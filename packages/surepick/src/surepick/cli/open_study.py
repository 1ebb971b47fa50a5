"""The study that a command works on: its address, its name, and how it is opened."""

import importlib.util
import os
import re
import shlex
from collections.abc import Callable
from typing import Annotated, Any

from typer import Argument, Option

from surepick.cli.output import note
from surepick.errors import InvalidInput
from surepick.studies.opening import checked_address, is_http

VARIABLE = "SUREPICK_URL"
PASSWORD = re.compile(r"://[^/?]*:[^/?]+@|[?&]password=")


def given_url(url: str) -> str:
    """The address that a command was given, of a database or a server: "-" is the one in the environment."""
    found = _meant(url)
    if is_http(found):
        _check_package("httpx", "client", "studies on a server")
        return checked_address(found)
    _check_package("sqlalchemy", "studies", "studies that last")
    if found == url and PASSWORD.search(url):
        note(
            "there is a password in the command; others can read it in the list of processes and in your shell's "
            f"history. Put the address into {VARIABLE} and write - in its place, or the password into ~/.pgpass."
        )
    return found


def given_database(url: str) -> str:
    """As `given_url`, for what only the database itself can be asked."""
    if is_http(_meant(url)):
        raise InvalidInput(
            "this works on the database itself, and the address is a server's. Give the command where the database is, "
            "with its address: sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE."
        )
    return given_url(url)


def _meant(url: str) -> str:
    if url != "-":
        return url
    if not (kept := os.environ.get(VARIABLE, "")):
        raise InvalidInput(
            f"- stands for the address in {VARIABLE}, which is not set: "
            f"export {VARIABLE}=postgresql+psycopg://USER:PASSWORD@HOST/DATABASE, or write the address itself."
        )
    return kept


def _check_package(package: str, extra: str, what: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise InvalidInput(f'{what} need {package}, which is absent: pip install "surepick[{extra}]".')


def _address(others: str, callback: Callable[[str], str]) -> Any:
    kinds = f"sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE;{others} - for the one in {VARIABLE}."
    return Argument(metavar="URL", help=f"The database: {kinds}", show_default=False, callback=callback)


UrlArgument = Annotated[str, _address(" or a server: https://HOST;", given_url)]
DatabaseArgument = Annotated[str, _address("", given_database)]
NameArgument = Annotated[str, Argument(metavar="NAME", help="The study.", show_default=False)]
WorkerOption = Annotated[str | None, Option("--worker", help="The name of the one who measures, e.g. lab-2.")]


def command_line(command: str, url: str, *words: str) -> str:
    """A command to type next, quoted for a shell; a password in the address is not shown."""
    return shlex.join(["surepick", command, "-" if url == os.environ.get(VARIABLE) else _shown(url), *words])


def _shown(url: str) -> str:
    if is_http(url):
        return url
    from surepick.studies.logs.sql.engine import shown  # noqa: PLC0415 (SQLAlchemy: heavy, and an extra)

    return str(shown(url))
