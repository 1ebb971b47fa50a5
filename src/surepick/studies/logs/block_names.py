"""Names of blocks: texts with one canonical form, and what results say of each block."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np

from surepick.core.names import is_missing_text, one_form, written
from surepick.core.observations import BlockTotals
from surepick.core.plan import Blocking
from surepick.errors import InvalidInput
from surepick.studies.logs.base import Log, Results
from surepick.text import quoted, seen

ZEROS = re.compile(r"^([+-]?)0+(?=[0-9]+(?:[.,][0-9]*)?$)")  # of 007, which is seed 7


def canonical_blocks(blocking: Blocking | None, blocks: Sequence[object] | None, number: int) -> tuple[str, ...] | None:
    """The names of the blocks of results; None in a study without blocks.

    Args:
        blocking: what the study says of blocks.
        blocks: as they were given.
        number: of the results.

    Raises:
        InvalidInput: blocks are given and the study has none, are missing where it has some, or are no names.
    """
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
    found = tuple(_one_block(f"a {name}", one) for one in given)
    if "" in found:
        raise InvalidInput(
            f"result {found.index('') + 1} has no {name}; each result names its own. Nothing was stored."
        )
    return found


def _one_block(what: str, block: object) -> str:
    """The one form of the name of a block, "" of none: as of any name, and a number is it with zeros before it, too."""
    text = written(what, block)
    return "" if is_missing_text(text) else one_form(what, ZEROS.sub(r"\1", seen(text)))


def block_totals(results: Sequence[Results], *, sign: float) -> BlockTotals | None:
    """What was measured in each block, each sum formed exactly, so that the order of arrival changes no bit.

    Args:
        results: of a plan.
        sign: 1, or -1 where small rewards are good.

    Returns:
        None where results name no blocks.
    """
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
    """Refuse a second measurement of an arm in a block, where a study has one each.

    Raises:
        InvalidInput: there is one.
    """
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
    """Refuse results in a block that an earlier plan had, where a block is of one plan.

    Args:
        news: of the open plan.
        number: of that plan.

    Raises:
        InvalidInput: there are some.
    """
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
