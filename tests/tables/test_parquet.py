"""Parquet files, whose numbers go straight into the array of the arms."""

from pathlib import Path

import numpy as np
import pytest

from surepick.errors import InvalidInput
from surepick.tables import grouped_arms, read_arms, read_table, write_table


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
    monkeypatch.setattr("surepick.tables.parquet.BATCH_ENTRIES", 4)
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
        (
            {"sku": ["a", "b"], "x": [1.0, None]},
            {"id": "sku", "features": "x"},
            "1 of 2 arms have NaN or infinite features: 'b'",
        ),
        (
            {"sku": ["a", "b"], "x": [1, None]},
            {"id": "sku", "features": "x"},
            "1 of 2 arms have NaN or infinite features: 'b'",
        ),
        (
            {"sku": ["a", "b"], "x": [None, None]},
            {"id": "sku", "features": "x"},
            "2 of 2 arms have NaN or infinite features",
        ),
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

    monkeypatch.setattr("surepick.tables.parquet.BATCH_ENTRIES", 9)
    numbers = np.random.default_rng(1).standard_normal((10, 3)).astype(np.float32)
    kind = pyarrow.list_(pyarrow.float32(), 3 if fixed else -1)
    path = parquet({"sku": list("abcdefghij"), "e": pyarrow.array(list(numbers), kind), "x": np.arange(10.0)})
    arms = read_arms(path, "sku", "x,e", intercept=True)
    assert arms.columns == ("x", "e[0]", "e[1]", "e[2]", "intercept")
    np.testing.assert_array_equal(arms.features, np.column_stack([np.arange(10.0), numbers, np.ones(10)]))
    assert read_arms(path, "sku").columns == ("x",)


def test_many_float32_numbers_stay_float32(parquet, monkeypatch):
    monkeypatch.setattr("surepick.tables.arms.SINGLE_ABOVE", 5)
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
