"""Numbers as pictures write them: bounds are never rounded down, and ticks are round."""

import math

import pytest
from hypothesis import given, strategies as st

from surepick.drawings.numbers import Scale, asked, decimals_for, number, signed, tick_label, upper


@pytest.mark.parametrize(
    ("tolerance", "written"), [(5, "4.8"), (0.5, "4.72"), (0.25, "4.712"), (12, "4.8"), (200, "5"), (0.004, "4.7111")]
)
def test_a_bound_has_a_digit_more_than_the_tolerance_and_is_rounded_up(tolerance, written):
    assert upper(4.7111, decimals_for(tolerance)) == written


@given(st.floats(-1e9, 1e9), st.integers(0, 9))
def test_a_bound_is_never_less_than_it_is(bound, decimals):
    written = float(upper(bound, decimals).replace(",", "").replace("\N{MINUS SIGN}", "-"))
    assert bound <= written < bound + 1.0001 * 10.0**-decimals + 1e-6


def test_a_minus_is_a_minus_and_there_is_no_minus_zero():
    assert number(-1234.5, 1) == "\N{MINUS SIGN}1,234.5"
    assert upper(-0.01, 1) == "0.0"
    assert (signed(4.71, 1), signed(-1.26, 1), signed(0.0, 1)) == ("+4.8", "\N{MINUS SIGN}1.2", "0.0")


def test_without_a_tolerance_three_digits_are_written():
    assert decimals_for(0.0, [81.6, 77.7]) == 1
    assert decimals_for(0.0, [0.0123]) == 4
    assert decimals_for(0.0, []) == 2


def test_a_tolerance_is_written_as_it_was_asked():
    assert (asked(5.0), asked(0.25), asked(2000.0)) == ("5", "0.25", "2,000")


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6))
def test_ticks_are_few_round_and_inside(low, width):
    scale = Scale(low, low + width)
    ticks = scale.ticks()
    assert len(ticks) <= 6
    if width > 1e-4 * abs(low):  # the difference of two large numbers has few digits
        steps = {
            round(math.log10(after - before) % 1.0, 3) % 1.0 for after, before in zip(ticks[1:], ticks, strict=False)
        }
        assert steps <= {0.0, 0.301, 0.699}
    assert all(
        low - 1e-6 * width - 1e-9 * abs(low) <= tick <= low + width + 1e-6 * width + 1e-9 * abs(low) for tick in ticks
    )


def test_better_is_at_the_right():
    assert Scale(0.0, 10.0).at(10.0) == Scale(0.0, 10.0, mirrored=True).at(0.0) == 98.0
    assert Scale.over([3.0]).at(3.0) == pytest.approx(50.0)


def test_ticks_are_short():
    assert [tick_label(value) for value in (-0.5, 0.0, 20.0, 1e7)] == ["\N{MINUS SIGN}0.5", "0", "20", "1e+07"]
