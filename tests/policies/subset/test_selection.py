"""The selection from rows to a certificate: who is on the short list, what it rests on, and where it came from."""

from dataclasses import replace

import numpy as np
import pytest
from block_functions import written
from together import of_each

import surepick as sp
from surepick.chunks.passes import Meter
from surepick.chunks.sources import rows_of
from surepick.core.records import encode, from_json
from surepick.errors import InvalidInput
from surepick.policies.subset.evidence import Subset
from surepick.policies.subset.selection import SubsetSelection, SubsetState

RNG = np.random.default_rng(12)
FEATURES = RNG.standard_normal((4000, 5)).astype(np.float32)
THETA = np.array([0.6, -0.3, 0.5, 0.2, 0.4])
MEANS = FEATURES.astype(np.float64) @ THETA
SETTINGS = {"delta": 0.01, "noise": "subgaussian:0.5", "norm_bound": 1.0, "size": 100}


def measured(seed=1):
    rng = np.random.default_rng(seed)
    return lambda ids: MEANS[[int(one) for one in ids]] + 0.5 * rng.standard_normal(len(ids))


@pytest.fixture(scope="module")
def selection():
    return SubsetSelection.over(FEATURES, **SETTINGS)


@pytest.fixture(scope="module")
def ended(selection):
    study = sp.Study(selection)
    study.run(measured(), progress=False)
    return study


def test_the_best_one_is_on_the_short_list(selection, ended):
    short = selection.subset(ended.state)
    assert int(np.argmax(MEANS)) in short
    assert len(short) <= 100 + len(ended.state.candidates)
    assert set(ended.state.candidates) <= set(short.tolist())


def test_what_it_says_promises_nothing_of_the_arms_that_were_measured(selection, ended):
    answer = ended.certificate()
    assert answer.verdict == "heuristic"
    assert f"{len(selection.subset(ended.state))} of 4,000 candidates on the short list" in answer.reason
    assert "probability at least 0.99" in answer.reason


def test_a_state_is_stored_and_goes_on(selection, ended):
    state = ended.state
    again = from_json(SubsetState, _text(state))
    assert again == state
    study, rng = sp.Study(selection), measured(5)
    batch = study.ask()
    study.tell(batch, rng(batch.pulls()))
    first = study.state
    fresh = replace(selection)  # another process: nothing is held
    plan = selection.ask(first)
    sums = plan.counts * MEANS[selection.design.rows]
    seen = sp.Observations(plan.counts, sums)
    assert fresh.tell(from_json(SubsetState, _text(first)), plan, seen).state == selection.tell(first, plan, seen).state


def _text(state):
    import json

    return json.dumps(encode(state, sparse=True))


def test_files_of_any_partition_give_the_same_selection(tmp_path, selection):
    rows = written(tmp_path, FEATURES, [1500, 2500])
    other = SubsetSelection.over(replace(rows, block_entries=4_000_000), **SETTINGS)
    assert np.array_equal(other.design.rows, selection.design.rows)
    assert np.allclose(other.design.weights, selection.design.weights)


def test_many_passes_are_noted(tmp_path):
    meter = Meter()
    policy = SubsetSelection.over(FEATURES, meter=meter, **SETTINGS)
    sp.Study(policy).run(measured(), progress=False)
    names = [one.name for one in meter.passes]
    assert names[0] == "first look"
    assert set(names) == {"first look", "design", "rivals"}
    assert len(names) <= 8
    assert meter.num_bytes == len(names) * FEATURES.nbytes


def test_a_list_that_is_short_already_takes_no_measurement():
    policy = SubsetSelection.over(FEATURES[:90], **SETTINGS)
    study = sp.Study(policy)
    assert study.ask() is None
    assert np.array_equal(policy.subset(study.state), np.arange(90))


def test_a_list_that_is_not_short_yet_is_not_given_out(selection):
    with pytest.raises(InvalidInput, match=r"not short yet: 4,000 candidates are left"):
        selection.subset(selection.init())


def test_equal_candidates_are_all_kept_unless_slack_is_granted():
    twins = np.concatenate([FEATURES[:300], np.tile(FEATURES[int(np.argmax(MEANS))], (200, 1))])
    truth = twins.astype(np.float64) @ THETA
    rng = np.random.default_rng(3)
    found = {}
    for slack in (0.0, 0.05):
        policy = SubsetSelection.over(twins, **{**SETTINGS, "slack": slack})
        study = sp.Study(policy)
        study.run(lambda ids: truth[[int(one) for one in ids]] + 0.5 * rng.standard_normal(len(ids)), max_pulls=3000)
        found[slack] = study.state.left
    assert found[0.0] >= 200
    assert found[0.05] <= 100


@of_each(
    ("more", "said"),
    [
        ({"noise": "normal"}, "noise of a declared scale"),
        ({"noise": sp.PilotGaussian(0.5, 0.001, 20)}, "noise of a declared scale"),
        ({"norm_bound": 0.0}, "norm_bound"),
        ({"size": 0}, "size"),
        ({"slack": -1.0}, "slack is -1"),
        ({"delta": 1.0}, "delta"),
        ({"max_rank": 9, "executor": "nobody"}, "executor"),
        ({"kernel": "gaussian:1.0"}, "needs epsilon"),
        ({"kernel": np.dot, "epsilon": 0.1}, "a kernel with a name"),
    ],
)
def test_settings_without_meaning_are_refused(more, said):
    with pytest.raises(InvalidInput, match=said):
        SubsetSelection.over(FEATURES, **{**SETTINGS, **more})


def test_few_directions_leave_a_bias_that_is_declared():
    policy = SubsetSelection.over(FEATURES, max_rank=3, **SETTINGS)
    assert policy.where.rank == 3
    assert policy.rule.misspecification == policy.where.left > 0.1
    assert policy.ask(policy.init()).misspecification == policy.rule.misspecification


def test_where_candidates_come_from(selection, ended):
    arms, subset = selection.selected(ended.state)
    assert subset.total == 4000
    assert subset.pulls == ended.state.pulls
    assert arms.ids == tuple(map(str, subset.rows))
    assert np.array_equal(arms.features, FEATURES[list(subset.rows)].astype(np.float64))
    assert set(selection.design.rows.tolist()) <= set(subset.rows)
    assert Subset.of(subset.spec()) == subset
    subset.check(arms)


def test_candidates_that_are_not_on_the_list_are_refused(selection, ended):
    arms, subset = selection.selected(ended.state)
    features = np.array(arms.features)
    features[3, 0] += 1e-9
    with pytest.raises(InvalidInput, match="has other features than its candidate"):
        subset.check(sp.Arms(features, arms.ids))
    with pytest.raises(InvalidInput, match="rows of the long list are named for"):
        subset.check(sp.Arms(arms.features[1:], arms.ids[1:]))


@pytest.mark.parametrize("what", ["root", "batches", "total", "rules", "rows"])
def test_data_of_a_selection_that_was_damaged_is_refused(selection, ended, what):
    _, subset = selection.selected(ended.state)
    spec = subset.spec()
    spec[what] = {"total": 4001, "batches": [{}], "rules": {"delta": 0.1}, "rows": "x", "root": None}[what]
    with pytest.raises(InvalidInput):
        Subset.of(spec).check(selection.selected(ended.state)[0])


def test_rows_that_are_there_already_stay(selection):
    assert rows_of(selection.passes.rows) is selection.passes.rows
