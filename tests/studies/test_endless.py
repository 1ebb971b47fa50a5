"""Nothing runs for ever: equal repeats, a limit of its own, and measurements that fail."""

import math

import numpy as np
import pytest

import surepick as sp
from surepick.errors import UnusualWarning
from surepick.policies.model_checks import ENDLESS
from surepick.policies.uniform import usual_limit
from surepick.questions import Above, TopM
from surepick.studies.program import Command, Loop

MEANS = {"a": 57.0, "b": 62.0, "c": 66.0, "d": 70.0, "e": 75.0, "f": 79.0}


def noisy(seed=0, scale=3.0):
    """A measurement with normal noise."""
    rng = np.random.default_rng(seed)
    return lambda name: MEANS[name] + rng.normal(0.0, scale)


def find(measure, **settings):
    settings = {"epsilon": 5.0, "noise": "subgaussian:3", "progress": False, **settings}
    return sp.find_best(list(MEANS), measure, **settings)


def stars(seed):
    """a always gets five of five stars, the others 1 to 5."""
    rng = np.random.default_rng(seed)
    return lambda ids: [5.0 if name == "a" else float(np.clip(np.round(rng.normal(3.5, 1.0)), 1, 5)) for name in ids]


# equal repeats


@pytest.mark.cases(3)
@pytest.mark.parametrize("value", [1.0, 0.1, 0.0, -7.3, 101325.0, 1e15])
@pytest.mark.parametrize("options", [{}, {"question": TopM(1)}, {"question": Above(threshold=-100.0)}], ids=str)
def test_rewards_that_are_all_equal_end_with_the_names_and_what_to_do(value, options):
    found = sp.find_best(
        list("abc"), lambda ids: [value] * len(ids), epsilon=0.1, noise="normal", unusual="accept", **options
    )
    assert (found.verdict, found.ended_by) == ("budget-exhausted", "repeats")
    assert found.pulls <= 4 * ENDLESS
    for word in ("'a', 'b', 'c'", "equal", "bounded:LOW:HIGH", "subgaussian:SIGMA"):
        assert word in found.certificate.reason
    assert "more are needed" not in found.certificate.reason
    assert found.study.ask() is None


@pytest.mark.cases(2)
@pytest.mark.parametrize("seed", range(4))
def test_a_candidate_that_always_gets_five_stars_ends_the_study(seed):
    found = sp.find_best(list("abc"), stars(seed), epsilon=0.1, noise="normal")
    assert (found.verdict, found.ended_by) == ("budget-exhausted", "repeats")
    assert "All repeats of 'a' are equal" in found.certificate.reason
    assert found.pulls < 500


def test_differences_that_are_all_equal_in_blocks_end_too():
    found = sp.find_best(
        list("abc"), lambda ids, _: [1.0] * len(ids), epsilon=0.1, noise="normal", blocks="day", unusual="accept"
    )
    assert found.ended_by == "repeats"


def test_features_end_too_where_no_repeats_differ():
    arms = sp.Arms(np.random.default_rng(0).normal(size=(6, 2)), ids=list("abcdef"))
    found = sp.find_best(
        arms, lambda ids: [1.0] * len(ids), epsilon=0.1, noise="normal", norm_bound=2.0, unusual="accept"
    )
    assert found.ended_by == "repeats"


def test_the_status_says_it_early():
    policy = sp.make_policy("certified-independent", sp.Arms(ids=list("abc")), epsilon=0.1, delta=0.05, noise="normal")
    study, measure = sp.Study(policy), stars(0)
    while study.progress().pulls < 20:
        batch = study.ask()
        study.tell(batch, measure(batch.pulls()))
    assert "All repeats of 'a' are equal" in str(study.progress())
    assert "All repeats of 'a' are equal" in study.certificate().reason


def test_what_ended_so_has_a_certificate_that_verifies(tmp_path):
    found = sp.find_best(list("abc"), stars(0), epsilon=0.1, noise="normal")
    sp.write_certificate(found.study, tmp_path / "c.json")
    assert sp.verify_certificate(tmp_path / "c.json").holds


def test_two_equal_repeats_are_no_reason():
    """Rewards of one digit are often equal twice; a study of them goes on."""
    rng = np.random.default_rng(0)
    means = {"a": 3.0, "b": 3.5, "c": 2.0}
    found = sp.find_best(
        list(means),
        lambda ids: [round(means[name] + rng.normal(0, 0.3), 1) for name in ids],
        epsilon=0.3,
        noise="normal",
    )
    assert (found.best_arm, found.verdict) == ("b", "certified")


# the limit


def test_the_usual_limit_ends_a_study_and_says_how_to_raise_it():
    policy = sp.make_policy("lucb", sp.Arms(ids=list(MEANS)), epsilon=5.0, delta=0.05, noise="subgaussian:3")
    limit = usual_limit(policy, None)
    assert limit == 20 * 6 * 7
    huge = sp.make_policy("lucb", sp.Arms(ids=list(MEANS)), epsilon=0.001, delta=0.05, noise="subgaussian:3")
    assert usual_limit(huge, None) == pytest.approx(20 * 6 * 2 * 2 * 9 * math.log(120) / 1e-6, rel=0.1)
    honest, count = noisy(), iter(range(10**9))
    with pytest.warns(UnusualWarning, match="of 'b' stands out") as said:
        found = find(lambda ids: [7200.0 if next(count) == 1 else honest(name) for name in ids], evidence="carried")
    assert str(said[0].message).startswith("7200 of 'b'")
    assert (found.verdict, found.ended_by) == ("budget-exhausted", "pulls")
    assert found.pulls <= limit
    assert f"{limit:,} measurements, the usual limit: 20 times" in found.certificate.reason
    assert "max_pulls=" in found.certificate.reason


def test_noise_of_unknown_scale_has_a_limit_from_its_repeats():
    policy = sp.make_policy("certified-independent", sp.Arms(ids=list("ab")), epsilon=0.1, delta=0.05, noise="normal")
    assert usual_limit(policy, None) is None
    seen = sp.Observations(np.array([10, 10]), np.zeros(2), within=np.array([9.0, 36.0]))
    assert usual_limit(policy, seen) == 60 * 2 * math.ceil(2 * 2 * 4 * math.log(20) / 0.01)


def test_max_pulls_may_be_infinite_and_nothing_else_that_is_no_number():
    assert find(lambda ids: [noisy()(name) for name in ids], max_pulls=math.inf).verdict == "certified"
    for wrong in (math.nan, -1, 2.5, "many"):
        with pytest.raises(sp.InvalidInput, match="max_pulls"):
            find(lambda ids: [0.0] * len(ids), max_pulls=wrong)


@pytest.mark.parametrize("name", ["sequential-halving", "certified-items"])
def test_a_policy_that_ends_by_itself_needs_no_limit(name):
    options = (
        {"items": list("xyz"), "noise": "bounded:0:1"}
        if name == "certified-items"
        else {"budget": 100, "noise": "bernoulli"}
    )
    policy = sp.make_policy(name, sp.Arms(ids=list("abc")), epsilon=0.1, delta=0.05, **options)
    assert usual_limit(policy, None) is None


# measurements that fail


def test_a_candidate_that_cannot_be_measured_is_left_out_with_a_reason():
    honest, asked = noisy(), []

    def measure(ids):
        asked.extend(ids)
        return [math.nan if name == "c" else honest(name) for name in ids]

    found = find(measure)
    assert (found.best_arm, found.verdict) == ("f", "certified")
    assert asked.count("c") == 3 * 2  # tries of the first round, which has two results of each candidate
    assert "left out: 'c'" in found.certificate.reason
    assert any("1 candidate withdrawn" in sentence for sentence in found.certificate.assumptions)


@pytest.mark.parametrize("noise", ["subgaussian:3", "normal"])
def test_a_measurement_that_fails_once_is_asked_again(noise):
    honest, failed = noisy(), set()

    def measure(ids):
        out = []
        for name in ids:
            first = name not in failed
            failed.add(name)
            out.append(math.nan if first else honest(name))
        return out

    found = find(measure, noise=noise)
    assert (found.best_arm, found.verdict) == ("f", "certified")
    assert "left out" not in found.certificate.reason
    assert any("failed" in sentence for sentence in found.certificate.assumptions)


@pytest.mark.parametrize("options", [{"policy": "lucb"}, {"blocks": "day"}])
def test_results_are_kept_where_a_study_cannot_go_on_without_a_candidate(options):
    honest, broken = noisy(), True

    def measure(ids, *_):
        return [math.nan if broken and name == "c" else honest(name) for name in ids]

    given = measure if "policy" in options else lambda ids, blocks: measure(ids)
    with pytest.raises(sp.errors.MeasurementFailed, match="'c' gave no result in 3 tries") as caught:
        find(given, **options)
    study = caught.value.study
    assert study.progress().told == 5
    broken = False
    assert study.run(given, progress=False).verdict == "certified"


def test_nothing_that_can_be_measured_is_an_error_with_the_study():
    with pytest.raises(sp.errors.MeasurementFailed) as caught:
        find(lambda ids: [math.nan] * len(ids))
    assert caught.value.study.progress().pulls == 0


def test_an_infinite_reward_is_refused_and_results_are_kept():
    honest, calls = noisy(), []

    def measure(ids):
        calls.append(ids)
        return [math.inf if len(calls) == 2 else honest(name) for name in ids]

    with pytest.raises(sp.InvalidInput, match="not finite") as caught:
        find(measure, epsilon=2.0)
    study = caught.value.study
    assert study.progress().pulls == len(calls[0])
    assert study.run(measure, progress=False).verdict == "certified"


def test_a_failed_measurement_with_constraints_is_a_row_whose_reward_is_nan():
    honest = noisy()

    def measure(ids):
        return [(math.nan if name == "c" else honest(name), 1.0) for name in ids]

    with pytest.raises(sp.errors.MeasurementFailed, match="'c'"):
        find(measure, constraints=["size<=2,tolerance=0.5,noise=subgaussian:1"])


def test_an_answer_to_a_test_item_that_fails_is_asked_again():
    tries = {}

    def measure(ids, items):
        out = []
        for pair in zip(ids, items, strict=True):
            tries[pair] = tries.get(pair, 0) + 1
            out.append(math.nan if tries[pair] == 1 else float(pair[0] == "b"))
        return out

    found = sp.find_best(
        list("ab"), measure, epsilon=0.2, noise="bounded:0:1", items=[str(place) for place in range(60)], progress=False
    )
    assert (found.best_arm, found.verdict) == ("b", "certified")
    assert set(tries.values()) == {2}


def test_a_loop_over_a_program_has_the_usual_limit_too():
    policy = sp.make_policy("certified-independent", sp.Arms(ids=list(MEANS)), epsilon=5.0, delta=0.05, noise="normal")
    study, measure = sp.Study(policy), noisy()
    loop = Loop(study, Command("true {id}", None), "lab")
    assert loop.limit is None
    batch = study.ask()
    study.tell(batch, [measure(name) for name in batch.pulls()])
    assert loop.limit == usual_limit(policy, study.state.seen) >= 600
    assert Loop(study, Command("true {id}", None), "lab", most=7).limit == 7
