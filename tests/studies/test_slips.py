"""A slip of the finger: asked about before it is stored, taken back while its round is open, and seen in repeats."""

import pickle
import warnings

import numpy as np
import pytest
from databases import first_on
from together import of_each

import surepick as sp
from surepick.errors import UnusualResult, UnusualWarning
from surepick.studies.audit import export_results

MEANS = dict(zip("abcdef", [57.0, 61.0, 66.0, 70.0, 75.0, 79.0], strict=True))


def policy(name="certified-independent", noise="subgaussian:3", means=MEANS, **options):
    return sp.make_policy(name, sp.Arms(ids=list(means)), epsilon=5.0, delta=0.05, noise=noise, **options)


def carried():
    """Its first round has one result of each candidate."""
    return policy(evidence="carried")


@pytest.fixture(params=["memory", "sqlite_url", pytest.param("postgres_url", marks=pytest.mark.slow)])
def study(request) -> sp.Study:
    if request.param == "memory":
        return sp.Study(carried())
    return sp.create_study(request.getfixturevalue(request.param), "bread", carried())


def reading(rng, ids) -> list[float]:
    return [MEANS[one] + 2.0 * rng.normal() for one in ids]


def tell_round(study, rng, **said) -> None:
    batch = study.ask()
    study.tell(batch, reading(rng, batch.pulls()), **said)


# what is asked about


@pytest.mark.parametrize("value", [790.0, 7.9, -66.0, 99999.0])
def test_a_first_result_of_another_size_than_all_others_is_asked_about(study, value):
    batch = study.ask()
    rewards = [MEANS[one] for one in batch.pulls()]
    rewards[2] = value
    with pytest.raises(UnusualResult, match=f"{value:.6g} of 'c' stands out.*Is it a typing error\\? Nothing") as asked:
        study.tell(batch, rewards)
    assert asked.value.rows == (2,)
    assert study.missing.sum() == batch.total
    assert pickle.loads(pickle.dumps(asked.value)).rows == (2,)
    rewards[2] = 66.0
    assert study.tell(batch, rewards).closed
    assert not any("unusual" in one for one in study.certificate().assumptions)


def test_a_result_far_from_its_repeats_of_closed_rounds_is_asked_about(study):
    rng = np.random.default_rng(0)
    tell_round(study, rng)
    batch = study.ask()
    rewards = reading(rng, batch.pulls())
    rewards[-1] *= 10.0
    with pytest.raises(UnusualResult, match=f"of '{batch.pulls()[-1]}' stands out: its other result is"):
        study.tell(batch, rewards)
    assert study.tell(batch, rewards, accept_unusual=True).counted == batch.total
    assert any("1 unusual result confirmed by whoever reported" in one for one in study.certificate().assumptions)


def test_of_two_results_of_one_call_nobody_can_say_which_is_wrong():
    study = sp.Study(policy(means={"a": 1.0, "b": 2.0}))
    study.ask()
    with pytest.raises(UnusualResult) as asked:
        study.tell(["a", "a", "b"], [3.0, -999.0, 4.0])
    assert asked.value.rows == (0, 1)


def test_one_slip_casts_no_doubt_on_the_results_beside_it():
    study = sp.Study(policy(means={"a": 1.0, "b": 2.0}))
    study.ask()
    with pytest.raises(UnusualResult) as asked:
        study.tell(["a", "a", "a", "a", "b"], [3.0, 4.0, 300.0, 2.0, 1.0])
    assert asked.value.rows == (2,)


def test_totals_are_compared_by_their_means():
    study = sp.Study(policy(means={"a": 1.0, "b": 2.0}))
    study.ask()
    study.tell_totals(["a"], [40], [120.0], [400.0], worker="ann")
    with pytest.raises(UnusualResult, match="100 of 'a' stands out"):
        study.tell_totals(["a", "a"], [4, 2], [12.0, 200.0], [40.0, 20100.0], worker="ann")


def test_the_scale_nobody_knows_is_taken_from_repeats():
    study = sp.Study(policy(noise="normal", means={"a": 1.0, "b": 2.0}))
    batch = study.ask()
    rewards = np.array([3.0, 3.1, 2.9, 3.2, 2.8] * 2)
    assert batch.total == 10
    rewards[1] = 31.0
    with pytest.raises(UnusualResult) as asked:
        study.tell(batch, rewards)
    assert asked.value.rows == (1,)


@pytest.mark.parametrize("noise", ["bounded:0:1000", "bernoulli"])
def test_nobody_is_asked_about_results_within_declared_bounds(noise):
    arms = sp.Arms(ids=list(MEANS))
    study = sp.Study(sp.make_policy("certified-independent", arms, epsilon=0.3, delta=0.05, noise=noise))
    batch = study.ask()
    if batch is not None:
        study.tell(batch, [1.0, *[0.0] * (batch.total - 1)])


def test_zero_and_unlike_others_are_no_reason_to_ask():
    study = sp.Study(carried())
    batch = study.ask()
    study.tell(batch, [0.0, *[66.0] * (batch.total - 1)])
    study = sp.Study(carried())
    study.tell(study.ask(), [1.0, 20.0, 40.0, 90.0, 200.0, 900.0])


# whose results are used for it


def test_what_others_reported_in_the_open_round_is_no_part_of_the_question(study):
    study.ask()
    study.tell(["c"], [66.0], ["k1"], worker="ann")
    assert study.tell(["c"], [790.0], ["k2"], worker="bob").counted == 1
    with pytest.raises(UnusualResult, match="its other result is 790"):
        study.tell(["c"], [66.5], ["k3"], worker="bob")
    assert study.tell(["c"], [65.0], ["k4"], worker="ann").counted == 1


def test_what_nobody_signed_is_nobodys(study):
    study.ask()
    study.tell(["c"], [66.0])
    assert study.tell(["c"], [790.0]).counted == 1


def test_a_slip_that_the_next_result_reveals_can_be_taken_back(study):
    study.ask()
    study.tell(["c"], [790.0], ["k1"], worker="ann")
    with pytest.raises(UnusualResult, match=r"66 of 'c' stands out.*1 more") as asked:
        study.tell(["c"], [66.0], ["k2"], worker="ann")
    assert asked.value.rows == (0,)
    assert study.undo(["k1"], worker="ann") == ["c"]
    assert study.tell(["c"], [66.0], ["k1"], worker="ann").counted == 1
    assert study.tell(["c"], [66.5], ["k2"], worker="ann").counted == 1


def test_who_confirmed_is_not_asked_again(study):
    study.ask()
    study.tell(["c", "c"], [66.0, 790.0], ["k1", "k2"], worker="ann", accept_unusual=True)
    assert study.tell(["c"], [67.0], ["k3"], worker="ann").counted == 1


# programs


def test_a_program_is_not_asked_and_a_warning_says_so():
    rng, calls = np.random.default_rng(1), []

    def measure(ids):
        calls.append(len(ids))
        rewards = reading(rng, ids)
        if len(calls) == 1:
            rewards[0] *= 10.0
        return rewards

    arms, options = sp.Arms(ids=list(MEANS)), {"epsilon": 5.0, "noise": "subgaussian:3", "max_pulls": 60}
    with pytest.warns(UnusualWarning, match=r"of 'a' stands out: .* It counts, since a program measured it\."):
        found = sp.find_best(arms, measure, **options)
    assert any("unusual results of a program" in one for one in found.certificate.assumptions)
    calls.clear()
    with pytest.raises(UnusualResult):
        sp.find_best(arms, measure, unusual="refuse", **options)
    calls.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sp.find_best(arms, measure, unusual="accept", **options)
    with pytest.raises(sp.InvalidInput, match="unusual is 'ask'; it must be 'warn', 'accept' or 'refuse'"):
        sp.find_best(arms, measure, unusual="ask", **options)


def test_accept_is_a_word_that_is_known():
    study = sp.Study(carried())
    with pytest.raises(sp.InvalidInput, match="accept_unusual is 'yes'"):
        study.tell(study.ask(), list(MEANS.values()), accept_unusual="yes")


# taking back


def test_what_is_taken_back_is_wanted_again_under_its_key(study):
    part = study.lease(worker="ann")
    keys = dict(part.keys())
    study.tell(["a", "b"], [57.0, 99.0], [keys["a"], keys["b"]], worker="ann")
    assert study.undo([keys["b"]], worker="ann", reason="read from the wrong line") == ["b"]
    assert ("b", keys["b"]) in study.held("ann").keys()  # noqa: SIM118 (a batch is no dict)
    assert study.recorded(["a", "b"], [keys["a"], keys["b"]]) == [True, False]
    with pytest.raises(sp.InvalidInput, match=r"no result has the key .* undone already"):
        study.undo([keys["b"]], worker="ann")
    assert study.tell(["b"], [61.0], [keys["b"]], worker="ann").counted == 1
    assert study.tell(["b"], [61.0], [keys["b"]], worker="ann").repeated == 1
    assert study.undo(worker="ann") == ["b"]  # the latest
    assert study.tell(["b"], [62.0], [keys["b"]], worker="ann").counted == 1
    rest = study.held("ann")
    assert study.tell(rest, [MEANS[one] for one in rest.pulls()]).closed
    seen = study.log.last_decision().seen
    assert seen.counts.tolist() == [1] * 6
    assert seen.sums[1] == 62.0


def test_only_who_reported_may_take_back_and_only_while_the_round_is_open(study):
    study.ask()
    study.tell(["a"], [57.0], ["k"], worker="ann")
    for worker in ("bob", None):
        with pytest.raises(sp.InvalidInput, match="not reported under this name"):
            study.undo(["k"], worker=worker)
        with pytest.raises(sp.OutOfTurn, match=r"nothing that .* reported in the open round is left to undo"):
            study.undo(worker=worker)
    missing = study.missing
    ids = [one for one, number in zip(study.ids, missing.tolist(), strict=True) for _ in range(number)]
    study.tell(ids, [MEANS[one] for one in ids], worker="ann")
    for keys in (["k"], None):
        with pytest.raises(sp.OutOfTurn, match=r"(closed|open)\. .*surepick correct"):
            study.undo(keys, worker="ann")
    study.ask()
    with pytest.raises(sp.OutOfTurn, match=r"its round is closed.*surepick correct"):
        study.undo(["k"], worker="ann")


def test_a_value_that_differs_is_refused_with_the_way_to_correct_it(study):
    study.ask()
    study.tell(["a"], [57.0], ["k"], worker="ann")
    with pytest.raises(sp.InvalidInput, match=r"undo it while its round is open .surepick undo., and report the key"):
        study.tell(["a"], [58.0], ["k"], worker="ann")


def test_prior_results_need_no_undoing(study):
    study.ask()
    study.tell_prior(["a"], [57.0], ["k"])
    with pytest.raises(sp.OutOfTurn, match="kept apart and enters nothing"):
        study.undo(["k"])


@pytest.mark.parametrize("keys", ["k", 5])
def test_keys_are_a_sequence(study, keys):
    study.ask()
    with pytest.raises(sp.InvalidInput, match="keys is"):
        study.undo(keys)


def test_what_was_judged_as_it_came_stays():
    study = sp.Study(carried(), judge="as they come")
    study.ask()
    study.tell(["a", "b"], [57.0, 61.0], ["k1", "k2"], worker="ann")
    assert study.interim()
    with pytest.raises(sp.OutOfTurn, match=r"its round is closed.*surepick correct"):
        study.undo(["k1"], worker="ann")
    study.ask()
    study.tell(["c"], [67.0], ["k3"], worker="ann")
    assert study.undo(["k3"], worker="ann") == ["c"]


@first_on("postgresql")
def test_replay_export_and_certificate_know_what_was_taken_back(tmp_path, database_url):
    rng = np.random.default_rng(2)
    study = sp.create_study(database_url, "bread", carried())
    study.ask()
    study.tell(["a", "b"], [5.0, 61.0], ["k1", "k2"], worker="ann")
    study.undo(["k1"], worker="ann")
    study.tell(["a"], [57.0], ["k1"], worker="ann")
    while study.ask() is not None:
        missing = study.missing
        ids = [one for one, number in zip(study.ids, missing.tolist(), strict=True) for _ in range(number)]
        study.tell(ids, reading(rng, ids), worker="ann")
    again = sp.open_study(database_url, "bread")
    answer = again.certificate()
    assert answer == study.certificate()
    assert answer.verdict == "certified"
    assert any(one.startswith("1 result taken back by whoever reported") for one in answer.assumptions)
    found = sp.verify_certificate(sp.write_certificate(again, tmp_path / "certificate.json"))
    assert found.holds, found
    export_results(again, tmp_path / "results.csv")
    rows = [line.split(",") for line in (tmp_path / "results.csv").read_text().splitlines()]
    status, key = rows[0].index("status"), rows[0].index("key")
    assert [row[status] for row in rows if row[key] == "k1"] == ["undone", "counted"]
    assert len(rows) - 2 == answer.pulls


# repeats that contradict what is declared


@of_each("name", ["certified-independent", "lucb", "action-elimination", "sequential-halving"])
def test_repeats_farther_apart_than_the_declared_scale_take_the_theorem_away(name):
    """As `--noise normal` does: -999 is told beside 3 for one candidate."""
    rng = np.random.default_rng(3)
    means = {"a": 3.0, "b": 1.0, "c": 0.0}
    study = sp.Study(
        sp.make_policy(name, sp.Arms(ids=list(means)), epsilon=0.5, delta=0.05, noise="subgaussian:0.5")
        if name != "sequential-halving"
        else sp.make_policy(name, sp.Arms(ids=list(means)), epsilon=0.5, delta=0.05, noise="subgaussian:0.5", budget=60)
    )
    told, batch = 0, study.ask()
    while batch is not None and told < 2000:
        rewards = [means[one] + 0.3 * rng.normal() for one in batch.pulls()]
        extra = [] if told else ["a"]
        study.tell([*batch.pulls(), *extra], [*rewards, *[-999.0] * len(extra)], accept_unusual=True)
        told += batch.total
        batch = study.ask()
    answer = study.certificate()
    assert answer.verdict != "certified"
    assert answer.certified_gap is None
    assert "The data speak against the declared noise: repeats lie farther apart" in answer.reason
    assert "results of 'a'" in answer.reason
    assert "scale of 0.5 is declared" in answer.reason


def test_what_is_found_stays_found_and_is_verified(tmp_path, stored_at):
    rng = np.random.default_rng(4)
    study = sp.create_study(stored_at, "bread", carried())
    batch = study.ask()
    study.tell([*batch.pulls(), "a"], [*reading(rng, batch.pulls()), 157.0], accept_unusual=True)
    while study.ask() is not None:
        missing = study.missing
        ids = [one for one, number in zip(study.ids, missing.tolist(), strict=True) for _ in range(number)]
        study.tell(ids, reading(rng, ids))
    again = sp.open_study(stored_at, "bread")
    assert again.certificate().verdict == "heuristic"
    assert again.progress().certified_gap is None
    assert again.progress().verdict == "heuristic"
    found = sp.verify_certificate(sp.write_certificate(again, tmp_path / "certificate.json"))
    assert found.holds, found
    assert found.verdict == "heuristic"


def test_a_scale_of_all_candidates_that_is_too_small_is_found():
    rng = np.random.default_rng(5)
    study = sp.Study(policy(noise="subgaussian:0.5", means={"a": 0.0, "b": 0.0}))
    study.ask()
    study.tell(["a"] * 100 + ["b"] * 100, rng.normal(0.0, 0.8, 200), accept_unusual=True)
    assert "The data speak against the declared noise" in study.certificate().reason


def test_block_effects_and_honest_noise_raise_no_alarm():
    rng = np.random.default_rng(6)
    study = sp.Study(policy(blocks="day"))
    while (batch := study.ask()) is not None and len(study.trace) < 30:
        effect = {one: 300.0 * rng.normal() for one in dict.fromkeys(batch.blocks)}
        rewards = [
            MEANS[one] + effect[block] + 2.0 * rng.normal()
            for one, block in zip(batch.pulls(), batch.blocks, strict=True)
        ]
        study.tell(batch, rewards)
    assert "speak against" not in study.certificate().reason


@pytest.mark.parametrize(("noise", "warned"), [(None, True), ("bernoulli", False)])
def test_results_of_0_and_1_are_not_taken_for_normal_without_a_word(noise, warned):
    results = {"a": 0.0, "b": 1.0}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sp.find_best(["a", "b"], lambda ids: [results[one] for one in ids], epsilon=0.5, noise=noise, max_pulls=20)
    said = [str(one.message) for one in caught if "success or failure" in str(one.message)]
    assert bool(said) == warned
    assert all("--noise bernoulli" in one for one in said)
