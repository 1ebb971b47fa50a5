"""The plans of a certificate: computed again, or, where numbers round otherwise, checked for what must be right."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from surepick.certificates.document import Facts, version
from surepick.certificates.fingerprint import arithmetic
from surepick.certificates.lines import Line
from surepick.certificates.repeated_plans import plan_difference
from surepick.core.diff import TOLERANCE
from surepick.core.observations import Observations
from surepick.core.plan import Plan
from surepick.designs import design_value
from surepick.policies.base import Policy, stopped
from surepick.studies.replay import Closed
from surepick.text import printable

SLOW = "their designs take long (--every-plan), and the promise does not rest on them"
ELSEWHERE = 1e-6  # relative, where numbers round otherwise; a bias that is rounding times a norm bound drifts by 1e-9
MOST_GAP = 2.0  # of a design's value over its lower bound


def written_here(facts: Facts) -> bool:
    """Whether this process rounds as the one that wrote the certificate, with the same version."""
    return facts.arithmetic == arithmetic() and facts.made_by == f"surepick {version()}"


class Plans:
    """The plans, computed again while the study is replayed, or their brackets checked.

    `here`: whether this process rounds as the one that wrote the certificate.

    Args:
        facts: what the certificate rests on.
        most: how many plans, from the first.
    """

    def __init__(self, facts: Facts, most: int) -> None:
        self._facts = facts
        self._most = most
        self.here = written_here(facts)
        self._equal = facts.reproduced if self.here else 0
        self._done = 0
        self._wrong: list[str] = []

    def watch(self, look: Closed, state: Any) -> None:
        """Compare one plan with what the policy asks in that state."""
        policy = self._facts.policy
        if stopped(policy, state):
            self._wrong.append(f"plan {look.number}: the policy had stopped before it")
            return
        difference = next(filter(None, _impossible(look.plan, policy, state, look.seen)), "")
        if not difference and self._done < self._most:
            self._done += 1
            again = policy.ask(state)
            if policy.traits.misspecification(look.plan.dim) is not None:  # then it was judged above
                again = replace(again, misspecification=look.plan.misspecification)
            compare = plan_difference if look.number <= self._equal else _brackets
            difference = compare(look.plan, again)
        self._wrong += [f"plan {look.number}: {difference}"] if difference else []

    def line(self) -> Line:
        """What became of it."""
        if self._wrong:
            return Line("the plans", False, printable(self._wrong[0]))
        number = len(self._facts.looks)
        if number == 0:
            return Line("the plans", True, "none was judged yet")
        equal = min(self._equal, self._done)
        parts = []
        if equal == number:
            parts.append(f"what the policy asks, with their designs and brackets ({number:,})")
        elif equal:
            parts.append(f"the first {equal:,} of {number:,} are what the policy asks, with their designs and brackets")
        if self._done > equal:
            these = f"all {number:,}" if self._done - equal == number else f"{self._done - equal:,}"
            parts.append(
                f"the brackets of {these} are compatible with those found here, where other designs as good may be "
                "found: numbers round otherwise here, or did where they were asked for"
            )
        if self._done < number:
            parts.append(f"{number - self._done:,} were not computed again: {SLOW}")
        return Line("the plans", True, "; ".join(parts))


def _impossible(plan: Plan, policy: Policy[Any], state: Any, seen: Observations) -> Iterator[str]:
    """Why the policy cannot have asked for this in that state, as far as it can be said without a design.

    What `tell` reads of a plan must be right on every machine: the round, whose share of delta is spent, the looks,
    and the misspecification, against which the results are checked. That of collinear features is all rounding, and
    differs from machine to machine: a millionth of epsilon is no difference.
    """
    for name in ("design_value", "predicted_pulls", "lower_bound", "misspecification"):
        number = getattr(plan, name)
        if number is not None and not (isinstance(number, float) and math.isfinite(number) and number >= 0.0):
            yield f"its {name} is {number!r}"
            return
    value = plan.value
    if value is not None and plan.lower_bound is not None and plan.lower_bound > value * (1.0 + TOLERANCE):
        yield f"its lower bound {plan.lower_bound!r} is above its value {value!r}"
    if plan.round != state.round:
        yield f"it is of round {plan.round}, and the study was in round {state.round}"
    embedding, opened = policy.traits.embedding, getattr(state, "opened", None)
    if opened is not None or (embedding is None and policy.traits.features is None):
        yield plan_difference(plan, policy.ask(state))  # nothing is designed: a part of a round, or plain counts
        return
    if plan.look != 1:
        yield f"it is look {plan.look} of a round that had not begun"
    yield _unlike_an_opening(plan, policy)
    expected = policy.traits.misspecification(plan.dim)
    if expected is not None and abs(plan.misspecification - expected) > ELSEWHERE * max(
        expected, policy.problem.epsilon
    ):
        yield f"its misspecification is {plan.misspecification!r}, and that of {plan.dim} dimensions is {expected!r}"
    if policy.traits.long_list is None:  # else the study goes on from a selection, and its first design is no opening
        yield _unlikely_value(plan, embedding, seen)


def _unlike_an_opening(plan: Plan, policy: Policy[Any]) -> str:
    """Whether a plan is not the first part of its round: how often that is judged is fixed before its first result,
    because its error probability is divided by it.
    """
    rounds = policy.traits.rounds
    if rounds is None:
        return "" if plan.looks == 1 else f"it is look 1 of {plan.looks}, and the policy judges each plan once"
    if plan.allocation is None:
        return "it opens a round, and does not say what all of it is"
    return plan_difference(plan, rounds.first_look(replace(plan, counts=plan.allocation)))


def _unlikely_value(plan: Plan, embedding: Any, seen: Observations) -> str:
    """Whether the value of the first design, of which `collapsed` judges the embedding, is not that of what was
    measured: no design can be better than the lower bound.
    """
    if embedding is None or plan.round != 1 or plan.dim >= embedding.max_dim or seen.total == 0:
        return ""
    if plan.design_value is None or plan.lower_bound is None:
        return "its design has no value"
    realised = design_value(embedding.at(plan.dim).features, seen.counts) * seen.total
    if realised >= plan.lower_bound * (1.0 - ELSEWHERE) and plan.design_value <= MOST_GAP * plan.lower_bound:
        return ""
    return (
        f"no design has a value below {plan.lower_bound:.6g}, it says, its own has {plan.design_value:.6g}, and what "
        f"was measured has {realised:.6g}"
    )


def _brackets(stored: Plan, again: Plan) -> str:
    """Whether both brackets can hold the value of one best design; "" if so, or if the plans solve other problems."""
    value, found = stored.value, again.value
    if value is None or stored.lower_bound is None or found is None or again.lower_bound is None:
        return ""
    if (stored.dim, stored.candidate, stored.round) != (again.dim, again.candidate, again.round):
        return ""
    reach = 1.0 + ELSEWHERE
    if again.lower_bound > value * reach or stored.lower_bound > found * reach:
        return (
            f"its bracket {stored.lower_bound:.6g} to {value:.6g} does not meet the one found here, "
            f"{again.lower_bound:.6g} to {found:.6g}"
        )
    return ""
