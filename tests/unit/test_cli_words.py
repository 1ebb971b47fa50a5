"""What the command line says of policies, progress and options, where a careless word would be wrong."""

import numpy as np
import pytest

import surepick as sp
from surepick.cli.answers import print_rounds
from surepick.records import RoundRecord


def two_rounds(value: float) -> tuple[RoundRecord, ...]:
    """Rounds whose plans carry the value: what a design is worth, or what is still to come."""
    common = {"look": 1, "looks": 1, "dim": 2, "lower_bound": None, "misspecification": 0.0, "pulls": 4}
    first = RoundRecord(round=1, value=None, total_pulls=4, active=np.arange(3), leader=0, certified_gap=None, **common)
    last = RoundRecord(round=2, value=value, total_pulls=8, active=[0], leader=0, certified_gap=0.1, **common)
    return first, last


@pytest.mark.parametrize(
    ("name", "options"), [("certified-neural", {"width": 16}), ("certified-linear", {"norm_bound": 1.0})]
)
def test_predicted_pulls_are_not_called_a_design(capsys, name, options):
    arms = sp.Arms([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    print_rounds(two_rounds(123.0), sp.make_policy(name, arms, epsilon=0.1, delta=0.1, noise="bernoulli", **options))
    said = capsys.readouterr().out
    assert "to come" in said
    assert "120" in said
    assert "design" not in said


def test_a_design_is_not_called_predicted_pulls(capsys):
    arms = sp.Arms([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    print_rounds(two_rounds(123.0), sp.make_policy("rage", arms, epsilon=0.1, delta=0.1, noise="bernoulli"))
    said = capsys.readouterr().out
    assert "design" in said
    assert "to come" not in said
