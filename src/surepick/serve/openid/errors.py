"""Why a login by an identity provider failed."""

from __future__ import annotations

import re

CODE = re.compile(r"[a-z_]{1,40}")


class ProviderAway(Exception):
    """The provider does not answer, or not in time. The same may work later."""


class ProviderWrong(Exception):
    """The provider answers something else than its standard says. Its operator, or ours, has to mend that."""


class NotBelieved(Exception):
    """What came in place of a login is not believed. The message says why, in a word or two."""


def said(error: object) -> str:
    """The name of an error, as the standard has them; nothing else that somebody else wrote is shown."""
    return error if isinstance(error, str) and CODE.fullmatch(error) else "it does not say why"
