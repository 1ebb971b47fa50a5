"""What is known of a list too long for memory, where only a part of it is compared."""

from __future__ import annotations

from typing import Protocol

from surepick.blocks.rows import RowBlocks


class LongListed(Protocol):
    """A list too long to be compared one by one, from which the arms of a study were selected."""

    @property
    def total(self) -> int:
        """Its candidates."""
        ...

    @property
    def minimize(self) -> bool:
        """Small rewards are good, as they were when the arms were selected."""
        ...

    def check(self, rows: RowBlocks) -> str:
        """Select the arms again; what was found, in words.

        Raises:
            InvalidInput: it is another list, or other arms are selected from it.
        """
        ...
