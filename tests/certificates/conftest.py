"""Certificates that several tests read, and another machine."""

import pytest
from certified_files import POLICIES, study_of

from surepick.certificates import verify_facts
from surepick.certificates.document import certificate_document


@pytest.fixture(scope="session", params=POLICIES)
def document(request) -> dict:
    return certificate_document(study_of(request.param, **POLICIES[request.param]), "paint")


@pytest.fixture(scope="session")
def linear() -> dict:
    return certificate_document(study_of("certified-linear", most=3, norm_bound=2.0), "paint")


@pytest.fixture(scope="session", autouse=True)
def arithmetic_once():
    """How this process rounds, found out once: a third of what verifying a small certificate costs."""
    here = verify_facts.arithmetic()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verify_facts, "arithmetic", lambda: here)
        yield


@pytest.fixture
def elsewhere(monkeypatch):
    monkeypatch.setattr(verify_facts, "arithmetic", lambda: "another machine")
