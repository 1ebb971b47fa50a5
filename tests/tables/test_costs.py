"""The column of costs: read with the candidates, no feature, and refused where it is no price."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import surepick as sp
from surepick.environments import table

ROWS = "id,x,price\na,1,2.50\nb,2,10\nc,4,0.1\n"


def test_a_column_of_costs_is_read_and_is_no_feature(write):
    arms = sp.read_arms(write(ROWS), "id", cost="price")
    assert arms.costs.tolist() == [2.5, 10.0, 0.1]
    assert (arms.columns, arms.features.tolist()) == (("x",), [[1.0], [2.0], [4.0]])
    assert sp.read_arms(write(ROWS), "id").costs is None
    assert sp.read_arms(write(ROWS), "id", "x,price", cost="price").columns == ("x", "price")


def test_costs_in_a_parquet_file(tmp_path):
    path = tmp_path / "arms.parquet"
    columns = {"id": ["a", "b"], "price": [3, 4], "x": [0.5, 1.5]}
    pa.parquet.write_table(pa.table(columns), path)
    arms = sp.read_arms(path, "id", cost="price")
    assert (arms.costs.tolist(), arms.columns, arms.features.tolist()) == ([3.0, 4.0], ("x",), [[0.5], [1.5]])
    assert sp.read_arms(path, "id", "x", cost="price") == arms
    pa.parquet.write_table(pa.table({**columns, "price": [3, None]}), path)
    with pytest.raises(sp.InvalidInput, match="row 2: the cost of candidate 'b' in column 'price' is empty"):
        sp.read_arms(path, "id", cost="price")


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("12 EUR", "is '12 EUR'. A cost is a positive number, in the same currency for all candidates, without a unit"),
        ("free", "is 'free'. A cost is"),
        ("", "is empty. A cost is a positive number, in the same currency for all candidates. Fill the cell in"),
        ("n/a", "is 'n/a'"),
        ("0", "is '0'. A cost is a positive number"),
        ("-3", "is '-3'"),
        ("inf", "is 'inf'"),
    ],
)
def test_what_is_no_price_is_refused_by_row_and_candidate(write, cell, said):
    with pytest.raises(sp.InvalidInput, match="row 3: the cost of candidate 'b' in column 'price' ") as found:
        sp.read_arms(write(f"id,x,price\na,1,2\nb,2,{cell}\nc,4,3\n"), "id", cost="price")
    assert said in str(found.value)


def test_more_than_one_wrong_cost_is_counted_and_an_unknown_column_is_named(write):
    with pytest.raises(sp.InvalidInput, match="'b' in column 'price' is '0', and 1 more row cannot be used"):
        sp.read_arms(write("id,price\na,1\nb,0\nc,-1\n"), "id", cost="price")
    with pytest.raises(sp.InvalidInput, match="no column 'prize'"):
        sp.read_arms(write(ROWS), "id", cost="prize")


def test_rows_without_a_cost_are_left_out_if_we_are_told_so(write):
    with pytest.warns(UserWarning, match="1 of 3 rows|'b' has no row left"):
        arms = sp.read_arms(write("id,x,price\na,1,2\nb,2,\nc,4,3\n"), "id", cost="price", drop_candidates=True)
    assert (arms.ids, arms.costs.tolist()) == (("a", "c"), [2.0, 3.0])


def test_repeats_of_a_candidate_have_one_cost(write):
    rows = "id,price,y\na,2,1\nb,3,2\na,2,3\n"
    noise = sp.SubGaussian(1.0)
    world = table(write(rows), "id", "y", cost="price", noise=noise)
    assert (world.arms.costs.tolist(), world.arms.columns) == ([2.0, 3.0], ())
    with pytest.raises(
        sp.InvalidInput, match="row 4: candidate 'a' costs 5 in column 'price', and 2 in an earlier row"
    ):
        table(write(rows.replace("a,2,3", "a,5,3")), "id", "y", cost="price", noise=noise)


def test_standardized_features_leave_costs_as_they_are(write):
    arms = sp.read_arms(write(ROWS), "id", cost="price", standardize=True, intercept=True)
    assert arms.costs.tolist() == [2.5, 10.0, 0.1]
    assert np.allclose(arms.features[:, 0].mean(), 0.0)
