"""What every policy must keep, as checks that the author of a policy runs on it.

    from surepick.testing import check_policy

    check_policy(lambda arms, problem: MyPolicy(problem))

A check is a function of a `PolicyUnderTest` that raises `ProtocolBroken`, with what was wrong, where a policy breaks
one belief; `CHECKS` has them by name, for one test each:

    @pytest.mark.parametrize("name", CHECKS)
    def test_my_policy(name):
        CHECKS[name](PolicyUnderTest(make))

They need neither pytest nor a clone of the repository, and take a second for a policy that computes little. All that
they play is four candidates, so a policy that passes is not fast, and its intervals are not proved: an error rate far
above delta is noticed, half a width that is missing is not.
"""

import copy
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surepick.certificates.document import certificate_document
from surepick.certificates.verify import verify_certificate
from surepick.core.arms import Arms
from surepick.core.observations import Observations
from surepick.core.plans import Plan, Step
from surepick.core.records import FloatArray, from_json, to_json
from surepick.core.special_functions import scipy
from surepick.environments import Environment
from surepick.noise import SubGaussian
from surepick.policies.base import Claim, Policy, Problem, stopped
from surepick.policies.verdict import certificate_of, claim_certificate
from surepick.simulation import simulate
from surepick.studies import Study

__all__ = [
    "CHECKS",
    "FEATURES",
    "MEANS",
    "PlayedTurn",
    "PolicyUnderTest",
    "ProtocolBroken",
    "check_policy",
    "easy_environment",
    "noiseless",
    "played",
]

# --- A policy that is tested, and the small studies that it plays.

Maker = Callable[[Arms, Problem], Policy[Any]]

FEATURES = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6], [-0.4, 0.3]])
MEANS = FEATURES @ np.array([0.9, 0.2])
NUM_ARMS = len(FEATURES)
SIGMA = 0.5
DELTA = 0.05
EPSILON = 0.1
PLANS_BEFORE_AN_END = 12  # of a policy that never stops by itself
MOST_PLANS = 5000


class ProtocolBroken(AssertionError):
    """A policy breaks what every policy must keep; the message says what, and why it matters."""


@dataclass(frozen=True, slots=True)
class PlayedTurn:
    """One plan of a study: what was asked in a state, what came, and what it led to."""

    state: Any
    plan: Plan
    seen: Observations
    step: Step[Any]


def easy_environment(*, sigma: float = SIGMA) -> Environment:
    """Four arms with two features, whose means (.9, .2, .66, -.3) are linear in them, and normal noise."""
    return Environment(arms=Arms(FEATURES), means=MEANS, noise=SubGaussian(sigma))


def noiseless(plan: Plan, means: ArrayLike = MEANS) -> Observations:
    """What a plan gives where every reward is its mean, (K,)."""
    truth: FloatArray = np.asarray(means, dtype=np.float64)
    return Observations(plan.counts, plan.counts * truth, plan.counts * truth**2)


def played(policy: Policy[Any], means: ArrayLike = MEANS, *, most: int = MOST_PLANS) -> list[PlayedTurn]:
    """The turns of a study without noise, up to the policy's own stop; 12 of one that never stops by itself."""
    state, turns = policy.init(), list[PlayedTurn]()
    while not stopped(policy, state):
        if policy.traits.stops == "never" and len(turns) == PLANS_BEFORE_AN_END:
            return turns
        must(len(turns) < most, f"It did not stop within {most} plans of rewards without noise.")
        plan = policy.ask(state)
        seen = noiseless(plan, means)
        step = policy.tell(state, plan, seen)
        turns.append(PlayedTurn(state, plan, seen, step))
        state = step.state
    return turns


@dataclass(frozen=True)
class PolicyUnderTest:
    """A policy, and one study of it without noise that all checks share.

    Args:
        make: (arms, problem) -> the policy for them. Called with one to four arms and with different problems, and must
            give an equal policy for equal arguments.
    """

    make: Maker
    _turns: dict[str, list[PlayedTurn]] = field(default_factory=dict, repr=False, compare=False)

    def policy(self, features: ArrayLike = FEATURES, **changes: Any) -> Policy[Any]:
        """The policy for these arms.

        Args:
            features: shape (K, D).
            changes: of the problem, whose epsilon is .1, delta .05 and noise sub-Gaussian of scale .5.
        """
        arms = Arms(features)
        asked = {"epsilon": EPSILON, "delta": DELTA, "noise": SubGaussian(SIGMA), **changes}
        return self.make(arms, Problem(arms.num_arms, **asked))

    @property
    def turns(self) -> list[PlayedTurn]:
        """Of four arms, without noise, up to its end."""
        if "easy" not in self._turns:
            self._turns["easy"] = played(self.policy())
        turns = self._turns["easy"]
        must(turns, "It asks for nothing: its first claim has finished.")
        return turns

    @property
    def some_turns(self) -> list[PlayedTurn]:
        """The first turns and the last."""
        return self.turns if len(self.turns) <= 8 else [*self.turns[:6], *self.turns[-2:]]

    @property
    def states(self) -> list[Any]:
        """The state in the beginning, and after some of its turns."""
        return [self.policy().init(), *(turn.step.state for turn in self.some_turns)]


def must(holds: object, sentence: str) -> None:
    """Raise `ProtocolBroken` with that sentence unless it holds."""
    if not holds:
        raise ProtocolBroken(sentence)


REASONS = ("", "certified", "single", "given", "rounds", "budget")
RUNS = 12
FALSE_ALARM = 1e-6


# --- what it says of itself


def it_is_a_policy(tested: PolicyUnderTest) -> None:
    """It has a problem, traits and four methods, and an equal one is made from equal arguments."""
    asked = Problem(NUM_ARMS, EPSILON, DELTA, SubGaussian(SIGMA))
    policy = tested.make(Arms(FEATURES), asked)
    must(isinstance(policy, Policy), "It lacks one of problem, traits, init, ask, tell and claim.")
    asked = replace(asked, question=policy.problem.question)  # which the policy may add
    must(policy.problem == asked, f"Its problem is {policy.problem}, and it was made for {asked}.")
    traits = policy.traits
    must(traits.stops in ("own", "never", "budget"), f"Its traits say stops={traits.stops!r}.")
    known = ("survivors", "candidate", "lists", "nothing")
    must(traits.certifies in known, f"Its traits say certifies={traits.certifies!r}.")
    must(tested.make(Arms(FEATURES), asked).traits == traits, "Two policies made from equal arguments differ.")


def its_traits_are_true(tested: PolicyUnderTest) -> None:
    """Traits that are wrong make reports, forecasts and certificates say what is not so."""
    policy = tested.policy()
    traits = policy.traits
    elsewhere = played(tested.policy(FEATURES[::-1]), MEANS)
    depends = [turn.plan for turn in elsewhere] != [turn.plan for turn in tested.turns] or (
        [turn.step.record for turn in elsewhere] != [turn.step.record for turn in tested.turns]
    )
    must(
        traits.uses_features == depends,
        f"Its traits say uses_features={traits.uses_features}, and with other features it "
        f"{'does not do the same' if depends else 'does the same'}.",
    )
    candidates = any(turn.plan.candidate is not None for turn in tested.turns)
    must(
        (traits.certifies == "candidate") == candidates,
        f"Its traits say certifies={traits.certifies!r}, and its plans have {'' if candidates else 'no '}candidates.",
    )


def it_stops_as_it_says(tested: PolicyUnderTest) -> None:
    """`stops` says who ends it: itself, its budget, or nobody."""
    policy, turns = tested.policy(), tested.turns
    end = policy.claim(turns[-1].step.state).finished
    if policy.traits.stops == "never":
        wrong = f"Its traits say that it never stops, and it stopped after {len(turns)} plans: {end!r}."
        must(end in ("", "single"), wrong)
    elif policy.traits.stops == "budget":
        spent = {sum(turn.plan.total for turn in played(policy, means)) for means in (MEANS, MEANS[::-1], 0.0 * MEANS)}
        must(len(spent) == 1, f"Its traits say that its budget ends it, and it spends {sorted(spent)} pulls.")


# --- pure functions


def asking_changes_nothing(tested: PolicyUnderTest) -> None:
    """`ask` is pure: a plan is stored before its first pull, and asked for again by whoever opens the study."""
    policy = tested.policy()
    for turn in tested.some_turns:
        state = copy.deepcopy(turn.state)
        must(policy.ask(state) == turn.plan, "Asked again in an equal state, it gives another plan.")
        must(policy.ask(state) == turn.plan, "Asked twice in one state, it gives another plan.")
        must(state == turn.state, "ask modifies the state.")


def telling_changes_nothing(tested: PolicyUnderTest) -> None:
    """`tell` is pure: what was told is told again by whoever verifies."""
    policy = tested.policy()
    for turn in tested.some_turns:
        state, plan, seen = copy.deepcopy((turn.state, turn.plan, turn.seen))
        for _ in range(2):
            step = policy.tell(state, plan, seen)
            must(step.state == turn.step.state, "Told the same twice, it comes to another state.")
            must(step.record == turn.step.record, "Told the same twice, it gives another row of the trace.")
        must((state, plan, seen) == (turn.state, turn.plan, turn.seen), "tell modifies what it is given.")


def claiming_changes_nothing(tested: PolicyUnderTest) -> None:
    """`claim` is pure: it is asked for at any time, as often as anybody looks."""
    policy = tested.policy()
    for state in tested.states:
        before = copy.deepcopy(state)
        first, second = policy.claim(state), policy.claim(state)
        must(first == second and first.remark() == second.remark(), "Two claims of one state differ.")
        must(state == before, "claim modifies the state.")


def states_and_plans_survive_json(tested: PolicyUnderTest) -> None:
    """A study is stored between any two calls, and goes on in another process."""
    policy = tested.policy()
    for state in tested.states:
        must(type(state) is type(policy.init()), f"Its states are of several types: {type(state).__name__}.")
        for sparse in (False, True):
            again = from_json(type(state), to_json(state, sparse=sparse))
            must(again == state, f"A {type(state).__name__} is another one after JSON.")
    for turn in tested.some_turns:
        must(from_json(Plan, to_json(turn.plan)) == turn.plan, "A plan is another one after JSON.")


def a_replay_comes_to_the_same(tested: PolicyUnderTest) -> None:
    """Opened anew at each plan, it decides as it did: nothing is remembered outside the state."""
    for turn in tested.some_turns:
        policy = tested.policy()
        state = from_json(type(turn.state), to_json(turn.state))
        must(policy.ask(state) == turn.plan, "A new policy in a stored state gives another plan.")
        step = tested.policy().tell(state, turn.plan, turn.seen)
        must(step.state == turn.step.state, "A new policy in a stored state comes to another state.")
        must(step.record == turn.step.record, "A new policy in a stored state gives another row of the trace.")


def a_study_comes_to_the_same(tested: PolicyUnderTest) -> None:
    """In a study, told in parts and looked at in between, it decides as it does by itself."""
    policy = tested.policy()
    study = Study(Arms(FEATURES), policy)
    for turn in tested.turns[:20]:
        batch = study.ask()
        if batch is None or not np.array_equal(batch.counts, turn.plan.counts):
            raise ProtocolBroken("In a study it asks for something else.")
        half = turn.plan.counts // 2
        for counts in (turn.plan.counts - half, half):
            study.tell_totals(batch, counts, counts * MEANS, counts * MEANS**2, accept_unusual="unasked")
        here, there = certificate_of(policy, turn.step.state), study.certificate()
        must(
            (here.arm, here.pulls, here.verdict) == (there.arm, there.pulls, there.verdict),
            f"In a study it says {there.verdict}: arm {there.arm} after {there.pulls} pulls; by itself {here.verdict}: "
            f"arm {here.arm} after {here.pulls}.",
        )


# --- plans, rows and claims


def plans_are_whole(tested: PolicyUnderTest) -> None:
    """Pulls are whole and not negative, one number an arm, and there is something to pull."""
    for turn in tested.turns:
        plan = turn.plan
        for name, counts in (("counts", plan.counts), ("allocation", plan.allocation)):
            if counts is not None:
                must(counts.shape == (NUM_ARMS,), f"{name} has shape {counts.shape} for {NUM_ARMS} arms.")
                must(counts.min() >= 0, f"{name} has a negative number of pulls.")
        must(plan.total > 0, "A plan asks for nothing, and so the study would never go on.")
        must(plan.round >= 1, f"A plan is of round {plan.round}; the first is 1.")
        must(1 <= plan.look <= plan.looks, f"A plan is look {plan.look} of {plan.looks}.")
        must(plan.candidate is None or 0 <= plan.candidate < NUM_ARMS, f"A plan has the candidate {plan.candidate}.")


def rows_say_what_happened(tested: PolicyUnderTest) -> None:
    """The trace is what people and figures see of a study; where arms are put on lists, none is left at the end."""
    total, lists = 0, tested.policy().traits.certifies == "lists"
    for turn in tested.turns:
        row, active, total = turn.step.record, turn.step.record.active, total + turn.seen.total
        must(
            (row.round, row.look, row.looks) == (turn.plan.round, turn.plan.look, turn.plan.looks),
            f"A row is of round {row.round}, look {row.look}, and its plan of round {turn.plan.round}.",
        )
        must(row.total_pulls == total, f"A row says {row.total_pulls} pulls in all, and {total} came.")
        must(lists or len(active) > 0, "No arm is left.")
        must(np.array_equal(active, np.unique(active)), f"The active arms {active} are not in order, each once.")
        must(np.isin(active, np.arange(NUM_ARMS)).all(), f"The active arms {active} are not all there.")


def only_what_eliminates_shrinks(tested: PolicyUnderTest) -> None:
    """Where the traits say that arms are ruled out, none comes back."""
    if not tested.policy().traits.eliminates:
        return
    before = set(range(NUM_ARMS))
    for turn in tested.turns:
        left = set(turn.step.record.active.tolist())
        must(left <= before, f"Arms {sorted(left - before)} were ruled out and came back.")
        before = left


def claims_are_in_range(tested: PolicyUnderTest) -> None:
    """A claim names an arm that is there, pulls that came, and a gap that is one."""
    policy = tested.policy()
    pulls = 0
    for turn in tested.turns:
        pulls += turn.seen.total
        claim = policy.claim(turn.step.state)
        must(0 <= claim.leader < NUM_ARMS, f"It claims arm {claim.leader} of {NUM_ARMS}.")
        must(claim.pulls == pulls, f"It claims {claim.pulls} pulls, and {pulls} came.")
        must(claim.finished in REASONS, f"It claims to have finished for {claim.finished!r}, none of {REASONS}.")
        must(
            claim.gap is None or (math.isfinite(claim.gap) and claim.gap >= 0.0),
            f"It claims a gap of {claim.gap}; where nothing can be said, the gap is None.",
        )
        must(0.0 <= claim.spent < math.inf, f"It claims to spend an error probability of {claim.spent}.")
        _has_lists(policy, claim)
        if claim.finished == "certified" and claim.lists is None:
            promised = policy.problem.epsilon if claim.epsilon is None else claim.epsilon
            wrong = f"It claims to be certified with a gap of {claim.gap}, and promises {promised}."
            must(claim.gap is not None and claim.gap <= promised, wrong)


def _has_lists(policy: Policy[Any], claim: Claim) -> None:
    """Lists where the traits speak of some, of arms that are there, each on one at most."""
    lists = policy.traits.certifies == "lists"
    must(lists == (claim.lists is not None), f"It claims {'no ' if lists else ''}lists, against its traits.")
    if claim.lists is None:
        return
    for arms in claim.lists:
        must(np.array_equal(arms, np.unique(arms)), f"The arms {arms} of a list are not in order, each once.")
        must(np.isin(arms, np.arange(NUM_ARMS)).all(), f"The arms {arms} of a list are not all there.")
    both = np.intersect1d(*claim.lists)
    must(len(both) == 0, f"Arms {both} are on both lists.")


# --- answers


def rewards_without_noise_find_the_best_arm(tested: PolicyUnderTest) -> None:
    """With rewards that are their means, the answer is the best arm, and says whether it is proved."""
    policy = tested.policy()
    claim = policy.claim(tested.turns[-1].step.state)
    best = int(np.argmax(MEANS))
    must(claim.leader == best, f"Without noise, it recommends arm {claim.leader}, and the best is {best}.")
    _says(policy, claim, "heuristic" if policy.traits.certifies == "nothing" else "certified", "at its end")


def one_arm_needs_no_pull(tested: PolicyUnderTest) -> None:
    """There is nothing to choose: certified at once; but lists may compare one arm with a number."""
    if tested.policy().traits.certifies == "lists":
        return
    policy = tested.policy(FEATURES[:1])
    claim = policy.claim(policy.init())
    must(claim.finished != "", "With one arm it asks for pulls.")
    must((claim.leader, claim.pulls) == (0, 0), f"With one arm it claims arm {claim.leader}, {claim.pulls} pulls.")
    _says(policy, claim, "certified", "with one arm")


def a_gap_bound_below_epsilon_needs_no_pull(tested: PolicyUnderTest) -> None:
    """Where every arm is good enough by assumption, any is the answer; of lists, nothing is given so far."""
    if tested.policy().traits.certifies == "lists":
        return
    policy = tested.policy(gap_bound=0.5 * EPSILON)
    claim = policy.claim(policy.init())
    if policy.traits.stops == "never":
        must(claim.finished == "", "Its traits say that it never stops, and a gap bound stops it.")
        return
    must(claim.finished != "", "No two arms differ by more than epsilon by assumption, and it asks for pulls.")
    must(claim.finished == "given", f"The answer is given by assumption, and it finished for {claim.finished!r}.")
    _says(policy, claim, "certified", "where all arms are good enough by assumption")


def two_identical_arms_do_not_rule_out_each_other(tested: PolicyUnderTest) -> None:
    """Of two best arms that are the same, either is the answer and neither is ruled out."""
    policy = tested.policy([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    turns = played(policy, [0.9, 0.9, 0.1])
    leader = policy.claim(turns[-1].step.state).leader
    must(leader in (0, 1), f"Arms 0 and 1 are equal and the best, and it recommends arm {leader}.")
    if policy.traits.eliminates:
        left = turns[-1].step.record.active.tolist()
        must({0, 1} <= set(left), f"Arms 0 and 1 are the same, and only {left} are left.")


def an_unfinished_study_says_so(tested: PolicyUnderTest) -> None:
    """Before the first result nothing is certified."""
    policy = tested.policy()
    claim = policy.claim(policy.init())
    must(claim.finished == "", f"It claims to have finished before the first pull: {claim.finished!r}.")
    _says(policy, claim, "heuristic" if policy.traits.stops == "never" else "not-yet", "before the first pull")


def missing_results_never_certify(tested: PolicyUnderTest) -> None:
    """A plan that comes back empty is no knowledge: the widths are those of what came."""
    policy = tested.policy()
    state = policy.init()
    for _ in range(2):
        plan = policy.ask(state)
        state = policy.tell(state, plan, Observations.nothing(NUM_ARMS)).state
        claim = policy.claim(state)
        must(claim.finished == "", f"Nothing came of its plan, and it finished: {claim.finished!r}.")
        verdict = claim_certificate(policy.problem, claim).verdict
        must(verdict != "certified", "Nothing came of its plan, and it is certified.")
    must(policy.ask(state).total > 0, "Nothing came of its plan, and it asks for nothing more.")


def totals_without_squares_are_enough(tested: PolicyUnderTest) -> None:
    """Who reports totals only gives no sums of squares; the study goes on."""
    policy = tested.policy()
    state = policy.init()
    for _ in range(4):
        if stopped(policy, state):
            break
        plan = policy.ask(state)
        state = policy.tell(state, plan, Observations(plan.counts, plan.counts * MEANS)).state
    claim = policy.claim(state)
    best = int(np.argmax(MEANS))
    must(claim.leader == best, f"Told no squares, it recommends arm {claim.leader}, and the best is {best}.")


def certified_answers_are_seldom_wrong(tested: PolicyUnderTest) -> None:
    """Certified answers are wrong no more often than delta allows: in 12 studies, by an exact binomial tail."""
    environment = easy_environment(sigma=1.0)
    policy = tested.policy(epsilon=0.5, delta=0.001, noise=environment.noise)
    if policy.traits.certifies == "nothing" or policy.traits.stops == "never":
        return
    runs = [simulate(policy, environment, seed=seed, max_pulls=1_000_000) for seed in range(RUNS)]
    wrong = sum(run.verdict == "certified" and not run.success for run in runs)
    allowed = int(scipy.stats.binom.isf(FALSE_ALARM, RUNS, policy.problem.delta))
    must(wrong <= allowed, f"{wrong} of {RUNS} certified answers are wrong; delta = .001 allows {allowed}.")


def its_certificate_is_verified(tested: PolicyUnderTest) -> None:
    """Who has the certificate and the policy computes the same answer from it."""
    policy, arms = tested.policy(), Arms(FEATURES)
    study = Study(arms, policy)
    for turn in tested.turns[:4]:
        study.ask()
        totals = turn.seen.counts, turn.seen.sums, turn.seen.squares
        study.tell_totals(study.ids, *totals, accept_unusual="unasked")
    document = json.loads(json.dumps(certificate_document(study)))
    found = verify_certificate(document, policy=None if document["policy"] else policy)
    must(found.holds, f"Its certificate is not verified: {found}")


def _says(policy: Policy[Any], claim: Claim, verdict: str, when: str) -> None:
    said = claim_certificate(policy.problem, claim)
    must(said.verdict == verdict, f"The verdict {when} is {said.verdict!r}, not {verdict!r}: {said.reason}")


CHECKS: Mapping[str, Callable[[PolicyUnderTest], None]] = {  # the functions of a `PolicyUnderTest` alone
    name: check
    for name, check in list(globals().items())
    if getattr(check, "__annotations__", {}) == {"tested": PolicyUnderTest, "return": None}
}


def check_policy(make: Maker) -> None:
    """Run all checks.

    Args:
        make: (arms, problem) -> the policy, as in `PolicyUnderTest`.

    Raises:
        ProtocolBroken: lists each belief that the policy breaks, and how.
    """
    tested, broken = PolicyUnderTest(make), list[str]()
    for name, check in CHECKS.items():
        try:
            check(tested)
        except Exception as error:
            kind = "" if isinstance(error, ProtocolBroken) else f"{type(error).__name__}: "
            broken.append(f"{name}: {kind}{error}")
    if broken:
        raise ProtocolBroken("\n".join([f"{len(broken)} of {len(CHECKS)} checks fail.", *broken]))
