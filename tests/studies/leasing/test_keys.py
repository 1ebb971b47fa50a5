"""Durations of leases, and the keys of their pulls."""

import pytest
from leased_studies import make_study, tell_rest
from together import of_each

import surepick as sp
from surepick.studies.logs.base import parse_duration
from surepick.studies.logs.keys import canonical_key, read_pull_key
from surepick.studies.logs.memory import MemoryLog


@of_each(
    ("text", "seconds"),
    [("90s", 90), ("15m", 900), ("8h", 28800), ("2d", 172800), ("1w", 604800), ("1h30m", 5400), (" 1.5H ", 5400)],
)
def test_durations(text, seconds):
    assert parse_duration(text) == seconds
    assert parse_duration(seconds) == seconds


@of_each(
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


@of_each("key", ["p3@sku-4", "3.17@sku-4", "p0.1@sku-4", "mine", f"p{'9' * 5000}.1@sku-4"])
def test_other_keys_are_the_users_own(key):
    assert canonical_key(key, "sku-4") == key
    assert read_pull_key(key) is None


@of_each(
    "key", ["p03.17@sku-4", "p3.017@sku-4", "p٣.17@sku-4", "P3.17@sku-4", "p3,17@sku-4", "p3.17@SKU-4 ", "'p3.17@sku-4"]
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
    assert [read_pull_key(key) for _, key in keys] == [(1, 0), (1, 1)] * 3
    assert study.tell([arm for arm, _ in keys], [0.0] * 6, [key for _, key in keys]).closed
