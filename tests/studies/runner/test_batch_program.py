"""run-study with a program that measures a whole batch, and ids that a program could take for options."""

import sys
from collections import Counter
from pathlib import Path

import pytest
from run_study_lab import MEANS, Lab
from together import of_each

import surepick as sp
from surepick.cli.app import main
from surepick.studies.program import BatchCommand, Command, Outcome, matched

PROGRAM = """import os, sys
here = os.path.dirname(sys.argv[0])
ids = sys.stdin.read().splitlines()
with open(here + "/calls", "a") as calls: print(len(ids), file=calls)
"""
ANSWER = f"for name in ids: print({MEANS}[name])\n"
FIRST_FAILS = f"print('', *[{MEANS}[name] for name in ids[1:]], sep=chr(10))\n"


class Batches(Lab):
    """A study of three candidates, and a program that measures what it reads."""

    def program(self, body: str = ANSWER) -> Path:
        path = self.folder / "measure.py"
        path.write_text(PROGRAM + body)
        return path

    def words(self, *options, **_) -> list[str]:
        measure = f"{sys.executable} -ISE {self.folder / 'measure.py'}"
        return ["run-study", self.url, "x", "--measure-batch", measure, *map(str, options)]

    @property
    def calls(self) -> list[int]:
        return [int(line) for line in (self.folder / "calls").read_text().splitlines()]


@pytest.fixture
def lab(sqlite_url, tmp_path) -> Batches:
    lab = Batches(sqlite_url, tmp_path)
    lab.create()
    lab.program()
    return lab


def in_words(words, monkeypatch, capsys) -> tuple[int, str]:
    """(exit code, standard error) of the command as users see it."""
    monkeypatch.setattr(sys, "argv", ["surepick", *words])
    with pytest.raises(SystemExit) as end:
        main()
    return end.value.code, capsys.readouterr().err


def constant(name: str, pulls: int) -> list[float]:
    return [MEANS[name]] * pulls


def test_the_certificate_is_that_of_telling_by_hand_and_a_round_is_one_call(lab):
    answer = lab.certificate()
    assert answer == lab.by_hand(constant)
    assert lab.calls == [entry["pulls"] for entry in answer["rounds"]]
    assert len({key for key, _, _ in lab.stored()}) == len(lab.stored()) == answer["pulls"]


def test_a_lease_is_the_most_that_a_call_is_given(lab):
    answer = lab.certificate("--batch", 2, "--workers", 2)
    assert answer == lab.by_hand(constant)
    assert max(lab.calls) <= 2


FAILURES = {
    "exit code": ("sys.exit('no paint left')\n", "it ended with code 1: no paint left"),
    "too few": ("print(0.5)\n", "it printed 1 lines for 3 measurements"),
    "too many": ("print(*[0.5] * 4, sep=chr(10))\n", "it printed 4 lines for 3 measurements"),
    "nothing": ("", "it printed 0 lines for 3 measurements"),
    "no number": (
        "print(*['0.5 V'] * 3, sep=chr(10))\n",
        "it printed '0.5 V', which is not a finite number, and 2 more",
    ),
    "nan": ("print(*['nan'] * 3, sep=chr(10))\n", "it printed 'nan', which is not a finite number"),
}


@pytest.mark.parametrize("kind", FAILURES)
def test_what_is_wrong_with_a_program_is_said(tmp_path, kind):
    body, said = FAILURES[kind]
    path = Batches("", tmp_path).program(body)
    assert said in BatchCommand(f"{sys.executable} -ISE {path}").measure(["a", "b", "c"]).failure


IN_STUDIES = ("no number",)  # a study treats others as it does this one


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind in IN_STUDIES else pytest.mark.slow) for kind in FAILURES]
)
def test_a_failing_program_is_retried_and_named_and_harms_nothing(lab, kind, monkeypatch, capsys):
    body, said = FAILURES[kind]
    lab.program(body)
    code, errors = in_words(lab.words("--retries", 1), monkeypatch, capsys)
    assert code == 2
    assert "error: 'a' could not be measured in 2 calls, one after the other; in the last, " in errors
    assert said in errors
    assert lab.calls == [3, 3]
    assert lab.stored() == []
    lab.program()
    assert lab.certificate()["pulls"] == lab.by_hand(constant)["pulls"]


def test_only_the_rows_that_failed_are_asked_again(lab):
    once = "if not os.path.exists(here + '/once'):\n    open(here + '/once', 'w').close()\n    "
    lab.program(once + FIRST_FAILS + "    sys.exit()\n" + ANSWER)
    answer, expected = lab.certificate("--retries", 1), lab.by_hand(constant)
    assert answer["pulls"] == expected["pulls"]
    assert lab.calls[:2] == [3, 1]  # b and c were told from the first call
    assert any("asked again: 1;" in sentence for sentence in answer["assumptions"])


def test_an_empty_line_is_a_row_that_failed_also_at_the_end():
    printed = {"1\n\n": (1.0, None), "\n2\n": (None, 2.0), "1\n2\n\n\n": (1.0, 2.0), "1\n2": (1.0, 2.0)}
    for text, rewards in printed.items():
        assert matched(text, 2).rewards == rewards


def test_a_row_that_always_fails_is_named_and_the_others_are_stored(lab, monkeypatch, capsys):
    lab.program(f"for name in ids: print('broken' if name == 'b' else {MEANS}[name])\n")
    code, errors = in_words(lab.words("--retries", 2), monkeypatch, capsys)
    assert code == 2
    assert "'b' could not be measured in 3 calls" in errors
    assert Counter(key.partition("@")[0] for key, _, _ in lab.stored()).total() == 2


def test_a_reward_that_was_declared_impossible_is_not_measured_again(lab, monkeypatch, capsys):
    lab.program("print(0.5, 1.5, 0.5, sep=chr(10))\n")
    code, errors = in_words(lab.words("--retries", 5), monkeypatch, capsys)
    assert code == 2
    assert "the program's answer for 'a' and 2 others is refused: 1 reward is outside what was declared" in errors
    assert lab.calls == [3]
    assert lab.stored() == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "give one program that measures"),
        (("--measure", "m {id}", "--measure-batch", "m"), "give one program that measures"),
        (("--measure-batch", "m {id}"), "names {id} or {pulls}, which have no meaning for a whole batch"),
        (("--measure-batch", ""), "--measure-batch names no program"),
        (("--measure-batch", "m 'x"), "is not well-formed"),
    ],
)
def test_one_program_is_named_and_it_is_well_formed(lab, words, said, monkeypatch, capsys):
    code, errors = in_words(["run-study", lab.url, "x", *words], monkeypatch, capsys)
    assert code == 2
    assert said in errors


def test_many_ids_do_not_fill_a_pipe():
    """The program prints before it reads, as any may."""
    number = 30_000
    command = BatchCommand(
        f"{sys.executable} -ISEc 'import sys; print(0.5); [print(0.5) for _ in list(sys.stdin)[1:]]'"
    )
    assert command.measure(["a candidate with a long name"] * number) == Outcome((0.5,) * number)


def test_ids_of_several_lines_are_refused(sqlite_url, tmp_path, monkeypatch, capsys):
    lab = Batches(sqlite_url, tmp_path, ids=("a", "b\nc", "d\u2028"))
    lab.create()
    lab.program()
    code, errors = in_words(lab.words(), monkeypatch, capsys)
    assert code == 2
    assert "2 ids hold a line break, the first is" in errors
    assert not (tmp_path / "calls").exists()


# ids that look like options


@of_each(
    "template",
    ["m {id} {pulls}", "m --flag {id}", "m {id}.csv", "m --id={id} {id}", "m {id} -- {pulls}", "m {id} -- {id}"],
)
def test_an_id_that_looks_like_an_option_is_refused_where_it_could_be_one(template):
    Command(template).check(["a", "b-"])
    with pytest.raises(sp.InvalidInput, match=r"2 ids begin with '-', the first is '-x': .* Say in the command"):
        Command(template).check(["a", "-x", "--help"])


@of_each("template", ["m -- {id} {pulls}", "m --id={id}", "m x/{id} {pulls}", "m --id={id} -- {id}"])
def test_a_command_that_says_where_ids_begin_takes_any(template):
    Command(template).check(["a", "-x", "--help"])


def test_an_id_is_not_an_option_of_the_program(sqlite_url, tmp_path, monkeypatch, capsys):
    """argparse reads what follows -- as it is."""
    lab = Lab(sqlite_url, tmp_path, ids=("--reward=1", "plain"))
    lab.create()
    (tmp_path / "measure.py").write_text(
        "import argparse\nparser = argparse.ArgumentParser()\nparser.add_argument('--reward', default=0.25)\n"
        "parser.add_argument('id')\nparser.add_argument('pulls', type=int)\nread = parser.parse_args()\n"
        "print(*[read.reward] * read.pulls, sep=chr(10))\n"
    )
    code, errors = in_words(lab.words(), monkeypatch, capsys)
    assert code == 2
    assert "1 ids begin with '-', the first is '--reward=1'" in errors
    lab.run("--max-pulls", 2, arguments="-- {id} {pulls}")
    assert {reward for _, reward, _ in lab.stored()} == {0.25}
    assert len(lab.stored()) == 2
