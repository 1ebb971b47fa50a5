"""What a question bets on."""

import math

import numpy as np

from surepick.policies.questions.inquiries import AboveCentre, View
from surepick.policies.questions.outlook import Outlook
from surepick.policies.questions.sheets import NUMBER, Sheet
from surepick.policies.questions.state import Lists


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
