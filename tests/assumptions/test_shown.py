"""Readings as people see them: each row is one joint point, and numbers are rounded so that it holds."""

from dataclasses import replace

import numpy as np
import pytest

import surepick as sp
from surepick.assumptions import Linear, Near, NoStructure, Reading, shown
from surepick.assumptions.likely_norm import noise_scale
from surepick.assumptions.shown import Bar, bars_of, html_of, row_of
from surepick.core.observations import Observations
from surepick.studies.readings import shown_readings, standing_so_far
from surepick_server.pages.drawings import drawn

READ = Reading(
    assumption=Near(Linear(1.7), 3.0),
    candidate="a",
    epsilon=3.0,
    delta=0.05,
    gap=2.8626,
    beaten=(),
    refuted=False,
    norm=1.7,
    suggested_norm=1.08,
    largest_norm=5.0,
    largest_misspecification=3.0489,
    largest_scatter=4.0689,
    declared_scatter=4.0,
    suggested_scatter=2.4,
)


@pytest.fixture(scope="module")
def study():
    rng = np.random.default_rng(3)
    features = rng.uniform(-1, 1, (20, 2))
    means = features @ np.array([3.0, -1.0])
    arms = sp.Arms(features, ids=[f"c{arm}" for arm in range(20)])
    policy = sp.make_policy("certified-linear", arms, epsilon=1.0, delta=0.05, noise="subgaussian:0.5", norm_bound=6)
    named = dict(zip(arms.ids, means, strict=True))
    return sp.find_best(
        arms, lambda ids: [named[one] + 0.5 * rng.normal() for one in ids], policy=policy, progress=False
    )


def test_a_row_is_a_joint_point():
    assert row_of(READ) == ("linear", "1.7", "1.08", "3.04", "4", "within 3")
    beyond = replace(READ, gap=243.13, largest_misspecification=None)
    assert row_of(beyond) == ("linear", "1.7", "1.08", "3", "4", "within 244, not 3")
    bare = replace(READ, assumption=NoStructure(), gap=None, norm=None, suggested_norm=None)
    assert row_of(replace(bare, largest_misspecification=None)) == ("nothing", "-", "-", "-", "4", "not known")
    assert row_of(replace(READ, refuted=True))[-1] == "no candidate: refuted"


def test_all_numbers_of_a_row_hold_together(study):
    found = study.read("linear:norm=6,level=no")
    kind, norm, _, off, noise, _ = row_of(found)
    together = f"{kind},norm={norm} + off by {{}} and scatter<={noise}"
    assert study.read(together.format(off)).stands
    assert not study.read(together.format(1.02 * float(off))).stands
    assert found.survives == str(replace(found, assumption=Near(found.assumption, float(off)), gap=1.0))


def test_bars_say_up_to_where_the_answer_holds():
    off, noise = bars_of(READ)
    assert (off.holds, off.declared, off.repeats, off.attention) == (3.04, 3.0, None, False)
    assert (noise.holds, noise.declared, noise.repeats, noise.attention) == (4.06, 4.0, 2.4, False)
    assert 0.0 < noise.place(2.4) < noise.place(4.0) < noise.place(4.06) < 1.0
    assert str(noise).endswith(" to 4.06; declared 4, repeats 2.4")
    assert {len(str(one)) for one in (off, noise)} == {shown.COLUMNS}
    assert Bar("noise", 4.06, 4.0, 4.5).attention
    assert bars_of(replace(READ, gap=5.0)) == ()


def test_notebook_and_report_show_what_the_study_reads(study):
    readings = shown_readings(study.study)
    assert (readings[0].kind, readings[-1].kind) == ("linear:level=no", "nothing")
    page = study._repr_html_()
    assert html_of(readings) in page
    answer = drawn(study.study, "results")["readings"]
    for one in (*row_of(readings[0]), readings[0].survives):
        assert one in page
        assert one in answer
    for bar in bars_of(readings[0]):
        assert f"holds up to {bar.holds:.3g}" in answer


def test_answers_without_features_are_read_under_nothing():
    found = sp.find_best(["a", "b"], lambda ids: [float(one == "a") for one in ids], epsilon=0.5, noise="bernoulli")
    assert shown_readings(found.study) == ()
    assert "the means are" not in found._repr_html_()


def test_a_study_that_goes_on_says_up_to_where_its_answer_stands_and_what_more_takes():
    rng = np.random.default_rng(5)
    arms = sp.Arms(rng.uniform(-1, 1, (12, 2)))
    means = dict(zip(arms.ids, arms.features @ np.array([2.0, 1.0]), strict=True))
    study = sp.Study(
        arms,
        sp.make_policy("certified-readings", arms, assume="linear", epsilon=0.5, delta=0.05, noise="subgaussian:0.5"),
    )
    said = []
    for most in (12, None):
        study.run(lambda ids: [means[one] + 0.5 * rng.normal() for one in ids], max_pulls=most, progress=False)
        assert study.progress().steered
        said.append(standing_so_far(study))
    (_, more), (last,) = said
    pulls = [int(one.split(": ")[1]) for one in more.partition("at least about: ")[2].split(", ")]
    assert pulls == sorted(pulls)
    assert pulls[2] > 0
    assert last == study.read("linear").survives
    assert study.read("linear").off_by >= 0.5


def test_repeats_that_are_all_equal_say_nothing_of_the_noise():
    counts = np.array([3, 7, 20, 1])
    values = np.array([0.1, 65.1, 54.3, 2.0])
    within = counts * (2.0**-52 * values) ** 2  # what adding up equal numbers leaves
    seen = Observations(counts, counts * values, within=within)
    assert noise_scale(seen, 4.0) == 4.0
    assert noise_scale(replace(seen, within=within + 2.0), 4.0) == pytest.approx((6.0 / 27.0) ** 0.5)
