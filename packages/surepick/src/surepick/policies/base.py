"""What every algorithm is: a question, what it says of itself, and four pure functions of its state."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field, fields
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np

from surepick.chunks.sources import LongListed, RowBlocks
from surepick.core import plans
from surepick.core.arms import Arms
from surepick.core.observations import Observations
from surepick.core.records import BoolArray, FloatArray, IntArray, record
from surepick.core.values import LARGEST_WHOLE, check_reach, check_size, positive_number, probability, whole_number
from surepick.errors import InvalidInput
from surepick.items import ItemOrder
from surepick.noise import Noise, failure_probability, known_scale, largest_scale, scales
from surepick.questions import Question
from surepick.text import shortened

if TYPE_CHECKING:
    from surepick.assumptions import Assumption
    from surepick.embeddings import ArmEmbedding
    from surepick.estimators.flows import Weighed

State = TypeVar("State")
IGNORES_COSTS = (
    "{} chooses measurements by their number: it passes over what they cost. certified-linear, certified-kernel and "
    "certified-independent weigh it."
)
Spec = Mapping[str, Any]


def _plain(given: object, number: float) -> Any:
    """A number as it is stored: as it was given where that is a small int or a float, so that its text stays."""
    return given if type(given) in (int, float) and abs(number) < LARGEST_WHOLE else number


@record
class Problem:
    """What is asked: an arm whose mean is within epsilon of the best, with probability at least 1 - delta; or another
    question.

    Args:
        num_arms: K.
        epsilon: the shortfall that is tolerated, in reward units, > 0.
        delta: error probability, in (0, 1).
        noise: what is assumed of a reward.
        gap_bound: an upper bound on the largest gap between two arms, in reward units; None: none is declared.
        arms: what is chosen among, where that is known; `Study(policy)` takes them from here.
        question: what is asked in place of the best arm; None: an epsilon-best arm.

    Raises:
        InvalidInput: no certificate has a meaning under these.
    """

    num_arms: int
    epsilon: float
    delta: float
    noise: Noise
    gap_bound: float | None = None
    arms: Arms | None = field(default=None, compare=False, repr=False)
    question: Question | None = None

    def __post_init__(self) -> None:
        whole_number("num_arms", self.num_arms, least=1, meaning="something must be chosen among.")
        epsilon = positive_number(
            "epsilon",
            self.epsilon,
            "how much worse than the best arm the answer may be, in reward units. With 0, equal arms would be measured "
            "for ever.",
        )
        object.__setattr__(self, "epsilon", _plain(self.epsilon, epsilon))
        check_size("epsilon", self.epsilon)
        delta = probability("delta", self.delta, "the probability of a wrong answer.")
        object.__setattr__(self, "delta", _plain(self.delta, delta))
        if self.gap_bound is not None:
            gap = positive_number("gap_bound", self.gap_bound, "the largest possible gap between two arms.")
            object.__setattr__(self, "gap_bound", _plain(self.gap_bound, gap))
        if known_scale(self.noise):
            check_reach("epsilon", epsilon, float(np.max(scales(self.noise, self.num_arms))))

    @property
    def sigma(self) -> float:
        """The largest sub-Gaussian scale of an arm's reward, valid for all."""
        return largest_scale(self.noise)

    @property
    def scales(self) -> FloatArray:
        """The sub-Gaussian scale of each arm, shape (K,)."""
        return scales(self.noise, self.num_arms)

    @property
    def costs(self) -> FloatArray | None:
        """What a measurement of each arm costs, shape (K,), in any currency; None: all alike."""
        return None if self.arms is None else self.arms.costs

    @property
    def cheapest_cost(self) -> float:
        """Of a measurement; 1 where none are given."""
        return 1.0 if self.costs is None else float(self.costs.min())

    @property
    def relative_costs(self) -> FloatArray | None:
        """The costs in units of the smallest, shape (K,), at least 1; None where all are alike, given or not."""
        costs = self.costs
        return None if costs is None or costs.min() == costs.max() else costs / costs.min()

    @property
    def largest_gap(self) -> float | None:
        """An upper bound on the largest gap: the declared one, high - low of bounded rewards, or None."""
        if self.noise.support is None:
            return self.gap_bound
        spread = self.noise.support[1] - self.noise.support[0]
        return spread if self.gap_bound is None else min(self.gap_bound, spread)

    def answer_without_pulls(self) -> tuple[str, float | None]:
        """(why no pull is needed, certified shortfall): one arm, or no two arms can differ by more than epsilon.

        Returns:
            ("single", 0), ("given", largest gap), or ("", largest gap) when pulls are needed.
        """
        if self.num_arms == 1:
            return "single", 0.0
        gap = self.largest_gap
        return ("given" if gap is not None and gap <= self.epsilon else ""), gap


class Rounds(Protocol):
    """Rounds whose accuracies are planned: what a forecast and a verification of them need."""

    @property
    def num_rounds(self) -> int: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def stopping(self) -> str: ...
    def accuracy(self, round_number: int) -> float: ...
    def first_look(self, whole_round: plans.Plan) -> plans.Plan: ...


def _none(_: int) -> float | None:
    return 0.0


class Together(Protocol):
    """The rules of a policy for many studies at once, all of which have been told equally many batches.

    The next plans have `counts`, (n, K), and where studies stand has `finished`, (n,): records of arrays with a row for
    each study, of which `rows_of` takes some.
    """

    def first(self, number: int, /) -> Any: ...  # the first plans of so many
    def ask(self, rows: Any, /) -> Any: ...
    def tell(self, rows: Any, planned: Any, seen: Observations, /) -> Any: ...  # rows None: no batch was told yet
    def state_of(self, rows: Any, row: int, round_number: int, /) -> Any: ...  # that of the policy


@record
class Traits:
    """What others must know of a policy to describe, forecast and verify it.

    Args:
        stops: "own": by itself; "never": runs until told; "budget": after a fixed number of pulls.
        eliminates: its `active` set only loses arms that are not the best.
        uses_features: a result of one arm says something of others.
        certifies: what its certificate rests on. "survivors": arms are ruled out until one is left or the others are
            near it; "candidate": one candidate is tested against all others, and `Plan.predicted_pulls` says what this
            will still take; "lists": arms are put on lists, which answer the question; "nothing": it recommends by a
            rule that proves nothing.
        assumptions: about the mean rewards, as sentences.
        checks: what the policy looks for in the data, in sentences that hold while no check fails.
        caveats: what a user should know before the first pull, as sentences.
        embedding: psi_d that its designs and widths rest on; None without one.
        features: vectors that its designs rest on where there is no embedding, shape (K, D).
        network_depth: layers of the network that embeds the arms; 0: there is none.
        rounds: its planned rounds; None without.
        most_rounds: after so many it is done if no result is missing; None: not known.
        slack: zeta, what rounding to whole pulls may cost.
        misspecification: d -> gamma-tilde of its plans in d dimensions; None where it is estimated from the results.
        judges_parts: `tell` may get any part of a plan's results, and those of an earlier plan with them.
        corrects: `tell` may get any plan whose counts the past decided, also one that it would not have asked for in
            that state, or for another candidate: so results can be corrected after their plan was judged.
        uses_costs: its plans weigh what measurements cost.
        batch_cost: what a batch costs beside its measurements, in the currency of `Arms.costs`, as its plans weigh it.
        items: the test items that its arms answer, in their order; None: its pulls are independent draws.
        blocks: measurements that belong together share an effect, and each result names its block; None: none do.
        withdraw: step, arms, whether each goes for a reason that has nothing to do with results -> the step without
            them; None: arms cannot be withdrawn.
        add: step, arms -> the step when these of `later` have come; None: none can.
        later: arms that are not there when a study begins, and may come.
        long_list: from which the arms were selected, by measurements before the study; None: they are all there are.
        rows: the list that it shortens; its arms are a few of them. None: it chooses among its arms.
        together: its rules for many simulated studies at once; None: they are played one by one.
        weigh: state, plan, results -> the weights of a batch, and what the processes hold after it (None: nothing new);
            None: it has no processes that are carried on, and no answer of it can be read under other assumptions.
        assumed: the classes of mean functions under which its answer is read, where they are named without numbers.
        budget: pulls in all, after which it ends with the gap that they certify; None: it aims at epsilon alone.
        any_gap: no tolerance was asked for: whatever gap its budget shows is what it promises.
        gap_at: state, an error probability -> by how much the leader is worse at most, had that been delta; None: it
            has no such bounds.
        until: state, how far means are off these -> predicted pulls until the answer stands so; None: it has none.
    """

    stops: Literal["own", "never", "budget"] = "own"
    eliminates: bool = False
    uses_features: bool = False
    certifies: Literal["survivors", "candidate", "lists", "nothing"] = "survivors"
    assumptions: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
    embedding: ArmEmbedding | None = None
    features: FloatArray | None = None
    network_depth: int = 0
    rounds: Rounds | None = None
    most_rounds: int | None = None
    slack: float = 0.1
    misspecification: Callable[[int], float | None] = field(default=_none, compare=False)
    judges_parts: bool = False
    corrects: bool = False
    uses_costs: bool = False
    batch_cost: float = 0.0
    items: ItemOrder | None = None
    blocks: plans.Blocking | None = None
    withdraw: Callable[[plans.Step[Any], IntArray, BoolArray], plans.Step[Any]] | None = field(
        default=None, compare=False
    )
    add: Callable[[plans.Step[Any], IntArray], plans.Step[Any]] | None = field(default=None, compare=False)
    later: tuple[int, ...] = ()
    long_list: LongListed | None = None
    rows: RowBlocks | None = field(default=None, compare=False)
    together: Together | None = field(default=None, compare=False)
    weigh: Callable[[Any, plans.Plan, Observations], Weighed | None] | None = field(default=None, compare=False)
    assumed: tuple[Assumption, ...] = ()
    budget: int | None = None
    any_gap: bool = False
    gap_at: Callable[[Any, float], float | None] | None = field(default=None, compare=False)
    until: Callable[[Any, float], float] | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        told = {each.name: getattr(self, each.name) for each in fields(self)}
        told = {name: value for name, value in told.items() if isinstance(value, bool | int | float | str) and value}
        return f"<Traits: {', '.join(f'{name}={value!r}' for name, value in told.items())}>"

    @property
    def narrows(self) -> bool:
        """Whether `active` narrows down to epsilon-best arms; one that tests a candidate may leave others in it."""
        return self.eliminates and self.certifies not in ("candidate", "lists")


@record
class Claim:
    """What a state entitles its algorithm to say; `certificate` puts it into words.

    Args:
        leader: index of the arm that would be recommended now.
        finished: why it stopped: "" while it runs, "certified", "single", "given", "rounds" or "budget": all that
            it may measure is measured.
        pulls: all pulls received.
        gap: the leader is at most this much worse than the best arm, in reward units; None if nothing can be said.
        spent: the most of the error probability that its widths can spend, whatever the data.
        assumptions: about the mean rewards, as sentences; those of the noise are added.
        why_heuristic: why no theorem backs what would be certified, "" if one does.
        reason: in place of the usual words, of an answer that proves nothing; its verdict is heuristic.
        remark: gives a sentence to be added, "" for none; called only when the words are needed.
        epsilon: what is promised, where that is more than what was asked.
        of_draws: measurements are independent draws, as the noise says; False where `assumptions` say it all.
        lists: (arms on the first list, arms on the second), ascending, where the question is answered by lists.
    """

    leader: int
    finished: str
    pulls: int
    gap: float | None = None
    spent: float = 0.0
    assumptions: tuple[str, ...] = ()
    why_heuristic: str = ""
    reason: str = ""
    remark: Callable[[], str] = field(default=str, compare=False)
    epsilon: float | None = None
    of_draws: bool = True
    lists: tuple[IntArray, IntArray] | None = field(default=None, compare=False)


@runtime_checkable
class Policy(Protocol[State]):
    """A fixed-confidence strategy: sampling rule, stopping rule, recommendation rule.

    Pure: equal inputs give equal outputs, and no argument is modified. So a run is a fold of `tell` over what was
    observed, and can be stopped, moved and resumed between any two calls.

    A round has exactly one pull, so the pseudo-code is cut there: `ask` is everything above the pull, `tell` everything
    below it. It is done when its claim says why it finished.

    Policies that `make_policy` makes have an attribute `spec` as well, from which it makes them again.
    """

    @property
    def problem(self) -> Problem: ...
    @property
    def traits(self) -> Traits: ...

    def init(self) -> State: ...
    def ask(self, state: State) -> plans.Plan: ...
    def tell(self, state: State, plan: plans.Plan, seen: Observations) -> plans.Step[State]: ...
    def claim(self, state: State) -> Claim: ...


def spec_of(policy: Policy[Any]) -> Spec | None:
    """The plain data from which `make_policy` makes an equal policy; None where it was made otherwise."""
    return getattr(policy, "spec", None)


def name_of(policy: Policy[Any]) -> str:
    """The name under which `make_policy` knows it, else that of its class."""
    spec = spec_of(policy)
    return type(policy).__name__ if spec is None else str(spec["name"])


def in_a_line(policy: Policy[Any]) -> str:
    """What a notebook shows of it: its name, and what is asked; the spec has the rest."""
    asked, traits = policy.problem, policy.traits
    known = [f"{asked.num_arms:,} candidates"]
    if traits.uses_features and traits.embedding is not None:
        known.append(f"at most {traits.embedding.max_dim:,} dimensions")
    known.append(f"budget {traits.budget:,}" if traits.any_gap else f"epsilon {asked.epsilon:g}")
    known += [f"delta {asked.delta:g}", f"noise {shortened(asked.noise.spec, 40)}"]
    question = None if asked.question is None else type(asked.question).__name__
    return f"<{name_of(policy)}: {', '.join([*known, *([f'question {question}'] if question else [])])}>"


def stopped(policy: Policy[State], state: State) -> bool:
    """Whether it asks for nothing more."""
    return policy.claim(state).finished != ""


def caveats_of(policy: Policy[Any]) -> tuple[str, ...]:
    """What a user should know before the first pull: the policy's caveats, and whether it passes over the costs."""
    caveats = policy.traits.caveats
    if policy.problem.relative_costs is None or policy.traits.uses_costs:
        return caveats
    return (*caveats, IGNORES_COSTS.format(name_of(policy)))


def doubts_of_delta(delta: object) -> tuple[str, ...]:
    """A question where delta looks like a confidence, which is its complement."""
    if not isinstance(delta, (int, float)) or not 0.5 < delta < 1.0:
        return ()
    return (
        f"delta is {delta:g}, and it is the probability that the answer is wrong: {100 * delta:.4g} % confidence is "
        f"delta {1 - delta:.4g}. Was that meant?",
    )


def delta_for_test(problem: Problem) -> float:
    """delta, less what a pilot of the noise may fail with (docs/certified-elimination.md, line 9)."""
    failure = failure_probability(problem.noise, problem.delta)
    if problem.delta <= failure:
        raise InvalidInput(
            f"the noise's pilot may fail with probability {failure:g}, and delta is {problem.delta:g}: nothing is left "
            "for the test. Raise delta, or repeat the pilot with a smaller one."
        )
    return problem.delta - failure


def threshold_of(problem: Problem) -> float:
    """log(1/delta), with the delta that is left for the test."""
    return -math.log(delta_for_test(problem))


def check_arms(problem: Problem, num_arms: int) -> None:
    """Refuse vectors that are not those of the problem's arms."""
    if problem.num_arms != num_arms:
        raise InvalidInput(f"the problem has {problem.num_arms} arms, and there are vectors of {num_arms}.")


class StateSummary(Protocol):
    """What every state says of where its algorithm stands."""

    @property
    def active(self) -> IntArray: ...
    @property
    def leader(self) -> int: ...
    @property
    def pulls(self) -> int: ...


def trace_row(
    plan: plans.Plan,
    after: StateSummary,
    *,
    pulls: int,
    gap: float | None,
    alarms: tuple[str, ...] = (),
    equal: IntArray | None = None,
) -> plans.RoundRecord:
    """The row of the trace for a plan that was told: what the plan said, and what came of it."""
    return plans.RoundRecord(
        round=plan.round,
        look=plan.look,
        looks=plan.looks,
        dim=plan.dim,
        design_value=plan.design_value,
        predicted_pulls=plan.predicted_pulls,
        lower_bound=plan.lower_bound,
        misspecification=plan.misspecification,
        pulls=pulls,
        total_pulls=after.pulls,
        active=after.active,
        leader=after.leader,
        certified_gap=gap,
        alarms=alarms,
        equal=None if equal is None or len(equal) == 0 else equal,
    )


def designed(
    round_number: int, counts: IntArray, design: plans.Design, embedded: plans.Embedding | plans.IndependentArms
) -> plans.Plan:
    """The plan for a round, or for an opening."""
    return plans.Plan(
        round=round_number,
        counts=counts,
        dim=embedded.dim,
        design_value=design.value,
        lower_bound=design.lower_bound,
        misspecification=embedded.misspecification,
    )


def compared_with(
    leader: int, rivals: IntArray, scores: FloatArray, widths: FloatArray, allowed: float | FloatArray
) -> plans.Deciding:
    """Gives the intervals of rivals that were all compared with the leader."""

    def deciding(_: plans.Intervals | None) -> plans.Intervals:
        leads = scores[leader] - scores[rivals]
        return plans.against(leader, rivals, leads=leads, widths=widths[rivals], allowed=allowed)

    return deciding
