"""How numbers are written and where they lie on a picture: digits, units, ticks, places in per cent."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Decimal

MINUS = "\N{MINUS SIGN}"
PAD = 2.0  # per cent of a plot that is left free at both its ends
DIGITS = 3  # of numbers where no tolerance says how many matter
MOST_DECIMALS = 12
LARGEST_PLAIN = 1e15


def decimals_for(tolerance: float, values: Iterable[float] = ()) -> int:
    """Decimals in which differences are written: one digit more than the tolerance has (5: 4.8; 0.5: 0.86)."""
    if tolerance > 0:
        exponent = math.floor(math.log10(tolerance))
        written = -int(Decimal(f"{tolerance:.6g}").normalize().as_tuple().exponent)
        return min(max(written + 1 if written > 0 else (1 if exponent < 2 else 0), 1 - exponent, 0), MOST_DECIMALS)
    sizes = [abs(value) for value in values if value and math.isfinite(value)]
    largest = max(sizes, default=1.0)
    return min(max(DIGITS - 1 - math.floor(math.log10(largest)), 0), MOST_DECIMALS)


def number(value: float, decimals: int) -> str:
    """A number with so many decimals, and a minus that is one."""
    return _written(value, decimals, ROUND_HALF_EVEN)


def upper(bound: float, decimals: int) -> str:
    """An upper bound, never less than it is."""
    return _written(bound, decimals, ROUND_CEILING)


def signed(bound: float, decimals: int) -> str:
    """An upper bound on a difference, with its sign."""
    text = upper(bound, decimals)
    return text if text.startswith(MINUS) or float(text.replace(",", "")) == 0 else f"+{text}"


def asked(tolerance: float) -> str:
    """A tolerance as it was asked for."""
    return f"{tolerance:,.6g}" if tolerance < LARGEST_PLAIN else f"{tolerance:.6g}"


def _written(value: float, decimals: int, rounding: str) -> str:
    if not math.isfinite(value) or abs(value) >= LARGEST_PLAIN:
        return f"{value:.4g}".replace("-", MINUS)
    exact = Decimal(repr(float(value))).quantize(Decimal(1).scaleb(-decimals), rounding)
    return f"{abs(exact) if exact == 0 else exact:,}".replace("-", MINUS)


def in_points(unit: str) -> str:
    """The unit of a difference: points, where the unit is per cent."""
    return "points" if unit == "%" else unit


def with_unit(text: str, unit: str) -> str:
    """A number and its unit, if it has one."""
    return f"{text}\N{NO-BREAK SPACE}{unit}" if unit else text


@dataclass(frozen=True, slots=True)
class Scale:
    """From numbers to places in per cent of the width, better numbers at the right."""

    low: float
    high: float
    mirrored: bool = False  # small numbers are better
    start: float = PAD
    end: float = 100.0 - PAD

    @staticmethod
    def over(values: Iterable[float], *, mirrored: bool = False) -> "Scale":
        """One that shows all of these numbers."""
        found = list(values)
        low, high = min(found), max(found)
        if high - low <= 1e-12 * max(abs(low), abs(high)):
            room = 0.5 * max(abs(low), 1.0) if low else 1.0
            low, high = low - room, high + room
        return Scale(low, high, mirrored)

    def at(self, value: float) -> float:
        """Where a number lies, in per cent; at the edge if it is outside."""
        share = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + (1.0 - share if self.mirrored else share) * (self.end - self.start)

    def ticks(self, most: int = 5) -> list[float]:
        """Round numbers in the range, 1, 2 or 5 times a power of ten apart."""
        step = nice_step((self.high - self.low) / most)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [float(f"{count * step:.12g}") for count in range(first, last + 1)][: most + 1]


def nice_step(least: float) -> float:
    """1, 2 or 5 times a power of ten, at least this."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1.0, 2.0, 5.0, 10.0) if factor * power >= least * (1.0 - 1e-9))


def tick_label(value: float) -> str:
    """A tick's number as short as it can be."""
    size = abs(value)
    plain = size == 0 or 1e-4 <= size < 1e6
    return (f"{value:,.10g}" if plain else f"{value:.3g}").replace("-", MINUS)
