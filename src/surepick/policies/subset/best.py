"""The best of a list that was shortened: it is within epsilon of the best of the long list."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any

from surepick.core.arrays import record
from surepick.core.observations import Observations
from surepick.core.plan import Plan
from surepick.core.step import Step
from surepick.errors import InvalidInput
from surepick.policies.base import Claim, Policy, Problem, Spec, Traits
from surepick.policies.subset.again import LongList
from surepick.policies.subset.chosen import Subset
from surepick.policies.subset.selection import together


@record
class BestOfSubset:
    """Find the best of the selected candidates, from where their selection left off.

        P(wrong) <= P(the best of all is not selected) + P(the answer is not good among those selected)

    What was measured for the selection is no evidence here: it only says where to begin.

    Args:
        problem: what is asked about the long list.
        inner: finds the best of the arms with what the selection has left of delta and epsilon.
        subset: where the arms come from.

    Raises:
        InvalidInput: the arms are not those of the selection, or it has left nothing of delta or epsilon.

    Source: ours (docs/large.md, line 6).
    """

    problem: Problem
    inner: Policy[Any]
    subset: Subset
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)
    _prior: Observations = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        arms = self.problem.arms
        if arms is None:
            raise InvalidInput("the best of a selection is asked of arms with ids and features.")
        self.subset.check(arms)
        places = {name: place for place, name in enumerate(arms.ids)}
        told = [one.among(places) for one in self.subset.batches]
        object.__setattr__(self, "_prior", together(told, arms.num_arms))

    @property
    def traits(self) -> Traits:
        return replace(self.inner.traits, long_list=LongList(self.subset))

    @property
    def evidence(self) -> Any:
        """The kind of evidence of the inner policy."""
        return getattr(self.inner, "evidence", None)

    @property
    def _counted(self) -> int:
        """Pulls of the selection that the inner policy counts as its own."""
        return self._prior.total if self.evidence == "carried" else 0

    def init(self) -> Any:
        state = self.inner.init()
        if self._counted == 0 or self.inner.claim(state).finished:
            return state
        began = self.inner.tell(state, self.inner.ask(state), self._prior).state
        silent = began.vectors is not None and not began.vectors.begun  # the first batch has bet on nothing
        return replace(began, round=state.round) if silent and not began.finished else state

    def ask(self, state: Any) -> Plan:
        return self.inner.ask(state)

    def tell(self, state: Any, plan: Plan, seen: Observations) -> Step[Any]:
        step = self.inner.tell(state, plan, seen)
        return replace(step, record=replace(step.record, total_pulls=step.record.total_pulls - self._counted))

    def claim(self, state: Any) -> Claim:
        claim = self.inner.claim(state)
        own = max(0, claim.pulls - self._counted)
        return replace(
            claim,
            pulls=own,
            gap=None if claim.gap is None else claim.gap + self.subset.rules.slack,
            spent=claim.spent + self.subset.rules.delta,
            assumptions=(
                self.subset.sentence(self.problem.num_arms),
                *(f"Of the measurements for the selection: {fact}" for fact in self.subset.facts),
                *dict.fromkeys((self.subset.rules.sentence(self.subset.columns), *claim.assumptions)),
            ),
        )
