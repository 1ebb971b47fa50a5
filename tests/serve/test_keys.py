"""Keys over HTTP: of whom an answer and a request are, columns and fields of one name, and what is a number."""

from http import HTTPStatus

import pytest
from servers import serving, token_for

import surepick as sp

PAINT, EVAL = "/api/v1/studies/paint", "/api/v1/studies/eval"


@pytest.fixture
def people(client):
    """Header of two measurers and an owner."""
    roles = {"one": "measurer", "two": "measurer", "boss": "owner"}
    return {name: token_for(client, name, role) for name, role in roles.items()}


@pytest.fixture
def client(sqlite_url):
    """Of a server with a study of draws and one of test items."""
    asked = {"epsilon": 0.05, "delta": 0.05, "noise": "bernoulli"}
    arms = sp.Arms(ids=["A", "B", "C"])
    sp.create_study(sqlite_url, "paint", sp.make_policy("certified-independent", arms, **asked))
    items = [f"q{number}" for number in range(50)]
    sp.create_study(sqlite_url, "eval", sp.make_policy("certified-items", arms, items=items, seed=7, **asked))
    with serving(sqlite_url) as found:
        yield found


def sent(client, who, rows, study=EVAL, **headers):
    return client.post(f"{study}/results", json={"results": rows}, headers={**who, **headers})


def told(client, who, study=EVAL) -> int:
    progress = client.get(study, headers=who).json()["progress"]
    return progress["told"] + progress["pulls"]


# 1 and 2: items


def lease(client, who, study=EVAL, **wanted):
    return client.post(f"{study}/leases", json=wanted, headers=who).json()["measurements"]


def test_no_measurer_can_count_an_answer_twice_and_end_the_study(client, people):
    rows = [{**one, "reward": 1.0} for one in lease(client, people["one"])]
    assert sent(client, people["one"], rows[:1]).json()["counted"] == 1
    key = rows[0]["key"]
    for spelled in (f"{key}zz", key.replace("@A", "@B"), key.replace("@A", "@"), f"{key}\u200b", key.upper()):
        answer = sent(client, people["one"], [{"id": "A", "key": spelled, "reward": 0.0}])
        assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY, spelled
        assert told(client, people["one"]) == 1
    assert sent(client, people["one"], rows).json()["counted"] == len(rows)
    for what in ("", "/answer", "/certificate", "/report", "/history"):
        assert client.get(f"{EVAL}{what}", headers=people["boss"]).status_code == HTTPStatus.OK, what
    assert client.post(f"{EVAL}/close", json={}, headers=people["boss"]).status_code == HTTPStatus.OK


def test_the_items_that_another_worker_has_leased_are_theirs(client, people):
    mine = lease(client, people["one"])
    for row in ({**mine[0], "reward": 0.0}, {"id": mine[0]["id"], "item": mine[0]["item"], "reward": 0.0}):
        answer = sent(client, people["two"], [row])
        assert answer.status_code == HTTPStatus.FORBIDDEN, answer.text
        assert "leased to somebody else" in answer.json()["detail"]
    failed = {"ids": [mine[0]["id"]], "keys": [mine[0]["key"]]}
    assert client.post(f"{EVAL}/failures", json=failed, headers=people["two"]).status_code == HTTPStatus.FORBIDDEN
    assert sent(client, people["one"], [{**one, "reward": 1.0} for one in mine]).json()["counted"] == len(mine)
    again = lease(client, people["two"])
    assert sent(client, people["boss"], [{**again[0], "reward": 1.0}]).json()["counted"] == 1  # an owner may


def test_items_that_nobody_holds_may_be_answered_and_late_ones_too(client, people):
    first = lease(client, people["one"], max_pulls=5)
    names = {one["id"] for one in first}
    free = next(name for name in "ABC" if name not in names)
    item = first[0]["item"]
    assert sent(client, people["two"], [{"id": free, "item": item, "reward": 1.0}]).json()["counted"] == 1
    client.post(f"{EVAL}/release", json={}, headers=people["one"])
    second = lease(client, people["two"])
    both = [one for one in first if one in second]
    assert both  # leased again, under the same keys
    assert sent(client, people["one"], [{**both[0], "reward": 1.0}]).json()["counted"] == 1


# 3: the column of keys in a table


@pytest.mark.cases(3)
@pytest.mark.parametrize("header", ["key", "Key", "KEY", "keys", " key ", "ｋｅｙ"])
def test_a_column_of_keys_is_found_however_its_name_is_written(client, people, header):
    rows = lease(client, people["one"], PAINT)
    table = "\n".join([f"id,{header},reward", *(f"{row['id']},{row['key']},1" for row in rows)])
    for once in ("r1", "r2"):
        headers = {**people["one"], "content-type": "text/csv", "idempotency-key": once}
        answer = client.post(f"{PAINT}/results", content=table, headers=headers)
        assert answer.json()["counted"] == len(rows)
    assert told(client, people["one"], PAINT) == len(rows)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("id,key,reward,reward\nA,k,1,0\n", "more than one column named 'reward'"),
        ("id,key,key,reward\nA,k,l,0\n", "more than one column named 'key'"),
        ("id,key,Key,reward\nA,k,l,0\n", "one of them holds the keys"),
        ("id,keys,key,reward\nA,k,l,0\n", "one of them holds the keys"),
        ("id,id,key,reward\nA,B,l,0\n", "more than one column named 'id'"),
    ],
)
def test_two_columns_of_one_name_are_refused(client, people, table, said):
    client.get(f"{PAINT}/plan", headers=people["one"])
    headers = {**people["one"], "content-type": "text/csv"}
    answer = client.post(f"{PAINT}/results", content=table, headers=headers)
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert said in answer.json()["detail"]
    assert told(client, people["one"], PAINT) == 0


@pytest.mark.parametrize("word", ["", "nan", "NULL", "n/a"])
def test_a_word_for_no_key_in_a_table_is_none(client, people, word):
    lease(client, people["boss"], PAINT, max_pulls=1)
    headers = {**people["one"], "content-type": "text/csv", "idempotency-key": "monday"}
    answer = client.post(f"{PAINT}/results", content=f"id,key,reward\nB,{word},1\nB,{word},1\n", headers=headers)
    assert answer.json()["counted"] == 2


# 11: requests


@pytest.mark.parametrize("guess", ["one/r9/0", "request:one/r9.0", None])
def test_nobody_takes_the_key_of_anothers_request(client, people, guess):
    lease(client, people["boss"], PAINT, max_pulls=1)
    row = [{"id": "B", "reward": 1.0}]
    if guess is None:  # the very key that is stored
        sent(client, people["one"], row, PAINT, **{"idempotency-key": "r9"})
        with client.app.state.server.studies.open("paint") as study:
            guess = next(key for part in study.log.history(1) for key in part.results.keys or ())
    taken = sent(client, people["two"], [{**row[0], "key": guess}], PAINT)
    assert taken.status_code in (HTTPStatus.OK, HTTPStatus.UNPROCESSABLE_ENTITY)
    assert sent(client, people["one"], row, PAINT, **{"idempotency-key": "r9"}).json()["counted"] == 1
    assert sent(client, people["two"], row, PAINT, **{"idempotency-key": "r9"}).json()["counted"] == 1


def test_a_request_of_somebody_whose_name_ends_as_anothers_key_begins_is_another(client):
    people = [token_for(client, name, "measurer") for name in ("a", "a.b")]
    lease(client, token_for(client, "x", "owner"), PAINT, max_pulls=1)
    row = [{"id": "B", "reward": 1.0}]
    counts = [
        sent(client, who, row, PAINT, **{"idempotency-key": once}).json()["counted"]
        for who, once in zip(people, ("b/r", "r"), strict=True)
    ]
    assert counts == [1, 1]
    with client.app.state.server.studies.open("paint") as study:
        assert sum(len(part.results.arms) for part in study.log.history(1)) == 2


# 12: fields


BODIES = {
    "results": ['{"results": [{"id": "B", "key": "k", "reward": 0, "reward": 1}]}', '{"results": [], "results": []}'],
    "totals": ['{"ids": ["B"], "pulls": [1], "pulls": [9], "sums": [1], "keys": ["k"]}'],
    "prior": ['{"results": [{"id": "B", "id": "A", "key": "k", "reward": 0}]}'],
    "failures": ['{"ids": ["B"], "keys": ["k"], "keys": ["l"]}'],
    "leases": ['{"max_pulls": 1, "max_pulls": 2}'],
    "release": ['{"worker": null, "worker": null}'],
    "abandon": ['{"reason": "lost", "reason": "independent-of-value"}'],
    "close": ['{"reason": "a", "reason": "b"}'],
}


@pytest.mark.cases(5)
@pytest.mark.parametrize(("what", "body"), [(what, body) for what, bodies in BODIES.items() for body in bodies])
def test_two_fields_of_one_name_are_refused(client, people, what, body):
    lease(client, people["boss"], PAINT, max_pulls=1)
    headers = {**people["boss"], "content-type": "application/json"}
    answer = client.post(f"{PAINT}/{what}", content=body, headers=headers)
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY, answer.text
    assert "stands in it twice" in answer.json()["detail"]
    assert told(client, people["boss"], PAINT) == 0


def test_a_study_with_a_field_twice_is_not_made(client):
    body = '{"name": "new", "candidates": {"ids": ["a", "b"]}, "epsilon": 0.1, "epsilon": 0.9, "noise": "bernoulli"}'
    headers = {**token_for(client, "chief", "admin"), "content-type": "application/json"}
    answer = client.post("/api/v1/studies", content=body, headers=headers)
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY
    assert "the field 'epsilon' stands in it twice" in answer.json()["detail"]


# 13: numbers are numbers


@pytest.mark.cases(4)
@pytest.mark.parametrize("reward", [True, False, "1", " 1 ", "true", [1], {"value": 1}, None])
def test_a_reward_is_a_number_of_json(client, people, reward):
    lease(client, people["boss"], PAINT, max_pulls=1)
    row = {"id": "B", "key": "k", "reward": reward}
    for what in ("results", "prior"):
        answer = client.post(f"{PAINT}/{what}", json={"results": [row]}, headers=people["one"])
        assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY, (what, answer.text)
    assert told(client, people["one"], PAINT) == 0


@pytest.mark.cases(3)
@pytest.mark.parametrize("pulls", [True, 1.0, "1", 1.5, None, -1])
def test_pulls_are_whole_numbers_of_json(client, people, pulls):
    lease(client, people["boss"], PAINT, max_pulls=1)
    body = {"ids": ["B"], "pulls": [pulls], "sums": [1], "squares": [1], "keys": ["k"]}
    answer = client.post(f"{PAINT}/totals", json=body, headers=people["one"])
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY, answer.text
    assert client.post(f"{PAINT}/totals", json={**body, "pulls": [1]}, headers=people["one"]).status_code == 200


@pytest.mark.cases(4)
@pytest.mark.parametrize(
    ("what", "body"),
    [
        ("results", {"results": [{"id": "B", "key": "k", "failed": 1}]}),
        ("results", {"results": [{"id": "B", "key": "k", "reward": 1}], "plan": True}),
        ("totals", {"ids": ["B"], "pulls": [1], "sums": [True], "keys": ["k"]}),
        ("totals", {"ids": ["B"], "pulls": [1], "sums": ["1"], "keys": ["k"]}),
        ("leases", {"max_pulls": True}),
        ("leases", {"max_pulls": "1"}),
        ("leases", {"duration": True}),
        ("leases", {"trust_clock": "yes"}),
    ],
)
def test_other_numbers_and_answers_of_yes_and_no_are_those_of_json(client, people, what, body):
    answer = client.post(f"{PAINT}/{what}", json=body, headers=people["one"])
    assert answer.status_code == HTTPStatus.UNPROCESSABLE_ENTITY, answer.text
