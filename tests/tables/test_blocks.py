"""Parquet files in blocks: the same numbers as read whole, ids on demand, and what is wrong with a file."""

import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import surepick as sp
from surepick.chunks.sources import RowBlocks
from surepick.errors import InvalidInput

RNG = np.random.default_rng(14)
FEATURES = RNG.standard_normal((1000, 3)).astype(np.float32)


def written(path, features=FEATURES, first=0, group=170, **more):
    columns = {"sku": [f"m-{first + row}" for row in range(len(features))]}
    columns |= {f"x{place}": features[:, place] for place in range(features.shape[1])} | more
    pq.write_table(pa.table(columns), path, row_group_size=group)
    return path


@pytest.fixture
def folder(tmp_path):
    written(tmp_path / "b.parquet", FEATURES[400:], 400)
    written(tmp_path / "a.parquet", FEATURES[:400])
    return tmp_path


def test_a_folder_is_its_files_in_the_order_of_their_names(folder):
    rows = sp.read_arms(folder, "sku", blocks=True)
    assert isinstance(rows, RowBlocks)
    assert (rows.num_rows, rows.num_columns) == (1000, 3)
    small = RowBlocks(rows.sources, block_entries=64 * 3)
    found = [block.read() for block in small.blocks()]
    assert np.array_equal(np.concatenate(found), FEATURES)
    assert found[0].dtype == np.float32


def test_single_rows_and_their_ids(folder):
    rows, wanted = sp.read_arms(folder, "sku", blocks=True), np.array([0, 169, 170, 399, 400, 999])
    assert np.array_equal(rows.take(wanted), FEATURES[wanted])
    assert rows.ids(wanted) == [f"m-{row}" for row in wanted]
    assert sp.read_arms(folder, features="x0,x2", blocks=True).ids(wanted[:2]) == ["0", "169"]


def test_features_are_named_or_all_other_numbers(folder):
    rows = sp.read_arms(folder, features=["x2", "x0"], blocks=True)
    assert np.array_equal(rows.take(np.array([5])), FEATURES[5:6, [2, 0]])


def test_a_pattern_and_a_file(folder):
    assert sp.read_arms(folder / "b*.parquet", "sku", blocks=True).num_rows == 600
    assert sp.read_arms(folder / "a.parquet", "sku", blocks=True).num_rows == 400


def test_npy_and_parquet_files_can_stand_together(folder):
    np.save(folder / "c.npy", FEATURES[:7])
    assert sp.read_arms(folder, blocks=True).num_rows == 1007


def test_missing_numbers_are_named_with_their_row(tmp_path):
    path = written(tmp_path / "a.parquet", FEATURES[:300], x9=pa.array([1.0] * 299 + [None]))
    rows = sp.read_arms(path, "sku", blocks=True)
    with pytest.raises(InvalidInput, match=r"a\.parquet, row 299 has NaN"):
        [block.read() for block in rows.blocks()]


def test_a_missing_id_is_named(tmp_path):
    table = pa.table({"sku": ["a", None, "c"], "x": [1.0, 2.0, 3.0]})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(InvalidInput, match="row 1 has no sku"):
        sp.read_arms(tmp_path / "a.parquet", "sku", blocks=True).ids(np.array([0, 1]))


def test_a_file_that_is_written_to_meanwhile_is_refused(folder):
    rows = sp.read_arms(folder, "sku", blocks=True)
    path = folder / "a.parquet"
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 7))
    with pytest.raises(InvalidInput, match="was written to while it was used"):
        rows.take(np.array([3]))


def test_a_file_that_was_cut_off_is_refused_before_anything_is_asked(folder):
    path = folder / "a.parquet"
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(InvalidInput, match="not a readable Parquet file"):
        sp.read_arms(folder, "sku", blocks=True)


def test_a_damaged_page_is_said(folder):
    path = folder / "a.parquet"
    content = bytearray(path.read_bytes())
    content[200:1200] = b"\xff" * 1000
    path.write_bytes(content)
    rows = sp.read_arms(path, "sku", blocks=True)
    with pytest.raises(InvalidInput, match=r"a\.parquet"):
        [block.read() for block in rows.blocks()]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"id": "name"}, "name"),
        ({"features": "x0,sku"}, "'sku' is no column of numbers"),
        ({"id": "sku,x0"}, "ids of one column"),
        ({"standardize": True}, "are rows of numbers as they are"),
        ({"cost": "x0"}, "are rows of numbers as they are"),
        ({"drop_missing": True}, "are rows of numbers as they are"),
    ],
)
def test_what_blocks_do_not_know_is_refused(folder, more, said):
    with pytest.raises(InvalidInput, match=said):
        sp.read_arms(folder, blocks=True, **more)


def test_other_files_are_read_whole(tmp_path):
    (tmp_path / "a.csv").write_text("x\n1\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match="read whole, not in blocks"):
        sp.read_arms(tmp_path / "a.csv", blocks=True)
    with pytest.raises(InvalidInput, match=r"no \.npy and no \.parquet file"):
        sp.read_arms(tmp_path, blocks=True)


def test_columns_of_npy_files_have_no_names(tmp_path):
    np.save(tmp_path / "a.npy", FEATURES)
    with pytest.raises(InvalidInput, match="no named columns"):
        sp.read_arms(tmp_path, "sku", blocks=True)


def test_the_best_of_a_folder_is_named_by_its_id(folder):
    theta = np.array([0.7, 0.5, -0.5])
    means = {f"m-{row}": float(FEATURES[row].astype(float) @ theta) for row in range(1000)}
    rng = np.random.default_rng(0)
    found = sp.find_best(
        sp.read_arms(folder, "sku", blocks=True),
        lambda ids: [means[name] + 0.3 * rng.standard_normal() for name in ids],
        epsilon=0.3,
        noise="subgaussian:0.3",
        norm_bound=1.0,
        size=40,
        progress=False,
    )
    assert found.verdict == "certified"
    assert max(means.values()) - means[found.best_arm] <= 0.3
