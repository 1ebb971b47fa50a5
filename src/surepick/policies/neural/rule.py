"""Algorithm 2's counts, threshold and rounds, for whatever gives the scores: a network, or plain means.

    delta_k = delta / (8 k^2),   t_k = 2^-k/8 + 3 epsilon/8,   n = max(1, ceil(log2(1/epsilon)))

    "box":      N_k = 4^k d_k (1 + zeta) log(K^2/delta_k)              the paper's box, with A = d_k
    "paper":    N_k = 4^k tau_k (1 + zeta) log(K^2/delta_k)            as published: the design's value in place of A
    "proof":    N_k = 256 sigma^2 4^k tau_k (1 + zeta) log(K^2/delta_k)          what the proof's inequality needs
    "derived":  N_k = 2 sigma^2 (1 + zeta) tau_k log((K - 1)/delta_k)/(t_k - b_k)^2,
                b_k = gamma (2 + sqrt((1 + zeta) tau_k))               enough for least squares on a fixed embedding

An arm goes when it trails the highest score by t_k. docs/neural-guarantee.md has the proofs, and why none of them
reaches a trained network.
"""

from __future__ import annotations

import math

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, freeze, record
from surepick.core.observations import Observations
from surepick.core.plan import Plan
from surepick.core.step import Step
from surepick.errors import ContractError
from surepick.policies import options
from surepick.policies.base import Claim, Problem, compared_with, trace_row
from surepick.policies.dimension import bias
from surepick.policies.model_checks import with_failed_checks
from surepick.policies.options import check_options, not_negative, one_of, option
from surepick.policies.round_sizes import FLOORS, whole_pulls

CONSTANTS = ("box", "paper", "proof", "derived")
WHY_HEURISTIC = {
    "box": "The constants are those of the paper's algorithm, which its own proof does not support",
    "paper": "The constants are those of the published runs, which no theorem supports: with many arms and rewards as "
    "noisy as their gaps the best arm is often thrown away",
    "proof": "The constants are what the paper's proof needs for least squares on an embedding of bounded error",
    "derived": "The constants are enough for least squares on a fixed embedding whose error is at most the declared "
    "one",
}


@record
class NeuralState:
    """Where an elimination by Algorithm 2's rule stands.

    Args:
        round: k, the next round, from 1.
        active: S_k, indices of the arms not ruled out.
        seen: what was told in the last round, from which the network's weights are recomputed.
        pulls: all pulls received.
        leader: the active arm of highest score.
        finished: why it stopped: "" while it runs, "single", "rounds" or "given".
        alarms: what speaks against the embedding so far, in words.
    """

    round: int
    active: IntArray
    seen: Observations
    pulls: int
    leader: int
    finished: str
    alarms: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        freeze(self, active=np.int64)


@record
class NeuralRule:
    """The settings of the rule; their meaning is at the top of this file.

    Args:
        problem: what is asked.
        slack: zeta, what rounding to whole pulls may cost, in (0, 1].
        constants: which counts.
        floor: "support": the rounding promise holds for the arms in the design's support; "published": at least
            2 p / zeta pulls for p arms in it.
        misspecification: gamma, used by "derived" alone, in reward units.

    Raises:
        InvalidInput: a setting has no meaning.
    """

    problem: Problem
    slack: float = option(0.1, options.slack)
    constants: str = option("derived", one_of(*CONSTANTS))
    floor: str = option("support", one_of(*FLOORS))
    misspecification: float = option(0.0, not_negative("how far the means may be from the embedding."))

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def num_rounds(self) -> int:
        """n = max(1, ceil(log2(1/epsilon))).  Differs from the paper: base 2, and never 0."""
        return max(1, math.ceil(math.log2(1.0 / self.problem.epsilon)))

    def round_delta(self, round_number: int) -> float:
        """delta_k; all of them together are less than .21 delta."""
        return self.problem.delta / (8.0 * round_number**2)

    def threshold(self, round_number: int) -> float:
        """t_k, in reward units (Algorithm 2, line 9)."""
        return 2.0**-round_number / 8.0 + 3.0 * self.problem.epsilon / 8.0

    def pulls(self, round_number: int, *, dim: int, value: float) -> int:
        """N_k.

        Args:
            dim: d_k.
            value: tau_k.

        Raises:
            ContractError: "derived", and the declared misspecification leaves no room.

        Source: Algorithm 2, line 5.
        """
        k, slack = round_number, self.slack
        if self.constants == "derived":
            return self._derived(round_number, value)
        scaled = 4.0**k * (1.0 + slack) * math.log(self.problem.num_arms**2 / self.round_delta(k))
        if self.constants == "box":
            return whole_pulls(scaled * dim)
        if self.constants == "proof":
            return whole_pulls(scaled * 256.0 * self.problem.sigma**2 * value)
        return whole_pulls(scaled * value)

    def _derived(self, round_number: int, value: float) -> int:
        threshold, shift = self.threshold(round_number), bias(self.misspecification, value, self.slack)
        if shift >= threshold:
            raise ContractError(
                f"misspecification can move a difference of two arms by {shift:g}, and round {round_number} must "
                f"resolve {threshold:g}: no number of pulls would help. Raise epsilon, lower error_tolerance, or "
                "declare a smaller valid misspecification."
            )
        log_term = math.log((self.problem.num_arms - 1) / self.round_delta(round_number))
        numerator = 2.0 * self.problem.sigma**2 * (1.0 + self.slack) * value * log_term
        return whole_pulls(numerator / (threshold - shift) ** 2)


def initial_state(rule: NeuralRule) -> NeuralState:
    """All arms active; finished at once where the answer needs no pull."""
    finished, _ = rule.problem.answer_without_pulls()
    num_arms = rule.problem.num_arms
    return NeuralState(1, np.arange(num_arms), Observations.nothing(num_arms), 0, 0, finished)


def conclude(
    rule: NeuralRule,
    state: NeuralState,
    plan: Plan,
    seen: Observations,
    scores: FloatArray,
    *,
    alarms: tuple[str, ...] = (),
) -> Step[NeuralState]:
    """Drop what trails, and end after the last round or when one arm is left (Algorithm 2, lines 9 and 10).

    A round of which nothing came is repeated.

    Differs from the paper: the answer is the survivor of highest score, not any.
    """
    active = state.active
    best = float(scores[active].max())
    leader, survivors = state.leader, active
    if seen.total > 0:
        leader = int(active[np.argmax(scores[active])])
        survivors = active[best - scores[active] < rule.threshold(plan.round)]
    finished = ""
    if len(survivors) == 1:
        finished = "single"
    elif plan.round >= rule.num_rounds and seen.total > 0:
        finished = "rounds"
    after = NeuralState(
        round=plan.round + (seen.total > 0 and not finished),
        active=survivors,
        seen=seen if seen.total > 0 else state.seen,
        pulls=state.pulls + seen.total,
        leader=leader,
        finished=finished,
        alarms=with_failed_checks(state.alarms, alarms),
    )
    threshold = rule.threshold(plan.round) if seen.total > 0 else math.inf
    deciding = compared_with(leader, active[active != leader], scores, np.full(len(scores), threshold), 0.0)
    return Step(after, trace_row(plan, after, pulls=seen.total, gap=None, alarms=alarms), deciding)


def claim(rule: NeuralRule, state: NeuralState, assumptions: tuple[str, ...], scores: str) -> Claim:
    """What the state entitles to say: something is certain only where nothing had to be measured.

    Args:
        scores: what the scores are, to end the sentence on the constants: "; here the scores are ...".
    """
    reason, left = [], len(state.active)
    if state.finished and state.pulls > 0:
        reason = [
            f"{WHY_HEURISTIC[rule.constants]}; {scores}.",
            *(f"The data speak against the embedding: {alarm}." for alarm in state.alarms),
            "One arm is left." if left == 1 else f"{left} arms are left; this one has the highest score of them.",
        ]
    return Claim(
        leader=state.leader,
        finished=state.finished,
        pulls=state.pulls,
        gap=rule.problem.answer_without_pulls()[1] if state.finished and state.pulls == 0 else None,
        assumptions=assumptions,
        reason=" ".join(reason),
    )
