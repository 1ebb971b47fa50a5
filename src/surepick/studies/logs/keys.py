"""Keys of results: texts with one canonical form, decided where they enter, so that each result counts once.

    of a leased pull   p<plan>.<ordinal>@<id>, exactly as `ask` wrote it; anything that only looks like one is refused
    of a test item     item<index>@<id>, in the same way
    of the user's own  in the one form of `core.names`: a number is the number, whoever wrote it

Everything behind this file (the log, its tables, the receipts) sees canonical keys only.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from surepick.core.names import is_missing_text, is_number, one_form, written
from surepick.core.values import listed
from surepick.errors import InvalidInput
from surepick.studies.logs.leases import pull_key
from surepick.text import look_of, quoted, seen

NUMBERED = "(0|[1-9][0-9]{0,17})"  # as it is written, so that each is one
PULL_KEY = re.compile(rf"p([1-9][0-9]{{0,17}})\.{NUMBERED}@.*", re.DOTALL)
ITEM_KEY = re.compile(rf"item{NUMBERED}@.*", re.DOTALL)
LOOKS_LIKE_ONE = re.compile(
    r"(?:unused)?[^\w@]*(?:p[^\w@]*(\d{1,40})[^\w@]*[.,][^\w@]*(\d{1,40})|item[^\w@]*(\d{1,40}))[^\w@]*@(.*)", re.DOTALL
)
AT_SIGNS = "@\ufe6b\uff20"  # those that NFKC makes an @


def canonical_keys(keys: Sequence[object] | None, names: Sequence[str]) -> tuple[str | None, ...] | None:
    """The canonical form of the keys of results, None for a result without one; None if none was given.

    Args:
        keys: n keys, or None. A key that is missing (None, NaN, NA of pandas) is none.
        names: the id of each result's arm, n texts: a key that `ask` gave ends with it.

    Raises:
        InvalidInput: their number is not that of the results; one is as `canonical_key` refuses it; or two are one
            number that was written in two ways.
    """
    if keys is None:
        return None
    given = listed("keys", keys, cure="Give one for each result, or none.")
    if len(given) != len(names):
        raise InvalidInput(f"there are {len(given)} keys for {len(names)} results; give one key per result, or none.")
    found: list[str | None] = []
    spelled: dict[str, str] = {}
    for key, name in zip(given, names, strict=True):
        text = written("a key", key)
        if not text and not isinstance(key, str):
            found.append(None)
            continue
        found.append(canonical := canonical_key(text, name))
        if is_number(canonical) and spelled.setdefault(canonical, seen(text)) != seen(text):
            raise InvalidInput(
                f"keys {quoted(spelled[canonical])} and {quoted(text)} are the same number, written in two ways: a "
                "program may have changed one of them, and a key counts once. Nothing of this call was stored. If they "
                "are two measurements, give them keys that are no numbers, such as 's1.10'."
            )
    return tuple(found)


def canonical_key(key: str, name: str) -> str:
    """The one form in which a key is stored and compared.

    Args:
        key: as it was given.
        name: the id of the result's arm.

    Raises:
        InvalidInput: it is empty, or what programs write for a missing one; it looks like a key that `ask` gave and is
            not written as one, or is that of another arm; or it is a number as `one_form` refuses it.
    """
    plain = normal_form(key)
    if any(at in plain for at in AT_SIGNS):
        asked = _as_asked(key, plain, name)
        if asked:
            return asked
    own = one_form("a key", plain)
    if not own:
        raise InvalidInput("a key is empty; leave the keys away, or give every result one of its own.")
    if is_missing_text(own):
        raise InvalidInput(
            f"a key is {quoted(key)}, which programs write where none is; give None for a result without a key."
        )
    return own


def _as_asked(key: str, plain: str, name: str) -> str:
    """A key that `ask` gave for that arm, as it wrote it; "" for one of the user's own.

    Raises:
        InvalidInput: it only looks like one, or is that of another arm.
    """
    before, _, behind = plain.partition("@")
    exact = PULL_KEY.fullmatch(plain) or ITEM_KEY.fullmatch(plain)
    if exact is not None and (behind == name or normal_form(behind) == normal_form(name)):
        return f"{before}@{name}"
    like = LOOKS_LIKE_ONE.fullmatch(_folded(key))
    if like is None or (like[3] is None and int(like[1]) == 0):  # no plan has the number 0
        return ""
    if exact is not None or _folded(name) != like[4]:
        raise InvalidInput(
            f"key {quoted(key)} is of a measurement of {quoted(behind)}, but the result is reported for "
            f"{quoted(name)}: the columns of the table may have been moved against each other. Nothing of this call "
            "was stored."
        )
    right = item_key(int(like[3]), name) if like[3] is not None else pull_key(int(like[1]), int(like[2]), name)
    raise InvalidInput(
        f"key {quoted(key)} looks like one that ask gave, and is not written as one: a program may have changed it. If "
        f"it is that one, write {quoted(right)}; else give the result a key of its own. Nothing of this call was "
        "stored."
    )


def read_pull_key(key: str) -> tuple[int, int] | None:
    """(plan, ordinal) of a canonical key of a leased pull; None for any other."""
    found = PULL_KEY.fullmatch(key)
    return None if found is None else (int(found[1]), int(found[2]))


def item_key(item: int, name: str) -> str:
    """The key of the answer of the arm of that id to the item of that index."""
    return f"item{item}@{name}"


def read_item_key(key: str | None) -> int:
    """The index of the item of a canonical key; -1 where it is none."""
    found = None if key is None else ITEM_KEY.fullmatch(key)
    return -1 if found is None else int(found[1])


def normal_form(text: str) -> str:
    """Unicode NFC without surrounding white space."""
    return (text if text.isascii() else unicodedata.normalize("NFC", text)).strip()


def _folded(text: str) -> str:
    """The text as a careless reader sees it: NFKC, without case, white space, and characters that cannot be seen."""
    return "".join(look_of(text).casefold().split())
