"""A study whose pulls are leased, and its clock."""

import pytest
from leased_studies import Clock, make_study

import surepick as sp


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def study(clock) -> sp.Study:
    study = make_study(clock)
    assert study.ask().counts.tolist() == [3, 3, 3]
    return study
