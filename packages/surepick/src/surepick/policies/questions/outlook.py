"""What the past suggests of the means, for steering; and what a batch says, which is all that counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from surepick import designs, estimators
from surepick.core.observations import BlockTotals, Observations
from surepick.core.plans import Blocking, Design, Embedded, Embedding
from surepick.core.records import FloatArray, record
from surepick.designs.problem import independent_pairs_design
from surepick.embeddings import ArmEmbedding
from surepick.errors import InvalidInput
from surepick.estimators.pairs import pairs_with
from surepick.estimators.posterior import NUMBER, Posterior, efforts, pooled_fit, posterior_of_means
from surepick.noise import failure_probability, known_scale
from surepick.policies import tuning
from surepick.policies.base import Problem
from surepick.policies.carried.block_rule import equations
from surepick.policies.dimension import best_found
from surepick.policies.sequential.batches import repeats_for
from surepick.policies.sequential.engine import embedded_in
from surepick.questions import constraints_of, number_of
from surepick.questions.protocol import Aims, Bet

# --- Evidence of two arms where measurements of a block share an effect: they are compared within blocks only.


def gains_in_blocks(seen: Observations, scales: FloatArray, bet: Bet, margins: FloatArray, kappa: float) -> FloatArray:
    """The log e-values of a batch for one bet, shape (K,); 0 for arms that do not bet.

        L = sum_B w_j w_c / (w_j + w_c),   Q = sum_B w_j w_c / (w_j + w_c) (y_j(B) - y_c(B)),   w = n(B) / s^2
        gain = l (L margin - Q) - l^2 L / 2,    l = kappa times the guessed margin

    What all rewards of a block share drops out of y_j(B) - y_c(B), the means of both arms in block B.

    Source: docs/questions.md, line 19; docs/certified-elimination.md, lines 24 and 25.
    """
    gains = np.zeros(len(scales))
    blocks = seen.in_blocks
    arms = np.flatnonzero(bet.arms & (margins > 0.0) & (seen.counts > 0))
    if len(arms) == 0 or seen.counts[bet.centre] == 0:
        return gains
    found = equations(blocks, scales, bet.centre, arms, [])
    whole, drawn = found.matrix[:, 0, 0], found.totals[:, 0]
    placed = kappa * margins[arms] * whole
    costs = 0.5 * kappa * margins[arms] * placed
    shrunk, _ = estimators.e_values.enough(placed, margins[arms], costs, bet.needs[arms])
    levels = np.divide(shrunk, whole, out=np.zeros_like(whole), where=whole > 0.0)
    gains[arms] = levels * (whole * bet.margin - drawn) - found.cost(levels[:, None])
    return np.minimum(gains, estimators.e_values.CERTAIN)


def entries_in_blocks(embedded: Embedding, blocks: BlockTotals, scales: FloatArray) -> tuple[Embedding, Observations]:
    """Each entry of the blocks as an arm of its own behind the K arms, with its vector, and its rewards, less the mean
    of its block: weights of least squares on these sum to 0 in each block.

    Source: docs/certified-elimination.md, line 26; docs/questions.md, line 21.
    """
    rows = blocks.centred(embedded.features[blocks.arms], blocks.counts / scales[blocks.arms] ** 2)
    nothing, sums = np.zeros(embedded.num_arms), blocks.counts * blocks.centred_means
    counts = np.append(nothing.astype(np.int64), blocks.counts)
    features = np.vstack([embedded.features, rows])
    return Embedding(features, embedded.misspecification), Observations(counts, np.append(nothing, sums))


def apart_in_blocks(blocks: BlockTotals | None, centre: int, num_arms: int) -> Observations:
    """The differences of each arm to the centre within blocks, as if each were a reward of the arm."""
    if blocks is None:
        nothing = Observations.nothing(num_arms)
        return replace(nothing, squares=nothing.sums)
    return pairs_with(blocks, centre, num_arms).differences


def mgf_of_differences(known: Observations, failure: float) -> estimators.NormalMgf:
    """What the next differences to a centre may assume: bounds that hold for all pairs of arms at once.

    Source: docs/questions.md, line 20.
    """
    others = max(len(known.counts) - 1, 1)
    return estimators.normal_mgf_of_all(known, 2.0 * failure / others)  # of K (K - 1) / 2 pairs each has its share


def check_blocks(problem: Problem, blocking: Blocking | None, *, features: bool) -> None:
    """Refuse blocks where their effects would not drop out."""
    if blocking is None:
        return
    shifts, declared = not blocking.again, known_scale(problem.noise)
    if not shifts and declared:
        raise InvalidInput(
            f"how much differences within a {blocking.name} vary is measured, not declared: with streams take --noise "
            "normal (Normal()), and with a declared noise --blocks."
        )
    if shifts and number_of(problem) is not None:
        raise InvalidInput(
            f"a {blocking.name} may shift all of its measurements, and a threshold does not shift with them: measure a "
            "control in the place of the threshold (control=ID, --control ID), or leave blocks out."
        )
    if shifts and any(one.noise is not None for one in constraints_of(problem.question)):
        raise InvalidInput(
            f"a {blocking.name} may shift the quantities of the constraints too, and their bounds do not shift with "
            "them: leave blocks out. A quantity without noise shows it, and may stay."
        )
    if features and not declared:
        raise InvalidInput(
            f"with features two candidates are compared by a sum over many measurements of a {blocking.name}, and "
            "repeats show how much differences of two vary, not such sums: take certified-independent (--policy "
            "certified-independent), or declare subgaussian:SIGMA."
        )


HEURISTIC_BOLD = 1.0  # share of the bet that promises most, of bold bets
MOST_TARGETS = 2000  # pairs that a design is made for


@record
class RemainingOfBets:
    """What is still to be measured, as it is predicted."""

    weights: FloatArray  # shares of the pulls, (K,)
    pulls: float  # how many
    least: float | None  # no design needs fewer; None where the design is for money
    cost: float | None  # money for them; None where all pulls cost alike


@record
class Ground:
    """The arms as they are compared: in d dimensions, with one more at the origin where there is a number."""

    problem: Problem  # what is asked
    embedding: ArmEmbedding  # the family psi_d
    dim: int  # d
    number: float | None  # what arms are compared with; None: with each other
    tolerance: float  # relative gap of the designs
    in_blocks: bool = False  # measurements of a block share an effect
    in_pairs: bool = False  # differences within blocks are compared, of which nobody knows how much they vary

    @property
    def embedded(self) -> Embedded:
        """psi_d; arms without structure where nothing is assumed of the arms."""
        return embedded_in(self.embedding, self.dim)

    @property
    def repeats(self) -> int:
        """Pulls of an arm after which its pulls may be evidence."""
        return repeats_for(failure_probability(self.problem.noise, self.problem.delta) / self.problem.num_arms)

    @property
    def extended(self) -> Embedded:
        """The same with the origin as the last arm, where vectors are compared with a number."""
        embedded = self.embedded
        if self.number is None or not embedded.structured:
            return embedded
        origin = np.zeros((1, embedded.dim))
        return Embedding(np.vstack([embedded.features, origin]), embedded.misspecification)

    def posterior(self, seen: Observations) -> Posterior:
        """What the past suggests; absolute where there is a number to compare with."""
        number, extended = self.number or 0.0, self.extended
        scales = self.noise_mgf(seen).typical_scales(self.problem.epsilon)
        if not extended.structured:
            return posterior_of_means(seen, scales, self.problem.epsilon, number=number)
        num_arms, more = self.problem.num_arms, extended.num_arms - self.problem.num_arms
        longer, wider = with_unmeasured(seen, more), np.append(scales, np.full(more, scales.max()))
        fitted = pooled_fit(extended, longer, wider).posterior()
        scores = fitted.scores - (fitted.scores[-1] if more else 0.0)

        def errors(centre: int) -> FloatArray:
            return np.asarray(fitted.errors(num_arms if centre == NUMBER else centre)[:num_arms])

        return Posterior(scores[:num_arms], errors, number)

    def noise_mgf(self, past: Observations) -> estimators.Mgf:
        """What the next batch may assume of the noise; in blocks the scales alone, since effects move the means."""
        noise = self.problem.noise
        if self.in_blocks:
            scales = self.problem.scales
            return estimators.NoiseMgf(scales, np.inf, past.means, past.counts > 0, scales**2)
        if known_scale(noise):
            return estimators.noise_mgf_after(noise, past)
        return estimators.normal_mgf_of_all(past, failure_probability(noise, self.problem.delta))

    def gains(self, bet: Bet, past: Observations, seen: Observations, posterior: Posterior) -> FloatArray:
        """Log e-values of a batch for one bet, shape (K,); 0 for arms that do not bet (docs/questions.md, line 2)."""
        return self.wager(bet, past, posterior)(seen)

    def wager_on_pairs(
        self, bet: Bet, past: BlockTotals | None, posterior: Posterior
    ) -> Callable[[Observations], FloatArray]:
        """The same of differences within blocks, as if each were a reward of its arm (docs/questions.md, line 20)."""

        def apart(blocks: BlockTotals | None) -> Observations:
            found = apart_in_blocks(blocks, bet.centre, self.problem.num_arms)
            return negated(found) if bet.high else found

        known = apart(past)
        mgf = mgf_of_differences(known, failure_probability(self.problem.noise, self.problem.delta))
        margins, kappa = np.where(bet.arms, bet.margins(posterior), 0.0), tuning.HEURISTIC_KAPPA

        def judged(seen: Observations) -> FloatArray:
            batch, scales = mgf.usable(apart(seen.blocks)), mgf.noise_scales(self.problem.epsilon)
            return estimators.e_values.number_evidence(batch, bet.margin, margins, mgf, scales, bet.needs, kappa)

        return judged

    def wager(
        self, bet: Bet, past: Observations, posterior: Posterior, blocks: BlockTotals | None = None
    ) -> Callable[[Observations], FloatArray]:
        """The batch -> `gains`, by bets that rest on what was told before it, and what its blocks had."""
        if self.in_pairs and bet.centre != NUMBER:
            return self.wager_on_pairs(bet, blocks, posterior)

        def turned(seen: Observations) -> Observations:
            return negated(seen) if bet.high else seen

        noise, epsilon, used = self.problem.noise, self.problem.epsilon, self.extended
        noise_mgf = self.noise_mgf(turned(past))
        margins, scales = np.where(bet.arms, bet.margins(posterior), 0.0), noise_mgf.noise_scales(epsilon)
        kappa = HEURISTIC_BOLD if bet.bold and not used.structured else tuning.HEURISTIC_KAPPA
        margin, centre, more = bet.margin, bet.centre, used.num_arms - self.problem.num_arms if used.structured else 0
        if bet.centre == NUMBER:
            margin = margin - posterior.number if bet.high else margin + posterior.number
            centre = self.problem.num_arms

        def judged(seen: Observations) -> FloatArray:
            batch = turned(seen)
            if self.in_blocks:
                if used.structured:
                    return self._gains_of_entries(used, batch, bet, margins, kappa)
                return gains_in_blocks(batch, self.problem.scales, bet, margins, kappa)
            batch = noise_mgf.usable(estimators.with_squares(noise, batch))
            if bet.centre == NUMBER and not used.structured:
                return estimators.e_values.number_evidence(batch, margin, margins, noise_mgf, scales, bet.needs, kappa)
            found = estimators.batch_evidence(
                used,
                with_unmeasured(batch, more),
                centre=centre,
                epsilon=margin,
                margins=np.append(margins, np.zeros(more)),
                noise_mgf=noise_mgf,
                noise_scales=np.append(scales, np.full(more, scales.max())),
                norm_bound=self.embedding.norm_bound,
                needs=np.append(bet.needs, np.zeros(more)),
                kappa=kappa,
            )
            return np.where(bet.arms, found.gains[: self.problem.num_arms], 0.0)

        return judged

    def _gains_of_entries(
        self, used: Embedding, batch: Observations, bet: Bet, margins: FloatArray, kappa: float
    ) -> FloatArray:
        """The gains where vectors are compared within blocks (docs/questions.md, line 21)."""
        blocks, scales = batch.in_blocks, self.problem.scales
        embedded, entries = entries_in_blocks(used, blocks, scales)
        both, nothing = np.append(scales, scales[blocks.arms]), np.zeros(len(blocks.arms))
        noise_mgf = estimators.NoiseMgf(both, np.inf, np.zeros_like(both), entries.counts > 0, both**2)
        found = estimators.batch_evidence(
            embedded,
            entries,
            centre=bet.centre,
            epsilon=bet.margin,
            margins=np.append(margins, nothing),
            noise_mgf=noise_mgf,
            noise_scales=both,
            norm_bound=self.embedding.norm_bound,
            needs=np.append(bet.needs, nothing),
            kappa=kappa,
            owners=np.append(np.arange(self.problem.num_arms), blocks.arms),
        )
        return np.where(bet.arms, found.gains[: self.problem.num_arms], 0.0)

    def rest(self, aims: Aims, noise_mgf: estimators.Mgf) -> RemainingOfBets:
        """What deciding all pairs is predicted to take still, by the design that does it with the fewest pulls.

        Where pulls cost c_x, the design is for noise scales s_x sqrt(c_x), and x gets its weight divided by c_x: then
        the design's value is money, in units of the cheapest pull.
        """
        scales, costs = noise_mgf.noise_scales(self.problem.epsilon), self.problem.relative_costs
        pulls, cheapest = aims.alone, self.problem.cheapest_cost
        if pulls is None or len(aims.first):
            design = self._design(aims, scales if costs is None else scales * np.sqrt(costs))
            shares = design.weights if costs is None else design.weights / costs
            if pulls is None and costs is None:
                return RemainingOfBets(shares, design.value, design.lower_bound, None)
            if pulls is None:
                total = float(shares.sum())
                return RemainingOfBets(shares / total, design.value * total, None, design.value * cheapest)
            pulls = np.maximum(design.value * shares, pulls)  # raised to what each arm takes by itself
        cost = None if costs is None else float(pulls @ costs) * cheapest
        return RemainingOfBets(pulls / pulls.sum(), float(pulls.sum()), None, cost)

    def _design(self, aims: Aims, scales: FloatArray) -> Design:
        """The design that decides all pairs with the fewest pulls; its value is their number."""
        accuracies = aims.leads / efforts(-aims.needs, 0.0)
        embedded = self.embedded
        if not embedded.structured:
            return independent_pairs_design(aims.first, aims.second, accuracies, scales, tolerance=self.tolerance)
        vectors = embedded.features / scales[:, None]
        ends = np.where((aims.second >= 0)[:, None], embedded.features[aims.second], 0.0)
        bias = 2.0 * embedded.misspecification
        room = np.maximum(aims.leads - bias, tuning.LEAST_SLACK * aims.leads) / aims.leads
        targets = (embedded.features[aims.first] - ends) / (accuracies * room)[:, None]
        if len(targets) > MOST_TARGETS:
            lengths = np.einsum("ij,ij->i", targets, targets)
            targets = targets[np.sort(np.argsort(-lengths, kind="stable")[:MOST_TARGETS])]
        return best_found(designs.solve_target_design, vectors, targets, tolerance=self.tolerance)


def negated(seen: Observations) -> Observations:
    """The same with the sign of every reward turned."""
    held = seen.blocks
    blocks = None if held is None else BlockTotals(held.blocks, held.arms, held.counts, -held.sums)
    return Observations(seen.counts, -seen.sums, seen.squares, blocks=blocks, within=seen.within)


def with_unmeasured(seen: Observations, more: int) -> Observations:
    """The same with that many arms more, of which nothing was told."""
    return seen.mapped(lambda column: np.append(column, np.zeros(more, column.dtype)))
