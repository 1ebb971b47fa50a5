"""A generator of gest-api: points are pulls of a study, an id counts once, and a killed program goes on."""

import copy
import math

import numpy as np
import pytest
from killed import Calls, killed

import surepick as sp

gest_api = pytest.importorskip("gest_api", reason='pip install "surepick[gest-api]"')

from gest_api.generator import Generator  # noqa: E402
from gest_api.vocs import VOCS  # noqa: E402

from surepick.integrations.gest import CertifiedGenerator  # noqa: E402

ASKED = {"epsilon": 0.2, "noise": "subgaussian:0.1"}
GRID = {"a": {1, 2, 3}, "b": {"left", "right"}}


def vocs(goal: str = "MAXIMIZE", **more) -> VOCS:
    return VOCS(variables=more.pop("variables", GRID), objectives={"f": goal}, **more)


def mean(point) -> float:
    return 1.0 - (point["a"] - 2) ** 2 - 0.5 * (point["b"] == "left")


def measured(points, rng, sign: float = 1.0):
    return [{**point, "f": sign * (mean(point) + rng.normal(0.0, 0.1))} for point in points]


def run(generator, rng, number=None, sign: float = 1.0):
    while not generator.finished:
        generator.ingest(measured(generator.suggest(number), rng, sign))
    return generator.best_point()


@pytest.mark.parametrize(("goal", "sign", "number"), [("MAXIMIZE", 1.0, None), ("MINIMIZE", -1.0, 3)])
def test_the_best_point_is_certified(tmp_path, goal, sign, number):
    generator = CertifiedGenerator(vocs(goal), **ASKED)
    assert isinstance(generator, Generator)
    assert run(generator, np.random.default_rng(0), number, sign) == {"a": 2, "b": "right"}
    assert generator.certificate().verdict == "certified"
    generator.finalize()
    sp.write_certificate(generator.study, tmp_path / "certificate.json")
    assert sp.verify_certificate(tmp_path / "certificate.json").holds


def test_points_have_what_the_standard_asks_for():
    generator = CertifiedGenerator(vocs(constants={"c": 7}), **ASKED)
    points = generator.suggest(5)
    assert generator.returns_id
    assert len(points) == len({point["_id"] for point in points}) == 5
    assert all(set(point) == {"a", "b", "c", "_id"} for point in points)
    assert all(point["c"] == 7 for point in points)


def test_more_points_than_the_round_asks_for_are_more_measurements_of_it():
    generator = CertifiedGenerator(vocs(), **ASKED)
    first = generator.suggest()
    assert len(generator.suggest(3)) == 3
    assert generator.suggest() == []  # all of the round is out
    generator.ingest(measured(first, np.random.default_rng(0)))
    assert generator.study.progress().judged == 1


def test_late_results_beyond_a_round_do_not_count():
    generator, rng = CertifiedGenerator(vocs(), **ASKED), np.random.default_rng(0)
    first, more = generator.suggest(), generator.suggest(2)
    generator.ingest(measured(first, rng))
    pulls = generator.study.progress().pulls
    generator.ingest(measured(more, rng))
    assert generator.study.progress().pulls == pulls


def test_an_id_counts_once():
    generator, rng = CertifiedGenerator(vocs(), **ASKED), np.random.default_rng(0)
    points = measured(generator.suggest(2), rng)
    generator.ingest(points)
    generator.ingest(points)
    assert generator.study.progress().told == 2


def test_points_of_others_count_for_the_open_round():
    generator = CertifiedGenerator(vocs(), **ASKED)
    generator.ingest([{"a": 2, "b": "left", "f": 0.5}])
    assert generator.study.progress().told == 0  # nothing was asked for yet
    generator.suggest(1)
    generator.ingest([{"a": 2, "b": "left", "f": 0.5}])
    assert generator.study.progress().told == 1


def test_what_it_does_not_know_is_refused():
    generator = CertifiedGenerator(vocs(), **ASKED)
    with pytest.raises(ValueError, match="was not suggested with _id 'mine'"):
        generator.ingest([{"a": 2, "b": "left", "f": 0.5, "_id": "mine"}])
    with pytest.raises(ValueError, match="is no candidate"):
        generator.ingest([{"a": 9, "b": "left", "f": 0.5}])


def test_a_point_that_failed_is_suggested_again():
    generator = CertifiedGenerator(vocs(), **ASKED)
    point, *others = generator.suggest()
    generator.ingest([{**point, "f": math.nan}, *measured(others, np.random.default_rng(0))])
    (again,) = generator.suggest()
    assert {name: again[name] for name in "ab"} == {name: point[name] for name in "ab"}
    assert again["_id"] != point["_id"]


def test_a_finished_one_suggests_nothing():
    generator = CertifiedGenerator(vocs(), **ASKED)
    run(generator, np.random.default_rng(0))
    assert generator.suggest() == []
    with pytest.raises(ValueError, match="the study has stopped"):
        generator.suggest(1)


def test_a_finished_one_may_repeat_the_point_that_is_named():
    generator = CertifiedGenerator(vocs(), when_finished="repeat", **ASKED)
    run(generator, np.random.default_rng(0))
    pulls = generator.study.progress().pulls
    points = generator.suggest(3)
    assert [(point["a"], point["b"]) for point in points] == [(2, "right")] * 3
    generator.ingest(measured(points, np.random.default_rng(1)))
    assert generator.study.progress().pulls == pulls


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"constraints": {"c": ["LESS_THAN", 1]}}, "constraint 'c'"),
        ({"variables": {"a": [0.0, 1.0]}}, "ContinuousVariable"),
        ({"variables": {name: set(range(400)) for name in "abc"}}, "more than 100,000 combinations"),
    ],
)
def test_what_it_cannot_do_is_refused(changed, said):
    with pytest.raises(ValueError, match=said):
        CertifiedGenerator(vocs(**changed), **ASKED)


def test_candidates_are_given_or_refused():
    continuous = vocs(variables={"a": [0.0, 4.0], "b": {"left", "right"}})
    generator = CertifiedGenerator(continuous, [{"a": 1.5, "b": "left"}, {"a": 2.0, "b": "right"}], **ASKED)
    assert run(generator, np.random.default_rng(0)) == {"a": 2.0, "b": "right"}
    for wrong in ({"a": 5.0, "b": "left"}, {"a": 1.0, "b": "up"}, {"a": 1.0}):
        with pytest.raises(ValueError, match="the candidate"):
            CertifiedGenerator(continuous, [wrong], **ASKED)
    with pytest.raises(ValueError, match="2 objectives"):
        CertifiedGenerator(VOCS(variables=GRID, objectives={"f": "MINIMIZE", "g": "MINIMIZE"}), **ASKED)
    with pytest.raises(ValueError, match="no test items and no blocks"):
        CertifiedGenerator(vocs(), epsilon=0.1, blocks="day")


def test_numbers_are_features():
    generator = CertifiedGenerator(vocs(variables={"a": {1, 2, 3}, "b": {0, 1}}), assume="linear", **ASKED)
    assert generator.study.arms.features.shape == (6, 2)


def test_a_copy_is_the_same_study():
    generator = CertifiedGenerator(vocs(), **ASKED)
    assert copy.deepcopy(generator).study is generator.study


def kept(url, calls):
    generator, rng = CertifiedGenerator(vocs(), url=url, **ASKED), np.random.default_rng(0)
    while not generator.finished:
        for point in generator.suggest(4):
            calls.note(generator._pulls[point["_id"]].key)
            generator.ingest(measured([point], rng))
    return generator


def test_a_killed_one_goes_on(tmp_path, sqlite_url):
    calls = Calls(tmp_path / "calls", deadly=6)
    killed(kept, sqlite_url, calls)
    calls.deadly = None
    generator = kept(sqlite_url, calls)
    assert generator.best_point() == {"a": 2, "b": "right"}
    told = [key for number, key in enumerate(calls.lines, start=1) if number != 6]
    assert len(set(told)) == len(told)  # only the one that was killed was asked in vain
    assert kept(sqlite_url, calls).certificate().verdict == "certified"
    sp.write_certificate(generator.study, tmp_path / "certificate.json")
    assert sp.verify_certificate(tmp_path / "certificate.json").holds


def test_results_of_the_points_of_before_still_count(sqlite_url):
    before = CertifiedGenerator(vocs(), url=sqlite_url, **ASKED).suggest(2)
    generator = CertifiedGenerator(vocs(), url=sqlite_url, **ASKED)
    with pytest.raises(ValueError, match="leave _id out"):
        generator.ingest(measured(before, np.random.default_rng(0)))
    generator.suggest(1)
    generator.ingest([{**point, "_id": None} for point in measured(before, np.random.default_rng(0))])
    assert generator.study.progress().told == 2
