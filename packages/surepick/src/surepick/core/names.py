"""One form of the names that people and programs write (keys of results, blocks), and what stands for no name.

A table passes through spreadsheets, pandas and databases before it comes back, and each writes numbers, white space
and missing cells in its own way. Names are compared in one form, so that what came back is what went out.
"""

import re
import unicodedata
from decimal import Decimal

import numpy as np

from surepick.core.values import is_absent, storable_text, text_of
from surepick.errors import InvalidInput
from surepick.text import quoted, seen

WHOLE, FRACTION, EXPONENT = r"(?:0|[1-9][0-9]*)", r"[0-9]+", r"(?:[eE][+-]?[0-9]{1,3})?"
NUMBER = re.compile(rf"[+-]?(?:{WHOLE}[.,]?|{WHOLE}?[.,]{FRACTION}){EXPONENT}")
GROUPED = re.compile(  # 1,234,567 and 1,234.5 and 1.234,5, where what parts thousands is no decimal point
    r"[+-]?[1-9][0-9]{0,2}(?:(?:,[0-9]{3}){2,}|(?:,[0-9]{3})+\.[0-9]+|(?:\.[0-9]{3})+,[0-9]+)"
)
TWO_READINGS = re.compile(r"[+-]?[1-9][0-9]{0,2},[0-9]{3}")  # 1,234 is more than 1, or more than 1000
MARKS = str.maketrans("．，＋－\u2212", ".,+--")
ROUNDED_FROM = Decimal(10) ** 11  # from here on spreadsheets write numbers with an exponent, and leave digits out
WRITTEN_OUT = 30  # zeros behind the point; a number of more is written with an exponent
MISSING_TEXTS = frozenset({"nan", "<na>", "nat", "none", "null", "#n/a"})  # what programs write where nothing is


def is_missing_text(text: str) -> bool:
    """Whether the text is one that programs write for a missing value, "nan" or "<NA>"."""
    return text.strip().lower() in MISSING_TEXTS


def written(what: str, value: object) -> str:
    """The text of a name; "" where the value says that there is none."""
    if is_absent(value):
        return ""
    if isinstance(value, bool | np.bool_ | bytes | bytearray) or value is np.ma.masked:
        raise InvalidInput(
            f"{what} is {quoted(value)}, a {type(value).__name__}; give a text or a whole number, e.g. '7'."
        )
    if isinstance(value, float | np.floating):
        digits = np.finfo(value.dtype if isinstance(value, np.floating) else float).nmant + 1
        if not abs(float(value)) < 2.0**digits:
            raise InvalidInput(
                f"{what} is {quoted(value)}, a number with decimals, which holds {digits} binary digits: others of so "
                "many digits would be the same. Read the column as text, as it stands in the file."
            )
    return storable_text(what, text_of(what, value))


def one_form(what: str, text: str) -> str:
    """The one form of a name that was written.

    Unicode NFC; each run of white space is one space, and there is none around it; characters that are not seen are
    left out. A number is written with its digits alone: "7" for 7.0, 7,0, +7 and 7e0. A number that begins with a 0
    that a number does not need ("007") is a text. One that ends with such a 0 (2.50) is refused: 1.1 and 1.10 are one
    number to every program, and may be two samples.
    """
    plain = seen(text)
    number = plain  # with the digits and marks of any script as those of ASCII
    if not plain.isascii():
        number = "".join(str(unicodedata.decimal(one)) if one.isdecimal() else one for one in plain.translate(MARKS))
    if TWO_READINGS.fullmatch(number):
        raise InvalidInput(
            f"{what} is {quoted(text)}, which is {number.replace(',', '')} or {number.replace(',', '.')}: write it "
            "without a comma, or give a name that is no number. Nothing of this call was stored."
        )
    if GROUPED.fullmatch(number):
        separator = next(mark for mark in number if mark in ".,")
        return _number(Decimal(number.replace(separator, "").replace(",", ".")))
    if not NUMBER.fullmatch(number):
        return plain
    value = Decimal(number.replace(",", "."))
    if "e" in number.lower() and abs(value) >= ROUNDED_FROM:
        raise InvalidInput(
            f"{what} is {quoted(text)}: a program that writes a number so has left digits out, and others would be the "
            "same. Write all its digits (in a spreadsheet: as text). Nothing of this call was stored."
        )
    found = _number(value)
    if "." in found and re.search(r"[.,][0-9]*0(?:[eE]|$)", number):
        raise InvalidInput(
            f"{what} is {quoted(text)}, which other programs write {found}, and would be another name then: leave the "
            "0 away, or give a name that is no number, such as 's1.10'. Nothing of this call was stored."
        )
    return found


def is_number(text: str) -> bool:
    """Whether a name is a number in its one form."""
    return NUMBER.fullmatch(text) is not None


def _number(value: Decimal) -> str:
    """A number without a sign of + and without zeros that it does not need."""
    sign, digits, last = value.as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    kept = text.rstrip("0")
    exponent = int(last) + len(text) - len(kept)  # of a number that is finite it is one
    if not kept:
        return "0"
    minus = "-" * sign
    if exponent >= 0:
        return minus + kept + "0" * exponent
    if len(kept) + exponent < -WRITTEN_OUT:
        return f"{minus}{kept}e{exponent}"
    padded = kept.zfill(1 - exponent)
    return f"{minus}{padded[:exponent]}.{padded[exponent:]}"
