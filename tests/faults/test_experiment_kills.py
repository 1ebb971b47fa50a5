"""An experiment is killed in the middle, again and again: the files in the end are those of an undisturbed run."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from apart import apart
from command_line import ended

from surepick_bench.results import Results, read_results

COMMAND = [
    sys.executable,
    "-m",
    "surepick",
    "bench",
    "run",
    "high-dimensional",
    "--policies",
    "linear-embedding,action-elimination",
    "--runs",
]
RUNS = 2
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # as workers have: equal to the last bit
REPLICATES = 4 * 2 * RUNS


def without_seconds(rows) -> list[dict]:
    return [{name: value for name, value in row.items() if "seconds" not in name} for row in rows]


def start(out: Path, jobs: int) -> subprocess.Popen:
    return subprocess.Popen(
        [*COMMAND, str(RUNS), "--out", str(out), "--jobs", str(jobs)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, **ONE_THREAD},
    )


def run_alone(out: Path) -> None:
    """The whole experiment, without workers."""
    assert apart(ended, [*COMMAND[3:], str(RUNS), "--out", str(out), "--jobs", "1"], most=300.0) == 0


def parts(out: Path) -> int:
    return len(list(out.with_suffix(".parts").glob("*.json")))


def kill_at(out: Path, jobs: int, number: int, most: float = 120.0) -> None:
    """Start the experiment and kill it with signal 9 once that many replicates are kept."""
    process = start(out, jobs)
    until = time.monotonic() + most
    while parts(out) < number and process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    process.kill()
    assert process.wait() == -signal.SIGKILL, "it ended before it could be killed"
    deadline = time.monotonic() + 60.0
    while alive(process.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not alive(process.pid), "workers outlive their parent"


def alive(group: int) -> bool:
    """Whether some process of the group is left (the killed one was waited for)."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Results:
    """The experiment that nobody kills."""
    out = tmp_path_factory.mktemp("whole") / "r.parquet"
    run_alone(out)
    results = read_results(out)
    assert len(results.replicates) == REPLICATES
    return results


def finish(out: Path, jobs: int, undisturbed: Results) -> None:
    """Start it again without a kill: the rows are the undisturbed ones, and nothing else is left behind."""
    assert not out.exists()
    if jobs == 1:
        run_alone(out)
    else:
        assert start(out, jobs).wait(timeout=300) == 0
    resumed = read_results(out)
    assert without_seconds(resumed.replicates) == without_seconds(undisturbed.replicates)
    assert without_seconds(resumed.rounds) == without_seconds(undisturbed.rounds)
    assert sorted(path.name for path in out.parent.iterdir()) == ["r.parquet", "r.rounds.parquet"]


def kill_and_resume(out: Path, jobs: int, numbers: list[int], undisturbed: Results) -> None:
    """Kill after so many more replicates, each time; then finish, and compare with an undisturbed run."""
    for number in numbers:
        kept = parts(out)
        kill_at(out, jobs, kept + number)
        assert not out.exists()
        assert parts(out) > kept, "what was finished is lost"
    finish(out, jobs, undisturbed)


@pytest.mark.slow
@pytest.mark.alone  # orphaned workers have a minute to end
@pytest.mark.parametrize("jobs", [1, 2])
def test_many_kills(jobs, undisturbed, tmp_path):
    chance = random.Random(jobs)
    kill_and_resume(tmp_path / "r.parquet", jobs, [chance.randint(1, 3) for _ in range(6)], undisturbed)


def test_all_are_killed_then_a_worker_which_is_said_and_nothing_is_lost(undisturbed, tmp_path):
    """What is left is done without any worker."""
    out = tmp_path / "r.parquet"
    kill_at(out, 2, 1)
    before = parts(out)
    process = subprocess.Popen(
        [*COMMAND, str(RUNS), "--out", str(out), "--jobs", "2"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        until = time.monotonic() + 120.0
        while not (found := workers(process.pid)) and process.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        while parts(out) < before + 2 and process.poll() is None and time.monotonic() < until:
            time.sleep(0.001)
        os.kill(found[0], signal.SIGKILL)  # known by now: what is left lasts less long than a list of processes
        _, said = process.communicate(timeout=120)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 1
    assert "error: a worker process was killed" in said
    assert "Traceback" not in said
    assert before + 2 <= parts(out) < REPLICATES
    finish(out, 1, undisturbed)


def workers(parent: int) -> list[int]:
    """Process numbers of joblib's workers, oldest first."""
    words = ["ps", "-ww", "-eo", "pid,ppid,args"]  # -ww: whole lines, however wide the terminal is
    listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()[1:]]
    return sorted(int(pid) for pid, above, command in rows if int(above) == parent and "popen_loky" in command)
