"""Tables as people have them: other separators, spreadsheets, Arrow, JSON; what was done is said in one note."""

import builtins
import gzip
import json
import warnings

import numpy as np
import pytest
from table_notes import noted
from workbooks import write_ods, write_xlsx

from surepick.errors import InvalidInput
from surepick.tables import TableWarning, read_arms, read_table

SHEET = [["sku", "x", "y"], ["a", 1.5, 3], ["b", -2, 4]]
WRITERS = {".xlsx": write_xlsx, ".ods": write_ods}
needs_calamine = pytest.mark.usefixtures("calamine")


@pytest.fixture
def calamine():
    pytest.importorskip("python_calamine")


# separators


@pytest.mark.parametrize("name", ["arms.tsv", "arms.csv"])
def test_tabs_are_recognised_and_said(write, name):
    path = write("sku\tx\ty\na,1\t1.5\t2\nb\t-3\t4\n", name)
    table = noted(lambda: read_table(path), "we read tabs between the cells")
    assert table.text("sku") == ("a,1", "b")
    np.testing.assert_array_equal(table.numbers("x"), [1.5, -3.0])


def test_semicolons_with_decimal_commas_are_recognised_and_said(write):
    path = write("sku;x;y\r\n0,7;1,5;2\r\n0,8;-3,25e1;,5\r\n")
    table = noted(lambda: read_table(path), "we read semicolons between the cells")
    assert table.text("sku") == ("0,7", "0,8")
    said = "we read commas as decimal points: '1,5' is 1.5 (column 'x')"
    np.testing.assert_array_equal(noted(lambda: table.numbers("x"), said), [1.5, -32.5])
    arms = noted(lambda: read_arms(path, "sku"), "semicolons", "decimal points")
    assert (arms.ids, arms.columns) == (("0,7", "0,8"), ("x", "y"))
    np.testing.assert_array_equal(arms.features, [[1.5, 2], [-32.5, 0.5]])


def test_semicolons_with_decimal_points_are_read_too(write):
    table = noted(lambda: read_table(write("x;y\n1.5;2\n")), "we read semicolons between the cells")
    np.testing.assert_array_equal(table.numbers("x"), [1.5])


@pytest.mark.filterwarnings("ignore::surepick.tables.TableWarning")
def test_points_beside_decimal_commas_are_refused(write):
    """1.234 is 1234 to whoever wrote 1,5; it is not taken for a number near 1."""
    path = write("x;y\n1,5;a\n1.234;a\n")
    with pytest.raises(InvalidInput, match=r"beside '1,5', is '1\.234' the number 1\.234 or 1234"):
        read_table(path).numbers("x")


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        ('id,note\na,"x;y;z"\nb,\n', ("id", "note")),
        ("id,a;b\n1,2;3\n", ("id", "a;b")),
        ("id\na;b\n", ("id",)),
        ("name (a; b; c),x\nq,1\n", ("name (a; b; c)", "x")),
        ("sku,x\na,1\n", ("sku", "x")),
    ],
)
def test_commas_stay_commas(write, content, columns):
    assert tuple(noted(lambda: read_table(write(content))).columns) == columns


@pytest.mark.filterwarnings("ignore::surepick.tables.TableWarning")
def test_commas_in_names_do_not_hide_semicolons(write):
    assert tuple(read_table(write("name, full;x;y\nfoo;1,5;2,0\n")).columns) == ("name, full", "x", "y")


@pytest.mark.filterwarnings("ignore::surepick.tables.TableWarning")
@pytest.mark.parametrize(("separator", "word"), [("\t", "tab"), (";", "semicolon")])
def test_a_ragged_row_of_another_separator_is_named(write, separator, word):
    with pytest.raises(InvalidInput, match=f"line 3: 3 cells where 2 columns .* quote cells that contain a {word}"):
        read_table(write("a,b\n1,2\n1,2,3\n".replace(",", separator)))


# comments and headers


def test_comments_above_the_header_are_skipped_and_the_lines_keep_their_numbers(write):
    path = write("# made by instrument 7, firmware 2\n\n#\tstart 09:00\nsku,x\na,1\n\nb,oops\nc,2\n")
    table = noted(lambda: read_table(path), "we skip 2 comment lines (#) above the header")
    assert tuple(table.columns) == ("sku", "x")
    with pytest.raises(InvalidInput, match="row 7: 'oops'"):
        table.numbers("x")


def test_a_comment_that_a_spreadsheet_has_filled_up_is_skipped(write):
    table = noted(lambda: read_table(write("# made by hand,,\nsku,x,y\na,1,2\n")), "we skip 1 comment line (#)")
    assert tuple(table.columns) == ("sku", "x", "y")


@pytest.mark.parametrize(("above", "words"), [("", ()), ("# made by hand, in May\n", ("we skip 1 comment line",))])
def test_a_header_that_begins_with_a_hash_is_a_header(write, above, words):
    table = noted(lambda: read_table(write(above + "#sku,x\na,1\nb,2\n")), *words)
    assert table.text("#sku") == ("a", "b")


def test_a_file_of_comments_is_refused(write):
    with pytest.warns(TableWarning, match="2 comment lines"), pytest.raises(InvalidInput, match="holds only comments"):
        read_table(write("# a\n# b\n"))


@pytest.mark.parametrize("column", ["y", "sku"])
def test_a_file_without_a_header_is_said_to_look_like_data(write, column):
    words = r"it has 'a', '1', '\.5'\. The first line looks like data \('1' is a number\): name the columns in a line"
    with pytest.raises(InvalidInput, match=words):
        read_table(write("a,1,.5\nb,2,.6\n")).column(column)


def test_cells_that_would_be_two_names_are_said_to_look_like_data(write):
    with pytest.raises(InvalidInput, match=r"columns of one name\. The first line looks like data"):
        read_table(write("a,1,1\nb,2,3\n"))


def test_a_lost_first_row_is_said_where_no_column_is_named(write):
    arms = noted(lambda: read_arms(write("1.5,2\n3,4\n")), "looks like data ('1.5' is a number)")
    assert arms.num_arms == 1
    frame = noted(lambda: read_arms(write(",0,1\n0,3,4\n")), "column 'column 1' looks like row numbers")
    assert (frame.num_arms, frame.columns) == (1, ("0", "1"))  # a data frame without names


# ids


def test_spaces_around_an_id_are_not_part_of_it(write):
    path = write("sku,lot,x\na , 1,1\n b,2 ,2\n")
    assert read_arms(path, "sku", "x").ids == ("a", "b")
    assert read_arms(path, "sku,lot", "x").ids == ("a/1", "b/2")


def test_two_ids_that_differ_in_spaces_are_one_id(write):
    with pytest.raises(InvalidInput, match=r"1 ids are repeated .*'a'"):
        read_arms(write("sku,x\na,1\na ,2\n"), "sku")


@pytest.mark.parametrize("name", ["arms.csv", "arms.parquet"])
def test_ids_that_differ_in_case_are_named(tmp_path, name):
    from surepick.tables import write_table

    write_table(tmp_path / name, {"sku": ["Ab", "b", "aB", "B", "c"], "x": [1, 2, 3, 4, 5]})
    arms = noted(
        lambda: read_arms(tmp_path / name, "sku"),
        "the ids 'Ab' and 'aB' differ only in capital letters, and so do 1 more",
    )
    assert arms.num_arms == 5


# spreadsheets


@needs_calamine
@pytest.mark.parametrize("kind", WRITERS)
def test_a_spreadsheet_is_read(tmp_path, kind):
    path = WRITERS[kind](tmp_path / f"arms{kind}", {"Tabelle1": SHEET})
    arms = noted(lambda: read_arms(path, "sku"))
    assert (arms.ids, arms.columns) == (("a", "b"), ("x", "y"))
    np.testing.assert_array_equal(arms.features, [[1.5, 3], [-2, 4]])


@needs_calamine
@pytest.mark.parametrize("kind", WRITERS)
def test_the_first_sheet_is_read_or_the_one_that_is_named(tmp_path, kind):
    path = WRITERS[kind](tmp_path / f"arms{kind}", {"One": SHEET, "Two": [["sku"], ["q"]]})
    words = "has 2 sheets ('One', 'Two'); we read the first"
    assert noted(lambda: read_table(path), words).text("sku") == ("a", "b")
    assert noted(lambda: read_table(path, sheet="Two")).text("sku") == ("q",)
    with pytest.raises(InvalidInput, match="has no sheet 'Three'; it has 'One', 'Two'"):
        read_table(path, sheet="Three")


def test_a_sheet_of_a_file_without_sheets_is_refused(write):
    with pytest.raises(InvalidInput, match=r"has no sheets, so we cannot read 'One'"):
        read_table(write("a\n1\n"), sheet="One")


@needs_calamine
def test_a_sheet_may_begin_anywhere_and_have_comments_and_gaps(tmp_path):
    rows = [[None, "# made by hand"], [], [None, "sku", None, "x"], [None, "a", None, 1], [], [None, 7, None, True]]
    path = write_xlsx(tmp_path / "arms.xlsx", {"One": rows})
    table = noted(lambda: read_table(path), "we skip 1 comment line (#)")
    assert {name: table.text(name) for name in table.columns} == {"sku": ("a", "7"), "x": ("1", "True")}
    assert table.line_of(1) == 6


@needs_calamine
def test_an_error_in_a_cell_and_an_empty_one_are_missing(tmp_path):
    path = write_xlsx(tmp_path / "arms.xlsx", {"One": [["sku", "x"], ["a", 1], ["b", None], ["c", "#DIV/0!"]]})
    with pytest.raises(InvalidInput, match=r"2 of 3 rows miss a cell \(row 3: 'x' is empty, row 4: 'x' is"):
        read_arms(path, "sku", "x")
    arms = noted(lambda: read_arms(path, "sku", "x", drop_candidates=True), "we leave out 2 of 3 rows")
    assert arms.ids == ("a",)


@needs_calamine
@pytest.mark.parametrize("rows", [[], [[None]], [["# only this"]], [["sku", "x"]]])
def test_a_sheet_without_rows_is_refused(tmp_path, rows):
    path = write_xlsx(tmp_path / "arms.xlsx", {"One": rows})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(InvalidInput, match=r"the sheet is empty|and no rows"):
            read_table(path)


@needs_calamine
def test_a_filled_cell_at_the_far_end_is_refused_before_memory_is_asked_for(tmp_path):
    path = write_xlsx(tmp_path / "arms.xlsx", {"One": SHEET}, cells={"XFD1048576": 1})
    with pytest.raises(InvalidInput, match="span 1,048,576 rows and 16,384 columns"):
        read_table(path)
    empty = write_xlsx(tmp_path / "empty.xlsx", {"One": SHEET}, cells={"XFD1048576": None})
    assert read_table(empty).num_rows == 2


@pytest.mark.parametrize("name", ["arms.xlsx", "arms.ods"])
def test_a_spreadsheet_without_its_package_names_the_command(write, monkeypatch, name):
    real_import = builtins.__import__

    def without(name, *args, **kwargs):
        if name.startswith("python_calamine"):
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InvalidInput, match=r'pip install "surepick\[excel\]"'):
        read_table(write("", name))


# Arrow


@pytest.mark.parametrize("name", ["arms.feather", "arms.arrow", "arms.ipc", "stream.arrow"])
def test_arrow_files_are_read(tmp_path, name):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import feather, ipc

    columns = pyarrow.table({"sku": ["a", "ü"], "x": [1.5, None], "n": [1, 2]})
    path = tmp_path / name
    if name == "stream.arrow":
        with ipc.new_stream(path, columns.schema) as writer:
            writer.write_table(columns)
    else:
        feather.write_feather(columns, path)
    table = read_table(path)
    assert table.text("sku") == ("a", "ü")
    np.testing.assert_array_equal(table.numbers("x"), [1.5, np.nan])
    assert table.text("n") == ("1", "2")


def test_a_feather_file_of_the_old_version_is_said_to_be_one(write):
    pytest.importorskip("pyarrow")
    with pytest.raises(InvalidInput, match="a Feather file of version 1"):
        read_table(write(b"FEA1" + bytes(20) + b"FEA1", "old.feather"))


def test_two_columns_of_one_name_are_refused_in_arrow_files(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import feather

    both = pyarrow.Table.from_arrays([pyarrow.array([1]), pyarrow.array([2])], names=["x", "x"])
    feather.write_feather(both, tmp_path / "t.feather")
    with pytest.raises(InvalidInput, match="more than one column named 'x'"):
        read_table(tmp_path / "t.feather")


# JSON


def test_an_array_of_records_is_a_table(write):
    path = write('[\n  {"sku": "a", "x": 1.5},\n  {"sku": "b", "x": null}\n]\n', "arms.json")
    table = read_table(path)
    assert table.text("sku") == ("a", "b")
    np.testing.assert_array_equal(table.numbers("x"), [1.5, np.nan])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"sku": ["a"], "x": [1]}', "holds one object; a table is an array of records"),
        ("[1, 2]", "holds an array of something else than records"),
        ('[{"x": 1}, 2]', "holds an array of something else than records"),
        ("[]", "holds an empty array"),
        ("7", "holds a single value"),
        ('{"x": 1}\n{"x": 2}\n', r"not JSON: Extra data.* one record a line in a file that ends in \.jsonl"),
        ("sku,x\na,1\n", "not JSON: .* an array of records"),
    ],
)
def test_json_that_is_no_array_of_records_says_what_is_expected(write, content, words):
    with pytest.raises(InvalidInput, match=words):
        read_table(write(content, "arms.json"))


@pytest.mark.parametrize("name", ["arms.jsonl.gz", "arms.json.gz", "arms.CSV.GZ"])
def test_what_is_packed_is_read_by_the_ending_before(write, name):
    rows = [{"x": 1}, {"x": 2}]
    text = {
        "arms.jsonl.gz": "\n".join(map(json.dumps, rows)),
        "arms.json.gz": json.dumps(rows),
        "arms.CSV.GZ": "x\n1\n2\n",
    }[name]
    np.testing.assert_array_equal(read_table(write(gzip.compress(text.encode()), name)).numbers("x"), [1, 2])
