"""What a study shows: rounds, active arms and the recommendation."""

from itertools import pairwise

import numpy as np
from small_studies import IDS, finish, make_study


def test_the_trace_has_one_record_a_round():
    study = make_study()
    while (plan := study.ask()) is not None:
        study.tell_totals(study.ids, plan.counts, np.zeros(4))  # all alike: only the certificate ends it
    trace = study.trace
    assert [row.round for row in trace] == list(range(1, len(trace) + 1))
    assert len(trace) > 1
    assert any(row.look > 1 for row in trace)
    totals = [row.total_pulls for row in trace]
    assert totals == np.cumsum([row.pulls for row in trace]).tolist()
    assert totals[-1] == study.certificate().pulls
    assert study.certificate().rounds == trace


def test_the_trace_holds_the_active_arms():
    study = finish(make_study("action-elimination", epsilon=0.05))
    actives = [set(row.active.tolist()) for row in study.trace]
    assert actives[0] == {0, 1, 2, 3}
    assert all(after <= before for before, after in pairwise(actives))
    assert actives[-1] < actives[0]
    assert all(row.leader in row.active for row in study.trace)


def test_before_any_pull_nothing_is_claimed(name):
    study = make_study(name)
    answer = study.certificate()
    assert (answer.verdict, answer.pulls, answer.certified_gap, answer.rounds) == ("not-yet", 0, None, ())
    assert answer.best_arm in IDS
    assert not study.stopped
    assert study.trace == ()
    assert study.recommend() == answer.best_arm


def test_the_recommendation_is_the_certificates(name):
    study = finish(make_study(name))
    answer = study.certificate()
    assert study.recommend() == answer.best_arm == IDS[answer.arm] == "a"
    assert answer.verdict == "certified"
    assert answer.certified_gap <= 0.3
