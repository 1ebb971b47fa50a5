"""Bounds on quantities that are measured beside the reward."""

import re

from surepick.core.records import record
from surepick.core.values import check_reach, check_size, finite_number, not_negative, storable_text
from surepick.errors import InvalidInput
from surepick.noise import Noise, known_scale, largest_scale, parse_noise
from surepick.text import quoted

RESERVED = ("id", "key", "reward", "item", "pulls", "sum", "squares")  # columns of results


@record
class Constraint:
    """A quantity that is measured beside the reward, and whose mean has a bound.

    Args:
        name: of the quantity, and of its column in tables.
        bound: b, in its own units.
        at_most: the mean is to be at most b; False: at least b.
        tolerance: the answer's mean may be beyond b by this much, in the quantity's units. > 0 where there is noise.
        noise: what is assumed of a measurement of it; None: it has no noise, so that one measurement tells it.

    Raises:
        InvalidInput: a value has no meaning, or there is noise of unknown scale, without tolerance, or 1e50 times as
            large.
    """

    name: str
    bound: float
    at_most: bool = True
    tolerance: float = 0.0
    noise: Noise | None = None

    def __post_init__(self) -> None:
        name = storable_text("the name of a constraint", self.name).strip()
        if not name or any(mark in name for mark in "<>=,"):
            raise InvalidInput(f"a constraint's name is {quoted(self.name)}; it is a column's, without < > = or comma.")
        if name in RESERVED:
            raise InvalidInput(
                f"a constraint cannot be on {name!r}: tables of results have another column of that name."
            )
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "bound", finite_number(f"the bound of {name}", self.bound))
        object.__setattr__(self, "at_most", bool(self.at_most))
        object.__setattr__(
            self, "tolerance", not_negative("tolerance", self.tolerance, f"how far beyond {name} may be.")
        )
        if isinstance(self.noise, str):
            object.__setattr__(self, "noise", parse_noise(self.noise))
        if self.noise is None:
            return
        if not known_scale(self.noise):
            raise InvalidInput(
                f"noise {self.noise.spec!r} of {name} names no scale, and a constraint needs one: subgaussian:SIGMA, "
                "bounded:LOW:HIGH or bernoulli."
            )
        if self.tolerance <= 0.0:
            raise InvalidInput(
                f"the constraint on {name} has noise and no tolerance: a mean right at the bound would be measured for "
                f"ever. Say how far beyond the bound the answer may be: {name}{self.sign}{self.bound:g},tolerance=..."
            )
        check_size("tolerance", self.tolerance)
        check_reach("tolerance", self.tolerance, largest_scale(self.noise))

    @property
    def sign(self) -> str:
        """Of the inequality."""
        return "<=" if self.at_most else ">="

    @property
    def text(self) -> str:
        """From which `parse_constraint` makes it again."""
        tolerance = f",tolerance={self.tolerance!r}" if self.tolerance else ""
        noise = "" if self.noise is None else f",noise={self.noise.spec}"
        return f"{self.name}{self.sign}{self.bound!r}{tolerance}{noise}"

    def __str__(self) -> str:
        return f"{self.name} {'at most' if self.at_most else 'at least'} {self.bound:g}"

    @property
    def relaxed(self) -> str:
        """What holds of the answer, in words."""
        bound = self.bound + (self.tolerance if self.at_most else -self.tolerance)
        return f"{self.name} {'at most' if self.at_most else 'at least'} {bound:g}"


def parse_constraint(text: object) -> Constraint:
    """A constraint from its text, e.g. "temperature<=80,tolerance=0.5,noise=subgaussian:1.2"."""
    found = re.fullmatch(r"([^<>=,]+)(<=|>=)([^,]+)((?:,.*)?)", text.strip()) if isinstance(text, str) else None
    if found is None:
        raise InvalidInput(
            f"constraint {quoted(text)} is not understood; write e.g. 'temperature<=80' or "
            "'temperature<=80,tolerance=0.5,noise=subgaussian:1.2'."
        )
    name, sign, bound, rest = found.groups()
    given: dict[str, str] = {}
    for word in rest.lstrip(",").split(",") if rest else []:
        key, equals, value = word.partition("=")
        if not equals and given:  # a comma inside of the noise
            given["noise"] = f"{given.get('noise', '')},{word}"
            continue
        if key.strip() not in ("tolerance", "noise") or key.strip() in given:
            raise InvalidInput(f"constraint {quoted(text)}: {quoted(word)} is neither tolerance=... nor noise=...")
        given[key.strip()] = value.strip()
    noise = given.get("noise")
    return Constraint(
        name.strip(),
        _number(text, bound),
        sign == "<=",
        _number(text, given.get("tolerance", "0")),
        None if noise is None else parse_noise(noise),
    )


def _number(text: object, word: str) -> float:
    try:
        return float(word)
    except ValueError as error:
        raise InvalidInput(f"constraint {quoted(text)}: {quoted(word)} is no number.") from error
