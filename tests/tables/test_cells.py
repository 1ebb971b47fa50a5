"""Cells that are no plain numbers: percentages, and cells that hold nothing."""

import numpy as np
import pytest
from table_notes import noted

from surepick.errors import InvalidInput
from surepick.tables import read_arms

# percentages


def test_percentages_are_said_to_be_percentages(write):
    path = write("sku,x\na,1.3%\nb,2 %\n")
    words = r"2 of 2 cells are not numbers \(row 2: '1\.3%', row 3: '2 %'\)\. They look like percentages: "
    with pytest.raises(InvalidInput, match=words + r"write 0\.013 for 1\.3%, or give --percent"):
        read_arms(path, "sku", "x")


def test_gaps_hide_neither_percentages_nor_words(write):
    with pytest.raises(InvalidInput, match="look like percentages"):
        read_arms(write("sku,x\na,1.3%\nb,\nc,1%\n"), "sku", "x")
    with pytest.raises(InvalidInput, match=r"not numeric: 2 of 4 cells .*row 3: 'broken'"):
        read_arms(write("sku,x\na,1\nb,broken\nc,\nd,2\n"), "sku", "x")


def test_percent_divides_by_a_hundred(write):
    arms = read_arms(write("sku,x,y\na,1.3%,1\nb, 2e1 %,2\n"), "sku", percent=True)
    np.testing.assert_array_equal(arms.features, [[0.013, 1], [0.2, 2]])
    comma = write("sku;x\na;1,3%\n", "comma.csv")
    arms = noted(
        lambda: read_arms(comma, "sku", percent=True), "semicolons", "commas as decimal points: '1,3%' is 0.013"
    )
    np.testing.assert_array_equal(arms.features, [[0.013]])


def test_percentages_beside_plain_numbers_are_refused(write):
    with pytest.raises(InvalidInput, match=r"1 numbers without a percent sign \(row 3: '2'\)"):
        read_arms(write("sku,x\na,1.3%\nb,2\n"), "sku", "x", percent=True)


def test_percent_without_a_percentage_is_refused(write):
    with pytest.raises(InvalidInput, match="no cell ends in %"):
        read_arms(write("sku,x\na,1.3\n"), "sku", percent=True)


# missing cells

GAPS = "sku,x,y\na,1,2\nb,n/a,2\nc,,3\nd,4,\n,5,14\n"


def test_missing_cells_are_one_message_whatever_stands_there(write):
    words = (
        r"4 of 5 rows miss a cell \(row 3: 'x' is 'n/a', row 4: 'x' is empty, row 5: 'y' is empty and 1 more\)\. "
        r"The last row looks like a spreadsheet's sum\. Fill the cells in, or leave these rows out with --drop-missing"
    )
    with pytest.raises(InvalidInput, match=words):
        read_arms(write(GAPS), "sku", "x,y")


def test_rows_that_miss_a_cell_are_left_out_and_counted(write):
    with pytest.raises(InvalidInput, match=r"candidates 'b', 'c', 'd' have no row left.*--drop-candidates"):
        read_arms(write(GAPS), "sku", "x,y", drop_missing=True)
    words = r"we leave out 4 of 5 rows, because they miss a cell (row 3: 'x' is 'n/a', row 4: 'x' is empty,"
    arms = noted(lambda: read_arms(write(GAPS), "sku", "x,y", drop_candidates=True), words)
    assert arms.ids == ("a",)
    np.testing.assert_array_equal(arms.features, [[1, 2]])


def test_only_columns_that_are_used_can_miss_a_cell(write):
    arms = noted(lambda: read_arms(write(GAPS), "sku", "y", drop_candidates=True), "we leave out 2 of 5 rows")
    assert arms.ids == ("a", "b", "c")
    assert noted(lambda: read_arms(write(GAPS), None, "sku")).num_arms == 5


def test_a_table_of_gaps_alone_is_refused(write):
    with pytest.raises(InvalidInput, match="every row misses a cell"):
        read_arms(write("sku,x,y\na,,1\nb,2,\n"), "sku", "x,y", drop_missing=True)


def test_rows_of_a_parquet_file_are_left_out_too(tmp_path):
    from surepick.tables import write_table

    write_table(tmp_path / "t.parquet", {"sku": ["a", "b", None], "x": [1.0, None, 3.0]})
    arms = noted(
        lambda: read_arms(tmp_path / "t.parquet", "sku", "x", drop_candidates=True), "we leave out 2 of 3 rows"
    )
    assert (arms.ids, arms.features.tolist()) == (("a",), [[1.0]])


@pytest.mark.parametrize("name", ["t.parquet", "t.jsonl"])
def test_a_column_of_lists_is_no_category(tmp_path, name):
    """Of a Parquet file that is read by its columns it is a feature a number."""
    from surepick.tables import write_table

    write_table(tmp_path / name, {"sku": ["a", "b", "c"], "e": [[1.0, 2.0], None, [-3.0, 1e-7]]})
    with pytest.raises(InvalidInput, match="column 'e' holds lists of numbers"):
        read_arms(tmp_path / name, "sku", "e", drop_missing=True)


def test_a_category_may_be_called_none(write):
    assert read_arms(write("sku,colour\na,none\nb,red\n"), "sku", "colour").columns == ("colour=none", "colour=red")


def test_a_word_in_a_column_of_numbers_is_no_missing_cell(write):
    with pytest.raises(InvalidInput, match="not numeric: 1 of 3 cells"):
        read_arms(write("sku,x\na,1\nb,2\nc,broken\n"), "sku", "x", drop_missing=True)
