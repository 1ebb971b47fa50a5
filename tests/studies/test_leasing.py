"""Several workers at one plan: who holds which pulls until when, and what becomes of results that come late."""

import numpy as np
import pytest

import surepick as sp
from surepick.studies.logs.keys import canonical_key, read_pull_key
from surepick.studies.logs.leases import parse_duration
from surepick.studies.logs.memory import MemoryLog

IDS = ("a", "b", "c")
MEANS = {"a": 1.5, "b": 0.25, "c": 0.0}
HOUR = 3600.0
SECRET = 987.654321  # a reward that no message may show


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = 1.75e9

    def __call__(self) -> float:
        return self.now

    def advance(self, hours: float) -> None:
        self.now += hours * HOUR


@pytest.fixture
def clock() -> Clock:
    return Clock()


def make_study(clock: Clock, *, sigma: float = 3.0, name: str = "certified-independent") -> sp.Study:
    """The first plan asks for three pulls of each of three arms."""
    arms = sp.Arms(ids=IDS)
    policy = sp.make_policy(name, arms, epsilon=1.0, delta=0.05, noise=sp.SubGaussian(sigma))
    return sp.Study(arms, policy, log=MemoryLog(clock))


@pytest.fixture
def study(clock) -> sp.Study:
    study = make_study(clock)
    assert study.ask().counts.tolist() == [3, 3, 3]
    return study


def tell_keys(study: sp.Study, keys, worker=None):
    """Tell the pulls of [(id, key)] with their arms' means."""
    return study.tell(
        [arm for arm, _ in keys], [MEANS[arm] for arm, _ in keys], [key for _, key in keys], worker=worker
    )


def tell_rest(study: sp.Study) -> None:
    """Tell all that is missing, without keys."""
    missing = study.missing
    study.tell_totals(study.ids, missing, missing * list(MEANS.values()), missing * np.square(list(MEANS.values())))


def finish(study: sp.Study) -> sp.Certificate:
    while study.ask() is not None:
        tell_rest(study)
    return study.certificate()


# who gets what


def test_a_part_of_the_plan_is_leased_with_its_keys(study, clock):
    part = study.lease(max_pulls=4, worker="ann", duration="2h")
    assert part.counts.tolist() == [3, 1, 0]
    assert part.keys() == [("a", "p1.0@a"), ("a", "p1.1@a"), ("a", "p1.2@a"), ("b", "p1.0@b")]
    assert (part.lease.number, part.lease.plan, part.lease.worker) == (1, 1, "ann")
    assert part.lease.until == clock.now + 2 * HOUR
    assert part.table() == [("a", 3), ("b", 1)]


def test_a_worker_is_given_the_same_lease_again(study, clock):
    part = study.lease(max_pulls=4, worker="ann")
    clock.advance(7.9)
    assert study.lease(max_pulls=1, worker="ann", duration="1m") == part
    tell_keys(study, part.keys()[1:3], worker="ann")
    left = study.lease(worker="ann")
    assert left.lease == part.lease
    assert left.keys() == [part.keys()[0], part.keys()[3]]


def test_others_are_given_other_pulls(study):
    parts = [study.lease(max_pulls=4, worker=worker).keys() for worker in ("ann", "bob", "cy")]
    keys = [key for part in parts for _, key in part]
    assert len(keys) == len(set(keys)) == 9
    assert set(keys) == {f"p1.{ordinal}@{arm}" for arm in IDS for ordinal in range(3)}


def test_when_everything_is_out_the_total_is_zero(study):
    study.lease(worker="ann")
    nothing = study.lease(worker="bob")
    assert (nothing.total, nothing.lease) == (0, None)
    assert nothing.keys() == []
    with pytest.raises(sp.OutOfTurn, match=r"only leased pulls have keys; lease\(worker=...\)"):
        study.ask().keys()
    assert study.ask().total == 9  # what the plan is, for whoever wants to know
    assert study.progress().free == 0


def test_a_lease_that_is_done_is_followed_by_another(study):
    first = study.lease(max_pulls=2, worker="ann")
    tell_keys(study, first.keys(), worker="ann")
    second = study.lease(max_pulls=2, worker="ann")
    assert second.lease.number == 2
    assert second.keys() == [("a", "p1.2@a"), ("b", "p1.0@b")]


def test_results_without_keys_are_taken_from_the_workers_lease(study):
    study.lease(max_pulls=5, worker="ann")
    study.lease(max_pulls=4, worker="bob")
    study.tell(["a", "b"], [1.0, 1.0], worker="ann")
    assert study.lease(worker="ann").counts.tolist() == [2, 1, 0]
    assert study.lease(worker="bob").counts.tolist() == [0, 1, 3]


def test_who_gives_no_name_is_anyone(study):
    part = study.lease(max_pulls=2)
    assert part.lease.worker == "anyone"
    study.tell(["a"], [1.0])
    left = study.lease(max_pulls=2)
    assert left.lease == part.lease
    assert left.counts.tolist() == [1, 0, 0]


def test_results_of_nobodys_lease_leave_the_leases_alone(study):
    part = study.lease(max_pulls=3, worker="ann")
    study.tell(["b", "c"], [0.0, 0.0])
    assert study.lease(worker="ann") == part
    assert study.lease(worker="bob").counts.tolist() == [0, 2, 2]


def test_the_next_plan_has_keys_of_its_own(study):
    study.lease(worker="ann")
    tell_rest(study)
    part = study.lease(max_pulls=1, worker="ann")
    assert part.keys() == [("a", "p2.0@a")]


# leases that run out


def test_pulls_return_to_the_pool_with_new_keys(study, clock):
    old = study.lease(max_pulls=3, worker="ann", duration="1h")
    clock.advance(1.0)
    new = study.lease(worker="bob")
    assert new.counts.tolist() == [3, 3, 3]
    keys = new.keys()
    assert keys[:3] == [("a", "p1.3@a"), ("a", "p1.4@a"), ("a", "p1.5@a")]
    assert not set(old.keys()) & set(keys)
    assert new.lease.number == 2


def test_a_lease_holds_until_its_last_second(study, clock):
    study.lease(worker="ann", duration=10)
    clock.now += 9.99
    assert study.lease(worker="bob").total == 0
    clock.now += 0.01
    assert study.lease(worker="bob").total == 9


def test_what_comes_late_counts_while_the_plan_is_open(study, clock):
    """Even beyond what was asked: which result comes second has nothing to do with its value."""
    old = study.lease(max_pulls=3, worker="ann", duration="1h")
    clock.advance(2)
    new = study.lease(worker="bob")
    assert tell_keys(study, old.keys(), worker="ann").counted == 3
    assert tell_keys(study, new.keys()[:4], worker="bob").counted == 4  # three of arm "a" again
    assert study.missing.tolist() == [0, 2, 3]
    receipt = tell_keys(study, new.keys()[4:], worker="bob")
    assert (receipt.counted, receipt.closed) == (5, True)
    answer = study.certificate()
    assert answer.pulls == 12
    assert any("More results came than were asked, in 1 plan" in said for said in answer.assumptions)
    assert any("asked again: 3; whether one fails or is late" in said for said in answer.assumptions)


def test_nothing_is_said_of_workers_who_keep_their_time(study, clock):
    for worker in ("ann", "bob"):
        tell_keys(study, study.lease(max_pulls=5, worker=worker).keys(), worker=worker)
        clock.advance(1)
    answer = study.certificate()
    assert answer.pulls == 9
    assert not any("asked again" in said or "More results" in said for said in answer.assumptions)


@pytest.mark.parametrize("by", ["key", "worker", "plan"])
def test_results_of_a_closed_plan_are_kept_and_never_used(study, clock, by):
    part = study.lease(max_pulls=3, worker="ann")
    tell_rest(study)
    plan, before = study.ask(), study.certificate()
    said = {"key": {"keys": ["p1.0@a"]}, "worker": {"worker": "ann"}, "plan": {"plan": 1}}[by]
    receipt = study.tell(["a"], [SECRET], **said)
    assert (receipt.plan, receipt.counted, receipt.late) == (2, 0, 1)
    assert study.missing.tolist() == plan.counts.tolist()
    assert study.progress().set_aside == (1, 0)
    assert study.certificate() == before
    assert part.lease.plan == 1
    tell_rest(study)
    assert study.certificate().pulls == 9 + plan.total


def test_after_the_stop_late_results_are_still_kept(study):
    study.lease(max_pulls=1, worker="ann")
    answer = finish(study)
    assert study.tell(["a"], [SECRET], keys=["p1.0@a"]).late == 1
    assert study.certificate() == answer


def test_a_call_may_bring_results_of_two_plans(study):
    tell_rest(study)
    study.lease(worker="ann")
    receipt = study.tell(["a", "a"], [1.0, 1.0], keys=["p1.0@a", "p2.0@a"])
    assert (receipt.counted, receipt.late) == (1, 1)


@pytest.mark.parametrize("key", ["p7.0@a", "p1.99@a"])
def test_a_key_that_was_never_given_is_refused(study, key):
    """It would collide with the pull that is given this key later; a restored backup has such keys."""
    study.lease(worker="ann")
    with pytest.raises(sp.InvalidInput, match=r"looks like one that ask gave.*Give the results keys of their own"):
        study.tell(["a"], [1.0], keys=[key])
    assert study.tell(["a"], [1.0], keys=["mine"]).counted == 1


def test_who_owes_nothing_tells_of_the_open_plan(study):
    """A lease of an earlier plan that was answered in full does not make results of the open one late."""
    tell_keys(study, study.lease(worker="ann").keys(), worker="ann")
    study.ask()
    assert study.tell(["a"], [1.0], worker="ann").counted == 1


def test_who_owes_something_tells_of_the_plan_that_waits_for_it(study, clock):
    held = study.lease(max_pulls=1, worker="ann", duration="1h")
    clock.advance(2)
    tell_keys(study, study.lease(worker="bob").keys(), worker="bob")
    study.ask()
    name = held.table()[0][0]
    assert study.tell([name], [1.0], worker="ann").late == 1


def test_a_refused_call_stores_nothing(clock):
    """Late results and one of an arm that was not asked, in one call."""
    study = make_study(clock, sigma=1.0, name="lucb")
    study.ask()
    tell_rest(study)
    assert study.ask().counts.tolist() == [1, 1, 0]
    with pytest.raises(sp.InvalidInput, match="Nothing of this call was stored"):
        study.tell(["a", "c"], [1.0, 1.0], keys=["p1.0@a", "mine"])
    assert study.progress().set_aside == (0, 0)
    assert study.tell(["a"], [1.0], keys=["p1.0@a"]).late == 1


def test_no_lease_is_judged_by_a_clock_that_was_moved_back(study, clock):
    study.lease(max_pulls=1, worker="ann")
    clock.advance(-1)
    with pytest.raises(sp.OutOfTurn, match=r"Clock skew.* Fix the clock \(results can still be reported"):
        study.lease(worker="bob")
    assert study.tell(["a"], [1.0]).counted == 1


# measurements that fail


def test_a_failed_pull_is_offered_again_at_once(study):
    keys = study.lease(worker="ann").keys()
    assert study.lease(worker="bob").total == 0
    receipt = study.fail(["b"], keys=["p1.1@b"], worker="ann")
    assert (receipt.plan, receipt.failed) == (1, 1)
    again = study.lease(worker="bob")
    assert again.keys() == [("b", "p1.3@b")]
    tell_keys(study, [pair for pair in keys if pair[1] != "p1.1@b"], worker="ann")
    assert not study.trace
    assert tell_keys(study, again.keys(), worker="bob").closed
    answer = study.certificate()
    assert answer.pulls == 9
    assert any("failed or did not come in time and were asked again: 1;" in said for said in answer.assumptions)


def test_a_failure_without_a_key_is_of_the_running_lease(study, clock):
    study.lease(max_pulls=3, worker="ann", duration="1h")
    clock.advance(2)
    assert study.lease(worker="ann").total == 9
    study.fail(["a"], worker="ann")
    assert study.lease(worker="bob").keys() == [("a", "p1.6@a")]


def test_results_without_keys_fill_the_running_lease_first(study, clock):
    study.lease(max_pulls=3, worker="ann", duration="1h")
    clock.advance(2)
    study.lease(max_pulls=2, worker="ann")
    study.tell(["a"] * 2, [1.0] * 2, worker="ann")
    assert study.lease(max_pulls=1, worker="ann").lease.number == 3


def test_a_failure_of_a_closed_plan_is_nothing(study):
    study.lease(worker="ann")
    tell_rest(study)
    plan = study.ask()
    study.fail(["a"], keys=["p1.0@a"], worker="ann")
    tell_rest(study)
    answer = study.certificate()
    assert answer.pulls == 9 + plan.total
    assert not any("asked again" in said for said in answer.assumptions)


# results that will never come


def tell_some(study: sp.Study) -> None:
    study.tell(["a", "a", "b", "c"], [1.5, 1.5, 0.25, 0.0])


def test_the_rest_is_given_up_for_a_reason_of_its_own(study):
    tell_some(study)
    study.abandon(" independent-of-value ")
    assert [row.pulls for row in study.trace] == [4]
    answer = finish(study)
    assert answer.verdict == "certified"
    assert any("Plans closed with results missing: 1; which ones" in said for said in answer.assumptions)


def test_the_rest_of_some_arms_is_given_up(study):
    tell_some(study)
    study.abandon("independent-of-value", ["b", "c"])
    assert study.missing.tolist() == [1, 0, 0]
    assert not study.trace
    assert study.lease(worker="ann").counts.tolist() == [1, 0, 0]
    study.tell(["a"], [1.5])
    assert [row.pulls for row in study.trace] == [5]


def test_giving_up_nothing_is_nothing(study):
    study.tell(["a"] * 3, [1.5] * 3)
    study.abandon("the drive is broken", ["a"])
    tell_rest(study)
    assert finish(study).verdict == "certified"


def test_another_reason_takes_the_theorem_away(study):
    tell_some(study)
    study.abandon("independent-of-value", ["b"])
    study.abandon("nobody has the time", ["a", "c"])
    answer = finish(study)
    assert answer.verdict == "heuristic"
    assert "A plan was closed short ('nobody has the time'), which may depend on the values." in answer.reason
    assert not any("nothing to do with their values" in said for said in answer.assumptions)


def test_pulls_that_were_given_up_and_came_are_counted_or_late(study):
    part = study.lease(max_pulls=3, worker="ann")
    study.abandon("independent-of-value", ["a"])
    assert study.lease(worker="bob").counts.tolist() == [0, 3, 3]
    assert tell_keys(study, part.keys()[:1], worker="ann").counted == 1
    study.abandon("independent-of-value")
    study.ask()
    assert tell_keys(study, part.keys()[1:], worker="ann").late == 2


# closing early


def test_a_study_closed_early_says_what_it_would_have_taken(study):
    tell_rest(study)
    plan = study.ask()
    study.tell(["a"], [SECRET])
    study.close("the money is spent")
    answer = study.certificate()
    assert (answer.verdict, answer.pulls, study.stopped, study.ask()) == ("not-yet", 9, True, None)
    assert study.lease(worker="ann") is None
    assert "(the money is spent)" in answer.reason
    assert f"would have taken {plan.total - 1} more measurements, and about " in answer.reason
    assert f"{plan.predicted_pulls:,.0f} were predicted to be enough" in answer.reason
    with pytest.raises(sp.OutOfTurn, match=r"closed on .*the money is spent\). No more results are needed"):
        study.tell(["a"], [1.0])
    with pytest.raises(sp.OutOfTurn, match="the study was closed on"):
        study.abandon("independent-of-value")
    study.close("again")
    assert study.certificate() == answer


def test_results_after_the_close_are_late(study):
    part = study.lease(max_pulls=1, worker="ann")
    study.close()
    assert tell_keys(study, part.keys()).late == 1
    assert study.certificate().pulls == 0


def test_a_study_that_stopped_is_not_closed(study):
    answer = finish(study)
    study.close("for nothing")
    assert study.certificate() == answer


# totals and results of before


def test_totals_answer_leases_too(study):
    study.lease(worker="ann")
    receipt = study.tell_totals(["a", "b", "a"], [2, 3, 1], [3.0, 0.75, 1.5], keys=["m1", "m2", "m3"], worker="ann")
    assert (receipt.counted, receipt.closed) == (3, False)
    assert study.lease(worker="ann").counts.tolist() == [0, 0, 3]
    assert study.tell_totals(["b"], [3], [0.75], keys=["m2"]).repeated == 1
    with pytest.raises(sp.InvalidInput, match="key 'm2' was reported before with another value"):
        study.tell_totals(["b"], [2], [0.75], keys=["m2"])
    assert study.tell_totals(["c", "a"], [3, 0], [0.0, 0.0]).closed


def test_totals_of_a_closed_plan_are_late(study):
    study.lease(max_pulls=3, worker="ann")
    tell_rest(study)
    study.ask()
    assert study.tell_totals(["a"], [3], [SECRET], worker="ann").late == 1


def test_results_of_before_change_nothing(clock):
    """Told at any time, of any arm, they are kept apart: not one bit of what follows depends on them."""

    def told(rewards) -> sp.Study:
        study = make_study(clock)
        for _ in range(2):
            if rewards:
                receipt = study.tell_prior(["a", "c"], rewards, worker="old lab")
                assert (receipt.prior, receipt.counted) == (2, 0)
            study.lease(worker="ann")
            tell_rest(study)
        finish(study)
        return study

    without, low, high = told(None), told([-SECRET, SECRET]), told([SECRET, -SECRET])
    assert without.certificate() == low.certificate() == high.certificate()
    assert without.trace == low.trace == high.trace
    assert low.progress().set_aside == (0, 4)


# durations and keys


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("15m", 900), ("8h", 28800), ("2d", 172800), ("1w", 604800), ("1h30m", 5400), (" 1.5H ", 5400)],
)
def test_durations(text, seconds):
    assert parse_duration(text) == seconds
    assert parse_duration(seconds) == seconds


@pytest.mark.parametrize(
    "text", ["", "1" * 200_000, "soon", "-8h", "0", "0s", "h", "8h30", "8 hours", "nan", "inf", "1e300", 0, -1.0, [1]]
)
def test_what_is_no_duration(text):
    with pytest.raises(sp.InvalidInput, match="is not a duration; write a positive one"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("key", "known"), [("p3.17@sku-4", (3, 17)), ("p3.0@sku-4", (3, 0)), (" p3.0@sku-4\n", (3, 0))]
)
def test_a_key_names_its_plan_and_its_pull(key, known):
    assert read_pull_key(canonical_key(key, "sku-4")) == known


@pytest.mark.parametrize("key", ["p3@sku-4", "3.17@sku-4", "p0.1@sku-4", "mine", f"p{'9' * 5000}.1@sku-4"])
def test_other_keys_are_the_users_own(key):
    assert canonical_key(key, "sku-4") == key
    assert read_pull_key(key) is None


@pytest.mark.parametrize(
    "key",
    ["p03.17@sku-4", "p3.017@sku-4", "p٣.17@sku-4", "P3.17@sku-4", "p3,17@sku-4", "p3.17@SKU-4 ", "'p3.17@sku-4"],
)
def test_what_only_looks_like_the_key_of_a_leased_pull_is_refused(key):
    """A second way to write a key would be a second key for one pull."""
    with pytest.raises(sp.InvalidInput, match=r"write 'p3\.17@sku-4'|is of a measurement of 'SKU-4'"):
        canonical_key(key, "sku-4")


def test_the_key_of_another_arm_is_refused(study):
    """A column that slipped by a row would poison two estimates."""
    study.lease(worker="ann")
    for call in (lambda: study.tell(["b"], [1.0], ["p1.0@a"]), lambda: study.fail(["b"], ["p1.0@a"])):
        with pytest.raises(sp.InvalidInput, match="is of a measurement of 'a', but the result is reported for 'b'"):
            call()
    assert study.missing.sum() == study.ask().total


def test_a_failed_pull_is_not_given_out_under_its_old_key(study):
    leased = study.lease(worker="ann")
    name, key = leased.keys()[0]
    study.fail([name], [key], worker="ann")
    given = study.lease(worker="ann").keys()
    assert key not in {one for _, one in given}
    assert study.fail([name], [key], worker="ann").repeated == 1


def test_a_clock_that_was_once_ahead_can_be_overruled(study, clock):
    study.lease(max_pulls=1, worker="ann")
    clock.advance(-24 * 365)
    with pytest.raises(sp.OutOfTurn, match="--trust-clock"):
        study.lease(worker="bob")
    assert study.lease(worker="bob", trust_clock=True).total > 0


def test_what_was_given_up_and_came_after_all_is_not_missing(study):
    study.lease(worker="ann")
    study.abandon("the parcel is late", ["a"])
    keys = study.log.arrivals(1).leased[0]
    pulls = int(keys.counts[0])
    study.tell(["a"] * pulls, [1.0] * pulls, [f"p1.{ordinal}@a" for ordinal in range(pulls)])
    tell_rest(study)
    answer = study.certificate()
    assert "the parcel is late" not in answer.reason
    assert not any("missing" in sentence for sentence in answer.assumptions)


def test_a_dubious_gap_in_a_study_that_goes_on_is_said(study):
    study.ask()
    study.abandon("it looked odd", ["a"])
    tell_rest(study)
    answer = study.certificate()
    assert "'it looked odd'" in answer.reason
    assert answer.certified_gap is None
    assert study.progress().certified_gap is None


@pytest.mark.parametrize("huge", [1e101, -1e200, 1e308])
def test_a_reward_that_could_not_be_added_up_is_refused(clock, huge):
    """Its square would be infinite, and the study could never be judged."""
    study = make_study(clock, sigma=1.0)
    study.ask()
    with pytest.raises(sp.InvalidInput, match="could not be added up"):
        study.tell(["a"], [huge])
    with pytest.raises(sp.InvalidInput, match="could not be added up"):
        study.tell_totals(["a"], [1], [huge])
    with pytest.raises(sp.InvalidInput, match="at most 2\\^53"):
        study.tell_totals(["a"], [1e19], [1.0])


def test_ids_may_look_like_keys(clock):
    arms = sp.Arms(ids=["p1.0@x", "x", "line\nbreak"])
    policy = sp.make_policy("certified-independent", arms, epsilon=1.0, delta=0.05, noise=sp.SubGaussian(1.0))
    study = sp.Study(arms, policy, log=MemoryLog(clock))
    keys = study.lease(worker="ann").keys()
    assert [read_pull_key(key) for _, key in keys] == [(1, 0)] * 3
    assert study.tell([arm for arm, _ in keys], [0.0] * 3, [key for _, key in keys]).closed


# what is refused, and how


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        ({"worker": ""}, "worker is ''; give a name"),
        ({"worker": "  "}, "give a name, so that we know who holds the lease"),
        ({"worker": 7}, "worker is 7; give a name"),
        ({"max_pulls": 0}, "max_pulls is 0"),
        ({"max_pulls": 2.5}, "max_pulls is 2.5"),
        ({"worker": "ann", "duration": "soon"}, "'soon' is not a duration; write a positive one"),
        ({"duration": -5}, "-5 is not a duration"),
    ],
)
def test_terms_that_are_refused(study, terms, said):
    with pytest.raises(sp.InvalidInput, match=said):
        study.lease(**terms)
    assert study.progress().free == 9


REFUSED = {
    "no such plan": (lambda s: s.tell(["a"], [SECRET], plan=7), "plan is 7; the study has opened 1 plans so far"),
    "plan zero": (lambda s: s.tell(["a"], [SECRET], plan=0), "plan is 0; .* numbered from 1"),
    "unknown arm": (lambda s: s.tell(["z"], [SECRET]), "1 ids are not arms of this study, the first is 'z'"),
    "one text": (lambda s: s.tell("ab", [SECRET, 1.0]), r"ids is 'ab'; give a sequence of ids, \['ab'\] for one"),
    "few keys": (lambda s: s.tell(["a", "b"], [SECRET, 1.0], ["k"]), "1 keys for 2 results; give one key per result"),
    "empty key": (lambda s: s.tell(["a"], [SECRET], [""]), "a key is empty; leave the keys away"),
    "two values": (lambda s: s.tell(["a", "a"], [SECRET, 1.0], ["k", "k"]), "key 'k' .* give it a key of its own"),
    "other value": (
        lambda s: s.tell(["a"], [1.0], ["seen"]),
        "key 'seen' was reported before with another value; a key",
    ),
    "other arm": (
        lambda s: s.tell(["b"], [SECRET], ["seen"]),
        "key 'seen' was reported before of arm 'a'; a key names",
    ),
    "other prior": (
        lambda s: s.tell_prior(["a"], [1.0], ["seen"]),
        "key 'seen' was reported before with another value",
    ),
    "no reason": (lambda s: s.abandon("  "), "an abandonment needs its reason: independent-of-value if"),
    "no such pull": (lambda s: s.fail(["c"], ["p1.9@c"]), "looks like one that ask gave. and this study never gave it"),
    "failed keys": (lambda s: s.fail(["a", "a"], ["p1.0@a"]), "1 keys for 2 results"),
    "no totals": (lambda s: s.tell_totals(["a"], [0], [SECRET]), "belong to no pull"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_calls_that_are_refused(study, what):
    """Nothing of them is stored, and no reward of the open plan is shown."""
    call, said = REFUSED[what]
    study.lease(max_pulls=2, worker="ann")
    study.tell(["a"], [SECRET], keys=["seen"])
    before = study.progress()
    with pytest.raises(sp.InvalidInput, match=said) as refusal:
        call(study)
    assert study.progress() == before
    if what != "no totals":
        assert str(SECRET)[:4] not in str(refusal.value)


def test_an_arm_that_was_not_asked_is_refused(clock):
    study = make_study(clock, sigma=1.0, name="lucb")
    study.ask()
    tell_rest(study)
    assert study.ask().counts.tolist() == [1, 1, 0]
    with pytest.raises(sp.InvalidInput, match=r"1 results are of arms .* 'c'.* To keep such results apart: tell_prior"):
        study.tell(["a", "c"], [1.0, 1.0])
    assert study.missing.tolist() == [1, 1, 0]


def test_failing_again_is_not_failing_twice(study):
    """The client reports a failure, loses the answer, and reports it again: one pull comes back, not two."""
    study.lease(worker="ann")
    for _ in range(2):
        study.fail(["b"], keys=["p1.1@b"], worker="ann")
    assert study.lease(worker="bob").keys() == [("b", "p1.3@b")]


def test_a_failure_that_is_refused_frees_nothing(study):
    study.lease(worker="ann")
    with pytest.raises(sp.InvalidInput, match="this study never gave it"):
        study.fail(["a", "a"], keys=["p1.0@a", "p1.99@a"], worker="ann")
    assert study.lease(worker="bob").total == 0


def test_a_text_is_no_list_of_ids(study):
    study.ask()
    with pytest.raises(sp.InvalidInput, match="give a sequence of ids"):
        study.fail("a")


def test_what_nobody_leased_can_fail_too(study):
    """It is free as before; that it failed is said."""
    study.ask()
    free = study.free_part().counts
    assert study.fail(["a"]).failed == 1
    assert study.free_part().counts.tolist() == free.tolist()
    tell_rest(study)
    assert any("were asked again: 1;" in sentence for sentence in study.certificate().assumptions)


def test_what_a_worker_will_not_do_is_given_back(study):
    """At once, not when the lease runs out; and what comes after all counts."""
    leased = study.lease(worker="zoe/1")
    assert study.lease(worker="ann").total == 0
    assert study.release("ann") == 0
    assert study.release("zoe") == leased.total
    again = study.lease(worker="ann")
    assert again.total == leased.total
    assert not {key for _, key in leased.keys()} & {key for _, key in again.keys()}  # noqa: SIM118
    assert tell_keys(study, leased.keys()[:1]).counted == 1
    tell_rest(study)
    assert any("were asked again: 9;" in sentence for sentence in study.certificate().assumptions)


def test_two_failures_without_keys_give_two_pulls_back(study):
    leased = study.lease(worker="ann")
    arm = int(leased.counts.argmax())
    name = leased.table()[arm][0]
    assert leased.counts[arm] >= 2
    study.fail([name, name], worker="ann")
    assert study.lease(worker="bob").counts[arm] == 2
