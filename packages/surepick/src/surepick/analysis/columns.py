"""Which column of a table is what, where nobody said so: only what can hardly be meant otherwise is taken."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from surepick.core.records import FloatArray, record
from surepick.errors import InvalidInput
from surepick.tables import Names, Table, column_names
from surepick.tables.selection import counts_rows, looks_numeric
from surepick.text import quoted

CANDIDATE_WORDS = (
    "model models candidate arm variant method algorithm system agent policy treatment group condition config "
    "configuration setting strategy solver compiler optimizer classifier estimator learner player team product design "
    "version provider"
)
ITEM_WORDS = (
    "item items question task problem prompt sample instance example doc document query testcase case puzzle dataset "
    "benchmark subject participant user rater block plate day seed"
)
PULLS_WORDS = "impressions pulls trials n count views visitors users sessions shown sent"
REPEAT_WORDS = "run rep repeat repetition replicate replication trial attempt try iteration"  # these count rows
SCORE_WORDS = "score reward correct is_correct right accuracy acc success passed rating exact_match"
SUM_WORDS = "clicks sum successes ones wins conversions hits purchases correct"
TOTAL_WORDS = f"{PULLS_WORDS} {SUM_WORDS} squares sum_of_squares total"
DATE_WORDS = "date dates datetime timestamp day week month year hour created updated"
SMALL_WORDS = (  # of which small ones may be good, or large ones
    "time runtime duration latency second seconds sec secs ms milliseconds minutes hours cost costs loss losses error "
    "errors rmse mae mse perplexity"
)
WORDS = (CANDIDATE_WORDS, ITEM_WORDS, REPEAT_WORDS, SCORE_WORDS, PULLS_WORDS, SUM_WORDS)
CANDIDATES, ITEMS, REPEATS, SCORES, PULLS, SUMS = (frozenset(words.split()) for words in WORDS)
TOTALS, DATES, SMALL = (frozenset(words.split()) for words in (TOTAL_WORDS, DATE_WORDS, SMALL_WORDS))
PARTS = re.compile(r"[^a-z]+")  # what stands between the words of a name
SHOWN = 12  # candidates that are named
ROWS, ALL = "rows", "all"  # each row is a candidate


@record
class Columns:
    """What the columns of a table are."""

    id: Names | None = None  # of the candidates
    reward: Names | None = None  # the measurements
    item: str | None = None  # the test item, block or task of a row, which all candidates have
    across: Names | None = None  # in place of id and reward: a column a candidate, a row an item; "all": of numbers;
    # "rows": a row a candidate, a column of numbers an item
    order: str | None = None  # when a row was measured
    pulls: str | None = None  # in place of the reward: how many measurements a row stands for
    sum: str | None = None  # and their sum
    squares: str | None = None  # and the sum of their squares


def understood(table: Table, columns: Columns) -> Columns:
    """The columns, and those that nobody named where they are unmistakable; else as they were.

    Nothing is taken for its values' sake but what kind they are: words or numbers, how often one recurs, whether all
    are 0 or 1, or lie between.
    """
    if columns.across == ALL and not any((columns.id, columns.reward, columns.pulls, columns.sum)):
        return replace(columns, across=_all(table, columns))
    if columns.across is not None or columns.pulls is not None or columns.sum is not None:
        return columns
    named = [one for one in (columns.id, columns.reward, columns.item, columns.order) if one is not None]
    used = {name for one in named for name in column_names(table, one)}
    rest = [name for name in table.columns if name not in used and not _counts(table, name)]
    numbers = [name for name in rest if looks_numeric(table, name)]
    words = [name for name in rest if name not in numbers]
    if columns.id is None and not (table.usual_id or table.parameters):
        found = None
        if columns.reward is None and columns.order is None:
            found = _totals(table, columns, words, numbers) or _wide(table, columns, words, numbers)
        return found or _long(table, columns, words, numbers) or columns
    if columns.reward is None and not table.measurements and len(numbers) == 1:
        return replace(columns, reward=numbers[0])
    return columns


def said(table: Table, columns: Columns, given: Columns, *, minimize: bool) -> str | None:
    """A sentence that says what was taken for what; None where everything was named."""
    flags = {"id": "--id", "item": "--item", "reward": "--reward", "pulls": "--pulls", "sum": "--sum"}
    parts = {"id": "candidates", "item": "items", "reward": "measurements", "pulls": "how many", "sum": "their sum"}
    new = {name: getattr(columns, name) for name in parts if getattr(columns, name) != getattr(given, name)}
    shown = [f"{parts[name]} = {quoted(value)}" for name, value in new.items()]
    wide = columns.across if columns.across != given.across else None
    if wide == ROWS:
        shown = [f"each row is a candidate, named by {quoted(columns.id)}", "each column of numbers is an item"]
    elif wide is not None:
        shown = [f"{_which(wide)} is a candidate, each row an item"]
    if given.across == ALL:
        passed = [name for name in table.columns if name not in (*(wide or ()), columns.item, columns.order)]
        shown += [f"passed over: {', '.join(map(quoted, passed))}"] * bool(passed)
    if not shown:
        return None
    good = "small ones are good" if minimize else "large ones are good (--minimize: small ones)"
    others = ", ".join(["--across"] * (wide is not None) + [flags[name] for name in new])
    return f"Taken: {'; '.join([*shown, good])}. Name others with {others}."


def direction_is_open(name: str) -> bool:
    """Whether small ones may be good, by the words in the name of a column: time, cost, loss, error, latency."""
    return not SMALL.isdisjoint(PARTS.split(name.lower()))


def about_totals(table: Table) -> str:
    """What to say where columns are called as totals are; "" where none are."""
    found = [name for name in table.columns if _word(name) in TOTALS and looks_numeric(table, name)]
    if not found or not any(_word(name) in PULLS for name in found):
        return ""
    names = ", ".join(map(quoted, found))
    return (
        f" Or are {names} totals? Then say --id, --pulls (how many), --sum (their sum), and of measurements that are "
        "not 0 and 1 --squares (the sum of their squares), in Python pulls=, sum=, squares=."
    )


def _all(table: Table, columns: Columns) -> tuple[str, ...]:
    """The columns that are candidates where all are: numbers that neither count, nor are times or items, nor constant.

    Among shares a column of 1 is no constant, but somebody who is always right, and so is one of 0.
    """
    used = {name for one in (columns.item, columns.order) if one is not None for name in column_names(table, one)}
    rest = [
        name
        for name in table.columns
        if name not in used and looks_numeric(table, name) and not _counts(table, name) and _may_be_measured(name)
    ]
    cells = {name: table.numbers_or_missing(name) for name in rest}
    known = {name: values[~np.isnan(values)] for name, values in cells.items()}
    shares = all(are_shares(values) for values in known.values())
    different = {name: np.unique(values) for name, values in known.items()}
    found = tuple(name for name in rest if len(different[name]) > 1 or (shares and set(different[name]) <= {0.0, 1.0}))
    if len(found) < 2:
        raise InvalidInput(
            f"{table.source}: of its columns {', '.join(map(quoted, found)) or 'none'} may be a candidate: all are "
            "numbers that neither count rows, nor are times, items or all alike. Name two or more with --across 'a,b' "
            "(across=)."
        )
    return found


def _may_be_measured(name: str) -> bool:
    return _word(name) not in ITEMS | DATES


def _which(names: Names) -> str:
    if isinstance(names, str) or len(names) > SHOWN:
        return f"each column from {quoted(names[0])} to {quoted(names[-1])}"
    return f"each of the columns {', '.join(map(quoted, names))}"


def _counts(table: Table, name: str) -> bool:
    """The column numbers the rows, or those of each candidate."""
    return counts_rows(table, name) or (_word(name) in REPEATS and looks_numeric(table, name))


def _word(name: str) -> str:
    """A name without its ending: Model_ID is model."""
    word = name.strip().lower().replace(" ", "_").replace("-", "_")
    for ending in ("_id", "_name", "_nr", "_no"):
        word = word.removesuffix(ending)
    return word


def _wide(table: Table, columns: Columns, words: Sequence[str], numbers: Sequence[str]) -> Columns | None:
    """A column a candidate, or a row a candidate, if all numbers are shares (`are_shares`, `are_percentages`)."""
    label = columns.item or (words[0] if len(words) == 1 else None)
    if label is None and not words:
        label = next((name for name in numbers if _word(name) in ITEMS | CANDIDATES), None)
    rest = [name for name in numbers if name != label and _word(name) not in ITEMS]
    if not set(words) <= {label} or len(rest) < 2 or table.num_rows < 2:
        return None
    cells = np.stack([table.numbers_or_missing(name) for name in rest])
    cells = cells[~np.isnan(cells)]
    twice = label is not None and len(set(table.text(label))) < table.num_rows
    if twice or not (are_shares(cells) or are_percentages(cells)):
        return None
    if label is None:
        found = replace(columns, across=tuple(rest)) if np.all((cells == 0.0) | (cells == 1.0)) else None
    elif columns.item is not None or _word(label) in ITEMS:
        found = replace(columns, across=tuple(rest), item=label)
    else:
        found = replace(columns, across=ROWS, id=label) if _word(label) in CANDIDATES else None
    return found


def are_shares(values: FloatArray) -> bool:
    """All lie between 0 and 1."""
    return bool(np.all((values >= 0.0) & (values <= 1.0)))


def are_percentages(values: FloatArray) -> bool:
    """All lie between 0 and 100, and both occur: whatever has these ends has no others."""
    return bool(np.all((values >= 0.0) & (values <= 100.0)) and np.any(values == 0.0) and np.any(values == 100.0))


def _totals(table: Table, columns: Columns, words: Sequence[str], numbers: Sequence[str]) -> Columns | None:
    """Columns that are called how many there are and how many of them are 1."""
    pulls = [name for name in numbers if _word(name) in PULLS]
    sums = [name for name in numbers if _word(name) in SUMS]
    if len(words) != 1 or len(pulls) != 1 or len(sums) != 1 or len(numbers) > 2 or columns.item is not None:
        return None
    many, ones = (table.numbers_or_missing(one[0]) for one in (pulls, sums))
    whole = np.all((many == np.floor(many)) & (ones == np.floor(ones)) & (ones >= 0.0) & (ones <= many))
    return replace(columns, id=words[0], pulls=pulls[0], sum=sums[0]) if whole else None


def _long(table: Table, columns: Columns, words: Sequence[str], numbers: Sequence[str]) -> Columns | None:
    """A row a measurement: one column of names that recur, perhaps one of items, and one of numbers."""
    named = [name for name in numbers if _word(name) in ITEMS | CANDIDATES]
    labels = [name for name in (*words, *named) if _recurs(table, name)]
    pair = _candidates_and_items(table, labels) if columns.item is None else (*labels[:1], columns.item)
    if len(pair) < 2 or pair[0] is None or (columns.item is not None and len(labels) > 1):
        return None
    measured = [name for name in numbers if name not in named]
    scores = [name for name in measured if _word(name) in SCORES]
    one = next((found[0] for found in (measured, scores) if len(found) == 1), None)  # else it is asked for
    return replace(columns, id=pair[0], item=pair[1], reward=columns.reward or one)


def _recurs(table: Table, name: str) -> bool:
    """The cells are not all equal, and each can stand in two rows or more, as those of candidates and items do."""
    return 2 <= len(set(table.text(name))) <= table.num_rows / 2


def _candidates_and_items(table: Table, labels: Sequence[str]) -> tuple[str | None, str | None]:
    """Which column names candidates, and which items; others say nothing if no two rows have equal cells in both."""
    of_items = [name for name in labels if _word(name) in ITEMS]
    of_candidates = [name for name in labels if _word(name) in CANDIDATES]
    if len(labels) == 1:
        return (None, None) if of_items else (labels[0], None)
    if len(of_items) > 1 or len(of_candidates) > 1 or not (of_items or of_candidates):
        return None, None
    who = of_candidates[0] if of_candidates else next(name for name in labels if name not in of_items)
    item = of_items[0] if of_items else next(name for name in labels if name != who)
    pairs = len(set(zip(table.text(who), table.text(item), strict=True)))
    both = bool(of_items and of_candidates)
    if (len(labels) > 2 and not (both and pairs == table.num_rows)) or not (both or _crossed(table, who, item)):
        return None, None
    alone = pairs == len(set(table.text(item)))  # each is of one candidate: nothing is in common
    return who, None if alone else item


def _crossed(table: Table, one: str, other: str) -> bool:
    """Each cell of one column stands beside each of the other equally often."""
    codes = [np.unique(table.text(name), return_inverse=True)[1].reshape(-1) for name in (one, other)]
    counts = np.unique(codes[0] * (1 + codes[1].max()) + codes[1], return_counts=True)[1]
    return len(counts) == np.prod([len(np.unique(code)) for code in codes]) and bool(np.all(counts == counts[0]))
