"""The contracts of the import linter hold, and each of them can fail."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]["contracts"]
TYPES_ONLY = "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    {}\n"
BREACHES = {  # contract -> (a file, an import that has no place in it)
    "the direction of dependence": [
        ("linalg/convex_hull_2d.py", "from surepick.policies.registry import make_policy\n"),
        ("linalg/convex_hull_2d.py", TYPES_ONLY.format("from surepick.policies.base import Policy")),
    ],
    "an algorithm cannot peek": [("policies/means.py", "from surepick.environments import Environment\n")],
    "the wings of policies stand apart": [
        ("policies/certified/conclusion.py", "from surepick.policies.paper.arm_elimination import compare\n"),
    ],
    "nobody sees the wings of policies": [
        ("studies/progress.py", "from surepick_bench.policies.means import LUCB\n"),
    ],
    "the library does without the server, its client and the experiments": [
        ("studies/opening.py", "from surepick_server.client.server import Server\n"),
        ("policies/options.py", "from surepick_bench.mercer import MercerEmbedding\n"),
        ("policies/registry.py", "from surepick_bench.policies.specs import LUCB\n"),
        ("cli/app.py", "from surepick_bench.command import BENCH\n"),
    ],
    "theory is for experiments": [("cli/commands/run.py", "from surepick_bench.theory import hardness\n")],
    "tables are read and written by those named here only": [
        ("forecasts/result.py", "from surepick.tables import read_table\n"),
        ("reports/study/charts.py", "from surepick.tables.delimited import write_table\n"),
        ("linalg/factorisations.py", "from surepick.tables import read_table\n"),
    ],
    "the front page is for users": [("policies/means.py", "from surepick import forecast\n")],
    "no circles": [
        ("errors.py", TYPES_ONLY.format("from surepick.core.plans import Design")),
        ("core/records.py", TYPES_ONLY.format("from surepick.linalg.factorisations import Whitened")),
    ],
    "heavy packages only where they belong": [("linalg/convex_hull_2d.py", "import torch\n")],
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__", "templates"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def verdicts(folder: Path) -> dict[str, bool]:
    """Contract -> whether it is kept."""
    linter = Path(sys.executable).with_name("lint-imports")
    environment = os.environ | {"PYTHONPATH": str(folder / "src"), "COLUMNS": "200"}
    done = subprocess.run(
        [linter, "--no-cache"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    found = re.findall(r"^(.+?) (KEPT|BROKEN)\b", done.stdout, re.MULTILINE)
    assert found, done.stdout + done.stderr
    return {name: verdict == "KEPT" for name, verdict in found}


def test_all_contracts_are_kept(copy):
    assert verdicts(copy) == {contract["name"]: True for contract in CONTRACTS}


def test_every_contract_has_a_breach():
    assert set(BREACHES) == {contract["name"] for contract in CONTRACTS}


@pytest.mark.parametrize(
    ("contract", "file", "line"), [(name, *breach) for name, breaches in BREACHES.items() for breach in breaches]
)
def test_a_breach_is_found(copy, contract, file, line):
    path = copy / "src/surepick" / file
    text = path.read_text(encoding="utf-8")
    first = "from __future__ import annotations\n" if "from __future__" in text else ""
    try:
        path.write_text(text.replace(first, first + line, 1) if first else f"{text}\n{line}", encoding="utf-8")
        assert not verdicts(copy)[contract]
    finally:
        path.write_text(text, encoding="utf-8")


def test_every_package_has_a_layer():
    (layers,) = (contract["layers"] for contract in CONTRACTS if contract["type"] == "layers")
    listed = {module for layer in layers for module in re.split(r" [|:] ", layer)}
    places = (ROOT / "src/surepick").iterdir()
    there = {place.stem for place in places if place.suffix == ".py" or (place / "__init__.py").exists()}
    assert listed == {f"surepick.{name}" for name in there - {"__init__", "__main__"}}


ASKS_WHICH = re.compile(
    r"\b(?:getattr|hasattr|isinstance)\((?:\w+\.)*_?(?:policy|chosen)\b|(?<!cell\.)\b_?(?:policy|chosen)\.name [!=]="
)  # the policy of an experiment's cell is a name and options, no algorithm
IS_A_POLICY = re.compile(r"isinstance\((?:policy|chosen), (?:Policy|str)\)")  # of what a user passed


def asking_which(folder: Path) -> set[str]:
    """The lines outside `policies` that ask which algorithm they were given, rather than what it says of itself."""
    return {
        f"{path.relative_to(folder).as_posix()}: {line.strip()}"
        for path in folder.rglob("*.py")
        if path.relative_to(folder).parts[0] != "policies"
        for line in path.read_text(encoding="utf-8").splitlines()
        if ASKS_WHICH.search(IS_A_POLICY.sub("", line))
    }


def test_nobody_asks_which_algorithm_it_has():
    assert not asking_which(ROOT / "src/surepick")


@pytest.mark.parametrize(
    "line",
    [
        'depth = getattr(policy, "network_depth", 0)',
        'if hasattr(self._policy, "rounds"):',
        "if not isinstance(policy, LUCB):",
        "return isinstance(chosen, (LUCB, ActionElimination))",
        'if policy.name == "lucb":',
        'return study.policy.name != "lucb"',
    ],
)
def test_a_line_that_asks_which_algorithm_it_has_is_found(copy, line):
    path = copy / "src/surepick/forecasts/asking.py"
    try:
        path.write_text(f"{line}\n", encoding="utf-8")
        assert asking_which(copy / "src/surepick") - asking_which(ROOT / "src/surepick") == {
            f"forecasts/asking.py: {line}"
        }
    finally:
        path.unlink()


def test_every_package_that_an_extra_brings_is_imported():
    """Nobody has to install what nothing uses."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    called = {
        "scikit-learn": "sklearn",
        "python-multipart": "multipart",
        "prometheus-client": "prometheus_client",
    }
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    for extra, wanted in extras.items():
        names = [re.match(r"[\w-]+", line)[0] for line in wanted if extra != "dev" and not line.startswith("surepick[")]
        for name in names:
            assert re.search(rf"\b{called.get(name, name)}\b", source), f"the extra {extra} brings {name}"
