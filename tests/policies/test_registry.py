"""Names and options <-> policies."""

import json

import numpy as np
import pytest
from together import of_each

import surepick as sp
from surepick.errors import InvalidInput
from surepick.policies.carried.elimination import CarriedElimination
from surepick.policies.mixtures import MixtureElimination
from surepick.policies.paper.arm_elimination import (
    FLOORS,
    SCHEDULES,
    STOPPINGS,
    UNIONS,
    AdaptiveDimension,
    ArmElimination,
    FixedDimension,
    WholeSpace,
)
from surepick.policies.paper.neural_elimination import NeuralElimination
from surepick.policies.paper.unknown_misspecification import UnknownMisspecificationElimination
from surepick.policies.registry import ENTRIES, policy_options, policy_summary
from surepick.policies.steered.elimination import CertifiedReadings
from surepick.policies.steered.embedded import CertifiedEmbedding
from surepick.policies.steered.neural import CertifiedNeural
from surepick.questions import QUESTION_OPTIONS
from surepick.text import did_you_mean
from surepick_bench.policies.lingame import LinGame, LinGapE
from surepick_bench.policies.means import LUCB, ActionElimination
from surepick_bench.policies.means_control import MeansNeuralRule
from surepick_bench.policies.sequential_halving import SequentialHalving
from surepick_bench.policies.xy import XYAdaptive, XYStatic

ARMS = sp.Arms(np.random.default_rng(0).normal(size=(4, 3)))
REQUIRED = {
    "certified-linear": {"norm_bound": 2.0},
    "certified-kernel": {"norm_bound": 2.0, "gamma": 0.5},
    "linear-embedding": {"norm_bound": 2.0},
    "fixed-linear": {"norm_bound": 2.0},
    "kernel-embedding": {"norm_bound": 2.0, "gamma": 0.5},
    "fixed-kernel": {"norm_bound": 2.0, "kernel": "matern:2.5:1.0"},
    "sequential-halving": {"budget": 100},
    "lingape": {"norm_bound": 2.0},
    "lingame": {"norm_bound": 2.0},
}
ROUNDS = ("linear-embedding", "fixed-linear", "rage")


def make(name, **changes):
    usual = {"epsilon": 0.1, "delta": 0.05, "noise": sp.SubGaussian(0.5)} | REQUIRED.get(name, {})
    return sp.make_policy(name, ARMS, **(usual | changes))


def test_the_names():
    kinds = {
        "action-elimination": ActionElimination,
        "certified-independent": MixtureElimination,
        "certified-kernel": CarriedElimination,
        "certified-linear": CarriedElimination,
        "certified-neural": CertifiedNeural,
        "certified-readings": CertifiedReadings,
        "fixed-kernel": ArmElimination,
        "fixed-linear": ArmElimination,
        "kernel-embedding": ArmElimination,
        "linear-embedding": ArmElimination,
        "lingame": LinGame,
        "lingape": LinGapE,
        "lucb": LUCB,
        "means-neural-rule": MeansNeuralRule,
        "neural-embedding": NeuralElimination,
        "rage": ArmElimination,
        "sequential-halving": SequentialHalving,
        "unknown-misspecification": UnknownMisspecificationElimination,
        "xy-adaptive": XYAdaptive,
        "xy-static": XYStatic,
    }
    assert sp.policy_names() == tuple(kinds)
    for name, kind in kinds.items():
        assert type(make(name)) is kind
        assert policy_summary(name)


def test_the_names_of_one_algorithm_differ_in_their_rule_and_their_embedding():
    parts = {
        "fixed-kernel": (FixedDimension, "kernel"),
        "fixed-linear": (FixedDimension, "linear"),
        "kernel-embedding": (AdaptiveDimension, "kernel"),
        "linear-embedding": (AdaptiveDimension, "linear"),
        "rage": (WholeSpace, "exact"),
    }
    policies = {name: make(name) for name in sp.policy_names()}
    assert {name for name, policy in policies.items() if type(policy) is ArmElimination} == set(parts)
    for name, (rule, family) in parts.items():
        assert (type(policies[name].rule), policies[name].embedding.traits.family) == (rule, family)
    assert {
        name: policies[f"certified-{name}"].embedding.traits.family for name in ("independent", "kernel", "linear")
    } == {"independent": "independent", "kernel": "kernel", "linear": "linear"}


@pytest.mark.parametrize("call", [policy_summary, sp.paper_settings, make])
def test_an_unknown_policy_is_refused_with_the_known(call):
    with pytest.raises(sp.InvalidInput, match="there is no policy 'magic'; choose one of action-elimination, "):
        call("magic")


@of_each("name", ["linear-embedding", "fixed-linear"])
@of_each("options", [{}, {"norm_bound": None}])
def test_a_linear_embedding_needs_its_norm_bound(name, options):
    with pytest.raises(sp.InvalidInput, match="needs norm_bound"):
        sp.make_policy(name, ARMS, epsilon=0.1, delta=0.05, noise="bernoulli", **options)


@of_each("name", sp.policy_names())
def test_the_noise_may_be_a_text(name):
    assert make(name, noise="subgaussian:0.5") == make(name)
    assert make(name, noise="bounded:0:2").problem.noise == sp.Bounded(0, 2)
    with pytest.raises(sp.InvalidInput, match="not understood"):
        make(name, noise="loud")


CHANGES = [
    *[(name, {"schedule": each}) for name in ROUNDS for each in SCHEDULES],
    *[(name, {"union": each}) for name in ROUNDS for each in UNIONS],
    *[(name, {"floor": each}) for name in ROUNDS for each in FLOORS],
    *[(name, {"stopping": each}) for name in ROUNDS for each in STOPPINGS],
    *[(name, {"looks": 3, "slack": 0.25, "tolerance": 0.02, "gap_bound": 0.7}) for name in ROUNDS],
    *[(name, {"bound": "paper", "norm_bound": 0.1 + 0.2, "dim": 3}) for name in REQUIRED if "linear" in name],
    ("linear-embedding", {"dimension": "effective"}),
    ("action-elimination", {"growth": 0.5, "gap_bound": 3.0}),
    ("action-elimination", {"boundary": "mixture"}),
    ("lucb", {"growth": 0.5, "gap_bound": 3.0}),
    ("sequential-halving", {"budget": 17, "gap_bound": 3.0}),
    *[(name, {"noise": sp.SubGaussian((0.1, 0.2, 0.3, 1e-7))}) for name in sp.policy_names()],
    *[(name, {"noise": sp.Bounded(-1, 2), "epsilon": 1 / 3, "delta": 0.1 + 0.2}) for name in sp.policy_names()],
    *[(name, sp.paper_settings(name)) for name in sp.policy_names()],
]


@of_each(("name", "changes"), CHANGES)
def test_the_spec_is_plain_and_rebuilds_an_equal_policy(name, changes):
    policy = make(name, **changes)
    spec = json.loads(json.dumps(policy.spec))
    assert sp.make_policy(arms=ARMS, **spec) == policy
    noiseless = {option: value for option, value in changes.items() if option != "noise"}
    assert {option: spec[option] for option in noiseless if option in spec} == {
        option: value for option, value in noiseless.items() if option in spec
    }


@of_each("name", sp.policy_names())
def test_the_spec_lists_every_option_that_has_an_effect(name):
    unsaid = {"gamma"}  # becomes the kernel
    unsaid |= {"max_rank"} if "linear" in name else set()  # unless it leaves directions out
    unsaid |= {"expansion", "max_dim"} if "kernel" in name else set()  # of a kernel's eigenfunctions
    unsaid |= {"batch_size", "max_batches", "batch_cost"}  # where they are not given
    unsaid |= {"blocks", "block_size", "control", "once_a_block", "streams", "later", "later_share"}
    if "question" in policy_options(name):
        unsaid |= {"question", *QUESTION_OPTIONS}  # where the question is which arm is the best
    kind = {}
    if name == "certified-independent":  # of few candidates mixtures are the usual evidence, which have other options
        kind, unsaid = {"evidence": "carried"}, unsaid | {"budget", "any_gap"}
    assert set(make(name, **kind).spec) == {"name", "epsilon", "delta", "noise", *policy_options(name)} - unsaid


def idle_options() -> list[tuple[str, str]]:
    """(policy, option that others know and that would do nothing here)."""
    found = [("rage", option) for option in ("reserve", "dim", "dimension", "norm_bound", "bound")]
    found += [("unknown-misspecification", option) for option in ("looks", "stopping", "norm_bound", "reserve")]
    for name in sp.policy_names():
        if name.startswith(("action-", "certified-neural", "ling", "lucb", "sequential-", "xy-static")):
            found.append((name, "slack"))
        if name.startswith(("action-", "certified-", "ling", "lucb", "sequential-", "xy-")) or "neural" in name:
            found += [(name, "schedule"), (name, "union")]
    return found


@of_each(("name", "option"), idle_options())
def test_an_option_without_an_effect_is_refused_with_the_known(name, option):
    values = {"slack": 0.1, "schedule": "convergent", "union": "best-pairs", "dimension": "cheapest", "dim": 2}
    with pytest.raises(sp.InvalidInput) as refusal:
        make(name, **{option: values.get(option, 1)})
    known = policy_options(name)
    assert option not in known
    assert (
        str(refusal.value)
        == f"{name} has no option '{option}'; it knows {', '.join(known)}.{did_you_mean(option, known)}"
    )


@of_each(
    "option", sorted(set(QUESTION_OPTIONS) - {"control", "constraints"})
)  # blocks have one as well; alone they are enough
def test_an_option_of_a_question_needs_the_question(option):
    with pytest.raises(sp.InvalidInput) as refusal:
        make("certified-independent", **{option: 1})
    assert (
        str(refusal.value)
        == f"{option}: belongs to a question by its name, e.g. question='top', m=5 (--question top --m 5)."
    )


@pytest.mark.parametrize("name", ["neural-embedding", "certified-neural"])
def test_the_options_that_are_known_without_torch_are_those_of_the_record(name):
    assert tuple(ENTRIES[name].listed.split()) == ENTRIES[name].record_fields()
    assert [other for other, entry in ENTRIES.items() if entry.listed] == ["neural-embedding", "certified-neural"]


@of_each("name", sp.policy_names())
@of_each(
    ("changes", "message"),
    [
        ({"epsilon": 0}, "epsilon is 0"),
        ({"epsilon": -0.1}, "epsilon is -0.1"),
        ({"epsilon": np.inf}, "epsilon is inf"),
        ({"epsilon": np.nan}, "epsilon is nan"),
        ({"delta": 0}, "delta is 0"),
        ({"delta": 1}, "delta is 1"),
        ({"delta": np.nan}, "delta is nan"),
        ({"gap_bound": 0}, "gap_bound is 0"),
        ({"gap_bound": np.inf}, "gap_bound is inf"),
        ({"noise": sp.SubGaussian((1.0, 2.0))}, "2 scales for 4 arms"),
    ],
)
def test_settings_without_meaning_are_refused(name, changes, message):
    with pytest.raises(sp.InvalidInput, match=message):
        make(name, **changes)


@of_each("name", ROUNDS)
@of_each(
    ("changes", "message"),
    [
        ({"slack": 0}, "slack is 0"),
        ({"slack": 1.5}, "slack is 1.5"),
        ({"looks": 0}, "looks is 0"),
        ({"schedule": "soon"}, "schedule is 'soon'"),
        ({"union": "none"}, "union is 'none'"),
        ({"floor": "low"}, "floor is 'low'"),
        ({"stopping": "now"}, "stopping is 'now'"),
    ],
)
def test_settings_of_rounds_without_meaning_are_refused(name, changes, message):
    with pytest.raises(sp.InvalidInput, match=message):
        make(name, **changes)


@of_each(
    ("name", "changes", "message"),
    [
        ("linear-embedding", {"dimension": "any"}, "dimension is 'any'"),
        ("linear-embedding", {"dim": 9}, "rank 3"),
        ("fixed-linear", {"dim": 0}, "rank 3"),
        ("action-elimination", {"growth": 0}, "growth is 0"),
        ("lucb", {"growth": -0.1}, "growth is -0.1"),
        ("sequential-halving", {"budget": None}, "needs budget"),
        ("sequential-halving", {"budget": 7}, "Give at least 8"),
    ],
)
def test_other_settings_without_meaning_are_refused(name, changes, message):
    with pytest.raises(sp.InvalidInput, match=message):
        make(name, **changes)


@pytest.mark.parametrize("looks", [2.5, float("nan"), "8"])
def test_looks_are_whole(looks):
    with pytest.raises(sp.InvalidInput, match="looks"):
        make("rage", looks=looks)


def test_features_are_needed_where_they_are_used():
    bare = sp.Arms(ids=["a", "b"])
    usual = {"epsilon": 0.1, "delta": 0.05, "noise": sp.Bernoulli()}
    assert sp.make_policy("action-elimination", bare, **usual).problem.num_arms == 2
    with pytest.raises(sp.InvalidInput, match="RAGE needs features"):
        sp.make_policy("rage", bare, **usual)
    with pytest.raises(sp.InvalidInput, match="no feature column"):
        sp.make_policy("linear-embedding", bare, norm_bound=1.0, **usual)
    with pytest.raises(sp.InvalidInput, match="arms is a ndarray"):
        sp.make_policy("rage", np.eye(2), **usual)


def test_a_kernel_is_named_once():
    for options in ({"norm_bound": 1.0}, {"norm_bound": 1.0, "gamma": 1.0, "kernel": "gaussian:1.0"}):
        with pytest.raises(sp.InvalidInput, match="say which kernel, once"):
            sp.make_policy("kernel-embedding", ARMS, epsilon=0.1, delta=0.05, noise=sp.Bernoulli(), **options)


def test_a_kernel_without_a_name_has_no_spec():
    policy = make("kernel-embedding", gamma=None, kernel=lambda left, right: left @ right.T + 1.0)
    assert policy.spec is None


@pytest.mark.parametrize("name", ["certified-linear", "certified-kernel"])
def test_evidence_is_carried_on_unless_readings_are_asked_for(name):
    policy, readings = make(name), make(name, evidence="readings")
    assert (type(policy), policy.spec["evidence"]) == (CarriedElimination, "carried")
    assert (type(readings), readings.spec["evidence"]) == (CertifiedEmbedding, "readings")
    assert make(name, evidence="carried") == policy
    assert sp.make_policy(arms=ARMS, **readings.spec) == readings


def test_where_bias_stays_large_the_embedding_is_usually_read():
    features = np.random.default_rng(0).normal(size=(40, 6)) * [1.0, 1.0, 0.3, 0.2, 0.1, 0.05]
    asked = {"epsilon": 0.5, "delta": 0.05, "noise": sp.SubGaussian(0.3), "norm_bound": 1.0}
    for options, evidence in (
        ({}, "carried"),
        ({"dim": 6}, "carried"),
        ({"dim": 5}, "readings"),
        ({"dim": 2}, "readings"),
    ):
        policy = sp.make_policy("certified-linear", sp.Arms(features), **asked, **options)
        assert policy.spec["evidence"] == evidence
    forced = sp.make_policy("certified-linear", sp.Arms(features), **asked, dim=2, evidence="carried")
    assert forced.spec["evidence"] == "carried"


def test_another_kind_of_evidence_is_refused():
    with pytest.raises(InvalidInput, match="evidence"):
        make("certified-independent", evidence="none")
