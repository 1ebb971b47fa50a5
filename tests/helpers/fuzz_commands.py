"""Command lines of odd words, and a way to run them in this process."""

import contextlib
import io
import random
import shutil
import signal
import sys
from dataclasses import dataclass

from fuzz_inputs import CONTROLS, HALF, Files, fresh
from hypothesis import strategies as st

from surepick.cli import main

LONG = "x" * 300
DATABASE = ("URL", "NAME")
TABLE = {
    "--id": "COLUMN",
    "--features": "COLUMN",
    "--noise": "NOISE",
    "--standardize": None,
    "--intercept": None,
    "--drop-missing": None,
    "--drop-candidates": None,
}
PROMISE = {
    "--epsilon": "NUMBER",
    "--delta": "NUMBER",
    "--norm-bound": "NUMBER",
    "--gamma": "NUMBER",
    "--kernel": "WORD",
    "--expansion": "WORD",
}
COMMANDS = {
    "ask": (
        DATABASE,
        {"--max-pulls": "NUMBER", "--worker": "WORD", "--lease": "WORD", "--out": "OUT", "--trust-clock": None},
    ),
    "tell": (
        (*DATABASE, "FILE"),
        {
            "--id": "COLUMN",
            "--reward": "COLUMN",
            "--key": "COLUMN",
            "--worker": "WORD",
            "--plan": "NUMBER",
            "--as-prior": None,
        },
    ),
    "status": (DATABASE, {}),
    "recommend": (DATABASE, {}),
    "certificate": (DATABASE, {"--out": "OUT"}),
    "report": (DATABASE, {"--out": "OUT"}),
    "export": (DATABASE, {"--out": "OUT"}),
    "release": (DATABASE, {"--worker": "WORD"}),
    "abandon": (DATABASE, {"--reason": "WORD", "--id": "WORD"}),
    "withdraw": (DATABASE, {"--reason": "WORD", "--id": "WORD"}),
    "add": (DATABASE, {"--id": "WORD"}),
    "close": (DATABASE, {"--reason": "WORD"}),
    "list": (("URL",), {}),
    "migrate": (("URL",), {}),
    "create": (
        DATABASE,
        {"--arms": "FILE", "--reward": "COLUMN", "--policy": "WORD", "--option": "OPTION", **TABLE, **PROMISE},
    ),
    "run-study": (DATABASE, {"--measure": "MEASURE", "--worker": "WORD", "--timeout": "WORD", "--batch": "NUMBER"}),
    "verify": (("FILE",), {"--arms": "FILE", "--id": "COLUMN", "--every-plan": None}),
    "run": (
        ("FILE",),
        {"--reward": "COLUMN", "--certificate": "OUT", "--report": "OUT", "--policy": "WORD", **TABLE, **PROMISE},
    ),
    "design": (("FILE",), {"--reward": "COLUMN", "--id": "COLUMN", "--tolerance": "NUMBER"}),
    "forecast": (("FILE",), {"--reward": "COLUMN", "--figure": "OUT", "--policy": "WORD", **TABLE, **PROMISE}),
    "tune": (("FILE",), {"--reward": "COLUMN", "--pulls": "NUMBER", **TABLE}),
}
ALWAYS = {  # so that a sound line is soon done, and enough is said for one to be
    "run": ["--max-pulls", "2000", "--id", "id", "--reward", "y", "--noise", "subgaussian:0.5", "--epsilon", "0.3"],
    "forecast": ["--rehearsals", "1", "--id", "id", "--noise", "bounded:0:1", "--epsilon", "0.3"],
    "tune": ["--id", "id", "--reward", "y", "--noise", "subgaussian:0.5"],
    "create": ["--id", "id", "--noise", "bernoulli", "--arms", "ARMS", "--epsilon", "0.3"],
    "abandon": ["--reason", "it broke"],
    "withdraw": ["--reason", "it broke"],
    "run-study": ["--measure", "false {id}", "--retries", "0"],
    "release": ["--worker", "lab-2"],
    "design": ["--id", "id"],
}
WORDS = {
    "NUMBER": [
        "1",
        "0",
        "-1",
        "0.1",
        "0.95",
        "1e-3",
        "nan",
        "inf",
        "1e308",
        "1e-320",
        "9" * 30,
        "9" * 5000,
        "x",
        "",
        "9223372036854775808",
    ],
    "WORD": [
        "lab-2",
        "certified-linear",
        "rage",
        "lucb",
        "8h",
        "inf",
        "0s",
        "",
        " ",
        CONTROLS,
        HALF,
        LONG,
        "independent-of-value",
        "a,b",
    ],
    "COLUMN": ["id", "x", "y", "x,z", "none", "ID", "", ",", CONTROLS, HALF, LONG, "nothing"],
    "NOISE": [
        "bernoulli",
        "bounded:0:1",
        "subgaussian:1e308",
        "subgaussian:0.5",
        "pilot",
        "pilot:2",
        "bounded:-1e308:1e308",
        HALF,
        "x",
    ],
    "OPTION": [
        "seed=1",
        "largest_batch=" + "9" * 400,
        "largest_batch=" + "[" * 9000,
        "slack=nan",
        "tolerance=nan",
        "=",
        "x",
        f"{HALF}={HALF}",
        "dim=1e9",
    ],
    "MEASURE": ["false {id}", "echo {id}", "echo x {pulls}", "'", "", HALF, "echo 0.5 {id}", "no-such-program {id}"],
    "NAME": ["s", "s", "s", "s", "new", "", " ", CONTROLS, HALF, LONG],
}


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: object
    out: str
    err: str


def run(arguments: list[str]) -> Ended:
    """The command line in this process; an error that is not turned into words comes out."""
    out, err = io.StringIO(), io.StringIO()
    before, handler = sys.argv, signal.getsignal(signal.SIGTERM)
    sys.argv = ["surepick", *arguments]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
        code: object = 0
    except SystemExit as stop:
        code = 0 if stop.code is None else stop.code
    finally:
        sys.argv = before
        signal.signal(signal.SIGTERM, handler)
    return Ended(code, out.getvalue(), err.getvalue())


def command_lines():
    """(command, options in order, a seed for the words)."""
    return st.sampled_from(list(COMMANDS)).flatmap(
        lambda command: st.tuples(
            st.just(command),
            st.lists(st.sampled_from([*COMMANDS[command][1], "--format"]), max_size=4),
            st.integers(0, 2**32),
        )
    )


def spelled(files: Files, command: str, options: list[str], seed: int) -> list[str]:
    """The command line: positions and options with words drawn for them, few of them odd."""
    rng = random.Random(seed)
    positions, known = COMMANDS[command]
    line = [command, *(_word(files, kind, rng) for kind in positions)]
    arms = str(files.tables[0])
    line += [arms if word == "ARMS" else word for word in ALWAYS.get(command, [])]
    for option in options:
        kind = known.get(option, "FORMAT")
        line += [option] if kind is None else [option, _word(files, kind, rng)]
    if "--epsilon" in line and rng.random() < 0.1:  # nobody said what difference matters
        place = line.index("--epsilon")
        del line[place : place + 2]
    if rng.random() < 0.03:  # a slip in the name of the command
        line[0] = line[0][::-1] if len(line[0]) < 4 else line[0][1:]
    if rng.random() < 0.05:
        line.insert(rng.randrange(len(line) + 1), rng.choice([CONTROLS, HALF, LONG, "--" + CONTROLS, "-", "--", ""]))
    return line


def _word(files: Files, kind: str, rng: random.Random) -> str:
    if kind == "URL":
        return _address(files, rng)
    if kind == "FILE":
        return _file(files, rng)
    if kind == "OUT":
        folder = files.folder / "changed"
        names = [
            "o.csv",
            "o.parquet",
            "o.jsonl",
            "o.html",
            "o.png",
            "o.json",
            LONG,
            LONG + ".csv",
            LONG + ".html",
            HALF + ".csv",
            "no/o.csv",
        ]
        return rng.choice([*(str(folder / name) for name in names), str(folder), "/dev/null", "", CONTROLS + ".csv"])
    if kind == "FORMAT":
        return rng.choice(["json", "json", "text", "x", CONTROLS])
    return rng.choice(WORDS[kind])


def _address(files: Files, rng: random.Random) -> str:
    if rng.random() < 0.2:
        odd = [
            "sqlite://",
            "sqlite:///",
            "x",
            "",
            CONTROLS,
            HALF,
            f"sqlite:///{LONG}",
            "mysql://u:secret@h/d",
            f"sqlite:///{HALF}",
        ]
        return rng.choice([*odd, f"sqlite:///{files.tables[0]}", f"sqlite:///{files.folder}", "sqlite:////dev/null"])
    copy = files.folder / "changed" / "commands.db"
    fresh(copy)
    shutil.copy(files.database, copy)
    return f"sqlite:///{copy}"


def _file(files: Files, rng: random.Random) -> str:
    odd = [
        LONG,
        LONG + ".parquet",
        LONG + ".jsonl",
        HALF + ".csv",
        "",
        str(files.folder),
        "no/such",
        "/dev/null",
        CONTROLS,
    ]
    place = rng.random()
    if place < 0.5:
        return str(rng.choice([*files.tables, files.certificate]))
    if place < 0.6:
        return str(files.changed(rng.choice(files.tables), rng))
    if place < 0.7:
        return str(files.changed_certificate(rng))
    return rng.choice(odd)
