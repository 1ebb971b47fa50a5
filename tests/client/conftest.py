"""Servers, and an environment that says nothing of them."""

import pytest
from servers import serving

from surepick_server.client import transport


@pytest.fixture(autouse=True)
def _nothing_said(monkeypatch):
    """No token and no address in the environment; requests are sent again soon."""
    for name in ("SUREPICK_TOKEN", "SUREPICK_URL", "SUREPICK_INSECURE_HTTP"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(transport, "PAUSES", (0.02,) * 5)


@pytest.fixture
def server(sqlite_url):
    """A server on an empty database; `server.base_url` is its address."""
    with serving(sqlite_url) as client:
        yield client
