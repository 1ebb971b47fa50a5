"""Results in the body of a request as a table: numbers by the rule of every table."""

import pytest

import surepick as sp
from surepick.errors import InvalidInput
from surepick_server.api.studies import uploaded_rows

PAINT = "/api/v1/studies/paint"


@pytest.fixture(scope="module")
def study():
    return sp.Study(
        sp.make_policy(
            "certified-independent", sp.Arms(ids=["a", "b"]), epsilon=0.5, delta=0.05, noise=sp.SubGaussian(1)
        )
    )


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("id,reward\na,1.5\nb,2\n", [1.5, 2]),
        ("id;reward\r\na;1,5\r\n;\r\nb;-2,25\r\n\x1a"[:-1], [1.5, -2.25]),
        ("sep=;\nid;reward\na;1,5\nb;failed\n", [1.5, None]),
        ("id\treward\na\t1,234,567\nb\t−2\n", [1234567, -2]),
        ("id,reward\na,TRUE\nb,false\n", [1, 0]),
        ('"id", "reward"\n"a", "1.234"\n"b", "0.5"\n', [1.234, 0.5]),
    ],
)
def test_a_table_of_results(study, text, meant):
    assert [one.reward for one in uploaded_rows(text.encode(), study)[0]] == meant


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("id;reward\na;1,234\nb;987\n", "is '1,234' the number 1.234 or 1234? Write numbers with a decimal point"),
        ('id,reward\na,"1,234"\n', "is '1,234' the number 1.234 or 1234?"),
        ("id;reward\na;1,5\nb;1.5\n", "has a decimal point, and '1,5' a decimal comma"),
        ("id,reward\na,oops\n", "row 2: 'oops' in column 'reward' is no number"),
        ("<!DOCTYPE html>", "is a web page"),
        ("", "the table is empty"),
        ("id,reward\na\n", "row 2 has another number of cells"),
    ],
)
def test_a_table_with_two_meanings_is_refused(study, text, words):
    with pytest.raises(InvalidInput) as caught:
        uploaded_rows(text.encode(), study)
    assert words in str(caught.value)
    assert "--" not in str(caught.value)


def test_how_numbers_were_read_is_said(client, people):
    lease = client.post(f"{PAINT}/leases", json={}, headers=people["measurer"]).json()["measurements"]
    table = "id\treward\tkey\n" + "".join(f"{one['id']}\t−2\t{one['key']}\n" for one in lease)
    headers = {**people["measurer"], "content-type": "text/csv"}
    first, again = (client.post(f"{PAINT}/results", content=table.encode(), headers=headers).json() for _ in range(2))
    assert first == again
    assert first["notes"] == [
        "the table: we read signs that are not on a keyboard as plain ones: '−2' is -2 (column 'reward')."
    ]
    plain = client.post(f"{PAINT}/results", json={"results": []}, headers=people["measurer"])
    assert "notes" not in plain.json()
