"""Over HTTP and on the pages: a result that stands out is asked about, and a wrong one is taken back."""

import re

import pytest
from page_forms import Visitor
from server_studies import make_study
from servers import serving, token_for

RESULTS, UNDO, CORRECT = (f"/api/v1/studies/paint/{verb}" for verb in ("results", "undo", "correct"))


def taken(client, header, most=10) -> list[dict]:
    return client.post("/api/v1/studies/paint/leases", json={"max_pulls": most}, headers=header).json()["measurements"]


@pytest.fixture
def ann(client):
    return token_for(client, "ann", "measurer")


@pytest.fixture
def bob(client):
    return token_for(client, "bob", "measurer")


def extra(name: str, reward: float, key: str) -> dict:
    return {"id": name, "reward": reward, "key": key}


def test_the_api_asks_names_the_rows_and_takes_an_answer(client, ann):
    taken(client, ann)
    rows = [extra("a", 1.0, "k1"), {"id": "b", "key": "k2", "failed": True}, extra("a", -999.0, "k3")]
    asked = client.post(RESULTS, json={"results": rows}, headers=ann)
    assert (asked.status_code, asked.json()["kind"], asked.json()["rows"]) == (409, "UnusualResult", [0, 2])
    assert "stands out" in asked.json()["detail"]
    stored = client.post(RESULTS, json={"results": rows, "accept_unusual": True}, headers=ann)
    assert (stored.status_code, stored.json()["stored"]) == (200, 2)


def test_the_question_tells_nothing_of_what_others_reported(client, ann, bob):
    """The answers to bob are the same, whatever ann reported in the open round."""
    taken(client, ann)
    client.post(RESULTS, json={"results": [extra("a", 7.0, "k1")]}, headers=ann)
    for number, value in enumerate((7.0, 7000.0)):
        one = [extra("b" if number else "a", value, f"bob {number}")]
        assert client.post(RESULTS, json={"results": one}, headers=bob).status_code == 200
    asked = client.post(RESULTS, json={"results": [extra("b", 7.0, "bob 2")]}, headers=bob)
    assert asked.status_code == 409
    assert "its other result is 7000" in asked.json()["detail"]


def test_the_api_takes_back_the_callers_own_results_alone(client, ann, bob):
    taken(client, ann)
    client.post(RESULTS, json={"results": [extra("a", 7.0, "k1")]}, headers=ann)
    for body in ({"keys": ["k1"]}, {"keys": ["k1"], "worker": "ann"}, {}):
        refused = client.post(UNDO, json=body, headers=bob)
        assert refused.status_code in (403, 409, 422), body
    assert client.post(UNDO, json={"keys": ["k1"], "reason": "wrong line"}, headers=ann).json() == {
        "undone": 1,
        "ids": ["a"],
    }
    again = client.post(RESULTS, json={"results": [extra("a", 8.0, "k1")]}, headers=ann)
    assert again.json()["counted"] == 1
    assert client.post(UNDO, json={}, headers=ann).json()["ids"] == ["a"]


def test_a_viewer_takes_nothing_back(client, people):
    assert client.post(UNDO, json={}, headers=people["viewer"]).status_code == 403


# pages


@pytest.fixture
def page(sqlite_url):
    make_study(sqlite_url, "paint")
    with serving(sqlite_url) as server:
        visitor = Visitor(server).login("ann", "measurer")
        visitor.send("/studies/paint/take", max_pulls="10")
        yield visitor
        visitor.close()


def fields_of(page, values) -> dict[str, str]:
    fields = {"way": "rows"}
    for place, ((name, key), value) in enumerate(zip(page.tasks("paint"), values, strict=True)):
        fields |= {f"id.{place}": name, f"key.{place}": key, f"reward.{place}": value}
    return fields


def first_round(page) -> None:
    assert page.send("/studies/paint/results", **fields_of(page, ["1", "2", "3"])).status_code == 303


def test_a_form_comes_back_with_a_second_button(page):
    first_round(page)
    page.send("/studies/paint/take", max_pulls="10")
    tasks = page.tasks("paint")
    fields = fields_of(page, ["500", *["2"] * (len(tasks) - 1)])
    asked = page.send("/studies/paint/results", **fields)
    assert asked.status_code == 409
    assert "Is it a typing error? Nothing was stored." in asked.text
    assert 'value="500"' in asked.text
    assert len(re.findall('aria-invalid="true"', asked.text)) == 1
    told = re.findall('name="asked" value="([^"]+)"', asked.text)
    assert len(told) == 1
    assert page.send("/studies/paint/results", **fields).status_code == 409  # nothing was ticked
    other = {**fields, "reward.0": "600", "asked": told}
    assert page.send("/studies/paint/results", **other).status_code == 409  # that value was not asked about
    mended = page.send("/studies/paint/results", **fields, mend="0:5")
    assert mended.status_code == 200
    assert 'name="reward.0" inputmode="decimal" enterkeyhint="next" value="5"' in mended.text
    assert page.tasks("paint") == tasks  # and nothing is stored
    assert page.send("/studies/paint/results", **fields, asked=told).status_code == 303


def test_a_pasted_table_is_kept_and_asked_about(page):
    first_round(page)
    page.send("/studies/paint/take", max_pulls="10")
    tasks = page.tasks("paint")
    lines = ["id,key,reward", *(f"{name},{key},{500 if not place else 2}" for place, (name, key) in enumerate(tasks))]
    content = "\n".join(lines)
    asked = page.send("/studies/paint/results", way="table", files={"file": ("x.csv", content.encode())})
    assert asked.status_code == 409
    assert f"{tasks[0][1]},500" in asked.text
    told = re.findall('name="asked" value="([^"]+)"', asked.text)
    stored = page.send("/studies/paint/results", way="table", pasted=content, accept_unusual="yes", asked=told)
    assert stored.status_code == 303


def test_what_was_reported_can_be_taken_back_on_the_page(page):
    ((name, key), *_) = page.tasks("paint")
    fields = {"way": "rows", "id.0": name, "key.0": key, "reward.0": "12.5"}
    page.send("/studies/paint/results", **fields)
    assert "Stored by me in this round" in page.get("/studies/paint").text
    assert (name, key) not in page.tasks("paint")
    done = page.send("/studies/paint/undo", key=key, worker="ann")
    assert done.status_code == 303
    assert "was taken back" in page.get(done.headers["location"]).text
    assert (name, key) in page.tasks("paint")
    refused = page.send("/studies/paint/undo", key=key, worker="ann")
    assert (refused.status_code, "undone already" in refused.text) == (422, True)


def test_a_result_of_a_complete_round_is_corrected_by_who_reported_it(client, ann, bob):
    rows = [{"id": one["id"], "key": one["key"], "reward": 1.0} for one in taken(client, ann, 100)]
    assert client.post(RESULTS, json={"results": rows}, headers=ann).json()["stored"] == len(rows)
    body = {"key": rows[0]["key"], "value": 2.0, "reason": "wrong line"}
    assert client.post(CORRECT, json=body, headers=bob).status_code == 422
    assert client.post(CORRECT, json=body | {"worker": "ann"}, headers=bob).status_code == 403
    done = client.post(CORRECT, json=body, headers=ann)
    assert (done.status_code, done.json()["typed"], done.json()["read"]) == (200, 1.0, 2.0)
    assert "already" in client.post(CORRECT, json=body, headers=ann).json()["detail"]
    assert client.post(CORRECT, json=body | {"value": "2"}, headers=ann).status_code == 422


def test_a_result_of_a_complete_round_is_corrected_on_the_page(page):
    first_round(page)
    shown = page.get("/studies/paint").text
    assert "Correct a result of a closed round" in shown
    key = re.search(r'action="[^"]*/correct".*?name="key" value="([^"]+)"', shown, re.DOTALL)[1]
    done = page.send("/studies/paint/correct", key=key, worker="ann", value="3,5", reason="")
    assert done.status_code == 303
    shown = page.get(done.headers["location"]).text
    assert "3.5 counts in the place of " in shown
    assert "all are in, and 1 correction counts then." in shown
    for value in ("", "many"):
        assert page.send("/studies/paint/correct", key=key, worker="ann", value=value).status_code == 422
