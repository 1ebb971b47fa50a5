"""Forms do what the API does, without scripts: take, enter by fields, by a table, by a file; failed; give back."""

import pytest


def test_fields_store_what_the_api_would(server, study, visit):
    ann, bob = visit("ann", "measurer"), visit("bob", "measurer")
    ann.send("/studies/coffee/take", max_pulls="2", duration="1h")
    bob.send("/studies/coffee/take", max_pulls="")
    (first, second), (third,) = ann.tasks("coffee"), bob.tasks("coffee")
    assert [first[0], second[0], third[0]] == ["a", "b", "c"]
    fields = {"id.0": first[0], "key.0": first[1], "reward.0": "0,5", "id.1": second[0], "key.1": second[1]}
    done = ann.send("/studies/coffee/results", way="rows", **fields, **{"reward.1": ""})
    assert "1 result stored." in ann.get(done.headers["location"]).text
    assert ann.tasks("coffee") == [second]
    failed = {"id.0": second[0], "key.0": second[1], "failed.0": "yes"}
    assert (
        "1 failed measurement offered again"
        in ann.get(ann.send("/studies/coffee/results", way="rows", **failed).headers["location"]).text
    )
    header = {"authorization": f"Bearer {bob.token}"}
    row = {"id": third[0], "key": third[1], "reward": 1.0}
    server.post("/api/v1/studies/coffee/results", json={"results": [row]}, headers=header)
    ann.send("/studies/coffee/take")
    ((name, key),) = ann.tasks("coffee")
    ann.send("/studies/coffee/results", way="rows", **{"id.0": name, "key.0": key, "reward.0": "2e-1"})
    told = server.get("/api/v1/studies/coffee/export.csv", headers=header).text.splitlines()
    rewards = {line.split(",")[2]: float(line.split(",")[4]) for line in told[1:] if line.startswith("1,")}
    assert rewards == {"a": 0.5, "b": 0.2, "c": 1.0}


@pytest.mark.parametrize("way", ["pasted", "file"])
def test_a_table_stores_the_same(server, study, visit, way):
    ann = visit("ann", "measurer")
    ann.send("/studies/coffee/take")
    table = ann.get("/studies/coffee/tasks.csv")
    assert table.headers["content-disposition"] == 'attachment; filename="tasks.csv"'
    lines = table.text.splitlines()
    assert lines[0] == "id,key,reward"
    filled = "\r\n".join([lines[0], f"{lines[1]}0.25", f"{lines[2]}failed", lines[3]])
    more = {"pasted": filled} if way == "pasted" else {"files": {"file": ("x.csv", filled.encode("utf-8-sig"))}}
    done = ann.send("/studies/coffee/results", way="table", **more)
    said = ann.get(done.headers["location"]).text
    assert "1 result stored; 1 failed measurement offered again." in said
    assert len(ann.tasks("coffee")) == 1
    again = ann.send("/studies/coffee/results", way="table", **more)
    assert (again.status_code, ann.get("/api/v1/studies/coffee").json()["progress"]["told"]) == (303, 1)


def test_a_table_needs_no_keys_where_it_has_all_that_is_held_of_a_candidate(study, visit):
    ann, bob = visit("ann", "measurer"), visit("bob", "measurer")
    ann.send("/studies/coffee/take", max_pulls="2")
    bob.send("/studies/coffee/take")
    ((first, key), (second, _)), ((third, _),) = ann.tasks("coffee"), bob.tasks("coffee")
    for pasted, why in (
        (f"id,reward\n{first},1\n{first},2", "has 2 rows without a key, and you hold 1 measurement of it"),
        (f"id,reward\n{third},1", "has 1 row without a key, and you hold 0 measurements of it"),
        (f"id,key,reward\n{first},{key},1\n{first},,1", "and you hold 0 measurements of it"),
    ):
        refused = ann.send("/studies/coffee/results", way="table", pasted=pasted)
        assert (refused.status_code, why in refused.text) == (422, True)
    assert len(ann.tasks("coffee")) == 2
    done = ann.send("/studies/coffee/results", way="table", pasted=f"id;reward\n{second};0,5\n{first};failed")
    assert "1 result stored; 1 failed measurement offered again." in ann.get(done.headers["location"]).text
    again = ann.send("/studies/coffee/results", way="table", pasted=f"id,reward\n{second},0.5")
    assert (again.status_code, "you hold 0 measurements of it" in again.text) == (422, True)
    assert ann.get("/api/v1/studies/coffee").json()["progress"]["told"] == 1


@pytest.mark.parametrize("cell", ["x", "nan", "1e999", "1 2"])
def test_what_was_typed_stays_when_it_is_refused(study, visit, cell):
    ann = visit("ann", "measurer")
    ann.send("/studies/coffee/take", max_pulls="2")
    (one, two) = ann.tasks("coffee")
    fields = {"id.0": one[0], "key.0": one[1], "reward.0": "0.5", "id.1": two[0], "key.1": two[1], "reward.1": cell}
    refused = ann.send("/studies/coffee/results", way="rows", **fields)
    assert refused.status_code == 422
    assert 'role="alert"' in refused.text
    assert f'value="{cell}"' in refused.text
    assert 'value="0.5"' in refused.text
    assert ann.tasks("coffee") == [one, two]


def test_results_of_others_are_refused_as_in_the_api(study, visit):
    ann, bob = visit("ann", "measurer"), visit("bob", "measurer")
    ann.send("/studies/coffee/take", max_pulls="1")
    ((name, key),) = ann.tasks("coffee")
    fields = {"way": "rows", "id.0": name, "key.0": key, "reward.0": "1"}
    refused = bob.send("/studies/coffee/results", **fields)
    assert (refused.status_code, "leased to somebody else" in refused.text) == (403, True)
    assert ann.send("/studies/coffee/results", **fields).status_code == 303
    refused = bob.send("/studies/coffee/results", **fields)
    assert (refused.status_code, "reported by somebody else" in refused.text) == (409, True)


def test_measurements_are_given_back_by_their_holder_or_an_owner(study, visit):
    ann, bob, own = visit("ann", "measurer"), visit("bob", "measurer"), visit("own", "owner")
    ann.send("/studies/coffee/take", max_pulls="2")
    assert bob.send("/studies/coffee/release", worker="ann").status_code == 403
    ann.send("/studies/coffee/release")
    assert ann.tasks("coffee") == []
    ann.send("/studies/coffee/take", max_pulls="2")
    done = own.send("/studies/coffee/release", worker="ann")
    assert "2 measurements of ann can be taken by others now." in own.get(done.headers["location"]).text
    assert ann.tasks("coffee") == []


def test_looking_at_a_study_writes_nothing(server, study, visit):
    own = visit("own", "owner")
    before = own.get("/api/v1/studies/coffee").json()["progress"]
    for part in ("", "/answer", "/history", "/standing", "/tasks.csv"):
        assert own.get(f"/studies/coffee{part}").status_code == 200
    after = own.get("/api/v1/studies/coffee").json()["progress"]
    assert {**before, "now": 0} == {**after, "now": 0}


def measured(visitor, means) -> None:
    """Take and tell until the study stops."""
    while "See the answer" not in visitor.get("/studies/coffee").text:
        visitor.send("/studies/coffee/take")
        rows = {}
        for place, (name, key) in enumerate(visitor.tasks("coffee")):
            rows |= {f"id.{place}": name, f"key.{place}": key, f"reward.{place}": str(means[name])}
        assert rows
        assert visitor.send("/studies/coffee/results", way="rows", **rows).status_code == 303


def test_a_study_by_pages_alone_until_its_certificate_holds(study, visit):
    ann = visit("ann", "measurer")
    measured(ann, {"a": 0.0, "b": 0.1, "c": 2.0})
    page = ann.get("/studies/coffee/answer").text
    assert "Certified</span>" in page
    assert '<h2 id="is" class="name">c</h2>' in page
    assert "<strong>c</strong> is the answer, certified" in ann.get("/studies/coffee").text  # a name stays as it is
    assert page.count("<svg") >= 2
    history = ann.get("/studies/coffee/history").text
    assert "ann (3)" in history
    certificate = ann.get("/studies/coffee/certificate.json")
    holds = ann.send("/verify", pasted=certificate.text)
    assert (holds.status_code, "✓ It holds" in holds.text) == (200, True)
    dropped = {"file": ("certificate.json", certificate.text.replace('"c"', '"b"').encode())}
    assert "✗ It does not hold" in ann.send("/verify", files=dropped).text
    for wrong in ("", "x", "[]", "[" * 100_000, "{}"):
        assert ann.send("/verify", pasted=wrong).status_code == 422
    assert ann.get("/studies/coffee/report").headers["content-type"].startswith("text/html")
    assert "It is done." in ann.get("/studies/coffee/standing").text
