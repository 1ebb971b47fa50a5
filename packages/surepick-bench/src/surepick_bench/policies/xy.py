"""XY-static allocation (Soare, Lazaric & Munos 2014): one fixed design for all differences, until one arm is told."""

import math
from dataclasses import field, replace
from typing import Protocol

import numpy as np

from surepick.core.arms import Arms
from surepick.core.observations import Observations
from surepick.core.plans import Embedding, Plan, Step, intervals_after
from surepick.core.records import FloatArray, IntArray, frozen, record
from surepick.core.values import positive_number, probability
from surepick.designs import allocate, design_value, round_design, solve_design
from surepick.errors import InvalidInput
from surepick.estimators import LeastSquaresEstimate, least_squares
from surepick.linalg.factorisations import thin_svd
from surepick.policies import options
from surepick.policies.base import Claim, Problem, Spec, Traits, check_arms, compared_with, designed, trace_row
from surepick.policies.dimension import whole_pulls
from surepick.policies.model_checks import LINEAR, misfit, why_heuristic
from surepick.policies.options import check_options, one_of, option, positive
from surepick.policies.paper.arm_elimination import Comparison, compare
from surepick_bench.policies.means import Judgement

# --- What the linear baselines share: features in their span, growing batches, the judgement of a leader.

INFORMATION = positive("what is added to the information of every direction.")
HEURISTIC_HIDDEN = 0.1  # of epsilon: what rounding of the features may add to the width of a difference


@record
class Span:
    """The features in orthonormal coordinates W of their span, x = W'u_x + e_x, through which alone theta acts."""

    rows: FloatArray  # u_x, shape (K, r)
    lost: float  # ||e_x|| is at most this for every arm: directions too short to be told from rounding, and rounding


class LinearBaseline(Protocol):
    """What all linear baselines are made of."""

    @property
    def problem(self) -> Problem: ...
    @property
    def features(self) -> FloatArray: ...
    @property
    def traits(self) -> Traits: ...


def check_linear(
    policy: LinearBaseline, norm_bound: float | None = None, *, eliminates: bool = False, checks: tuple[str, ...] = ()
) -> None:
    """Check the options of a linear baseline; its features become a read-only array, its traits are formed once."""
    features = np.asarray(Arms(policy.features).features, dtype=np.float64)
    features.flags.writeable = False
    object.__setattr__(policy, "features", features)
    check_options(policy)
    num_columns = features.shape[1]
    if num_columns == 0:
        raise InvalidInput("a linear policy needs features; for arms without any, use certified-independent.")
    check_arms(policy.problem, len(features))
    norm = "" if norm_bound is None else f", with coefficients of Euclidean norm at most {norm_bound:g}"
    distinct = len(np.unique(features, axis=0))
    doubt = (
        f"{distinct} distinct arms in {num_columns} feature columns: that the mean reward is exactly linear in the "
        "features is an assumption about the world. If it is doubtful, use certified-independent."
    )
    traits = Traits(
        eliminates=eliminates,
        uses_features=True,
        assumptions=(f"The mean reward is exactly a linear function of the {num_columns} features{norm}.",),
        checks=checks,
        caveats=(doubt,) if distinct > num_columns else (),
        features=features,
    )
    object.__setattr__(policy, "traits", traits)


def check_norm_bound(name: str, norm_bound: float | None) -> float:
    """The norm bound of a policy whose stopping rule needs one."""
    if norm_bound is None:
        raise InvalidInput(
            f"{name} needs norm_bound: the largest norm that the linear reward function can have. Regularisation "
            "pulls the estimate towards 0 by an amount proportional to it; without it nothing can be certified."
        )
    return positive_number("norm_bound", norm_bound, "the largest norm that the linear reward function can have.")


def in_span(features: FloatArray) -> Span:
    """The features in orthonormal coordinates of their span, without directions that look like rounding; ours. What
    these coordinates miss is e_x as computed, plus a bound on its rounding, (r + 2) eps (||x|| + sqrt(r) ||u_x||): with
    exactly dependent columns that is all; where a column is huge beside the others, the others may be lost."""
    _, singular, directions = thin_svd(features)
    eps = float(np.finfo(np.float64).eps)
    kept = directions[singular > max(features.shape) * eps * singular[0]]
    rows = np.ascontiguousarray(features @ kept.T)
    largest = float(np.max(np.abs(features)))
    if largest == 0.0:
        return Span(rows, 0.0)
    outside = (features - rows @ kept) / largest  # scaled, so that no square overflows
    longest = largest * math.sqrt(float(np.max(np.sum((features / largest) ** 2, axis=1))))
    lost = largest * math.sqrt(float(np.max(np.sum(outside**2, axis=1))))
    return Span(rows, lost + 2.0 * (len(kept) + 2) ** 1.5 * eps * longest)


def check_span(features: FloatArray, *, norm_bound: float, epsilon: float) -> None:
    """Refuse features of which rounding hides more than a tenth of the tolerated shortfall."""
    lost = in_span(features).lost
    hidden = 2.0 * norm_bound * lost
    if hidden > HEURISTIC_HIDDEN * epsilon:
        raise InvalidInput(
            f"beside features of up to {float(np.max(np.abs(features))):.2g}, parts of them up to {lost:.2g} long are "
            f"lost in rounding, which norm_bound {norm_bound:g} lets change a gap by {hidden:.2g}, too much for "
            f"epsilon {epsilon:g}; rescale the feature columns to similar sizes, and norm_bound with them."
        )


def next_xy_batch(pulls: int, growth: float) -> int:
    """The pulls of the next batch: a share of those so far, at least 1. Cost of a run: log(pulls) / growth looks."""
    return max(1, math.ceil(growth * pulls))


def pieces(total: int, most: int) -> IntArray:
    """The pulls of a batch in at most `most` nearly equal pieces, each at least 1."""
    ends: IntArray = np.linspace(0, total, min(total, most) + 1).round().astype(np.int64)
    return np.diff(ends)


def pulled_more(coordinates: FloatArray, arm: int, pulls: int) -> FloatArray:
    """The coordinates after `pulls` more pulls of one arm, v: u -> (I + n v v')^(-1/2) u (matrix inversion lemma).
    ||u_a - u_b|| is then the distance in (A + n x x')^-1. Cost: O(K r)."""
    direction = coordinates[arm]
    square = float(direction @ direction)
    if square == 0.0:
        return coordinates
    share = (1.0 - 1.0 / math.sqrt(1.0 + pulls * square)) / square
    return np.asarray(coordinates - np.outer(share * (coordinates @ direction), direction))


def judge_pairs(
    fitted: LeastSquaresEstimate, *, multiplier: float, epsilon: float, misspecification: float = 0.0
) -> Judgement:
    """Who leads, and by how much it can fall short of the best where no difference errs by more than its width; ours.

        gap = max over x != leader of score(x) - score(leader) + width(x)
        width(x) = (multiplier + sqrt(n) m) ||x - leader|| + 2 m        n: pulls told,   m: misspecification

    Means off by m_x move the estimate by ||X'Nm|| in V^-1 <= sqrt(m'Nm) <= sqrt(n) m; at m = 0 equal arms are 0 apart.
    """
    leader = int(np.argmax(fitted.scores))
    everybody = np.arange(len(fitted.scores))
    away = fitted.distances(everybody, np.array([leader]))[:, 0]
    width = (multiplier + math.sqrt(fitted.total) * misspecification) * away + 2.0 * misspecification
    ahead = fitted.scores - fitted.scores[leader] + width
    ahead[leader] = -np.inf
    gap = max(0.0, float(np.max(ahead)))
    active = np.flatnonzero((ahead > epsilon) | (everybody == leader))
    deciding = compared_with(leader, everybody[everybody != leader], fitted.scores, width, epsilon)
    return Judgement(leader, gap, active, "certified" if gap <= epsilon else "", deciding)


CONSTANTS = ("paper", "published-code", "sub-gaussian")
RESOLUTION = 1000  # pulls per supported arm in which a design is written down
ROUNDING = 1e-9  # pulls


@frozen
class PhaseState:
    """Where an algorithm stands that follows fixed allocations."""

    round: int  # as in `MeansState`, with what follows
    active: IntArray  # the arms in question: not ruled out, or the leader and the open rivals
    opened: Plan | None  # the latest plan of the phase; its allocation holds for the whole phase. None between phases.
    seen: Observations  # what was told in the phase
    pulls: int  # all pulls received
    reached: float  # max over pairs of ||y||^2_{A^-1} at the end of the phase before
    leader: int
    gap: float | None
    finished: str
    alarms: tuple[str, ...] = ()  # what the check of linearity found so far, in words
    looks: int = 0  # how often it was decided whether arms go or it stops; 0: no width depends on that


@record
class XYStatic:
    """Follow the design that is best for all differences of arms, whatever the rewards are; stop when one arm is told.

        lambda = argmin over designs of max over pairs ||x - x'||^2 in A(lambda)^-1
        width(x, x') = 2 sqrt(2) sigma ||x - x'||_{A^-1} sqrt(log(6 n^2 K^2 / (pi^2 delta)))      ("paper")
        width(x, x') = sigma ||x - x'||_{A^-1} sqrt(2 log(pi^2 k^2 K^2 / (3 delta)))              ("published-code")
        width(x, x') = sigma ||x - x'||_{A^-1} sqrt(2 log(pi^2 n^2 (K - 1) / (6 delta)))          ("sub-gaussian")
        stop when score(x') - score(leader) + width(x', leader) <= epsilon for every x'

    The counts after n pulls are a function of n alone, so the least squares at each look is that of a fixed design. At
    the k-th look, with n pulls, a pair of the best arm errs beyond its width, on the side that harms, with probability
    at most (pi^2 delta / (6 n^2 K^2))^4 ("paper"), 3 delta / (pi^2 k^2 K^2) ("published-code") or
    6 delta / (pi^2 n^2 (K - 1)): for the K - 1 pairs and all looks below delta.

    "paper" is what the text says. "published-code" are the widths in the code with which Fiez et al. (2019) ran these
    algorithms; the text's take 5 to 7 times the pulls of that code (docs/peers.md). All three are proved.

    Args:
        problem: what is asked. The largest scale is used for all arms, the gap bound only to answer at once when it is
            at most epsilon.
        features: X, shape (K, D). The rewards are taken to be exactly linear in them.
        constants: "paper", "published-code" or "sub-gaussian", as above.
        growth: a batch has ceil(growth * n) pulls after n; at most 1000.
        tolerance: the relative gap to which the design is solved.

    Raises:
        InvalidInput: a setting has no meaning.

    Source: Soare, Lazaric & Munos (2014): XY-allocation, its stopping rule, Proposition 1 with c = 2 sqrt(2) sigma.
    Differs from its source: batches; an epsilon-stop (the paper's is that with epsilon = 0: it comes later); the design
    is solved and rounded, not built greedily; means that lie too far from any linear function make the verdict
    heuristic (`lack_of_fit`); a range check in place of an inverse.
    Cost: one design, then O(K d^2) a batch.
    """

    problem: Problem
    features: FloatArray
    constants: str = option("paper", one_of(*CONSTANTS))
    growth: float = option(0.1, options.growth)
    tolerance: float = option(0.01, options.tolerance)
    traits: Traits = field(init=False, compare=False, repr=False)
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        check_linear(self, checks=(LINEAR,))

    def init(self) -> PhaseState:
        return initial_xy_state(self.problem)

    def ask(self, state: PhaseState) -> Plan:
        if state.opened is not None:
            return next_part(state.opened, state, self.growth)
        design = solve_design(self.features, tolerance=self.tolerance)
        allocation = round_design(design.weights, RESOLUTION * int(np.count_nonzero(design.weights)))
        return next_part(designed(state.round, allocation, design, Embedding(self.features, 0.0)), state, self.growth)

    def tell(self, state: PhaseState, plan: Plan, seen: Observations) -> Step[PhaseState]:
        pooled = state.seen.plus(seen)
        fitted = least_squares(Embedding(self.features, 0.0), pooled)
        asked, pulls = self.problem, pooled.total
        multiplier = fixed_design_multiplier(self.constants, asked, pulls=pulls, look=state.looks + 1)
        found = judge_pairs(fitted, multiplier=multiplier, epsilon=asked.epsilon)
        alarms = misfit(plan, pooled, fitted, asked)
        after = PhaseState(
            round=state.round + 1,
            active=found.active,
            opened=plan,
            seen=pooled,
            pulls=pulls,
            reached=state.reached,
            leader=found.leader,
            gap=found.certified_gap,
            finished=found.finished,
            alarms=state.alarms or alarms,
            looks=state.looks + counts_looks(self.constants),
        )
        return Step(after, trace_row(plan, after, pulls=seen.total, gap=after.gap, alarms=alarms), found.deciding)

    def claim(self, state: PhaseState) -> Claim:
        return linear_claim(self, state)


def initial_xy_state(problem: Problem, reached: float = 1.0) -> PhaseState:
    """All arms in question; finished at once where the answer needs no pull."""
    finished, gap = problem.answer_without_pulls()
    nothing = Observations.nothing(problem.num_arms)
    return PhaseState(1, np.arange(problem.num_arms), None, nothing, 0, reached, 0, gap, finished)


def linear_claim(policy: LinearBaseline, state: PhaseState) -> Claim:
    """What a state entitles to say: all of delta is spent, and a failed check of linearity makes it heuristic."""
    spent, assumptions, why = policy.problem.delta, policy.traits.assumptions, why_heuristic(state.alarms, "")
    return Claim(state.leader, state.finished, state.pulls, state.gap, spent, assumptions, why)


def next_part(whole: Plan, state: PhaseState, growth: float, *, most: int | None = None) -> Plan:
    """The next batch of a phase: what its allocation, scaled to m pulls, has beyond the pulls received; ours.

    n_i(m) = ceil(m allocation_i / sum of allocation),   m = pulls of the phase + next batch (at most `most`)
    """
    allocation = whole.counts if whole.allocation is None else whole.allocation
    wanted = state.seen.total + next_xy_batch(state.pulls, growth)
    wanted = wanted if most is None else min(wanted, most)
    target = np.ceil(wanted * (allocation / allocation.sum()) - ROUNDING).astype(np.int64)
    if most is not None:
        target = np.minimum(target, allocation) if wanted < most else allocation
    missing = np.maximum(target - state.seen.counts, 0)
    return replace(whole, round=state.round, counts=missing, allocation=allocation)


def counts_looks(constants: str) -> bool:
    """Whether the widths depend on the number of the look."""
    return constants == "published-code"


def fixed_design_multiplier(constants: str, asked: Problem, *, pulls: int, look: int) -> float:
    """Width per unit of ||x - x'||_{A^-1} for a fixed design; see `XYStatic`."""
    num_arms, pulls = asked.num_arms, max(pulls, 1)
    if constants == "paper":
        events = 6.0 / math.pi**2 * float(pulls) ** 2 * num_arms**2
        return 2.0 * math.sqrt(2.0) * asked.sigma * math.sqrt(math.log(events / asked.delta))
    if counts_looks(constants):
        events = math.pi**2 / 3.0 * float(look) ** 2 * num_arms**2
    else:
        events = math.pi**2 / 6.0 * float(pulls) ** 2 * max(num_arms - 1, 1)
    return asked.sigma * math.sqrt(2.0 * math.log(events / asked.delta))


# --- XY-adaptive allocation (Soare, Lazaric & Munos 2014): phases, each with a design for the arms that are left.

STOPPINGS = ("certified", "phases")


def share_of_width(name: str, value: object) -> float:
    return probability(name, value, "how much of the width a phase leaves, squared.")


@record
class XYAdaptive:
    """Phase j measures a design for the active arms until it is 1/alpha times as exact as phase j - 1, then drops arms.

        phase j ends when max over y of ||y||^2_{A_j^-1} <= alpha times what phase j - 1 reached (at first 1/(d(d+1)+1))
        x goes when some x' leads by width(x', x), widths as in `XYStatic`, with the least squares of this phase alone
        stop when score(x') - score(leader) + width(x', leader) <= epsilon for every active x', or a phase leaves one
            arm, or only arms of equal features, whose means are equal

    Given what came before a phase, its allocation is a fixed design, and n, the pulls of all phases, identifies a look,
    as does its number k. So a look errs with at most the probability stated in `XYStatic`, whatever the phases were,
    and the sum over n or k covers phases and looks at once.

    As the text describes it ("paper", alpha = .1) it takes 7 to 41 times the pulls of the code with which Fiez et al.
    (2019) ran it. There the widths are those of constants="published-code", and each phase is sqrt(10) times as long as
    the one before, not 10 times: that is shrinkage=.316 here.

    Args:
        problem, features, constants, tolerance: as in `XYStatic`.
        shrinkage: alpha, in (0, 1).
        stopping: "certified": look after each batch; "phases": at the end of a phase only, until one arm is left, or
            arms of equal features. That never happens when two best arms differ in features and have equal means.
        slack: zeta, in (0, 1]: what rounding to whole pulls may cost.
        growth: a batch has ceil(growth * n) pulls after n, but never passes the end of its phase; at most 1000.

    Raises:
        InvalidInput: a setting has no meaning.

    Source: Soare, Lazaric & Munos (2014), Algorithm 2 (XY-adaptive), with alpha = .1 as in its experiments.
    Differs from its source: batches and an epsilon-stop; designs are solved and rounded, not built greedily from the
    identity matrix; n counts the pulls of all phases, for which the union is proved; an arm that was dropped does not
    come back; lack of fit as in `XYStatic`.
    Cost: one design a phase, then O(K d^2) a batch.
    """

    problem: Problem
    features: FloatArray
    shrinkage: float = option(0.1, share_of_width)
    stopping: str = option("certified", one_of(*STOPPINGS))
    constants: str = option("paper", one_of(*CONSTANTS))
    slack: float = option(0.1, options.slack)
    growth: float = option(0.1, options.growth)
    tolerance: float = option(0.01, options.tolerance)
    traits: Traits = field(init=False, compare=False, repr=False)
    spec: Spec | None = field(default=None, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        check_linear(self, eliminates=True, checks=(LINEAR,))

    def init(self) -> PhaseState:
        dim = self.features.shape[1]
        return initial_xy_state(self.problem, reached=1.0 / (dim * (dim + 1) + 1))  # Alg. 2: rho^0, n_0

    def ask(self, state: PhaseState) -> Plan:
        whole = self._phase(state) if state.opened is None else state.opened
        most = 0 if whole.allocation is None else int(whole.allocation.sum())
        return next_part(whole, state, self.growth, most=most)

    def tell(self, state: PhaseState, plan: Plan, seen: Observations) -> Step[PhaseState]:
        asked, pooled, pulls = self.problem, state.seen.plus(seen), state.pulls + seen.total
        fitted = least_squares(Embedding(self.features, 0.0), pooled, reference=int(state.active[0]))
        multiplier = fixed_design_multiplier(self.constants, asked, pulls=pulls, look=state.looks + 1)
        comparison = compare(fitted, state.active, offset=0.0, multiplier=multiplier)
        over = plan.allocation is None or bool(np.all(pooled.counts >= plan.allocation))
        finished = self._why_finished(comparison, over=over)
        alarms = misfit(plan, pooled, fitted, asked)
        gap = 0.0 if over and self._alike(comparison.survivors) else comparison.gap
        after = PhaseState(
            round=state.round + 1,
            active=comparison.survivors if over else state.active,
            opened=None if over else plan,
            seen=Observations.nothing(asked.num_arms) if over else pooled,
            pulls=pulls,
            reached=design_value(self.features, pooled.counts, state.active) if over else state.reached,
            leader=comparison.leader,
            gap=gap if math.isfinite(gap) else None,
            finished=finished,
            alarms=state.alarms or alarms,
            looks=state.looks + (counts_looks(self.constants) and (over or self.stopping == "certified")),
        )
        certifies = asked.epsilon if self.stopping == "certified" else None
        deciding = intervals_after(comparison.leading, comparison.leader, state.active, after.active, epsilon=certifies)
        return Step(after, trace_row(plan, after, pulls=seen.total, gap=after.gap, alarms=alarms), deciding)

    def claim(self, state: PhaseState) -> Claim:
        return linear_claim(self, state)

    def _phase(self, state: PhaseState) -> Plan:
        """The allocation of the next phase (Alg. 2, the loop over x_t)."""
        design = solve_design(self.features, state.active, tolerance=self.tolerance)
        total = whole_pulls((1.0 + self.slack) * design.value / (self.shrinkage * state.reached))
        counts = allocate(design, self.features, total, slack=self.slack, active=state.active).counts
        whole = designed(state.round, counts, design, Embedding(self.features, 0.0))
        return replace(whole, allocation=counts)

    def _alike(self, arms: IntArray) -> bool:
        """Arms of equal features, whose linear means are equal: no design could tell them apart."""
        return bool(np.all(self.features[arms] == self.features[arms[0]]))

    def _why_finished(self, comparison: Comparison, *, over: bool) -> str:
        if over and len(comparison.survivors) == 1:
            return "single"
        if over and self._alike(comparison.survivors):
            return "certified"
        return "certified" if self.stopping == "certified" and comparison.gap <= self.problem.epsilon else ""
