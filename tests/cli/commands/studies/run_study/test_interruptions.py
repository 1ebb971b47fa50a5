"""run-study that is killed or interrupted, and two of them on one study."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from apart import forks
from command_line import printed_to
from measuring_programs import PATIENCE, alive, until, written
from run_study_lab import ANSWER, Lab

import surepick as sp


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


@pytest.fixture
def forked(tmp_path) -> Iterator:
    """Starts the command in processes that need not import it first; (process, file of what it prints)."""
    processes = []

    def start(words):
        file = tmp_path / f"printed-{len(processes)}"
        processes.append(forks().Process(target=printed_to, args=(str(file), words)))
        processes[-1].start()
        return processes[-1], file

    yield start
    for process in processes:
        process.kill()
        process.join(PATIENCE)


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


def test_killed_in_the_middle_of_a_call_the_same_command_goes_on(several, forked):
    loop, _ = forked(several.words("--lease", "1m"))  # not an hour: a loop that did not get it again would wait
    program, child = until(
        lambda: written(several.folder, "program") and written(several.folder, "[pc]*[md]"), "a call"
    )
    before = several.stored()
    assert before  # a and b were told
    loop.kill()  # signal 9
    loop.join(PATIENCE)
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


def test_two_loops_on_one_study(stored_at, tmp_path, forked):
    lab = Lab(stored_at, tmp_path)
    lab.create()
    both = (
        "(here / f'at-work-{os.getpid()}').write_text('')\n"
        "wait_for(lambda: len(list(here.glob('at-work-*'))) >= 2)\n"  # the first call of each loop
    )
    lab.program(both + ANSWER)
    loops = [forked(lab.words("--worker", name, "--batch", 1, "--format", "json")) for name in ("left", "right")]
    answers = []
    for loop, printed in loops:
        loop.join(PATIENCE)
        assert loop.exitcode == 0, printed.read_text()
        answers.append(json.loads(printed.read_text()))
    assert answers[0] == answers[1] == lab.by_hand()
    assert {source for _, _, source in lab.stored()} == {"left/1", "right/1"}
    assert len(lab.stored()) == answers[0]["pulls"]
