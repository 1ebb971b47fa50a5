"""A server with a study and somebody of each role."""

import pytest
from servers import serving, token_for

import surepick as sp

ROLES = ("viewer", "measurer", "owner", "admin")


def make_study(url, name, ids="abc", **more):
    policy = sp.make_policy("certified-independent", sp.Arms(ids=[*ids]), epsilon=0.5, delta=0.1, noise="subgaussian:1")
    return sp.create_study(url, name, policy, **more)


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
