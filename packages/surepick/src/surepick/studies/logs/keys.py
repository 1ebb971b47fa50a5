"""Keys of results: texts with one canonical form, decided where they enter, so that each result counts once.

    of a leased pull   p<plan>.<ordinal>@<id>, exactly as `ask` wrote it; anything that only looks like one is refused
    of a test item     item<index>@<id>, in the same way
    of the user's own  in the one form of `core.names`: a number is the number, whoever wrote it

Everything behind this file (the log, its tables, the receipts) sees canonical keys only.
"""

import json
import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from surepick.core.names import is_missing_text, is_number, one_form, written
from surepick.core.observations import Answers, BlockTotals, Quantity
from surepick.core.plans import Blocking, Plan
from surepick.core.records import FloatArray, IntArray
from surepick.core.values import listed, text_of, texts_of
from surepick.errors import InvalidInput
from surepick.items import ItemOrder
from surepick.studies.logs.base import Log, Results, Values, pull_key
from surepick.text import look_of, quoted, seen

NUMBERED = "(0|[1-9][0-9]{0,17})"  # as it is written, so that each is one
PULL_KEY = re.compile(rf"p([1-9][0-9]{{0,17}})\.{NUMBERED}@.*", re.DOTALL)
ITEM_KEY = re.compile(rf"item{NUMBERED}@.*", re.DOTALL)
LOOKS_LIKE_ONE = re.compile(
    r"(?:unused)?[^\w@]*(?:p[^\w@]*(\d{1,40})[^\w@]*[.,][^\w@]*(\d{1,40})|item[^\w@]*(\d{1,40}))[^\w@]*@(.*)", re.DOTALL
)
AT_SIGNS = "@\ufe6b\uff20"  # those that NFKC makes an @


def canonical_keys(keys: Sequence[object] | None, names: Sequence[str]) -> tuple[str | None, ...] | None:
    """The canonical form of the keys of results, None for a result without one; None if none was given."""
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
    """The one form in which a key is stored and compared."""
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
    """A key that `ask` gave for that arm, as it wrote it; "" for one of the user's own."""
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


# --- Keys of answers to test items: an arm answers an item once, so that the two of them are the key.

ITEM = "item"  # the column of a table


def _items(results: Results) -> IntArray:
    """The number of the item of each row, shape (n,); -1 where it answers none."""
    return np.full(len(results.arms), -1) if results.items is None else results.items


def set_aside(results: Results) -> Results:
    """The rows under other keys where these are of items: an answer that does not count leaves its item to be asked."""
    if results.keys is None or results.items is None:
        return results
    rows = zip(results.keys, results.items.tolist(), strict=True)
    return replace(results, keys=tuple(key if item < 0 else f"unused {key}" for key, item in rows))


def check_items(plan: Plan, places: IntArray, results: Results, ids: Sequence[str]) -> None:
    """Refuse results of a plan of test items that are no single answers to items that it asked of their arms."""
    items = _items(results)
    known = (items >= 0) & (items < len(places)) & (results.pulls == 1)
    at = np.where(known, places[np.where(known, items, 0)], -1)
    first = np.zeros_like(plan.counts) if plan.first_items is None else plan.first_items
    asked = known & (at >= first[results.arms]) & (at < (first + plan.counts)[results.arms])
    if results.keys is not None:  # by construction: whatever else enters, an answer has one key
        exact = [
            key == item_key(item, ids[arm]) for key, item, arm in zip(results.keys, items, results.arms, strict=True)
        ]
        asked &= np.array(exact, bool)
    wrong = np.flatnonzero(~asked)
    if len(wrong):
        raise InvalidInput(
            f"{len(wrong)} results are not answers to items that the open plan asked of their candidate, the first is "
            f"of {ids[results.arms[wrong[0]]]!r}. Report each answer with its item, as tell(batch, scores) does; which "
            "items are answered must not depend on a hunch. Nothing of this call was stored."
        )


def keys_of(order: ItemOrder | None, ids: Sequence[object], items: Sequence[object]) -> list[str]:
    """The keys of answers of these arms to these items, one a row."""
    if order is None:
        raise InvalidInput("this study has no test items: its measurements are draws; leave the items out.")
    index = {name: item for item, name in enumerate(order.items.ids)}
    names = list(texts_of("items", items))
    unknown = [name for name in names if name not in index]
    if unknown or len(names) != len(ids):
        raise InvalidInput(
            f"{len(unknown)} of {len(names)} items are not items of this study, the first is {unknown[0]!r}."
            if unknown
            else f"there are {len(names)} items for {len(ids)} answers; give one item for each."
        )
    return [item_key(index[item], text_of("an id", name)) for item, name in zip(names, ids, strict=True)]


def with_items(
    order: ItemOrder | None, ids: Sequence[object], items: Sequence[object], keys: Sequence[object] | None
) -> list[str]:
    """The keys of answers of a table that has items; where its own keys are those of items too, they say the same."""
    found = keys_of(order, ids, items)
    given = canonical_keys(keys, [text_of("an id", name) for name in ids]) or ()
    for key, own, item in zip(given, found, items, strict=False):
        if read_item_key(key) >= 0 and key != own:
            raise InvalidInput(
                f"key {quoted(key)} is not that of the item {quoted(item)}, in the same row: the columns of the table "
                "may have been moved against each other. Nothing of this call was stored."
            )
    return found


def answers_of(results: Sequence[Results], *, minimize: bool) -> Answers:
    """What arms answered, in the policy's sign, by arm and item, so that the order of arrival changes nothing."""
    arms = np.concatenate([np.empty(0, np.int64), *(part.arms for part in results)])
    items = np.concatenate([np.empty(0, np.int64), *(_items(part) for part in results)])
    scores = np.concatenate([np.empty(0), *(part.sums for part in results)])
    order = np.lexsort((items, arms))
    return Answers(arms[order], items[order], (-scores if minimize else scores)[order])


# --- Names of blocks: texts with one canonical form, and what results say of each block.

ZEROS = re.compile(r"^([+-]?)0+(?=[0-9]+(?:[.,][0-9]*)?$)")  # of 007, which is seed 7


def canonical_blocks(blocking: Blocking | None, blocks: Sequence[object] | None, number: int) -> tuple[str, ...] | None:
    """The names of the blocks of results; None in a study without blocks."""
    if blocking is None:
        if blocks is None:
            return None
        raise InvalidInput(
            "this study has no blocks: it takes measurements for independent, and cannot use that some share an "
            "effect. Leave the blocks out, or start a study with blocks (surepick create --blocks day)."
        )
    name = blocking.name
    if blocks is None:
        raise InvalidInput(
            f"each result of this study names its {name}: measurements of the same {name} share an effect, which "
            f"cancels only if we know which these are. Give blocks=, or a column {name!r}. Nothing of this call was "
            "stored."
        )
    if isinstance(blocks, str | bytes) or not hasattr(blocks, "__iter__"):
        raise InvalidInput(f"blocks is {quoted(blocks)}; give a sequence with the {name} of each result.")
    given = list(blocks)
    if len(given) != number:
        raise InvalidInput(f"there are {len(given)} blocks for {number} results; give the {name} of each.")
    texts = [written(f"a {name}", one) for one in given]  # a number is it with zeros before it, too
    plain = ["" if is_missing_text(text) else ZEROS.sub(r"\1", seen(text)) for text in texts]
    found = tuple(one_form(f"a {name}", text) if text else "" for text in plain)
    if "" in found:
        raise InvalidInput(
            f"result {found.index('') + 1} has no {name}; each result names its own. Nothing was stored."
        )
    return found


def block_totals(results: Sequence[Results], *, sign: float) -> BlockTotals | None:
    """What was measured in each block, each sum formed exactly, so that the order of arrival changes no bit."""
    if not any(part.blocks is not None for part in results):
        return None
    sums: dict[tuple[str, int], list[float]] = defaultdict(list)
    pulls: Counter[tuple[str, int]] = Counter()
    for part in results:
        rows = zip(part.blocks or (), part.arms.tolist(), part.pulls.tolist(), part.sums.tolist(), strict=True)
        for block, arm, number, total in rows:
            sums[block, arm].append(total)
            pulls[block, arm] += number
    cells = sorted(sums)
    number_of = {name: number for number, name in enumerate(dict.fromkeys(block for block, _ in cells))}
    return BlockTotals(
        np.array([number_of[block] for block, _ in cells], np.int64),
        np.array([arm for _, arm in cells], np.int64),
        np.array([pulls[cell] for cell in cells], np.int64),
        sign * np.array([math.fsum(sums[cell]) for cell in cells]),
    )


def check_once(log: Log, news: Results, ids: Sequence[str], blocking: Blocking) -> None:
    """Refuse a second measurement of an arm in a block, where a study has one each."""
    if not blocking.once:
        return
    pairs = list(zip(news.blocks or (), news.arms.tolist(), strict=True))
    stored = log.in_blocks(list(dict.fromkeys(news.blocks or ())))
    known = Counter(pairs) + Counter({(block, arm) for block, arm, _ in stored})
    twice = [pair for pair, pulls in zip(pairs, news.pulls.tolist(), strict=True) if known[pair] > 1 or pulls > 1]
    if twice:
        block, arm = twice[0]
        raise InvalidInput(
            f"{ids[arm]!r} is measured twice in {block!r}, and this study has each candidate at most once in a block "
            "(once_a_block). Nothing of this call was stored."
        )


def check_anew(log: Log, news: Results, number: int, blocking: Blocking) -> None:
    """Refuse results in a block that an earlier plan had, where a block is of one plan."""
    if not blocking.anew:
        return
    stored = log.in_blocks(list(dict.fromkeys(news.blocks or ())))
    former = sorted({(block, plan) for block, _, plan in stored if plan != number})
    if former:
        block, plan = former[0]
        raise InvalidInput(
            f"{block!r} has results of round {plan}, which is closed: what is measured there now goes together with "
            "what was looked at. Give new names, or leave those that ask gave. Nothing of this call was stored."
        )


# --- Squared deviations from a mean, added up so that an offset of all values costs no digit.

Columns = tuple[IntArray, IntArray, FloatArray, FloatArray | None]


def known_deviations(pulls: IntArray, within: FloatArray | None) -> FloatArray | None:
    """What rows of so many pulls say of their own deviations, shape (n,): 0 of single ones; None: not all say it."""
    return np.zeros(len(pulls)) if within is None and np.all(pulls <= 1) else within


def deviations_of(parts: Iterable[Columns], num_arms: int) -> FloatArray | None:
    """sum (r - mean)^2 of each arm, (K,), the same in any order of the rows; None where some row does not say it.
    Differences from the median row are added up: so equal rewards have exactly 0, and an offset costs no digit."""
    told = []
    for arms, pulls, sums, within in parts:
        own = known_deviations(pulls, within)
        if own is None:
            return None
        some = np.flatnonzero(pulls)
        told.append((arms[some], pulls[some], sums[some] / pulls[some], own[some]))
    found = np.zeros(num_arms)
    if not told:
        return found
    arms, pulls, means, apart = (np.concatenate(columns) for columns in zip(*told, strict=True))
    order, ends = _by_arm(arms, num_arms)
    alone = order[ends[:-1][np.diff(ends) == 1]]
    found[arms[alone]] = np.maximum(apart[alone], 0.0)
    rows = list(zip(means[order].tolist(), pulls[order].tolist(), apart[order].tolist(), strict=True))
    for arm in np.flatnonzero(np.diff(ends) > 1).tolist():
        several = rows[ends[arm] : ends[arm + 1]]
        middle = sorted(several)[(len(several) - 1) // 2][0]
        away = [(mean - middle, number, own) for mean, number, own in several]
        first = math.fsum(number * one for one, number, _ in away)
        second = math.fsum(own + number * one * one for one, number, own in away)
        found[arm] = max(second - first * first / sum(number for _, number, _ in away), 0.0)
    return found


def _by_arm(arms: IntArray, num_arms: int) -> tuple[IntArray, IntArray]:
    """(an order in which the rows of an arm are neighbours, where those of each arm begin in it, (K + 1,))."""
    order = np.argsort(arms, kind="stable")
    return order, np.searchsorted(arms[order], np.arange(num_arms + 1))


# --- Quantities that are measured beside the reward: how they are stored and added up.


def read_values(text: str) -> Values:
    """The totals of each quantity in a row, as they are stored."""
    found = tuple((int(number), float(total), float(squares)) for number, total, squares in json.loads(text))
    if not all(math.isfinite(entry) for one in found for entry in one):
        raise ValueError("a result does not say what was measured beside its reward")
    return found


def from_values(rows: Sequence[Values]) -> tuple[Quantity, ...]:
    """The quantities of rows, n entries each."""
    columns = zip(*rows, strict=True)
    return tuple(Quantity(*map(np.array, zip(*column, strict=True))) for column in columns)


def quantity_totals(results: Sequence[Results], num_arms: int) -> tuple[Quantity, ...] | None:
    """Totals of each quantity, one entry an arm, each formed exactly, so that the order of arrival changes no bit."""
    parts = [part for part in results if part.quantities is not None]
    if not parts:
        return None
    found, arms = [], np.concatenate([part.arms for part in parts])
    for columns in zip(*(part.quantities or () for part in parts), strict=True):
        counts = np.zeros(num_arms, np.int64)
        np.add.at(counts, arms, np.concatenate([one.counts for one in columns]))
        sums = exact_sums(arms, [one.sums for one in columns], num_arms)
        squares = exact_sums(arms, [one.squares for one in columns], num_arms)
        rows = [(part.arms, one.counts, one.sums, one.within) for part, one in zip(parts, columns, strict=True)]
        found.append(Quantity(counts, sums, squares, deviations_of(rows, num_arms)))
    return tuple(found)


def exact_sums(arms: IntArray, values: Sequence[FloatArray], num_arms: int) -> FloatArray:
    """The sum of the values of each arm, each formed exactly, (K,); `arms`: of all parts together."""
    order, ends = _by_arm(arms, num_arms)
    sorted_values, found = np.concatenate([np.empty(0), *values])[order], np.zeros(num_arms)
    alone = np.diff(ends) == 1
    found[alone] = sorted_values[ends[:-1][alone]] + 0.0  # -0.0 as 0.0, as in a sum
    rows = sorted_values.tolist()
    for arm in np.flatnonzero(np.diff(ends) > 1).tolist():
        found[arm] = math.fsum(rows[ends[arm] : ends[arm + 1]])
    return found
