"""What a cell means as a number: one place decides, for tables, forms and the answers of programs.

People write 1234.5 as 1,234.5, 1.234,5, 1'234.5, 1 234,5 or 12,34,567. Only decimal points and decimal commas can be
mistaken for each other, so a column has one of two notations. `notation` finds it from all of the column's cells, or
says why it cannot: 1,234 alone is never taken for 1.234.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from surepick.core.records import record
from surepick.errors import InvalidInput

POINT, COMMA = ".", ","
OTHER = {POINT: COMMA, COMMA: POINT}
NAMES = {POINT: "points", COMMA: "commas", "'": "apostrophes", " ": "spaces"}
WORD = re.compile(r"\S+")
WORDS_FOR_NOTHING = WORD.findall(
    "n/a na nan none null nil nat missing nothing undefined <na> <null> (null) [null] \\n na_real_ na_integer_ n.a. "
    "n.a n.d. n.d n/d nd n.m. n/m k.a. k.a null! - -- --- – — . .. ... … ? #n/a #na #nv #n/d #n/b #nm "
    "#getting_data #saknas!"
)
MISSING = frozenset(
    {"", *WORDS_FOR_NOTHING, "#n/a n/a", "no data", "no value", "not available", "not applicable", "not measured"}
)
ERROR_OF_A_SHEET = re.compile(r"#[¡¿]?[^\W\d_]+(/0)?[!?]|err:\d{3}")  # #DIV/0!, #WERT!, Err:502
NOT_A_NUMBER = re.compile(r"[+-]?(nan|1?\.?#(ind|qnan|snan))(\(\w*\))?")  # as C libraries write it
SIGNS = str.maketrans(
    dict.fromkeys("\u2212\u2010\u2011\u2012\u2013\ufe63\uff0d", "-")  # minus signs, and hyphens that stand for one
    | dict.fromkeys("\u00a0\u2007\u2009\u202f\u2002\u2003\u2005\u2006\u2008\u200a", " ")
    | dict.fromkeys("\u2019\u2018\u02bc\u00b4\uff07`", "'")
    | {"\uff0b": "+", "\uff0e": ".", "\uff0c": ",", "\uff05": "%", "\uff45": "e", "\uff25": "E"}
    | dict.fromkeys([*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x206A), 0xFEFF, 0xAD])
)
PAIRS = tuple(
    (yes, no)
    for yes, _, no in (
        pair.partition("/")
        for pair in WORD.findall(
            "true/false yes/no pass/fail passed/failed correct/incorrect success/failure t/f y/n .true./.false. "
            "wahr/falsch vrai/faux verdadero/falso vero/falso verdadeiro/falso waar/onwaar sant/falskt prawda/fałsz "
            "истина/ложь ja/nein ja/nej ja/nee oui/non sí/no si/no sim/não да/нет"
        )
    )
)
TRUTHS = {word: value for pair in PAIRS for word, value in zip(pair, (1.0, 0.0), strict=True)}
BITS = frozenset({"0", "1", "0.0", "1.0"})


class NumberText(str):
    """The text of a cell that is a number in the file, so that its point is one."""

    __slots__ = ()


def cell_text(value: object) -> str:
    """The text of a value that some program wrote."""
    if isinstance(value, bytes):  # as some programs write texts into Parquet files
        return value.decode(errors="replace")
    return NumberText(value) if isinstance(value, int | float) and not isinstance(value, bool) else str(value)


@record
class Written:
    """What is declared of how numbers are written, or known from the file."""

    decimal: str | None = None  # "." or ","; None: each column shows it
    percent: bool = False  # a cell like 1.3% is 0.013; else it is no number
    continental: bool = False  # semicolons part the cells, as where commas are decimal


@record
class Notation:
    """How the numbers of a column are written."""

    decimal: str = POINT  # "." or ","
    truths: bool = False  # the cells are words for yes and no, or 0 and 1
    question: str = ""  # what is not clear; "" where all is
    cure: str = ""  # what settles it
    notes: tuple[str, ...] = ()  # what was understood that is not plain, for whoever owns the table

    @property
    def doubt(self) -> str:
        """The question, and what settles it; "" where all is clear."""
        return f"{self.question} {self.cure}".strip()

    @staticmethod
    def of(cells: Sequence[str], how: Written) -> "Notation":
        """How the numbers of a column are written; a cell that is a plain number is parsed once."""
        distinct, seen = tuple(dict.fromkeys(cells)), _Seen()
        for cell in distinct:
            seen.add(cell)
        if seen.words and _are_truths(distinct):
            said = sorted({cell.strip(): value for cell in distinct if (value := truth(cell)) is not None}.items())[:4]
            shown = ", ".join(f"{word!r} is {value:g}" for word, value in said)
            return Notation(truths=True, notes=(f"we read words as numbers: {shown}",))
        found = Notation(how.decimal) if how.decimal else seen.decided(continental=how.continental)
        notes = () if found.question else _notes([*seen.marked, *seen.lone.values()], found.decimal)
        return replace(found, notes=tuple(notes))


def declared_decimal(decimal: str | None, thousands: str | None) -> str | None:
    """What stands before decimals, from the two options; None: they do not say."""
    if decimal not in (None, *OTHER):
        raise InvalidInput(f"decimal is {decimal!r}; it is '.' or ','.")
    if thousands not in (None, *NAMES):
        raise InvalidInput(f'thousands is {thousands!r}; it is ",", ".", an apostrophe or a space.')
    if decimal is not None and decimal == thousands:
        raise InvalidInput(f"decimal and thousands are both {decimal!r}; no mark can be both.")
    return decimal or OTHER.get(thousands or "")


def is_missing(cell: str) -> bool:
    """The text holds no value: it is empty, or a word for that such as n/a, or a spreadsheet's error."""
    word = cell.strip().lower()
    return word in MISSING or bool(ERROR_OF_A_SHEET.fullmatch(word) or NOT_A_NUMBER.fullmatch(word))


def truth(cell: str) -> float | None:
    """1 for a word such as true, 0 for one such as false, None for any other."""
    return TRUTHS.get(cell.strip().lower())


def cell_number(text: str, *, decimal: str = POINT, percent: bool = False) -> float | None:
    """The number that a text means, or None; `decimal` must be sure. With `percent` a hundredth of it before a %."""
    if decimal == POINT and (plain := number_or_none(text)) is not None:
        return plain
    body = text.translate(SIGNS).strip()
    if not percent or not body.endswith("%"):
        return _value(body, decimal)
    body = body[:-1].rstrip()
    number = _value(body, decimal)
    if number is None:
        return None
    try:
        return float(f"{_plain(body, decimal)}e-2")  # the nearest to 0.013, which 1.3 / 100 need not be
    except ValueError:  # the number has an exponent, or is not finite
        return number / 100


def number_or_none(text: str) -> float | None:
    """The number that a text is to a program: digits, a point, an exponent; None if it is none."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def lone_number(text: str) -> float | None:
    """The number that a cell means which stands alone, e.g. in a form; None: it is none."""
    found = Notation.of([text], Written())
    if found.question and COMMA in text:
        one, other = _readings(text, COMMA)
        raise InvalidInput(
            f"{_shown(text)} could be {one} or {other}: write it with a decimal point, without thousands."
        )
    return cell_number(text, decimal=found.decimal)


class _Seen:
    """What the cells of a column show of their notation. `sure` has the first cell that is a number in one notation
    only, by its decimal mark; `groups` whether the other mark surely stands between thousands (1.234.567 or 1.234,5);
    `lone` the first like 1,234, by the mark in it."""

    def __init__(self) -> None:
        self.sure: dict[str, str] = {}
        self.groups: set[str] = set()
        self.lone: dict[str, str] = {}
        self.words = False  # such as true
        self.whole = ""  # a number without any mark
        self.marked: list[str] = []  # all that is more than digits and a point

    def add(self, cell: str) -> None:
        """Look at a cell."""
        if number_or_none(cell) is not None:
            if POINT in cell:
                if not isinstance(cell, NumberText) and POINT not in self.sure and LONE[POINT].fullmatch(cell.strip()):
                    self.lone.setdefault(POINT, cell)
                else:
                    self.sure.setdefault(POINT, cell)
            elif not self.whole and not isinstance(cell, NumberText) and WHOLE_NUMBER.fullmatch(cell.strip()):
                self.whole = cell
            return
        body = cell.translate(SIGNS).strip()
        body = body[:-1].rstrip() if body.endswith("%") else body
        values = {mark: _value(body, mark) for mark in OTHER}
        if values[POINT] is None and values[COMMA] is None:
            self.words = self.words or truth(cell) is not None
            return
        self.marked.append(cell)
        for mark, value in values.items():
            if value is not None and values[OTHER[mark]] is None:
                self.sure.setdefault(mark, cell)
                if body.count(OTHER[mark]) > 1 or (OTHER[mark] in body and mark in body):
                    self.groups.add(OTHER[mark])
        if None not in values.values() and values[POINT] != values[COMMA]:
            self.lone.setdefault(COMMA if COMMA in body else POINT, cell)

    def decided(self, *, continental: bool) -> Notation:
        """How the numbers are written, or what is not clear."""
        if len(self.sure) == 2:
            one, two = self.sure[POINT], self.sure[COMMA]
            question = f"{_shown(one)} has a decimal point, and {_shown(two)} a decimal comma."
            return Notation(question=question, cure="Write one of the two everywhere, and nothing between thousands.")
        for mark, cell in self.sure.items():
            other = OTHER[mark]
            return Notation(mark) if other in self.groups else self._unless_lone(other, beside=cell, decimal=mark)
        if COMMA in self.lone or continental or self.whole:
            return self._unless_lone(COMMA if COMMA in self.lone else POINT, beside=self.whole)
        return Notation()

    def _unless_lone(self, mark: str, *, beside: str, decimal: str = POINT) -> Notation:
        """The notation, unless a cell has this mark before three digits: it could stand between thousands, or not."""
        if mark not in self.lone:
            return Notation(decimal)
        cell, words = self.lone[mark], f"beside {_shown(beside)}, " if beside else ""
        one, two = _readings(cell, mark)
        return Notation(
            question=f"{words}is {_shown(cell)} the number {one} or {two}?",
            cure=f'Give --decimal {mark} or --thousands {mark} (in Python: decimal="{mark}" or thousands="{mark}").',
        )


def _grouped(mark: str) -> str:
    """Digits with a mark between thousands, in the West or in India."""
    return rf"[1-9]\d{{0,2}}(?:{mark}\d{{3}})+|[1-9]\d?(?:{mark}\d\d)+{mark}\d{{3}}"


WHOLE = {mark: "|".join(map(_grouped, (re.escape(OTHER[mark]), "'", " "))) for mark in OTHER}
NUMBER = {
    mark: re.compile(
        rf"[+-]?(?:(?:\d+(?:{re.escape(mark)}\d*)?|{re.escape(mark)}\d+)(?:[eE][+-]?\d+)?"
        rf"|(?:{WHOLE[mark]})(?:{re.escape(mark)}\d*)?)"
    )
    for mark in OTHER
}
LONE = {mark: re.compile(rf"[+-]?[1-9]\d{{0,2}}{re.escape(mark)}\d{{3}}") for mark in OTHER}
WHOLE_NUMBER = re.compile(r"[+-]?\d+")


def _plain(body: str, decimal: str) -> str:
    """A number as Python writes it."""
    for mark in (OTHER[decimal], "'", " "):
        body = body.replace(mark, "")
    return body.replace(decimal, POINT)


def _value(body: str, decimal: str) -> float | None:
    if NUMBER[decimal].fullmatch(body):
        return float(_plain(body, decimal))
    if COMMA in body or POINT in body or "_" in body:
        return None
    try:
        return float(body)  # inf, nan
    except ValueError:
        return None


def _readings(cell: str, mark: str) -> list[str]:
    """What a cell is with a mark before decimals, and with it between thousands."""
    body = cell.translate(SIGNS).strip(" %")
    return [f"{cell_number(body, decimal=one):.15g}" for one in (mark, OTHER[mark])]


def _shown(cell: str) -> str:
    return repr(cell.strip()[:40])


def _notes(cells: Iterable[str], decimal: str) -> Iterable[str]:
    """What was understood, each kind once with an example."""
    found: dict[str, str] = {}
    for cell in cells:
        if (number := cell_number(cell, decimal=decimal, percent=True)) is None:
            continue
        body = cell.translate(SIGNS).strip()
        kinds = [f"{NAMES[mark]} between thousands" for mark in (OTHER[decimal], "'", " ") if mark in body.rstrip("% ")]
        if decimal == COMMA and COMMA in body:
            kinds.append("commas as decimal points")
        if not kinds and cell.strip() != body:
            kinds.append("signs that are not on a keyboard as plain ones")
        for kind in kinds:
            found.setdefault(kind, f"{_shown(cell)} is {number:.15g}")
    return [f"we read {kind}: {example}" for kind, example in found.items()]


def _are_truths(cells: Iterable[str]) -> bool:
    """The cells that hold something are words of one pair for yes and no, beside 0 and 1 at most."""
    words = {cell.strip().lower() for cell in cells}
    words = {word for word in words if word not in MISSING}
    if words <= BITS or len(words) > 2 + len(BITS):
        return False
    # beside a pair of words may stand 0 and 1, but not beside letters: these are words only where nothing else stands
    beside = ((pair, {*pair, *(BITS if len(pair[0]) > 1 else ())}) for pair in PAIRS)
    return any(words <= both and (pair[0] in words or not pair[1].startswith("fail")) for pair, both in beside)
