"""One of the best share of a list: the best of a random sample of it."""

from dataclasses import field, replace
from typing import Any

import numpy as np

from surepick.core.observations import Answers, BlockTotals, Observations
from surepick.core.plans import Intervals, Plan, Step
from surepick.core.random_streams import WHO_CHOSE
from surepick.core.records import IntArray, record
from surepick.errors import InvalidInput
from surepick.policies.base import Claim, Policy, Problem, Spec, Traits
from surepick.questions import OneOf

SAMPLED = (
    "The {number:,} candidates that are compared were drawn at random (seed {seed}, {by}) from the list of {total:,} "
    "before the first measurement, whoever made the list; with probability at least {sure:g} one of the best "
    "{share:g}% of the list is among them."
)


@record
class OneOfShare:
    """Find the best of a random sample: it is within epsilon of one of the best share of the whole list.

    What it costs depends on the sample, whose size does not grow with the list: log(2/delta) / share arms.

    Source: ours (docs/questions.md); drawing a sample first is the usual way to infinitely many arms, e.g. Aziz et al.
    (2018).
    """

    problem: Problem  # what is asked; its question is `OneOf`
    inner: Policy[Any]  # finds an epsilon-best arm of the sample, with delta / 2
    members: IntArray  # the sample, indices of arms, ascending, (n,)
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    @property
    def traits(self) -> Traits:
        """Those of the inner policy, but for what knows the arms of the sample only."""
        unknown = dict.fromkeys(("embedding", "features", "rounds", "withdraw", "add", "together", "weigh"))
        return replace(self.inner.traits, eliminates=False, **unknown)  # type: ignore[arg-type]

    @property
    def evidence(self) -> Any:
        """The kind of evidence of the inner policy."""
        return getattr(self.inner, "evidence", None)

    def init(self) -> Any:
        return self.inner.init()

    def ask(self, state: Any) -> Plan:
        plan = self.inner.ask(state)
        allocation, first = (None if one is None else self._spread(one) for one in (plan.allocation, plan.first_items))
        candidate = None if plan.candidate is None else int(self.members[plan.candidate])
        counts = self._spread(plan.counts)
        return replace(plan, counts=counts, allocation=allocation, first_items=first, candidate=candidate)

    def tell(self, state: Any, plan: Plan, seen: Observations) -> Step[Any]:
        step = self.inner.tell(state, self._within(plan), self._seen(seen))
        row = replace(
            step.record,
            active=self.members[step.record.active],
            leader=int(self.members[step.record.leader]),
            certified_gap=None,
        )
        inner = step.deciding
        if inner is None:
            return Step(step.state, row)

        def deciding(before: Intervals | None) -> Intervals:
            return self._outwards(inner(None if before is None else self._inwards(before)))

        return Step(step.state, row, deciding)

    def claim(self, state: Any) -> Claim:
        claim, asked, num_arms = self.inner.claim(state), self.problem.question, self.problem.num_arms
        if not isinstance(asked, OneOf):
            raise InvalidInput("the question is not one of the best share.")
        leader = int(self.members[claim.leader])
        sampled = SAMPLED.format(
            number=len(self.members),
            seed=asked.sample_seed,
            by=WHO_CHOSE[asked.sample_seed_by],
            total=num_arms,
            sure=1.0 - self.problem.delta / 2.0,
            share=100.0 * asked.share,
        )
        named = np.array([leader] if claim.finished not in ("", "budget") else [], np.int64)
        return replace(
            claim,
            leader=leader,
            gap=None,
            spent=claim.spent + self.problem.delta / 2.0,
            assumptions=(sampled, *claim.assumptions),
            lists=(named, np.empty(0, np.int64)),
        )

    def _spread(self, counts: IntArray) -> IntArray:
        whole = np.zeros(self.problem.num_arms, np.int64)
        whole[self.members] = counts
        return whole

    def _within(self, plan: Plan) -> Plan:
        allocation, first = (None if one is None else one[self.members] for one in (plan.allocation, plan.first_items))
        candidate = None if plan.candidate is None else int(np.searchsorted(self.members, plan.candidate))
        counts = plan.counts[self.members]
        return replace(plan, counts=counts, allocation=allocation, first_items=first, candidate=candidate)

    def _seen(self, seen: Observations) -> Observations:
        """What was told of the sample; results of others, which nobody asked for, are not looked at."""
        place, answers, blocks = np.full(self.problem.num_arms, -1), seen.answers, seen.blocks
        place[self.members] = np.arange(len(self.members))
        if answers is not None:
            own = place[answers.arms] >= 0
            answers = Answers(place[answers.arms[own]], answers.items[own], answers.scores[own])
        if blocks is not None:
            own = place[blocks.arms] >= 0
            blocks = BlockTotals(blocks.blocks[own], place[blocks.arms[own]], blocks.counts[own], blocks.sums[own])
        return replace(seen.mapped(lambda column: column[self.members]), answers=answers, blocks=blocks)

    def _outwards(self, found: Intervals) -> Intervals:
        """The intervals with the indices of the whole list."""
        comparators = np.where(found.comparators >= 0, self.members[found.comparators], -1)
        return replace(found, arms=self.members[found.arms], comparators=comparators)

    def _inwards(self, found: Intervals) -> Intervals:
        """The intervals with the indices of the sample."""
        place = np.clip(np.searchsorted(self.members, found.comparators), 0, len(self.members) - 1)
        return replace(
            found,
            arms=np.searchsorted(self.members, found.arms),
            comparators=np.where(found.comparators >= 0, place, -1),
        )
