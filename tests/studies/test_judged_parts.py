"""Studies that are judged as results come: `interim()` judges what is in, and what comes later counts after it."""

import numpy as np
import pytest
from databases import first_on
from judged_parts import IDS, small_policy, small_study, tell_keys
from leased_studies import Clock

import surepick as sp
from surepick.core.observations import Observations
from surepick.core.records import to_json
from surepick.errors import StorageError
from surepick.studies.deviations import AS_THEY_CAME
from surepick.studies.logs.base import AS_THEY_COME, CLOSED, Event
from surepick.studies.logs.memory import MemoryLog
from surepick.studies.registration import registration_code


def begun(study: sp.Study) -> list[tuple[str, str]]:
    """The leased pulls of the first plan, of which the first is in and judged; the others are still out."""
    keys = study.lease(worker="ann").keys()
    assert [arm for arm, _ in keys] == [*IDS]
    tell_keys(study, keys[:1])
    assert study.interim()
    return keys[1:]


def states_by_hand(study: sp.Study) -> list[str]:
    """The policy's states, as JSON, if each part is told as a batch of its own."""
    policy, state = study.policy, study.policy.init()
    states = [to_json(state)]
    for planned in list(study.log.plans())[: study.log.last_decision().plan]:
        counts, sums, squares = np.zeros(3, np.int64), np.zeros(3), np.zeros(3)
        for rows in study.log.results(planned.number):
            np.add.at(counts, rows.arms, rows.pulls)
            np.add.at(sums, rows.arms, rows.sums)
            np.add.at(squares, rows.arms, rows.squares)
        state = policy.tell(state, planned.plan, Observations(counts, sums, squares, within=np.zeros(3))).state
        states.append(to_json(state))
    return states


def test_a_part_is_judged_and_a_new_plan_follows():
    study = small_study()
    begun(study)
    assert study.trace[-1].total_pulls == 1
    assert study.ask().number == 2
    assert study.progress().judged == 1


def test_what_comes_later_counts_in_the_next_part():
    study = small_study()
    rest = begun(study)
    study.ask()
    receipt = tell_keys(study, rest)
    assert (receipt.plan, receipt.counted, receipt.late) == (2, 2, 0)
    study.interim()
    assert study.trace[-1].total_pulls == 3
    assert study.progress().set_aside == (0, 0)
    assert to_json(study.replay.state_of(study.log.last_decision())) == states_by_hand(study)[-1]


def test_what_comes_before_the_next_plan_is_made_makes_it():
    study = small_study()
    rest = begun(study)
    assert study.log.last_plan().number == 1
    assert tell_keys(study, rest).plan == 2


@pytest.mark.parametrize("how", [{"plan": 1}, {"worker": "ann"}])
def test_late_results_without_keys_count_too(how):
    study = small_study()
    begun(study)
    study.ask()
    assert study.tell(["b"], [0.3], **how).counted == 1


def test_a_batch_of_an_earlier_plan_counts_where_it_is_told():
    study = small_study()
    batch = study.ask()
    study.tell(["a"], [1.0])
    study.interim()
    assert study.tell(batch, [1.0, 0.3, 0.2]).counted == 3


def test_a_late_result_counts_once():
    study = small_study()
    rest = begun(study)
    tell_keys(study, rest)
    study.interim()
    receipt = tell_keys(study, rest)
    assert (receipt.counted, receipt.repeated) == (0, 2)
    assert study.certificate().pulls == 3


def test_a_late_result_in_full_ends_a_plan():
    study = small_study()
    rest = begun(study)
    plan = study.ask()
    wanted = [pull for pull in rest if plan.counts[IDS.index(pull[0])]]
    receipt = tell_keys(study, wanted)
    missing = study.missing if not receipt.closed else np.zeros(3)
    assert missing.sum() == max(plan.total - len(wanted), 0)


@pytest.mark.parametrize("key", ["p1.7@b", "p2.5@b"])
def test_a_key_that_was_never_given_is_refused(key):
    study = small_study()
    begun(study)
    study.ask()
    with pytest.raises(sp.InvalidInput, match="looks like one that ask gave"):
        study.tell(["b"], [0.3], keys=[key], plan=1)


def test_an_arm_that_no_plan_asked_for_is_refused():
    arms = sp.Arms(np.random.default_rng(1).uniform(-1.0, 1.0, (30, 2)))
    asked = {"epsilon": 0.4, "delta": 0.1, "noise": sp.SubGaussian(0.5), "norm_bound": 2.0, "evidence": "carried"}
    study = sp.Study(sp.make_policy("certified-linear", arms, **asked), judge=AS_THEY_COME)
    plan = study.ask()
    study.tell([plan.table()[0][0]], [1.0])
    study.interim()
    stray = int(np.flatnonzero(plan.counts + study.ask().counts == 0)[0])
    with pytest.raises(sp.InvalidInput, match="did not ask for"):
        study.tell([str(stray)], [1.0], plan=1)


def test_judging_nothing_changes_nothing():
    study = small_study()
    assert not study.interim()
    study.ask()
    assert not study.interim()
    assert study.log.last_decision().plan == 0


def test_after_the_stop_late_results_are_kept_and_never_used():
    study = small_study()
    rest = begun(study)
    while (plan := study.ask()) is not None:
        study.tell(plan, [{"a": 1.1, "b": 0.3, "c": 0.2}[name] for name in plan.pulls()])
    before = study.certificate()
    assert tell_keys(study, rest).late == 2
    assert study.certificate() == before


def test_after_an_early_end_nothing_is_judged():
    study = small_study()
    rest = begun(study)
    study.ask()
    tell_keys(study, rest)
    study.close("no money")
    assert not study.interim()
    assert study.certificate().pulls == 1


def test_the_pulls_of_a_lease_that_ran_out_still_count():
    clock = Clock()
    study = small_study(log=MemoryLog(clock))
    rest = begun(study)
    clock.advance(100)
    assert tell_keys(study, rest).counted == 2


# what is promised


def test_a_study_of_closed_rounds_judges_no_part():
    study = sp.Study(small_policy())
    study.ask()
    study.tell(["a"], [1.0])
    with pytest.raises(sp.InvalidInput, match="this study judges closed rounds"):
        study.interim()
    assert study.log.last_decision().plan == 0


@pytest.mark.parametrize("name", ["linear-embedding", "lucb"])
def test_policies_whose_proof_is_of_whole_rounds_refuse(name):
    arms = sp.Arms([[0.0], [1.0]])
    options = {"norm_bound": 2.0} if name == "linear-embedding" else {}
    policy = sp.make_policy(name, arms, epsilon=0.3, delta=0.1, noise=sp.SubGaussian(0.5), **options)
    with pytest.raises(sp.InvalidInput, match=r"judges whole rounds only; .* evidence that is carried on"):
        sp.Study(policy, judge="as they come")


def test_another_rule_is_refused():
    with pytest.raises(sp.InvalidInput, match="it must be 'closed rounds' or 'as they come'"):
        sp.Study(small_policy(), judge="when I like")


def test_the_certificate_says_it_and_nothing_of_surplus():
    study = small_study()
    tell_keys(study, begun(study))
    tell_keys(study, study.lease(worker="bob").keys())
    study.interim()
    said = study.certificate().assumptions
    assert AS_THEY_CAME in said
    assert not any("More results came" in sentence for sentence in said)
    assert AS_THEY_CAME not in sp.Study(small_policy()).certificate().assumptions


def test_the_rule_is_part_of_what_is_registered():
    policy = small_policy()
    studies = [sp.Study(policy, judge=judge, study_id="x") for judge in ("closed rounds", AS_THEY_COME)]
    usual = registration_code(policy.problem.arms, policy, study_id="x")
    assert studies[0].registration == usual
    assert studies[1].registration == registration_code(policy.problem.arms, policy, study_id="x", judge=AS_THEY_COME)
    assert studies[1].registration != usual


def test_the_codes_of_stored_studies_tell_the_rules_apart(sqlite_url):
    sp.create_study(sqlite_url, "usual", small_policy())
    study = sp.create_study(sqlite_url, "parts", small_policy(), judge="as they come")
    codes = {one.name: one.registration for one in sp.list_studies(sqlite_url)}
    assert codes["parts"] == study.registration != codes["usual"]


@first_on("sqlite")
def test_a_study_in_a_database_does_the_same(database_url):
    here, there = small_study(), sp.create_study(database_url, "parts", small_policy(), judge="as they come")
    for number in range(40):
        for study in (here, there):
            part = study.lease(max_pulls=3, worker=f"worker {number}")
            if part is None:
                break
            tell_keys(study, part.keys()[: 1 + number % 3])
            study.interim()
            if number % 4 == 3:
                tell_keys(study, part.keys())
    again = sp.open_study(database_url, "parts")
    assert again.judging == "as they come"
    assert to_json(again.certificate()) == to_json(here.certificate())


def test_a_round_that_was_closed_short_does_not_follow_in_a_study_of_closed_rounds(sqlite_url):
    study = sp.create_study(sqlite_url, "altered", small_policy())
    study.tell(["a"], [1.0])
    study.log.add_event(Event(CLOSED, 1, reason=AS_THEY_COME, at=study.log.clock()))
    _ = study.stopped
    with pytest.raises(
        StorageError, match="2 of the measurements that it asks for were neither reported nor abandoned"
    ):
        sp.open_study(sqlite_url, "altered")


def test_the_audit_replays_parts(sqlite_url):
    study = sp.create_study(sqlite_url, "parts", small_policy(), judge="as they come")
    tell_keys(study, begun(study))
    study.interim()
    assert sp.open_study(sqlite_url, "parts").certificate().pulls == 3
