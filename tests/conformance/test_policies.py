"""Every policy keeps the protocol: the checks of `surepick.testing`, and what a name in the registry promises."""

import functools
import os

import numpy as np
import pytest
from bounds import failures_allowed, trials_to_notice
from budgets import ALL
from named_policies import FEATURES, MEANS, NAMES, make

import surepick as sp
from surepick import testing as checks
from surepick.core.records import from_json, to_json
from surepick.policies.verdict import certificate_of
from surepick.testing import CHECKS, PolicyUnderTest, ProtocolBroken, played

HEURISTIC = {  # they end without a certificate
    "unknown-misspecification",
    "neural-embedding",
    "means-neural-rule",
    "sequential-halving",
}


@functools.cache
def under_test(name: str, **options: str) -> PolicyUnderTest:
    """The policy of that name; its study without noise is played once."""

    def made(arms, problem):
        asked = {key: getattr(problem, key) for key in ("epsilon", "delta", "noise", "gap_bound")}
        return make(name, arms, **asked, **options)

    return PolicyUnderTest(made)


SELDOM = "certified_answers_are_seldom_wrong"
FEW = 3  # studies, of which two may be wrong, as of the 12 of `make prove`
COUNTED_HERE = {"certified-neural"}  # of the others, tests/guarantees and tests/assumptions count errors in `make test`


@pytest.fixture
def few(monkeypatch):
    """Few studies; and checks that go through one turn by turn look at its first two and its last, not at eight."""
    monkeypatch.setattr(checks, "RUNS", FEW)
    if not os.environ.get(ALL):
        monkeypatch.setattr(
            PolicyUnderTest, "some_turns", property(lambda tested: [*tested.turns[:2], tested.turns[-1]])
        )


@pytest.fixture(params=NAMES)
def name(request) -> str:
    return request.param


def broken(tested: PolicyUnderTest, *, but: str = "") -> dict[str, str]:
    """The checks that it fails, and what they say; in one test, for most checks take less time than a test does."""
    found = {}
    for check, holds in CHECKS.items():
        if check == but:
            continue
        try:
            holds(tested)
        except ProtocolBroken as error:
            found[check] = str(error)
    return found


# The rules and the state of another, with another embedding or schedule, which have tests of their own.
ALIKE = {"kernel-embedding", "fixed-kernel", "certified-kernel", "fixed-linear"}


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in ALIKE else []) for name in NAMES]
)
def test_it_keeps_what_every_policy_must(name):
    assert broken(under_test(name), but="" if name in COUNTED_HERE else SELDOM) == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_certified_answers_are_seldom_wrong(name):
    CHECKS[SELDOM](under_test(name))


def test_few_studies_notice_whoever_is_always_wrong():
    assert trials_to_notice(0.001, 1.0) <= FEW
    assert failures_allowed(FEW, 0.001) == failures_allowed(12, 0.001)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    "name", ["certified-linear", pytest.param("certified-kernel", marks=pytest.mark.slow), "certified-independent"]
)
def test_it_keeps_it_with_evidence_that_is_carried_on(name):
    assert broken(under_test(name, evidence="carried"), but=SELDOM) == {}


def test_a_policy_that_breaks_it_is_found(monkeypatch):
    """The saboteur: a check that always fails; the others are made nevertheless."""

    def fails(tested):
        raise ProtocolBroken("never")

    made = []
    for check in CHECKS:
        monkeypatch.setitem(CHECKS, check, made.append)
    monkeypatch.setitem(CHECKS, SELDOM, fails)
    assert broken(under_test("lucb")) == {SELDOM: "never"}
    assert len(made) == len(CHECKS) - 1


def test_the_spec_rebuilds_an_equal_policy(name):
    arms = sp.Arms(FEATURES)
    policy = make(name, arms)
    assert policy.spec["name"] == name
    assert sp.make_policy(arms=arms, **policy.spec) == policy
    assert from_json(dict, to_json(policy.spec)) == policy.spec
    other = make(name, arms, delta=0.1)
    assert sp.make_policy(arms=arms, **other.spec) != policy


def test_those_that_prove_their_answer_certify_it(name):
    state = under_test(name).turns[-1].step.state
    verdict = certificate_of(make(name, sp.Arms(FEATURES)), state).verdict
    assert verdict == ("heuristic" if name in HEURISTIC else "certified")


def test_those_that_use_no_features_are_equal_for_all_features(name):
    policy, other = make(name, sp.Arms(FEATURES)), make(name, sp.Arms(2.0 * FEATURES))
    assert policy.traits.uses_features == (policy != other)


def test_a_constant_added_to_every_reward_changes_nothing_without_features():
    policy = make("action-elimination", sp.Arms(FEATURES))
    plain, shifted = (played(policy, means)[-1].step.state for means in (MEANS, MEANS + 10.0))
    assert policy.claim(plain).leader == policy.claim(shifted).leader
    assert np.array_equal(plain.active, shifted.active)


# Without them it is one of the checks above.
@pytest.mark.cases(9)
@pytest.mark.parametrize("settings", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_paper_settings_are_options(name, settings):
    arms = sp.Arms(FEATURES)
    chosen = sp.paper_settings(name)
    assert not {"norm_bound", "gamma", "dim"} & set(chosen)
    policy = make(name, arms, **chosen) if settings else make(name, arms)
    assert policy.claim(played(policy)[-1].step.state).leader == int(np.argmax(MEANS))


def test_unknown_options_are_refused_with_the_known(name):
    with pytest.raises(sp.InvalidInput, match=r"no option 'colour'; it knows .*gap_bound"):
        make(name, sp.Arms(FEATURES), colour="red")
