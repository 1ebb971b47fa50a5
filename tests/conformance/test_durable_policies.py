"""Every policy in a database: reopened by another process after each plan, it decides what it decides in memory."""

import named_policies
import numpy as np
import pytest
from named_policies import FEATURES, MEANS

import surepick as sp
from surepick.core.random_streams import stream
from surepick.embeddings import IndependentEmbedding
from surepick.policies.carried.elimination import CarriedElimination

OPTIONS = named_policies.OPTIONS | {
    "sequential-halving": {"budget": 100},
    "action-elimination": {"growth": 0.5},
    "lucb": {"growth": 0.5},
}
IDS = ("a", "b", "c", "d")
MOST = 4  # plans of a policy that goes on for longer


def arms_of() -> sp.Arms:
    return sp.Arms(FEATURES, IDS, columns=["x", "y"])


def make(name: str, **changes):
    settings = {"epsilon": 0.3, "delta": 0.05, "noise": sp.SubGaussian(0.5)} | OPTIONS.get(name, {}) | changes
    return sp.make_policy(name, arms_of(), **settings)


def tell(study, plan, number: int) -> None:
    """What came of a plan: a function of its number, in two parts, with keys."""
    sign = -1.0 if study.minimize else 1.0
    half = plan.counts // 2
    for part, counts in (("first", half), ("second", plan.counts - half)):
        arms = np.flatnonzero(counts)
        if len(arms) == 0:
            continue
        pulls = counts[arms]
        noise = stream(3, "rewards", number, part).normal(0.0, 0.5, len(arms)) * np.sqrt(pulls)
        sums = sign * (pulls * MEANS[arms] + noise)
        keys = [f"{number}-{part}-{IDS[arm]}" for arm in arms]
        study.tell_totals([IDS[arm] for arm in arms], pulls, sums, sums**2 / pulls + 0.25 * pulls, keys)


def play(study, reopened=lambda study: study):
    """The study after its end, or after the most plans; `reopened` in each, before it is told or after, in turn."""
    for number in range(MOST):
        plan = study.ask()
        if plan is None:
            break
        if number % 2:
            study = reopened(study)
            assert study.ask() == plan
        tell(study, plan, number)
        if not number % 2:
            study = reopened(study)
    return study


# The rules and the state of another in the same list, with another embedding, schedule or design.
ALIKE = {"certified-kernel", "fixed-kernel", "fixed-linear", "kernel-embedding", "means-neural-rule", "xy-static"}


@pytest.mark.cases(11)
@pytest.mark.parametrize(
    ("name", "minimize"),
    [
        *(pytest.param(name, False, marks=[pytest.mark.slow] if name in ALIKE else []) for name in sp.policy_names()),
        ("certified-linear", True),
        ("lucb", True),
        pytest.param("rage", True, marks=pytest.mark.slow),
    ],
)
def test_it_decides_in_a_database_as_it_does_in_memory(name, minimize, sqlite_url):
    memory = play(sp.Study(arms_of(), make(name), minimize=minimize))

    def reopened(study):
        study.log._engine.dispose()
        return sp.open_study(sqlite_url, "x")

    durable = play(sp.create_study(sqlite_url, "x", arms_of(), make(name), minimize=minimize), reopened)
    assert len(memory.trace) > 0
    assert durable.trace == memory.trace
    assert durable.certificate() == memory.certificate()
    assert durable.recommend() == memory.recommend()
    assert durable.stopped == memory.stopped
    assert np.array_equal(durable.missing, memory.missing)
    assert durable.policy == memory.policy
    assert durable.arms.ids == IDS


def test_it_decides_on_a_server_as_it_does_in_memory(postgres_url):
    name = "certified-linear"
    memory = play(sp.Study(arms_of(), make(name)))
    durable = play(
        sp.create_study(postgres_url, "x", arms_of(), make(name)), lambda _: sp.open_study(postgres_url, "x")
    )
    assert durable.trace == memory.trace
    assert durable.certificate() == memory.certificate()


def test_other_rewards_would_be_noticed(sqlite_url):
    """Otherwise the equality above could not fail."""
    memory = play(sp.Study(arms_of(), make("certified-linear")))
    other = sp.create_study(sqlite_url, "x", arms_of(), make("certified-linear"))
    tell(other, other.ask(), 99)
    assert other.trace[0] != memory.trace[0] or other.ask() != memory.ask()
    assert other.trace != memory.trace


# policies without a spec


def handmade(arms: sp.Arms, *, epsilon: float = 0.3, delta: float = 0.05, sigma: float = 0.5) -> CarriedElimination:
    """Made of its parts, as its own users do."""
    problem = sp.Problem(arms.num_arms, epsilon, delta, sp.SubGaussian(sigma))
    return CarriedElimination(problem, IndependentEmbedding(arms.num_arms))


def without_spec(arms: sp.Arms):
    """A policy that no name can build again: its embedding has a kernel that is a mere function."""
    from surepick.embeddings import KernelEmbedding

    def kernel(left, right):
        return np.exp(-0.5 * ((left[:, None, :] - right[None, :, :]) ** 2).sum(axis=2))

    embedding = KernelEmbedding(arms.features, kernel=kernel, norm_bound=4.0)
    return CarriedElimination(sp.Problem(arms.num_arms, 0.3, 0.05, sp.SubGaussian(0.5)), embedding)


def test_a_policy_without_a_spec_is_refused(sqlite_url, tmp_path):
    policy = without_spec(arms_of())
    assert policy.spec is None
    with pytest.raises(sp.InvalidInput, match=r"made of parts that have no name.*Use sp\.Study in memory"):
        sp.create_study(sqlite_url, "x", arms_of(), policy)
    assert not list(tmp_path.glob("studies.db*")), "a file was made for a study that was refused"


def test_a_handmade_policy_that_is_equal_goes_on(sqlite_url):
    study = sp.create_study(sqlite_url, "x", arms_of(), make("certified-independent", evidence="carried"))
    tell(study, study.ask(), 0)
    again = sp.open_study(sqlite_url, "x", policy=handmade(arms_of()))
    assert again.trace == study.trace
    tell(again, again.ask(), 1)
    assert len(sp.open_study(sqlite_url, "x").trace) == 2


def test_a_policy_without_a_spec_that_does_the_same_goes_on(sqlite_url):
    study = sp.create_study(sqlite_url, "x", arms_of(), make("certified-kernel"))
    tell(study, study.ask(), 0)
    again = sp.open_study(sqlite_url, "x", policy=without_spec(arms_of()))
    assert again.trace == study.trace


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (lambda arms: handmade(arms, epsilon=0.2), "its epsilon is 0.2"),
        (lambda arms: handmade(arms, delta=0.1), "its delta is 0.1"),
        (lambda arms: handmade(arms, sigma=1.0), "its noise is 'subgaussian:1.0'"),
        (lambda _: make("lucb"), "its algorithm is 'lucb'"),
        (lambda _: make("certified-linear"), "(its algorithm is|its first plan differs)"),
    ],
    ids=["epsilon", "delta", "noise", "algorithm", "embedding"],
)
def test_another_policy_is_refused(sqlite_url, other, what):
    study = sp.create_study(sqlite_url, "x", arms_of(), make("certified-independent"))
    tell(study, study.ask(), 0)
    with pytest.raises(sp.InvalidInput, match=f"the policy that was given is not the one of study 'x': {what}"):
        sp.open_study(sqlite_url, "x", policy=other(arms_of()))
    assert len(sp.open_study(sqlite_url, "x").trace) == 1


def test_a_policy_for_another_number_of_arms_is_refused(sqlite_url):
    sp.create_study(sqlite_url, "x", arms_of(), make("certified-independent"))
    with pytest.raises(sp.InvalidInput, match="the policy is for 3 arms and there are 4"):
        sp.open_study(sqlite_url, "x", policy=handmade(sp.Arms(FEATURES[:3])))
