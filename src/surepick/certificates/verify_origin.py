"""What a certificate cannot say of itself: whether its promise was fixed before the first result, and of whom it is."""

from __future__ import annotations

from surepick.blocks.long_list import LongListed
from surepick.blocks.rows import RowBlocks

MEASURED = "What this cannot check: that the measurements were made as they were reported, and what is assumed of them."
TRIED = (
    "It cannot tell whether other studies of this question, other samples of the list, or other orders of test items "
    "were tried before this one: each of them has a registration code of its own."
)
KEPT = "It cannot tell when this registration code was written down: that is known to whoever kept it."
UNSELECTED = (
    "It cannot tell whether these candidates are rightly selected from {total:,}: that takes the list itself (--arms "
    "FOLDER), and some minutes."
)
UNTOLD = (
    "It cannot tell whether epsilon, delta, noise and policy were fixed before the first result: that takes the "
    "registration code that was written down then (--registered CODE)."
)


def registration_words(amounts: str | None, registered: str) -> str:
    """That a certificate promises what was registered.

    Args:
        amounts: the code that follows from its candidates, its policy and what is minimized; None if its policy has
            parts without a name.
        registered: the code that was written down.

    Raises:
        ValueError: it promises something else.
    """
    if amounts is None:
        raise ValueError(
            f"the policy has parts without a name, so no code stands for it, and {registered} was registered"
        )
    if amounts != registered:
        raise ValueError(
            f"the file amounts to {amounts}, and {registered} was registered: epsilon, delta, noise, an option of the "
            "policy, the candidates or what is minimized is another one, or it is another study of the same question"
        )
    return f"{registered}, as it was registered"


def unregistered_words(amounts: str | None) -> str:
    """That nobody gave a code, and which one the file amounts to."""
    if amounts is None:
        return f"{UNTOLD} This file has no code: its policy has parts without a name."
    return f"{UNTOLD} This file amounts to {amounts}."


def selected_again(listed: LongListed | None, rows: RowBlocks) -> str:
    """What came of selecting the candidates again.

    Args:
        listed: the list that the certificate speaks of; None: it speaks of none.
        rows: the list that was given.

    Raises:
        InvalidInput: it is another list, or others are selected from it.
        ValueError: the certificate speaks of no list.
    """
    if listed is None:
        raise ValueError("the certificate does not say that its candidates were selected from a longer list")
    return listed.check(rows)
