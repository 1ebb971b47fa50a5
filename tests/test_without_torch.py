"""torch is an extra: without it everything but the network works, and the refusal says what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="torch is absent, so the refusal is what the other tests meet")

WITHOUT_TORCH = """
import importlib.util, sys
from importlib.machinery import PathFinder


class WithoutTorch(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] == "torch" else super().find_spec(name, path, target)


sys.meta_path = [WithoutTorch if finder is PathFinder else finder for finder in sys.meta_path]
assert importlib.util.find_spec("torch") is None
"""
USUAL = """
import surepick as sp
arms = sp.Arms([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
world = sp.environments.Environment(arms=arms, means=[.5, .4, .9], noise=sp.SubGaussian(.5))
options = {"norm_bound": 2.0}
usual = {"epsilon": .3, "delta": .1, "noise": sp.SubGaussian(.5)}
"""
MAIN = """
sys.argv = ["surepick", *{words!r}]
from surepick.cli import main
try:
    main()
except SystemExit as stop:
    print("code", stop.code or 0)
print("torch loaded:", "torch" in sys.modules)
"""


def run(code: str, *, absent: bool = True) -> str:
    """What a fresh interpreter prints, with or without torch."""
    script = (WITHOUT_TORCH if absent else "import sys\n") + code
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return (done.stderr + done.stdout).strip()


def test_torch_is_really_absent():
    """The saboteur of the tests below; that it is found where it is not hidden says the last test."""
    code = (
        "try:\n    import torch.nn\nexcept ModuleNotFoundError as error:\n    print(error)\nelse:\n    print('found')"
    )
    assert run(code) == "No module named 'torch'"


def test_every_policy_without_a_network_is_built_and_runs():
    printed = run(
        USUAL + "for name in sp.policy_names():\n"
        "    known = sp.policies.registry.policy_options(name)\n"
        "    if 'width' in known:\n"
        "        continue\n"
        "    more = {'norm_bound': 2.0} if 'norm_bound' in known else {}\n"
        "    more |= {'gamma': .5} if 'gamma' in known else {}\n"
        "    more |= {'budget': 5000} if 'budget' in known else {}\n"
        "    policy = sp.make_policy(name, arms, **usual, **more)\n"
        "    answer = sp.simulate(policy, world, max_pulls=200_000)\n"
        "    print(name, answer.arm)\n"
        "assert 'torch' not in sys.modules"
    )
    answers = dict(line.split() for line in printed.splitlines())
    assert {"action-elimination", "certified-linear", "linear-embedding", "means-neural-rule", "rage"} <= set(answers)
    assert "neural-embedding" not in answers
    assert set(answers.values()) == {"2"}


def test_the_network_is_refused_with_what_to_install():
    printed = run(
        USUAL + "try:\n"
        "    sp.make_policy('neural-embedding', arms, **usual)\n"
        "except sp.InvalidInput as error:\n"
        "    print(error)"
    )
    assert printed == 'neural-embedding needs torch, which is absent: pip install "surepick[neural]".'


def test_settings_are_still_known_and_refused_without_it():
    printed = run(
        USUAL + "print(sp.paper_settings('neural-embedding')['error_tolerance'])\n"
        "for bad in ({'colour': 'red'}, {'schedule': 'soon'}, {'norm_bound': 1.0}):\n"
        "    try:\n"
        "        sp.make_policy('neural-embedding', arms, **usual, **bad)\n"
        "    except sp.InvalidInput as error:\n"
        "        print(str(error)[:40])"
    )
    assert printed.splitlines() == [
        "0.0001",
        "neural-embedding has no option 'colour';",
        "neural-embedding has no option 'schedule",
        "neural-embedding has no option 'norm_bou",
    ]


def test_the_command_line_names_the_extra(tmp_path):
    table = tmp_path / "measured.csv"
    table.write_text("id,x,y,r\na,1,0,1\na,1,0,1\nb,0,1,0\nb,0,1,0\n", encoding="utf-8")
    words = ["run", str(table), "--id", "id", "--reward", "r", "--noise", "bernoulli", "--epsilon", "0.1"]
    printed = run(MAIN.format(words=[*words, "--policy", "neural-embedding"]))
    assert "code 2" in printed
    assert 'pip install "surepick[neural]"' in " ".join(printed.split())
    assert "code 2" not in run(MAIN.format(words=[*words, "--policy", "means-neural-rule"]))


@pytest.mark.parametrize(
    "code", ["import surepick", "import surepick.embeddings, surepick.estimators, surepick_bench.theory"]
)
def test_importing_surepick_does_not_import_torch(code):
    assert run(f"{code}\nprint('torch' in sys.modules)", absent=False) == "False"


# All of them load nothing heavy, says a test of imports.
@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["--help"], marks=pytest.mark.slow),
        ["run", "--help"],
        pytest.param(["--version"], marks=pytest.mark.slow),
    ],
)
def test_the_command_line_does_not_import_torch(words):
    lines = run(MAIN.format(words=words), absent=False).splitlines()
    assert lines[-2:] == ["code 0", "torch loaded: False"]


def test_only_asking_for_the_network_imports_torch():
    """The saboteur of the two tests above."""
    printed = run(
        USUAL + "sp.make_policy('means-neural-rule', arms, **usual)\nprint('torch' in sys.modules)\n"
        "sp.make_policy('neural-embedding', arms, **usual)\nprint('torch' in sys.modules)",
        absent=False,
    )
    assert printed.splitlines() == ["False", "True"]
