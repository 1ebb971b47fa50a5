"""The answer in words, from what an algorithm may claim."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any

from surepick.core.arms import Arms, ColumnNames
from surepick.core.certificate import Certificate
from surepick.core.descriptions import Scale
from surepick.core.plans import Blocking
from surepick.core.records import record
from surepick.noise import Normal, PilotGaussian, failure_probability, largest_scale
from surepick.policies.base import Claim, Policy, Problem
from surepick.policies.prices import Costs
from surepick.questions import NAMES, Constraint, constraints_in, constraints_of, lists_of
from surepick.questions.best import WANTED


def claim_certificate(problem: Problem, claim: Claim) -> Certificate:
    """The certificate that a claim amounts to. Its one constructor.

    Source: ours; docs/verdict.md has the rules.
    """
    verdict, reason = _verdict(problem, claim)
    remark = claim.remark()
    return Certificate(
        best_arm=str(claim.leader),
        arm=claim.leader,
        epsilon=_promised(problem, claim),
        delta=problem.delta,
        pulls=claim.pulls,
        verdict=verdict,
        reason=f"{reason} {remark}" if remark else reason,
        assumptions=_assumptions(problem, claim),
        certified_gap=claim.gap,
        lists=lists_of(problem, claim.lists),
    )


def certificate_of(policy: Policy[Any], state: Any) -> Certificate:
    """The certificate of a policy that has come to that state."""
    return claim_certificate(policy.problem, policy.claim(state))


def _promised(problem: Problem, claim: Claim) -> float:
    return problem.epsilon if claim.epsilon is None else claim.epsilon


def _verdict(problem: Problem, claim: Claim) -> tuple[str, str]:
    """(verdict, reason in words)."""
    if claim.reason:
        return "heuristic", claim.reason
    if not claim.finished:
        good = claim.gap is not None and claim.gap <= _promised(problem, claim)
        known = f"No other candidate can be better by more than {claim.gap:.4g}, and the study goes on." if good else ""
        return "not-yet", known or f"The measurements so far do not {_wanted(problem)}; more are needed."
    if claim.finished == "equal":
        return "budget-exhausted", f"The measurements do not {_wanted(problem)}, and more would not."
    if claim.finished == "budget":
        over = "All that the study was allowed to measure is measured, and this does not"
        return "budget-exhausted", f"{over} {_wanted(problem)}."
    reason, proved = _reason(problem, claim)
    if not proved:
        return "not-yet", reason
    doubts = []
    if claim.pulls > 0 and claim.spent > problem.delta * (1.0 + 1e-12):
        doubts.append(
            f"The schedule and union chosen can spend an error probability of {claim.spent:.4g}, more than "
            f"delta = {problem.delta:g}."
        )
    if claim.why_heuristic and not doubts:
        doubts.append(claim.why_heuristic)
    return ("heuristic", " ".join([*doubts, reason])) if doubts else ("certified", reason)


def _reason(problem: Problem, claim: Claim) -> tuple[str, bool]:
    """(why the answer is good, whether it was shown to be)."""
    if claim.finished == "given":
        return (
            f"No two arms differ by more than {claim.gap:g} by assumption, and epsilon is "
            f"{_promised(problem, claim):g}: every arm is epsilon-best, so nothing had to be measured."
        ), True
    if claim.finished == "single":
        return (
            "There is only one arm: nothing was measured." if claim.pulls == 0 else "All others were ruled out.",
            True,
        )
    if claim.lists is not None and problem.question is not None:
        return problem.question.reason(len(claim.lists[0]), _promised(problem, claim)), True
    if claim.gap is None or claim.gap > _promised(problem, claim):
        return (
            "The planned rounds are over, but the realised widths do not certify the leader: measurements are "
            "missing, or the settings forbid another round."
        ), False
    return "No other candidate is better." if claim.gap == 0.0 else (
        f"No other candidate can be better by more than {claim.gap:.4g}."
    ), True


def _wanted(problem: Problem) -> str:
    """What the measurements are to do."""
    return WANTED if problem.question is None else problem.question.wanted


def _assumptions(problem: Problem, claim: Claim) -> tuple[str, ...]:
    """The sentences that an answer reached in this way rests on."""
    if problem.num_arms == 1 and claim.lists is None:
        return ()
    if claim.finished == "given":
        return (f"No two arms differ by more than {problem.largest_gap:g} in mean reward.",)
    return (*claim.assumptions, noise_assumption(problem)) if claim.of_draws else claim.assumptions


def noise_assumption(problem: Problem) -> str:
    """The sentence about the rewards that every certificate rests on."""
    noise = problem.noise
    if isinstance(noise, PilotGaussian):
        return noise.assumption
    independent = (
        "Given what was measured before, each measurement is an independent draw around the mean of its candidate"
    )
    if isinstance(noise, Normal):
        return (
            f"{independent}, normally distributed with a standard deviation of the candidate's own, which its repeats "
            f"bound; all bounds that matter hold at all times, except with probability "
            f"{failure_probability(noise, problem.delta):g}, which is part of delta."
        )
    if noise.support is not None:
        return f"{independent}, between {noise.support[0]:g} and {noise.support[1]:g}."
    return f"{independent}, with sub-Gaussian noise of scale at most {largest_scale(noise):g}."


# --- What a study knows of its policy without building it: enough to say what its closed rounds prove.


@record
class PolicySummary:
    """What a policy promises while it runs."""

    delta: float  # the probability that something it proves is wrong
    most_rounds: int | None  # after so many it is done if no result is missing; None: not known
    proves: bool  # what it says of its leader at any time is a theorem, unless a check of the results fails
    eliminates: bool  # arms that leave its `active` set are not the best
    gap_bound: float | None = None  # the declared bound on the gap of two arms, in reward units; None without one
    prices: Costs | None = None  # what measurements cost; None where nothing has a cost
    # what is said of blocks; None where measurements are independent. The control is not known here.
    blocks: Blocking | None = None
    listed: bool = False  # the question is answered by lists
    constraints: tuple[Constraint, ...] = ()  # on what else each measurement tells beside the reward
    later: int = 0  # how many arms are not there when the study begins, and may come
    shortens: int = 0  # rows of the list that it shortens; 0: it chooses among its arms
    named: ColumnNames = field(default_factory=ColumnNames)  # what the columns of its tables are called
    scale: Scale = field(default_factory=Scale)  # how its numbers are measured
    steered: bool = False  # its answer is read under a class of means that is named without a number

    @staticmethod
    def of(policy: Policy[Any], arms: Arms | None = None) -> PolicySummary:
        """Those of a policy for these arms; None: for those that it knows."""
        traits, delta = policy.traits, policy.problem.delta
        within = policy.claim(policy.init()).spent <= delta * (1.0 + 1e-12)
        backed = traits.embedding is None or not traits.embedding.traits.heuristic
        proves = traits.certifies != "nothing" and within and backed
        gap_bound, prices = policy.problem.gap_bound, Costs.of(policy, arms)
        blocks = None if traits.blocks is None else replace(traits.blocks, control=None)
        listed, constraints = traits.certifies == "lists", constraints_of(policy.problem.question)
        said = (proves, traits.eliminates, gap_bound, prices, blocks, listed, constraints, len(traits.later))
        rows = 0 if traits.rows is None else traits.rows.num_rows
        return PolicySummary(delta, traits.most_rounds, *said, rows, steered=bool(traits.assumed))

    @staticmethod
    def stored_in(configuration: Mapping[str, Any]) -> PolicySummary:
        """Those of a stored study."""
        asked = configuration["policy"]
        question = (asked.get("question") or {}).get("name")
        return PolicySummary(
            delta=asked["delta"],
            most_rounds=configuration["most_rounds"],
            proves=configuration["proves"],
            eliminates=configuration["eliminates"],
            gap_bound=asked.get("gap_bound"),
            prices=Costs.stored_in(configuration),
            blocks=Blocking.stored_in(asked),
            listed=question is not None and (question not in NAMES or NAMES[question].listed),
            constraints=constraints_in(asked),
            later=len(asked.get("later") or ()),
            steered=asked.get("assume") is not None,
            shortens=sum((asked.get("first_look") or {}).get("sizes", ())),
            named=ColumnNames.stored_in(configuration),
            scale=Scale.stored_in(configuration),
        )

    def stored(self) -> dict[str, Any]:
        """What is stored beside the policy's spec."""
        costs = None if self.prices is None or self.prices.arms is None else self.prices.arms.tolist()
        promised = {"most_rounds": self.most_rounds, "proves": self.proves, "eliminates": self.eliminates}
        return promised if costs is None else {**promised, "costs": costs}


class Stated:
    """A study's terms, as properties."""

    _terms: Callable[[], PolicySummary]

    @property
    def prices(self) -> Costs | None:
        """What measurements cost; None where nothing has a cost."""
        return self._terms().prices

    @property
    def column_names(self) -> ColumnNames:
        """What the columns of tables of results are called beside "id" and "reward"."""
        return self._terms().named

    @property
    def scale(self) -> Scale:
        """The unit of a measurement, and the limits beyond which one is surely a typing error."""
        return self._terms().scale

    @property
    def blocking(self) -> Blocking | None:
        """What results say of blocks; None where measurements are independent."""
        return self._terms().blocks

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """On what each measurement tells beside its reward, in the order in which `tell` takes the columns."""
        return self._terms().constraints
