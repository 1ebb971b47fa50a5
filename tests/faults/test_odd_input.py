"""Odd input, each kind with its sentence: sizes and names that no file, database or float can hold, and what a terminal
would obey instead of showing."""

import ast
import json
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest
from fuzz_commands import HALF, LONG, run
from fuzz_inputs import real_files
from together import of_each

import surepick as sp
import surepick.cli
from surepick.text import LONGEST, one_line, printable, quoted, shortened

ERRORS = (sp.InvalidInput, sp.OutOfTurn, sp.errors.ContractError, sp.StorageError, sp.SurepickError)
EVIL = "\x1b[31mred\n\x07\u202e\x9bevil"  # ESC, a newline, a bell, right-to-left override, another CSI
SEEN = printable(EVIL)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return real_files(tmp_path_factory.mktemp("files"))


@pytest.fixture
def url(files, tmp_path):
    """The address of a copy of a study."""
    copy = tmp_path / "study.db"
    shutil.copy(files.database, copy)
    return f"sqlite:///{copy}"


def refused(*arguments, code=2):
    """The command is refused with one line, which is given back."""
    ended = run([str(word) for word in arguments])
    assert ended.code == code, ended
    (said,) = [line for line in ended.err.splitlines() if not line.startswith("note: ")]
    assert said.startswith("error: ")
    assert len(said) <= len("error: ") + LONGEST
    assert said.isprintable()
    return said.removeprefix("error: ")


# messages


@of_each("kind", ERRORS)
def test_a_message_is_one_line_of_at_most_500_characters(kind):
    advice = "Take a shorter name."
    error = kind(f"the name is {EVIL}{'x' * 10_000}, which is long. {advice}")
    assert len(str(error)) <= LONGEST
    assert str(error).isprintable()
    assert str(error).startswith(f"the name is {SEEN[:5]}")
    assert str(error).endswith(advice)


def test_words_are_cut_before_sentences_are():
    said = "a" * 200 + " b " * 60
    assert one_line(f"{LONG} {said}").endswith(" b " * 60)
    assert len(one_line("no word of it is long " * 100)) == LONGEST
    assert one_line("short") == "short"
    assert shortened("abcdefghij", 7) == "ab...ij"


@of_each("kind", ERRORS)
def test_an_error_comes_through_a_pickle_as_it_was(kind):
    error = kind(EVIL + "y" * 1000)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind
    assert str(again) == str(error)


def test_errors_that_carry_more_come_through_a_pickle():
    missing = sp.errors.DatasetMissing(f"There is no {LONG}.", recipe="Get it there.")
    again = pickle.loads(pickle.dumps(missing))
    assert (str(again), again.recipe) == (str(missing), "Get it there.")
    assert str(missing).endswith("Get it there.")


def test_what_was_given_is_shown_shortly():
    assert quoted("a\nb") == "'a\\nb'"
    assert quoted(10**5000) == "<int>"
    assert len(quoted("x" * 10**6)) <= 120


# sizes and kinds


@pytest.mark.parametrize("pulls", ["9223372036854775808", "9" * 30, 2**53 + 1])
def test_more_pulls_than_can_be_counted(url, pulls):
    assert "2^53" in refused("ask", url, "s", "--max-pulls", pulls)


def test_as_many_pulls_as_can_be_counted(url):
    assert run(["ask", url, "s", "--max-pulls", str(2**53)]).code == 0


@pytest.mark.parametrize(
    "text", ["subgaussian:1e308", "subgaussian:1e-320", "bounded:-1e308:1e308", "subgaussian:1,1,1e200"]
)
def test_noise_whose_square_is_no_number(files, text):
    assert "unit" in refused("run", files.tables[0], "--id", "id", "--reward", "y", "--epsilon", "0.1", "--noise", text)


@of_each("text", ["subgaussian:inf", "subgaussian:nan", "bounded:-inf:inf", "pilot-gaussian:1:.1:" + "9" * 400])
def test_noise_of_no_numbers(text):
    with pytest.raises(sp.InvalidInput):
        sp.parse_noise(text)


@of_each(
    "call",
    [
        lambda: sp.Arms(ids=[float("nan")]),
        lambda: sp.Arms(ids=["a", None]),
        lambda: sp.Arms(ids=3),
        lambda: sp.Arms([[10**400]]),
        lambda: sp.Arms(ids=[10**5000]),
        lambda: sp.SubGaussian(10**400),
        lambda: sp.parse_noise(None),
    ],
)
def test_arms_and_noise_of_no_meaning(call):
    with pytest.raises(sp.InvalidInput):
        call()


def test_several_ids_from_a_generator():
    assert sp.Arms(ids=(name for name in "ab")).ids == ("a", "b")


@of_each(
    "call",
    [
        lambda study: study.tell(["a"], [10**400]),
        lambda study: study.tell(["a"], [0.5], keys=7),
        lambda study: study.tell(["a"], [0.5], [HALF]),
        lambda study: study.tell(["a"], [0.5], ["a\0b"]),
        lambda study: study.tell(["a"], [0.5], worker=HALF),
        lambda study: study.tell(["a"], [0.5], failed="a"),
        lambda study: study.tell(["a"], [0.5], failed=[3]),
        lambda study: study.tell(["a"], [0.5], plan=10**400),
        lambda study: study.tell_totals(["a"], [10**400], [1.0]),
        lambda study: study.tell_prior(["a"], [-(10**400)]),
        lambda study: study.fail(["a"], 3),
        lambda study: study.abandon(HALF),
        lambda study: study.close(None),
        lambda study: study.lease(10**30),
        lambda study: study.lease(duration="inf"),
        lambda study: study.lease(duration=10**400),
        lambda study: study.lease(worker=HALF),
    ],
)
def test_odd_reports_are_refused_and_change_nothing(call):
    arms = sp.Arms(ids=["a", "b"])
    policy = sp.make_policy("certified-independent", arms, epsilon=0.3, delta=0.05, noise=sp.SubGaussian(0.5))
    study = sp.Study(arms, policy)
    study.ask()
    before = study.missing.tolist()
    with pytest.raises(sp.InvalidInput):
        call(study)
    assert study.missing.tolist() == before


# names


NAMED = {
    "ask": [],
    "tell": ["TABLE"],
    "status": [],
    "recommend": [],
    "certificate": [],
    "report": ["--out", "r.html", "--forecast-up-to", "0"],
    "export": ["--out", "o.csv"],
    "release": ["--worker", "w"],
    "abandon": ["--reason", "x"],
    "withdraw": ["--reason", "x", "--id", "x"],
    "add": ["--id", "x"],
    "close": [],
    "create": ["--arms", "TABLE", "--id", "id", "--noise", "bernoulli", "--epsilon", "0.1"],
    "run-study": ["--measure", "echo {id}"],
}


@pytest.mark.parametrize("command", NAMED)
@pytest.mark.parametrize("where", ["name", "address"])
def test_a_study_whose_name_is_not_utf_8(files, url, command, where):
    more = [str(files.tables[0]) if word == "TABLE" else word for word in NAMED[command]]
    place = (url, HALF) if where == "name" else (f"sqlite:///{HALF}", "s")
    assert "half of a character" in refused(command, *place, *more)


def test_reasons_and_workers_that_are_not_utf_8(url):
    for line in (("ask", url, "s", "--worker", HALF), ("close", url, "s", "--reason", HALF)):
        assert "half of a character" in refused(*line)


@pytest.mark.parametrize("name", [pytest.param(LONG, marks=pytest.mark.slow), LONG + HALF])
def test_a_file_name_of_300_characters(files, url, tmp_path, name):
    asked = ("--id", "id", "--noise", "subgaussian:0.5", "--epsilon", "0.8", "--policy", "certified-independent")
    for line in (
        ("verify", name),
        ("list", f"sqlite:///{tmp_path}/{LONG}"),
        ("migrate", f"sqlite:///{tmp_path}/{LONG}"),
        ("bench", "summary", name + ".parquet"),
        ("bench", "figures", name + ".parquet"),
        ("certificate", url, "s", "--out", tmp_path / name),
        ("report", url, "s", "--out", tmp_path / f"{name}.html", "--forecast-up-to", 0),
        ("export", url, "s", "--out", tmp_path / f"{name}.csv"),
        ("ask", url, "s", "--out", tmp_path / f"{name}.csv"),
        ("forecast", files.tables[0], "--rehearsals", "1", *asked, "--figure", tmp_path / f"{name}.png"),
    ):
        refused(*line)
    assert run(["status", url, "s"]).code == 0


@pytest.mark.parametrize("name", [LONG, LONG + ".parquet", LONG + ".jsonl"])
@pytest.mark.parametrize("command", ["run", "design", "tune", "forecast", "tell", "create"])
def test_a_table_whose_name_has_300_characters(url, command, name):
    noise = ["--noise", "bernoulli"] if command in ("run", "tune", "forecast") else []
    place = {"tell": [url, "s", name], "create": [url, "new", "--noise", "bernoulli", "--arms", name]}
    assert "name too long" in refused(command, *place.get(command, [name]), *noise).lower()


def test_certificates_that_are_no_files_on_a_disk(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert "device" in refused("verify", "/dev/zero")
    assert "pipe" in refused("verify", tmp_path / "pipe")
    assert "folder" in refused("verify", tmp_path)


def test_a_certificate_that_is_too_large(tmp_path):
    with (tmp_path / "large.json").open("wb") as large:
        large.truncate(2**30 + 1)
    assert "1,073,741,824" in refused("verify", tmp_path / "large.json")


# what a terminal obeys


@pytest.fixture
def evil(tmp_path):
    """A study whose name, ids, workers and reasons hold what a terminal would obey."""
    table = tmp_path / f"table{EVIL.replace('/', '')}.csv"
    table.write_text(f'id,x,z,y\n"a{EVIL}",1,0,0.9\n"b{EVIL}",0,1,0.1\n"c{EVIL}",0.6,0.6,0.3\n')
    return f"sqlite:///{tmp_path}/evil.db", f"study{EVIL}", table


def test_no_command_prints_what_a_terminal_would_obey(evil, tmp_path, monkeypatch):
    url, name, table = evil
    monkeypatch.chdir(tmp_path)
    told, ids = tmp_path / "told.csv", [f"{letter}{EVIL}" for letter in "abc"]
    noise = ["--noise", "subgaussian:0.5"]
    study = [url, name]

    def shown(*line, codes=(0,)):
        for form in ((), ("--format", "json")):
            ended = run([str(word) for word in (*line, *form)])
            assert ended.code in codes, ended
            for text in (ended.out, ended.err):
                assert all(one.isprintable() for one in text.replace("\n", "")), line
                assert EVIL not in text
            yield ended

    def words(*line, codes=(0,)):
        plain, coded = shown(*line, codes=codes)
        if coded.code in (0, 3):
            json.loads(coded.out)
        return plain.out + plain.err

    (plain, *_) = [run(["create", *study, "--arms", str(table), "--id", "id", "--epsilon", "0.7", *noise])]
    assert SEEN in plain.out
    assert SEEN in words("ask", *study, "--worker", f"w{EVIL}", "--max-pulls", 2)
    assert SEEN in words("status", *study)
    assert SEEN in words("release", *study, "--worker", f"w{EVIL}")
    rows = [f'"{name}",{0.5 + 0.1 * row}' for row, name in enumerate(ids)]
    told.write_text("\n".join(["id,reward", *rows * 40]) + "\n")
    assert SEEN in words("tell", *study, told, "--worker", f"w{EVIL}", codes=(0, 2))
    assert SEEN in words("recommend", *study, codes=(0, 3))
    assert SEEN in words("certificate", *study, "--out", f"c{EVIL}.json", codes=(0, 3))
    assert words("verify", f"c{EVIL}.json", codes=(0, 3))
    assert SEEN in words("export", *study, "--out", f"o{EVIL}.csv")
    assert SEEN in words("report", *study, "--out", f"r{EVIL}.html", "--forecast-up-to", "0")
    assert SEEN in words("list", url)
    other = [url, f"other{EVIL}"]
    assert run(["create", *other, "--arms", str(table), "--id", "id", "--epsilon", "0.05", *noise]).code == 0
    assert SEEN in words("run-study", *other, "--measure", f"no{EVIL} {{id}}", "--retries", 0, codes=(2,))
    assert words("abandon", *other, "--reason", f"r{EVIL}", "--id", ids[0])
    assert words("withdraw", *other, "--reason", f"r{EVIL}", "--id", ids[0])
    assert SEEN in words("close", *other, "--reason", f"r{EVIL}")
    assert SEEN in words("ask", *other)
    assert SEEN in words("run", table, "--id", "id", "--reward", "y", "--epsilon", "0.5", *noise, codes=(0, 3))
    assert SEEN in words("design", table, "--id", "id", "--features", "x,z")
    asked = ["--id", "id", "--rehearsals", 1, "--norm-bound", 1, "--features", "x,z", "--epsilon", "0.7", *noise]
    monkeypatch.setattr("surepick.forecasts.simulated_studies.EQUAL_STUDIES", 1)
    assert words("forecast", table, *asked)
    assert SEEN in words("tune", table, "--id", "id", "--reward", "y", "--features", "x,z", *noise)
    for odd in ([EVIL], ["status", url, EVIL], [f"--{EVIL}"], ["ask", url, "s", "--max-pulls", EVIL], ["verify", EVIL]):
        ended = run(odd)
        assert ended.code == 2
        assert all(one.isprintable() for one in (ended.out + ended.err).replace("\n", ""))


def test_all_that_commands_print_goes_through_one_place():
    strays = []
    for path in Path(surepick.cli.__file__).parent.rglob("*.py"):
        if path.name == "output.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module == "rich.text":
                strays.append(f"{path.name} imports rich.text")
            if isinstance(node, ast.Attribute) and node.attr in ("echo", "secho"):
                strays.append(f"{path.name} calls {node.attr}")
    assert strays == []


def test_a_certificate_as_text_shows_what_ids_hold():
    arms = sp.Arms(ids=[f"a{EVIL}", "b"])
    policy = sp.make_policy("certified-independent", arms, epsilon=0.3, delta=0.05, noise=sp.SubGaussian(0.5))
    assert all(line.isprintable() for line in str(sp.Study(arms, policy).certificate()).split("\n"))
    assert np.all([one.isprintable() for one in SEEN])
