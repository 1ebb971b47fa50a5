"""Tables: what is read is what the file says, and each kind of damage has its sentence."""

import gzip

import numpy as np
import pytest

from surepick.errors import InvalidInput
from surepick.tables import read_table


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
