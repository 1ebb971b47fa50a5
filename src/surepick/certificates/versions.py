"""The versions of a certificate's format. Each is written by whatever needs no later one, so that its bytes stay."""

from __future__ import annotations

from typing import Any

from surepick.certificates.seal import without
from surepick.studies.logs.base import CLOSED_ROUNDS

VERSION = 4  # the newest
OF_CLOSED_ROUNDS, IN_PARTS, WITH_COSTS = 2, 3, 4
ADDED = {2: ("registration", "signature"), IN_PARTS: ("judge",), WITH_COSTS: ("cost",)}  # version -> its new fields


def version_for(*, judge: str, cost: float | None) -> int:
    """The earliest version that says all of a study.

    Args:
        judge: when results are judged.
        cost: money spent; None where nothing has a cost.
    """
    if cost is not None:
        return WITH_COSTS
    return OF_CLOSED_ROUNDS if judge == CLOSED_ROUNDS else IN_PARTS


def of_version(document: dict[str, Any], version: int) -> dict[str, Any]:
    """The certificate as that version of the format has it."""
    later = [name for since, names in ADDED.items() if since > version for name in names]
    kept = without(document, "version", *later)
    first = {"format": kept.pop("format")} if "format" in kept else {}
    return {**first, "version": version, **kept}
