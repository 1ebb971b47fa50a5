"""What `pip install` gives: every file of a package, without the others where it can be, and a command that starts."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ROOT / "packages"
KINDS = {  # distribution -> kinds of files that its wheel must have
    "surepick": {"py", "pyi", "typed", "html", "css", "js", "json", "mako", "csv"},
    "surepick-server": {"py", "typed", "html", "css", "js", "txt", "csv"},
    "surepick-bench": {"py", "pyi", "typed"},
}


@pytest.fixture(scope="module")
def wheels(tmp_path_factory) -> Path:
    """The folder of the three wheels, each built from its own folder of the repository."""
    folder = tmp_path_factory.mktemp("wheels")
    for name in KINDS:
        built = subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
            cwd=PACKAGES / name,
            capture_output=True,
            text=True,
            check=False,
        )
        assert built.returncode == 0, built.stderr
    return folder


def wheel_of(name: str, wheels: Path) -> Path:
    (wheel,) = wheels.glob(f"{name.replace('-', '_')}-*.whl")
    return wheel


def installed(names: tuple[str, ...], wheels: Path, folder: Path) -> Path:
    """A folder with these distributions and no other of ours, as pip makes it from the folder of wheels."""
    options = ["--quiet", "--no-deps", "--no-index", "--disable-pip-version-check", "--target", str(folder)]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, "--find-links", str(wheels), *names],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


ALONE = """
import sys
from importlib.metadata import Distribution, DistributionFinder, MetadataPathFinder

SITE = sys.argv.pop(1)
OURS = ("surepick", "surepick_server", "surepick_bench")

class Finder(DistributionFinder):  # ours are those of the folder; what they need is whatever is installed here
    def find_spec(self, name, path=None, target=None):
        from importlib.machinery import PathFinder

        if name in OURS:
            found = PathFinder.find_spec(name, [SITE])
            if found is None:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            return found

    def find_distributions(self, context=DistributionFinder.Context()):
        return iter(())

sys.meta_path.insert(0, Finder())
plain = MetadataPathFinder.find_distributions
def found(context=DistributionFinder.Context()):
    for each in plain(context):
        if each.metadata["Name"].replace("-", "_") not in OURS or str(each.locate_file("")) == SITE:
            yield each
MetadataPathFinder.find_distributions = staticmethod(found)
sys.path.insert(0, SITE)
"""


def run(folder: Path, *words: str, program: str = "") -> subprocess.CompletedProcess:
    """What a command, or a program, does where of our distributions those of a folder alone are installed."""
    program = program or "import runpy; sys.argv[0] = 'surepick'; runpy.run_module('surepick', run_name='__main__')"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [sys.executable, "-c", f"{ALONE}\n{program}", str(folder), *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def library(wheels, tmp_path_factory) -> Path:
    return installed(("surepick",), wheels, tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="module")
def with_server(wheels, tmp_path_factory) -> Path:
    return installed(("surepick", "surepick-server"), wheels, tmp_path_factory.mktemp("server"))


@pytest.fixture(scope="module")
def with_bench(wheels, tmp_path_factory) -> Path:
    return installed(("surepick", "surepick-bench"), wheels, tmp_path_factory.mktemp("bench"))


def test_every_distribution_has_a_wheel():
    assert {folder.parent.name for folder in PACKAGES.glob("*/pyproject.toml")} == set(KINDS)


@pytest.mark.parametrize("name", list(KINDS))
def test_every_file_of_a_package_is_in_its_wheel_and_no_other(name, wheels):
    """Templates, the schema of certificates, the steps of migrations and py.typed among them."""
    source = PACKAGES / name / "src"
    files = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {path.rpartition(".")[2] for path in files} == KINDS[name]
    there = {path for path in zipfile.ZipFile(wheel_of(name, wheels)).namelist() if ".dist-info/" not in path}
    assert there == files


@pytest.mark.parametrize("name", list(KINDS))
def test_a_wheel_has_a_licence_and_words_about_itself(name, wheels):
    names = zipfile.ZipFile(wheel_of(name, wheels)).namelist()
    (metadata,) = (path for path in names if path.endswith(".dist-info/METADATA"))
    assert any(path.endswith(".dist-info/licenses/LICENSE") for path in names)
    text = zipfile.ZipFile(wheel_of(name, wheels)).read(metadata).decode("utf-8")
    project = tomllib.loads((PACKAGES / name / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert f"\nSummary: {project['description']}\n" in text
    assert re.search(rf"^# {name}$", text, re.MULTILINE)


def test_the_library_runs_alone(library, wheels):
    done = run(library, "--version")
    assert done.returncode == 0, done.stderr
    assert wheel_of("surepick", wheels).name.split("-")[1] in done.stdout
    (library / "arms.csv").write_text("id,reward\na,0\na,1\nb,4\nb,5\n")
    words = ["run", "arms.csv", "--id", "id", "--reward", "reward", "--noise", "subgaussian:1", "--epsilon", "1"]
    done = run(library, *words, "--format", "json")
    assert done.returncode == 0, done.stderr
    assert '"best_arm": "b"' in done.stdout


@pytest.mark.parametrize("module", ["surepick_server", "surepick_bench"])
def test_the_library_alone_has_neither_of_the_others(library, module):
    done = run(library, program=f"import {module}")
    assert f"No module named '{module}'" in done.stderr


@pytest.mark.parametrize(("command", "extra"), [("serve", "serve"), ("token", "serve"), ("bench", "bench")])
def test_the_library_alone_says_what_a_command_needs(library, command, extra):
    done = run(library, command)
    assert done.returncode == 2
    said = " ".join(re.sub("[│╭╮╰╯─]", " ", done.stderr).split())
    assert f'surepick {command} is in another package, which is absent: pip install "surepick[{extra}]".' in said


def test_the_server_is_there_without_the_experiments(with_server):
    assert "No module named 'surepick_bench'" in run(with_server, program="import surepick_bench").stderr


@pytest.mark.parametrize(("command", "said"), [("serve", "--trusted-proxy"), ("token", "revoke")])
def test_the_commands_of_the_server_run_beside_the_library(with_server, command, said):
    done = run(with_server, command, "--help")
    assert done.returncode == 0, done.stderr
    assert said in done.stdout


def test_the_server_and_its_client_can_be_imported(with_server):
    done = run(with_server, program="import surepick_server.app, surepick_server.client.server")
    assert done.returncode == 0, done.stderr


def test_the_experiments_are_there_without_the_server(with_bench):
    assert "No module named 'surepick_server'" in run(with_bench, program="import surepick_server").stderr


def test_the_command_of_the_experiments_runs_beside_the_library(with_bench):
    done = run(with_bench, "bench", "--help")
    assert done.returncode == 0, done.stderr
    assert "Experiments over many seeds" in done.stdout


def test_the_library_finds_what_the_experiments_add(with_bench):
    names = (
        "import surepick as sp; print(*sp.policy_names(), *sp.bench.experiment_names(), sp.MercerEmbedding.__name__)"
    )
    done = run(with_bench, program=names)
    assert done.returncode == 0, done.stderr
    assert {"lucb", "peers", "MercerEmbedding"} <= set(done.stdout.split())
