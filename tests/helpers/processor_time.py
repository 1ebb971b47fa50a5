"""Processor time of each test, its children's with it: the slowest are named, the sum is said, a budget is kept.

A clock on the wall says how busy the machine was; processor time says what a test costs, and is nearly the same beside
four busy processes. Machines differ by two or three times, and one machine by that from hour to hour. So a budget is
seconds of a machine that does a fixed piece of work in `REFERENCE` seconds, and whoever seems to be beyond it is judged
by what that work takes here and now. A test of `make test` has 3 of them. It fails at twice that: a processor that is
shared by two threads, or whose cache is, takes up to twice as long.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from multiprocessing import forkserver
from typing import Any

import pytest

BUDGET = 3.0  # seconds of processor time for a test
FAILS_AT = 2.0 * BUDGET
REFERENCE = 0.02  # seconds of processor time that `piece_of_work` took where budgets were set
APART = {"docs", "browser"}  # folders that `make test` leaves out: pages are followed as they are written
SECONDS, FORKED = "processor_seconds", "forked_seconds"


def spent() -> float:
    """Seconds of processor time of this process, and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def piece_of_work() -> int:
    """What each machine does in a time of its own."""
    return sum(number * number for number in range(500_000))


def slowness() -> float:
    """How many times longer than the reference this machine works now: the least of three; at least 1."""
    took = []
    for _ in range(3):
        began = time.process_time()
        piece_of_work()
        took.append(time.process_time() - began)
    return max(1.0, min(took) / REFERENCE)


def complaint(seconds: float) -> str | None:
    """What is said of a test that spent so much; None while it is allowed."""
    if seconds <= FAILS_AT or seconds <= FAILS_AT * (slower := slowness()):
        return None
    return (
        f"the test spent {seconds:.1f} s of processor time, and its budget is {BUDGET:g} s on a machine that is "
        f"{slower:.1f} times as fast as this one now: make its instances smaller, or its studies fewer while every "
        "saboteur still fails, or mark it slow."
    )


class ProcessorTime:
    """The plugin: measures where tests run, reports where the session ends.

    Args:
        budgeted: whether a test beyond its budget fails; those marked slow or alone have none.
    """

    def __init__(self, budgeted: bool) -> None:
        self.budgeted = budgeted
        self.began = 0.0
        self.of_tests: dict[str, float] = {}
        self.of_workers: list[float] = []
        self.forked = 0.0  # of processes that one forked which lives as long as this one: no test's own

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self) -> Iterator[None]:
        """A test begins."""
        self.began = spent()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
        """A test ends with its teardown, whose report says what all of it spent."""
        if call.when != "teardown":
            return (yield)
        seconds = spent() - self.began
        item.user_properties.append((SECONDS, seconds))
        report: Any = yield
        marked = item.get_closest_marker("slow") or item.get_closest_marker("alone")
        free = marked or not self.budgeted or item.path.parent.name in APART
        if report.passed and not free and (said := complaint(seconds)):
            report.outcome, report.longrepr = "failed", said
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """What a test spent, wherever it ran."""
        if report.when == "teardown":
            self.of_tests[report.nodeid] = dict(report.user_properties).get(SECONDS, 0.0)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A worker says what it spent altogether, collecting and the processes of `apart` included."""
        before = spent()
        forkserver._forkserver._stop()  # ended and waited for, so that it counts
        self.forked += spent() - before
        said = getattr(session.config, "workeroutput", None)
        if said is not None:
            said |= {SECONDS: spent(), FORKED: self.forked}

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """What a worker said."""
        said = getattr(node, "workeroutput", {})
        self.of_workers.append(said.get(SECONDS, 0.0))
        self.forked += said.get(FORKED, 0.0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        """With --durations, the slowest tests by processor time; and the sum."""
        number = config.option.durations
        if number is None:
            return
        terminalreporter.section("seconds of processor time")
        slowest = sorted(self.of_tests.items(), key=lambda test: -test[1])
        for name, seconds in slowest[: number or None]:
            terminalreporter.write_line(f"{seconds:8.2f}  {name}")
        tests = sum(self.of_tests.values())
        everything = _own() + sum(self.of_workers) if self.of_workers else spent()
        terminalreporter.write_line(
            f"{tests:8.1f}  in {len(self.of_tests)} tests, and {self.forked:.1f} in processes that were forked apart; "
            f"{everything:.1f} altogether, collecting included; this machine is {slowness():.1f} times as slow as the "
            "one whose seconds budgets are in"
        )


def _own() -> float:
    """Seconds of this process without its children, which have said theirs."""
    times = os.times()
    return times.user + times.system
