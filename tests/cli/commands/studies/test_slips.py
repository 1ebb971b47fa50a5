"""`tell` asks about results that stand out and stores nothing; `undo` takes results back; `run-study` warns or ends."""

import sys

import pytest
from study_commands import surepick

import surepick as sp
from surepick.errors import MeasurementFailed


@pytest.fixture
def lab(sqlite_url, tmp_path):
    """A study of six breads, and a function that writes a table of results."""
    arms = sp.Arms(ids=list("abcdef"))
    asked = {"epsilon": 5.0, "delta": 0.05, "noise": "subgaussian:3"}
    policy = sp.make_policy("certified-independent", arms, evidence="carried", **asked)  # one result of each at first
    sp.create_study(sqlite_url, "bread", policy).log._engine.dispose()

    def table(text: str):
        path = tmp_path / "results.csv"
        path.write_text(text)
        return path

    assert surepick("ask", sqlite_url, "bread", "--worker", "ann", "--lease", "8h")[0] == 0
    return sqlite_url, table


GOOD = "id,reward,key\na,57,1\nb,61,2\nc,66,3\nd,70,4\ne,75,5\n"


def test_tell_asks_with_the_exit_code_of_bad_input(lab, refused):
    url, table = lab
    said = refused("tell", url, "bread", table(GOOD + "f,790,6\n"), "--worker", "ann")
    assert "790 of 'f' stands out: the nearest of the other candidates is at 75. Is it a typing error?" in said
    assert "Nothing of this call was stored" in said
    assert "--accept-unusual" in said
    assert "0 of 6 pulls in" in surepick("status", url, "bread")[1]
    code, output, _ = surepick("tell", url, "bread", table(GOOD + "f,790,6\n"), "--worker", "ann", "--accept-unusual")
    assert code == 0
    assert "6 results counted." in output


def test_totals_are_asked_about_too(lab, refused):
    url, table = lab
    rows = "id,pulls,sum,squares,key\na,1,57,3249,1\na,1,570,324900,2\n"
    assert "stands out: its other result is" in refused("tell", url, "bread", table(rows), "--worker", "ann")


def test_undo_takes_back_the_latest_or_those_of_keys(lab, refused):
    url, table = lab
    assert surepick("tell", url, "bread", table(GOOD), "--worker", "ann")[0] == 0
    code, output, _ = surepick("undo", url, "bread", "2", "3", "--worker", "ann", "--reason", "wrong line")
    assert code == 0
    assert "2 results taken back, of b, c." in output
    assert "3 of 6 pulls in" in output
    assert '"undone": [' in surepick("undo", url, "bread", "--worker", "ann", "--format", "json")[1]
    assert "not reported under this name" in refused("undo", url, "bread", "1", "--worker", "bob")
    assert "left to undo" in refused("undo", url, "bread")
    again = GOOD + "f,79,6\n"
    assert surepick("tell", url, "bread", table(again), "--worker", "ann")[0] == 0
    assert "its round is closed. What was read can take its place: surepick correct" in refused(
        "undo", url, "bread", "1", "--worker", "ann"
    )


@pytest.mark.parametrize("answer", ["warn", "accept", "refuse"])
def test_run_study_warns_accepts_or_ends(lab, tmp_path, answer):
    url, _ = lab
    surepick("release", url, "bread", "--worker", "ann")
    program = tmp_path / "measure.py"
    program.write_text(
        "import sys\nfrom pathlib import Path\nonce = Path(sys.argv[0]).with_name('once')\n"
        "ids = sys.stdin.read().split()\nvalues = [57 + 4 * 'abcdef'.index(one) for one in ids]\n"
        "if not once.exists():\n    once.touch()\n    values[-1] *= 10\nprint(*values, sep=chr(10))\n"
    )
    command = f"{sys.executable} -ISE {program}"
    words = ("run-study", url, "bread", "--measure-batch", command, "--unusual", answer, "--max-pulls", "6")
    if answer == "refuse":
        with pytest.raises(MeasurementFailed, match=r"stands out.*as --unusual refuse says; --unusual accept goes on"):
            surepick(*words)
    else:
        assert ("It counts, since a program measured it" in surepick(*words)[2]) == (answer == "warn")
    told = sp.open_study(url, "bread")
    assert told.progress().pulls == (0 if answer == "refuse" else 6)
    told.log._engine.dispose()


def test_correct_puts_what_was_read_in_its_place(lab, refused):
    url, table = lab
    typed = GOOD.replace("c,66", "c,790") + "f,79,6\n"
    assert surepick("tell", url, "bread", table(typed), "--worker", "ann", "--accept-unusual")[0] == 0
    assert "best of the closed rounds c" in surepick("status", url, "bread")[1]
    assert "not reported under this name" in refused("correct", url, "bread", "3", "66")
    code, output, _ = surepick("correct", url, "bread", "3", "66", "--worker", "ann", "--reason", "wrong line")
    assert code == 0
    assert "66 counts in the place of 790 of c once round 2 is complete, which stays as it was planned" in output
    assert "surepick abandon --reason independent-of-value" in output
    assert surepick("abandon", url, "bread", "--reason", "independent-of-value")[0] == 0
    assert "best of the closed rounds f" in surepick("status", url, "bread")[1]
    code, output, _ = surepick("correct", url, "bread", "a", "-57.5", "--typed", "57", "--worker", "ann")
    assert "-57.5 counts in the place of 57 of a once round 2 is complete" in output
    assert "1 correction counts then" in output
    found = surepick("correct", url, "bread", "a", "57", "--worker", "ann", "--format", "json")[1]
    assert '"typed": -57.5' in found
    assert "57 already" in refused("correct", url, "bread", "a", "57", "--worker", "ann")
