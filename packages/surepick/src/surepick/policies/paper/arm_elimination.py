"""Algorithm 1, arm elimination with adaptive embedding; Algorithm 3 and RAGE (Fiez et al. 2019) are settings of it.

    input   arms X, accuracy epsilon, error probability delta, rounding slack zeta
     1      n = ceil(log2(2 R / epsilon)), S_1 = X                                     num_rounds, initial_state
     2      for k = 1, 2, ..., n:
     3          delta_k = delta / (k (k + 1))                                          round_delta
                d_k, for which eps_k < t_k = R 2^-k                                    AdaptiveDimension.choose
     4          psi = psi_{d_k}, |h - <psi, theta>| <= gamma-tilde                     ArmEmbedding.at
     5          tau_k = min over designs of max over S_k of ||psi(x') - psi(x)||^2     dimension.embedding_design
     6          eps_k = gamma-tilde (2 + sqrt((1 + zeta) tau_k))                       dimension.bias
                N_k = ceil(2 sigma^2 (1 + zeta) tau_k L_k / (t_k - eps_k)^2)           round_size
     7          round the design to N_k pulls                                          rounded_counts
     8          pull, and receive rewards                                              between `ask` and `tell`
     9          theta_k = A_k^-1 b_k                                                   estimators.estimate
    10          x goes when <psi(x') - psi(x), theta_k> >= omega_k for some x'         compare
    11      end, sooner or later than n                                                conclude
    output  the arm of highest score in S_{n+1}                                        ArmElimination.claim

The functions below stand in this order, and "line 6" in a comment is that line. Where the formulas are not the paper's,
docs/paper-map.md says why; docs/elimination.md proves what is promised.

L_k = log(looks M_k / delta_k) pays for every pair and look. A round fixes its allocation before its first reward. It
may be judged at several looks, each a prefix with fixed counts, whose least squares is that of a fixed design. What
must be paid for at a look is |S_k| - 1 one-sided events: that the best arm is underestimated against another by more
than the width. So all looks and rounds together spend at most sum_k delta_k max_m (m - 1) / M(m), whatever the data;
a certificate is a theorem when that is at most delta (`RoundSettings.spent`).

Algorithm 3 takes one d for all rounds: its lines 1 and 2 are `FixedDimension.bound`, its line 4 is delta_k, and from 5
on its lines are those above. RAGE takes all features as they are (`WholeSpace`: gamma-tilde is 0), with delta / k^2 and
2 |X|^2 events.
"""

from __future__ import annotations

import math
from dataclasses import field, replace
from typing import ClassVar, Self

import numpy as np

from surepick import designs
from surepick.core.observations import Observations
from surepick.core.plans import Design, Embedded, Leading, Plan, Step, intervals_after
from surepick.core.records import IntArray, frozen, record, set_fields
from surepick.core.values import check_choice
from surepick.embeddings import ArmEmbedding
from surepick.errors import ContractError, InvalidInput
from surepick.estimators import Estimate, estimate
from surepick.policies import dimension as dimensions, model_checks, options
from surepick.policies.base import Claim, Problem, Spec, Traits, check_arms, designed, trace_row
from surepick.policies.options import check_options, one_of, option, whole
from surepick.policies.paper.pair_rule import PairRule, not_ruled_out

SCHEDULES = ("convergent", "paper", "uniform")
UNIONS = ("best-pairs", "paper", "all", "rage")
FLOORS = ("support", "published")
STOPPINGS = ("certified", "rounds")
ADAPTIVE = ("cheapest", "effective")
FIXED = ("guarded", "effective")
EPS = float(np.finfo(np.float64).eps)


@record
class ArmElimination:
    """Round k embeds the arms in d_k dimensions, measures an optimal design there, and rules out the arms that cannot
    be the best.

        t_k   = R 2^-k                                         R = gap_bound / 2
        eps_k = gamma-tilde(d_k) (2 + sqrt((1 + zeta) tau_k))
        N_k   = ceil(2 sigma^2 (1 + zeta) tau_k L_k / (t_k - eps_k)^2)
        omega_k(y) = 2 gamma-tilde + ||y||_{A_k^-1} (gamma-tilde sqrt(N_k) + sigma sqrt(2 L_k))
        x goes when some x' in S_k has a strictly higher score and leads by at least omega_k(psi(x') - psi(x))

    It stops as soon as the realised widths certify that the leader is epsilon-best, and recommends the highest score.
    With probability at least 1 - delta the answer is epsilon-best (docs/elimination.md has the proof). The data are
    checked against the embedding at every look (`policies/model_checks.py`): a failed check makes it heuristic.

    Args:
        problem: what is asked. Its gap_bound (or high - low of bounded rewards) sets the scale of the rounds; without
            one they start at 2, the paper's, or 2 epsilon. The guarantee does not depend on it, unless it is at most
            epsilon: then every arm is epsilon-best at once. The largest scale of all arms' noise is used.
        embedding: the family psi_d with its misspecification bound.
        rule: how d_k is chosen: `AdaptiveDimension`, `FixedDimension` or `WholeSpace`.
        slack, schedule, union, looks, floor, stopping: as in `RoundSettings`.
        tolerance: relative gap of the designs.
        reserve: the share of a round's pulls, in [0, 1), that is added on arms spread over the set, so that a lack of
            fit can show; none where every list of means is representable, and none for RAGE.
        spec: plain data from which `make_policy` makes it again; None where it was made by hand.

    Raises:
        InvalidInput: a setting has no meaning.
        ContractError: misspecification leaves no room (`AdaptiveDimension.bound`, `FixedDimension.bound`).

    Source: Algorithms 1 and 3; Fiez et al. (2019), Algorithm 1, whose delta / k^2 and 2 K^2 events are schedule "paper"
    and union "rage": with R = sigma = 1 its N_k is 8 * 4^(k-1) (1 + zeta) tau_k log(2 K^2 / delta_k).
    Differs from the paper: see docs/paper-map.md; `paper_settings("linear-embedding")` gives its literal choices.
    Differs from RAGE: an epsilon-stop by default; strictly higher score to rule out an arm (in the published code equal
    arms rule out one another); a range check in place of the pseudo-inverse.
    """

    problem: Problem
    embedding: ArmEmbedding
    rule: DimensionRule
    slack: float = 0.1
    schedule: str = "convergent"
    union: str = "best-pairs"
    looks: int = 8
    floor: str = "support"
    stopping: str = "certified"
    tolerance: float = option(0.01, options.tolerance)
    reserve: float = option(0.05, options.check_share)
    rounds: RoundSettings = field(init=False, compare=False, repr=False)
    traits: Traits = field(init=False, compare=False, repr=False)
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        check_arms(self.problem, self.embedding.num_arms)
        check_options(self)
        settings = (self.slack, self.schedule, self.union, self.looks, self.floor, self.stopping)
        asked = RoundSettings(self.problem, *settings)
        set_fields(self, rounds=asked)
        set_fields(self, rule=self.rule.bound(self))
        promised = replace(self.problem, epsilon=max(self.problem.epsilon, self.rule.certified))
        set_fields(self, rounds=replace(asked, problem=promised))
        set_fields(self, traits=self._traits())

    def init(self) -> EliminationState:
        return initial_rounds(self.rounds)  # line 1

    def ask(self, state: EliminationState) -> Plan:
        if state.opened is not None:
            return next_look(state.opened)
        k, active = state.round, state.active
        choice = self.rule.choose(self, k, active)  # line 3: d_k; line 5: lambda_k
        embedded = self.embedding.at(choice.dim)  # line 4
        tau = choice.design.value  # line 5
        eps_k = dimensions.bias(embedded.misspecification, tau, self.bias_slack)  # line 6
        total = round_size(self.rounds, k, value=tau, bias=eps_k, num_active=len(active))  # line 6
        counts = rounded_counts(self.floor, choice.design, embedded, active, total, slack=self.slack)  # line 7
        if not self.rule.exact:
            counts = model_checks.with_check_pulls(self.embedding, choice.dim, counts, share=self.reserve)
        return self.rounds.first_look(designed(k, counts, choice.design, embedded))

    def tell(self, state: EliminationState, plan: Plan, seen: Observations) -> Step[EliminationState]:
        active = state.active
        pooled = state.seen.plus(seen)  # line 8
        embedded = self.embedding.at(plan.dim)
        fitted = estimate(embedded, pooled, reference=int(active[0]))  # line 9
        gamma, log_term = embedded.misspecification, self.rounds.log_term(plan.round, len(active))
        spread = gamma * math.sqrt(pooled.total) + self.problem.sigma * math.sqrt(2.0 * log_term)
        comparison = compare(fitted, active, offset=2.0 * gamma, multiplier=spread)  # line 10
        compressed = self.rule.exact or not model_checks.is_saturated(self.embedding, plan.dim)
        alarms = model_checks.failed_checks(self.embedding, plan, pooled, fitted, self.problem)
        return conclude(self.rounds, state, plan, seen, comparison, compressed=compressed, alarms=alarms)  # line 11

    def claim(self, state: EliminationState) -> Claim:
        return Claim(
            *(state.leader, state.finished, state.pulls, state.gap, self.rounds.spent),
            assumptions=model_checks.active_assumptions(self.embedding, state.pulls, state.compressed),
            why_heuristic=model_checks.why_not_certified(self.embedding, state.alarms, state.compressed),
            remark=self._remark,
            epsilon=self.rounds.epsilon,
        )

    @property
    def bias_slack(self) -> float:
        """zeta', so that N ||y||^2 <= (1 + zeta') tau also with the reserved pulls, which raise N but not the norm."""
        return (1.0 + self.slack) * (1.0 + self.reserve) - 1.0

    def _remark(self) -> str:
        if self.rule.certified <= self.problem.epsilon:
            return ""
        promised = f"{self.rule.chosen} dimensions can promise {self.rule.certified:.4g} only."
        return f"{self.problem.epsilon:g} was asked, but {promised}"

    def _traits(self) -> Traits:
        embedding, own, exact = self.embedding, self.embedding.traits, self.rule.exact
        caveat = (
            f"In {self.rule.chosen} dimensions misspecification can force a shortfall of {self.rule.certified:g}; "
            f"that is what will be certified, not epsilon = {self.problem.epsilon:g}."
        )
        return Traits(
            eliminates=True,
            uses_features=own.family != "independent",
            assumptions=own.assumptions,
            checks=(model_checks.LINEAR,) if exact else model_checks.checks_of(embedding),
            caveats=(*own.caveats, caveat) if self.rule.certified > self.problem.epsilon else own.caveats,
            embedding=None if exact else embedding,
            features=embedding.at(embedding.max_dim).features if exact else None,
            rounds=self.rounds,
            most_rounds=self.rounds.num_rounds,
            slack=self.slack,
            misspecification=embedding.misspecification,
        )


# Line 1: how many rounds, and where they start ------------------------------------------------------------------------


@record
class RoundSettings:
    """The settings that every elimination algorithm with rounds shares."""

    problem: Problem  # what is asked, its epsilon what is promised
    slack: float = option(0.1, options.slack)  # zeta, what rounding to whole pulls may cost, in (0, 1]
    schedule: str = option("convergent", one_of(*SCHEDULES))  # how delta is spent (`round_delta`, `union_size`)
    union: str = option("best-pairs", one_of(*UNIONS))
    looks: int = option(8, whole("a round is judged at least once."))  # how often a round is judged
    floor: str = option("support", one_of(*FLOORS))  # least round size (`rounded_counts`)
    # "certified" (on realised widths, another round if need be) or "rounds" (the paper's n rounds)
    stopping: str = option("certified", one_of(*STOPPINGS))

    def __post_init__(self) -> None:
        check_options(self)

    @property
    def epsilon(self) -> float:
        """What is promised, in reward units."""
        return self.problem.epsilon

    @property
    def num_rounds(self) -> int:
        """n = max(1, ceil(log2(2 R / epsilon))), after which survivors are epsilon-best; R = 1 in the paper."""
        return max(1, math.ceil(math.log2(2.0 * self.radius / self.epsilon)))  # line 1

    @property
    def radius(self) -> float:
        """R, half a bound on the largest gap; else 1, for h in [-1, 1], or epsilon if larger. No guarantee needs it."""
        gap = self.problem.largest_gap
        return max(1.0, self.epsilon) if gap is None else gap / 2.0

    def accuracy(self, round_number: int) -> float:
        """t_k = R 2^-k, to which round k brings every width; rounds beyond the n-th repeat the last."""
        return self.radius * 2.0 ** -min(round_number, self.num_rounds)

    def log_term(self, round_number: int, num_active: int) -> float:
        """L_k = log(looks M_k / delta_k), of lines 6 and 10; the paper has M_k = |S_k|^2 and one look."""
        events = self.looks * union_size(self.union, num_active, self.problem.num_arms)
        return math.log(events / round_delta(self.schedule, self.problem.delta, round_number, self.num_rounds))

    @property
    def spent(self) -> float:
        """The most that rounds, looks and pairs can spend, whatever the data: sum_k delta_k max_m (m - 1) / M(m)."""
        K, total = self.problem.num_arms, math.pi**2 / 6.0 if self.schedule == "paper" else 1.0
        shares = {"best-pairs": 1.0, "paper": 0.25, "all": (K - 1) / K**2, "rage": (K - 1) / (2 * K**2)}
        return self.problem.delta * total * shares[self.union]

    def first_look(self, whole_round: Plan) -> Plan:
        """The first part of a round, from a plan whose counts are those of all of it."""
        counts = whole_round.counts
        return _look(whole_round, counts, 1, max(1, min(self.looks, int(counts.max()))))


@frozen
class EliminationState:
    """Where an elimination algorithm stands."""

    round: int  # k, the open round or the next one, from 1
    active: IntArray  # S_k, ascending: not ruled out when round k started; after the end, the survivors
    opened: Plan | None  # the latest plan of the open round; None between rounds
    seen: Observations  # what was told in the open round so far
    pulls: int  # all that were received
    leader: int  # the arm of highest score at the last look
    gap: float | None  # the leader is at most this much worse than the best arm; None if nothing can be said
    finished: str  # why it stopped: "" while it runs, "certified", "single", "rounds" or "given"
    compressed: bool = False  # some round used an embedding in which not every list of means is representable
    alarms: tuple[str, ...] = ()  # what the checks of the embedding found so far, in words


def initial_rounds(settings: RoundSettings) -> EliminationState:
    """All arms active; finished at once where the answer needs no pull."""
    finished, gap = settings.problem.answer_without_pulls()
    num_arms = settings.problem.num_arms
    return EliminationState(1, np.arange(num_arms), None, Observations.nothing(num_arms), 0, 0, gap, finished)


# Line 3: the error probability of a round -----------------------------------------------------------------------------


def round_delta(schedule: str, delta: float, round_number: int, num_rounds: int) -> float:
    """delta_k, the error probability of round k.

        convergent  delta / (k (k + 1))     sums to delta over all rounds
        paper       delta / k^2             sums to 1.64 delta
        uniform     delta / n               sums to delta over the n rounds planned

    Differs from the paper: the default is "convergent". With delta / k^2 the product of (1 - delta_k) is
    sin(pi sqrt(delta)) / (pi sqrt(delta)), .9198 at delta = .05, not the sin(pi delta) / (pi delta) of its proof.
    """
    k = round_number
    return delta / {"convergent": k * (k + 1), "paper": k**2, "uniform": num_rounds}[schedule]


def union_size(union: str, num_active: int, num_arms: int) -> float:
    """M_k, by how many events delta_k is divided.

    best-pairs  |S_k| - 1     the pairs of the best arm, in one direction; the default
    paper       |S_k|^2       all pairs, both directions (lines 6 and 10)
    all         |X|^2         as in the published code
    rage        2 |X|^2       as in Fiez et al. (2019)
    """
    pairs = {"best-pairs": max(num_active - 1, 1), "paper": num_active**2, "all": num_arms**2, "rage": 2 * num_arms**2}
    return float(pairs[union])


# Lines 3 to 5: in how many dimensions a round measures, which tells Algorithm 1 from 3 and RAGE ----------------------


@record
class AdaptiveDimension:
    """d_k anew in each round, as small as its accuracy allows (Algorithm 1, line 3).

    Args:
        dimension: "cheapest" (fewest predicted pulls) or "effective" (d_eff(4 t_k)).
        dim: fixes d_k; None: chosen.

    In round 1 a dimension that leaves next to nothing to tell the arms apart is taken only if `dim` or dimension
    "effective" asks; where the declared norm says that all arms are nearly equal, nothing is compressed.
    """

    dimension: str = "cheapest"
    dim: int | None = None
    exact: ClassVar[bool] = False  # whether the features are taken as they are, and no arm is measured to check that
    certified: ClassVar[float] = 0.0  # the least shortfall that misspecification lets it promise
    chosen: ClassVar[int] = 0  # the dimension of all rounds; 0 if rounds differ

    def bound(self, policy: ArmElimination, /) -> Self:
        """The rule, checked: a ContractError where misspecification leaves no room for the finest accuracy."""
        check_choice("dimension", self.dimension, ADAPTIVE)
        embedding, rounds = policy.embedding, policy.rounds
        finest = rounds.accuracy(rounds.num_rounds)
        if self.dim is not None:
            embedding.at(self.dim)
        if self.dim is None and self.dimension == "effective":
            dimensions.effective_dimension(embedding, 4.0 * finest, slack=policy.slack)
        else:
            dimensions.check_room(embedding, finest, dim=self.dim, slack=policy.bias_slack, tolerance=policy.tolerance)
        return self

    def choose(self, policy: ArmElimination, round_number: int, active: IntArray, /) -> dimensions.DimensionChoice:
        """d_k, lambda_k and tau_k."""
        embedding, accuracy = policy.embedding, policy.rounds.accuracy(round_number)
        if self.dim is not None or self.dimension == "effective":
            dim = self.dim or dimensions.effective_dimension(embedding, 4.0 * accuracy, slack=policy.slack)  # line 3
            return _designed_at(dim, policy, active)
        first = round_number == 1 and embedding.num_distinct > 2
        compresses = not model_checks.norm_bound_uninformative(embedding, policy.problem.epsilon)
        return dimensions.cheapest_dimension(  # line 3
            embedding,
            active,
            accuracy,
            slack=policy.bias_slack,
            tolerance=policy.tolerance,
            least_dim=1 + first if compresses else embedding.max_dim,
            least_value=1.0 if first else 0.0,
        )


@record
class FixedDimension:
    """One dimension for all rounds; it promises max(epsilon, gamma(d)) (Algorithm 3).

        gamma(d) = (16 + 8 sqrt(g(d, zeta))) gamma-tilde(d),   n = max(1, ceil(log2(2 R / max(epsilon, gamma(d)))))

    Args:
        dimension: how d is chosen: "effective" is d_eff(epsilon); "guarded" as well, but never 1 of more dimensions,
            and the largest one where the declared norm says that all arms are nearly equal.
        dim: d; None: chosen, so that epsilon itself is promised.

    Source: Algorithm 3, lines 1 and 2.
    Differs from the paper: max(epsilon, gamma(d)) in place of gamma(d), which at zero misspecification would mean
    infinitely many rounds.
    """

    dimension: str = "guarded"
    dim: int | None = None
    chosen: int = field(default=0, init=False)
    certified: float = field(default=0.0, init=False)
    exact: ClassVar[bool] = False

    def bound(self, policy: ArmElimination, /) -> Self:
        """d and what it can promise; a ContractError where dim is None and no dimension reaches epsilon."""
        check_choice("dimension", self.dimension, FIXED)
        epsilon, dim = policy.problem.epsilon, self._own(policy) if self.dim is None else self.dim
        embedded = policy.embedding.at(dim)  # Alg. 3, line 1
        gamma = dimensions.worst_gap(embedded.misspecification, 4.0 * dim, policy.slack)  # 4 (1 + zeta) d >= g(d, zeta)
        if gamma > epsilon:
            tau = dimensions.embedding_design(embedded, tolerance=policy.tolerance).value
            gamma = dimensions.worst_gap(embedded.misspecification, tau, policy.slack)  # Alg. 3, line 2
        mine = replace(self)
        set_fields(mine, chosen=dim, certified=max(epsilon, gamma))
        return mine

    def _own(self, policy: ArmElimination) -> int:
        """d_eff(epsilon), guarded if asked."""
        embedding, epsilon, guarded = policy.embedding, policy.problem.epsilon, self.dimension == "guarded"
        if guarded and model_checks.norm_bound_uninformative(embedding, epsilon):
            return embedding.max_dim
        least = min(2 if guarded and embedding.num_distinct > 2 else 1, embedding.max_dim)
        return max(dimensions.effective_dimension(embedding, epsilon, slack=policy.slack), least)

    def choose(self, policy: ArmElimination, _: int, active: IntArray, /) -> dimensions.DimensionChoice:
        """d, lambda_k and tau_k."""
        return _designed_at(self.chosen, policy, active)


@record
class WholeSpace:
    """All features, in every round: the rewards are taken to be exactly linear in them (RAGE)."""

    exact: ClassVar[bool] = True
    certified: ClassVar[float] = 0.0
    chosen: ClassVar[int] = 0

    def bound(self, _: ArmElimination, /) -> Self:
        return self

    def choose(self, policy: ArmElimination, _: int, active: IntArray, /) -> dimensions.DimensionChoice:
        """D, lambda_k and tau_k."""
        return _designed_at(policy.embedding.max_dim, policy, active)


DimensionRule = AdaptiveDimension | FixedDimension | WholeSpace


def _designed_at(dim: int, policy: ArmElimination, active: IntArray) -> dimensions.DimensionChoice:
    """A dimension with its lambda_k and tau_k."""
    design = dimensions.embedding_design(policy.embedding.at(dim), active, tolerance=policy.tolerance)  # lines 4 and 5
    return dimensions.DimensionChoice(dim, design)


# Lines 6 and 7: the pulls of a round, and its looks -------------------------------------------------------------------


def round_size(settings: RoundSettings, round_number: int, *, value: float, bias: float, num_active: int) -> int:
    """N_k = ceil( 2 sigma^2 (1 + zeta) tau_k L_k / (t_k - eps_k)^2 ); a ContractError where eps_k >= t_k."""
    accuracy = settings.accuracy(round_number)
    if bias >= accuracy:
        raise ContractError(
            f"misspecification can move a difference of two arms by {bias:g}, and this round must resolve "
            f"{accuracy:g}: no number of pulls would help. Raise epsilon, use a larger dimension, or a smaller valid "
            "norm bound."
        )
    log_term = settings.log_term(round_number, num_active)
    numerator = 2.0 * settings.problem.sigma**2 * (1.0 + settings.slack) * value * log_term
    return dimensions.whole_pulls(numerator / (accuracy - bias) ** 2)  # line 6


def rounded_counts(
    floor: str, design: Design, embedded: Embedded, active: IntArray, total: int, *, slack: float
) -> IntArray:
    """The pulls of each arm in a round of about `total`, (K,): with "support" N max ||y||^2_{A^-1} <= (1 + zeta) tau;
    with "published" N >= 2 p / zeta for a design that supports p arms, as in the published code."""
    if floor == "published":
        least = math.ceil(2.0 * np.count_nonzero(design.weights) / slack)
        return designs.round_design(design.weights, max(total, least))
    if not embedded.structured:
        counts = np.zeros(embedded.num_arms, np.int64)
        counts[active] = math.ceil(total / len(active))  # equal counts lose nothing to rounding
        return counts
    return designs.allocate(design, embedded.features, total, slack=slack, active=active).counts


def next_look(plan: Plan) -> Plan:
    """The part of the round that follows `plan`."""
    if plan.allocation is None or plan.look >= plan.looks:
        raise InvalidInput(f"round {plan.round} has no look after look {plan.look} of {plan.looks}.")
    return _look(plan, plan.allocation, plan.look + 1, plan.looks)


def _look(plan: Plan, allocation: IntArray, look: int, looks: int) -> Plan:
    """That part of a round; after it ceil(allocation look / looks) is done, so that no arm misses the first."""
    done, until = (-(-allocation * part // looks) for part in (look - 1, look))
    return replace(plan, counts=until - done, look=look, looks=looks, allocation=allocation)


# Line 10: which arms go, who leads, and by how much the leader can fall short -----------------------------------------


@record
class Comparison:
    """What one look at an estimate says."""

    survivors: IntArray  # the arms not ruled out, ascending
    leader: int  # the arm of highest score among them
    gap: float  # the leader is at most this much worse than the best arm; infinite if some arm cannot be compared
    leading: Leading | None = field(default=None, compare=False)  # None where nothing could be compared


def compare(estimate: Estimate, active: IntArray, *, offset: float, multiplier: float) -> Comparison:
    """Eliminate, recommend, and bound the leader's shortfall (line 10, and the epsilon-stop).

        omega(x', x) = offset + multiplier ||psi(x') - psi(x)||_{A^-1}
                     = 2 gamma-tilde + (gamma-tilde sqrt(N) + sigma sqrt(2 L)) ||psi(x') - psi(x)||_{A^-1}
        x goes when some x' in S has score(x') > score(x) and score(x') - score(x) >= omega(x', x)
        gap = max over x' in S of score(x') - score(leader) + omega(x', leader)

    On the event that no score difference to the best arm errs beyond omega, the best arm stays, and the leader is
    within `gap` of it. One score vector and one seminorm make "x' rules out x" transitive (triangle inequality), so it
    is enough to compare with survivors of higher score (`not_ruled_out`).

    Differs from the paper: strictly higher score is required, so that equal arms cannot rule out one another; scores
    closer than their rounding count as equal. The set can never become empty: the leader has no higher score above it.
    """
    scores, comparable = estimate.scores, estimate.comparable[active]
    if not comparable.any():
        return Comparison(active, int(active[0]), 0.0 if len(active) == 1 else np.inf)
    ranked = active[comparable]
    ranked = ranked[np.lexsort((ranked, -scores[ranked]))]
    rule = PairRule(estimate, offset, multiplier, 16.0 * EPS * float(np.max(np.abs(scores[ranked]))))
    survivors = np.sort(np.concatenate([not_ruled_out(rule, ranked), active[~comparable]]))  # line 10
    leader, gap = int(ranked[0]), 0.0
    if len(active) > 1:
        leads, widths = rule.leading(active[active != leader], ranked[:1])
        gap = max(0.0, float(np.max(leads + widths)))
    return Comparison(survivors, leader, gap, rule.leading)


# Line 11: how a look and a round end, and what decided ----------------------------------------------------------------


def conclude(
    settings: RoundSettings,
    state: EliminationState,
    plan: Plan,
    seen: Observations,
    comparison: Comparison,
    *,
    compressed: bool = True,
    alarms: tuple[str, ...] = (),
) -> Step[EliminationState]:
    """End the look: stop if the answer is certified or one arm is left, else go on with the round or open the next.

    Differs from the paper: it stops as soon as the realised widths, bias included, certify an epsilon-best arm, and
    goes on with another round if the last one does not; with stopping "rounds" it runs its n rounds as the paper does.
    """
    pooled, closed = state.seen.plus(seen), plan.look == plan.looks
    certifying = settings.stopping == "certified"
    finished = _why_finished(settings, plan, comparison) if closed or certifying else ""
    over = closed or finished != ""
    gap = 0.0 if finished == "single" else comparison.gap
    after = EliminationState(
        round=state.round + 1 if over and not finished else state.round,
        active=comparison.survivors if over else state.active,
        opened=None if over else plan,
        seen=Observations.nothing(settings.problem.num_arms) if over else pooled,
        pulls=state.pulls + seen.total,
        leader=comparison.leader,
        gap=gap if math.isfinite(gap) else None,
        finished=finished,
        compressed=state.compressed or compressed,
        alarms=state.alarms + tuple(alarm for alarm in alarms if alarm not in state.alarms),
    )
    certifies = settings.epsilon if certifying else None
    deciding = intervals_after(comparison.leading, comparison.leader, state.active, after.active, epsilon=certifies)
    return Step(after, trace_row(plan, after, pulls=pooled.total, gap=after.gap, alarms=alarms), deciding)


def _why_finished(settings: RoundSettings, plan: Plan, comparison: Comparison) -> str:
    """Whether the look ends the study: "single", "certified", "rounds", or ""."""
    if len(comparison.survivors) == 1:
        return "single"
    last = plan.round >= settings.num_rounds
    if settings.stopping == "rounds":
        return "rounds" if last else ""
    if comparison.gap <= settings.epsilon:
        return "certified"
    return "rounds" if settings.schedule == "uniform" and last and plan.look == plan.looks else ""
