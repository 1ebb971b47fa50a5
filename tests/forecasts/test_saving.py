"""What naming a class would save: a forecast on made-up means, and none where it would be dear or mean nothing."""

import numpy as np
import pytest

import surepick as sp
from surepick.core.random_streams import stream
from surepick.forecasts.saving import MOST_ARMS, Saving, saving

ASKED = {"epsilon": 0.5, "delta": 0.05, "noise": sp.SubGaussian(1.0)}


def arms_of(number, dim=2):
    names = tuple(f"x{column}" for column in range(dim))
    return sp.Arms(stream(1, "saving").standard_normal((number, dim)), columns=names)


def measured(arms, means, pulls=2):
    world = sp.environments.Environment(arms=arms, means=means, noise=ASKED["noise"])
    return world.pull(np.full(arms.num_arms, pulls), stream(2, "seen"))


def test_it_is_about_what_real_studies_take():
    arms = arms_of(24)
    means = 2.0 * arms.features @ np.array([1.0, 0.5])
    found = saving(arms, **ASKED, seen=measured(arms, means))
    world = sp.environments.Environment(arms=arms, means=means, noise=ASKED["noise"])
    for name, forecast, options in (
        ("certified-independent", found.independent, {}),
        ("certified-readings", found.named, {"assume": "linear"}),
    ):
        policy = sp.make_policy(name, arms, **ASKED, **options)
        real = np.mean([sp.simulate(policy, world, seed=seed).pulls for seed in range(100, 104)])
        assert real / 2.0 < forecast < 2.0 * real


def test_before_anything_is_measured_it_says_what_it_takes_for_granted():
    found = saving(arms_of(16), **{**ASKED, "epsilon": 2.0})
    assert found.spread == pytest.approx(3.0)
    assert str(found).endswith(
        "within 2 of a linear function of x0, x1 and the means spread by 3 (standard deviation)."
    )


@pytest.mark.parametrize(
    ("named", "independent", "words"),
    [
        (640, 2_200, "`--assume linear`: about 640 measurements in place of 2,200, if each mean is"),
        (400, 410, "`--assume linear` would save nothing: about 400 measurements in place of 410, also if each mean"),
        (80, 90, "`--assume linear` would save nothing: about two results a candidate suffice anyway, also if each"),
    ],
)
def test_what_it_would_save_is_one_line(named, independent, words):
    assert str(Saving(0.5, "x", 0.1, 1.0, named, independent, num_arms=45)).startswith(words)


def test_means_that_the_class_does_not_have_save_nothing():
    arms = arms_of(40)
    found = saving(arms, **ASKED, seen=measured(arms, 4.0 * np.sin(5.0 * arms.features[:, 0])))
    assert (found.named, found.independent) == (0, 80)
    assert 2.0 < found.off < 4.0
    assert str(found).startswith("`--assume linear` would save nothing: about two results a candidate suffice anyway")


def test_where_a_cheap_answer_is_not_known_nothing_is_said():
    plain, dear = arms_of(20), sp.Arms(arms_of(20).features, costs=np.arange(1.0, 21.0))
    for arms in (sp.Arms(np.empty((20, 0))), arms_of(MOST_ARMS + 1), arms_of(9), dear):
        assert saving(arms, **ASKED) is None
    assert saving(plain, **{**ASKED, "noise": sp.SubGaussian(np.ones(20))}) is None
