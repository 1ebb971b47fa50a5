"""What files are by their first bytes, and separated text as many programs write it."""

import codecs
import gzip
import json
import zipfile

import numpy as np
import pytest
from table_notes import noted
from together import of_each
from workbooks import write_xls, write_xlsb, write_xlsx

from surepick.errors import InvalidInput
from surepick.tables import read_arms, read_columns, read_table

SHEET = [["sku", "x"], ["a", 1.5], ["b", True]]
needs_calamine = pytest.mark.usefixtures("calamine")
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


@pytest.fixture
def calamine():
    pytest.importorskip("python_calamine")


def refusal(path, read=read_table):
    """The sentence with which a file is refused."""
    with pytest.raises(InvalidInput) as caught:
        read(path)
    message = str(caught.value)
    assert len(message) < 500
    assert message.isprintable()
    return message


# first bytes


@of_each("name", ["t.csv", "t.tsv", "t.json", "t.jsonl", "t.parquet", "t.feather", "t.xlsx", "t.xls"])
@of_each(
    ("content", "words"),
    [
        (b"\n\n<!DOCTYPE html>\n<html><head><title>x, y</title></head></html>", "is a web page"),
        (b"\xef\xbb\xbf<html><body>sign in</body></html>", "is a web page"),
        (b"<table><tr><td>1</td></tr></table>", "is a web page"),
        (b'<?xml version="1.0"?><Workbook></Workbook>', "is an XML document"),
        (POINTER, "is a pointer of Git LFS, not the file itself. Fetch it: git lfs pull"),
        (b"%PDF-1.7\n", "is a document for printing"),
        (b"\x93NUMPY\x01\x00", "is an array of numpy"),
        (b"SQLite format 3\0", "is a SQLite database"),
    ],
)
def test_a_file_of_another_kind_is_named(write, name, content, words):
    if name in ("t.parquet", "t.feather"):
        pytest.importorskip("pyarrow")
    if name in ("t.xlsx", "t.xls"):
        pytest.importorskip("python_calamine")
    assert words in refusal(write(content, name))


def test_a_pointer_in_place_of_a_packed_or_a_column_file_is_named(write):
    pytest.importorskip("pyarrow")
    assert "Git LFS" in refusal(write(POINTER, "t.csv.gz"))
    for read in (read_columns, lambda path: read_arms(path, "sku")):
        assert "Git LFS" in refusal(write(POINTER, "t.parquet"), read)


@needs_calamine
@pytest.mark.parametrize(("kind", "write_it"), [(".xlsx", write_xlsx), (".xls", write_xls), (".xlsb", write_xlsb)])
def test_workbooks_of_each_kind_are_read_whatever_their_ending(tmp_path, kind, write_it):
    path = write_it(tmp_path / f"t{kind}", {"One": SHEET, "Two": SHEET})
    table = noted(lambda: read_table(path), "has 2 sheets ('One', 'Two'); we read the first")
    assert {name: table.text(name) for name in table.columns} == {"sku": ("a", "b"), "x": ("1.5", "True")}
    assert read_table(path.rename(tmp_path / "t.xlsm"), sheet="Two").num_rows == 2
    text = (tmp_path / "t.xlsm").rename(tmp_path / "t.csv")
    assert "is an old workbook" in refusal(text) or "is a workbook or another zip archive" in refusal(text)


@needs_calamine
@pytest.mark.parametrize("name", ["t.xlsx", "t.xls", "t.ods"])
def test_text_that_is_called_a_workbook(write, name):
    assert "is text, not a workbook. Let its name end in .csv or .tsv" in refusal(write("sku\tx\na\t1\n", name))


@needs_calamine
def test_far_cells_of_old_and_binary_workbooks_are_refused_before_memory_is_asked_for(tmp_path):
    path = write_xlsb(tmp_path / "t.xlsb", {"One": SHEET}, far=(1_048_575, 16_383))
    assert "span 1,048,576 rows and 16,384 columns" in refusal(path)
    path = write_xls(tmp_path / "t.xls", {"One": SHEET})
    content = path.read_bytes()
    cell = (2).to_bytes(2, "little") + (1).to_bytes(2, "little")  # of the last row
    far = content.replace(b"\x05\x02\x08\x00" + cell, b"\x05\x02\x08\x00" + b"\xff\xff\xff\xff")
    assert far != content
    path.write_bytes(far)
    assert "span 65,536 rows and 65,536 columns" in refusal(path)


@needs_calamine
def test_a_zip_archive_that_is_no_workbook(tmp_path):
    with zipfile.ZipFile(tmp_path / "t.xlsx", "w") as archive:
        archive.writestr("t.csv", "a\n1\n")
    assert "not a readable spreadsheet file" in refusal(tmp_path / "t.xlsx")


def test_a_header_that_begins_like_another_kind_is_a_header(write):
    for name in ("PAR1", "ARROW1", "PK", "BZh", "Rar!", "GIF8"):
        assert read_table(write(f"{name},x\na,1\n")).text(name) == ("a",)


# encodings


@pytest.mark.parametrize(
    ("encoding", "mark"),
    [
        ("utf-16-le", codecs.BOM_UTF16_LE),
        ("utf-16-be", codecs.BOM_UTF16_BE),
        ("utf-32-le", codecs.BOM_UTF32_LE),
        ("utf-32-be", codecs.BOM_UTF32_BE),
    ],
)
def test_a_byte_order_mark_shows_the_encoding(write, encoding, mark):
    path = write(mark + "skü\tx\r\na\t1\r\n".encode(encoding), "t.txt")
    table = noted(lambda: read_table(path), f"we read UTF-{encoding[4:6]}", "tabs")
    assert table.text("skü") == ("a",)


def test_utf16_without_its_mark_or_cut_is_said_to_be_that(write):
    assert "looks like UTF-16 without a byte-order mark" in refusal(write("sku,x\na,1\n".encode("utf-16-le")))
    with pytest.raises(InvalidInput, match="is not UTF-16-LE text"):
        read_table(write(codecs.BOM_UTF16_LE + "sku,x\na,1\n".encode("utf-16-le")[:-1]))


def test_two_byte_order_marks_are_no_part_of_a_name(write):
    assert list(read_table(write("\ufeff\ufeffsku,x\na,1\n")).columns) == ["sku", "x"]


# lines and separators

ROWS = {"id": ("a", "b"), "y": ("1.5", "2.9")}


@of_each(
    ("content", "notes"),
    [
        ("id,y\ra,1.5\rb,2.9\r", ()),
        ("id,y\r\na,1.5\r\nb,2.9\r\n\x1a", ()),
        ("id,y\na,1.5\nb,2.9\n\x1a\x1a\n", ()),
        ("id,y\n,\na,1.5\n , \nb,2.9\n,\n   \n", ()),
        (",\nid,y\na,1.5\nb,2.9\n", ()),
        ("id,y,\na,1.5,\nb,2.9,\n", ()),
        ("id,y\na,1.5,\nb,2.9,\n", ()),
        ("id,y,,,\na,1.5,,,\nb,2.9\n", ()),
        ('"id", "y"\n"a", "1.5"\n"b",  2.9\n', ()),
        ('"id" ,"y"\n"a" ,"1.5"\n"b" ,"2.9" \n', ()),
        ("id|y\na|1.5\nb|2.9\n", ("bars",)),
        ("sep=;\r\nid;y\r\na;1.5\r\nb;2.9\r\n", ("semicolons between the cells, as its line sep= says",)),
        ("SEP=,\nid,y\na,1.5\nb,2.9\n", ("commas between the cells, as its line sep= says",)),
        ('"sep=|"\nid|y\na|1.5\nb|2.9\n', ("bars between the cells, as its line sep= says",)),
        ("sep=\t\nid\ty\na\t1.5\nb\t2.9\n", ("tabs between the cells, as its line sep= says",)),
        ("sep=;;;\nid;y;\na;1.5;\nb;2.9;\n", ("semicolons between the cells, as its line sep= says",)),
        ("sep=^\nid^y\na^1.5\nb^2.9\n", ("'^'s between the cells, as its line sep= says",)),
        ('"id"\t"y"\n"1"\t"a"\t1.5\n"2"\t"b"\t2.9\n', ("only count rows", "tabs")),
        ('"id" "y"\n"1" "a" 1.5\n"2" "b" 2.9\n', ("only count rows", "spaces")),
        ('"id","y"\n"1","a",1.5\n"2","b",2.9\n', ("only count rows",)),
        ("id;y\n3;a;1.5\n7;b;2.9\n", ("only count rows", "semicolons")),
    ],
)
def test_one_table_as_many_programs_write_it(write, content, notes):
    table = noted(lambda: read_table(write(content)), *notes)
    assert {name: tuple(map(str.strip, table.text(name))) for name in table.columns} == ROWS


def test_names_of_rows_in_r_may_be_the_ids(write):
    path = write('"mpg"\t"cyl"\n"Mazda RX4"\t21\t6\n"Datsun 710"\t22.8\t4\n')
    table = noted(lambda: read_table(path), "the first column has row names", "tabs")
    assert table.text("column 1") == ("Mazda RX4", "Datsun 710")


@pytest.mark.parametrize(
    "content", ["id,y\na,1,5\nb,2,9\n", "id,y\na,1.5\nb,2.9\nc\n", "id,y\na,1.5\nb,2.9,1\n", "name,x\nSmith, J,1\n"]
)
def test_rows_of_other_widths_are_refused(write, content):
    assert "cells where 2 columns were expected" in refusal(write(content))


def test_lines_keep_their_numbers(write):
    table = noted(lambda: read_table(write("sep=,\n\nid,y\n,\na,1\n,\nb,x\n")), "sep=")
    assert [table.line_of(row) for row in range(2)] == [5, 7]


def test_a_quoted_empty_cell_is_a_row_where_there_is_one_column(write):
    assert read_table(write('x\n""\n1\n   \n')).text("x") == ("", "1")


# JSON and typed cells


def test_json_cells_of_each_kind(write):
    rows = [{"id": "a", "y": True}, {"id": "b", "y": 1}, {"id": "c"}, {"id": "d", "y": False, "note": "x"}]
    for name, text in (("t.json", json.dumps(rows)), ("t.jsonl", "\n".join(map(json.dumps, rows)))):
        table = read_table(write(text, name))
        assert table.missing_rows("y") == [2]
        left = table.without([2])
        assert noted(lambda: left.numbers("y").tolist(), "we read words as numbers") == [1, 1, 0]  # noqa: B023


@needs_calamine
def test_booleans_of_a_sheet_beside_numbers(tmp_path):
    path = write_xlsx(tmp_path / "t.xlsx", {"One": [["id", "y", "z"], ["a", True, True], ["b", 0, 2.5]]})
    table = read_table(path)
    assert noted(lambda: table.numbers("y").tolist(), "words as numbers: 'True' is 1") == [1, 0]
    with pytest.raises(InvalidInput, match="Words for yes and no stand alone"):
        table.numbers("z")


@needs_calamine
def test_a_number_of_a_sheet_has_its_point_whatever_stands_beside(tmp_path):
    path = write_xlsx(tmp_path / "t.xlsx", {"One": [["id", "y"], ["a", 1.234], ["b", 987], ["c", "n/a"]]})
    assert read_table(path).without([2]).numbers("y").tolist() == [1.234, 987]


def test_parquet_columns_of_each_type(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    import datetime
    import decimal

    from pyarrow import parquet

    columns = {
        "bool": pyarrow.array([True, False, None]),
        "decimal": pyarrow.array([decimal.Decimal("1.234"), decimal.Decimal("987.000"), None]),
        "word": pyarrow.array(["1.5", "2.5", None]).dictionary_encode(),
        "bytes": pyarrow.array([b"a", "b\u00fc".encode(), b"c"]),
        "comma": pyarrow.array(["1,234", "987", None]),
        "day": pyarrow.array([datetime.date(2024, 5, 1)] * 3),
    }
    parquet.write_table(pyarrow.table(columns), tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet").without([2])
    assert noted(lambda: table.numbers("bool").tolist(), "words as numbers") == [1, 0]
    assert table.numbers("decimal").tolist() == [1.234, 987]
    assert table.numbers("word").tolist() == [1.5, 2.5]
    assert table.text("bytes") == ("a", "bü")
    for name, words in (("comma", "is '1,234' the number 1.234 or 1234"), ("day", "is not numeric")):
        with pytest.raises(InvalidInput, match=words):
            table.numbers(name)


def test_what_is_packed_may_be_any_of_these(write):
    table = read_table(write(gzip.compress(b"id,y\r\na,1.5\r\n\x1a"), "t.csv.gz"))
    np.testing.assert_array_equal(table.numbers("y"), [1.5])
