"""Results beyond what was asked: they count, or are refused, as whoever sets a study up says."""

import pytest
from hypothesis import given, settings, strategies as st
from servers import serving
from together import of_each

import surepick as sp
from budgets import budget
from surepick.errors import InvalidInput

IDS = ["a", "b"]


def policy():
    return sp.make_policy("certified-independent", sp.Arms(ids=IDS), epsilon=0.5, delta=0.1, noise="subgaussian:1")


def in_memory(surplus):
    return sp.Study(policy(), surplus=surplus)


@settings(deadline=None, max_examples=budget(100))
@given(more=st.integers(1, 4), told=st.integers(0, 1), rewards=st.lists(st.floats(-9, 9), min_size=5, max_size=5))
def test_no_result_beyond_what_was_asked_is_stored_whatever_it_is(more, told, rewards):
    study = in_memory("refuse")
    study.tell(study.ask(), [0.0] * study.ask().total)  # the second round asks for more of each
    study.ask()
    study.tell(["a"] * told, rewards[:told], accept_unusual=True)
    left = int(study.missing[0])
    with pytest.raises(InvalidInput, match="counts no results beyond what it asked"):
        study.tell(["a"] * (left + more), (rewards * (left + more))[: left + more])
    assert int(study.missing[0]) == left


def test_results_that_were_asked_count_to_the_last(tmp_path):
    study = in_memory("refuse")
    for _ in range(3):
        study.tell(study.ask(), [1.0] * study.ask().total)
    assert study.progress().judged == 3
    assert not any("More results came" in one for one in study.certificate().assumptions)


def test_the_same_results_again_are_no_surplus():
    study = in_memory("refuse")
    study.ask()
    study.tell(["a", "a"], [1.0, 1.0], keys=["w", "x"])
    assert study.tell(["a"], [1.0], keys=["x"]).repeated == 1
    with pytest.raises(InvalidInput, match="0 more"):
        study.tell(["a"], [2.0], keys=["y"])
    assert study.tell_prior(["a"], [2.0], keys=["y"]).prior == 1


def test_they_count_where_nothing_is_said_and_the_certificate_says_so():
    study = in_memory("count")
    study.ask()
    study.tell(["a", "a", "a", "b", "b"], [1.0, 1.0, 1.0, 0.0, 0.0])
    assert any("More results came than were asked" in one for one in study.certificate().assumptions)


@of_each("surplus", ["", "no", None, True, ["refuse"]])
def test_other_words_are_refused(surplus):
    with pytest.raises(InvalidInput, match="surplus"):
        in_memory(surplus)


def test_it_is_stored_with_the_study(stored_at):
    sp.create_study(stored_at, "strict", policy(), surplus="refuse")
    sp.create_study(stored_at, "usual", policy())
    strict, usual = (sp.open_study(stored_at, name) for name in ("strict", "usual"))
    assert (strict.surplus, usual.surplus) == ("refuse", "count")
    with pytest.raises(InvalidInput, match="beyond what it asked"):
        strict.tell(["a"] * 3, [1.0] * 3)
    assert usual.tell(["a"] * 3, [1.0] * 3).counted == 3


@pytest.mark.parametrize(("said", "found"), [(None, "refuse"), ("refuse", "refuse"), ("count", "count")])
def test_a_server_refuses_them_unless_somebody_says_otherwise(sqlite_url, said, found):
    with serving(sqlite_url) as client:
        study = sp.create_study(str(client.base_url), "new", policy(), surplus=said)
        assert study.surplus == found
        told = (["a"] * 3, [1.0] * 3, ["x", "y", "z"])
        if found == "count":
            assert study.tell(*told).counted == 3
        else:
            with pytest.raises(InvalidInput, match="beyond what it asked"):
                study.tell(*told)
    assert sp.open_study(sqlite_url, "new").surplus == found


def test_a_server_counts_them_where_results_are_judged_as_they_come(sqlite_url):
    with serving(sqlite_url) as client:
        asked = {"name": "parts", "candidates": {"ids": IDS}, "epsilon": 0.5, "noise": "subgaussian:1"}
        for more, status in (({}, 201), ({"surplus": "refuse"}, 422)):
            body = {**asked, **more, "name": f"parts{status}", "judge": "as they come"}
            assert client.post("/api/v1/studies", json=body).status_code == status
    assert sp.open_study(sqlite_url, "parts201").surplus == "count"
