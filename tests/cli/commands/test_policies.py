"""`surepick policies`, panels of options, and completion by the shell."""

import json
import os
import subprocess
import sys

import pytest
from command_line import surepick

import surepick as sp


def test_every_policy_has_its_line_and_its_options():
    said = surepick("policies", columns=200)[1]
    found = json.loads(surepick("policies", "--format", "json")[1])
    assert set(sp.policy_names()) <= set(found)
    assert all(name in said and found[name]["summary"] for name in found)
    assert "budget" in found["certified-independent"]["options"]


def test_options_stand_in_panels():
    said = surepick("run", "--help", columns=120)[1]
    order = [said.index(panel) for panel in ("─ Table", "─ What is asked", "─ Policy", "─ Rounds and blocks")]
    assert order == sorted(order)
    assert said.index("--epsilon") > said.index("─ What is asked")


@pytest.mark.parametrize(
    ("typed", "found"), [("surepick cert", {"certificate"}), ("surepick run --budg", {"--budget"})]
)
def test_a_shell_completes_commands_and_options(typed, found):
    asked = {"_SUREPICK_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split()) - 1)}
    words = [sys.executable, "-c", "from surepick.cli.app import main; main()"]
    words[2] = "import sys; sys.argv[0] = 'surepick'; " + words[2]
    done = subprocess.run(words, env={**os.environ, **asked}, capture_output=True, text=True, check=False)
    assert set(done.stdout.split()) == found
