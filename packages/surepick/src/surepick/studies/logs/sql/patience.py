"""How long we wait for a database: in the address, in the environment, or as usual."""

import math
import os
from dataclasses import dataclass

from sqlalchemy.engine import URL

from surepick.errors import InvalidInput

USUAL = {"connect_timeout": 10.0, "lock_timeout": 60.0, "statement_timeout": 60.0}
LONGEST = 86_400.0  # a day; every wait ends
UNANSWERED = "no answer from the server"  # how we say it in the place of a server that says nothing


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds after which a wait ends with an error."""

    connect: float = USUAL["connect_timeout"]  # for a connection to a server
    lock: float = USUAL["lock_timeout"]  # for another program that is writing
    statement: float = USUAL["statement_timeout"]  # for the answer to one statement, without the wait for others


def patience_of(address: URL) -> Patience:
    """?lock_timeout=SECONDS of the address, or SUREPICK_LOCK_TIMEOUT, or 60; so connect_ and statement_timeout."""
    return Patience(**{name.removesuffix("_timeout"): _seconds(address, name) for name in USUAL})


def without_patience(address: URL) -> URL:
    """The address as drivers know it."""
    return address.difference_update_query(USUAL)


def _seconds(address: URL, name: str) -> float:
    variable = f"SUREPICK_{name.upper()}"
    where, said = f"{name} in the address", address.query.get(name)
    if said is None:
        where, said = variable, os.environ.get(variable) or str(USUAL[name])
    try:
        seconds = float(str(said))
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= LONGEST:
        raise InvalidInput(
            f"{where} is {said!r}; give seconds above 0 and up to {LONGEST:.0f} (a day): every wait must end."
        )
    return seconds
