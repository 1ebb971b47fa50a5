"""Measurements by a program that takes many at once: ids on standard input, rewards on standard output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from surepick.errors import InvalidInput
from surepick.studies.runner.program import Outcome, Pair, Running, called, not_read, numbers_in, words_of
from surepick.text import printable


@dataclass(frozen=True, slots=True)
class BatchCommand:
    """A program that measures all that it reads.

    It is given one id a line, an id as often as it is to be measured, and prints one reward a line in the same order.
    Where measurements have blocks the id is followed by a tab and the name of the block.
    A line that is no finite number says that this measurement failed. Another number of lines says nothing about any,
    since nobody knows which line belongs to which id.

    Args:
        template: the command line, split as a shell would but run without one.
        timeout: seconds after which a call and all that it started are killed; None: never.

    Raises:
        InvalidInput: the template is empty, is not well-formed, or says where an id belongs; the time-out is not
            positive.
    """

    template: str
    timeout: float | None = None
    _words: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        words = words_of(self.template, self.timeout)
        if not words:
            raise InvalidInput("--measure-batch names no program; give one that reads ids and prints rewards.")
        if any("{id}" in word or "{pulls}" in word for word in words):
            raise InvalidInput(
                f"the command {self.template!r} names {{id}} or {{pulls}}, which have no meaning for a whole batch: "
                "its ids come on standard input, one a line. Leave them out, or take --measure."
            )
        object.__setattr__(self, "_words", words)

    def check(self, ids: Sequence[str]) -> None:
        """Refuse ids that are more than one line.

        Raises:
            InvalidInput: an id holds a line break.
        """
        broken = [name for name in ids if len(f"{name}.".splitlines()) > 1]
        if broken:
            raise InvalidInput(
                f"{len(broken)} ids hold a line break, the first is {printable(broken[0])!r}: the program reads one id "
                "a line and would take it for two. Take --measure, which gives each id as one argument."
            )

    @property
    def takes_blocks(self) -> bool:
        """A line has the block of its measurement."""
        return True

    def share(self, pairs: Sequence[Pair]) -> Sequence[Pair]:
        """All measurements of a lease."""
        return pairs

    def measure(
        self,
        names: Sequence[str],
        running: Running | None = None,
        blocks: Sequence[str] | None = None,
        values: int = 1,
    ) -> Outcome:
        """Call the program once.

        Args:
            names: an id for each measurement.
            running: the programs at work, so that the caller can stop them.
            blocks: of these measurements; None: they have none.
            values: numbers a line.
        """
        lines = names if blocks is None else [f"{name}\t{block}" for name, block in zip(names, blocks, strict=True)]
        given = "".join(f"{line}\n" for line in lines).encode()
        out, failure = called(list(self._words), self.timeout, running, given)
        return Outcome(failure=failure) if failure else matched(out, len(names), values)


def matched(out: str, asked: int, values: int = 1) -> Outcome:
    """The rewards of a call that ended well, each beside its measurement."""
    lines = [line.strip() for line in out.splitlines()]
    while len(lines) > asked and not lines[-1]:
        lines.pop()
    if len(lines) != asked:
        return Outcome(failure=f"it printed {len(lines)} lines for {asked} measurements")
    rewards = tuple(numbers_in(line, values) for line in lines)
    wrong = [line for line, reward in zip(lines, rewards, strict=True) if reward is None]
    if not wrong:
        return Outcome(rewards)
    more = f", and {len(wrong) - 1} more such lines" if len(wrong) > 1 else ""
    return Outcome(rewards, f"{not_read(wrong[0], values)}{more}")
