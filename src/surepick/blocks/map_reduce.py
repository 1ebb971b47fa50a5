"""Passes over blocks of rows: a function of each block, and a sum of what comes out, in a fixed tree."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from surepick.blocks.rows import Block, RowBlocks
from surepick.core.arrays import FloatArray
from surepick.core.notes import announce

T = TypeVar("T")
OfBlock = Callable[[FloatArray, int], T]  # (rows, number of the first one) -> what they say
Combine = Callable[[T, T], T]
Run = Sequence[Block]  # neighbours that one worker goes through at a time


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass that was made.

    Args:
        name: what for.
        rows, num_bytes: read.
        seconds: that it took.
    """

    name: str
    rows: int
    num_bytes: int
    seconds: float


@dataclass
class Meter:
    """What passes took, and how far the present one is.

    Args:
        watch: called after each run of blocks with (name, rows seen, rows of the pass, seconds to come); None: nobody
            watches.
        passes: made so far.
    """

    watch: Callable[[str, int, int, float], None] | None = None
    passes: list[Pass] = field(default_factory=list)

    @property
    def num_bytes(self) -> int:
        """Read by all passes."""
        return sum(one.num_bytes for one in self.passes)

    def watched(self, name: str, runs: Sequence[Run], results: Iterable[T]) -> Iterator[T]:
        """The results, one a run of blocks, noted as they come."""
        total, seen, size, began = sum(one.stop - one.start for run in runs for one in run), 0, 0, time.monotonic()
        for run, result in zip(runs, results, strict=True):
            seen += sum(block.stop - block.start for block in run)
            size += sum((block.stop - block.start) * block.source.row_bytes for block in run)
            to_come = (time.monotonic() - began) * (total - seen) / seen
            if run is runs[0]:
                announce(to_come, f"Going through {total:,} rows ({name}).")
            if self.watch is not None:
                self.watch(name, seen, total, to_come)
            yield result
        self.passes.append(Pass(name, seen, size, time.monotonic() - began))


class Executor(Protocol):
    """Who does the work of a pass. Whoever it is, the result is the same to the last bit."""

    def reduced(self, blocks: Sequence[Block], function: OfBlock[T], combine: Combine[T], meter: Meter, name: str) -> T:
        """`tree` of the function of each block."""
        ...


@dataclass(frozen=True, slots=True)
class Serial:
    """This process, a block after the other."""

    def reduced(self, blocks: Sequence[Block], function: OfBlock[T], combine: Combine[T], meter: Meter, name: str) -> T:
        return tree(meter.watched(name, runs_of(blocks), (applied(function, block) for block in blocks)), combine)


def runs_of(blocks: Sequence[Block], size: int = 1) -> list[Run]:
    """The blocks in runs of 2^n neighbours, the last one perhaps of fewer.

    Such a run is a part of `tree`, so that the tree of the sums of runs is the tree of the blocks, bit for bit.

    Args:
        size: 2^n.
    """
    return [blocks[first : first + size] for first in range(0, len(blocks), size)]


def applied(function: OfBlock[T], block: Block) -> T:
    """What the function says of a block."""
    return function(block.read(), block.first)


def tree(values: Iterable[T], combine: Combine[T]) -> T:
    """The sum of at least one value, of neighbours in a tree that depends on their number alone.

    The first two make one, the next two make one, these two make one, ..., as the digits of a binary counter carry;
    what is left at the end is added from its end. So few are held at a time, and rounding is the same for whoever
    formed them.
    """
    held: list[tuple[int, T]] = []
    for value in values:
        height, found = 0, value
        while held and held[-1][0] == height:
            found = combine(held.pop()[1], found)
            height += 1
        held.append((height, found))
    _, result = held.pop()
    while held:
        result = combine(held.pop()[1], result)
    return result


@dataclass(frozen=True)
class Passes:
    """Rows, who goes through them, and what that took.

    Args:
        rows: in blocks.
        executor: who does the work.
        meter: what passes took.
    """

    rows: RowBlocks
    executor: Executor = field(default_factory=Serial)
    meter: Meter = field(default_factory=Meter)

    def map_reduce(self, name: str, function: OfBlock[T], combine: Combine[T]) -> T:
        """One pass: the sum of what a function says of each block.

        Args:
            name: what the pass is for, in a word or two.
            function: (rows, number of the first one) -> what they say; a function of a module or a partial of one, so
                that other processes know it.
            combine: an associative sum of two neighbours, the earlier one first.

        Raises:
            InvalidInput: a block cannot be read, or has NaN or an infinite number.
        """
        return self.executor.reduced(self.rows.blocks(), function, combine, self.meter, name)
