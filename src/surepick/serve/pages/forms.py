"""What a form brings, once its token is known to be of the browser that sends it."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

from fastapi import Depends, Request
from starlette.datastructures import UploadFile

from surepick.errors import InvalidInput
from surepick.serve.pages.shell import is_form_token
from surepick.serve.web.callers import server_of
from surepick.serve.web.problems import Refused
from surepick.tables.numbers import lone_number

MOST_FIELDS = 100_000
LARGEST = 1e308


@dataclass(frozen=True, slots=True)
class Form:
    """A form.

    Args:
        fields: each with its texts.
        files: each with its name and its bytes; those that were left empty are not there.
    """

    fields: dict[str, list[str]]
    files: dict[str, tuple[str, bytes]]

    def text(self, name: str, default: str = "") -> str:
        """A text, without the spaces around it; the default if it is empty or not there."""
        return self.fields.get(name, [""])[0].strip() or default

    def raw(self, name: str) -> str:
        """A text as it came."""
        return self.fields.get(name, [""])[0]

    def many(self, name: str) -> list[str]:
        """All texts of a name."""
        return self.fields.get(name, [])

    def number(self, name: str, what: str) -> float | None:
        """A number; None if it was left empty.

        Raises:
            InvalidInput: it is none.
        """
        return number_in(self.text(name), what)


def number_in(cell: str, what: str) -> float | None:
    """A number that somebody typed; None of nothing.

    Raises:
        InvalidInput: it is none, or could be two.
    """
    if not cell.strip():
        return None
    value = lone_number(cell)
    if value is None or not abs(value) <= LARGEST:
        raise InvalidInput(f"{what}: {cell[:40]!r} is no number. Nothing was stored.")
    return value


async def posted(request: Request) -> Form:
    """The form of a request.

    Raises:
        Refused: it was not made for this browser, or it has too many parts.
    """
    largest = server_of(request).settings.largest_body
    async with request.form(max_files=4, max_fields=MOST_FIELDS, max_part_size=largest) as came:
        fields: dict[str, list[str]] = {}
        files: dict[str, tuple[str, bytes]] = {}
        for name, value in came.multi_items():
            if not isinstance(value, UploadFile):
                fields.setdefault(name, []).append(value)
            elif value.filename:
                files[name] = (value.filename, await value.read())
    if not is_form_token(request, fields.pop("form_token", [""])[0]):
        raise Refused(
            HTTPStatus.FORBIDDEN,
            "This form was not made for this browser, or it is from before the last login; nothing was done. Open the "
            "page again, and repeat it there.",
        )
    return Form(fields, files)


Posted = Annotated[Form, Depends(posted)]
