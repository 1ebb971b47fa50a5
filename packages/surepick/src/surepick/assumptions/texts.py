"""Assumptions as texts: "linear", "linear:norm=10", "smooth:length=0.7,norm=3 + off by 0.02 and scatter<=0.6"."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from surepick.assumptions import records
from surepick.assumptions.records import Assumption
from surepick.core.values import storable_text
from surepick.embeddings.kernel import parse_kernel
from surepick.embeddings.kernel_functions import GaussianKernel
from surepick.errors import InvalidInput
from surepick.text import did_you_mean, quoted

HOW = (
    "Write nothing, linear, linear:norm=10, smooth, smooth:length=0.7,norm=3, smooth:kernel=matern:2.5, in 0..1; with "
    "' + off by 0.02' each mean may be off that, ' + effects of round up to 0.1' allows for shifts between rounds, and "
    "' and scatter<=0.6' bounds the noise."
)
NUMBER = r"([-+]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:e[-+]?[0-9]+)?)"
OFF, RANGE = re.compile(f"off by {NUMBER}"), re.compile(rf"in {NUMBER}\.\.{NUMBER}")
SCATTER, EFFECTS = re.compile(f"scatter ?<= ?{NUMBER}"), re.compile(f"effects of (.+) up to {NUMBER}")


def parse_assumption(text: str | Assumption) -> Assumption:
    """The assumption that a text names; an assumption is returned as it is.

    Parts that are added stand between " + ", those that hold at once between " and ".

    Raises:
        InvalidInput: the text is none.
    """
    if isinstance(text, Assumption):
        return text
    given = " ".join(storable_text("assume", text).split())
    parts = tuple(_sum(one, given) for one in given.split(" and "))
    return parts[0] if len(parts) == 1 else records.AllOf(parts)


def _sum(text: str, whole: str) -> Assumption:
    """The functions that are added up; what "off by" follows is what they may be off."""
    terms: list[Assumption] = []
    for term in text.split(" + "):
        off = OFF.fullmatch(term)
        if off is None:
            terms.append(_atom(term, whole))
        elif not terms:
            raise InvalidInput(f"{quoted(whole)} does not say what the means are near: write linear + {term}, say.")
        else:
            terms = [records.Near(_added(terms), _number(off[1], whole))]
    return _added(terms)


def _added(terms: list[Assumption]) -> Assumption:
    return terms[0] if len(terms) == 1 else records.SumOf(tuple(terms))


def _atom(text: str, whole: str) -> Assumption:
    if text == "nothing":
        return records.NoStructure()
    if found := RANGE.fullmatch(text):
        return records.InRange(_number(found[1], whole), _number(found[2], whole))
    if found := SCATTER.fullmatch(text):
        return records.Scatter(_number(found[1], whole))
    if found := EFFECTS.fullmatch(text):
        return records.Effects(found[1], _number(found[2], whole))
    name, _, rest = text.partition(":")
    options = dict(part.partition("=")[::2] for part in rest.split(",")) if rest else {}
    read: dict[str, Callable[[], Assumption]] = {
        "linear": lambda: records.Linear(**_common(options, whole)),
        "smooth": lambda: _smooth(options, whole),
    }
    if name not in read:
        meant = did_you_mean(name, ["nothing", *read])
        raise InvalidInput(f"the assumption {quoted(whole)} is not understood.{meant} {HOW}")
    known = ["norm", "level", *(["length", "kernel"] if name == "smooth" else [])]
    unknown = next((key for key in options if key not in known), None)
    if unknown is not None:
        raise InvalidInput(f"{name} has no {quoted(unknown)}; it has {', '.join(known)}.{did_you_mean(unknown, known)}")
    return read[name]()


def _smooth(options: Mapping[str, str], whole: str) -> Assumption:
    common, length, kernel = _common(options, whole), options.get("length"), options.get("kernel")
    if length is not None and kernel is not None:
        raise InvalidInput(f"{quoted(whole)} has a length and a kernel, which has its own; leave out one.")
    if kernel is not None:
        return records.Smooth(parse_kernel(kernel), **common)
    number = None if length is None else _number(length, whole)
    if number is not None and number <= 0.0:
        raise InvalidInput(f"the length of {quoted(whole)} must be above 0: the distance over which means change.")
    return records.Smooth(None if number is None else GaussianKernel(0.5 / number**2), **common)


def _common(options: Mapping[str, str], whole: str) -> dict[str, Any]:
    level = options.get("level", "yes")
    if level not in ("yes", "no"):
        raise InvalidInput(f"the level of {quoted(whole)} is {quoted(level)}; write level=yes or level=no.")
    return {"norm": _number(options["norm"], whole) if "norm" in options else None, "level": level == "yes"}


def _number(text: str, whole: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"{quoted(text)} in {quoted(whole)} is no number. {HOW}") from None
