"""What a study knows of its policy without building it: enough to say what its closed rounds prove."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any

from surepick.core.arms import Arms
from surepick.core.arrays import record
from surepick.core.column_names import ColumnNames
from surepick.core.plan import Blocking
from surepick.policies.base import Policy
from surepick.policies.prices import Prices
from surepick.questions import LISTED, NAMES, Constraint, constraints_in, constraints_of


@record
class Terms:
    """What a policy promises while it runs.

    Args:
        delta: the probability that something it proves is wrong.
        most_rounds: after so many it is done if no result is missing; None: not known.
        proves: what it says of its leader at any time is a theorem, unless a check of the results fails.
        eliminates: arms that leave its `active` set are not the best.
        gap_bound: the declared bound on the gap of two arms, in reward units; None without one.
        prices: what measurements cost; None where nothing has a cost.
        blocks: what is said of blocks; None where measurements are independent. The control is not known here.
        listed: the question is answered by lists.
        constraints: on what else each measurement tells beside the reward.
        later: how many arms are not there when the study begins, and may come.
        shortens: rows of the list that it shortens; 0: it chooses among its arms.
        named: what the columns of its tables are called.
    """

    delta: float
    most_rounds: int | None
    proves: bool
    eliminates: bool
    gap_bound: float | None = None
    prices: Prices | None = None
    blocks: Blocking | None = None
    listed: bool = False
    constraints: tuple[Constraint, ...] = ()
    later: int = 0
    shortens: int = 0
    named: ColumnNames = field(default_factory=ColumnNames)

    @staticmethod
    def of(policy: Policy[Any], arms: Arms | None = None) -> Terms:
        """Those of a policy for these arms; None: for those that it knows."""
        traits, delta = policy.traits, policy.problem.delta
        within = policy.claim(policy.init()).spent <= delta * (1.0 + 1e-12)
        backed = traits.embedding is None or not traits.embedding.traits.heuristic
        proves = traits.certifies != "nothing" and within and backed
        gap_bound, prices = policy.problem.gap_bound, Prices.of(policy, arms)
        blocks = None if traits.blocks is None else replace(traits.blocks, control=None)
        listed, constraints = traits.certifies == "lists", constraints_of(policy.problem.question)
        said = (proves, traits.eliminates, gap_bound, prices, blocks, listed, constraints, len(traits.later))
        return Terms(delta, traits.most_rounds, *said, 0 if traits.rows is None else traits.rows.num_rows)

    @staticmethod
    def stored_in(configuration: Mapping[str, Any]) -> Terms:
        """Those of a stored study."""
        asked = configuration["policy"]
        question = (asked.get("question") or {}).get("name")
        return Terms(
            delta=asked["delta"],
            most_rounds=configuration["most_rounds"],
            proves=configuration["proves"],
            eliminates=configuration["eliminates"],
            gap_bound=asked.get("gap_bound"),
            prices=Prices.stored_in(configuration),
            blocks=Blocking.stored_in(asked),
            listed=question is not None and (question in LISTED or question not in NAMES),
            constraints=constraints_in(asked),
            later=len(asked.get("later") or ()),
            shortens=sum((asked.get("first_look") or {}).get("sizes", ())),
            named=ColumnNames.stored_in(configuration),
        )

    def stored(self) -> dict[str, Any]:
        """What is stored beside the policy's spec."""
        costs = None if self.prices is None or self.prices.arms is None else self.prices.arms.tolist()
        promised = {"most_rounds": self.most_rounds, "proves": self.proves, "eliminates": self.eliminates}
        return promised if costs is None else {**promised, "costs": costs}


class Stated:
    """A study's terms, as properties."""

    _terms: Callable[[], Terms]

    @property
    def prices(self) -> Prices | None:
        """What measurements cost; None where nothing has a cost."""
        return self._terms().prices

    @property
    def column_names(self) -> ColumnNames:
        """What the columns of tables of results are called beside "id" and "reward"."""
        return self._terms().named

    @property
    def blocking(self) -> Blocking | None:
        """What results say of blocks; None where measurements are independent."""
        return self._terms().blocks

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """On what each measurement tells beside its reward, in the order in which `tell` takes the columns."""
        return self._terms().constraints
