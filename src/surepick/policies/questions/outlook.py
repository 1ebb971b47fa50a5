"""What the past suggests of the means, for steering; and what a batch says, which is all that counts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from surepick.core.arrays import FloatArray, IntArray, record
from surepick.core.design import Design, Embedding, IndependentArms
from surepick.core.observations import BlockTotals, Observations
from surepick.designs import solve_target_design
from surepick.designs.pairs import independent_pairs_design
from surepick.embeddings import ArmEmbedding
from surepick.estimators import (
    NoiseMgf,
    NormalMgf,
    batch_evidence,
    e_values,
    noise_mgf_after,
    normal_mgf_of_all,
    with_squares,
)
from surepick.noise import failure_probability, known_scale
from surepick.policies.base import Problem
from surepick.policies.carried.guesses import guess_of_means, guess_of_vectors
from surepick.policies.certified import sampling_rule
from surepick.policies.certified.opening import embedded_in
from surepick.policies.dimension import best_found
from surepick.policies.questions.in_blocks import gains_in_blocks
from surepick.policies.questions.sheets import NUMBER, Bet

HEURISTIC_BOLD = 1.0  # share of the bet that promises most, of bold bets
HEURISTIC_DOUBT = 1.0  # standard errors within which a lead on the wrong side is taken for chance
HEURISTIC_CAUTION = 0.5  # standard errors by which leads are lowered where pulls are planned
HEURISTIC_LEAST_MARGIN = 0.25  # of a comparison's margin
MOST_TARGETS = 2000  # pairs that a design is made for


@record
class Aims:
    """The comparisons that are to be decided next.

    Args:
        first, second: the arms of each pair, or NUMBER in the second place, shape (m,).
        leads: the margin plus the lead that the null denies, as guessed, shape (m,), in reward units.
        needs: what the evidence of each pair still lacks, shape (m,).
        alone: pulls that each arm takes whatever is measured of others, shape (K,); None: pairs are all.
    """

    first: IntArray
    second: IntArray
    leads: FloatArray
    needs: FloatArray
    alone: FloatArray | None = None


@record
class Rest:
    """What is still to be measured, as it is predicted.

    Args:
        weights: shares of the pulls, shape (K,).
        pulls: how many.
        least: no design needs fewer; None where the design is for money.
        cost: money for them; None where all pulls cost alike.
    """

    weights: FloatArray
    pulls: float
    least: float | None
    cost: float | None


@record
class Outlook:
    """Guesses of the means.

    Args:
        scores: shape (K,), in reward units; absolute where there is a number to compare with.
        number: what arms are compared with, in the same units.
        errors: c or NUMBER -> standard errors of the difference of each arm to it, shape (K,).
    """

    scores: FloatArray
    number: float
    errors: Callable[[int], FloatArray]

    def score_of(self, centre: int) -> float:
        """That of an arm, or the number."""
        return self.number if centre == NUMBER else float(self.scores[centre])

    def leads(self, centre: int, *, high: bool) -> FloatArray:
        """By how much each arm is below the centre, or above it where `high`, as guessed; shape (K,)."""
        found = self.score_of(centre) - self.scores
        return -found if high else found

    def margins(self, bet: Bet) -> FloatArray:
        """By how much the truth contradicts each null of a bet, as guessed; no bet where it is not positive; (K,)."""
        lead = self.leads(bet.centre, high=bet.high)
        if bet.margin <= 0.0:
            return np.maximum(bet.margin + lead, 0.0)
        behind = np.minimum(lead + HEURISTIC_DOUBT * self.errors(bet.centre), 0.0)
        trails = np.maximum(bet.margin + behind, HEURISTIC_LEAST_MARGIN * bet.margin)
        return np.asarray(np.where(lead >= 0.0, bet.margin + lead, trails))

    def cautious(self, arms: IntArray, centre: int, margin: float, *, high: bool) -> FloatArray:
        """The same for planning, shape of `arms`: leads are lowered by part of their errors."""
        lead = self.leads(centre, high=high)[arms]
        lowered = np.maximum(lead - HEURISTIC_CAUTION * self.errors(centre)[arms], np.minimum(lead, 0.0))
        return np.asarray(np.maximum(margin + lowered, HEURISTIC_LEAST_MARGIN * abs(margin)))


@record
class Ground:
    """The arms as they are compared: in d dimensions, with one more at the origin where there is a number.

    Args:
        problem: what is asked.
        embedding: the family psi_d.
        dim: d.
        number: what arms are compared with; None: with each other.
        tolerance: relative gap of the designs.
        in_blocks: measurements of a block share an effect.
    """

    problem: Problem
    embedding: ArmEmbedding
    dim: int
    number: float | None
    tolerance: float
    in_blocks: bool = False

    @property
    def embedded(self) -> Embedding | IndependentArms:
        """psi_d; arms without structure where nothing is assumed of the arms."""
        return embedded_in(self.embedding, self.problem.num_arms, self.dim)

    @property
    def extended(self) -> Embedding | IndependentArms:
        """The same with the origin as the last arm, where vectors are compared with a number."""
        embedded = self.embedded
        if self.number is None or isinstance(embedded, IndependentArms):
            return embedded
        origin = np.zeros((1, embedded.dim))
        return Embedding(np.vstack([embedded.features, origin]), embedded.misspecification)

    def outlook(self, seen: Observations) -> Outlook:
        """What the past suggests."""
        number, extended = self.number or 0.0, self.extended
        scales = self.noise_mgf(seen).typical_scales(self.problem.epsilon)
        if isinstance(extended, IndependentArms):
            guess = guess_of_means(seen, scales, self.problem.epsilon)

            def errors(centre: int) -> FloatArray:
                if centre != NUMBER:
                    return guess.errors(centre)
                squares = guess.errors(0) ** 2
                return np.asarray(np.sqrt(np.maximum(squares - 0.5 * squares[0], 0.0)))

            return Outlook(guess.scores, number, errors)
        more = extended.num_arms - self.problem.num_arms
        longer, wider = with_more(seen, more), np.append(scales, np.full(more, scales.max()))
        fitted = guess_of_vectors(sampling_rule.plug_in_means(extended, longer, wider))
        scores = fitted.scores - (fitted.scores[-1] if more else 0.0)
        num_arms = self.problem.num_arms

        def distances(centre: int) -> FloatArray:
            return np.asarray(fitted.errors(num_arms if centre == NUMBER else centre)[:num_arms])

        return Outlook(scores[:num_arms], number, distances)

    def noise_mgf(self, past: Observations) -> NoiseMgf | NormalMgf:
        """What the next batch may assume of the noise; in blocks the scales alone, since effects move the means."""
        noise = self.problem.noise
        if self.in_blocks:
            scales = self.problem.scales
            return NoiseMgf(scales, np.inf, past.means, past.counts > 0, scales**2)
        if known_scale(noise):
            return noise_mgf_after(noise, past)
        return normal_mgf_of_all(past, failure_probability(noise, self.problem.delta))

    def gains(self, bet: Bet, past: Observations, seen: Observations, outlook: Outlook) -> FloatArray:
        """The log e-values of a batch for one bet, shape (K,); 0 for arms that do not bet (docs/questions.md, line 2).

        Args:
            past: everything told before the batch.
            seen: the batch.
            outlook: from the past.
        """
        noise, epsilon = self.problem.noise, self.problem.epsilon
        before, batch = (negated(past), negated(seen)) if bet.high else (past, seen)
        noise_mgf = self.noise_mgf(before)
        if self.in_blocks:
            margins = np.where(bet.arms, outlook.margins(bet), 0.0)
            caution = HEURISTIC_BOLD if bet.bold else e_values.HEURISTIC_CAUTION
            return gains_in_blocks(batch, self.problem.scales, bet, margins, caution)
        batch, scales = noise_mgf.usable(with_squares(noise, batch)), noise_mgf.noise_scales(epsilon)
        margins = np.where(bet.arms, outlook.margins(bet), 0.0)
        margin, centre, used = bet.margin, bet.centre, self.extended
        bold = bet.bold and isinstance(used, IndependentArms)
        caution = HEURISTIC_BOLD if bold else e_values.HEURISTIC_CAUTION
        if bet.centre == NUMBER:
            margin = margin - outlook.number if bet.high else margin + outlook.number
            if isinstance(used, IndependentArms):
                return e_values.number_evidence(batch, margin, margins, noise_mgf, scales, bet.needs, caution)
            centre = self.problem.num_arms
        more = 0 if isinstance(used, IndependentArms) else used.num_arms - self.problem.num_arms
        found = batch_evidence(
            used,
            with_more(batch, more),
            centre=centre,
            epsilon=margin,
            margins=np.append(margins, np.zeros(more)),
            noise_mgf=noise_mgf,
            noise_scales=np.append(scales, np.full(more, scales.max())),
            norm_bound=self.embedding.norm_bound,
            needs=np.append(bet.needs, np.zeros(more)),
            caution=caution,
        )
        return np.where(bet.arms, found.gains[: self.problem.num_arms], 0.0)

    def rest(self, aims: Aims, noise_mgf: NoiseMgf | NormalMgf) -> Rest:
        """What deciding all pairs is predicted to take still, by the design that does it with the fewest pulls.

        Where pulls cost c_x, the design is for noise scales s_x sqrt(c_x), and x gets its weight divided by c_x: then
        the design's value is money, in units of the cheapest pull.
        """
        scales, costs = noise_mgf.noise_scales(self.problem.epsilon), self.problem.relative_costs
        if aims.alone is not None:
            return self._with_alone(aims, aims.alone, scales)
        if costs is None:
            design = self._design(aims, scales)
            return Rest(design.weights, design.value, design.lower_bound, None)
        design = self._design(aims, scales * np.sqrt(costs))
        pulls = design.weights / costs
        return Rest(
            pulls / pulls.sum(),
            design.value * float(pulls.sum()),
            None,
            design.value * self.problem.cheapest_cost,
        )

    def _with_alone(self, aims: Aims, alone: FloatArray, scales: FloatArray) -> Rest:
        """The design of the pairs, raised to what each arm takes by itself."""
        costs, pulls = self.problem.relative_costs, alone
        if len(aims.first):
            design = self._design(aims, scales if costs is None else scales * np.sqrt(costs))
            shares = design.weights if costs is None else design.weights / costs
            pulls = np.maximum(design.value * shares, alone)
        cost = None if costs is None else float(pulls @ costs) * self.problem.cheapest_cost
        return Rest(pulls / pulls.sum(), float(pulls.sum()), None, cost)

    def _design(self, aims: Aims, scales: FloatArray) -> Design:
        """The design that decides all pairs with the fewest pulls; its value is their number."""
        accuracies = aims.leads / sampling_rule.efforts(-aims.needs, 0.0)
        embedded = self.embedded
        if isinstance(embedded, IndependentArms):
            return independent_pairs_design(aims.first, aims.second, accuracies, scales, tolerance=self.tolerance)
        vectors = embedded.features / scales[:, None]
        ends = np.where((aims.second >= 0)[:, None], embedded.features[aims.second], 0.0)
        bias = 2.0 * embedded.misspecification
        room = np.maximum(aims.leads - bias, sampling_rule.LEAST_SLACK * aims.leads) / aims.leads
        targets = (embedded.features[aims.first] - ends) / (accuracies * room)[:, None]
        if len(targets) > MOST_TARGETS:
            lengths = np.einsum("ij,ij->i", targets, targets)
            targets = targets[np.sort(np.argsort(-lengths, kind="stable")[:MOST_TARGETS])]
        return best_found(solve_target_design, vectors, targets, tolerance=self.tolerance)


def negated(seen: Observations) -> Observations:
    """The same with the sign of every reward turned."""
    held = seen.blocks
    blocks = None if held is None else BlockTotals(held.blocks, held.arms, held.counts, -held.sums)
    return Observations(seen.counts, -seen.sums, seen.squares, blocks=blocks, within=seen.within)


def with_more(seen: Observations, more: int) -> Observations:
    """The same with that many arms more, of which nothing was told."""
    if more == 0:
        return seen
    zeros = np.zeros(more)
    squares, within = (None if one is None else np.append(one, zeros) for one in (seen.squares, seen.within))
    counts = np.append(seen.counts, zeros.astype(np.int64))
    return Observations(counts, np.append(seen.sums, zeros), squares, within=within)
