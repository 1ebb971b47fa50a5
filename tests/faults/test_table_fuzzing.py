"""Tables of every kind with bytes changed, put in, taken out or cut: read, or refused in one sentence."""

import json
import random
import warnings
from pathlib import Path

import numpy as np
import pytest
from workbooks import write_ods, write_xls, write_xlsb, write_xlsx

from surepick.environments import table
from surepick.errors import SurepickError
from surepick.noise import SubGaussian
from surepick.tables import TableWarning, read_arms, read_table
from surepick.text import LONGEST

ROWS = [["id", "y", "note"], ["a", 1.5, "x"], ["a", 1.75, "n/a"], ["b", 2.5, "x"], ["b", 3.0, None]]
TEXTS = {
    "plain.csv": "id,y,note\na,1.5,x\na,1.75,n/a\nb,2.5,x\nb,3.0,\n",
    "semicolons.csv": "sep=;\r\nid;y;note\r\na;1,5;x\r\na;1.234,75;\r\nb;12,5;x\r\n",
    "tabs.tsv": '"id"\t"y"\n"1"\t"a"\t1,234,567\n"2"\t"b"\t-12\n',
    "words.txt": "# made by hand\nid|y\na|TRUE\nb|FALSE\n,\n\x1a",
    "records.json": json.dumps([dict(zip(ROWS[0], row, strict=True)) for row in ROWS[1:]]),
    "lines.jsonl": '{"id": "a", "y": true}\n{"id": "b"}\n{"id": "c", "y": 0}\n',
}
WRITERS = {".xlsx": write_xlsx, ".xls": write_xls, ".xlsb": write_xlsb, ".ods": write_ods}
KINDS = (*TEXTS, *(f"book{kind}" for kind in WRITERS), "columns.parquet", "columns.feather", "utf16.csv")
OPTIONS = (
    {},
    {"drop_missing": True},
    {"decimal": ","},
    {"thousands": ","},
    {"header": 2},
    {"skip_units": True},
    {"fill_down": "id"},
    {"percent": True},
    {"sheets_are_ids": True},
)
NOISE = SubGaussian(1.0)
PARTS = (",", ";", "\t", '"', "'", "\n", "\r", "\0", "\x1a", "#", "−", "١", "\ufeff", "1,234", "%", "_", "sep=;\n")


def good(folder: Path, kind: str) -> Path:
    """A sound file of a kind."""
    path, suffix = folder / kind, Path(kind).suffix
    if kind in TEXTS:
        path.write_text(TEXTS[kind], encoding="utf-8", newline="")
    elif kind == "utf16.csv":
        path.write_bytes(TEXTS["plain.csv"].encode("utf-16"))
    elif suffix in WRITERS:
        pytest.importorskip("python_calamine")
        WRITERS[suffix](path, {"One": ROWS, "Two": ROWS})
    else:
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow import feather, parquet

        columns = pyarrow.table({"id": ["a", "b", "b"], "y": [1.5, None, 2.5], "flag": [True, False, None]})
        (parquet.write_table if suffix == ".parquet" else feather.write_feather)(columns, path)
    return path


def changed(content: bytes, rng: random.Random) -> bytes:
    """The content with one to four changes."""
    found = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(found) + 1)
        match rng.randrange(5):
            case 0 if place < len(found):
                found[place] = rng.randrange(256)
            case 1:
                found[place:place] = rng.choice(PARTS).encode()
            case 2:
                del found[place : place + rng.randint(1, 8)]
            case 3:
                found[place:place] = found[place : place + rng.randint(1, 40)]
            case _ if rng.random() < 0.2:
                del found[place:]
    return bytes(found)


def read(path: Path, rng: random.Random) -> None:
    """One of the ways in which files are read."""
    options = rng.choice(OPTIONS)
    match rng.randrange(4):
        case 0:
            found = read_table(path, **options)
            for name in found.columns:
                found.numbers(name)
        case 1:
            read_arms(path, "id", **options)
        case 2:
            means = table(path, "id", "y", noise=NOISE, **options).means
            assert np.all(np.isfinite(means))
        case _:
            table(path, "id", "y,flag", noise=NOISE, **options)


def attack(folder: Path, kind: str, number: int, seed: int) -> int:
    """How many of so many changed files were refused, each in a sentence; anything else fails the test."""
    path, rng, refused = good(folder, kind), random.Random(seed), 0
    content = path.read_bytes()
    for _ in range(number):
        path.write_bytes(changed(content, rng))
        try:
            with warnings.catch_warnings(record=True) as noted:
                warnings.simplefilter("always", TableWarning)
                read(path, rng)
        except SurepickError as error:
            refused += 1
            said = [str(error)]
        else:
            said = [str(one.message) for one in noted]
        for sentence in said:
            assert sentence.isprintable(), (kind, sentence)
            assert 10 < len(sentence) <= LONGEST, (kind, sentence)
    return refused


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_with_a_few_bytes_changed_is_read_or_refused_in_a_sentence(tmp_path, kind):
    assert 0 < attack(tmp_path, kind, 60, seed=40) <= 60


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_thousands_of_files_with_a_few_bytes_changed(tmp_path, kind):
    assert 0 < attack(tmp_path, kind, 2_000, seed=41) < 2_000
