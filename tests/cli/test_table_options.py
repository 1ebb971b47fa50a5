"""How a table is read is the same for every command that reads one, and is said in notes."""

import json
import shlex
import sys

import pytest
from together import of_each
from typer.testing import CliRunner
from workbooks import write_xlsx

from surepick.cli.app import app, main

READERS = ("run", "design", "forecast", "tune", "create", "tell", "verify")
ROWS = [["sku", "x", "y"]] + [[f"s{arm}", arm / 10, arm % 2] for arm in range(10) for _ in range(3)]
NOISE = ("--noise", "bernoulli", "--epsilon", "0.9")


def surepick(*arguments, code: int = 0) -> tuple[str, str]:
    """Standard output and standard error of a command that ends with this code."""
    result = CliRunner(env={"COLUMNS": "80", "TERM": "dumb"}).invoke(
        app, [str(argument) for argument in arguments], catch_exceptions=False
    )
    assert result.exit_code == code, result.stderr
    return result.stdout, result.stderr


@pytest.fixture
def refused(monkeypatch, capsys):
    def run(*words) -> str:
        monkeypatch.setattr(sys, "argv", ["surepick", *map(str, words)])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 2
        return capsys.readouterr().err

    return run


@pytest.fixture
def book(tmp_path):
    """A workbook whose second sheet has the candidates, measured three times each, and a sum below."""
    pytest.importorskip("python_calamine")
    rows = [*ROWS, [None, None, 15]]
    return write_xlsx(tmp_path / "my book.xlsx", {"Notes": [["hello"], ["you"]], "Data 1": rows})


@of_each("command", READERS)
def test_every_command_that_reads_a_table_has_the_options(command):
    shown, _ = surepick(command, "--help")
    for option in ("--sheet", "--percent", "--drop-missing"):
        assert option in shown
    assert "--reading" not in shown


READING = ("--sheet", "Data 1", "--drop-missing", "--id", "sku")


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("command", "options", "dropped"),
    [
        ("run", ("--reward", "y", *NOISE), 1),
        ("forecast", ("--reward", "y", *NOISE), 1),
        ("forecast", NOISE, 1),
        ("tune", ("--reward", "y", "--noise", "bernoulli", "--pulls", 20), 1),
        ("design", ("--reward", "y", "--features", "x"), 1),
    ],
)
def test_the_options_reach_the_table(book, command, options, dropped):
    if command == "forecast" and "--reward" not in options:  # a row is a candidate there
        book = write_xlsx(book, {"Notes": [["a"], ["b"]], "Data 1": [*ROWS[:1], *ROWS[1::3], [None, None, 15]]})
    shown, notes = surepick(command, book, *READING, *options)
    assert f"{dropped} of " in notes
    assert "note: " in notes
    assert "rows, because they miss a cell" in notes
    if command == "tune":
        printed = shlex.split(shown.strip().splitlines()[-1])
        if printed[0] == "surepick":
            assert "--drop-missing" in printed
            assert printed[printed.index("--sheet") + 1] == "Data 1"


def test_a_study_is_created_told_and_verified_from_spreadsheets(tmp_path):
    pytest.importorskip("python_calamine")
    pytest.importorskip("sqlalchemy")
    url = f"sqlite:///{tmp_path}/lab.db"
    arms = write_xlsx(tmp_path / "arms.xlsx", {"A": [["sku", "x"], ["=a", 1], ["-b", 2], [None, 3]]})
    _, notes = surepick("create", url, "p", "--arms", arms, "--id", "sku", "--drop-missing", *NOISE)
    assert "we leave out 1 of 3 rows" in notes
    surepick("ask", url, "p", "--out", tmp_path / "todo.csv")
    header, *rows = [line.split(",") for line in (tmp_path / "todo.csv").read_text().splitlines()]
    assert {row[0] for row in rows} == {"'=a", "'-b"}
    filled = write_xlsx(tmp_path / "done.xlsx", {"A": [header, *([*row[:-1], 1] for row in rows)]})
    shown, _ = surepick("tell", url, "p", filled)
    assert f"{len(rows)} results counted" in shown
    certificate = tmp_path / "c.json"
    surepick("certificate", url, "p", "--out", certificate, code=0 if "certified" in shown else 3)
    surepick("verify", certificate, "--arms", arms, "--id", "sku", "--drop-missing")


def test_percentages_and_semicolons_reach_tell(tmp_path, refused):
    pytest.importorskip("sqlalchemy")
    url = f"sqlite:///{tmp_path}/lab.db"
    (tmp_path / "arms.csv").write_text("sku\na\nb\n")
    surepick(
        "create", url, "p", "--arms", tmp_path / "arms.csv", "--id", "sku", "--noise", "bounded:0:1", "--epsilon", 0.1
    )
    told = tmp_path / "told.csv"
    told.write_text("id;reward\na;50,5%\n")
    assert "look like percentages" in refused("tell", url, "p", told)
    shown, notes = surepick("tell", url, "p", told, "--percent")
    assert "1 result counted" in shown
    assert "we read semicolons between the cells" in notes
    assert "we read commas as decimal points: '50,5%' is 0.505" in notes
    told.write_text("id,reward\na,n/a\n b ,1\n,3\n")
    assert "1 of 3 rows miss a cell (row 4: the id (id) is empty)" in refused("tell", url, "p", told)
    shown, notes = surepick("tell", url, "p", told, "--drop-missing")
    assert "1 result counted" in shown
    assert "we leave out 2 of 3 rows" in notes


def test_an_id_with_spaces_that_a_study_has_is_still_found(tmp_path):
    """Studies that were made from Python, or before ids were stripped."""
    pytest.importorskip("sqlalchemy")
    import surepick as sp

    url = f"sqlite:///{tmp_path}/lab.db"
    arms = sp.Arms(ids=["a ", "b"])
    policy = sp.make_policy("certified-independent", arms, epsilon=0.5, delta=0.05, noise=sp.Bernoulli())
    sp.create_study(url, "p", arms, policy)
    surepick("ask", url, "p", "--out", tmp_path / "todo.csv")
    header, *rows = (tmp_path / "todo.csv").read_text().splitlines()
    (tmp_path / "todo.csv").write_text("\n".join([header, *(row + "1" for row in rows)]) + "\n")
    shown, _ = surepick("tell", url, "p", tmp_path / "todo.csv", "--format", "json")
    assert json.loads(shown)["counted"] == len(rows)


def test_options_for_tables_are_refused_where_no_table_is_read(refused):
    for command in ("forecast", "tune"):
        assert "is a built-in example" in refused(command, "two-clusters", "--drop-missing")
