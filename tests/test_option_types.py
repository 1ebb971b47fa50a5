"""Editors and type checkers know every option of every policy, and refuse what is none."""

import subprocess
import sys

import pytest

import surepick as sp
from surepick.policies.option_types import Asked, Options
from surepick.policies.registry import ENTRIES, policy_options

SCRIPT = """
import asyncio
import surepick as sp

def measure(ids: list[str]) -> list[float]:
    return [float(len(one)) for one in ids]

async def waits(ids: list[str]) -> list[float]:
    return measure(ids)

arms = sp.Arms([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], ids=["a", "b", "c"])
found = sp.find_best(arms, measure, epsilon=0.5, noise="subgaussian:0.1", norm_bound=2.0, batch_size=10)
later = asyncio.run(sp.find_best_async(["a", "bb"], waits, budget=20, noise="subgaussian:0.1", n_jobs=2))
policy = sp.make_policy("certified-kernel", arms, epsilon=0.5, delta=0.1, noise="normal", norm_bound=2.0, gamma=1.0)
study = sp.create_study("sqlite:///x.db", "x", arms, "certified-independent", noise="bernoulli", budget=30)
reveal = found.best_arm, later.certificate.promise, policy.spec if hasattr(policy, "spec") else None, study.missing
"""
WRONG = {
    "norm_bond=3.0": 'sp.find_best(["a"], print, epsilon=0.1, norm_bond=3.0)',
    "batchsize=3": 'sp.make_policy("rage", sp.Arms(ids=["a"]), epsilon=0.1, delta=0.1, noise="normal", batchsize=3)',
    "budget=True text": 'sp.find_best(["a"], print, budget="many")',
}


def test_every_option_has_a_type_and_none_is_left_over():
    known = {option for name in {*sp.policy_names(None), *ENTRIES} for option in policy_options(name)}
    assert known == set(Options.__annotations__)


def test_find_best_takes_these_beside_its_own():
    import inspect

    own = {name for name, one in inspect.signature(sp.find_best).parameters.items() if one.kind is one.KEYWORD_ONLY}
    assert set(Asked.__annotations__) == own | set(Options.__annotations__)


@pytest.mark.slow
def test_a_user_s_script_is_checked(tmp_path):
    """By mypy --strict: the script is right, and each wrong name in turn is refused."""
    script = tmp_path / "script.py"
    said = {}
    for name, line in {"": "", **WRONG}.items():
        script.write_text(SCRIPT + line + "\n")
        words = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(script)]
        said[name] = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert said[""].returncode == 0, said[""].stdout
    assert all(said[name].returncode == 1 for name in WRONG)
