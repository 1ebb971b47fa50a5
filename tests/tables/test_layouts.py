"""Layouts of tables: headers further down, units, merged cells, repeats side by side, a sheet a candidate."""

import numpy as np
import pytest
from table_notes import noted
from workbooks import write_ods, write_xls, write_xlsb, write_xlsx

from surepick.environments import table
from surepick.errors import InvalidInput
from surepick.noise import SubGaussian
from surepick.tables import read_arms, read_table

SHEET = [["sku", "x", "y"], ["a", 1.5, 3], ["b", -2, 4]]
WRITERS = {".xlsx": write_xlsx, ".ods": write_ods, ".xls": write_xls, ".xlsb": write_xlsb}
NOISE = SubGaussian(1.0)
needs_calamine = pytest.mark.usefixtures("calamine")


@pytest.fixture
def calamine():
    pytest.importorskip("python_calamine")


# where the header stands


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("Screen of March\n\nid,y\na,1\n", 3),
        ("Screen of March,\n,\nid,y\na,1\n", 3),
        ("Operator,Smith\nDay,Monday\nid,y,z\na,1,2\nb,2,3\n", 3),
        ("Experiment 7\nOperator;Smith\n\nid;y\na;1,5\nb;2,5\n", 4),
        ("Screen; March\n\nid;y;z\na;1,5;2\nb;2,5;3\n", 3),
        ("Screen of March\nid;y\na;1,5\nb;2,5\n", 2),
        ('"a title, with a comma"\nid,y,z\na,1,2\nb,1,2\n', 2),
    ],
)
@pytest.mark.filterwarnings("ignore::surepick.tables.TableWarning")
def test_a_title_above_the_header(write, content, line):
    with pytest.raises(InvalidInput, match=f"The header seems to be line {line}; give --header {line}"):
        read_table(write(content)).column("y")
    found = read_table(write(content), header=line)
    assert list(found.columns)[:2] == ["id", "y"]
    assert found.line_of(0) == line + 1


@needs_calamine
@pytest.mark.parametrize("kind", WRITERS)
def test_a_title_above_the_header_of_a_sheet(tmp_path, kind):
    path = WRITERS[kind](tmp_path / f"t{kind}", {"One": [["Screen of March"], [], *SHEET]})
    with pytest.raises(InvalidInput, match="The header seems to be line 3; give --header 3"):
        read_table(path).column("sku")
    found = noted(lambda: read_table(path, header=3), "we skip 1 row above the header in row 3")
    assert found.text("sku") == ("a", "b")
    with pytest.raises(InvalidInput, match="row 2 of the sheet names no columns"):
        read_table(path, header=2)


@pytest.mark.parametrize("header", [2, 9])
def test_a_header_that_is_not_there(write, header):
    with pytest.raises(InvalidInput, match=f"line {header} names no columns"):
        read_table(write("id,y\n\na,1\n"), header=header)


def test_a_header_of_what_has_no_lines(write):
    for options in ({"header": 2}, {"skip_units": True}):
        with pytest.raises(InvalidInput, match="no lines that name columns or units"):
            read_table(write('[{"a": 1}]', "t.json"), **options)
    with pytest.raises(InvalidInput, match="header is 0"):
        read_table(write("a\n1\n"), header=0)


# units


@pytest.mark.parametrize("first", [",mg/L", "name,mg/L", "-,(%)"])
def test_a_row_of_units_is_said_and_skipped(write, first):
    path = write(f"id,y\n{first}\na,1.5\nb,2.9\n")
    with pytest.raises(InvalidInput, match="Line 2 looks like units"):
        table(path, "id", "y", noise=NOISE)
    found = noted(lambda: table(path, "id", "y", noise=NOISE, skip_units=True), "we skip line 2, which has units")
    np.testing.assert_array_equal(found.means, [1.5, 2.9])


def test_a_row_with_numbers_is_no_row_of_units(write):
    with pytest.raises(InvalidInput, match="line 2: it has numbers, so it is no line of units"):
        read_table(write("id,y\na,1.5\n"), skip_units=True)


def test_a_slip_in_the_first_row_is_no_unit(write):
    with pytest.raises(InvalidInput, match=r"row 2: 'oops'\)\. Correct or drop") as caught:
        table(write("id,x,y\na,3,oops\nb,4,2.9\n"), "id", "y", noise=NOISE)
    assert "units" not in str(caught.value)


# merged cells


@needs_calamine
def test_cells_below_a_merged_one_are_filled_on_request(tmp_path):
    rows = [["id", "y"], ["a", 1.5], [None, 1.7], ["b", 2.9], [None, 3.1]]
    path = write_xlsx(tmp_path / "t.xlsx", {"One": rows}, merged="A2:A3")
    with pytest.raises(InvalidInput, match="Cells below a merged one are empty: fill them with --fill-down"):
        table(path, "id", "y", noise=NOISE)
    found = noted(lambda: table(path, "id", "y", noise=NOISE, fill_down="id"), "we fill 2 empty cells of column 'id'")
    np.testing.assert_allclose(found.means, [1.6, 3.0])


def test_columns_of_numbers_are_filled_down_too(write):
    found = noted(lambda: read_table(write('[{"n": 7, "y": 1}, {"y": 2}]', "t.json"), fill_down=["n"]), "1 empty cell")
    assert found.text("n") == ("7", "7")


def test_nothing_above_is_nothing_to_fill_with(write):
    with pytest.raises(InvalidInput, match="row 2: the first cell of column 'id' is empty"):
        read_table(write("id,y\n,1\na,2\n"), fill_down="id")
    with pytest.raises(InvalidInput, match="has no column 'sku'"):
        read_table(write("id,y\na,1\n"), fill_down="sku")


# repeats side by side


def test_repeats_side_by_side_are_measurements_and_empty_cells_are_none(write):
    path = write("id,rep1,rep2,x\na,1.5,,7\nb,2.9,3.1,8\n")
    found = noted(lambda: table(path, "id", "rep1,rep2", noise=NOISE), "1 of 4 cells for repeats are empty")
    np.testing.assert_allclose(found.means, [1.5, 3.0])
    assert found.arms.columns == ("x",)
    assert table(write("id,rep1,rep2\na,1,2\n"), "id", ["rep1", "rep2"], noise=NOISE).means == 1.5


def test_a_word_for_no_value_among_repeats_is_left_out_on_request_only(write):
    path = write("id,rep1,rep2\na,1.5,n.d.\nb,2.9,3.1\n")
    with pytest.raises(InvalidInput, match=r"row 2: 'rep2' is 'n\.d\.'\. Let a cell be empty"):
        table(path, "id", "rep1,rep2", noise=NOISE)
    found = noted(lambda: table(path, "id", "rep1,rep2", noise=NOISE, drop_missing=True), "1 of 4 cells")
    np.testing.assert_allclose(found.means, [1.5, 3.0])


def test_a_column_whose_name_has_a_comma_is_one_column(write):
    assert table(write('id,"a,b"\np,1\n'), "id", "a,b", noise=NOISE).means == 1.0


# a sheet a candidate


@needs_calamine
@pytest.mark.parametrize("kind", WRITERS)
def test_each_sheet_has_the_rows_of_one_candidate(tmp_path, kind):
    sheets = {"7": [["y", "x"], [1.5, 2], [1.7, 2]], "B 2": [["x", "y"], [3, 2.9]], "empty": []}
    path = WRITERS[kind](tmp_path / f"t{kind}", sheets)
    found = noted(lambda: read_table(path, sheets_are_ids=True), "we skip hidden and empty sheets ('empty')")
    assert found.text("id") == ("7", "7", "B 2")
    with pytest.warns(match="empty sheets"):
        world = table(path, reward="y", noise=NOISE, sheets_are_ids=True)
    assert (world.arms.ids, world.arms.columns) == (("7", "B 2"), ("x",))
    np.testing.assert_allclose(world.means, [1.6, 2.9])


@needs_calamine
def test_a_hidden_sheet_is_no_candidate_unless_it_is_named(tmp_path):
    path = write_xlsx(tmp_path / "t.xlsx", {"old": SHEET, "a": SHEET, "b": SHEET}, hidden=("old",))
    found = noted(lambda: read_table(path, sheets_are_ids=True), "hidden and empty sheets ('old')")
    assert set(found.text("id")) == {"a", "b"}
    noted(lambda: read_table(path), "we read the first that is not hidden, 'a'. Hidden: 'old'")
    assert noted(lambda: read_table(path, sheet="old")).num_rows == 2


@needs_calamine
@pytest.mark.parametrize(
    ("sheets", "words"),
    [
        ({"a": SHEET, "notes": [["written by", "me"]]}, "sheet 'notes' has other columns than 'a'"),
        ({"a": [["id", "y"], [1, 2]]}, "have a column 'id' of their own"),
        ({"a": [["y", "y"], [1, 2]]}, "more than one column named 'y'"),
        ({"a": []}, "no sheet has a cell"),
    ],
)
def test_sheets_that_are_no_candidates(tmp_path, sheets, words):
    path = write_xlsx(tmp_path / "t.xlsx", sheets)
    with pytest.raises(InvalidInput, match=words):
        read_table(path, sheets_are_ids=True)


def test_sheets_of_a_file_without_sheets(write):
    with pytest.raises(InvalidInput, match="has no sheets, so sheets cannot be ids"):
        read_arms(write("a\n1\n"), sheets_are_ids=True)
