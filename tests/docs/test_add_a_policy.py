"""The page on adding a policy is carried out, word for word, on a copy of the package."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from surepick_bench.results import read_results

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/examples/add_a_policy.md").read_text(encoding="utf-8")
NEW_FILE = re.compile(
    r"^`((?:packages/surepick/src/)?[\w/]+\.(?:py|json|toml))`:\n\n```(?:python|json|toml)\n(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
ENTRY = re.compile(
    r"^Its entry in `EN[A-Z]+` of `([\w/.-]+)`(?:, with `([^`]+)` at the top)?:\n\n```python\n(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
COMMANDS = re.compile(r"^\$ (.*)$", re.MULTILINE)
DICTIONARY = re.compile(r"^ENVIRONMENTS: .*\n    \{\n", re.MULTILINE)


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """The package and the conformance tests, with what the page adds."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "packages", folder / "packages", ignore=shutil.ignore_patterns("__pycache__"))
    for part in ("conformance", "helpers"):
        shutil.copytree(ROOT / "tests" / part, folder / "tests" / part, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "tests/conftest.py", folder / "tests")
    shutil.copy(ROOT / "pyproject.toml", folder)
    files = NEW_FILE.findall(PAGE)
    assert [name for name, _ in files] == [
        "uniform/uniform_sampling.py",
        "uniform/check.py",
        "uniform/pyproject.toml",
        "packages/surepick/src/surepick/environments/wave.py",
        "wave.json",
    ]
    (folder / "uniform").mkdir()
    for name, text in files:
        (folder / name).write_text(text)
    entries = ENTRY.findall(PAGE)
    assert len(entries) == 1
    for name, line, entry in entries:
        registry = (folder / name).read_text()
        changed = registry.replace("\nfrom surepick", f"\n{line}\nfrom surepick", 1) if line else registry
        changed, count = DICTIONARY.subn(lambda found, entry=entry: found[0] + entry, changed)
        assert count == 1
        (folder / name).write_text(changed)
    return folder


def carried_out(command: str, folder: Path, *, stdin: str = "") -> subprocess.CompletedProcess:
    words = command.split()
    if words[1:4] == ["-m", "pip", "install"]:  # into a folder of its own, from what is here
        words[4:4] = ["--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "--target", "site"]
    paths = [*map(str, folder.glob("packages/*/src")), str(folder / "site"), os.environ.get("PYTHONPATH", "")]
    program = {"python": [sys.executable], "surepick": [sys.executable, "-m", "surepick"]}[words[0]]
    return subprocess.run(
        [*program, *words[1:]],
        cwd=folder,
        input=stdin,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_every_command_of_the_page(copy):
    commands = COMMANDS.findall(PAGE)
    assert [command.split()[0] for command in commands] == ["python", "python", "python", "surepick", "surepick"]
    check, install, conformance, run, figures = (carried_out(command, copy) for command in commands)
    assert install.returncode == 0, install.stderr
    assert (check.returncode, check.stdout, check.stderr) == (0, "", "")
    assert conformance.returncode == 0, conformance.stdout
    assert int(re.search(r"(\d+) passed", conformance.stdout)[1]) >= 13
    assert run.returncode == 0, run.stderr
    results = read_results(copy / "waves.parquet")
    assert len(results.replicates) == 30
    assert sum(row["success"] for row in results.replicates) >= 27
    assert {row["policy"] for row in results.replicates} == {"uniform", "certified-independent", "certified-kernel"}
    assert "waves" in run.stdout
    assert figures.returncode == 0, figures.stderr
    assert (copy / "figures/own-stop-waves.png").stat().st_size > 10_000


REPORT = """
import numpy as np
import surepick as sp

arms = sp.Arms([[0.0], [0.5], [1.0]])
study = sp.Study(arms, sp.make_policy("uniform-sampling", arms, epsilon=0.5, delta=0.1, noise=sp.SubGaussian(0.1)))
while (plan := study.ask()) is not None:
    study.tell_totals(plan, plan.counts, plan.counts * np.array([0.0, 0.5, 2.0]))
sp.write_report(study, "report.html", forecast_up_to=0)
"""


def test_a_report_says_nothing_of_features_that_the_policy_does_not_use(copy):
    done = carried_out("python -", copy, stdin=REPORT)
    assert done.returncode == 0, done.stderr
    page = (copy / "report.html").read_text(encoding="utf-8")
    assert "the difference of the averages when the bar was last drawn" in page or "without an interval" in page
    assert "shared features" not in page
    assert "and the features" not in page


def test_the_new_files_pass_the_linter(copy):
    names = [name for name, _ in NEW_FILE.findall(PAGE) if name.endswith(".py") and "check" not in name]
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "check", "--no-cache", *names],
        cwd=copy,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
