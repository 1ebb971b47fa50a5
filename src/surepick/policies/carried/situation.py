"""What planning and evidence have in common: the question, the arms as an embedding sees them, and guesses."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from surepick.core.arrays import BoolArray, FloatArray, record
from surepick.core.design import Embedding, IndependentArms
from surepick.core.observations import Observations
from surepick.core.plan import Blocking
from surepick.designs import PosedArms
from surepick.embeddings import ArmEmbedding
from surepick.errors import ContractError
from surepick.estimators import NoiseMgf, NormalMgf
from surepick.estimators.mean_processes import MeanProcesses
from surepick.estimators.vector_processes import ArmVectors, VectorProcesses
from surepick.noise import known_scale
from surepick.policies.base import Problem
from surepick.policies.carried.block_equations import without_effects, without_effects_on_vectors
from surepick.policies.carried.guesses import Guess, guess_of_means, guess_of_vectors, measured_share
from surepick.policies.carried.rest import HEURISTIC_FIRST_START, Goal, start_weights
from surepick.policies.carried.state import CarriedState, Processes, open_rivals
from surepick.policies.certified import sampling_rule
from surepick.policies.certified.cache import Cache
from surepick.policies.certified.conclusion import threshold_of
from surepick.policies.certified.opening import embedded_in
from surepick.policies.certified.sampling_rule import PlugInMeans


@record
class Situation:
    """The question and the arms.

    Args:
        problem: what is asked.
        embedding: the family psi_d; where there are blocks, with a coordinate for their level.
        cache: of whitened coordinates and plug-in means.
        blocks: what is said of blocks; None: measurements are independent.
    """

    problem: Problem
    embedding: ArmEmbedding
    cache: Cache
    blocks: Blocking | None = None

    @property
    def support(self) -> tuple[float, float] | None:
        """The range in which means are, if there is one; block effects move them out of that of the rewards."""
        return self.problem.noise.support if self.blocks is None else None

    def without_effects(self, seen: Observations, past: Observations, dim: int) -> Observations:
        """What guesses are made of: where measurements have blocks, without the effects of these.

        Args:
            dim: of the embedding that the batch was planned in.
        """
        if self.blocks is None:
            return seen
        if isinstance(self.embedded(dim), IndependentArms):
            return without_effects(seen, past, self.problem.scales)
        return without_effects_on_vectors(seen, past, self.problem.scales, self.vectors(dim).white)

    def embedded(self, dim: int) -> Embedding | IndependentArms:
        """psi_d; arms without structure where d is so large that nothing is assumed of the arms, for speed."""
        return embedded_in(self.embedding, self.problem.num_arms, dim)

    def guess(self, processes: Processes | None, seen: Observations) -> Guess:
        """What the past suggests of the means."""
        if processes is None or isinstance(processes, MeanProcesses):

            def of_means() -> Guess:
                return guess_of_means(seen, self._typical_scales(seen), self.problem.epsilon)

            return self.cache.guess(0, seen, of_means)
        held = processes
        return self.cache.guess(held.dim, seen, lambda: guess_of_vectors(self._plug_in(held, seen)))

    def leader(self, processes: Processes, seen: Observations, away: BoolArray) -> int:
        """The arm to show: that with the best chance of being within epsilon of the best one, of those not away.

        The noise counts as it was measured where repeats say that it is less than declared: this enters no test.
        """
        declared = self._typical_scales(seen)
        share = measured_share(seen, declared)
        if isinstance(processes, MeanProcesses):
            guess = guess_of_means(seen, share * declared, self.problem.epsilon)
        else:
            plug_in = self._plug_in(processes, seen)
            guess = guess_of_vectors(replace(plug_in, noise_scale=share * plug_in.noise_scale))
        return guess.likeliest(self.problem.epsilon, away)

    def noise_mgf(self, seen: Observations) -> NoiseMgf | NormalMgf:
        """What the next batch may assume of the noise; in blocks the scales alone, since effects move the means."""
        if self.blocks is not None:
            scales = self.problem.scales
            return NoiseMgf(scales, np.inf, seen.means, seen.counts > 0, scales**2)
        if known_scale(self.problem.noise):
            return sampling_rule.mgf_after(self.problem, seen)
        return self.cache.noise(seen, lambda: sampling_rule.mgf_after(self.problem, seen))

    def _typical_scales(self, seen: Observations) -> FloatArray:
        return self.noise_mgf(seen).typical_scales(self.problem.epsilon)

    def vectors(self, dim: int) -> ArmVectors:
        """Those of psi_d.

        Raises:
            ContractError: it has none.
        """

        def form() -> ArmVectors:
            embedded, white = self.embedding.at(dim), self.cache.white(self.embedding, dim)
            if not isinstance(embedded, Embedding) or white is None or self.embedding.norm_bound is None:
                raise ContractError("arms without structure have no vectors.")
            return ArmVectors.of(embedded, white.basis, self.embedding.norm_bound)

        return self.cache.vectors(dim, form)

    def posed(self, dim: int, noise_scale: float | None) -> PosedArms:
        """The arms as designs see them: those of psi_d, or whitened and all with the same noise."""
        vectors = self.vectors(dim)

        def form() -> PosedArms:
            return PosedArms.of(vectors.embedded.features if noise_scale is None else vectors.white / noise_scale)

        return self.cache.posed((dim, noise_scale), form)

    def _plug_in(self, processes: VectorProcesses, seen: Observations) -> PlugInMeans:
        def form() -> PlugInMeans:
            noise_scales = self._typical_scales(seen)
            white = self.cache.white(self.embedding, processes.dim)
            return sampling_rule.plug_in_means(self.vectors(processes.dim).embedded, seen, noise_scales, white=white)

        return self.cache.plug_in(processes.dim, seen, form)

    def upper_bounds(self, processes: Processes, candidate: int) -> FloatArray:
        """U of every arm against the candidate, shape (K,)."""
        threshold = threshold_of(self.problem)

        def form() -> FloatArray:
            if isinstance(processes, MeanProcesses):
                return processes.upper_bounds(candidate, threshold, self.support)
            return processes.upper_bounds(self.vectors(processes.dim), candidate, threshold)

        return self.cache.bounds(processes, candidate, form)

    def goal(self, state: CarriedState, candidate: int, guess: Guess, margins: FloatArray) -> Goal:
        """The rivals of a candidate that are neither rejected nor beaten; one of them where there is none."""
        processes, epsilon, threshold = begun(state), self.problem.epsilon, threshold_of(self.problem)
        rivals = open_rivals(state, candidate, self.upper_bounds(processes, candidate), epsilon)
        least, noise_mgf = float(margins[rivals].min()), self.noise_mgf(state.seen)
        if isinstance(processes, MeanProcesses):
            seen_at = np.array(margins)
            seen_at[candidate] = least
            noise_scales = noise_mgf.noise_scales(seen_at)
        else:
            noise_scales = noise_mgf.noise_scales(least)
        return Goal(
            candidate,
            rivals,
            margins[rivals],
            epsilon,
            threshold,
            guess.scores,
            noise_scales,
            costs=self.problem.relative_costs,
            away=None if state.roster is None else state.away,
        )

    def moved(self, state: CarriedState, dim: int) -> CarriedState:
        """The state with its processes in d dimensions: where they hold something, all of them start anew."""
        if state.vectors is None or state.vectors.dim == dim:
            return state
        starts = state.vectors.starts + state.vectors.begun  # no start gives its weight back
        fresh = VectorProcesses.started(self.vectors(dim), 0.0)
        fresh = replace(fresh, log_values=start_weights(starts), starts=starts)
        return replace(state, vectors=fresh)

    def first_processes(self, dim: int) -> Processes:
        """Those of a study that begins in d dimensions."""
        first = math.log(HEURISTIC_FIRST_START)
        if isinstance(self.embedded(dim), IndependentArms):
            return MeanProcesses.started(self.problem.num_arms, first)
        return VectorProcesses.started(self.vectors(dim), first)


def begun(state: CarriedState) -> Processes:
    """The processes of a state after its first batch.

    Raises:
        ContractError: nothing was told yet.
    """
    if state.processes is None:
        raise ContractError("nothing was told yet.")
    return state.processes
