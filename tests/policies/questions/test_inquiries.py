"""What a question bets on, and what it refuses."""

import math

import numpy as np
import pytest

import surepick as sp
from surepick.policies.questions.inquiries import AboveCentre, View
from surepick.policies.questions.outlook import Outlook
from surepick.policies.questions.sheets import NUMBER, Sheet
from surepick.policies.questions.state import Lists
from surepick.policies.registry import make_policy

ASKED = {"epsilon": 0.1, "delta": 0.1, "noise": "subgaussian:0.2"}


def test_an_arm_on_a_list_is_not_waited_for_on_the_other():
    """Arms 2 and 3 are on the first list and look below by now; arm 0 must not wait for them with its place below."""
    values = {"above": [3.1, 5.0, 5.0, 5.0], "below": [3.2, 0.0, 0.0, 0.0]}
    assert math.log(4 / 0.1 / 2) < 3.1  # enough as one of two on a list
    assert math.log(4 / 0.1) > 3.2  # not enough alone
    sheets = tuple(Sheet(name, np.array(each), np.array(each)) for name, each in values.items())
    lists = Lists(np.array([False, True, True, True]), np.zeros(4, bool))
    outlook = Outlook(np.array([0.01, 0.1, -0.01, -0.01]), 0.0, lambda _: np.full(4, 0.05))
    asked = AboveCentre(4, NUMBER, 0.0, 0.1, 0.1, discovery=True)
    assert not asked.decided(View(sheets, lists, outlook)).decided[0]
    assert any(bet.arms[0] for bet in asked.bets(View(sheets, lists, outlook)))


def test_one_arm_is_not_compared_with_itself():
    one = sp.Arms(np.ones((1, 1)), ["alone"])
    for question in ({"question": "all-good"}, {"question": "top", "m": 1}, {"question": "above", "control": "alone"}):
        with pytest.raises(sp.InvalidInput):
            make_policy("certified-independent", one, **ASKED, **question)


def test_one_arm_and_a_threshold_rest_on_the_noise():
    found = sp.find_best(
        sp.Arms(np.ones((1, 1)), ["alone"]),
        lambda ids: [1.0 for _ in ids],
        policy="certified-independent",
        question="above",
        threshold=0.0,
        **ASKED,
    )
    assert any("sub-Gaussian" in one for one in found.certificate.assumptions)
