"""The best of a selection, as the answer for the whole list: one call, two studies, one certificate."""

import json

import numpy as np
import pytest
from block_functions import written

import surepick as sp
from surepick.chunks.sources import rows_of
from surepick.errors import InvalidInput
from surepick.policies.subset.selection import BestOfSubset, SubsetSelection

RNG = np.random.default_rng(13)
FEATURES = RNG.standard_normal((5000, 4)).astype(np.float32)
THETA = np.array([0.7, -0.2, 0.5, 0.3])
MEANS = FEATURES.astype(np.float64) @ THETA
ASKED = {"epsilon": 0.2, "delta": 0.05, "noise": "subgaussian:0.5", "norm_bound": 1.0}


def measure(seed=1, sign=1.0):
    rng = np.random.default_rng(seed)
    return lambda ids: sign * MEANS[[int(one) for one in ids]] + 0.5 * rng.standard_normal(len(ids))


def mean_of(name):
    return MEANS[int(name)]


@pytest.fixture(scope="module")
def result():
    return sp.find_best(rows_of(FEATURES), measure(), size=50, progress=False, **ASKED)


def test_one_call_finds_it(result):
    assert result.verdict == "certified"
    assert MEANS.max() - MEANS[int(result.best_arm)] <= 0.2
    assert (result.certificate.epsilon, result.certificate.delta) == (0.2, 0.05)
    assert result.pulls == result.certificate.pulls + result.study.policy.subset.pulls


def test_the_answer_says_where_its_candidates_come_from(result):
    said = result.certificate.assumptions[0]
    assert f"{result.study.arms.num_arms} candidates that are compared were selected from 5,000" in said
    assert "probability at least 0.995" in said


def test_small_rewards_are_good_if_asked():
    found = sp.find_best(rows_of(FEATURES), measure(2, -1.0), minimize=True, size=50, progress=False, **ASKED)
    assert found.verdict == "certified"
    assert MEANS.max() - MEANS[int(found.best_arm)] <= 0.2


def test_files_and_memory_have_the_same_certificate(tmp_path, result):
    rows = written(tmp_path, FEATURES, [5000])
    rows = type(rows)(rows.sources)
    found = sp.find_best(rows, measure(), size=50, progress=False, **ASKED)
    documents = []
    for number, one in enumerate((result, found)):
        sp.write_certificate(one.study, tmp_path / f"{number}.json")
        documents.append(json.loads((tmp_path / f"{number}.json").read_text(encoding="utf-8")))
    for document in documents:
        for entry in ("made_by", "sha256", "digest", "written", "study_id", "registration"):  # ids are drawn
            document.pop(entry, None)
    assert _without_times(documents[0]) == _without_times(documents[1])


def _without_times(value):
    if isinstance(value, dict):
        return {name: _without_times(one) for name, one in value.items() if name not in ("at", "created", "times")}
    return [_without_times(one) for one in value] if isinstance(value, list) else value


def test_its_certificate_is_verified_offline(tmp_path, result):
    path = tmp_path / "c.json"
    sp.write_certificate(result.study, path)
    assert sp.verify_certificate(path).holds


def test_whoever_has_the_long_list_selects_again(tmp_path, result):
    path = tmp_path / "c.json"
    sp.write_certificate(result.study, path)
    alone = sp.verify_certificate(path)
    assert "rightly selected from 5,000: that takes the list itself" in alone.unchecked[1]
    found = sp.verify_certificate(path, long_list=rows_of(FEATURES))
    assert found.holds
    said = next(line.words for line in found.lines if line.what == "the selection")
    assert "of 5,000 candidates, the same again" in said
    assert not any("rightly selected" in one for one in found.unchecked)


@pytest.mark.parametrize("what", ["a number", "an order", "a row less"])
def test_another_long_list_is_refused(tmp_path, result, what):
    path, other = tmp_path / "c.json", FEATURES.copy()
    sp.write_certificate(result.study, path)
    if what == "a number":
        other[4321, 2] += 1e-6
    elif what == "an order":
        other[[10, 20]] = other[[20, 10]]
    else:
        other = other[:-1]
    found = sp.verify_certificate(path, long_list=rows_of(other))
    assert not found.holds
    assert "it is another list" in next(line.words for line in found.lines if line.what == "the selection")


def test_other_candidates_than_those_selected_are_refused(tmp_path, result):
    """A good candidate that somebody left out of the study: every path holds, and the selection does not."""
    first = SubsetSelection.over(FEATURES, delta=0.005, noise="subgaussian:4", norm_bound=1.0, size=2000)
    begun = sp.Study(first)
    begun.run(measure(), progress=False)
    selected, subset = first.selected(begun.state)
    ids, spec = selected.ids, subset.spec()
    out = max((one for one in ids if all(one not in told.ids for told in subset.batches)), key=mean_of)
    kept = [place for place in range(len(ids)) if ids[place] != out]
    spec["rows"] = [spec["rows"][place] for place in kept]
    spec["paths"] = [one for one in spec["paths"] if str(one["row"]) != out]
    arms = sp.Arms(selected.features[kept], [ids[place] for place in kept])
    forged = sp.make_policy("certified-linear", arms, selected=spec, **ASKED)
    study = sp.Study(forged)
    study.run(measure(4), progress=False)
    path = tmp_path / "forged.json"
    sp.write_certificate(study, path)
    assert sp.verify_certificate(path).holds
    found = sp.verify_certificate(path, long_list=rows_of(FEATURES))
    assert "the certificate has others" in next(line.words for line in found.lines if line.what == "the selection")


def test_a_long_list_beside_a_certificate_of_a_short_one(tmp_path):
    study = sp.Study(
        sp.make_policy("certified-independent", sp.Arms(ids=["a", "b"]), epsilon=0.3, delta=0.1, noise="bernoulli")
    )
    sp.write_certificate(study, tmp_path / "c.json")
    found = sp.verify_certificate(tmp_path / "c.json", long_list=rows_of(FEATURES))
    assert not found.holds


@pytest.mark.parametrize("what", ["a feature", "the root", "the total", "a sum", "delta"])
def test_a_forged_origin_is_refused(tmp_path, result, what):
    path = tmp_path / "c.json"
    sp.write_certificate(result.study, path)
    document = json.loads(path.read_text(encoding="utf-8"))
    selected = document["policy"]["selected"]
    if what == "a feature":
        document["arms"]["features"][0][0] += 1e-6
    elif what == "the root":
        selected["root"] = "0" * 64
    elif what == "the total":
        selected["total"] = 50
    elif what == "a sum":
        selected["batches"][0]["sums"][0] += 1.0
    else:
        selected["rules"]["delta"] = 0.04
    path.write_text(json.dumps(document), encoding="utf-8")
    assert not sp.verify_certificate(path).holds


def test_a_policy_is_made_again_from_its_spec(result):
    policy = result.study.policy
    again = sp.make_policy(arms=result.study.arms, **json.loads(json.dumps(policy.spec)))
    assert again == policy
    assert isinstance(again, BestOfSubset)


def test_the_study_of_the_short_list_lasts(tmp_path, result):
    """The selection is over; the rest is a study like any other, in a database."""
    selection = SubsetSelection.over(FEATURES, delta=0.005, noise="subgaussian:0.5", norm_bound=1.0, size=50)
    first = sp.Study(selection)
    first.run(measure(), progress=False)
    arms, subset = selection.selected(first.state)
    policy = sp.make_policy("certified-linear", arms, selected=subset, **ASKED)
    url = f"sqlite:///{tmp_path}/lab.db"
    sp.create_study(url, "short", policy)
    rewards = measure(9)
    while (batch := sp.open_study(url, "short").ask()) is not None:
        sp.open_study(url, "short").tell(batch, rewards(batch.pulls()))
    answer = sp.open_study(url, "short").certificate()
    assert answer.verdict == "certified"
    assert MEANS.max() - MEANS[int(answer.best_arm)] <= 0.2


def test_what_was_measured_for_the_selection_is_no_evidence(result):
    policy = result.study.policy
    state = policy.init()
    assert state.seen.total == policy.subset.pulls
    assert not state.vectors.lengths.any()
    assert policy.claim(state).pulls == 0
    assert state.round == 1


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"epsilon": 0.01}, "nothing is left"),
        ({"delta": 0.004}, "nothing is left"),
        ({"question": "top", "m": 2}, "certified-\\* policy only"),
    ],
)
def test_what_the_selection_has_left_nothing_of_is_refused(more, said):
    selection = SubsetSelection.over(
        FEATURES, delta=0.005, noise="subgaussian:0.5", norm_bound=1.0, size=50, slack=0.02
    )
    study = sp.Study(selection)
    study.run(measure(), progress=False)
    arms, subset = selection.selected(study.state)
    with pytest.raises(InvalidInput, match=said):
        sp.make_policy("certified-linear", arms, selected=subset, **{**ASKED, **more})


def test_other_policies_are_refused(result):
    with pytest.raises(InvalidInput, match="certified-\\* policy only"):
        sp.make_policy(
            "lucb",
            result.study.arms,
            epsilon=0.2,
            delta=0.05,
            noise="subgaussian:0.5",
            selected=result.study.policy.subset,
        )
    with pytest.raises(InvalidInput, match="compared by certified-linear or certified-kernel, not by lucb"):
        sp.find_best(rows_of(FEATURES), measure(), policy="lucb", **ASKED)
    with pytest.raises(InvalidInput, match="certified-independent: give norm_bound"):
        sp.find_best(rows_of(FEATURES), measure(), epsilon=0.2, noise="subgaussian:0.5")


def test_money_is_not_counted_of_rows_without_costs():
    with pytest.raises(InvalidInput, match="have no costs"):
        sp.find_best(rows_of(FEATURES), measure(), max_cost=5.0, **ASKED)


def test_a_budget_ends_the_selection():
    found = sp.find_best(rows_of(FEATURES), measure(), max_pulls=5, size=50, progress=False, **ASKED)
    assert found.verdict == "budget-exhausted"
    assert found.pulls == 0


@pytest.mark.parametrize(
    ("number", "size", "epsilon", "most"),
    [(120, 40, 0.4, 115), pytest.param(3000, 400, 0.2, 1500, marks=pytest.mark.slow)],
)
def test_the_best_of_a_function_that_a_kernel_knows(tmp_path, number, size, epsilon, most):
    """Rewards that no linear function comes near: two bumps in the square."""
    square = np.random.default_rng(21).random((number, 2))
    kernel = sp.GaussianKernel(4.0)
    bumps = np.array([[0.2, 0.7], [0.8, 0.3]])
    truth = kernel.gram(square, bumps) @ np.array([1.0, 0.7])
    norm = float(np.sqrt(np.array([1.0, 0.7]) @ kernel.gram(bumps, bumps) @ np.array([1.0, 0.7])))
    rng = np.random.default_rng(2)
    found = sp.find_best(
        rows_of(square),
        lambda ids: truth[[int(one) for one in ids]] + 0.2 * rng.standard_normal(len(ids)),
        epsilon=epsilon,
        noise="subgaussian:0.2",
        norm_bound=norm,
        gamma=4.0,
        size=size,
        progress=False,
    )
    assert found.verdict == "certified"
    assert truth.max() - truth[int(found.best_arm)] <= epsilon
    assert found.study.arms.num_arms < most
    assert "the kernel gaussian:4.0" in found.certificate.assumptions[1]
    sp.write_certificate(found.study, tmp_path / "c.json")
    assert sp.verify_certificate(tmp_path / "c.json", long_list=rows_of(square)).holds
