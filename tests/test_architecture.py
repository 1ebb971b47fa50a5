"""The contracts of the import linter hold, and each of them can fail."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def read(file: Path) -> str:
    return file.read_text(encoding="utf-8")


CONTRACTS = tomllib.loads(read(ROOT / "pyproject.toml"))["tool"]["importlinter"]["contracts"]
TYPES_ONLY = "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    {}\n"
LIBRARY = "surepick/src/surepick"
SERVER = "surepick-server/src/surepick_server"
BENCH = "surepick-bench/src/surepick_bench"
BREACHES = {  # contract -> (a file of packages/, an import that has no place in it)
    "the direction of dependence": [
        (f"{LIBRARY}/linalg/convex_hull_2d.py", "from surepick.policies.registry import make_policy\n"),
        (f"{LIBRARY}/linalg/convex_hull_2d.py", TYPES_ONLY.format("from surepick.policies.base import Policy")),
    ],
    "the library does without the server and the experiments": [
        (f"{LIBRARY}/studies/opening.py", "from surepick_server.client.server import Server\n"),
        (f"{LIBRARY}/policies/options.py", "from surepick_bench.mercer import MercerEmbedding\n"),
        (f"{LIBRARY}/policies/registry.py", "from surepick_bench.policies.specs import LUCB\n"),
        (f"{LIBRARY}/cli/app.py", "from surepick_bench.command import BENCH\n"),
        (f"{LIBRARY}/cli/commands/run.py", "from surepick_bench.theory import hardness\n"),
        (f"{SERVER}/settings.py", "from surepick_bench.spec import Cell\n"),
    ],
    "a server in floors": [
        (f"{SERVER}/settings.py", "from surepick_server.web.auth import Guard\n"),
        (f"{SERVER}/access/tokens.py", "from surepick_server.openid import Provider\n"),
        (f"{SERVER}/client/study.py", "from surepick_server.commands.serve import check_server_extra\n"),
    ],
    "experiments in floors": [
        (f"{BENCH}/theory/complexity.py", "from surepick_bench.policies.specs import LUCB\n"),
        (f"{BENCH}/mercer/kernels.py", "from surepick_bench.simulators import throughput\n"),
    ],
    "an algorithm cannot peek": [
        (f"{LIBRARY}/policies/items.py", "from surepick.environments import Environment\n"),
        (f"{LIBRARY}/environments/environment.py", "from surepick.policies.base import Policy\n"),
    ],
    "the wings of policies in floors": [
        (f"{LIBRARY}/policies/carried/planning.py", "from surepick.policies.steered.weights import Fit\n"),
        (f"{LIBRARY}/policies/paired/rule.py", "from surepick.policies.paper.arm_elimination import compare\n"),
    ],
    "nobody sees the wings of policies": [
        (f"{LIBRARY}/studies/progress.py", "from surepick.policies.carried.planning import Planner\n"),
        (f"{BENCH}/runner.py", "from surepick.policies.paper.arm_elimination import compare\n"),
    ],
    "tables are read and written by those named here only": [
        (f"{LIBRARY}/forecasts/result.py", "from surepick.tables import read_table\n"),
        (f"{LIBRARY}/reports/study/charts.py", "from surepick.tables.delimited import write_table\n"),
        (f"{LIBRARY}/linalg/factorisations.py", "from surepick.tables import read_table\n"),
    ],
    "the front page is for users": [
        (f"{LIBRARY}/policies/items.py", "from surepick import forecast\n"),
        (f"{BENCH}/runner.py", "import surepick\n"),
    ],
    "no circles": [
        (f"{LIBRARY}/errors.py", TYPES_ONLY.format("from surepick.core.plans import Design")),
        (f"{LIBRARY}/core/records.py", TYPES_ONLY.format("from surepick.linalg.factorisations import Whitened")),
        (f"{SERVER}/web/auth.py", "from surepick_server.pages.layout import root_of\n"),
    ],
    "heavy packages only where they belong": [(f"{LIBRARY}/linalg/convex_hull_2d.py", "import torch\n")],
    "heavy packages of the server and of the experiments": [
        (f"{SERVER}/settings.py", "import jinja2\n"),
        (f"{BENCH}/results.py", "import matplotlib\n"),
    ],
}


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("copy")
    dropped = shutil.ignore_patterns("__pycache__", "templates", "static")
    shutil.copytree(ROOT / "packages", folder / "packages", ignore=dropped)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def verdicts(folder: Path) -> dict[str, bool]:
    """Contract -> whether it is kept."""
    linter = Path(sys.executable).with_name("lint-imports")
    sources = os.pathsep.join(str(source) for source in folder.glob("packages/*/src"))
    environment = os.environ | {"PYTHONPATH": sources, "COLUMNS": "200"}
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


@contextmanager
def breached(folder: Path, breaches: list[tuple[str, str]]) -> Iterator[None]:
    """Inside, the files have these imports too."""
    texts = {file: read(folder / "packages" / file) for file, _ in breaches}
    try:
        for file, line in breaches:
            path = folder / "packages" / file
            text = read(path)
            first = "from __future__ import annotations\n" if "from __future__" in text else ""
            path.write_text(text.replace(first, first + line, 1) if first else f"{text}\n{line}", encoding="utf-8")
        yield
    finally:
        for file, text in texts.items():
            (folder / "packages" / file).write_text(text, encoding="utf-8")


def test_every_contract_can_be_broken(copy):
    """One breach of each at once; that each is found by itself is among the long proofs."""
    with breached(copy, [breaches[0] for breaches in BREACHES.values()]):
        assert verdicts(copy) == dict.fromkeys(BREACHES, False)
    assert all(verdicts(copy).values()), "the breaches are gone"


ALONE_IN_MAKE_TEST = "the direction of dependence"


@pytest.mark.parametrize(
    ("contract", "file", "line"),
    [
        pytest.param(name, *breach, marks=[pytest.mark.slow] if number or name != ALONE_IN_MAKE_TEST else [])
        for name, breaches in BREACHES.items()
        for number, breach in enumerate(breaches)
    ],
)
def test_a_breach_is_found(copy, contract, file, line):
    with breached(copy, [(file, line)]):
        assert not verdicts(copy)[contract]


def stacks() -> dict[str, set[str]]:
    """Package -> its modules that have a floor in the contract about them."""
    found: dict[str, set[str]] = {}
    for contract in CONTRACTS:
        if contract["type"] == "layers":
            names = {name for layer in contract["layers"] for name in re.split(r" [|:] ", layer)}
            for package in contract.get("containers", [""]):
                found |= {package or contract["name"]: names}
    return found


@pytest.mark.parametrize(
    ("folder", "stack", "prefix", "without"),
    [
        (LIBRARY, "the direction of dependence", "surepick.", {"__main__"}),
        (SERVER, "surepick_server", "", set()),
        (BENCH, "surepick_bench", "", {"command"}),
    ],
)
def test_every_module_has_a_floor(folder, stack, prefix, without):
    """But `without`: what only a shell, or another machine, calls."""
    places = (ROOT / "packages" / folder).iterdir()
    there = {place.stem for place in places if place.suffix == ".py" or list(place.glob("*.py"))}
    assert stacks()[stack] == {f"{prefix}{name}" for name in there - without - {"__init__"}}


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
    assert not asking_which(ROOT / "packages" / LIBRARY)


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
def test_a_line_that_asks_which_algorithm_it_has_is_found(tmp_path, line):
    path = tmp_path / "forecasts/asking.py"
    path.parent.mkdir()
    path.write_text(f"{line}\n", encoding="utf-8")
    assert asking_which(tmp_path) == {f"forecasts/asking.py: {line}"}


PROJECTS = {
    file.parent: tomllib.loads(read(file))["project"] for file in sorted(ROOT.glob("packages/*/pyproject.toml"))
}
CALLED = {  # by another name than that of its distribution
    "scikit-learn": "sklearn",
    "python-multipart": "multipart",
    "prometheus-client": "prometheus_client",
    "lazy-loader": "lazy_loader",
}
BEHIND = {"python-multipart"}  # what another package imports for us: FastAPI reads forms with it


@pytest.mark.parametrize("folder", list(PROJECTS), ids=lambda folder: folder.name)
def test_every_package_that_is_brought_is_imported(folder):
    """Nobody has to install what nothing uses."""
    project = PROJECTS[folder]
    lines = {*project["dependencies"]}
    lines |= {line for extra, wanted in project["optional-dependencies"].items() if extra != "dev" for line in wanted}
    names = {re.match(r"[\w-]+", line)[0] for line in lines} - {each["name"] for each in PROJECTS.values()}
    source = "\n".join(read(path) for path in folder.rglob("*.py"))
    assert len(names) >= 3
    assert [name for name in sorted(names - BEHIND) if not re.search(rf"\b{CALLED.get(name, name)}\b", source)] == []


def test_the_distributions_go_together():
    """One version, which each of them asks of the others, and an entry for each name that the library knows of."""
    assert set(PROJECTS) == {ROOT / "packages" / name for name in ("surepick", "surepick-server", "surepick-bench")}
    versions = {
        re.search(r'^__version__ = "([\d.]+)"', read(file), re.MULTILINE)[1]
        for file in ROOT.glob("packages/*/src/*/__init__.py")
    }
    assert len(versions) == 1
    for folder, project in PROJECTS.items():
        for kind, entries in project.get("entry-points", {}).items():
            assert kind in ("surepick.commands", "surepick.policies", "surepick.embeddings", "surepick.questions")
            for where in entries.values():
                module, _, name = where.partition(":")
                file = folder / "src" / f"{module.replace('.', '/')}.py"
                assert re.search(rf"^{name}\b", read(file), re.MULTILINE), where
