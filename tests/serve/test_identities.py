"""Identities: entered by an admin, of one person at a time; and tables of a server that another version has made."""

import threading

import pytest
import sqlalchemy as sa
from servers import serving, token_for
from together import of_each

from surepick.errors import InvalidInput, StorageError
from surepick.studies.database import Database
from surepick_server.access import schema
from surepick_server.access.schema import make_tables
from surepick_server.access.tokens import Role, Tokens, read_identity

API = "/api/v1/tokens"
LATER = 4e9


@pytest.fixture
def database(database_url):
    found = Database(database_url, create=True)
    found.prepare()
    yield found
    found.engine.dispose()


def test_processes_that_make_the_tables_at_once_make_them_once(database):
    found = []
    threads = [threading.Thread(target=lambda: found.append(make_tables(database.engine, "x"))) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60.0)
    assert found == ["x"] * 4
    assert make_tables(database.engine, "another secret") == "x"


@pytest.mark.parametrize("version", [schema.VERSION - 1, schema.VERSION + 1])
def test_tables_of_another_version_are_refused_and_left_alone(database, version):
    make_tables(database.engine, "the secret")
    with schema.writing(database.engine) as connection:
        connection.exec_driver_sql("DROP TABLE serve_identity")
        connection.exec_driver_sql(f"UPDATE serve_schema SET version = {version}")
    said = f"of a server of version {version}; this one knows {schema.VERSION}.*Start the server with the version"
    with pytest.raises(StorageError, match=said):
        make_tables(database.engine, "x")
    assert "serve_identity" not in sa.inspect(database.engine).get_table_names()


def test_an_identity_is_of_one_person_at_a_time(database):
    make_tables(database.engine, "secret")
    known = Tokens(database.engine)
    assert known.known_as(("ann@example.org",)) is None
    known.make("ann", Role.measurer, study="paint", identity="Ann@Example.org")
    assert known.known_as(("nobody", "ann@example.org")) == known.known_as(("ann@example.org",))
    assert (known.known_as(("ann@example.org",)).study, known.known_as(("Ann@Example.org",))) == ("paint", None)
    for name in ("bob", "ann"):
        with pytest.raises(InvalidInput, match="logs in as 'ann' already" if name == "bob" else "is used once"):
            known.make(name, Role.viewer, identity="ann@EXAMPLE.org")
    assert [one.name for one in known.list()] == ["ann"]  # who was refused is not there without it
    known.bind("ann", "https://login.example.org#Ann")
    known.bind("ann", "ann@example.org")
    (ann,) = known.list()
    assert ann.identities == ("ann@example.org", "https://login.example.org#Ann")
    known.revoke("ann")
    assert known.known_as(("ann@example.org",)) is None
    for identity in ("ann@example.org", "x"):
        with pytest.raises(InvalidInput, match="no token of the name 'ann'"):
            known.bind("ann", identity)
    with pytest.raises(InvalidInput, match="no token of the name 'eve'"):
        known.bind("eve", "x")
    known.make("ann 2", Role.viewer, identity="ann@example.org")
    assert known.known_as(("ann@example.org",)).name == "ann 2"


@of_each("text", ["", " ann", "ann ", "a\nb", "é", "x" * 601, None, 5, "ann\x00", "ann\u2028"])
def test_an_identity_that_is_none(text):
    with pytest.raises(InvalidInput, match="an identity is"):
        read_identity(text)


def test_admins_enter_identities_over_http(client, people):
    new = {"name": "ann", "role": "viewer", "identity": "Ann@example.org"}
    for role in ("viewer", "measurer", "owner"):
        assert client.post(API, json=new, headers=people[role]).status_code == 403
    made = client.post(API, json=new, headers=people["admin"])
    assert made.status_code == 201
    assert made.json()["identities"] == ["ann@example.org"]
    again = client.post(API, json={**new, "name": "bob"}, headers=people["admin"])
    assert (again.status_code, "logs in as 'ann' already" in again.json()["detail"]) == (422, True)
    listed = {one["name"]: one["identities"] for one in client.get(API, headers=people["admin"]).json()["tokens"]}
    assert listed["ann"] == ["ann@example.org"]
    assert listed["a viewer"] == []
    entry = client.app.state.server.trail.latest()[0]
    assert (entry.who, entry.action, entry.words) == ("a admin", "make token", "ann, viewer, ann@example.org")


def test_admins_enter_identities_on_their_page(tmp_path):
    from page_forms import Visitor

    with serving(f"sqlite:///{tmp_path}/s.db", trusted_proxies=("127.0.0.1",), trusted_header="X-User") as server:
        boss = Visitor(server).login("boss", "admin")
        assert "Logs in as" in boss.get("/tokens").text
        form = {"name": "ann", "role": "viewer", "days": "9", "identity": "ann@example.org"}
        made = boss.send("/tokens", page="/tokens", **form)
        assert made.status_code == 200
        assert '<span class="identity">ann@example.org</span>' in made.text
        assert server.get("/api/v1/me", headers={"x-user": "ann@example.org"}).json()["name"] == "ann"
        refused = boss.send("/tokens", page="/tokens", **{**form, "name": "bob"})
        assert refused.status_code == 422
        assert 'id="identity" name="identity" maxlength="600" value="ann@example.org"' in refused.text
    with serving(f"sqlite:///{tmp_path}/other.db") as server:
        token_for(server, "boss", "admin")
        assert "Logs in as" not in Visitor(server).login("ann", "admin").get("/tokens").text
