"""Damaged and hostile tables: one sentence, never a traceback, and nothing that does not end."""

import gzip
import json
import os
import resource
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from budgets import budget, few_and_all
from workbooks import write_ods, write_xlsx

from surepick.errors import InvalidInput
from surepick.tables import read_arms, read_columns, read_json_lines, read_table, write_table

CELLS = {"sku": ["a", "bé", "c"], "x": [1.5, 2.5, 0.1], "n": [1, 2, 3]}


def refusal(path: Path, read=read_table, *more) -> str:
    """The sentence with which a file is refused."""
    with pytest.raises(InvalidInput) as caught:
        read(path, *more)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def survives(path: Path, *reads) -> bool:
    """Whether each of the readers gives something; the others refuse in one line."""
    whole = True
    for read in reads:
        try:
            read(path)
        except InvalidInput as error:
            whole = False
            if "\n" in str(error):
                raise AssertionError("more than one line") from error
    return whole


# JSON


@pytest.mark.parametrize("digits", [310, 5_000])
@pytest.mark.parametrize(("name", "shape"), [("t.jsonl", '{{"x": {}}}'), ("t.json", '[{{"x": {}}}]')])
def test_an_integer_of_many_digits_is_no_feature(write, name, shape, digits):
    path = write(shape.format("7" * digits), name)
    assert len(refusal(path, partial(read_arms, features="x"))) < 500


def test_an_integer_of_many_digits_is_the_id_that_stands_there(write):
    assert read_arms(write('{"x": ' + "7" * 310 + "}", "t.jsonl"), "x").ids == ("7" * 310,)


@pytest.mark.parametrize("name", ["t.jsonl", "t.json"])
@pytest.mark.parametrize("text", ["[" * 100_000, '{"x":' * 100_000, "[" * 100_000 + "]" * 100_000])
def test_deep_nesting_is_refused(write, name, text):
    assert "not JSON" in refusal(write(text, name))


def test_lines_of_deep_nesting_are_refused(write):
    assert "line 1: not JSON" in refusal(write("[" * 100_000, "t.jsonl"), read_json_lines)


def test_the_configuration_of_a_folder_may_be_hostile_too(tmp_path):
    (tmp_path / "data.csv").write_text("1,2\n")
    for text in ("[" * 100_000, "{", '{"parameters": ' + "7" * 5_000 + "}"):
        (tmp_path / "config.json").write_text(text)
        assert "not JSON" in refusal(tmp_path)


# Parquet


@few_and_all("step", 3, 1)
def test_parquet_with_any_byte_of_its_footer_flipped(tmp_path, write, step):
    """The whole file is read, and its numbers straight into an array: neither gives a traceback, at any byte."""
    write_table(tmp_path / "good.parquet", CELLS)
    good = (tmp_path / "good.parquet").read_bytes()
    footer = int.from_bytes(good[-8:-4], "little") + 8
    places, refused = range(len(good) - footer, len(good), step), 0
    for place in places:
        content = bytearray(good)
        content[place] ^= 0xFF
        refused += not survives(write(bytes(content), "t.parquet"), read_table, lambda path: read_arms(path, "sku"))
    assert refused > len(places) / 4


def test_a_parquet_file_that_counts_rows_which_are_not_there_is_refused(tmp_path, write):
    """The array would otherwise keep what stood in the memory before."""
    pytest.importorskip("pyarrow")
    write_table(tmp_path / "good.parquet", {"x": np.arange(100.0)})
    good = (tmp_path / "good.parquet").read_bytes()
    refused = 0
    footer = int.from_bytes(good[-8:-4], "little") + 8
    for place in range(len(good) - footer, len(good)):
        if good[place : place + 2] == b"\xc8\x01":  # 100, as the footer writes it
            path = write(good[:place] + b"\xca\x01" + good[place + 2 :], "t.parquet")
            try:
                assert read_arms(path).num_arms == 100
            except InvalidInput:
                refused += 1
    assert refused >= 2  # in all of the file, and in its one part


def not_utf8(content: bytes) -> bytes:
    assert "é".encode() in content
    return content.replace("é".encode(), b"\xff\xfe")


def test_texts_that_are_not_utf8_are_refused(tmp_path, write):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import feather, parquet

    columns = pyarrow.table(CELLS)
    parquet.write_table(columns, tmp_path / "good.parquet", compression="none")
    feather.write_feather(columns, tmp_path / "good.feather", compression="uncompressed")
    path = write(not_utf8((tmp_path / "good.parquet").read_bytes()), "t.parquet")
    for read in (read_table, read_columns, lambda path: read_arms(path, "sku")):
        assert "not a readable Parquet file" in refusal(path, read)
    path = write(not_utf8((tmp_path / "good.feather").read_bytes()), "t.feather")
    assert "not a readable Arrow file" in refusal(path)
    for name in ("t.csv", "t.jsonl", "t.json"):
        assert "not UTF-8 text" in refusal(write(b'[{"sku": "\xff"}]\n', name))


# any format, cut or altered anywhere


@pytest.fixture(params=[".parquet", ".feather", ".xlsx", ".ods", ".json", ".jsonl.gz", ".csv"])
def good(request, tmp_path) -> Path:
    path = tmp_path / f"good{request.param}"
    rows = [list(CELLS), *zip(*CELLS.values(), strict=True)]
    if request.param == ".feather":
        feather = pytest.importorskip("pyarrow.feather")
        feather.write_feather(pytest.importorskip("pyarrow").table(CELLS), path)
    elif request.param in (".xlsx", ".ods"):
        pytest.importorskip("python_calamine")
        {".xlsx": write_xlsx, ".ods": write_ods}[request.param](path, {"One": rows})
    elif request.param == ".json":
        path.write_text(json.dumps([dict(zip(CELLS, row, strict=True)) for row in rows[1:]]))
    elif request.param == ".jsonl.gz":
        lines = "\n".join(json.dumps(dict(zip(CELLS, row, strict=True))) for row in rows[1:])
        path.write_bytes(gzip.compress(lines.encode()))
    else:
        write_table(path, CELLS)
    return path


@pytest.mark.filterwarnings("ignore::surepick.tables.TableWarning")
def test_a_file_that_is_cut_or_altered_is_read_or_refused_in_one_line(good):
    content = good.read_bytes()
    assert survives(good, read_table)
    rng = np.random.default_rng(18)
    for _ in range(budget(100, fewest=50)):
        good.write_bytes(content[: rng.integers(len(content))])
        survives(good, read_table)
        altered = bytearray(content)
        altered[rng.integers(len(content))] ^= int(rng.integers(1, 256))
        good.write_bytes(altered)
        survives(good, read_table, lambda path: read_arms(path, "sku"))


# what is no file on a disk

ENDLESS = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
from surepick.errors import InvalidInput
from surepick.tables import read_arms, read_columns, read_table
for path in sys.argv[1:]:
    for read in (read_table, read_arms, read_columns):
        try:
            read(path)
        except InvalidInput as error:
            print(path, error)
"""


@pytest.mark.parametrize("kind", ["device", "pipe"])
def test_a_device_and_a_pipe_are_refused_at_once(tmp_path, kind):
    paths = [tmp_path / f"zero.{ending}" for ending in ("csv", "parquet", "json", "feather", "xlsx", "csv.gz")]
    for path in paths:
        if kind == "pipe":
            os.mkfifo(path)
        else:
            path.symlink_to("/dev/zero")
    done = subprocess.run(
        [sys.executable, "-c", ENDLESS, *map(str, paths)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    refused = [line.split()[0] for line in done.stdout.splitlines() if "is not a regular file" in line]
    for path in paths:
        assert refused.count(str(path)) == 3 or (path.suffix == ".xlsx" and str(path) in refused), done.stdout


def test_a_folder_is_refused_where_a_file_is_needed(tmp_path):
    assert "is a folder" in refusal(tmp_path, read_columns)


@pytest.mark.parametrize("name", ["x" * 300 + ".csv", "x" * 300 + ".parquet", "a\0b.csv"])
@pytest.mark.parametrize("read", [read_table, read_arms, read_columns])
def test_a_name_that_no_file_can_have_is_refused(tmp_path, name, read):
    assert "cannot be read: " in refusal(tmp_path / name, read)


def test_memory_is_not_asked_for_by_a_file_of_a_few_bytes(tmp_path):
    """A far cell in a spreadsheet would ask for half a terabyte, and end the process."""
    pytest.importorskip("python_calamine")
    path = write_xlsx(tmp_path / "far.xlsx", {"One": [["sku"], ["a"]]}, cells={"XFD1048576": 1})
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert "span 1,048,576 rows" in refusal(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000
