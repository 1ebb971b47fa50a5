"""Tables: what is read is what the file says, and each kind of bad file has its own words."""

import builtins
import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from surepick.errors import InvalidInput
from surepick.tables import (
    Table,
    column_names,
    grouped_arms,
    read_arms,
    read_json_lines,
    read_table,
    row_ids,
    write_json_lines,
    write_table,
)
from surepick.tables import arms as arms_module
from surepick.tables import parquet as parquet_module
from surepick.tables import table as table_module


@pytest.fixture
def olympus(tmp_path):
    def olympus(rows: str, goal: str = "minimize", kind: str = "continuous") -> Path:
        folder = tmp_path / "dataset"
        folder.mkdir()
        (folder / "data.csv").write_text(rows)
        config = {
            "parameters": [{"name": "solvent", "type": kind}, {"name": "heat", "type": "continuous"}],
            "measurements": [{"name": "loss", "type": "continuous"}],
            "default_goal": goal,
        }
        (folder / "config.json").write_text(json.dumps(config))
        return folder

    return olympus


# reading


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_byte_order_mark_and_windows_line_ends_change_nothing(write, newline, mark):
    path = write(mark + newline.join(["sku, x,name", '007,1.50,"a, b"', "", "08,-2e3,c", ""]))
    table = read_table(path)
    assert list(table.columns) == ["sku", "x", "name"]
    assert table.text("sku") == ("007", "08")
    assert table.text("name") == ("a, b", "c")
    np.testing.assert_array_equal(table.numbers("x"), [1.5, -2000.0])


def test_gzip_is_unpacked(write):
    assert read_table(write(gzip.compress(b"a,b\n1,2\n"), "arms.csv.gz")).text("b") == ("2",)


def test_a_cut_gzip_file_is_refused(write):
    content = gzip.compress(b"a,b\n" + b"1,2\n" * 100)
    with pytest.raises(InvalidInput, match="not a complete gzip file"):
        read_table(write(content[:-9], "arms.csv.gz"))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InvalidInput, match=r"no file .*nowhere\.csv"):
        read_table(tmp_path / "nowhere.csv")


@pytest.mark.parametrize("content", ["", "\n \n", "\ufeff"])
def test_an_empty_file_is_refused(write, content):
    with pytest.raises(InvalidInput, match=r"arms\.csv is empty"):
        read_table(write(content))


def test_a_header_alone_is_refused(write):
    with pytest.raises(InvalidInput, match=r"has a header \(sku, x\) and no rows"):
        read_table(write("sku,x\n"))


def test_a_ragged_row_is_named_by_its_line(write):
    with pytest.raises(InvalidInput, match="line 3: 1 cells where 2 columns"):
        read_table(write("sku,x\na,1\nb\n"))


def test_a_repeated_column_name_is_refused(write):
    with pytest.raises(InvalidInput, match="more than one column named 'x'"):
        read_table(write("x,y,x\n1,2,3\n"))


def test_a_column_without_a_name_is_named_by_its_place(write):
    """As the index that a data frame writes in front."""
    assert tuple(read_table(write(",x\n0,2\n")).columns) == ("column 1", "x")


def test_bytes_that_are_not_utf8_are_named(write):
    with pytest.raises(InvalidInput, match="not UTF-8 text: byte 0xe9 in line 2"):
        read_table(write(b"name,x\ncaf\xe9,1\n"))


def test_an_open_quote_is_refused(write):
    with pytest.raises(InvalidInput, match="not comma-separated text"):
        read_table(write('name,x\n"a,1\nb,2\n'))


def test_a_plain_folder_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match=r"without data\.csv and config\.json"):
        read_table(tmp_path)


def test_an_unknown_column_is_answered_with_the_known(write):
    with pytest.raises(InvalidInput, match="no column 'y'; it has 'sku', 'x'"):
        read_table(write("sku,x\na,1\n")).column("y")


def test_a_cell_that_is_not_a_number_is_named(write):
    table = read_table(write("x\n1\noops\n1_000\n"))
    with pytest.raises(InvalidInput, match=r"'x' is not numeric: 2 of 3 cells .*row 3: 'oops', row 4: '1_000'"):
        table.numbers("x")


# writing, and reading back


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
    real = table_module.as_number
    monkeypatch.setattr(table_module, "as_number", lambda text, **more: parsed.append(text) or real(text, **more))
    read_arms(write("sku,x,y\na,1,2\nb,3,4\n"), "sku")
    assert sorted(filter(str.isdigit, parsed)) == ["1", "2", "3", "4"]


@pytest.mark.parametrize(("line", "words"), [("{", "line 2: not JSON"), ("[1]", "line 2: a JSON object is needed")])
def test_a_bad_json_line_is_named(write, line, words):
    with pytest.raises(InvalidInput, match=words):
        read_json_lines(write('{"a":1}\n' + line + "\n", "log.jsonl"))


def test_json_objects_with_other_keys_are_no_table(write):
    with pytest.raises(InvalidInput, match="object 2: keys"):
        read_table(write('{"a":1}\n{"b":1}\n', "t.jsonl"))


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


# ids


def test_several_id_columns_are_joined_as_written(write):
    path = write("n,theta,r,t,y\n6,0,1.50,0.7,1\n6,0,1.50,0.70,2\n")
    assert read_arms(path, "n, theta,r,t").ids == ("6/0/1.50/0.7", "6/0/1.50/0.70")
    assert read_arms(path, ["t"]).ids == ("0.7", "0.70")


def test_without_an_id_the_row_number_is_the_id(write):
    arms = read_arms(write("name,x\na,1\nb,2\n"))
    assert arms.ids == ("0", "1")
    assert arms.columns == ("x",)


def test_a_column_whose_name_holds_a_comma_is_found_whole(write):
    table = read_table(write('"a,b",a\n1,2\n'))
    assert column_names(table, "a,b") == ("a,b",)
    assert column_names(table, ["a,b", "a"]) == ("a,b", "a")


@pytest.mark.parametrize("names", ["", ",", "x,x", ()])
def test_no_column_or_one_named_twice_is_refused(write, names):
    with pytest.raises(InvalidInput, match="at least one column, and each of them once"):
        column_names(read_table(write("x\n1\n")), names)


def test_repeated_ids_are_refused_where_rows_are_arms(write):
    with pytest.raises(InvalidInput, match=r"1 ids are repeated .*'a'"):
        read_arms(write("sku,x\na,1\nb,2\na,1\n"), "sku")


def test_ids_that_only_look_equal_once_joined_are_refused(write):
    with pytest.raises(InvalidInput, match="are both the id 'a/b/c'"):
        read_arms(write("p,q,x\na/b,c,1\na,b/c,2\n"), "p,q")


def test_an_empty_id_is_refused(write):
    with pytest.raises(InvalidInput, match=r"row 3: the id \(sku\) is empty"):
        read_arms(write("sku,x\na,1\n,2\n"), "sku")


# features


def test_features_are_the_other_numeric_columns(write):
    arms = read_arms(write("sku,x,colour,y\na,1,red,4\nb,2,blue,5\n"), "sku")
    assert arms.columns == ("x", "y")
    np.testing.assert_array_equal(arms.features, [[1, 4], [2, 5]])
    assert arms.preparation == ()


def test_a_composite_id_lends_its_numeric_columns_when_there_are_no_others(write):
    arms = read_arms(write("n,t,name\n6,0.7,a\n7,0.8,b\n"), "n,t,name")
    assert arms.columns == ("n", "t")
    np.testing.assert_array_equal(arms.features, [[6, 0.7], [7, 0.8]])


def test_a_single_id_column_is_no_feature(write):
    assert read_arms(write("sku\n1\n2\n"), "sku").features.shape == (2, 0)


def test_a_named_text_column_is_one_hot_encoded(write):
    arms = read_arms(write("sku,x,colour\na,1,red\nb,2,blue\nc,3,red\n"), "sku", "colour,x")
    assert arms.columns == ("colour=blue", "colour=red", "x")
    np.testing.assert_array_equal(arms.features, [[0, 1, 1], [1, 0, 2], [0, 1, 3]])


@pytest.mark.parametrize("features", [None, "x"])
def test_a_numeric_column_with_a_slip_is_refused_not_dropped(write, features):
    with pytest.raises(InvalidInput, match=r"'x' is not numeric: 1 of 3 cells .*row 3: 'about 2'"):
        read_arms(write("sku,x\na,1\nb,about 2\nc,3\n"), "sku", features)


@pytest.mark.parametrize(("cell", "words"), [("", "empty"), (" ", "empty"), ("n/a", "'n/a'"), ("NaN", "'NaN'")])
def test_a_missing_feature_is_refused(write, cell, words):
    with pytest.raises(InvalidInput, match=rf"1 of 3 rows miss a cell \(row 3: 'x' is {words}\)\. .*--drop-missing"):
        read_arms(write(f"sku,x\na,1\nb,{cell}\nc,3\n"), "sku")


@pytest.mark.parametrize("standardize", [False, True])
def test_features_that_are_not_finite_are_named_by_id(write, standardize):
    with pytest.raises(InvalidInput, match="2 of 3 arms have NaN or infinite features: 'b', 'c'"):
        read_arms(write("sku,x\na,1\nb,-inf\nc,inf\n"), "sku", standardize=standardize)


def test_standardize_then_intercept(write):
    arms = read_arms(write("sku,x,y\na,1,1e-9\nb,2,2e-9\nc,6,0\n"), "sku", standardize=True, intercept=True)
    assert arms.columns == ("x", "y", "intercept")
    assert arms.preparation == ("standardize", "intercept")
    np.testing.assert_allclose(arms.features[:, :2].mean(axis=0), 0, atol=1e-15)
    np.testing.assert_allclose(arms.features[:, :2].std(axis=0), 1, rtol=1e-14)
    np.testing.assert_array_equal(arms.features[:, 2], 1)


def test_a_spread_of_one_rounding_unit_is_standardized_not_lost(write):
    arms = read_arms(write("x\n1e16\n10000000000000002\n10000000000000004\n"), standardize=True)
    np.testing.assert_allclose(arms.features[:, 0], [-np.sqrt(1.5), 0, np.sqrt(1.5)], rtol=1e-12)


def test_an_intercept_alone_is_a_feature(write):
    np.testing.assert_array_equal(read_arms(write("sku\na\nb\n"), "sku", intercept=True).features, [[1], [1]])


@pytest.mark.parametrize("option", ["standardize", "intercept"])
def test_a_constant_feature_column_is_named_where_it_is_useless(write, option):
    with pytest.raises(InvalidInput, match=r"feature column 'y' is constant \(7 for every arm\)"):
        read_arms(write("sku,x,y\na,1,7\nb,2,7\n"), "sku", **{option: True})


def test_a_constant_feature_column_is_a_legitimate_intercept(write):
    assert read_arms(write("sku,x,y\na,1,7\nb,2,7\n"), "sku").columns == ("x", "y")


def test_an_intercept_does_not_replace_a_column_of_that_name(write):
    with pytest.raises(InvalidInput, match="already named 'intercept'"):
        read_arms(write("sku,intercept\na,1\nb,2\n"), "sku", intercept=True)


# repeats


def test_rows_of_one_id_are_one_arm_in_order_of_first_appearance(write):
    table = read_table(write("sku,x,y\nb,2,5\na,1,6\nb,2,7\n"))
    grouped = grouped_arms(table, "sku", exclude=("y",))
    assert grouped.arms.ids == ("b", "a")
    assert grouped.arms.columns == ("x",)
    np.testing.assert_array_equal(grouped.arms.features, [[2], [1]])
    np.testing.assert_array_equal(grouped.arm_of_row, [0, 1, 0])


def test_repeats_are_standardized_as_arms_not_as_rows(write):
    table = read_table(write("sku,x,y\nb,2,5\na,1,6\nb,2,7\n"))
    np.testing.assert_array_equal(
        grouped_arms(table, "sku", exclude=("y",), standardize=True).arms.features, [[1], [-1]]
    )


def test_repeats_that_differ_in_a_feature_are_named(write):
    table = read_table(write("sku,x,y\nb,2,5\na,1,6\nb,3,7\n"))
    with pytest.raises(InvalidInput, match=r"rows of id 'b' differ in the feature 'x' \(2 and 3\)"):
        grouped_arms(table, "sku", exclude=("y",))


# Parquet files, whose numbers go straight into the array of the arms


@pytest.fixture
def parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table as write

    def parquet(columns: dict, **options) -> Path:
        write(pyarrow.table(columns), tmp_path / "t.parquet", **options)
        return tmp_path / "t.parquet"

    return parquet


CELLS = {
    "sku": ["b", "a", "ü", "c"],
    "x": [1.5, -2e300, 5e-324, 0.1],
    "n": [1, 2, 2**53 - 1, -7],
    "colour": ["red", "blue", "red", "green"],
    "typed": ["1", "2.5", "-3", "4"],
    "flag": [True, False, True, True],
}


@pytest.mark.parametrize(
    ("id", "features"),
    [(None, None), ("sku", None), ("sku", "x,colour,n"), ("sku", ["typed", "x"]), ("sku,n", None), (None, "flag,x")],
)
@pytest.mark.parametrize("options", [{}, {"standardize": True}, {"intercept": True}])
def test_parquet_and_csv_give_equal_arms(parquet, tmp_path, monkeypatch, id, features, options):  # noqa: A002
    monkeypatch.setattr(parquet_module, "BATCH_ENTRIES", 4)
    write_table(tmp_path / "t.csv", CELLS)
    path = parquet(CELLS, row_group_size=3)
    assert read_arms(path, id, features, **options) == read_arms(tmp_path / "t.csv", id, features, **options)


@pytest.mark.parametrize(
    "cells",
    [
        {"x": np.array([1, 2, 3], np.uint8), "y": np.array([1.5, 2.5, 0.1], np.float32)},
        {"x": np.array([0.5, 1.5, 2.0], np.float16), "y": [1, 2, 2**62 + 1]},
        {"n": [1, 2, 3], "t": [0.7, 1.0, 2.0]},
    ],
)
def test_numbers_of_any_kind_are_read_as_the_table_reads_them(parquet, cells):
    path = parquet(cells)
    arms, table = read_arms(path), grouped_arms(read_table(path)).arms
    assert arms == table
    assert arms.features.dtype == np.float64
    assert not arms.features.flags.writeable


def test_a_composite_parquet_id_lends_its_numbers(parquet):
    arms = read_arms(parquet({"n": [6, 7], "t": [0.7, 1.0]}), "n,t")
    assert arms.ids == ("6/0.7", "7/1")
    np.testing.assert_array_equal(arms.features, [[6, 0.7], [7, 1.0]])


@pytest.mark.parametrize(
    ("cells", "options", "message"),
    [
        ({"sku": ["a", "b"], "x": [1.0, None]}, {"id": "sku"}, "1 of 2 arms have NaN or infinite features: 'b'"),
        ({"sku": ["a", "b"], "x": [1, None]}, {"id": "sku"}, "1 of 2 arms have NaN or infinite features: 'b'"),
        ({"sku": ["a", "b"], "x": [None, None]}, {"id": "sku"}, "2 of 2 arms have NaN or infinite features"),
        ({"sku": ["a", "a"], "x": [1.0, 2.0]}, {"id": "sku"}, "1 ids are repeated"),
        ({"sku": ["a", None], "x": [1.0, 2.0]}, {"id": "sku"}, r"row 2: the id \(sku\) is empty"),
        (
            {"x": [1.0, 2.0], "w": ["p", "q"], "sku": ["a", None]},
            {"id": "sku", "features": "x"},
            r"1 of 2 rows miss a cell \(row 2: the id \(sku\) is empty\)",
        ),
        ({"x": [1.0, 2.0]}, {"features": "y"}, "no column 'y'; it has 'x'"),
        ({"x": [1.0, 2.0]}, {"id": "sku"}, "no column 'sku'; it has 'x'"),
        ({"x": ["1", "oops", "2"]}, {}, r"'x' is not numeric: 1 of 3 cells"),
        ({"x": [1.0, 1.0]}, {"standardize": True}, r"feature column 'x' is constant \(1 for every arm\)"),
        ({"x": [1.0, 1.0]}, {"intercept": True}, r"feature column 'x' is constant \(1 for every arm\)"),
        ({"intercept": [1.0, 2.0]}, {"intercept": True}, "already named 'intercept'"),
        ({"x": np.zeros(0)}, {}, "has no rows"),
        ({"e": [[1.0], [1.0, 2.0]]}, {"features": "e"}, "row 2: 2 numbers in the column 'e' where 1 were expected"),
        ({"e": [[], [1.0, 2.0]]}, {"features": "e"}, "row 1: no numbers in the column 'e'"),
        ({"e": [[1.0, 2.0], None]}, {"features": "e"}, "1 of 2 arms have NaN or infinite features: '1'"),
        ({"e": [[1.0, 2.0], [3.0, None]]}, {"features": "e"}, "1 of 2 arms have NaN or infinite features: '1'"),
    ],
)
def test_bad_parquet_files_are_refused_in_the_words_of_other_tables(parquet, cells, options, message):
    with pytest.raises(InvalidInput, match=message):
        read_arms(parquet(cells), **options)


def test_a_damaged_parquet_file_is_refused(parquet, write):
    with pytest.raises(InvalidInput, match="not a readable Parquet file"):
        read_arms(write("a,b\n1,2\n", "u.parquet"))
    path = parquet({"x": np.random.default_rng(0).standard_normal(1000)}, use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[4:40] = bytes(36)
    with pytest.raises(InvalidInput, match="not a readable Parquet file"):
        read_arms(write(bytes(content), "t.parquet"))
    with pytest.raises(InvalidInput, match=r"no file .*nowhere\.parquet"):
        read_arms(path.with_name("nowhere.parquet"))


@pytest.mark.parametrize("fixed", [False, True])
def test_a_column_of_lists_is_a_feature_a_number(parquet, monkeypatch, fixed):
    import pyarrow

    monkeypatch.setattr(parquet_module, "BATCH_ENTRIES", 9)
    numbers = np.random.default_rng(1).standard_normal((10, 3)).astype(np.float32)
    kind = pyarrow.list_(pyarrow.float32(), 3 if fixed else -1)
    path = parquet({"sku": list("abcdefghij"), "e": pyarrow.array(list(numbers), kind), "x": np.arange(10.0)})
    arms = read_arms(path, "sku", "x,e", intercept=True)
    assert arms.columns == ("x", "e[0]", "e[1]", "e[2]", "intercept")
    np.testing.assert_array_equal(arms.features, np.column_stack([np.arange(10.0), numbers, np.ones(10)]))
    assert read_arms(path, "sku").columns == ("x",)


def test_many_float32_numbers_stay_float32(parquet, monkeypatch):
    monkeypatch.setattr(arms_module, "SINGLE_ABOVE", 5)
    numbers = np.random.default_rng(2).standard_normal((3, 2)).astype(np.float32)
    path = parquet({"x": numbers[:, 0], "y": numbers[:, 1], "z": [1.0, 2.0, 4.0]})
    single = read_arms(path, features="x,y")
    assert single.features.dtype == np.float32
    np.testing.assert_array_equal(single.features, numbers)
    for options in ({}, {"features": "x,y", "standardize": True}):
        assert read_arms(path, **options).features.dtype == np.float64


PROGRAM = """
import resource, sys
import numpy as np, pyarrow.parquet
from surepick.tables import read_arms
def peak(): return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
before = peak()
arms = read_arms(sys.argv[1], features=sys.argv[2] or None)
assert arms.features.dtype == np.float32, arms.features.dtype
print((peak() - before) / (arms.features.nbytes / 2**20))
"""


@pytest.mark.slow
@pytest.mark.parametrize("features", ["", "e"])
def test_a_large_parquet_file_is_held_once(tmp_path, features):
    """400 MB of numbers; the file, mapped, counts where its pages are read, and takes 400 MB too."""
    import subprocess
    import sys

    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    rng, shape = np.random.default_rng(3), (10_000, 500)
    for group in range(20):
        numbers = rng.standard_normal(shape, dtype=np.float32)
        flat = pa.FixedSizeListArray.from_arrays(pa.array(numbers.reshape(-1)), shape[1])
        columns = {"e": flat} if features else {f"x{column}": numbers[:, column] for column in range(shape[1])}
        table = pa.table(columns)
        if group == 0:
            writer = ParquetWriter(tmp_path / "t.parquet", table.schema, use_dictionary=False)
        writer.write_table(table)
    writer.close()
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "t.parquet"), features]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 2.4


# Olympus folders


def test_an_olympus_folder_pools_rows_of_equal_parameters(olympus):
    folder = olympus("water,1.0,5\noil,2.0,6\nwater,1.0,7\n", kind="categorical")
    table = read_table(folder)
    assert (table.parameters, table.measurements, table.minimize) == (("solvent", "heat"), ("loss",), True)
    arms = read_arms(folder)
    assert arms.ids == ("water/1.0", "oil/2.0")
    assert arms.columns == ("solvent=oil", "solvent=water", "heat")
    np.testing.assert_array_equal(arms.features, [[0, 1, 1], [1, 0, 2]])


@pytest.mark.parametrize("goal", ["maximise", None, ["minimize"]])
def test_an_olympus_folder_without_a_known_goal_is_refused(olympus, goal):
    with pytest.raises(InvalidInput, match="not an Olympus configuration"):
        read_table(olympus("water,1.0,5\n", goal=goal))


def test_an_olympus_folder_with_too_many_columns_is_refused(olympus):
    with pytest.raises(InvalidInput, match=r"data\.csv, line 1: 4 cells where 3 columns"):
        read_table(olympus("water,1.0,5,6\n"))


@pytest.mark.parametrize(
    ("name", "arms", "columns"),
    [("photo_wf3", 1020, 4), ("oer_plate_3496", 2121, 6), ("suzuki", 247, 4), ("fullerenes", 216, 3)],
)
def test_the_olympus_data_sets_have_the_published_sizes(shared_data, name, arms, columns):
    assert read_arms(shared_data / "olympus" / name).features.shape == (arms, columns)


def test_categorical_olympus_parameters_are_one_hot_encoded(shared_data):
    arms = read_arms(shared_data / "olympus" / "buchwald_a")
    assert arms.features.shape == (792, 32)
    assert set(np.unique(arms.features)) == {0.0, 1.0}
    np.testing.assert_array_equal(arms.features.sum(axis=1), 4)


def test_ids_with_leading_zeros_stay_text(shared_data):
    arms = read_arms(shared_data / "nasbench_macro" / "nas_bench_macro_cifar10.csv.gz", "arch", "params,flops")
    assert arms.num_arms == 6561
    assert arms.ids[0] == "00000000"


def test_a_table_built_in_memory_serves_too():
    table = Table("memory", {"sku": ("a", "b"), "x": np.array([1.0, 2.0])})
    assert grouped_arms(table, "sku").arms.columns == ("x",)
