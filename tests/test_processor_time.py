"""Processor time is measured of a test and its children; one beyond its budget fails, one that waits does not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import subprocess, sys, time, pytest
SPEND = "import time\\nwhile time.process_time() < .1: pass"

def test_it_spends():
    subprocess.run([sys.executable, "-c", SPEND], check=True)

@pytest.mark.slow
def test_it_may_spend():
    subprocess.run([sys.executable, "-c", SPEND], check=True)

def test_it_waits():
    time.sleep(.2)
"""
PLUGIN = """
import pytest, processor_time
processor_time.FAILS_AT, processor_time.REFERENCE = .05, 100.0  # no machine is as slow as that

def pytest_configure(config):
    config.addinivalue_line("markers", "slow: may spend")
    config.pluginmanager.register(processor_time.ProcessorTime(budgeted=True))
"""


@pytest.mark.parametrize("workers", [[], ["-p", "xdist", "-n", "1"]], ids=["one process", "workers"])
def test_what_spends_fails_and_what_waits_passes(workers, tmp_path):
    (tmp_path / "test_spending.py").write_text(PROGRAM)
    (tmp_path / "conftest.py").write_text(PLUGIN)
    helpers = f"pythonpath={Path(__file__).parent / 'helpers'}"
    words = [sys.executable, "-m", "pytest", "-q", "-o", helpers, "--durations", "1", *workers]
    bare = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(words, cwd=tmp_path, env=bare, capture_output=True, text=True, check=False)
    assert "3 passed, 1 error" in done.stdout
    assert "ERROR test_spending.py::test_it_spends - the test spent 0." in done.stdout
    summary = done.stdout.partition("seconds of processor time")[2]
    named, total = summary.splitlines()[1:3]
    assert float(named.split()[0]) >= 0.1
    assert named.endswith(("test_it_spends", "test_it_may_spend"))
    assert float(total.split()[0]) >= 0.2
    assert "in 3 tests, and " in total
