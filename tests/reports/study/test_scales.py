"""The scales of the pictures, their histograms and their staircases."""

import pytest

from surepick.core.random_streams import stream
from surepick.reports.study.lists import Frame, Scale, histogram, nice_step, staircase


def test_scales_and_their_ticks():
    plain_scale = Scale(0.0, 10.0, 100.0, 200.0)
    assert (plain_scale.at(5.0), plain_scale.at(-1.0), plain_scale.at(99.0)) == (150.0, 100.0, 200.0)
    assert plain_scale.ticks(5) == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    assert Scale(0.0, 3.0, 0.0, 1.0, whole=True).ticks(6) == [0.0, 1.0, 2.0, 3.0]
    factors = Scale(1.0, 1000.0, 0.0, 3.0, logarithmic=True)
    assert factors.at(10.0) == pytest.approx(1.0)
    assert factors.ticks(5) == [1.0, 10.0, 100.0, 1000.0]
    assert [nice_step(least) for least in (0.3, 1.0, 2.1, 7.0)] == [0.5, 1.0, 5.0, 10.0]


def test_histograms_lose_nothing():
    values = stream(4, "bins").normal(size=500).tolist()
    frame = Frame(0.0, 1.0, 0.0, 1.0)
    columns = histogram(values, frame, frame.across(-1.0, 1.0), 7).columns
    assert sum(part.count for part in columns) == 500
    inner = columns[3]
    assert inner.count == sum(inner.low <= value < inner.high for value in values)
    assert [part.x for part in columns] == pytest.approx([place / 7 for place in range(7)])


def test_a_staircase_steps_where_the_level_changes():
    assert staircase([(0, 5), (10, 5), (20, 3), (30, 3)]) == "M0 5H20V3H30"
