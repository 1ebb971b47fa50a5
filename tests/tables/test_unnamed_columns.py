"""Columns that nobody named as features decide nothing, and what numbers the rows is none."""

import warnings

import numpy as np
import pytest
from budgets import budget
from hypothesis import given, settings, strategies as st
from together import of_each

import surepick as sp
from surepick.core.arms import counts
from surepick.tables import TableWarning, grouped_arms, read_arms, read_table, write_table

QUESTION = {"epsilon": 0.5, "delta": 0.05, "noise": "subgaussian:0.3"}
UNFIT = {  # cells of a column that nobody named, one a row of b, c, d -> what is said of it
    "1,,3": "misses a cell of 'c'",
    "1,n/a,3": "misses a cell of 'c'",
    "1,2,about 3": "'about 3'",
    "1,2%,3": "look like percentages",
    "1,inf,3": "no finite number of 'c'",
}


def quietly(read):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        return read()


@pytest.mark.parametrize(("name", "column"), [("index.csv", "column 1"), ("index_unnamed.csv", "Unnamed: 0")])
def test_a_number_of_the_row_is_no_feature(world, name, column):
    with pytest.warns(TableWarning, match=f"column '{column}' looks like row numbers"):
        arms = read_arms(world / name, id="id")
    assert arms.columns == ("x",)
    assert read_arms(world / name, id="id", features=[column, "x"]).columns == (column, "x")


@of_each(
    "header",
    [
        *("", "Unnamed: 0", "Unnamed: 0.1", "unnamed: 0_level_1", "__index_level_0__", "...1", "__EMPTY", "level_0"),
        *("index", "Index", "#", "nr", "No.", "row_names", "row.names", "Row Number", "S. No.", "Column1"),
    ],
)
@of_each("start", [0, 1])
def test_names_of_numbering_columns(write, header, start):
    path = write(f"{header},id,x\n" + "".join(f"{start + row},{name},{row / 2}\n" for row, name in enumerate("pqr")))
    assert quietly(lambda: read_arms(path, "id")).columns == ("x",)


def test_an_index_that_measures_is_a_feature(write):
    assert read_arms(write("id,index\na,1.33\nb,1.4\n"), "id").columns == ("index",)


@settings(max_examples=budget(100))
@given(st.permutations(range(6)), st.integers(-1, 3))
def test_what_counts(order, start):
    assert counts(np.array(order, float) + start) == (start in (0, 1))


def test_parquet_files_have_numbering_columns_too(tmp_path):
    pytest.importorskip("pyarrow")
    rows = {"sku": ["a", "b"], "__index_level_0__": [5, 7], "index": [0, 1], "x": [0.5, 0.25]}
    write_table(tmp_path / "t.parquet", rows)
    assert quietly(lambda: read_arms(tmp_path / "t.parquet", "sku")).columns == ("x",)
    assert quietly(lambda: read_arms(tmp_path / "t.parquet", "sku", blocks=True)).num_columns == 1


@pytest.mark.parametrize("cells", UNFIT)
def test_a_column_that_can_be_no_feature_is_set_aside(write, cells):
    rows = zip("bcd", cells.split(","), strict=True)
    path = write("id,x,ph\n" + "".join(f"{name},{place},{cell}\n" for place, (name, cell) in enumerate(rows)))
    with pytest.warns(TableWarning, match="concerns only policies that use features") as said:
        arms = read_arms(path, "id", drop_missing=True)
    assert UNFIT[cells] in str(said[0].message)
    assert (arms.ids, arms.columns) == (("b", "c", "d"), ("x",))
    sp.make_policy("certified-independent", arms, **QUESTION)
    with pytest.raises(
        sp.InvalidInput, match="certified-linear uses features, and one is no feature as it stands"
    ) as no:
        sp.make_policy("certified-linear", arms, norm_bound=1.0, **QUESTION)
    assert UNFIT[cells] in str(no.value)
    named = read_arms(path, "id", "x")
    assert named.aside is None
    sp.make_policy("certified-linear", named, norm_bound=1.0, **QUESTION)
    assert named == arms  # what was set aside is no part of what the candidates are


def test_parquet_columns_are_set_aside_too(tmp_path):
    pytest.importorskip("pyarrow")
    write_table(tmp_path / "t.parquet", {"sku": ["a", "b"], "ph": [1.0, None], "x": [0.5, 0.25]})
    with pytest.warns(TableWarning, match="'ph' has no finite number of 'b'"):
        arms = read_arms(tmp_path / "t.parquet", "sku")
    assert (arms.columns, arms.features.tolist()) == (("x",), [[0.5], [0.25]])


def test_a_column_may_vary_within_an_id(world):
    table = read_table(world / "run_number.csv")
    with pytest.warns(TableWarning, match="'run' differs between rows of id 'a'"):
        arms = grouped_arms(table, "id", exclude=("y",)).arms
    assert (arms.ids, arms.columns) == (("a", "b"), ())
    with pytest.raises(sp.InvalidInput, match="rows of id 'a' differ in the feature 'run'"):
        grouped_arms(table, "id", "run", exclude=("y",))


def test_python_reads_the_same_rows_as_the_command_line(world):
    noise = sp.SubGaussian(0.3)
    with pytest.warns(TableWarning, match="'temp' misses a cell of 'a'"):
        kept = sp.environments.table(world / "blank_elsewhere.csv", "id", "y", noise=noise, drop_missing=True)
    assert kept.arms.ids == ("a", "b")
    assert kept.means.tolist() == [1.55, 2.95]


@pytest.mark.parametrize("word", [[], (), "none", " None "])
def test_no_features_are_said_outright(world, word):
    for name in ("index.csv", "index_unnamed.csv"):
        arms = read_arms(world / name, "id", word)
        assert (arms.columns, arms.features.shape) == ((), (len(arms.ids), 0))


def test_a_column_that_is_called_none(write):
    path = write("id,none,x\na,1,2\nb,2,3\n")
    with pytest.raises(sp.InvalidInput, match="has a column 'none', and that is also the word for no features"):
        read_arms(path, "id", "none")
    assert read_arms(path, "id", "none,").columns == read_arms(path, "id", ["none"]).columns == ("none",)
    assert read_arms(path, "id", []).columns == ()


def test_candidates_that_would_go_are_named(world):
    reading = {"noise": sp.SubGaussian(0.3), "drop_missing": True}
    with pytest.raises(sp.InvalidInput, match=r"candidate 'b' has no row left and would not be compared"):
        sp.environments.table(world / "always_missing.csv", "id", "y", **reading)
    with pytest.warns(TableWarning, match="2 of 6 rows.*Candidate 'b' has no row left and is not compared"):
        kept = sp.environments.table(world / "always_missing.csv", "id", "y", drop_candidates=True, **reading)
    assert kept.arms.ids == ("a", "c")


@pytest.mark.parametrize(("name", "shown"), [("nfd.csv", r"'cafe\u0301'"), ("zero_width.csv", r"'a\u200b'")])
def test_ids_that_look_the_same_are_told_apart_in_a_note(world, name, shown):
    with pytest.warns(TableWarning, match="look the same") as said:
        grouped_arms(read_table(world / name), "id", exclude=("y",))
    assert shown in str(said[0].message)


def test_a_column_of_another_spelling_is_offered(world):
    with pytest.raises(sp.InvalidInput, match="Did you mean 'ID'"):
        read_arms(world / "header_case.csv", "id")
