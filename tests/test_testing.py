"""The checks of `surepick.testing` pass what is right, and each of them catches a policy that is broken on purpose."""

import itertools
import subprocess
import sys
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
import pytest

import surepick as sp
from surepick.policies.base import Policy
from surepick.testing import CHECKS, MEANS, PolicyUnderTest, ProtocolBroken, check_policy, easy_environment, noiseless


def made(arms: sp.Arms, problem: sp.Problem) -> Policy:
    """A policy that is right."""
    return sp.make_policy(
        "action-elimination",
        arms,
        epsilon=problem.epsilon,
        delta=problem.delta,
        noise=problem.noise,
        gap_bound=problem.gap_bound,
        growth=1.0,
    )


@dataclass
class Saboteur:
    """The right policy, with some methods replaced: each is given the policy as well."""

    inner: Policy
    replaced: dict = field(default_factory=dict)
    memory: list = field(default_factory=lambda: [0])

    @property
    def problem(self):
        return self.replaced.get("problem", lambda policy: policy.problem)(self.inner)

    @property
    def traits(self):
        return self.replaced.get("traits", lambda policy: policy.traits)(self.inner)

    def init(self):
        return self.replaced.get("init", lambda policy: policy.init())(self.inner)

    def ask(self, state):
        return self._done("ask", state)

    def tell(self, state, plan, seen):
        return self._done("tell", state, plan, seen)

    def claim(self, state):
        return self._done("claim", state)

    def _done(self, name, *arguments):
        if name in self.replaced:
            return self.replaced[name](self, *arguments)
        return getattr(self.inner, name)(*arguments)


def broken(**replaced) -> PolicyUnderTest:
    return PolicyUnderTest(lambda arms, problem: Saboteur(made(arms, problem), replaced))


def says(**changes):
    """A policy whose claims are altered; a function is given what was claimed."""

    def claim(policy, state):
        right = policy.inner.claim(state)
        return replace(right, **{name: new(right) if callable(new) else new for name, new in changes.items()})

    return broken(claim=claim)


def has_traits(**changes):
    return broken(traits=lambda policy: replace(policy.traits, **changes))


def plans(**changes):
    return broken(ask=lambda policy, state: replace(policy.inner.ask(state), **changes))


def rows(change):
    """A policy whose rows of the trace are altered."""

    def tell(policy, state, plan, seen):
        step = policy.inner.tell(state, plan, seen)
        return replace(step, record=change(step.record))

    return broken(tell=tell)


COUNTED = itertools.count()  # what a function must not depend on


@dataclass(frozen=True)
class Exact:
    """A state with a number that JSON does not have."""

    inner: object
    share: object = Fraction(1, 3)


def wrapped():
    return broken(
        init=lambda policy: Exact(policy.init()),
        ask=lambda policy, state: policy.inner.ask(state.inner),
        tell=lambda policy, state, plan, seen: replace(
            step := policy.inner.tell(state.inner, plan, seen), state=Exact(step.state)
        ),
        claim=lambda policy, state: policy.inner.claim(state.inner),
    )


def remembering():
    """It remembers outside its state what it was told, and asks for more each time."""

    def ask(policy, state):
        plan = policy.inner.ask(state)
        return replace(plan, counts=plan.counts + policy.memory[0])

    def tell(policy, state, plan, seen):
        policy.memory[0] += 1
        return policy.inner.tell(state, plan, seen)

    return broken(ask=ask, tell=tell)


def watched():
    """It asks for one more pull each time that somebody looks where it stands."""

    def claim(policy, state):
        policy.memory[0] += 1
        return policy.inner.claim(state)

    def ask(policy, state):
        plan = policy.inner.ask(state)
        return replace(plan, counts=plan.counts + policy.memory[0])

    return broken(ask=ask, claim=claim)


def squared():
    """It recommends the arm with the largest sum of squares, or the last."""

    def tell(policy, state, plan, seen):
        step = policy.inner.tell(state, plan, seen)
        leader = 3 if seen.squares is None else int(np.argmax(seen.squares))
        return replace(step, state=replace(step.state, leader=leader))

    return broken(tell=tell)


def modified(name):
    """It counts in the state that it is given."""

    def method(policy, state, *rest):
        done = getattr(policy.inner, name)(state, *rest)
        object.__setattr__(state, "round", state.round + 1)
        return done

    return broken(**{name: method})


def careless():
    """It certifies whatever leads after one plan."""

    def tell(policy, state, plan, seen):
        step = policy.inner.tell(state, plan, seen)
        leader = int(np.argmax(seen.sums))
        after = replace(step.state, leader=leader, finished="certified", gap=0.0)
        return replace(step, state=after, record=replace(step.record, leader=leader))

    return broken(tell=tell)


def forgiving():
    """It takes what did not come for proof."""

    def tell(policy, state, plan, seen):
        step = policy.inner.tell(state, plan, seen)
        return replace(step, state=replace(step.state, finished="certified", gap=0.0)) if seen.total == 0 else step

    return broken(tell=tell)


def hasty(right):
    return "" if right.pulls == 0 else right.finished


SABOTEURS = [
    ("it_is_a_policy", lambda: broken(problem=lambda policy: replace(policy.problem, delta=0.5))),
    ("it_is_a_policy", lambda: has_traits(stops="sometimes")),
    ("it_is_a_policy", lambda: PolicyUnderTest(lambda arms, problem: object())),
    ("its_traits_are_true", lambda: has_traits(uses_features=True)),
    ("its_traits_are_true", lambda: has_traits(certifies="candidate")),
    ("it_stops_as_it_says", lambda: has_traits(stops="budget")),
    ("asking_changes_nothing", lambda: modified("ask")),
    ("asking_changes_nothing", remembering),
    ("telling_changes_nothing", lambda: modified("tell")),
    ("telling_changes_nothing", lambda: rows(lambda row: replace(row, alarms=(str(next(COUNTED)),)))),
    ("claiming_changes_nothing", lambda: says(assumptions=lambda _: (str(next(COUNTED)),))),
    ("claiming_changes_nothing", lambda: modified("claim")),
    ("states_and_plans_survive_json", wrapped),
    ("a_replay_comes_to_the_same", remembering),
    ("a_study_comes_to_the_same", watched),
    ("plans_are_whole", lambda: plans(look=2)),
    ("plans_are_whole", lambda: plans(allocation=np.ones(3, np.int64))),
    ("plans_are_whole", lambda: plans(candidate=9)),
    ("rows_say_what_happened", lambda: rows(lambda row: replace(row, total_pulls=row.pulls))),
    ("rows_say_what_happened", lambda: rows(lambda row: replace(row, active=row.active[::-1]))),
    ("rows_say_what_happened", lambda: rows(lambda row: replace(row, active=row.active[:0]))),
    ("only_what_eliminates_shrinks", lambda: rows(lambda row: replace(row, active=np.arange(1 + row.round % 2)))),
    ("claims_are_in_range", lambda: says(leader=4)),
    ("claims_are_in_range", lambda: says(pulls=lambda right: right.pulls + 1)),
    ("claims_are_in_range", lambda: says(gap=np.inf)),
    ("claims_are_in_range", lambda: says(finished=lambda right: right.finished and "done")),
    ("rewards_without_noise_find_the_best_arm", lambda: says(leader=2)),
    ("rewards_without_noise_find_the_best_arm", lambda: says(why_heuristic="It is a guess.")),
    ("one_arm_needs_no_pull", lambda: says(finished=hasty)),
    ("a_gap_bound_below_epsilon_needs_no_pull", lambda: says(finished=hasty)),
    (
        "two_identical_arms_do_not_rule_out_each_other",
        lambda: rows(lambda row: replace(row, active=row.active[row.active != 1])),
    ),
    ("an_unfinished_study_says_so", lambda: says(finished="certified", gap=0.0)),
    ("missing_results_never_certify", forgiving),
    ("totals_without_squares_are_enough", squared),
    ("certified_answers_are_seldom_wrong", careless),
    ("its_certificate_is_verified", lambda: says(assumptions=lambda _: (str(next(COUNTED)),))),
]


def test_a_policy_that_is_right_passes():
    check_policy(made)
    check_policy(lambda arms, problem: Saboteur(made(arms, problem)))


@pytest.mark.parametrize(
    ("check", "saboteur"), SABOTEURS, ids=[f"{number}-{name}" for number, (name, _) in enumerate(SABOTEURS)]
)
def test_a_broken_policy_is_caught(check, saboteur):
    with pytest.raises((ProtocolBroken, TypeError)):
        CHECKS[check](saboteur())


def test_every_check_has_a_saboteur():
    assert {name for name, _ in SABOTEURS} == set(CHECKS)


def test_all_that_is_broken_is_listed():
    with pytest.raises(ProtocolBroken) as caught:
        check_policy(says(leader=4, pulls=-1).make)
    said = str(caught.value)
    assert f"of {len(CHECKS)} checks fail" in said
    assert "claims_are_in_range: It claims arm 4 of 4." in said
    assert "one_arm_needs_no_pull" in said
    assert "asking_changes_nothing" not in said


def test_neither_surepick_nor_its_checks_need_pytest():
    program = (
        "import sys\nsys.modules['pytest'] = None\nimport surepick as sp\n"
        "assert 'surepick.testing' not in sys.modules\n"
        "sp.testing.RUNS = 3\n"
        "sp.testing.check_policy(lambda arms, problem: sp.make_policy('certified-independent', arms, "
        "epsilon=problem.epsilon, delta=problem.delta, noise=problem.noise, gap_bound=problem.gap_bound))"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_builders():
    environment = easy_environment(sigma=2.0)
    assert np.array_equal(environment.means, MEANS)
    assert environment.noise == sp.SubGaussian(2.0)
    seen = noiseless(sp.Plan(round=1, counts=[2, 0, 1, 0]))
    assert np.array_equal(seen.sums, [2 * MEANS[0], 0.0, MEANS[2], 0.0])
    assert np.array_equal(seen.squares, [2 * MEANS[0] ** 2, 0.0, MEANS[2] ** 2, 0.0])
