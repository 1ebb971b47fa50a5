"""The study that a command works on: its address, its name, and how it is opened."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from surepick.cli.output import note
from surepick.errors import InvalidInput

if TYPE_CHECKING:
    from surepick.studies.study import Study

VARIABLE = "SUREPICK_URL"
PASSWORD = re.compile(r"://[^/?]*:[^/?]+@|[?&]password=")


def given_url(url: str) -> str:
    """The address that a command was given: "-" is the one in the environment.

    Raises:
        InvalidInput: the environment has none, or the packages for databases are absent.
    """
    if importlib.util.find_spec("sqlalchemy") is None:
        raise InvalidInput('studies that last need sqlalchemy, which is absent: pip install "surepick[studies]".')
    if url == "-":
        if not (kept := os.environ.get(VARIABLE, "")):
            raise InvalidInput(
                f"- stands for the address in {VARIABLE}, which is not set: "
                f"export {VARIABLE}=postgresql+psycopg://USER:PASSWORD@HOST/DATABASE, or write the address itself."
            )
        return kept
    if PASSWORD.search(url):
        note(
            "there is a password in the command; others can read it in the list of processes and in your shell's "
            f"history. Put the address into {VARIABLE} and write - in its place, or the password into ~/.pgpass."
        )
    return url


UrlArgument = Annotated[
    str,
    Argument(
        metavar="URL",
        help=f"The database: sqlite:///FILE or postgresql+psycopg://USER@HOST/DATABASE; - for the one in {VARIABLE}.",
        show_default=False,
        callback=given_url,
    ),
]
NameArgument = Annotated[str, Argument(metavar="NAME", help="The study.", show_default=False)]
WorkerOption = Annotated[str | None, Option("--worker", help="The name of the one who measures, e.g. lab-2.")]


def opened(url: str, name: str) -> Study:
    """The study; everything that was decided in it is computed again."""
    from surepick.studies.database import open_study  # noqa: PLC0415 (SQLAlchemy: heavy, and an extra)

    return open_study(url, name)


def resumed(url: str, name: str) -> Study:
    """The study; nothing is computed again."""
    from surepick.studies.database import resume_study  # noqa: PLC0415 (SQLAlchemy: heavy, and an extra)

    return resume_study(url, name)


def command_line(command: str, url: str, *words: str) -> str:
    """A command to type next, quoted for a shell; a password in the address is not shown."""
    from surepick.studies.logs.sql.engine import shown  # noqa: PLC0415 (SQLAlchemy: heavy, and an extra)

    address = "-" if url == os.environ.get(VARIABLE) else shown(url)
    return shlex.join(["surepick", command, address, *words])
