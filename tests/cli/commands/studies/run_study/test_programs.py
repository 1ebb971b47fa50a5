"""run-study: any program measures; whatever it does, no result is lost and none counts twice."""

import json
import os
import signal
import sys

import pytest
from measuring_programs import PATIENCE, alive, until, written
from run_study_lab import ANSWER, Lab, rewards

import surepick as sp
from surepick.cli.app import main
from surepick.studies.program import Command, Outcome

AWKWARD = (
    "a b",
    'say "hi"',
    "it's",
    "$(touch x)",
    "; touch x",
    "`touch x`",
    "-rf",
    "--help",
    "*",
    "{pulls}",
    "é",
    "\\n",
    "|",
)


# a program that works


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ("{id} {pulls}", rewards),
        pytest.param("{id}", lambda name, pulls: [rewards(name, 1)[0]] * pulls, marks=pytest.mark.slow),
    ],
)
def test_the_certificate_is_that_of_telling_by_hand(lab, arguments, value):
    code, output, errors = lab.run(arguments=arguments)
    assert code == 0
    assert "Recommended: a   certified" in output
    assert "round 2; " in errors
    assert "a is the answer, certified: with 95% confidence at most 0." in errors.splitlines()[-1]
    answer = lab.certificate(arguments=arguments)  # once more: nothing is left to do
    assert answer == lab.by_hand(value)
    assert len(lab.stored()) == answer["pulls"]
    assert len({key for key, _, _ in lab.stored()}) == answer["pulls"]


def test_ids_reach_the_program_as_one_argument_and_no_shell(sqlite_url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lab = Lab(sqlite_url, tmp_path, ids=AWKWARD)
    lab.create()
    lab.program(
        "import json\nwith open(here / 'log', 'a') as log: print(json.dumps(sys.argv[1:]), file=log)\nprint(0.5)\n"
    )
    code, _, _ = lab.run("--max-pulls", len(AWKWARD), arguments="-- {id} {pulls}  'x {id};{pulls}'")
    assert code == 3
    calls = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert calls == [[name, "1", f"x {name};1"] for name in AWKWARD]
    assert not (tmp_path / "x").exists()


def test_calls_are_made_at_the_same_time(lab):
    together = (
        "(here / f'at-work-{name}').write_text('')\n"
        "wait_for(lambda: len(list(here.glob('at-work-*'))) == 3)\n"  # each of the first three waits for the others
    )
    lab.program(together + ANSWER)
    answer = lab.certificate("--workers", 3)
    assert answer["best_arm"] == "a"
    assert answer["assumptions"] == lab.by_hand()["assumptions"]  # nothing failed, nothing was asked twice


def test_the_budget(lab):
    code, output, _ = lab.run("--max-pulls", 6)
    assert code == 3
    assert "The next round would have passed --max-pulls 6; the same command with more goes on." in output
    assert len(lab.stored()) == 6  # two rounds of three
    assert lab.certificate("--max-pulls", 6, code=3)["pulls"] == 6
    assert lab.certificate() == lab.by_hand()
    code, output, _ = lab.run("--max-pulls", 1)  # what is done is done
    assert (code, "would have passed" in output) == (0, False)


def test_more_than_is_leased_at_a_time(sqlite_url, tmp_path):
    options = {"epsilon": 0.3, "delta": 0.05, "noise": sp.Bounded(0, 1), "norm_bound": 2.0}
    lab = Lab(sqlite_url, tmp_path, policy="linear-embedding", options=options)
    lab.create()
    lab.program("(here / f'{pulls}').write_text('')\n" + ANSWER)
    lab.certificate("--batch", 5)
    assert max(int(path.name) for path in tmp_path.glob("[0-9]*") if path.name.isdigit()) == 5


# a program that does not


FAILURES = {
    "code": ("sys.exit('the lamp is broken')\n", "it ended with code 1: the lamp is broken"),
    "signal": ("os.kill(os.getpid(), 9)\n", "it was killed by signal 9"),
    "time-out": ("time.sleep(60)\n", "it took longer than 0.3 s and was killed"),
    "garbage": ("print('0.5 V')\n", "it printed '0.5 V', which is not a finite number"),
    "no line": ("", "it printed 0 rewards for 1 measurements"),
    "two lines": ("print(0.5)\nprint(0.5)\n", "it printed 2 rewards for 1 measurements"),
    "nan": ("print('nan')\n", "it printed 'nan', which is not a finite number"),
    "infinite": ("print('-inf')\n", "it printed '-inf', which is not a finite number"),
    "absent": (None, "can't open file"),
}


@pytest.mark.parametrize("kind", FAILURES)
def test_what_is_wrong_with_a_program_is_said(tmp_path, kind):
    body, said = FAILURES[kind]
    path = Lab("", tmp_path).program(body or "")
    if body is None:
        path.unlink()
    limit = 0.3 if kind == "time-out" else PATIENCE
    found = Command(f"{sys.executable} -ISE {path} {{id}}", timeout=limit).measure(["a"])
    assert said in found.failure


IN_STUDIES = ("code", "time-out")  # a study treats others as it does these


@pytest.mark.cases(1)
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=() if kind in IN_STUDIES else pytest.mark.slow) for kind in FAILURES]
)
def test_a_failing_program_is_retried_and_named_and_harms_nothing(lab, kind, monkeypatch, capsys):
    body, said = FAILURES[kind]
    path = lab.program("with open(here / 'calls', 'a') as calls: print(name, file=calls)\n" + (body or ""))
    if body is None:
        path.unlink()
    limit = ("--timeout", "0.3s") if kind == "time-out" else ()
    words = lab.words("--retries", 1, "--format", "json")
    monkeypatch.setattr(sys, "argv", ["surepick", *words, *limit])
    with pytest.raises(SystemExit) as end:
        main()
    captured = capsys.readouterr()
    assert (end.value.code, captured.out) == (2, "")
    assert "error: 'a' could not be measured in 2 calls, one after the other; in the last, " in captured.err
    assert said in captured.err
    assert "The reported results are stored. Give the same command again when the program works." in captured.err
    if kind not in ("absent", "time-out"):
        assert (lab.folder / "calls").read_text().splitlines() == ["a", "b", "c", "a"]
    assert lab.stored() == []
    lab.program()
    monkeypatch.setattr(sys, "argv", ["surepick", *words])
    with pytest.raises(SystemExit) as end:
        main()
    answer, expected = json.loads(capsys.readouterr().out), lab.by_hand()
    assert end.value.code == 0
    asked_again = "Measurements that failed or did not come in time and were asked again: 4;"
    assert [one for one in answer["assumptions"] if not one.startswith(asked_again)] == expected["assumptions"]
    assert len(answer["assumptions"]) == len(expected["assumptions"]) + 1
    assert answer | {"assumptions": ()} == expected | {"assumptions": ()}


def test_a_reward_that_was_declared_impossible_is_not_measured_again(lab, monkeypatch, capsys):
    """To repeat a measurement because of its value would be to choose by value."""
    lab.program("with open(here / 'calls', 'a') as calls: print(name, file=calls)\nprint(1.5)\n")
    monkeypatch.setattr(sys, "argv", ["surepick", *lab.words("--retries", 5)])
    with pytest.raises(SystemExit) as end:
        main()
    said = capsys.readouterr().err
    assert end.value.code == 2
    assert "the program's answer for 'a' is refused: 1 reward is outside what was declared" in said
    assert "Nothing of this call was stored" in said
    assert (lab.folder / "calls").read_text().splitlines() == ["a"]
    assert lab.stored() == []
    lab.program()
    assert lab.certificate("--retries", 1) == lab.by_hand()


def test_a_program_that_is_not_there(lab, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["surepick", "run-study", lab.url, "x", "--measure", "/nowhere/measure {id}"])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert "the program could not be started: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("measure 'x", "is not well-formed: No closing quotation"),
        ("measure {pulls}", "does not say which candidate is measured; write {id}"),
        ("", "does not say which candidate is measured"),
    ],
)
def test_a_command_without_meaning(template, said):
    with pytest.raises(sp.InvalidInput, match=said):
        Command(template)


def test_failures_now_and_then_are_made_good(lab):
    flaky = (
        "calls = here / 'calls'\n"
        "calls.write_text(calls.read_text() + '.' if calls.exists() else '.')\n"
        "if len(calls.read_text()) % 3 == 0: sys.exit(1)\n"
    )
    lab.program(flaky + ANSWER)
    answer, expected = lab.certificate(), lab.by_hand()
    assert {**answer, "assumptions": ()} == {**expected, "assumptions": ()}
    failed = len((lab.folder / "calls").read_text()) - answer["pulls"]
    assert failed > 0
    assert any(f"asked again: {failed};" in sentence for sentence in answer["assumptions"])


def test_a_time_out_kills_what_the_program_started(lab):
    sleeper = "import subprocess\nchild = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'])\n"
    lab.program(sleeper + "(here / 'child').write_text(str(child.pid))\nchild.wait()\n")
    for seconds in (1, 4, 16, 64):  # on a busy machine the program takes a while to begin
        command = Command(f"{sys.executable} -ISE {lab.folder / 'measure.py'} {{id}}", timeout=seconds)
        assert command.measure(["a"]).failure == f"it took longer than {seconds} s and was killed"
        if written(lab.folder, "child"):
            break
    (child,) = written(lab.folder, "child")
    until(lambda: not alive(child), "the death of the program's child")


def test_what_a_program_leaves_running_is_not_waited_for(lab):
    lab.program(
        "import subprocess\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'])\n"
        "(here / 'child').write_text(str(child.pid))\n" + ANSWER
    )
    command = Command(f"{sys.executable} -ISE {lab.folder / 'measure.py'} {{id}} {{pulls}}", timeout=PATIENCE)
    try:
        assert command.measure(["a", "a"]) == Outcome(tuple(rewards("a", 2)))
    finally:
        os.kill(written(lab.folder, "child")[0], signal.SIGKILL)
