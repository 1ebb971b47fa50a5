"""How many examples a property is tried on: a fifth of them in `make test`, all of them in `make prove`."""

from __future__ import annotations

import os

FEWEST = 10
ALL = "SUREPICK_ALL_EXAMPLES"  # set by `make prove`


def budget(examples: int) -> int:
    """The number of examples of this run.

    Args:
        examples: how many all are.
    """
    return examples if os.environ.get(ALL) else min(examples, max(FEWEST, examples // 5))
