"""`surepick report`: a page of a durable study, what it says on the way, and its exit codes."""

import json
import sys

import pytest
from typer.testing import CliRunner

import surepick as sp
from surepick.certificates.document import certificate_document
from surepick.cli.app import app, main

QUICK = ("--forecast-up-to", 0)
IDS = ("a b", "c,d", 'e"f', "é/ü", "-x $(y)")


@pytest.fixture
def lab(tmp_path):
    """(address, folder) of a database with the study "paint", one of whose plans is closed."""
    url = f"sqlite:///{tmp_path / 'lab.db'}"
    arms = sp.Arms([[float(place), 1.0] for place in range(5)], IDS)
    policy = sp.make_policy("certified-independent", arms, epsilon=0.4, delta=0.1, noise=sp.Bounded(0.0, 1.0))
    study = sp.create_study(url, "paint", arms, policy)
    tell(study)
    return url, tmp_path


def tell(study) -> None:
    """All that the open plan asks for; the first candidate is the best."""
    ids = [name for name, pulls in study.ask().table() for _ in range(pulls)]
    study.tell(ids, [0.9 if name == IDS[0] else 0.1 for name in ids], worker="ann")


def surepick(*words):
    return CliRunner(env={"COLUMNS": "200", "TERM": "dumb"}).invoke(app, [str(word) for word in words])


def refused(monkeypatch, capsys, *words) -> tuple[int, str]:
    """(exit code, message) as a shell sees them."""
    monkeypatch.setattr(sys, "argv", ["surepick", *map(str, words)])
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code, " ".join(capsys.readouterr().err.split())


def test_a_page_of_an_unfinished_study_is_written_and_that_is_all_it_takes(lab):
    url, folder = lab
    result = surepick("report", url, "paint", "--out", folder / "r.html", *QUICK)
    assert result.exit_code == 0
    size = (folder / "r.html").stat().st_size
    where = (folder / "r.html").as_uri()
    assert result.stdout == f"{folder / 'r.html'}: not-yet, {size / 1e6:.2f} MB.\n{where}\n"
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert "<h1>paint</h1>" in page
    assert "not certified yet" in page
    assert "What to measure was written down before it was measured" in page


def test_the_page_of_a_finished_study_is_that_of_its_certificate(lab):
    url, folder = lab
    study = sp.open_study(url, "paint")
    while not study.stopped:
        tell(study)
    result = surepick("report", url, "paint", "--out", folder / "r.html", "--format", "json", *QUICK)
    assert result.exit_code == 0
    answer = json.loads(result.stdout)
    page = (folder / "r.html").read_bytes()
    assert answer == {
        "study": "paint",
        "verdict": "certified",
        "file": str(folder / "r.html"),
        "uri": (folder / "r.html").as_uri(),
        "bytes": len(page),
    }
    assert certificate_document(study, "paint")["sha256"] in page.decode()
    assert "ann (" in page.decode()
    assert sp.write_report(study, folder / "again.html", name="paint", forecast_up_to=0).read_bytes() == page


def test_the_forecast_can_be_left_out(lab):
    url, folder = lab
    for most, found in ((0, True), (1_000, False)):
        assert surepick("report", url, "paint", "--out", folder / "r.html", "--forecast-up-to", most).exit_code == 0
        assert ("There is no forecast here" in (folder / "r.html").read_text(encoding="utf-8")) == found


def test_a_file_that_is_no_page_is_refused(lab, monkeypatch, capsys):
    url, folder = lab
    code, message = refused(monkeypatch, capsys, "report", url, "paint", "--out", folder / "r.pdf")
    assert code == 2
    assert "r.pdf' does not end in .html" in message
    assert not (folder / "r.pdf").exists()


@pytest.mark.parametrize(
    ("name", "file", "said"),
    [("stone", "r.html", "has no study 'stone'"), ("paint", "nowhere/r.html", "make the folder first")],
    ids=["no such study", "no such folder"],
)
def test_bad_input_ends_with_two(lab, monkeypatch, capsys, name, file, said):
    url, folder = lab
    code, message = refused(monkeypatch, capsys, "report", url, name, "--out", folder / file, *QUICK)
    assert (code, said in message, "Errno" in message) == (2, True, False)


def test_without_jinja_the_command_names_what_to_install(lab, monkeypatch, capsys):
    url, folder = lab
    monkeypatch.setitem(sys.modules, "jinja2", None)
    code, message = refused(monkeypatch, capsys, "report", url, "paint", "--out", folder / "r.html")
    assert code == 2
    assert 'reports need jinja2, which is absent: pip install "surepick[reports]".' in message


@pytest.mark.parametrize("found", [True, False])
def test_the_page_is_opened_on_demand(lab, monkeypatch, found):
    url, folder = lab
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or found)
    monkeypatch.chdir(folder)
    assert surepick("report", url, "paint", "--out", "a page.html", *QUICK).exit_code == 0
    assert opened == []
    result = surepick("report", url, "paint", "--out", "a page.html", "--open", *QUICK)
    assert result.exit_code == 0
    assert opened == [f"{folder.as_uri()}/a%20page.html"]
    assert opened[0] in result.stdout
    assert ("no browser could be started here" in result.stderr) == (not found)


def test_the_help_says_what_it_is_for():
    result = surepick("report", "--help")
    assert result.exit_code == 0
    assert "one page to pass on" in result.stdout
