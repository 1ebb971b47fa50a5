"""Reports that several tests read."""

import pytest
from report_pages import Page, finished, made_up, rendered

import surepick as sp
from surepick.core.random_streams import stream


@pytest.fixture(autouse=True)
def one_study_of_equals(monkeypatch):
    """What the worst case costs is asked in tests/forecasts: here one study of equal candidates says it, not eight."""
    monkeypatch.setattr("surepick.forecasts.simulated_studies.EQUAL_STUDIES", 1)


@pytest.fixture(scope="session")
def certified() -> sp.Study:
    study = finished()
    assert study.certificate().verdict == "certified"
    return study


@pytest.fixture(scope="session")
def large() -> tuple[dict, Page]:
    document = made_up(10_000, ids=[f"candidate-{arm:05d}" for arm in range(10_000)])
    return document, rendered(document, stream(0, "map").normal(size=(10_000, 20)))
