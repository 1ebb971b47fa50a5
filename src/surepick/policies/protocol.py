"""What every algorithm offers: a sampling rule, a stopping rule and a recommendation rule, in ask/tell form."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Protocol, TypeVar, runtime_checkable

from surepick.noise import Noise
from surepick.records import Certificate, IntArray, Observations, Plan, RoundRecord, Step, record

State = TypeVar("State")

NAMED_FAMILIES = ("linear", "kernel")  # embeddings that the registry can rebuild from plain options
NETWORK_OPTIONS = ("depth", "width", "architecture", "inputs", "seed", "device", "precision")
CERTIFIED_NEURAL_OPTIONS = (
    "gap_bound",
    "misspecification",
    "dim",
    "vectors",
    "regularization",
    "tolerance",
    "reserve",
    "largest_batch",
)
NEURAL_OPTIONS = (
    "slack",
    "gap_bound",
    "constants",
    "error_tolerance",
    "tolerance_scale",
    "trainer",
    "regularization",
    "floor",
    "misspecification",
    "tolerance",
)


@record
class Traits:
    """What reports, forecasts and the command line must know of a policy to describe it rightly.

    Args:
        uses_features: a result of one arm says something of others.
        certifies: what its certificate rests on. "survivors": arms are ruled out until one is left or the others are
            near it; "candidate": one candidate is tested against all others, and `Plan.value` predicts the pulls that
            this will still take; "nothing": it recommends by a rule that proves nothing.
    """

    uses_features: bool = False
    certifies: Literal["survivors", "candidate", "nothing"] = "survivors"


@runtime_checkable
class Policy(Protocol[State]):
    """A fixed-confidence strategy: sampling rule, stopping rule, recommendation rule.

    Pure: equal inputs give equal outputs, and no argument is modified. So a run is a fold of `tell`
    over what was observed, and can be stopped, moved and resumed between any two calls.

    A round has exactly one pull, so the pseudo-code is cut there: `ask` is everything above the pull,
    `tell` everything below it.

    A policy for which the defaults of `Traits` are not true has an attribute `traits` that says so; see `traits_of`.
    """

    name: ClassVar[str]
    state_type: ClassVar[type[Any]]
    stops: ClassVar[str]  # "own": by itself; "never": runs until told; "budget": after a fixed number of pulls
    eliminates: ClassVar[bool]  # its `active` set only loses arms that are not the best

    @property
    def num_arms(self) -> int: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def delta(self) -> float: ...
    @property
    def noise(self) -> Noise: ...
    @property
    def assumptions(self) -> tuple[str, ...]: ...
    @property
    def caveats(self) -> tuple[str, ...]: ...
    @property
    def spec(self) -> dict[str, Any] | None: ...

    def init(self) -> State: ...
    def stopped(self, state: State) -> bool: ...
    def ask(self, state: State) -> Plan: ...
    def tell(self, state: State, plan: Plan, seen: Observations) -> Step[State]: ...
    def recommend(self, state: State) -> int: ...
    def certificate(self, state: State) -> Certificate: ...


def traits_of(policy: Policy[Any]) -> Traits:
    """What the policy says of itself, so that the smallest policy needs to say nothing.

    Returns:
        Its `traits`. Without them the defaults, but a policy with an embedding is taken to use features, so that a
        forecast warns about its norm.
    """
    said = getattr(policy, "traits", None)
    return said if isinstance(said, Traits) else Traits(uses_features=hasattr(policy, "embedding"))


def plain_options(policy: Policy[Any], names: tuple[str, ...]) -> dict[str, Any]:
    """The configuration of a policy as plain data: epsilon, delta, noise, and the named options."""
    required = {"epsilon": policy.epsilon, "delta": policy.delta, "noise": policy.noise.spec}
    return {**required, **{name: getattr(policy, name) for name in names}}


def trace_row(
    plan: Plan,
    *,
    pulls: int,
    total_pulls: int,
    active: IntArray,
    leader: int,
    certified_gap: float | None,
    alarms: tuple[str, ...] = (),
) -> RoundRecord:
    """The row of the trace for a plan that was told: what the plan said, and what came of it."""
    return RoundRecord(
        round=plan.round,
        look=plan.look,
        looks=plan.looks,
        dim=plan.dim,
        value=plan.value,
        lower_bound=plan.lower_bound,
        misspecification=plan.misspecification,
        pulls=pulls,
        total_pulls=total_pulls,
        active=active,
        leader=leader,
        certified_gap=certified_gap,
        alarms=alarms,
    )
