"""A server with a study and somebody of each role."""

import pytest
from server_studies import make_study
from servers import serving, token_for

ROLES = ("viewer", "measurer", "owner", "admin")


@pytest.fixture
def client(sqlite_url):
    """Of a server with the studies "paint" and "other"."""
    for name in ("paint", "other"):
        make_study(sqlite_url, name)
    with serving(sqlite_url) as found:
        yield found


@pytest.fixture
def people(client):
    """Role -> header of somebody with it; "foreign" measures in the other study only."""
    found = {role: token_for(client, f"a {role}", role) for role in ROLES}
    return {**found, "foreign": token_for(client, "foreign", "measurer", "other")}
