"""Data frames in place of files: read by `Arms`, `read_arms` and `find_best` as the file would be."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from refusals import refused
from together import of_each

import surepick as sp

CELLS = {"sku": ["a", "b", "c"], "x": [1.0, 0.0, 0.5], "z": [3, 4, 5], "note": ["p", "q", "r"]}
PANDAS = pd.DataFrame(CELLS)


class OnlyArrow:
    """A frame of a library that nobody here knows, which speaks the Arrow protocol."""

    def __init__(self, table):
        self._table = table

    schema = property(lambda self: self._table.schema)

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


class OnlyInterchange:
    """One that speaks the dataframe protocol alone."""

    def __init__(self, table):
        self._table = table

    def __dataframe__(self, *words, **more):
        return self._table.__dataframe__(*words, **more)


FRAMES = {
    "pandas": PANDAS,
    "pandas of arrow": PANDAS.convert_dtypes(dtype_backend="pyarrow"),
    "pandas, nullable": PANDAS.convert_dtypes(),
    "polars": pl.DataFrame(CELLS),
    "pyarrow": pa.table(CELLS),
    "a batch of pyarrow": pa.table(CELLS).to_batches()[0],
    "arrow protocol": OnlyArrow(pa.table(CELLS)),
    "dataframe protocol": OnlyInterchange(pa.table(CELLS)),
}
EACH = pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())
WANTED = {"a": [1.0, 3.0], "b": [0.0, 4.0], "c": [0.5, 5.0]}
ASKED = {"epsilon": 0.5, "noise": "subgaussian:0.1", "progress": False}


def numbers(arms):
    return dict(zip(arms.ids, arms.features.tolist(), strict=True))


@EACH
def test_a_named_column_is_the_id_and_columns_of_numbers_are_features(frame):
    arms = sp.read_arms(frame, id="sku")
    assert numbers(arms) == WANTED
    assert arms.columns == ("x", "z")


@EACH
def test_find_best_reads_a_frame_as_read_arms_does(frame):
    seen = []

    def measure(ids):
        seen.extend(ids)
        return [float(i == "b") for i in ids]

    found = sp.find_best(frame, measure, id="sku", **ASKED)
    assert found.best_arm == "b"
    assert found.study.arms == sp.read_arms(frame, id="sku", features=[])
    assert {*seen} == {"a", "b", "c"}


@EACH
def test_features_are_used_where_the_policy_uses_them(frame):
    found = sp.find_best(
        frame, lambda ids: [0.0] * len(ids), id="sku", features="x", norm_bound=1.0, max_pulls=0, **ASKED
    )
    assert found.study.arms.columns == ("x",)
    assert found.certificate.pulls == 0


def test_a_frame_is_read_as_its_file(tmp_path):
    for suffix, write in ((".csv", PANDAS.to_csv), (".parquet", PANDAS.to_parquet)):
        path = tmp_path / f"arms{suffix}"
        write(path, index=False)
        for options in ({}, {"cost": "z"}, {"features": "note"}, {"features": ["x"], "standardize": True}):
            assert sp.read_arms(PANDAS, "sku", **options) == sp.read_arms(path, "sku", **options)


def test_an_index_is_the_id():
    for arms in (
        sp.read_arms(PANDAS.set_index("sku")),
        sp.Arms(PANDAS.set_index("sku")[["x", "z"]]),
        sp.read_arms(PANDAS.set_index("sku"), id="sku"),
    ):
        assert numbers(arms) == WANTED


def test_several_levels_are_joined_and_come_back_as_tuples():
    frame = PANDAS.set_index(["sku", "z"])
    assert sp.read_arms(frame).ids == ("a/3", "b/4", "c/5")
    found = sp.find_best(frame, lambda ids: [1.0 * (i == ("b", 4)) for i in ids], **ASKED)
    assert found.best_arm == ("b", 4)


def test_an_index_that_is_not_the_id_is_no_feature():
    frame = PANDAS.set_index(pd.Index([10, 20, 30], name="old"))
    assert sp.read_arms(frame, id="sku").columns == ("x", "z")
    assert sp.read_arms(frame).ids == ("10", "20", "30")


def test_rows_that_are_only_counted_are_their_labels():
    found = sp.find_best(PANDAS, lambda ids: PANDAS.loc[ids, "x"], **ASKED)
    assert (found.best_arm, found.study.ids) == (0, ("0", "1", "2"))
    kept = PANDAS[1:]
    assert sp.read_arms(kept).ids == ("1", "2")
    assert sp.find_best(kept, lambda ids: kept.loc[ids, "x"], **(ASKED | {"epsilon": 0.2})).best_arm == 2


@pytest.mark.parametrize("name", ["index", "sku"])
def test_an_index_beside_a_column_of_its_name(name):
    frame = pd.DataFrame({name: [1.5, 2.0], "x": [1.0, 2.0]}, index=pd.Index(["a", "b"], name=name))
    assert sp.read_arms(frame).ids == ("a", "b")
    assert sp.read_arms(frame).columns == (name, "x")
    assert sp.Arms(frame).ids == ("a", "b")


def test_ids_of_any_kind_come_back():
    frame = pd.DataFrame({"id": [1, 2], "x": [0.0, 1.0]})
    assert sp.find_best(frame, lambda ids: [float(i == 2) for i in ids], id="id", **ASKED).best_arm == 2
    day = pd.DataFrame({"x": [0.0, 1.0]}, index=pd.date_range("2020-01-01", periods=2))
    assert sp.find_best(day, lambda ids: day.loc[ids, "x"], **ASKED).best_arm == day.index[1]


def test_missing_cells():
    frame = pd.DataFrame({"id": ["a", "b", "c"], "x": [1.0, np.nan, 2.0]})
    refused(lambda: sp.Arms(frame, "id"), "'b'")
    refused(lambda: sp.read_arms(frame, "id", "x", drop_missing=True), "candidate 'b' has no row left")
    with pytest.warns(UserWarning, match="we leave out 1 of 3 rows"):
        arms = sp.read_arms(frame, "id", "x", drop_candidates=True)
    assert arms.ids == ("a", "c")
    refused(lambda: sp.read_arms(pd.DataFrame({"id": ["a", None], "x": [1.0, 2.0]}), "id"), "id")
    refused(lambda: sp.read_arms(pd.DataFrame({"id": pd.array(["a", pd.NA]), "x": [1.0, 2.0]}), "id"), "id")


def test_objects_of_rows_that_are_left_out_go_with_them():
    frame = pd.DataFrame({"id": [1, 2, 3], "x": [1.0, np.nan, 2.0]})
    with pytest.warns(UserWarning, match="we leave out"):
        arms = sp.read_arms(frame, "id", "x", drop_candidates=True)
    assert [arms.objects.of_text(name) for name in arms.ids] == [1, 3]


def test_all_columns_of_a_frame_that_arms_takes_are_features():
    assert numbers(sp.Arms(PANDAS[["sku", "x", "z"]], "sku")) == WANTED
    assert sp.Arms(PANDAS[["x", "z"]], ["a", "b", "c"]).columns == ("x", "z")
    refused(lambda: sp.Arms(PANDAS), "'sku'", "no numbers", "sp.read_arms(frame, id='sku')")
    refused(lambda: sp.Arms(PANDAS, "price"), "no column 'price'", "'sku'")


@of_each("name", ["Unnamed: 0", "__index_level_0__", "", "level_0", "_c0", "column 1", "index", "Row No."])
def test_a_column_that_numbers_the_rows_is_a_feature_where_it_is_named(name):
    frame = pd.DataFrame({name: [1, 2, 3], "x": [1.0, 0.0, 0.5]})
    refused(lambda: sp.Arms(frame), "row numbers", "features=[...]")
    with pytest.warns(UserWarning, match="row numbers"):
        assert sp.read_arms(frame).columns == ("x",)
    if name:
        assert sp.read_arms(frame, features=[name]).columns == (name,)
        assert sp.read_arms(frame, id=name).ids == ("1", "2", "3")


@of_each("take", [sp.Arms, sp.read_arms, lambda frame: sp.find_best(frame, len, **ASKED)])
@of_each(
    ("frame", "word"),
    [
        (PANDAS.iloc[:0], "no rows"),
        (pl.DataFrame(), "no rows"),
        (pd.DataFrame([[1.0, 2.0]], columns=["x", "x"]), "more than one column named 'x'"),
        (pl.DataFrame(CELLS).lazy(), "collect()"),
        (pd.DataFrame({"x": [1.0, 2.0]}, index=["a", "a"]), "repeated"),
        (pa.table([[1.0], [2.0]], names=["x", "x"]), "more than one column named 'x'"),
    ],
)
def test_frames_of_which_nothing_can_be_chosen(take, frame, word):
    refused(lambda: take(frame), word)


def test_columns_are_for_frames():
    refused(lambda: sp.find_best(["a", "b"], len, id="sku", **ASKED), "data frame")
    refused(lambda: sp.find_best(sp.Arms(ids=["a"]), len, features="x", **ASKED), "data frame")
    refused(lambda: sp.read_arms(PANDAS, "sku", sheet="one"), "leave out sheet")
    refused(lambda: sp.read_arms(PANDAS, "size"), "no column 'size'")


@of_each("odd", [5, ["a", "b"], PANDAS["x"], None, np.eye(2), {"a": 1}, b"arms.csv"])
def test_what_is_neither_a_file_nor_a_frame(odd):
    refused(lambda: sp.read_arms(odd))
    refused(lambda: sp.verify_certificate(odd))


def test_no_library_of_frames_is_loaded_with_ours():
    loaded = "print({'pandas', 'polars', 'pyarrow'} & {*sys.modules})"
    code = f"import sys, surepick as sp; sp.find_best; sp.read_arms; sp.Arms; {loaded}"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "set()"


@of_each("cells", [[1.0, np.nan, 2.0], ["p", "q", "r"], [1, 2, 3], [np.inf, 1.0, 2.0], [None] * 3])
@of_each("name", ["x", "Unnamed: 0"])
def test_a_policy_without_features_looks_at_no_feature_column(name, cells):
    frame = pd.DataFrame({"sku": ["a", "b", "c"], name: cells, "z": [0.0, 1.0, 2.0]})
    found = sp.find_best(frame, lambda ids: [float(i == "b") for i in ids], id="sku", **ASKED)
    assert (found.best_arm, found.features) == ("b", "")
    assert (found.study.arms.ids, found.study.arms.features.shape) == (("a", "b", "c"), (3, 0))


def test_features_that_nobody_uses_are_said(caplog):
    found = sp.find_best(PANDAS, lambda ids: [float(i == "b") for i in ids], id="sku", features=["x"], **ASKED)
    assert found.study.arms.features.shape == (3, 0)
    assert "features=['x'] is not used: nothing is assumed about features" in caplog.text


def test_a_policy_with_features_needs_each_of_their_cells():
    gap = PANDAS.assign(x=[1.0, np.nan, 2.0])
    refused(lambda: sp.find_best(gap, len, id="sku", norm_bound=1.0, **ASKED), "'x'")


@pytest.mark.parametrize("features", [None, [], (), "none", " None ", "", np.array([])])
def test_nothing_is_said_where_no_feature_is_named(caplog, features):
    found = sp.find_best(PANDAS, lambda ids: [float(i == "b") for i in ids], id="sku", features=features, **ASKED)
    assert found.best_arm == "b"
    assert "not used" not in caplog.text


@of_each("odd", [5, object(), 1.5, {"x": 1}, "y", ["x", "y"]])
def test_features_that_are_not_there_are_refused_also_where_nobody_uses_them(odd):
    refused(lambda: sp.find_best(PANDAS, len, id="sku", features=odd, **ASKED), "column")
