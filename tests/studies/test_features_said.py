"""`find_best` says which features it used."""

import logging

import surepick as sp

ASKED = {"epsilon": 0.5, "noise": "subgaussian:0.1"}


def measure(ids):
    return [float(name == "b") for name in ids]


def test_the_features_that_are_used_are_listed(write, caplog):
    arms = sp.read_arms(write("id,x,ph\na,0.1,1\nb,0.9,2\n"), "id")
    with caplog.at_level(logging.INFO, "surepick"):
        used = sp.find_best(arms, measure, norm_bound=9.0, **ASKED)
    assert used.features == "2 features: x, ph"
    assert str(used).splitlines()[-1] == used.features
    assert "certified-linear uses 2 features: x, ph." in caplog.messages
    unused = sp.find_best(arms, measure, **ASKED)
    assert (unused.features, str(unused)) == ("", str(unused.certificate))


def test_no_features_are_said_outright(write):
    arms = sp.read_arms(write("id,x\na,0.1\nb,0.9\n"), "id", features=[])
    assert sp.find_best(arms, measure, **ASKED).best_arm == "b"


def test_long_lists_of_features_are_cut():
    arms = sp.Arms(
        [[0.0] * 300, [1.0] * 300], ["a", "b"], columns=[f"a rather long name {place}" for place in range(300)]
    )
    assert arms.features_said.endswith(" and 292 more")
    assert len(arms.features_said) <= 500
    assert sp.Arms([[0.0, 1.0]]).features_said == "2 features: without names"
