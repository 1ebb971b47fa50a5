"""Tables that are written are read back to the bit."""

import builtins

import numpy as np
import pytest

from surepick.errors import InvalidInput
from surepick.tables import read_arms, read_json_lines, read_table, row_ids, write_json_lines, write_table
from surepick.tables.numbers import cell_number


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.jsonl"])
def test_what_is_written_is_read_back_to_the_bit(tmp_path, name):
    numbers = np.array([0.1, -1e300, 3.0, 5e-324])
    write_table(tmp_path / name, {"id": ["a", "b,c", "é", '"'], "x": numbers})
    table = read_table(tmp_path / name)
    assert table.text("id") == ("a", "b,c", "é", '"')
    np.testing.assert_array_equal(table.numbers("x"), numbers)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_whole_numbers_of_a_parquet_file_are_ids_without_a_point(tmp_path):
    write_table(tmp_path / "t.parquet", {"n": [6, 7], "t": [0.7, 1.0]})
    assert row_ids(read_table(tmp_path / "t.parquet"), "n,t") == ("6/0.7", "7/1")


def test_columns_of_different_lengths_are_not_written(tmp_path):
    with pytest.raises(InvalidInput, match="different lengths"):
        write_table(tmp_path / "t.csv", {"a": [1], "b": [1, 2]})
    assert not list(tmp_path.iterdir())


def test_json_lines_round_trip(tmp_path):
    objects = [{"a": 1, "b": None}, {"a": "é\u2028", "b": [1.5]}]
    write_json_lines(tmp_path / "log.jsonl", objects)
    assert read_json_lines(tmp_path / "log.jsonl") == objects


def test_a_number_that_json_cannot_carry_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="cannot be written as JSON"):
        write_json_lines(tmp_path / "log.jsonl", [{"a": float("nan")}])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl", "t.parquet"])
def test_half_a_character_is_refused_before_anything_is_written(tmp_path, name):
    with pytest.raises(InvalidInput, match="half of a character"):
        write_table(tmp_path / name, {"id": ["a", "\ud800"]})
    assert not list(tmp_path.iterdir())


def test_cells_are_parsed_once(write, monkeypatch):
    parsed = []
    noted = lambda text, **more: parsed.append(text) or cell_number(text, **more)  # noqa: E731
    monkeypatch.setattr("surepick.tables.table.cell_number", noted)
    read_arms(write("sku,x,y\na,1,2\nb,3,4\n"), "sku")
    assert sorted(filter(str.isdigit, parsed)) == ["1", "2", "3", "4"]


@pytest.mark.parametrize(("line", "words"), [("{", "line 2: not JSON"), ("[1]", "line 2: a JSON object is needed")])
def test_a_bad_json_line_is_named(write, line, words):
    with pytest.raises(InvalidInput, match=words):
        read_json_lines(write('{"a":1}\n' + line + "\n", "log.jsonl"))


def test_a_json_object_without_a_field_misses_that_cell(write):
    table = read_table(write('{"a":1}\n{"b":1}\n', "t.jsonl"))
    assert (table.missing_rows("a"), table.missing_rows("b")) == ([1], [0])


def test_a_file_that_is_not_parquet_is_refused(write):
    with pytest.raises(InvalidInput, match="not a readable Parquet file"):
        read_table(write("a,b\n1,2\n", "t.parquet"))


def test_parquet_without_pyarrow_names_the_command(write, monkeypatch):
    real_import = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InvalidInput, match=r'pip install "surepick\[tables\]"'):
        read_table(write("", "t.parquet"))
