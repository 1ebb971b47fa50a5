"""Laws of tables that are written for spreadsheets: nothing in them is computed, and every text comes back."""

import csv
import io
import re
import warnings

import pytest
from budgets import budget
from hypothesis import given, settings, strategies as st

from surepick.errors import InvalidInput
from surepick.tables import read_table, row_ids, write_table
from surepick.tables.content import escaped, unescaped

cases = settings(max_examples=budget(150))
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
FORMULAS = st.builds(
    "".join,
    st.lists(
        st.sampled_from(
            [
                "'",
                "=",
                "+",
                "-",
                "@",
                "\t",
                "\r",
                "\n",
                ",",
                ";",
                "|",
                "\uff1d",
                "\uff0b",
                "\uff0d",
                "\uff20",
                '"',
                "#",
                "1",
                "x",
            ]
        )
    ),
)
ANY = TEXTS | FORMULAS
DANGEROUS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # OWASP's list
SPLITS = re.compile(r"[;|\t\r\n]")


@cases
@given(ANY)
def test_an_escaped_text_comes_back_and_begins_no_formula(text):
    assert unescaped(escaped(text)) == text
    assert not escaped(text).startswith(DANGEROUS)


@cases
@given(ANY)
def test_no_part_of_it_begins_one_where_a_spreadsheet_splits(text):
    assert not any(part.startswith(("=", "+", "-", "@", "\uff1d")) for part in SPLITS.split(escaped(text)))


@pytest.mark.parametrize(
    "text", ["\uff1d1+1", "\uff0b1", "\uff0d1", "\uff201", "\n=1+1", "a;=1+1", "a\t+1", "a|-1", "a\n@x"]
)
def test_what_was_written_as_it_is_once(text):
    assert escaped(text) != text
    assert unescaped(escaped(text)) == text
    assert escaped("a-1, b=2 (x+y)") == "a-1, b=2 (x+y)"


@cases
@given(ANY, ANY)
def test_two_texts_are_never_escaped_alike(first, second):
    assert (escaped(first) == escaped(second)) == (first == second)


@cases
@given(texts=st.lists(ANY, min_size=1, max_size=5), name=st.sampled_from(["t.csv", "t.jsonl"]))
def test_what_is_written_is_read_as_equal_texts(tmp_path_factory, texts, name):
    path = tmp_path_factory.mktemp("t") / name
    write_table(path, {"id": texts, "key": list(reversed(texts)), "reward": [-1.5] * len(texts)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = read_table(path)
    assert table.text("id") == tuple(texts)
    assert table.text("key") == tuple(reversed(texts))
    assert table.numbers("reward").tolist() == [-1.5] * len(texts)


@cases
@given(st.lists(ANY, min_size=1, max_size=5))
def test_no_text_of_a_written_file_is_a_formula_and_no_number_is_altered(tmp_path_factory, texts):
    """As any other reader of CSV sees the file."""
    path = tmp_path_factory.mktemp("t") / "t.csv"
    write_table(path, {"id": texts, "reward": [-0.25] * len(texts), "count": [-3] * len(texts)})
    header, *rows = csv.reader(io.StringIO(path.read_bytes().decode(), newline=""))
    assert header == ["id", "reward", "count"]
    assert [row[0] for row in rows] == [escaped(text) for text in texts]
    assert not any(row[0].startswith(DANGEROUS) for row in rows)
    assert all(row[1:] == ["-0.25", "-3"] for row in rows)


@cases
@given(ANY.filter(str.strip))
def test_an_id_is_found_again_with_its_spaces_where_it_is_known(tmp_path_factory, name):
    path = tmp_path_factory.mktemp("t") / "t.csv"
    write_table(path, {"id": [name], "reward": [None]})
    table = read_table(path)
    assert row_ids(table, "id") == (name.strip(),)
    assert row_ids(table, "id", known={name}) == (name,)


@pytest.mark.parametrize(
    ("cell", "text"), [("'=x", "=x"), ("''=x", "'=x"), ("'-5", "-5"), ("'a", "'a"), ("=x", "=x"), ("'", "'"), ("", "")]
)
def test_a_users_own_table_loses_the_apostrophe_that_a_spreadsheet_hides(tmp_path, cell, text):
    (tmp_path / "t.csv").write_text(f"id,x\n{cell},1\n")
    assert read_table(tmp_path / "t.csv").text("id") == (text,)


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_a_text_that_no_csv_file_can_hold_is_refused(tmp_path, text):
    with pytest.raises(InvalidInput, match="cannot be written: a text holds"):
        write_table(tmp_path / "t.csv", {"id": [text], "x": [1]})
    assert not list(tmp_path.iterdir())
