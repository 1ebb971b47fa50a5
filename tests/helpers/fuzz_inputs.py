"""Odd inputs: values, texts and command lines drawn by hypothesis, and real files with some of their bytes changed."""

import gzip
import json
import random
import shutil
import sqlite3
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields
from datetime import datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import strategies as st
from scipy.sparse import csr_array

import surepick as sp
from surepick.certificates.signature import sealed
from surepick.tables import write_table
from surepick_bench.results import Replicate, Round, column_kinds

IDS = ["älpha", "b", "c,c"]
MEANS = dict(zip(IDS, (0.9, 0.1, 0.3), strict=True))
CONTROLS = "\x1b[31mred\n\x07\u202eevil\r\x9b2J"
HALF = "half\udcff"
TOKENS = [
    *(b"\xff", b"\x00", b"\xef\xbb\xbf", b"[" * 3000, b"9" * 400, b"9" * 5000, b"1e999", b"-", b"NaN", b"Infinity"),
    *(b'"', b",", b";", b"\t", b"\n", b"\r\n", b"{}", b"null", b"true", b"=1+1", b"\x1b[31m", b"'", b"\\u0000"),
    *(b"\xed\xa0\x80", b"id", b"y", b"failed", b"p1.0@b", b"{" * 50, b" " * 600, b"x" * 3000),
]


class Hostile:
    """A stranger's class that cannot be written down."""

    def __repr__(self) -> str:
        raise RuntimeError("no")

    def __float__(self) -> float:
        raise OverflowError("too much")


class Raises:
    """A stranger's class that fails whenever it is looked at."""

    def _fail(self, *_: object) -> None:
        raise RuntimeError("no\nlook " + "x" * 1000)

    __eq__ = __ne__ = __len__ = __iter__ = __str__ = __float__ = __bool__ = __array__ = __getitem__ = _fail
    __lt__ = __index__ = __fspath__ = __contains__ = __add__ = _fail
    __hash__ = None


class Quarrels:
    """A stranger's class whose comparisons give no truth value, and that hides its length."""

    def __eq__(self, other: object) -> np.ndarray:
        return np.array([True, False])

    def __len__(self) -> int:
        return 10**12

    def __getitem__(self, place: int) -> int:
        raise KeyError(place)

    __hash__ = None


class Endless:
    """An iterator without an end is refused where it is counted; this one ends after a few."""

    def __iter__(self):
        return iter(["a", "b"])


FRAME = pd.DataFrame({"id": ["a", "b"], "x": [1.0, 2.0]})
TABLES = [
    FRAME,
    FRAME.set_index("id"),
    FRAME.iloc[:0],
    pl.from_pandas(FRAME),
    pl.from_pandas(FRAME).lazy(),
    pa.table({"id": ["a", "b"], "x": [1.0, None]}),
    FRAME["x"],
    FRAME.set_index("id")["x"].iloc[::-1],
    pd.Series([pd.NA, 1], dtype="Int64"),
    pd.Index(["a", "b"]),
    pl.Series(["a", "b"]),
    pa.array([1.0, None]),
    pd.DataFrame([[1.0, 2.0]], columns=["x", "x"]),
]
ARRAYS = [
    np.array(1.0),
    np.array("a"),
    np.array(None),
    np.ma.masked,
    np.ma.array([1.0, 2.0], mask=[False, True]),
    np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[0, 1], [0, 0]]),
    np.array([1j, 2.0]),
    np.array(["2020-01-01", "NaT"], dtype="datetime64[D]"),
    np.array([5, 6], dtype="timedelta64[s]"),
    np.array([(1, 2.0)], dtype=[("a", int), ("b", float)]),
    np.array([1, "a", None], dtype=object),
    np.array(["1", "2"]),
    np.array([b"1"]),
    np.array([True, False]),
    np.eye(3),
    np.zeros((0, 2)),
    np.zeros((2, 2, 2)),
    np.float16(0.1),
    np.longdouble("1e400"),
    np.datetime64("2020-01-01"),
    np.timedelta64(3, "s"),
    np.str_("a"),
    np.bool_(True),
    csr_array(np.eye(2)),
]
OBJECTS = [
    *(
        Raises(),
        Quarrels(),
        Endless(),
        pd.NA,
        pd.NaT,
        Decimal("0.1"),
        Fraction(1, 3),
        Path("no such file"),
        b"",
        b"\xff",
    ),
    *({"a": [1.0, 2.0]}, {"a": 1.0}, {"a", "b"}, frozenset({1}), {1: 2}.keys(), iter([1.0]), (one for one in "ab")),
    *(len, int, lambda ids: ids, ..., NotImplemented, 1 + 0j, datetime(2020, 1, 1), timedelta(seconds=3)),
    *(bytearray(b"ab"), memoryview(b"ab"), range(2), slice(1), [np.ma.masked], [pd.NA], [[1.0], [2.0, 3.0]]),
    *(
        [np.array([1.0, 2.0])],
        [{"a": 1}],
        [("a", 1)],
        [None, None],
        [True],
        ["1"],
        [b"1"],
        [1j],
        [Raises()],
        [Quarrels()],
    ),
]
NUMBERS = [
    *(0, 1, -1, 2**53 + 1, 2**63, -(2**63), 10**30, 10**400, -(10**400), 10**5000, 0.5, 1e-320, 1e-300, 1e200),
    *(1e308, -1e308, float("nan"), float("inf"), float("-inf"), True, np.float32(1), np.int64(-1), 1j, np.nan),
]
TEXTS = [
    *(
        "",
        " ",
        "x",
        "b",
        "1e400",
        "nan",
        "inf",
        "9" * 400,
        "9" * 5000,
        CONTROLS,
        HALF,
        "\x00",
        "=1+1",
        "-5",
        "8h",
        "0s",
    ),
    *(
        "p1.0@b",
        "p9.9@b",
        " p1.0@b",
        "P1.0@b",
        "x" * 3000,
        "independent-of-value",
        "certified",
        "a\nb",
        "\u2028",
        "[" * 3000,
    ),
]
ODD = [
    *NUMBERS,
    *TEXTS,
    None,
    b"b",
    [],
    {},
    [1],
    [[1, 2], [3]],
    ("b", None),
    object(),
    Hostile(),
    np.zeros((2, 2)),
    range(3),
]


PYTHON = [*ODD, *TABLES, *ARRAYS, *OBJECTS]


def values():
    """Anything that a caller may give by mistake."""
    plain = st.one_of(
        st.sampled_from(PYTHON),
        st.integers(),
        st.floats(),
        st.text(st.characters(), max_size=30),
        st.binary(max_size=10),
    )
    return st.one_of(plain, st.lists(plain, max_size=4), st.tuples(plain, plain))


def texts():
    """What a person may type for a noise, a duration, a kernel or a policy."""
    number = st.sampled_from(
        ["0", "1", "-1", ".5", "1e308", "1e-320", "1e400", "nan", "inf", "9" * 400, "9" * 5000, "", "x"]
    )
    kinds = (
        "subgaussian bounded bernoulli pilot pilot-gaussian gaussian matern polynomial ntk fourier rbf certified-linear"
    )
    named = st.builds(
        lambda kind, parts, mark: mark.join([kind, *parts]),
        st.sampled_from(kinds.split()),
        st.lists(number, max_size=4),
        st.sampled_from([":", ",", "::", " "]),
    )
    lengths = st.builds(
        lambda parts: "".join(number + unit for number, unit in parts),
        st.lists(st.tuples(number, st.sampled_from(list("smhdw "))), max_size=3),
    )
    return st.one_of(named, lengths, st.sampled_from(TEXTS), st.text(st.characters(), max_size=40))


def mutated(content: bytes, rng: random.Random) -> bytes:
    """The bytes with one to four changes: a bit flipped, a part overwritten, left out, doubled, or something put in."""
    data = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        place = rng.randrange(len(data) + 1)
        end = min(len(data), place + rng.choice((1, 1, 4, 40)))
        kind = rng.randrange(6)
        if kind == 0 and place < len(data):
            data[place] ^= 1 << rng.randrange(8)
        elif kind == 1:
            data[place:end] = rng.randbytes(end - place)
        elif kind == 2:
            del data[place:end]
        elif kind == 3:
            data[place:place] = rng.choice(TOKENS)
        elif kind == 4:
            data[place:place] = data[place:end]
        elif rng.random() < 0.3:
            del data[place:]
        elif place < len(data):
            data[place] = rng.choice((0xFF, 0x80, 0x00, 0x22, 0x0A))
    return bytes(data)


@dataclass(frozen=True)
class Files:
    """Real files, and room for changed copies of them."""

    folder: Path

    @property
    def database(self) -> Path:
        return self.folder / "study.db"

    @property
    def certificate(self) -> Path:
        return self.folder / "certificate.json"

    @property
    def tables(self) -> list[Path]:
        names = ("arms.csv", "arms.tsv", "arms.jsonl", "arms.parquet", "arms.csv.gz", "told.csv")
        return [self.folder / name for name in names]

    @property
    def results(self) -> list[Path]:
        return [self.folder / "bench.parquet", self.folder / "bench.rounds.parquet"]

    def changed(self, path: Path, rng: random.Random) -> Path:
        """A changed copy of a file, under the same name in a folder of its own."""
        copy = self.folder / "changed" / path.name
        copy.write_bytes(mutated(path.read_bytes(), rng))
        return copy

    def changed_certificate(self, rng: random.Random) -> Path:
        """The certificate with a field of another value, or its bytes changed; sealed anew in half of the cases."""
        if rng.random() < 0.4:
            return self.changed(self.certificate, rng)
        document = json.loads(self.certificate.read_text())
        holder, key = document, rng.choice(list(document))
        while isinstance(holder[key], dict | list) and holder[key] and rng.random() < 0.8:
            holder = holder[key]
            key = rng.choice(list(holder)) if isinstance(holder, dict) else rng.randrange(len(holder))
        odd = [-1, 0, 10**30, 10**400, 1e308, "", "x", CONTROLS, None, [], {}, True, [[1]], {"a": 1}, 1.5]
        holder[key] = rng.choice(odd)
        copy = self.folder / "changed" / "certificate.json"
        copy.write_text(json.dumps(sealed(document) if rng.random() < 0.5 else document))
        return copy

    def changed_database(self, rng: random.Random) -> Path:
        """The database with a byte changed in the file, or in one value of one row."""
        copy = self.folder / "changed" / "study.db"
        fresh(copy)
        if rng.random() < 0.4:
            data = bytearray(self.database.read_bytes())
            used = [place for place in range(len(data)) if data[place]]
            data[rng.choice(used)] = rng.choice((0xFF, 0x80, 0x00, 0x22, rng.randrange(256)))
            copy.write_bytes(data)
            return copy
        shutil.copy(self.database, copy)
        _change_a_value(copy, rng)
        return copy


def fresh(path: Path) -> None:
    """Remove a database; written over in place, it would still be locked by whoever has it open."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _change_a_value(path: Path, rng: random.Random) -> None:
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA foreign_keys = OFF")
        database.execute("PRAGMA ignore_check_constraints = ON")
        table = rng.choice(("study", "plan", "decision", "observation", "event", "lease", "surepick_schema"))
        column = rng.choice([row[1] for row in database.execute(f"PRAGMA table_info({table})")])
        row = rng.choice(database.execute(f"SELECT rowid FROM {table}").fetchall())[0]
        old = database.execute(f"SELECT {column} FROM {table} WHERE rowid = ?", (row,)).fetchone()[0]
        new = rng.choice((None, "", "x", -1, 2**62, 1e308, float("inf"), 3.5, "[]", "{}", "9" * 400, CONTROLS, b"\xff"))
        wanted = "?"
        if isinstance(old, str) and old and rng.random() < 0.6:
            text = bytearray(old.encode())
            text[rng.randrange(len(text))] ^= 1 << rng.randrange(8)
            new, wanted = bytes(text), "CAST(? AS TEXT)"
        with suppress(sqlite3.IntegrityError):  # a constraint that cannot be switched off: the file is as it was
            database.execute(f"UPDATE {table} SET {column} = {wanted} WHERE rowid = ?", (new, row))
    database.close()


def real_files(folder: Path) -> Files:
    """A file of each kind that surepick reads."""
    (folder / "changed").mkdir()
    files = Files(folder)
    columns = {"id": IDS, "x": [1.0, 0.0, 0.6], "z": [0.0, 1.0, 0.6], "y": [0.9, 0.1, 0.3]}
    for path in files.tables[:5]:
        if path.suffix == ".tsv":
            rows = ["\t".join(columns), *("\t".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
            path.write_text("\n".join(rows) + "\n")
        elif path.suffix != ".gz":
            write_table(path, columns, kinds={name: str if name == "id" else float for name in columns})
    _pack(files.tables[0], files.tables[4])
    (folder / "told.csv").write_text("id,key,reward\nb,,0.25\nälpha,k1,0.75\nb,k2,failed\nb,k3,\n")
    _study(files)
    for path, kind in zip(files.results, (Replicate, Round), strict=True):
        kinds = column_kinds(kind)
        given = {"environment": "digits", "experiment": "mnist", "policy": "rage", "key": "k", "delta": 0.05}
        row = {column.name: _default(column, kinds) for column in fields(kind)} | {
            name: value for name, value in given.items() if name in kinds
        }
        write_table(path, {name: [value] * 3 for name, value in row.items()}, kinds=kinds)
    return files


def _default(column, kinds):
    return kinds[column.name](1) if column.default is MISSING else column.default


def _pack(path: Path, packed: Path) -> None:
    packed.write_bytes(gzip.compress(path.read_bytes(), mtime=0))


def _study(files: Files) -> None:
    """A study in a database, with judged plans, leases, failures and events, and its certificate."""
    arms = sp.Arms([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]], IDS)
    policy = sp.make_policy("certified-independent", arms, epsilon=0.4, delta=0.05, noise=sp.SubGaussian(0.5))
    study = sp.create_study(f"sqlite:///{files.database}", "s", arms, policy)
    rng = np.random.default_rng(7)
    for _ in range(2):
        part = study.lease(4, worker="lab", duration="8h")
        ids, keys = zip(*part.keys(), strict=True)
        study.tell(ids[1:], [MEANS[name] + 0.1 * rng.normal() for name in ids[1:]], keys[1:], worker="lab")
        study.fail(ids[:1], keys[:1], worker="lab")
        missing = [name for name, pulls in zip(IDS, study.missing, strict=True) for _ in range(pulls)]
        study.tell(missing, [MEANS[name] + 0.1 * rng.normal() for name in missing])
        study.ask()
    study.tell_prior(["b"], [0.2])
    study.lease(2, worker="lab-2")
    study.release("lab-2")  # or a loop that measures would wait for them
    study.abandon("it broke", ["c,c"])
    sp.write_certificate(study, files.certificate)
    study.log._engine.dispose()
    with sqlite3.connect(files.database) as database:
        database.execute("PRAGMA journal_mode = DELETE")
    database.close()
