"""The process of the command line: help, exit codes, messages and progress."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import surepick
from together import of_each

import surepick as sp
from surepick.cli import main


def in_a_process(*arguments) -> tuple[int, str, str]:
    """(exit code, standard output, standard error) of the installed command."""
    command = [str(Path(sys.executable).with_name("surepick")), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"COLUMNS": "80"})
    return done.returncode, done.stdout, done.stderr


@of_each("command", [(), ("demo",), ("run",), ("design",)])
def test_every_command_explains_itself(command):
    code, output, errors = surepick(*command, "--help", columns=120)
    assert (code, errors) == (0, "")
    assert "Usage: surepick" in output
    options = re.findall(r"^[│ *]*(--[a-z-]+)", output, re.MULTILINE)
    described = re.findall(r"^[│ *]*--[a-z-]+ +(?:<[^>]+>(?: \[[^\]]+\])?)? +\S", output, re.MULTILINE)
    assert "--help" in options
    assert len(described) == len(options)


def test_the_version_is_the_packages():
    assert surepick("--version") == (0, f"surepick {sp.__version__}\n", "")


def test_nothing_asked_shows_the_help():
    _, output, errors = surepick()
    assert "demo" in output + errors


def test_exit_codes_of_the_process(table):
    """0 is that of the process below which draws its progress."""
    words = ("run", table, "--id", "colour", "--reward", "gloss", "--noise", "bounded:0:1", "--epsilon", "0.2")
    code, output, errors = in_a_process(*words, "--max-pulls", "4", "--format", "json")
    assert (code, errors) == (3, "")
    assert json.loads(output)["verdict"] == "budget-exhausted"
    code, output, errors = in_a_process(*words, "--delta", "7")
    assert (code, output) == (2, "")
    assert errors.startswith("error: delta is 7.0; it must lie strictly between 0 and 1")
    assert len(errors.splitlines()) == 1


def test_words_that_are_not_understood_are_bad_input(run_main):
    for words in (
        ("runn",),
        ("run",),
        ("demo", "--seed", "-1"),
        ("demo", "--format", "xml"),
        ("demo", "--epsilon", "x"),
    ):
        code, output, errors = run_main(*words)
        assert (code, output) == (2, "")
        assert "Error" in errors


def test_a_message_with_brackets_is_printed_as_it_is(run_main, tmp_path):
    missing = tmp_path / "[red]no.csv"
    code, _, errors = run_main("design", missing)
    assert code == 2
    assert errors.startswith(f"error: there is no file {missing};")


def test_progress_is_drawn_on_standard_error_only(monkeypatch, table):
    """With a terminal on standard error the bar is drawn there, and standard output stays pure JSON."""
    script = (
        "import sys; sys.stderr.isatty = lambda: True\n"
        "from surepick.cli import main; sys.argv = ['surepick', *sys.argv[1:]]; main()"
    )
    words = ("run", table, "--id", "colour", "--reward", "gloss", "--noise", "bounded:0:1", "--epsilon", "0.2")
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, words), "--format", "json"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "120"},
    )
    assert json.loads(done.stdout)["verdict"] == "certified"
    assert "round" in done.stderr
    assert re.search(r"\d of 3 (candidates left|possible)", done.stderr)


@pytest.mark.parametrize(("set_before", "then"), [(None, "1"), ("3", "3")])
def test_commands_use_one_thread_of_linear_algebra_unless_somebody_says_how_many(monkeypatch, set_before, then):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "restored after the test")
    if set_before is None:
        monkeypatch.delenv("OPENBLAS_NUM_THREADS")
    else:
        monkeypatch.setenv("OPENBLAS_NUM_THREADS", set_before)
    monkeypatch.setattr(sys, "argv", ["surepick", "--version"])
    with pytest.raises(SystemExit):
        main()
    assert os.environ["OPENBLAS_NUM_THREADS"] == then
