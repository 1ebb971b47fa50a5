"""What a study knows of its measurements without building its policy."""

from __future__ import annotations

from collections.abc import Callable

from surepick.core.plan import Blocking
from surepick.policies.prices import Prices
from surepick.policies.terms import Terms
from surepick.questions import Constraint


class Stated:
    """A study's terms, as properties."""

    _terms: Callable[[], Terms]

    @property
    def prices(self) -> Prices | None:
        """What measurements cost; None where nothing has a cost."""
        return self._terms().prices

    @property
    def blocking(self) -> Blocking | None:
        """What results say of blocks; None where measurements are independent."""
        return self._terms().blocks

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """On what each measurement tells beside its reward, in the order in which `tell` takes the columns."""
        return self._terms().constraints
