"""Texts from outside made safe to show: a name, a file or a table may hold any character, and any number of them."""

import difflib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from decimal import Decimal
from html import escape
from itertools import islice
from numbers import Integral, Real

LONGEST = 500  # characters of a message
LONGEST_VALUE = 120  # characters of a value that a message shows
LONGEST_WORD = 60  # characters of a word (a path, a key) in a message that is too long otherwise
BEGINNING = 3  # characters that may stand for a name that begins so
NOT_SEEN = re.compile(  # what has no width and no meaning of its own, beside the categories Cc and Cf
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
MANY_NAMES = 2_000  # of more we look only for one that is the same but for its spelling


def printable(text: str) -> str:
    """The text on one line, with control characters and halves of characters written out as escapes."""
    if text.isprintable():
        return text
    whole = text.encode("utf-8", "backslashreplace").decode()
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in whole)


def shortened(text: str, most: int) -> str:
    """The text in at most so many characters: the beginning and the end of a longer one, with "..." between."""
    if len(text) <= most:
        return text
    kept = most - len("...")
    return f"{text[: kept // 2]}...{text[len(text) - (kept - kept // 2) :]}"


def quoted(value: object) -> str:
    """A value as Python writes it, printable and in at most 120 characters: what was given, in a message."""
    try:
        text = repr(value)
    except Exception:  # of a stranger's class; or an integer of so many digits that Python does not write them
        text = f"<{type(value).__name__}>"
    return shortened(printable(shortened(text, LONGEST)), LONGEST_VALUE)


def one_line(text: str) -> str:
    """A message on one line of at most 500 characters. Where it is longer, its long words are cut first, then its
    middle: what is wrong stands at the beginning, and what to do at the end."""
    line = printable(shortened(text, 20 * LONGEST))
    if len(line) > LONGEST:
        line = " ".join(shortened(word, LONGEST_WORD) for word in line.split(" "))
    return shortened(line, LONGEST)


def money(amount: float) -> str:
    """An amount as people write it, in whatever currency: "0.0035", "7.5", "412.50", "1,204"."""
    size = abs(amount)
    if 0.0 < size < 10.0:
        return f"{amount:.4g}"
    return f"{amount:,.2f}".removesuffix(".00") if size < 1e15 else f"{amount:.4g}"


def about(amount: float) -> str:
    """An amount that is a forecast, to four digits: "3,874", "41.6"."""
    return money(float(f"{amount:.4g}"))


def percent(share: float | Decimal) -> str:
    """A share in percent, with all its digits: "5", "0.0001"."""
    text = f"{Decimal(str(share)) * 100:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def did_you_mean(word: object, known: Iterable[object]) -> str:
    """A question to end a refusal with, " Did you mean 'ID'?"; "" where no known name is like the word."""
    if not isinstance(word, str):
        return ""
    names, typed = [str(name) for name in known], shortened(word, LONGEST_VALUE)
    close = next((name for name in names if _spelling(name) == _spelling(typed)), None)
    if close is None and len(names) <= MANY_NAMES:
        alike = {_spelling(name): name for name in reversed(names) if len(name) <= LONGEST_VALUE}
        begins = [name for name in alike if len(_spelling(typed)) >= BEGINNING and name.startswith(_spelling(typed))]
        found = begins[:1] or difflib.get_close_matches(_spelling(typed), alike, n=1)
        close = alike[found[0]] if found else None
    return "" if close is None or close == word else f" Did you mean {quoted(close)}?"


def _spelling(name: str) -> str:
    """What is the same in all spellings of a name: small letters without marks between them; a number's value."""
    plain = look_of(name)
    return number_look(plain) or plain.casefold().replace("_", "").replace("-", "").replace(" ", "") or plain


def look_of(text: str) -> str:
    """A text as people see it: as `seen`, and letters and digits that are drawn alike are one."""
    plain = seen(text)
    return plain if plain.isascii() else seen(unicodedata.normalize("NFKC", plain))


def looks_as_written(text: str) -> bool:
    """Whether `look_of` surely gives the text as it is, found quickly; "" is none such."""
    return text.isascii() and text.isprintable() and "  " not in text and text == text.strip() != ""


def seen(text: str) -> str:
    """The text without what people do not see: Unicode NFC, single spaces, none around it, no characters of width 0."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split())
    composed = " ".join(unicodedata.normalize("NFC", text).split())
    shown = "".join(one for one in NOT_SEEN.sub("", composed) if unicodedata.category(one) not in ("Cf", "Cc"))
    return unicodedata.normalize("NFC", " ".join(shown.split()))


def number_look(look: str) -> str:
    """The same text for all spellings of one number; "" of a text that is none."""
    try:
        return repr(float(look))
    except ValueError:
        return ""


# --- Records as small HTML tables for notebooks: no script, and no colour, so they read on light and dark pages.

MOST_ROWS = 10
LEFT, RIGHT = ' style="text-align:left"', ' style="text-align:right"'


def html_table(
    head: Sequence[object],
    rows: Iterable[Sequence[object]],
    caption: object = "",
    *,
    total: int | None = None,
    most: int = MOST_ROWS,
) -> str:
    """A table of the first rows, and how many more there are."""
    given = iter(rows)
    shown = [list(row) for row in islice(given, most)]
    left = (sum(1 for _ in given) if total is None else total - len(shown)) if len(shown) == most else 0
    body = ["<tr>" + "".join(map(_cell, row)) + "</tr>" for row in shown]
    if left > 0:
        width = len(head) or max(map(len, shown), default=1)
        body.append(f'<tr><td colspan="{width}"{LEFT}>... and {left:,} more</td></tr>')
    top = f'<caption style="caption-side:top;text-align:left">{_text(caption)}</caption>' if caption else ""
    names = "".join(f"<th{LEFT}>{_text(name)}</th>" for name in head)
    return f"<table>{top}{f'<thead><tr>{names}</tr></thead>' if head else ''}<tbody>{''.join(body)}</tbody></table>"


def _cell(value: object) -> str:
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    return f"<td{RIGHT if is_number else LEFT}>{_text(value)}</td>"


def _text(value: object) -> str:
    if isinstance(value, Real) and not isinstance(value, bool):
        return f"{value:,}" if isinstance(value, Integral) else f"{float(value):.4g}"
    return "" if value is None else escape(shortened(printable(str(value)), LONGEST))
