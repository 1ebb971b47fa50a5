"""The versions of a certificate's format. Each is written by whatever needs no later one, so that its bytes stay."""

from __future__ import annotations

from typing import Any

from surepick.certificates.seal import without
from surepick.items import ItemOrder
from surepick.studies.logs.base import CLOSED_ROUNDS

VERSION = 9  # the newest
(
    OF_CLOSED_ROUNDS,
    IN_PARTS,
    WITH_COSTS,
    OF_ITEMS,
    IN_BLOCKS,
    WITH_LISTS,
    WITH_WITHDRAWALS,
    WITH_QUANTITIES,
) = range(2, 10)
ADDED = {  # version -> its new fields
    2: ("registration", "signature"),
    IN_PARTS: ("judge",),
    WITH_COSTS: ("cost",),
    OF_ITEMS: ("items",),
    IN_BLOCKS: (),
    WITH_LISTS: ("lists",),
    WITH_WITHDRAWALS: (),
    WITH_QUANTITIES: (),
}


def version_for(
    *,
    judge: str,
    cost: float | None,
    items: ItemOrder | None = None,
    in_blocks: bool = False,
    listed: bool = False,
    withdrawn: bool = False,
    constrained: bool = False,
) -> int:
    """The earliest version that says all of a study.

    Args:
        judge: when results are judged.
        cost: money spent; None where nothing has a cost.
        items: the test items in their order; None where measurements are draws.
        in_blocks: results name their blocks.
        listed: the question is answered by lists.
        withdrawn: candidates were withdrawn, or come later.
        constrained: more than a reward is measured.
    """
    said = {
        WITH_QUANTITIES: constrained,
        WITH_WITHDRAWALS: withdrawn,
        WITH_LISTS: listed,
        IN_BLOCKS: in_blocks,
        OF_ITEMS: items is not None,
        WITH_COSTS: cost is not None,
        IN_PARTS: judge != CLOSED_ROUNDS,
    }
    return next((version for version, needed in said.items() if needed), OF_CLOSED_ROUNDS)


def of_version(document: dict[str, Any], version: int) -> dict[str, Any]:
    """The certificate as that version of the format has it."""
    later = [name for since, names in ADDED.items() if since > version for name in names]
    later += [name for name in ("cost", "items", "lists") if document.get(name) is None]  # absent there
    kept = without(document, "version", *later)
    first = {"format": kept.pop("format")} if "format" in kept else {}
    return {**first, "version": version, **kept}
