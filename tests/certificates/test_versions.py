"""A certificate of another version of the format is refused, whoever computed its hash anew."""

import pytest
from budgets import budget
from certified_files import resealed
from hypothesis import given, settings, strategies as st

from surepick.certificates.document import VERSION
from surepick.certificates.verify import verify_certificate


def failing(document: dict) -> list[str]:
    return [line.what for line in verify_certificate(resealed(document)).lines if not line.holds]


@pytest.mark.parametrize("number", [*range(VERSION + 3), -1, float(VERSION), True, None, str(VERSION), [VERSION]])
def test_another_version_is_refused(linear, number):
    if number is not VERSION:
        assert failing({**linear, "version": number}) == ["the format"]
    without = {name: value for name, value in linear.items() if name != "version"}
    assert failing(without) == ["the format"]


@settings(max_examples=budget(50))
@given(st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text(), st.booleans()))
def test_whatever_else_is_stated_is_refused(linear, number):
    if type(number) is not int or number != VERSION:
        assert failing({**linear, "version": number}) == ["the format"]


def test_this_version_holds(linear):
    assert failing(linear) == []
