"""run-study: any program measures; whatever it does, and whoever is killed, no result is lost, doubled or invented."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from run_study_lab import ANSWER, Lab, rewards

import surepick as sp
from surepick.cli.app import main
from surepick.studies.database import open_study
from surepick.studies.runner.loop import Loop, MeasurementFailed
from surepick.studies.runner.program import Command, Outcome

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
PATIENCE = 60.0  # seconds after which something that must happen is said not to


@pytest.fixture
def lab(sqlite_url, tmp_path) -> Lab:
    lab = Lab(sqlite_url, tmp_path)
    lab.create()
    lab.program()
    return lab


@pytest.fixture
def started() -> Iterator:
    """Starts processes of the command; all are dead at the end."""
    processes = []

    def start(words, **settings) -> subprocess.Popen:
        command = [sys.executable, "-m", "surepick", *words]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        processes.append(subprocess.Popen(command, start_new_session=True, **pipes, **settings))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate(timeout=PATIENCE)


def until(condition, what: str):
    """The first true value of the condition."""
    deadline = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < deadline, f"after {PATIENCE:g} s {what} did not happen"
        time.sleep(0.02)
    return value


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def written(folder: Path, pattern: str) -> list[int]:
    """The process ids that programs left in files of such names."""
    return [int(path.read_text() or 0) for path in folder.glob(pattern)]


# a program that works


@pytest.mark.parametrize(
    ("arguments", "value"),
    [("{id} {pulls}", rewards), ("{id}", lambda name, pulls: [rewards(name, 1)[0]] * pulls)],
)
def test_the_certificate_is_that_of_telling_by_hand(lab, arguments, value):
    code, output, errors = lab.run(arguments=arguments)
    assert code == 0
    assert "Recommended: a   certified" in output
    assert "round 2; " in errors
    assert errors.rstrip().endswith("a is the answer, certified.")
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
    code, output, _ = lab.run("--max-pulls", 7)
    assert code == 3
    assert "The next round would have passed --max-pulls 7; the same command with more goes on." in output
    assert len(lab.stored()) == 6  # two rounds of three
    assert lab.certificate("--max-pulls", 7, code=3)["pulls"] == 6
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
    "time-out": ("time.sleep(60)\n", "it took longer than 1 s and was killed"),
    "garbage": ("print('0.5 V')\n", "it printed '0.5 V', which is not a finite number"),
    "no line": ("", "it printed 0 rewards for 1 measurements"),
    "two lines": ("print(0.5)\nprint(0.5)\n", "it printed 2 rewards for 1 measurements"),
    "nan": ("print('nan')\n", "it printed 'nan', which is not a finite number"),
    "infinite": ("print('-inf')\n", "it printed '-inf', which is not a finite number"),
    "absent": (None, "can't open file"),
}


@pytest.mark.parametrize("kind", FAILURES)
def test_a_failing_program_is_retried_and_named_and_harms_nothing(lab, kind, monkeypatch, capsys):
    body, said = FAILURES[kind]
    path = lab.program("with open(here / 'calls', 'a') as calls: print(name, file=calls)\n" + (body or ""))
    if body is None:
        path.unlink()
    limit = ("--timeout", "1s") if kind == "time-out" else ()
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
    assert "the program's answer for 'a' is refused: 1 rewards are outside what was declared" in said
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


# interruptions


STUCK = (  # the first call for c does not end before the file "go" is there
    "with open(here / 'log', 'a') as log: print(name, pulls, file=log)\n"
    "if name == 'c' and not (here / 'go').exists():\n"
    "    import subprocess\n"
    "    child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'])\n"
    "    (here / 'child.new').write_text(str(child.pid))\n"
    "    (here / 'child.new').rename(here / 'child')\n"
    "    (here / 'program.new').write_text(str(os.getpid()))\n"
    "    (here / 'program.new').rename(here / 'program')\n"
    "    time.sleep(300)\n"
)


@pytest.fixture
def several(sqlite_url, tmp_path) -> Lab:
    """A study whose rounds ask for several measurements of a candidate."""
    options = {"epsilon": 0.4, "delta": 0.05, "noise": sp.Bounded(0, 1), "norm_bound": 2.0}
    lab = Lab(sqlite_url, tmp_path, policy="linear-embedding", options=options)
    lab.create()
    lab.program(STUCK + ANSWER)
    return lab


def test_killed_in_the_middle_of_a_call_the_same_command_goes_on(several, started):
    loop = started(several.words("--lease", "1m"))  # not an hour: a loop that did not get it again would wait
    program, child = until(
        lambda: written(several.folder, "program") and written(several.folder, "[pc]*[md]"), "a call"
    )
    before = several.stored()
    assert before  # a and b were told
    loop.kill()  # signal 9
    loop.wait(PATIENCE)
    for pid in (program, child):
        os.kill(pid, signal.SIGKILL)
    (several.folder / "go").write_text("")
    answer = several.certificate()
    assert answer == several.by_hand()
    stored = several.stored()
    assert stored[: len(before)] == before
    assert len(stored) == len({key for key, _, _ in stored}) == answer["pulls"]
    calls = [line.split() for line in (several.folder / "log").read_text().splitlines()]
    assert sum(int(pulls) for _, pulls in calls) == answer["pulls"] + int(calls[2][1])  # c's first call was in vain
    assert calls[2] == calls[3]  # and is the only one that was made again


def test_ctrl_c_ends_it_quietly_with_all_that_it_started(several, started):
    loop = started(several.words("--workers", 2))
    pids = until(lambda: written(several.folder, "program") and written(several.folder, "[pc]*[md]"), "a call")
    loop.send_signal(signal.SIGINT)
    _, errors = loop.communicate(timeout=PATIENCE)
    assert loop.returncode == 130
    assert "interrupted. Every result so far is stored; the same command goes on." in errors
    assert "Traceback" not in errors
    for pid in pids:
        until(lambda pid=pid: not alive(pid), f"the death of process {pid}")


def test_two_loops_on_one_study(database_url, tmp_path, started):
    lab = Lab(database_url, tmp_path)
    lab.create()
    both = (
        "(here / f'at-work-{os.getpid()}').write_text('')\n"
        "wait_for(lambda: len(list(here.glob('at-work-*'))) >= 2)\n"  # the first call of each loop
    )
    lab.program(both + ANSWER)
    loops = [started(lab.words("--worker", name, "--batch", 1, "--format", "json")) for name in ("left", "right")]
    answers = []
    for loop in loops:
        output, errors = loop.communicate(timeout=PATIENCE)
        assert loop.returncode == 0, errors
        answers.append(json.loads(output))
    assert answers[0] == answers[1] == lab.by_hand()
    assert {source for _, _, source in lab.stored()} == {"left/1", "right/1"}
    assert len(lab.stored()) == answers[0]["pulls"]


# the loop, with a program that is played


@dataclass
class Played:
    """A program in this process: an outcome for each call."""

    play: object

    def check(self, ids):
        pass

    def share(self, pairs):
        return [pair for pair in pairs if pair[0] == pairs[0][0]]

    def measure(self, names, running):
        return self.play(names[0], len(names))


@pytest.mark.parametrize("outcome", [Outcome((0.5,)), Outcome(failure="it was cut off")])
def test_a_study_that_is_closed_during_a_call(lab, outcome):
    def closes(name, pulls):
        open_study(lab.url, "x").close("no more paint")
        return outcome

    assert Loop(open_study(lab.url, "x"), Played(closes), "ann", retries=0).run() is True
    assert lab.stored() == []
    assert "no more paint" in open_study(lab.url, "x").certificate().reason


def test_results_that_come_when_the_study_is_closed_are_late(lab):
    def closes(name, pulls):
        open_study(lab.url, "x").close("enough")
        return Outcome((0.5,) * pulls)

    receipts = []
    Loop(open_study(lab.url, "x"), Played(closes), "ann", heard=lambda _, receipt: receipts.append(receipt)).run()
    assert [receipt.late for receipt in receipts] == [1]


def test_a_round_beyond_the_budget_is_not_begun_whoever_closed_the_last(lab):
    calls = []

    def counts(name, pulls):
        calls.append(name)
        return Outcome(tuple(rewards(name, pulls)))

    assert Loop(open_study(lab.url, "x"), Played(counts), "ann", most=3).run() is False  # nobody hears, nobody plans
    assert len(calls) == 3


def test_it_says_for_whom_it_waits(lab):
    other = open_study(lab.url, "x")
    plan = other.lease(worker="bob", duration=2.0)
    assert plan.total == 3
    code, _, errors = lab.run()
    assert code == 0
    assert errors.count("waiting for measurements that are out: 3 with bob until 20") == 1
    assert len(lab.stored()) == other.certificate().pulls  # bob's were measured here once his lease had run out


def test_two_loops_of_one_name_are_told_so(lab):
    def other_loop_is_faster(name, pulls):
        other = open_study(lab.url, "x")
        part = other.lease(1, worker="ann/1")
        other.tell([name], [0.125], [part.keys()[0][1]], worker="ann/1")
        return Outcome(tuple(rewards(name, pulls)))

    with pytest.raises(MeasurementFailed, match=r"give each of them a name of its own \(--worker\)"):
        Loop(open_study(lab.url, "x"), Played(other_loop_is_faster), "ann").run()
