"""The field's other algorithms beside ours, on easy instances and on those on which other papers publish pulls.

`PEERS` has easy ones. In `SMALL_EPSILON` epsilon is a share of the gap between the best two arms, down to a thousandth,
so that a policy that is blind to the gaps is found out. In `SLIPPAGE` all other arms are worse by epsilon. A study of
the last two ends at `LIMITS` at the latest; the tables say which did.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from surepick.bench.policy_specs import default
from surepick.bench.spec import Cell, EnvironmentSpec, Experiment, crossed

LIMITS: Mapping[str, Any] = MappingProxyType({"max_pulls": 1_000_000_000, "max_seconds": 120.0})
SHARES = {"gap": 1.0, "gap/10": 0.1, "gap/1000": 0.001}
SLIPPAGE_EPSILON = 0.1
SLIPPAGE_GAP = SLIPPAGE_EPSILON * (1.0 + 1e-9)  # so that only the best arm is epsilon-best
CODE = {"constants": "published-code"}
CODE_PHASES = {**CODE, "shrinkage": 0.316}  # of the code's phases each is sqrt(10) times as long as the one before

PEERS = crossed(
    "peers",
    "the field's other algorithms, each with its own stopping rule",
    [
        EnvironmentSpec("sphere", "sphere", {"num_arms": 100, "dim": 10}),
        EnvironmentSpec("soare", "soare", {"dim": 10, "angle": 0.6}),
        EnvironmentSpec("digits", "digits", {"per_digit": 6}, "independent"),
    ],
    (
        default("xy-static"),
        default("xy-adaptive"),
        default("lingape", norm_bound=2.0),
        default("lingame", norm_bound=2.0),
        default("lucb"),
        default("sequential-halving", budget=100_000),
        default("rage"),
        default("action-elimination"),
        default("certified-linear", norm_bound=2.0),
        default("certified-independent"),
    ),
    max_pulls=1_000_000,
)
_WITH_FEATURES = (
    default("xy-static", label="xy-static published-code", **CODE),
    default("xy-adaptive", label="xy-adaptive published-code", **CODE_PHASES),
    default("lingape", norm_bound=1.0),
    default("lingame", norm_bound=1.0),
    default("lingame", label="lingame stylised", play="learner", threshold="stylised"),
    default("rage"),
    default("action-elimination"),
    default("action-elimination", label="action-elimination mixture", boundary="mixture"),
    default("certified-linear", norm_bound=1.0),
    default("certified-independent"),
)
_IN_LARGE_BATCHES = (
    default("action-elimination"),
    default("action-elimination", label="action-elimination mixture", boundary="mixture"),
    default("certified-independent"),
)
_WITHOUT_FEATURES = (default("lucb"), *_IN_LARGE_BATCHES)


def _soare(dim: int, angle: float, epsilon: str) -> EnvironmentSpec:
    """The instance of Xu et al. (2018): theta = 2 e1 with sigma 1, in units half as large."""
    label = f"soare d={dim} w={angle:g} {epsilon}"
    return EnvironmentSpec(label, "soare", {"dim": dim, "angle": angle, "sigma": 0.5})


def _small_epsilon() -> Iterator[Cell]:
    linear = [(_soare(dim, 0.1, name), share) for dim in (5, 10) for name, share in SHARES.items()]
    linear.append((_soare(10, 0.01, "gap"), SHARES["gap"]))
    uniform = EnvironmentSpec("50 on a sphere d=9 gap/1000", "sphere", {"num_arms": 50, "dim": 9})
    linear.append((uniform, SHARES["gap/1000"]))
    for place, share in linear:
        for policy in _WITH_FEATURES:
            yield Cell("small-epsilon", place, policy, gap_share=share, **LIMITS)
    plain = (
        EnvironmentSpec("10 normal gap/1000", "one-better", {"num_arms": 10, "gap": 0.6}, "independent"),
        EnvironmentSpec("100 Bernoulli gap/1000", "falling-means", {}, "independent"),
    )
    for place in plain:
        for policy in _WITHOUT_FEATURES:
            yield Cell("small-epsilon", place, policy, gap_share=SHARES["gap/1000"], **LIMITS)


def _slippage() -> Iterator[Cell]:
    """LUCB, which pulls two arms a batch, is run with 100 arms only."""
    for num_arms, sigma in ((100, 0.5), (500, 0.5), (1000, 0.5), (2000, 1.0)):
        options = {"num_arms": num_arms, "gap": SLIPPAGE_GAP, "sigma": sigma}
        place = EnvironmentSpec(f"slippage K={num_arms}", "one-better", options, "independent")
        for policy in _WITHOUT_FEATURES if num_arms == 100 else _IN_LARGE_BATCHES:
            yield Cell("slippage", place, policy, SLIPPAGE_EPSILON, **LIMITS)


SMALL_EPSILON = Experiment(
    "small-epsilon",
    "epsilon from the gap between the best two arms down to a thousandth of it",
    tuple(_small_epsilon()),
)
SLIPPAGE = Experiment(
    "slippage", "all other arms are worse by epsilon, .1: sigma .5, and 1 at K = 2,000", tuple(_slippage())
)
