"""Where candidates stand: the averages of answers by lists beside what the question compares them with."""

import json

import numpy as np
import pytest
from report_pages import Page
from together import of_each

import surepick as sp
from surepick.reports.study.facts import facts_of
from surepick.reports.study.lists import standings
from surepick.reports.study.page import report_document

MEANS = {"a": 1.0, "b": 2.0, "c": 3.0, "d": 3.4}
HEAT = {"a": -2.0, "b": 1.0, "c": -1.0, "d": 2.0}
QUESTIONS = {
    "threshold": {"question": "above", "threshold": 2.5, "by": 0.25},
    "control": {"question": "above", "control": "b"},
    "top": {"question": "top", "m": 2},
    "all-good": {"question": "all-good", "slack": 1.0},
    "constraint": {"constraints": ["heat<=0,tolerance=0.5,noise=subgaussian:0.3"]},
}


def finished(asked, *, minimize=False):
    """(the study, its rows as (id, reward, heat))."""
    asked = {**asked, "epsilon": 0.5, "delta": 0.1, "noise": "subgaussian:0.5"}
    study = sp.Study(sp.make_policy("certified-independent", sp.Arms(ids=[*MEANS]), **asked), minimize=minimize)
    rng, rows = np.random.default_rng(1), []
    while (plan := study.ask()) is not None:
        came = [(one, MEANS[one] + rng.normal(0, 0.5), HEAT[one] + rng.normal(0, 0.3)) for one in plan.pulls()]
        study.tell(plan, [row[1:] if "constraints" in asked else row[1] for row in came])
        rows += came
    return study, rows


def panels(study):
    return standings(facts_of(json.loads(json.dumps(report_document(study)))))


def column(rows, name, place):
    return np.array([row[place] for row in rows if row[0] == name])


@of_each("name", QUESTIONS)
def test_points_are_averages_with_their_standard_errors(name):
    study, rows = finished(QUESTIONS[name])
    found = panels(study)
    assert [panel.name for panel in found] == (["", "heat"] if name == "constraint" else [""])
    for place, panel in enumerate(found, 1):
        assert panel.known == 4
        averages = [point.average for point in panel.points]
        assert averages == sorted(averages, reverse=True)
        for point in panel.points:
            own = column(rows, "abcd"[point.candidate], place)
            assert point.pulls == len(own)
            assert point.average == pytest.approx(own.mean())
            assert point.error == pytest.approx(own.std(ddof=1) / np.sqrt(len(own)), rel=1e-6)
            assert panel.across.low <= point.average <= panel.across.high


def test_lines_are_what_the_question_compares_with():
    def lines(name, place=0):
        study, rows = finished(QUESTIONS[name])
        return panels(study)[place].lines, {one: column(rows, one, 1).mean() for one in MEANS}

    assert lines("threshold")[0] == ((2.75, "what is wanted"),)
    (found, means) = lines("control")
    assert found == ((pytest.approx(means["b"]), "the control"),)
    (found, means) = lines("top")
    assert found == ((pytest.approx((means["b"] + means["c"]) / 2), "below place 2"),)
    (found, means) = lines("all-good")
    best = max(means.values())
    assert found == ((pytest.approx(best - 1.5), "1.5 from the best"), (pytest.approx(best - 0.5), "0.5 from the best"))
    assert lines("constraint")[0] == ()
    assert lines("constraint", 1)[0] == ((0.0, "at most 0"), (0.5, "with the tolerance"))


def test_where_small_rewards_are_good_lines_are_on_their_side():
    study, rows = finished(QUESTIONS["all-good"], minimize=True)
    best = min(column(rows, one, 1).mean() for one in MEANS)
    assert [value for value, _ in panels(study)[0].lines] == [pytest.approx(best + 0.5), pytest.approx(best + 1.5)]


def test_the_page_shows_a_panel_for_each_quantity_and_none_without_lists(tmp_path):
    study, _ = finished(QUESTIONS["constraint"])
    page = Page(sp.write_report(study, tmp_path / "soup.html", forecast_up_to=0).read_text())
    assert "Where the candidates stand" in page.words
    assert "The average heat of each candidate" in page.words
    assert "with the tolerance (0.5)" in page.words
    usual, _ = finished({})
    assert panels(usual) == ()
    page = Page(sp.write_report(usual, tmp_path / "usual.html", forecast_up_to=0).read_text())
    assert "Where the candidates stand" not in page.words


def test_before_the_first_result_there_is_no_picture():
    study = sp.Study(
        sp.make_policy("certified-independent", sp.Arms(ids=[*MEANS]), epsilon=0.5, delta=0.1, noise="bernoulli",
                       question="top", m=2)
    )  # fmt: skip
    assert panels(study) == ()
