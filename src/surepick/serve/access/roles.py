"""The four roles, each of which may do what those before it may."""

from __future__ import annotations

from enum import IntEnum

from surepick.core.arrays import record
from surepick.errors import InvalidInput
from surepick.text import quoted


class Role(IntEnum):
    """What somebody may do."""

    viewer = 1  # see what closed rounds say
    measurer = 2  # lease measurements, and report one's own
    owner = 3  # make studies, give up, withdraw, close
    admin = 4  # make and revoke tokens


def read_role(text: object) -> Role:
    """A role by its name.

    Raises:
        InvalidInput: there is none of that name.
    """
    if isinstance(text, str) and text in Role.__members__:
        return Role[text]
    raise InvalidInput(f"role is {quoted(text)}; choose one of {', '.join(Role.__members__)}.")


@record
class Principal:
    """Somebody who is known.

    Args:
        name: of the token; the worker of what they report.
        role: what they may do.
        study: the only study that they see; None: all.
        token: number of the token; 0 for the person at this machine, before there are tokens.
    """

    name: str
    role: Role
    study: str | None = None
    token: int = 0

    def is_worker(self, worker: str) -> bool:
        """Whether a worker of that name is they, or one of theirs: "lab" has "lab/1", "lab/2", ...

        Before there are tokens nobody is told from anybody: the person at this machine is every worker.
        """
        return self.token == 0 or worker == self.name or worker.startswith(f"{self.name}/")


LOCAL = Principal("local", Role.admin)
