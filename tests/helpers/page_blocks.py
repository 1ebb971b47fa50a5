"""The fenced blocks of the README and the documents."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from surepick.cli.app import app

ROOT = Path(__file__).parents[2]


PAGES = ["README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]


PROJECTS = {  # the folder of a distribution -> what it says of itself
    file.parent.relative_to(ROOT).as_posix(): tomllib.loads(file.read_text(encoding="utf-8"))["project"]
    for file in sorted(ROOT.glob("packages/*/pyproject.toml"))
}


COMMANDS: Any = typer.main.get_command(app)


FENCE = re.compile(r"^( *)(```+|~~~+)(.*)$")


NEW_FILE = re.compile(r"`([\w-]+\.(?:csv|json|py|toml))`:$")  # the words before a block that is a file of the page


PRINTS = re.compile(r"It prints:$")  # before what the program above prints


LANGUAGES = ("python", "sh", "csv", "json", "toml", "text", "console")


class Escaped(AssertionError):
    """A block that no rule covers."""


@dataclass(frozen=True)
class Block:
    """A fenced block: where it stands, what it says that it is, and what is in it."""

    page: str
    line: int
    language: str
    text: str
    before: str = ""  # the last line before it

    @property
    def file(self) -> str | None:
        """The name that the page gives it, if it is a file to be written."""
        named = NEW_FILE.search(self.before)
        return named[1] if named else None

    @property
    def where(self) -> str:
        return f"{self.page}, line {self.line}"

    @property
    def commands(self) -> list[tuple[str, str | None]]:
        """(command, what it prints) of a shell block or of a session; None where nothing is shown."""
        if self.language == "sh":
            lines = self.text.replace("\\\n", " ").splitlines()
            return [(line.strip(), None) for line in lines if line.strip() and not line.lstrip().startswith("#")]
        if self.language not in ("text", "console"):
            return []
        found = re.findall(r"^\$ ((?:[^\n]*\\\n)*[^\n]*)\n(.*?)(?=^\$ |\Z)", self.text, re.MULTILINE | re.DOTALL)
        return [(command.replace("\\\n", " "), shown) for command, shown in found]


def blocks(page: str, text: str | None = None) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    before, opened = "", None
    for number, line in enumerate((text or (ROOT / page).read_text(encoding="utf-8")).splitlines(), start=1):
        fence = FENCE.match(line)
        if opened is None and fence:
            opened = (number, *fence.groups(), before)
            inside: list[str] = []
        elif opened is not None and fence and line.strip() == opened[2]:
            body = "".join(f"{inner[len(opened[1]) :]}\n" for inner in inside)
            yield Block(page, opened[0], opened[3].strip(), body, opened[4])
            before, opened = "", None
        elif opened is not None:
            inside.append(line)
        if opened is None and line.strip() and not fence:
            before = line.strip()
    if opened is not None:
        raise Escaped(f"{page}, line {opened[0]}: this block never ends")
