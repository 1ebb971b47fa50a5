"""Epochs: the question which arm is the best, with one e-process for each rival of each candidate tried.

A candidate is certified once all of its rivals are rejected (docs/certified-elimination.md; the lines named here are
its). Evidence is collected batch by batch: what was seen before a candidate's epoch opened never counts for it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import partial
from typing import Any

import numpy as np

from surepick import designs
from surepick.core.observations import Observations
from surepick.core.plans import CandidateBounds, Deciding, Embedded, Embedding, Intervals, Plan
from surepick.core.records import FloatArray, IntArray, record
from surepick.errors import ContractError
from surepick.estimators import Evidence, batch_evidence, noise_mgf_after, only, with_squares
from surepick.estimators.e_values import Collected, EProcesses, processes_of
from surepick.estimators.posterior import Posterior, pooled_fit
from surepick.linalg.factorisations import Whitened
from surepick.policies import model_checks, options, tuning
from surepick.policies.base import Problem, Traits, designed, threshold_of
from surepick.policies.certified import sampling_rule
from surepick.policies.certified.sampling_rule import NextBatch, OpenTest, first_dimension, is_expensive
from surepick.policies.dimension import larger_dimensions
from surepick.policies.options import option
from surepick.policies.sequential.batches import batch_total, capped
from surepick.policies.sequential.engine import EmbeddedTest, typical_scales
from surepick.policies.sequential.state import SequentialState

# --- Epochs: the candidates that may be recommended, the weight that each one spends, and the evidence for it.

HEURISTIC_WEIGHT_RATIO = 0.5  # of the weights of one epoch and the one before


def weight_of(number: int) -> float:
    """p_e = (1 - r) r^e of the epoch after so many others: the weights of all that could ever open sum to 1.

    Source: docs/certified-elimination.md, line 6.
    """
    return (1.0 - HEURISTIC_WEIGHT_RATIO) * HEURISTIC_WEIGHT_RATIO**number


def log_weight_of(number: int) -> float:
    """log p_e, finite."""
    return math.log(max(weight_of(number), sys.float_info.min))


def open_test(epochs: Collected, candidate: int, num_arms: int) -> Collected:
    """The epochs with a new one for the candidate, whose evidence starts at its weight: nothing seen so far counts.

    Source: docs/certified-elimination.md, lines 5 and 6.
    """
    if any(one.name == str(candidate) for one in epochs):
        raise ContractError(
            f"arm {candidate} has an epoch already; a second one would spend its weight twice (line 6)."
        )
    if math.fsum(map(weight_of, range(len(epochs) + 1))) > 1.0:
        raise ContractError("the weights of the epochs exceed 1; the error probability would exceed delta (line 6).")
    return (*epochs, processes_of((), candidate, num_arms, log_weight_of(len(epochs))))


FEW = 4096  # arms on which all bets go on: it costs little


def opens(state: SequentialState, candidate: int, predicted: float) -> bool:
    """Whether the candidate's epoch opens before this batch: a function of the past alone (line 5)."""
    enough = state.seen.total >= sampling_rule.HEURISTIC_SHORTEST_EPOCH * predicted
    return (
        enough and all(one.name != str(candidate) for one in state.collected) and weight_of(len(state.collected)) > 0.0
    )


def current_test(state: SequentialState, candidate: int) -> EProcesses:
    """The candidate's epoch, or the one that would be opened for it: nothing seen so far counts (line 5)."""
    return processes_of(state.collected, candidate, len(state.seen.counts), log_weight_of(len(state.collected)))


Judged = Callable[[Observations], Evidence]  # results -> what they say against some rivals


class Epochs:
    """What the policies have in common that test candidates in epochs: their bets, and what follows from them.

    A rival that is rejected stays so. Of more than FEW arms nothing more is bet on it, and its evidence stays what it
    was; only the intervals go on with the bets on everybody, for whoever asks for them.
    """

    __slots__ = ()
    problem: Problem

    def wager(self, state: SequentialState, plan: Plan, centre: int, rivals: IntArray) -> dict[str, Any]:
        """Of the bets on a batch what `batch_evidence` is to know of the arms, and `rivals` if these are fewer."""
        raise NotImplementedError

    def _placed(self, state: SequentialState, plan: Plan, centre: int, rivals: IntArray) -> Judged:
        """The bets on a batch for a candidate against some rivals, fixed before its first result (lines 2 to 4)."""
        noise, epsilon, given = self.problem.noise, self.problem.epsilon, self.wager(state, plan, centre, rivals)
        noise_mgf, against = noise_mgf_after(noise, state.seen), given.pop("rivals", rivals)
        given |= {"centre": centre, "noise_mgf": noise_mgf, "noise_scales": noise_mgf.noise_scales(epsilon)}
        return lambda seen: batch_evidence(seen=with_squares(noise, seen), epsilon=epsilon, **given).only(against)

    def best(self, seen: Observations, dim: int) -> int:
        """The arm that looks best after all that was told."""
        raise NotImplementedError

    def runners_up(self, _: SequentialState, __: Plan) -> tuple[int, ...]:
        """Other arms whose epochs open with that of the plan's candidate."""
        return ()

    def bets(self, state: SequentialState, plan: Plan, seen: Observations) -> Any:
        """(the epochs, those that open before the batch among them; the bets of each; those on rejected rivals)."""
        epochs, num_arms, threshold = state.collected, self.problem.num_arms, threshold_of(self.problem)
        if plan.candidate is not None and opens(state, plan.candidate, plan.predicted_pulls or 0.0):
            for candidate in (plan.candidate, *self.runners_up(state, plan)):  # before the batch: lines 5 and 6
                epochs = open_test(epochs, candidate, num_arms)
        if state.seen.total == 0 or seen.total == 0 or not epochs:
            return epochs, {}, {}
        wager, few, everybody = partial(self._placed, state, plan), num_arms <= FEW, np.arange(num_arms)
        placed = {one.name: wager(int(one.name), everybody if few else one.open_rivals(threshold)) for one in epochs}
        late = {} if few else {one.name: partial(wager, int(one.name), one.beaten(threshold)) for one in epochs}
        return epochs, placed, late

    def update(self, _: SequentialState, __: Plan, bets: Any, seen: Observations) -> dict[str, Any]:
        """The epochs after the results."""
        epochs, placed, late = bets
        nothing = Evidence.nothing(self.problem.num_arms)
        found = {one.name: placed[one.name](seen) if one.name in placed else nothing for one in epochs}

        def whole() -> dict[int, Evidence]:
            more = {name: bet()(seen) for name, bet in late.items()}
            return {int(name): one.plus(more.get(name, nothing)) for name, one in found.items()}

        return {"collected": tuple(one.after(found[one.name].gains) for one in epochs), "found": whole}

    def decide(self, _: SequentialState, after: SequentialState, plan: Plan) -> SequentialState:
        """The state with its leader, and certified where a candidate has no open rival (line 8)."""
        threshold, leader = threshold_of(self.problem), self.best(after.seen, plan.dim)
        certified = next((one for one in after.collected if len(one.open_rivals(threshold)) == 0), None)
        candidate, finished = after.candidate, ""
        if certified is not None:
            candidate = leader = int(certified.name)
            finished = "certified"
        beaten = processes_of(after.collected, candidate, len(after.beaten)).rejected(threshold)
        beaten[[candidate, leader]] = False
        return replace(after, candidate=candidate, leader=leader, beaten=beaten, finished=finished)

    def _gap(self, state: SequentialState) -> float | None:
        """The certified shortfall of the leader, None if nothing can be said."""
        return {"single": 0.0, "certified": self.problem.epsilon}.get(state.finished, self.problem.largest_gap)

    def _spent(self, state: SequentialState) -> float:
        return math.fsum(map(weight_of, range(len(state.collected))))

    def _deciding(self, after: SequentialState, found: Any) -> Deciding | None:
        return None if found is None else lambda before: intervals_of(self.problem, after, found(), before)


def intervals_of(
    problem: Problem, after: SequentialState, found: Mapping[int, Evidence], before: Intervals | None
) -> Intervals:
    """The rivals of the candidate, and by how much each can be better than it at most (line 10).

    U_j = min over batches of  epsilon + (log(1/delta) - log(p_c E_j)) / sum of t      rejected: U_j <= epsilon
    """
    known = {} if before is None else {one.candidate: one for one in before.candidates}
    num_arms, epsilon = problem.num_arms, problem.epsilon
    zeros, unknown, nothing = (np.full(num_arms, each) for each in (0.0, np.inf, np.nan))
    bounds = (
        known.get(int(one.name))
        or CandidateBounds(int(one.name), zeros, zeros, unknown, nothing, np.full(num_arms, log_weight_of(number)))
        for number, one in enumerate(after.collected)
    )
    candidates = tuple(_tightened(problem, one, found[one.candidate]) for one in bounds)
    current = next((one for one in candidates if one.candidate == after.candidate), None)
    if current is None:
        nobody, allowed = np.full(num_arms, -1), np.full(num_arms, epsilon)
        return Intervals(np.arange(num_arms), nobody, nothing, nothing, nothing, allowed, candidates)
    rivals = np.flatnonzero(np.arange(num_arms) != current.candidate)
    widest, leads = current.bounds[rivals], current.leads[rivals]
    return Intervals(
        arms=rivals,
        comparators=np.full(len(rivals), current.candidate),
        leads=leads,
        widths=widest + leads,
        margins=epsilon - widest,
        allowed=np.full(len(rivals), epsilon),
        candidates=candidates,
    )


def _tightened(problem: Problem, known: CandidateBounds, batch: Evidence) -> CandidateBounds:
    """The bounds of a candidate after one more batch."""
    bets, drawn, log_e_values = known.bets + batch.bets, known.drawn + batch.drawn, known.log_e_values + batch.gains
    told = bets > 0.0
    share = np.where(told, bets, 1.0)
    bounds = np.where(told, problem.epsilon + (threshold_of(problem) - log_e_values) / share, np.inf)
    better = bounds < known.bounds
    leads = np.where(better, -drawn / share, known.leads)
    return CandidateBounds(known.candidate, bets, drawn, np.where(better, bounds, known.bounds), leads, log_e_values)


@record
class CertifiedElimination(Epochs, EmbeddedTest):
    """Certify one candidate c: collect evidence, for each rival j, against "j is better than c by more than epsilon".

        E_j = p_c product over batches since c was first tried of exp(gain_j)        (`batch_evidence`)
        recommend c when every E_j has once reached 1/delta

    A wrong recommendation needs the process of one single rival, the best arm, to exceed 1/delta; so there is no union
    over rivals, and candidates pay through their weights p_c, which sum to 1. With probability at least 1 - delta the
    answer is epsilon-best, for any rule that chooses arms, batch sizes, dimensions and candidates from earlier batches
    (docs/certified-elimination.md has the proof). These rules are in `sampling_rule.py`: the candidate has the highest
    score, and each batch is the design that is predicted to reject its open rivals first.

    Results may be judged after each batch and nowhere else; a batch may be as small as one likes.

    Args:
        problem, embedding, dim, tolerance, reserve, largest_batch: as in `CarriedElimination`.

    Source: ours, after Robbins (1970), Howard et al. (2020, 2021) and Ramdas et al. (2023) for e-processes, Fiez et al.
    (2019) for designs aimed at differences. `active` loses arms and may gain some with a new candidate, so it does not
    eliminate in the paper's sense.
    """

    dim: int | None = None
    tolerance: float = option(0.05, options.tolerance)
    reserve: float = option(0.05, options.check_share)
    largest_batch: int | None = option(None, options.largest_batch)
    evidence: str = field(default="epochs", init=False, compare=False, repr=False)

    @property
    def traits(self) -> Traits:
        return self._traits(certifies="candidate")

    def ask(self, state: SequentialState) -> Plan:
        if state.seen.total == 0:
            return self._opening(state.round)
        batch = self._next_batch(state)
        design, pulls = batch.design, state.seen.total
        total = self._capped(batch_total(design.value, pulls), design.weights)
        embedded = self.embedded(batch.dim)
        counts = self._with_check_pulls(batch.dim, designs.round_design(design.weights, total))
        return designed(state.round, counts, design, embedded, candidate=batch.candidate)

    def _opening(self, round_number: int) -> Plan:
        """The first batch: all differences alike. It finds a candidate, and is evidence for none."""
        design_of = partial(
            sampling_rule.opening_design, posed=lambda embedded: self._cache.posed(self.embedding, embedded.dim)
        )
        dim, design = first_dimension(
            self.problem, self.embedding, dim=self.dim, tolerance=self.tolerance, design_of=design_of
        )
        embedded = self.embedded(dim)
        total = sampling_rule.opening_total(embedded, self.problem)
        counts = designs.round_design(design.weights, self._capped(total, design.weights))
        return designed(round_number, self._with_check_pulls(dim, counts), design, embedded)

    def _next_batch(self, state: SequentialState) -> NextBatch:
        """The candidate to go on with, and the design that is predicted to certify it first."""
        posterior = self._posterior(state.dim, state.seen)
        best = int(np.argmax(posterior.scores))
        candidate = best if state.candidate < 0 else state.candidate
        here = self.embedded(state.dim)
        dear = is_expensive(here)
        if dear and here.structured and best != candidate:  # by what both need in the proportions of the pulls so far
            mine, others = (self._pulls(state, one, here, posterior) for one in (candidate, best))
            candidate = best if others < tuning.HEURISTIC_SWITCH_OF_EPOCHS * mine else candidate
        batch = self._batch_for(state, candidate, state.dim, posterior)
        if best != candidate and not dear:
            worth = tuning.HEURISTIC_SWITCH_OF_EPOCHS * batch.effort
            vectors = state.dim < self.problem.num_arms  # then a design has so many arms at least:
            least = (
                min(len(current_test(state, best).open_rivals(threshold_of(self.problem))), state.dim) if vectors else 0
            )
            other = self._batch_for(state, best, state.dim, posterior) if least < worth else batch
            if other.effort < worth:
                batch = other
        if self.dim is None and opens(state, batch.candidate, batch.design.value):
            batch = self._other_dimension(state, batch, posterior)
        return batch

    def _pulls(self, state: SequentialState, candidate: int, embedded: Embedding, posterior: Posterior) -> float:
        """What a candidate is predicted to need in the proportions of the pulls so far."""
        test, white = self._open_test(state, candidate, posterior), self._white(embedded, embedded.dim)
        return sampling_rule.pulls_by(embedded, test, state.seen.counts, white=white)

    def _open_test(self, state: SequentialState, candidate: int, posterior: Posterior) -> OpenTest:
        return OpenTest.of(self.problem, state, current_test(state, candidate), posterior)

    def _other_dimension(self, state: SequentialState, batch: NextBatch, posterior: Posterior) -> NextBatch:
        """A larger dimension, if misspecification costs more than its extra directions would."""
        best = batch
        for dim in larger_dimensions(self.embedding, state.dim, self.problem.epsilon):
            here = self.embedded(best.dim)
            if is_expensive(here) and here.structured:  # with its misspecification and no more directions
                less = replace(here, misspecification=self.embedding.misspecification(dim))
                now, then = (self._pulls(state, batch.candidate, one, posterior) for one in (here, less))
                if then >= tuning.HEURISTIC_DIMENSION * now:
                    break
            other = self._batch_for(state, batch.candidate, dim, posterior)
            if other.effort >= best.effort:
                break
            best = other
        return best

    def _batch_for(self, state: SequentialState, candidate: int, dim: int, posterior: Posterior) -> NextBatch:
        embedded = self.embedded(dim)
        posed = None if not embedded.structured else partial(self._cache.posed, self.embedding, dim)
        return sampling_rule.next_batch(
            embedded,
            self._open_test(state, candidate, posterior),
            tolerance=self.tolerance,
            posed=posed,
            counts=state.seen.counts,
            white=self._white(embedded, dim),
        )

    def _posterior(self, dim: int, seen: Observations) -> Posterior:
        def form() -> Posterior:
            used, noise_scales = self.embedded(dim), typical_scales(self.problem, seen)
            white, norm_bound = self._white(used, dim), self.embedding.norm_bound
            return pooled_fit(used, seen, noise_scales, white=white, norm_bound=norm_bound).posterior()

        return self._cache.last("posterior", (dim, seen), form)

    def _white(self, used: Embedded, dim: int) -> Whitened | None:
        return None if not used.structured else self._cache.white(self.embedding, dim)

    def wager(self, state: SequentialState, plan: Plan, centre: int, rivals: IntArray) -> dict[str, Any]:
        used = self.embedded(plan.dim)
        margins = self._posterior(state.dim, state.seen).margins(centre, self.problem.epsilon)
        few = self.problem.num_arms <= FEW  # one product for all: its size may decide a row's last bit
        return {
            "embedded": used,
            "margins": margins if few else only(margins, rivals),
            "norm_bound": self.embedding.norm_bound,
            "white": self._white(used, plan.dim),
        }

    def best(self, seen: Observations, dim: int) -> int:
        return int(np.argmax(self._posterior(dim, seen).scores))

    def _capped(self, total: int, weights: FloatArray) -> int:
        return capped(total, weights, largest_batch=self.largest_batch, reserve=self.reserve)

    def _with_check_pulls(self, dim: int, counts: IntArray) -> IntArray:
        if not self.embedded(dim).structured or np.count_nonzero(counts) < dim:
            return counts  # of few arms each difference is told by these alone; with more it would be fitted
        return model_checks.with_check_pulls(self.embedding, dim, counts, share=self.reserve)

    def failed_checks(self, _: SequentialState, plan: Plan, seen: Observations) -> tuple[str, ...]:
        embedded = self.embedded(plan.dim)
        white = self._white(embedded, plan.dim)
        return model_checks.misfits(self.embedding, embedded, plan, seen, self.problem, white=white)

    def _obstacle(self, state: SequentialState) -> str:
        batch = self._next_batch(state)
        return model_checks.no_room(batch.dim, len(batch.bias_limited))
