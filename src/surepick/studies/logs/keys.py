"""Keys of results: texts with one canonical form, decided where they enter, so that each result counts once.

    of a leased pull   p<plan>.<ordinal>@<id>, exactly as `ask` wrote it; anything that only looks like one is refused
    of the user's own  Unicode NFC without surrounding white space; never a number

Everything behind this file (the log, its tables, the receipts) sees canonical keys only.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

import numpy as np

from surepick.core.validation import storable_text, text_of
from surepick.core.values import listed
from surepick.errors import InvalidInput
from surepick.studies.logs.leases import pull_key
from surepick.text import quoted

PULL_KEY = re.compile(
    r"p([1-9][0-9]{0,17})\.(0|[1-9][0-9]{0,17})@(.*)", re.DOTALL
)  # as it is written, so that each is one
LOOKS_LIKE_ONE = re.compile(r"[^\w@]*p[^\w@]*(\d{1,40})[^\w@]*[.,][^\w@]*(\d{1,40})[^\w@]*@(.*)", re.DOTALL)
AT_SIGNS = "@\ufe6b\uff20"  # those that NFKC makes an @
WHOLE_NUMBER = re.compile(r"([+-]?[0-9]+)(?:\.0{0,2})?")
SPELLINGS = ("", ".", ".0", ".00")  # what programs append to a whole number that passed through a column of decimals


def canonical_keys(keys: Sequence[object] | None, names: Sequence[str]) -> tuple[str | None, ...] | None:
    """The canonical form of the keys of results, None for a result without one; None if none was given.

    Args:
        keys: n keys, or None.
        names: the id of each result's arm, n texts: a key of a leased pull ends with it.

    Raises:
        InvalidInput: their number is not that of the results, one is empty or no text, looks like the key of a leased
            pull and is not written as one, or is that of another arm.
    """
    if keys is None:
        return None
    given = listed("keys", keys, cure="Give one for each result, or none.")
    if len(given) != len(names):
        raise InvalidInput(f"there are {len(given)} keys for {len(names)} results; give one key per result, or none.")
    return tuple(
        None if key is None else canonical_key(_text(key), name) for key, name in zip(given, names, strict=True)
    )


def canonical_key(key: str, name: str) -> str:
    """The one form in which a key is stored and compared.

    Args:
        key: as it was given.
        name: the id of the result's arm.

    Raises:
        InvalidInput: it is empty, or looks like the key of a leased pull and is not written as one, or is that of
            another arm.
    """
    plain = normal_form(key)
    if not plain:
        raise InvalidInput("a key is empty; leave the keys away, or give every result one of its own.")
    if not any(at in plain for at in AT_SIGNS):
        return plain
    own = PULL_KEY.fullmatch(plain)
    if own is not None and (own[3] == name or normal_form(own[3]) == normal_form(name)):
        return pull_key(int(own[1]), int(own[2]), name)
    like = LOOKS_LIKE_ONE.fullmatch(_folded(key))
    if like is None or int(like[1]) == 0:  # no plan has the number 0
        return plain
    if own is not None or _folded(name) != like[3]:
        other = own[3] if own is not None else plain.partition("@")[2]
        raise InvalidInput(
            f"key {quoted(key)} is of a measurement of {quoted(other)}, but the result is reported for "
            f"{quoted(name)}: the columns of the table may have been moved against each other. Nothing of this call "
            "was stored."
        )
    right = pull_key(int(like[1]), int(like[2]), name)
    raise InvalidInput(
        f"key {quoted(key)} looks like one that ask gave, and is not written as one: a program may have changed it. If "
        f"it is that one, write {quoted(right)}; else give the result a key of its own. Nothing of this call was "
        "stored."
    )


def read_pull_key(key: str) -> tuple[int, int] | None:
    """(plan, ordinal) of a canonical key of a leased pull; None for a key of the user's own."""
    found = PULL_KEY.fullmatch(key)
    return None if found is None else (int(found[1]), int(found[2]))


def other_spellings(keys: Iterable[str | None]) -> dict[str, str]:
    """How whole numbers among the keys may have been written by other programs: spelling -> the key itself.

    "7" and "7.0" are two texts; a table of results that passed through a spreadsheet or pandas has the second where
    the first was meant, and both would count.
    """
    found: dict[str, str] = {}
    for key in keys:
        number = None if key is None else WHOLE_NUMBER.fullmatch(key)
        if key is not None and number is not None:
            found |= {number[1] + ending: key for ending in SPELLINGS if number[1] + ending != key}
    return found


def normal_form(text: str) -> str:
    """Unicode NFC without surrounding white space."""
    return (text if text.isascii() else unicodedata.normalize("NFC", text)).strip()


def _folded(text: str) -> str:
    """The text as a careless reader sees it: NFKC, without case, white space, and characters that cannot be seen."""
    compatible = unicodedata.normalize("NFKC", text).casefold()
    return "".join(one for one in compatible if not one.isspace() and unicodedata.category(one) not in ("Cf", "Cc"))


def _text(key: object) -> str:
    """The text of a key.

    Raises:
        InvalidInput: it is neither a text nor a whole number, or no file could hold it.
    """
    if isinstance(key, bool | float | np.floating | bytes) or key is np.ma.masked:
        raise InvalidInput(
            f"a key is {quoted(key)}, a {type(key).__name__}; keys are texts, e.g. '7', and None stands for a result "
            "without one."
        )
    return storable_text("a key", text_of("a key", key))
