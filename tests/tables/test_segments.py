"""The column of segments: read with the candidates, no feature, and refused where a candidate has none or two."""

import pyarrow as pa
import pyarrow.parquet
import pytest

import surepick as sp
from surepick.environments import table

ROWS = "id,x,region\na,1,north\nb,2, south \nc,4,north\n"


def test_a_column_of_segments_is_read_and_is_no_feature(write):
    arms = sp.read_arms(write(ROWS), "id", segments="region")
    assert arms.segments == ("north", "south", "north")
    assert arms.columns == ("x",)
    assert sp.read_arms(write(ROWS), "id").segments is None
    numbers = sp.read_arms(write("id,x,region\na,1,1\nb,2,2\n"), "id", segments="region")
    assert (numbers.segments, numbers.columns) == (("1", "2"), ("x",))
    with pytest.raises(sp.InvalidInput, match="no column 'regoin'"):
        sp.read_arms(write(ROWS), "id", segments="regoin")
    with pytest.raises(sp.InvalidInput, match="each of them once"):
        sp.read_arms(write(ROWS), "id", segments="x", cost="x")


def test_segments_in_a_parquet_file(tmp_path):
    path = tmp_path / "arms.parquet"
    pa.parquet.write_table(pa.table({"id": ["a", "b"], "region": ["n", "s"], "x": [0.5, 1.5], "price": [1, 2]}), path)
    arms = sp.read_arms(path, "id", segments="region", cost="price")
    assert (arms.segments, arms.columns, arms.costs.tolist()) == (("n", "s"), ("x",), [1.0, 2.0])


def test_a_candidate_has_one_segment(write):
    with pytest.raises(sp.InvalidInput, match="row 3: the segment of candidate 'b' in column 'region' is empty"):
        sp.read_arms(write("id,x,region\na,1,north\nb,2,\n"), "id", segments="region")
    rows = "id,region,reward\na,north,1\nb,north,2\na,south,1\n"
    with pytest.raises(sp.InvalidInput, match="row 4: candidate 'a' is in segment 'south' of column 'region', and in"):
        table(write(rows), "id", "reward", segments="region", noise=sp.SubGaussian(1.0))
    whole = table(write(rows.replace("south", "north")), "id", "reward", segments="region", noise=sp.SubGaussian(1.0))
    assert whole.arms.segments == ("north", "north")
