"""The column of what is preferred: the cheapest candidate of those that are certified is named."""

import json

import pytest
from command_line import surepick

import surepick as sp


def prices(write, *rows):
    """A table of two good candidates, and a bad one, with a price each; two rows of each."""
    body = "".join(f"{name},{value + step:.2f},{price}\n" for name, value, price in rows for step in (-0.02, 0.02))
    return write(f"name,yield,price\n{body}", "prices.csv")


RIVALS = (("dear", 0.9, 7), ("fair", 0.89, 3), ("free", 0.1, 0))
PREFERRED = (
    "--id",
    "name",
    "--reward",
    "yield",
    "--noise",
    "subgaussian:0.05",
    "--epsilon",
    "0.1",
    "--prefer",
    "price",
)


def test_the_cheapest_that_is_certified_is_named(write, tmp_path):
    words = ("run", prices(write, *RIVALS), *PREFERRED)
    code, output, _ = surepick(*words, "--certificate", tmp_path / "c.json")
    assert code == 0
    assert "Recommended: fair   certified" in output
    assert json.loads(surepick(*words, "--format", "json")[1])["policy"]["prefer"] == [7, 3, 0]
    assert sp.verify_certificate(tmp_path / "c.json").holds


def test_a_study_is_created_with_what_is_preferred(write, sqlite_url):
    table = write("name,price\na,3\nb,1\n")
    words = ("create", sqlite_url, "x", "--arms", table, "--id", "name", "--epsilon", "0.1", "--prefer", "price")
    assert surepick(*words)[0] == 0
    assert sp.open_study(sqlite_url, "x").policy.spec["prefer"] == (3.0, 1.0)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ((("a", 1.0, 3), ("b", 0.5, ""), ("c", 0.2, 1)), "price"),
        ((("a", 1.0, 3), ("b", 0.5, 2), ("b", 0.4, 1)), "says 1 of candidate 'b', and 2 in an earlier row"),
    ],
)
def test_a_column_that_does_not_say_what_each_costs_is_refused(write, refused, rows, said):
    assert said in refused("run", prices(write, *rows), *PREFERRED)
