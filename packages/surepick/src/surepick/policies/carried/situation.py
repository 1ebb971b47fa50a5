"""What planning and evidence have in common: the question, the arms as an embedding sees them, and guesses."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from surepick.core.observations import Observations
from surepick.core.plans import Blocking, Embedded, Intervals
from surepick.core.records import BoolArray, FloatArray, IntArray, record
from surepick.designs import DesignInput
from surepick.embeddings import ArmEmbedding
from surepick.errors import ContractError, InvalidInput
from surepick.estimators import Mgf, NoiseMgf, RegularLeastSquares, posterior as guesses
from surepick.estimators.running_processes import UNKNOWN, ArmVectors, MeanProcesses, Processes, VectorProcesses
from surepick.noise import known_scale
from surepick.policies.base import Problem, threshold_of
from surepick.policies.carried.block_rule import without_effects, without_effects_on_vectors
from surepick.policies.sequential import batches, state as states
from surepick.policies.sequential.engine import MOST_DIMENSIONS, Memo, mgf_after
from surepick.policies.sequential.state import S
from surepick.text import did_you_mean

LATER_SHARES = (0.1, 0.5)  # of delta, for those that come later: the least and the most that is usual
HEURISTIC_FEW = 8  # arms of which there are less than one in so many are looked at alone


@record
class DecisionContext:
    """The question and the arms."""

    problem: Problem  # what is asked
    embedding: ArmEmbedding  # the family psi_d; where there are blocks, with a coordinate for their level
    cache: Memo  # of what belongs to the last states
    blocks: Blocking | None = None  # what is said of blocks; None: measurements are independent
    later_share: float | None = None  # the share of delta that is set aside for arms that come later; None: none do
    num_later: int = 0  # how many may come

    def thresholds(self, roster: states.Availability | None) -> FloatArray | float:
        """log(1/delta_j) of the process of each arm, shape (K,), or of all alike.

            delta_j = delta (1 - r) for the first list,   delta r n_g / n for the n_g of n that came as the g-th group

        Source: docs/changing-candidates.md, line 33.
        """
        threshold, share = threshold_of(self.problem), self.later_share
        if share is None or roster is None or roster.cohorts is None:
            return threshold
        came = np.bincount(np.maximum(roster.cohorts, 0))[np.maximum(roster.cohorts, 0)]  # n_g, of each arm
        came = np.where(roster.cohorts > 0, came, 1)  # who is not there yet, has no evidence
        return threshold - np.where(
            roster.cohorts == 0, math.log1p(-share), math.log(share / self.num_later) + np.log(came)
        )

    @property
    def support(self) -> tuple[float, float] | None:
        """The range in which means are, if there is one; block effects move them out of that of the rewards."""
        return self.problem.noise.support if self.blocks is None else None

    @property
    def repeats(self) -> int:
        """Pulls of an arm after which its pulls may enter the processes of others."""
        return batches.least(self.problem)

    def without_effects(self, seen: Observations, past: Observations, dim: int) -> Observations:
        """What guesses are made of: where measurements have blocks, without the effects of these."""
        if self.blocks is None:
            return seen
        if not self.embedded(dim).structured:
            return without_effects(seen, past, self.problem.scales)
        return without_effects_on_vectors(seen, past, self.problem.scales, self.vectors(dim).white)

    def embedded(self, dim: int) -> Embedded:
        """psi_d; arms without structure where d is so large that nothing is assumed of the arms, for speed."""
        return self.cache.embedded(self.embedding, dim)

    def guess(self, processes: Processes | None, seen: Observations) -> guesses.Posterior:
        """What the past suggests of the means."""

        def form() -> guesses.Posterior:
            if processes is None or not processes.structured:
                return guesses.posterior_of_means(seen, self._typical_scales(seen), self.problem.epsilon)
            return self._fit(processes, seen).posterior(self.vectors(processes.dim).lengths)

        dim = 0 if processes is None or not processes.structured else processes.dim
        return self.cache.last("guess", (dim, seen), form)

    def leader(self, processes: Processes, seen: Observations, away: BoolArray) -> int:
        """The arm to show: that with the best chance of being within epsilon of the best one, of those not away.

        The noise counts as it was measured where repeats say that it is less than declared: this enters no test.
        """
        declared = self._typical_scales(seen)
        share = float(guesses.measured_share(seen, declared))
        if share == 1.0:
            guess = self.guess(processes, seen)
        elif not processes.structured:
            guess = guesses.posterior_of_means(seen, share * declared, self.problem.epsilon)
        else:
            fit = self._fit(processes, seen)
            fit = replace(fit, noise_scale=share * fit.noise_scale)
            guess = fit.posterior(self.vectors(processes.dim).lengths)
        return guess.likeliest(self.problem.epsilon, away)

    def noise_mgf(self, seen: Observations) -> Mgf:
        """What the next batch may assume of the noise; in blocks the scales alone, since effects move the means."""
        if self.blocks is not None:
            scales = self.problem.scales
            return NoiseMgf(scales, np.inf, seen.means, seen.counts > 0, scales**2)
        return self.cache.last("noise", seen, lambda: mgf_after(self.problem, seen), most=2)

    def _typical_scales(self, seen: Observations) -> FloatArray:
        return self.noise_mgf(seen).typical_scales(self.problem.epsilon)

    def vectors(self, dim: int) -> ArmVectors:
        """Those of psi_d."""

        def form() -> ArmVectors:
            embedded, white = self.embedding.at(dim), self.cache.white(self.embedding, dim)
            if not embedded.structured or white is None or self.embedding.norm_bound is None:
                raise ContractError("arms without structure have no vectors.")
            return ArmVectors.of(embedded, white.basis, self.embedding.norm_bound)

        return self.cache.last("vectors", dim, form, most=MOST_DIMENSIONS)

    def posed(self, dim: int, noise_scale: float | None) -> DesignInput:
        """The arms as designs see them: those of psi_d, or whitened and all with the same noise.

        Distinct arms are the same problem in both, up to the rounding of their coordinates.
        """
        arms = self.cache.posed(self.embedding, dim)
        if noise_scale is None:
            return arms
        if arms.distinct:
            return arms.whitened_at(noise_scale)
        return self.cache.last(
            "whitened", (dim, noise_scale), lambda: DesignInput.of(self.vectors(dim).white / noise_scale)
        )

    def _fit(self, processes: VectorProcesses, seen: Observations) -> guesses.PooledFit:
        def form() -> guesses.PooledFit:
            vectors, scales = self.vectors(processes.dim), self._typical_scales(seen)
            white = self.cache.white(self.embedding, processes.dim)
            fit: RegularLeastSquares | None
            if guesses.follows_noise(processes.dim):
                told = vectors.white, vectors.back, seen
                fit = RegularLeastSquares.shrunk(*told, noise_scales=scales, norm_bound=vectors.norm_bound)
            else:
                fit = None if white is None else RegularLeastSquares.of(white, seen)
            if fit is not None:
                return guesses.PooledFit(fit.scores, fit, float(scales.max()))
            return guesses.pooled_fit(vectors.embedded, seen, scales, white=white)

        return self.cache.last("fit", (processes.dim, seen), form)

    def upper_bounds(
        self, processes: Processes, candidate: int, roster: states.Availability | None = None
    ) -> FloatArray:
        """U of every arm against the candidate, shape (K,)."""
        threshold = self.thresholds(roster)

        def form() -> FloatArray:
            if not processes.structured:
                return processes.upper_bounds(candidate, threshold, self.support)
            return processes.upper_bounds(self.vectors(processes.dim), candidate, threshold)

        return self.cache.of("bounds", processes, candidate, form)

    def tightened_by(
        self, state: states.SequentialState, processes: Processes, candidate: int
    ) -> tuple[states.UpperBounds, ...]:
        """The candidates of a state with what the processes after its next batch say of one of them.

        An arm whose process holds what it held when the candidate was looked at last has the bound of then: only the
        allowance for rounding may have grown.
        """
        before, changed = state.vectors, np.arange(len(state.beaten))
        if before is not None and processes.structured and looked_at(state, candidate):
            changed = processes.changed_since(before)
        if processes.structured and HEURISTIC_FEW * len(changed) < len(state.beaten):
            vectors, threshold = self.vectors(processes.dim), self.thresholds(state.roster)
            bounds = processes.upper_bounds(vectors, candidate, threshold, changed)
        else:
            bounds = self.upper_bounds(processes, candidate, state.roster)
        return states.intersected(state.tested, candidate, bounds)

    def goal(
        self,
        state: states.SequentialState,
        candidate: int,
        guess: guesses.Posterior,
        margins: Callable[[IntArray], FloatArray],
    ) -> states.OpenComparisons:
        """The rivals of a candidate that are neither rejected nor beaten; one of them where there is none."""
        processes, epsilon, threshold = state.processes, self.problem.epsilon, self.thresholds(state.roster)
        if looked_at(state, candidate):  # what these processes say is in the bounds of the state
            bounds = state.bounds_of(candidate)
        else:
            bounds = self.upper_bounds(processes, candidate, state.roster)
        rivals = states.open_rivals(state, candidate, bounds, epsilon)
        noise_mgf = self.noise_mgf(state.seen)
        if not processes.structured:
            seen_at = np.array(margins(np.arange(len(state.beaten))))
            own = seen_at[rivals]
            seen_at[candidate] = own.min()
            noise_scales = noise_mgf.noise_scales(seen_at)
        else:
            own = margins(rivals)
            noise_scales = noise_mgf.noise_scales(float(own.min()))
        return states.OpenComparisons(
            candidate,
            rivals,
            own,
            epsilon,
            threshold if isinstance(threshold, float) else threshold[rivals],
            guess.scores,
            noise_scales,
            costs=self.problem.relative_costs,
            away=None if state.roster is None else state.away,
        )

    def moved(self, state: states.SequentialState, dim: int) -> states.SequentialState:
        """The state with its processes in d dimensions: where they hold something, all of them start anew."""
        if state.vectors is None or state.vectors.dim == dim:
            return state
        starts = state.vectors.starts + state.vectors.begun  # no start gives its weight back
        fresh = VectorProcesses.started(self.vectors(dim), 0.0)
        fresh = replace(fresh, log_values=states.start_weights(starts), starts=starts)
        return replace(state, vectors=fresh)

    def processes_for(self, state: states.SequentialState, dim: int) -> Processes:
        """Those that a batch in d dimensions goes on with: new ones in the first one, and in another dimension."""
        if state.begun:
            return self.moved(state, dim).processes
        first = math.log(states.HEURISTIC_FIRST_START)
        if not self.embedded(dim).structured:
            return MeanProcesses.started(self.problem.num_arms, first)
        return VectorProcesses.started(self.vectors(dim), first)

    def with_added(
        self, state: states.SequentialState, arms: IntArray
    ) -> tuple[states.SequentialState, states.Availability]:
        """(what stays known, who is there) when some arms come; `CarriedElimination.add` has the arguments."""
        roster = state.roster
        if roster is None or roster.cohorts is None or (roster.cohorts[arms] >= 0).any():
            raise InvalidInput("only candidates that were declared to come later can be added, each once.")
        come = np.isin(np.arange(len(roster.unavailable)), arms)
        groups = np.where(come, max(int(roster.cohorts.max()), 0) + 1, roster.cohorts)
        anew = tuple(replace(one, bounds=np.where(come, UNKNOWN, one.bounds)) for one in state.tested)
        return replace(state, tested=anew), states.Availability(
            roster.unavailable & ~come, roster.excluded & ~come, groups
        )

    def relisted(
        self, state: states.SequentialState, roster: states.Availability, *, over: bool
    ) -> states.SequentialState:
        """The state with that list, and what follows from it at once for the candidates."""
        away, dropped, tested = roster.unavailable, roster.excluded, state.tested
        leader = int(np.argmin(away)) if away[state.leader] else state.leader
        if state.begun:
            processes = replace(state.processes)  # another object for the cache, since thresholds may be others
            leader = self.leader(processes, state.seen, away) if away[state.leader] else leader
            tested = states.intersected(tested, leader, self.upper_bounds(processes, leader, roster))
        finished = "budget" if over else ""
        if not state.begun and np.count_nonzero(~away) == 1 and not over:
            finished = "single" if np.count_nonzero(~dropped) == 1 else "withdrawn"
        return replace(
            state,
            tested=tested,
            beaten=state.beaten | np.any([one.bounds < 0.0 for one in tested], axis=0),
            candidate=leader if state.candidate >= 0 and away[state.candidate] else state.candidate,
            leader=leader,
            finished=finished,
            roster=roster,
        )


def without_arms(state: S, arms: IntArray, independent: BoolArray) -> tuple[S, states.Availability]:
    """(what stays known, who is there) when some arms go; `CarriedElimination.withdraw` has the arguments."""
    away, dropped = np.array(state.away), np.array(state.dropped)
    away[arms], dropped[arms[independent]] = True, True
    if away.all():
        raise InvalidInput("all candidates would be withdrawn; close the study instead.")
    tested = tuple(one for one in state.tested if not dropped[one.candidate])
    shown = np.zeros_like(away) if (dropped & ~state.dropped).any() else state.beaten  # perhaps by one who left
    groups = None if state.roster is None else state.roster.cohorts
    if groups is not None:
        groups = np.where(np.isin(np.arange(len(away)), arms), np.maximum(groups, 0), groups)
    return replace(state, tested=tested, beaten=shown), states.Availability(away, dropped, groups)


def checked_later(
    problem: Problem, later: tuple[str, ...] | None, share: float | None, *, blocks: bool
) -> tuple[tuple[str, ...] | None, float | None]:
    """(the arms that come later, their share of delta), as `CarriedElimination` has them."""
    if later is None:
        if share is not None:
            raise InvalidInput("later_share has a meaning only with later: ids of candidates that may come.")
        return None, None
    ids = () if problem.arms is None else problem.arms.ids
    unknown = [one for one in later if one not in set(ids)]
    if unknown or not 0 < len(set(later)) == len(later) < len(ids):
        why = f": {unknown[0]!r} is none of them" if unknown else ""
        meant = did_you_mean(unknown[0], ids) if unknown else ""
        raise InvalidInput(f"later holds ids of some candidates of the study, each once, and not of all{why}.{meant}")
    if blocks or not known_scale(problem.noise):
        raise InvalidInput(
            "candidates can come later without blocks, and where the noise scale is declared: the bound on that of the "
            "best candidate holds for one that is there from the start."
        )
    least, most = LATER_SHARES
    return tuple(later), min(max(len(later) / len(ids), least), most) if share is None else share


def looked_at(state: states.SequentialState, candidate: int) -> bool:
    """Whether the bounds of the state against a candidate are those of its processes, and of all before them.

    That holds of the leader and the candidate of the last batch, if the processes have not moved since, and no arm has
    come or gone.
    """
    if state.roster is not None or state.vectors is None or state.vectors.dim != state.dim:
        return False
    return candidate in (state.leader, state.candidate) and any(one.candidate == candidate for one in state.tested)


def carried_intervals(after: states.SequentialState, guess: guesses.Posterior, epsilon: float) -> Intervals:
    """The rivals of the candidate, and by how much each can be better than it at most (line 14).

    The guess of a lead is of the pooled fit and the bound is not, so a guess may lie below -U, which is proved. Then
    the lead is -U, the nearest number that the proof allows, and the width 0: width - lead is U as everywhere.

    A beaten arm that the candidate did not reject is compared with the arm that beat it; then nothing is tolerated.
    """
    num_arms = len(after.beaten)
    centre = after.leader if after.candidate < 0 else after.candidate
    rivals = np.flatnonzero((np.arange(num_arms) != centre) & ~after.dropped)
    bounds, allowed = np.array(after.bounds_of(centre)), np.full(num_arms, epsilon)
    comparators = np.full(num_arms, centre)
    for one in after.tested:
        better = after.beaten & (bounds > epsilon) & (one.bounds < 0.0)
        bounds[better], comparators[better], allowed[better] = one.bounds[better], one.candidate, 0.0
    known, leads = bounds < UNKNOWN, guess.scores[comparators] - guess.scores
    leads = np.where(known, np.maximum(leads, -bounds), leads)
    return Intervals(
        arms=rivals,
        comparators=comparators[rivals],
        leads=leads[rivals],
        widths=np.where(known, bounds + leads, np.inf)[rivals],
        margins=np.where(known, allowed - bounds, -np.inf)[rivals],
        allowed=allowed[rivals],
    )
