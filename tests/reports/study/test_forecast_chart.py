"""The forecast in a report, and reports without one."""

import pytest
from report_pages import page_of

import surepick as sp
from surepick.errors import ContractError
from surepick.reports.study import charts as study_spending


def test_spending_is_compared_with_the_forecast(certified, tmp_path):
    foreseen = sp.forecast(certified.policy)
    words = page_of(certified, tmp_path, forecast_up_to=5).words
    assert f"up to about {foreseen.total:,} measurements" in words
    assert f"It took {certified.certificate().pulls:,}" in words
    assert "That is a worst case" in words
    share = certified.certificate().pulls / foreseen.uniform
    assert (f"This study took {share:.0%} of it." in words) == (share < 1)


def test_a_forecast_that_takes_long_is_left_out(certified, tmp_path):
    assert "surepick forecast makes it" in page_of(certified, tmp_path, forecast_up_to=4).words


@pytest.mark.parametrize("error", [ContractError("no room"), ValueError("a shape"), FloatingPointError("over")])
def test_a_forecast_that_fails_does_not_fail_the_report(certified, tmp_path, monkeypatch, error):
    def refuse(policy, **limits):
        raise error

    monkeypatch.setattr(study_spending, "forecast", refuse)
    assert f"No forecast could be made: {error}" in page_of(certified, tmp_path, forecast_up_to=5).words
