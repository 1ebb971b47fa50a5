"""Rows in blocks: what is read is what lies there, and what is wrong is said with the file and the row."""

import os

import numpy as np
import pytest
from block_functions import written
from together import of_each

from surepick.chunks.sources import ArraySource, NpySource, RowBlocks, rows_of
from surepick.errors import InvalidInput

RNG = np.random.default_rng(5)
FEATURES = RNG.standard_normal((1000, 3)).astype(np.float32)


class Sliced:
    """An array that can only be sliced, as those of Zarr and HDF5."""

    def __init__(self, array):
        self.array, self.shape, self.dtype = array, array.shape, array.dtype

    def __getitem__(self, rows):
        assert isinstance(rows, slice)
        return self.array[rows]


@pytest.mark.parametrize("sizes", [[1000], [1, 999], [333, 0, 333, 334], [64, 128, 808]])
def test_blocks_are_the_rows_in_their_order(tmp_path, sizes):
    rows = written(tmp_path, FEATURES, sizes)
    blocks = rows.blocks()
    assert np.array_equal(np.concatenate([block.read() for block in blocks]), FEATURES)
    assert [block.first for block in blocks] == np.cumsum([0, *[b.stop - b.start for b in blocks]])[:-1].tolist()
    assert max(block.stop - block.start for block in blocks) <= 64
    assert rows.num_bytes == FEATURES.nbytes


@pytest.mark.parametrize("where", ["file", "array", "sliced"])
def test_single_rows_are_read_without_the_others(tmp_path, where):
    wanted = np.array([0, 7, 332, 333, 334, 999])
    if where == "file":
        rows = written(tmp_path, FEATURES, [333, 667])
    else:
        rows = rows_of(FEATURES if where == "array" else Sliced(FEATURES))
    assert np.array_equal(rows.take(wanted), FEATURES[wanted])
    assert rows.ids(wanted) == ["0", "7", "332", "333", "334", "999"]
    assert rows.take(wanted[:0]).shape == (0, 3)


@of_each("wanted", [[-1], [1000], [3, 3], [4, 2]])
def test_rows_that_are_not_there_are_refused(wanted):
    with pytest.raises(InvalidInput, match="from 0 to 999, ascending"):
        rows_of(FEATURES).take(np.array(wanted))


def test_a_number_that_is_missing_is_named_with_file_and_row(tmp_path):
    broken = FEATURES.copy()
    broken[[700, 720], 1] = [np.nan, np.inf]
    rows = written(tmp_path, broken, [500, 500])
    with pytest.raises(InvalidInput) as caught:
        [block.read() for block in rows.blocks()]
    assert "001.npy, row 200 has NaN or an infinite number, and 1 more" in str(caught.value)


def test_a_file_that_was_cut_off_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, FEATURES)
    os.truncate(path, path.stat().st_size - 100)
    with pytest.raises(InvalidInput, match=r"a\.npy has .* bytes where its header says .*: 991 of 1,000 rows"):
        NpySource.of(path)


def test_a_file_that_is_longer_than_its_header_says_is_refused(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, FEATURES)
    with path.open("ab") as file:
        file.write(b"12345678")
    with pytest.raises(InvalidInput, match="still being written"):
        NpySource.of(path)


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.zeros((5, 2), np.int64), "int64"),
        (np.zeros((5, 2), np.float16), "float16"),
        (np.zeros(5), r"shape \(5,\)"),
        (np.asfortranarray(np.ones((5, 2))), "column after column"),
    ],
)
def test_arrays_of_other_kinds_are_refused(tmp_path, array, said):
    path = tmp_path / "a.npy"
    np.save(path, array)
    with pytest.raises(InvalidInput, match=said):
        NpySource.of(path)


def test_big_endian_numbers_are_numbers(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, FEATURES.astype(">f8"))
    found = NpySource.of(path)
    assert np.array_equal(found.read(10, 20), FEATURES[10:20])
    assert found.read(0, 1).dtype == np.float64
    assert np.array_equal(found.take(np.array([3, 5])), FEATURES[[3, 5]])


def test_what_is_no_npy_file_is_refused(tmp_path):
    path = tmp_path / "a.npy"
    path.write_bytes(b"a,b\n1,2\n")
    with pytest.raises(InvalidInput, match=r"is not a \.npy file"):
        NpySource.of(path)


def test_a_file_that_is_written_to_meanwhile_is_refused(tmp_path):
    rows = written(tmp_path, FEATURES, [500, 500])
    path = tmp_path / "001.npy"
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 1))
    rows.blocks()[0].read()
    for read in (rows.blocks()[-1].read, lambda: rows.take(np.array([700]))):
        with pytest.raises(InvalidInput, match=r"001\.npy was written to while it was used"):
            read()


def test_a_file_that_went_is_named(tmp_path):
    rows = written(tmp_path, FEATURES, [500, 500])
    (tmp_path / "001.npy").unlink()
    with pytest.raises(InvalidInput, match=r"001\.npy cannot be read: No such file"):
        rows.blocks()[-1].read()


def test_files_of_different_widths_are_refused(tmp_path):
    np.save(tmp_path / "a.npy", FEATURES)
    np.save(tmp_path / "b.npy", FEATURES[:, :2])
    with pytest.raises(InvalidInput, match=r"b\.npy has 2 columns and .*a\.npy has 3"):
        rows_of(tmp_path)


@pytest.mark.parametrize(
    ("sources", "said"),
    [([], "there is no row"), ([np.zeros((0, 3))], "there is no row"), ([np.zeros((3, 0))], "no feature column")],
)
def test_nothing_to_choose_among_is_refused(sources, said):
    with pytest.raises(InvalidInput, match=said):
        RowBlocks([ArraySource(one) for one in sources])


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match=r"has no \.npy file"):
        rows_of(tmp_path)


def test_rows_in_blocks_stay_what_they_are():
    rows = rows_of(FEATURES)
    assert rows_of(rows) is rows
