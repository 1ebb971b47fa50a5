"""Results that will never come, and what the answer then rests on."""

from small_studies import finish, make_study, rewards_of


def test_what_is_missing_for_reasons_of_its_own_is_an_assumption():
    study = make_study()
    plan = study.ask()
    ids, rewards = rewards_of(plan, 0)
    study.tell(ids[: plan.total // 2], rewards[: plan.total // 2])
    study.abandon("independent-of-value")
    assert study.trace[0].pulls == plan.total // 2
    answer = finish(study).certificate()
    assert answer.verdict == "certified"
    assert any("results missing" in sentence for sentence in answer.assumptions)


def test_a_complete_study_assumes_nothing_about_missing_results():
    assert not any("missing" in sentence for sentence in finish(make_study()).certificate().assumptions)


def test_what_is_missing_for_another_reason_is_heuristic():
    study = make_study()
    ids, rewards = rewards_of(study.ask(), 0)
    study.tell(ids[:2], rewards[:2])
    study.abandon("it looked good enough")
    assert study.certificate().verdict == "not-yet"
    answer = finish(study).certificate()
    assert answer.verdict == "heuristic"
    assert "'it looked good enough'" in answer.reason
    assert not any("nothing to do" in sentence for sentence in answer.assumptions)


def test_a_plan_of_which_nothing_came_is_asked_again():
    study = make_study("action-elimination")
    study.ask()
    study.abandon("independent-of-value")
    assert study.certificate().verdict == "not-yet"
    assert study.ask().total > 0
    assert finish(study).certificate().best_arm == "a"
