"""What closed rounds say of each candidate: the numbers are those of the results and of the certificate."""

import math

import numpy as np
import pytest

import surepick as sp
from surepick.certificates.document import certificate_document

MEANS = {f"c{number}": mean for number, mean in enumerate([5.0, 4.4, 4.0, 2.0, 1.0, 0.5])}


def drawn(seed=0, scale=1.0, means=MEANS):
    random = np.random.default_rng(seed)
    return lambda ids: [random.normal(means[name], scale) for name in ids]


def results_of(study):
    """id -> its results, as they were told."""
    told = {name: [] for name in study.ids}

    def keep(ids, rewards):
        for name, reward in zip(ids, rewards, strict=True):
            told[name].append(reward)

    return told, keep


def run(
    policy="certified-independent",
    noise="subgaussian:1",
    minimize=False,
    measure=None,
    means=MEANS,
    epsilon=1.0,
    **options,
):
    """(a study that ran to its end, id -> its results)."""
    study = sp.Study(
        sp.make_policy(policy, sp.Arms(ids=list(means)), epsilon=epsilon, delta=0.1, noise=noise, **options),
        minimize=minimize,
    )
    told, keep = results_of(study)
    measure = drawn(means=means) if measure is None else measure
    while (batch := study.ask()) is not None:
        rewards = measure(batch.pulls())
        keep(batch.pulls(), rewards)
        study.tell(batch, rewards)
    return study, told


def policy_of(*ids):
    return sp.make_policy("certified-independent", sp.Arms(ids=ids), epsilon=1, delta=0.1, noise="subgaussian:1")


def test_a_mean_and_its_error_are_those_of_the_results():
    study, told = run()
    for row in study.candidates().rows:
        assert row.times == len(told[row.id])
        assert row.mean == pytest.approx(np.mean(told[row.id]))
        assert row.error == pytest.approx(1.0 / math.sqrt(row.times))
        assert (row.low, row.high) == pytest.approx((row.mean - 2 * row.error, row.mean + 2 * row.error))


def test_where_nobody_knows_the_scale_the_error_is_that_of_the_repeats():
    study, told = run(noise="normal")
    for row in study.candidates().rows:
        if row.times == 1:
            assert row.error is None
            assert row.low is None
        else:
            assert row.error == pytest.approx(np.std(told[row.id], ddof=1) / math.sqrt(row.times))


def test_yes_or_no_has_the_interval_of_wilson():
    means = {"a": 0.9, "b": 0.4, "c": 0.0}
    random = np.random.default_rng(0)
    study, told = run(
        noise="bernoulli",
        epsilon=0.3,
        means=means,
        measure=lambda ids: [float(random.random() < means[name]) for name in ids],
    )
    for row in study.candidates().rows:
        n, p = len(told[row.id]), float(np.mean(told[row.id]))
        for end in (row.low, row.high):  # those p0 from which p is exactly two standard errors of p0 away
            assert (p - end) ** 2 == pytest.approx(4.0 * end * (1.0 - end) / n, abs=1e-12)
        assert 0.0 <= row.low <= p <= row.high <= 1.0


@pytest.mark.parametrize("policy", ["certified-independent", "action-elimination"])
def test_the_bounds_are_those_of_the_certificate(policy):
    options = {"evidence": "carried"} if policy == "certified-independent" else {}
    study, _ = run(policy, **options)
    document = certificate_document(study)
    found = {row.id: row.better_at_most for row in study.candidates().rows}
    best = study.ids.index(document["best_arm"])
    intervals = document["intervals"]
    checked = 0
    for arm, name in enumerate(study.ids):
        lead, width = intervals["leads"][arm], intervals["widths"][arm]
        if found[name] is not None:
            assert intervals["witnesses"][arm] == best
            assert found[name] == pytest.approx(width - lead)
            checked += 1
    assert checked >= 1


def test_nobody_is_better_by_more_than_the_gap():
    study, _ = run(evidence="carried")
    found = study.candidates()
    possible = [row.better_at_most for row in found.rows if row.state == "possible"]
    assert found.verdict == "certified"
    assert found.gap == study.certificate().certified_gap
    assert max([0.0, *possible]) == pytest.approx(found.gap)
    assert all(
        row.better_at_most < 0 for row in found.rows if row.state == "ruled out" and row.better_at_most is not None
    )


def test_small_rewards_can_be_good():
    large, _ = run()
    random = drawn()
    small, _ = run(minimize=True, measure=lambda ids: [-reward for reward in random(ids)])
    pairs = list(zip(large.candidates().rows, small.candidates().rows, strict=True))
    assert [one.state for one, _ in pairs] == [other.state for _, other in pairs]
    for one, other in pairs:
        assert (other.mean, other.low, other.high) == pytest.approx((-one.mean, -one.high, -one.low))
        assert other.better_at_most == (None if one.better_at_most is None else pytest.approx(one.better_at_most))
    assert [row.id for row in large.candidates().by_mean] == [row.id for row in small.candidates().by_mean]


def test_nothing_of_an_open_round_is_in_it():
    study, _ = run()
    policy = study.policy
    one, other = sp.Study(policy, study_id="one"), sp.Study(policy, study_id="one")
    for each in (one, other):
        each.tell(each.ask(), [0.0 for _ in each.ask().pulls()])
    before = one.candidates()
    assert before.rows[0].times > 0
    for each, rewards in ((one, 10.0), (other, -10.0)):
        each.tell(each.ask().pulls()[:1], [rewards], accept_unusual=True)
    assert one.candidates() == other.candidates() == before


def test_before_the_first_round_nothing_is_known():
    study = sp.Study(
        sp.make_policy(
            "certified-independent", sp.Arms(ids=["a", "b", "c"]), epsilon=1, delta=0.1, noise="subgaussian:1"
        )
    )
    found = study.candidates()
    assert {row.state for row in found.rows} == {"possible"}
    assert {row.mean for row in found.rows} == {None}
    assert found.recommended is None
    assert found.gap is None
    assert found.trace.rounds == ()


def test_with_features_a_candidate_that_was_never_measured_has_an_estimate():
    line = np.linspace(0.0, 1.0, 30)
    arms = sp.Arms(np.column_stack([line, np.ones(30)]), [f"x{at}" for at in range(30)])
    policy = sp.make_policy("certified-linear", arms, epsilon=0.5, delta=0.1, noise="subgaussian:0.3", norm_bound=6)
    random = np.random.default_rng(0)
    study = sp.Study(policy)
    while (batch := study.ask()) is not None:
        study.tell(batch, [4.0 * line[int(name[1:])] + random.normal(0, 0.3) for name in batch.pulls()])
    found = study.candidates()
    assert found.estimated
    never = [row for row in found.rows if row.times == 0]
    assert never
    for row in never:
        assert abs(row.mean - 4.0 * line[int(row.id[1:])]) < 5.0 * row.error
    ends = [row.error for row in found.rows]
    assert min(ends[10:20]) < max(ends[0], ends[-1])  # a line is known best in the middle


def test_a_stored_study_says_the_same_as_one_in_memory(tmp_path):
    address = f"sqlite:///{tmp_path / 'lab.db'}"
    options = {"epsilon": 1.0, "delta": 0.1, "noise": "subgaussian:1", "policy": "certified-independent"}
    stored = sp.create_study(address, "one", sp.Arms(ids=list(MEANS)), **options)
    here = sp.Study(stored.policy, study_id=stored.study_id)
    for study in (stored, here):
        study.run(drawn())
    assert sp.open_study(address, "one").candidates() == stored.candidates() == here.candidates()


def test_lists_have_their_own_words_and_lines():
    study, _ = run(question="above", threshold=3.0)
    found = study.candidates()
    assert found.listed
    assert found.recommended is None
    assert [row.id for row in found.rows if row.state == "recommended"] == ["c0", "c1", "c2"]
    assert 3.0 in {line for line, _ in found.lines}
    assert found.called["possible"] == "undecided"
    assert {row.better_at_most for row in found.rows} == {None}


def test_a_withdrawn_candidate_is_not_ruled_out():
    study = sp.Study(
        sp.make_policy("certified-independent", sp.Arms(ids=list(MEANS)), epsilon=1, delta=0.1, noise="subgaussian:1")
    )
    study.tell(study.ask(), drawn()(study.ask().pulls()))
    study.withdraw(["c3"], "independent-of-value")
    study.ask()
    study.run(drawn(1))
    found = study.candidates()
    assert {row.id: row.state for row in found.rows}["c3"] == "withdrawn"
    assert not found.whole


def test_a_table_of_columns_is_an_arrow_stream():
    pyarrow = pytest.importorskip("pyarrow")
    study, _ = run()
    found = study.candidates()
    table = pyarrow.table(found.to_frame())
    assert table.column_names == ["candidate", "mean", "error", "low", "high", "times", "better_at_most", "state"]
    assert table["candidate"].to_pylist() == list(study.ids)
    assert pyarrow.RecordBatchReader.from_stream(found.to_frame()).read_all().equals(table)
    trace = pyarrow.table(found.trace.to_frame())
    assert trace["measurements"].to_pylist() == [row.total_pulls for row in study.trace]
