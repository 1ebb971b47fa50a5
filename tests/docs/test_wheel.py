"""What `pip install` gives: every file of the package, and a command that starts."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src/surepick"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


def test_every_file_of_the_package_is_in_the_wheel(wheel):
    """Templates, the schema of certificates, the steps of migrations and py.typed among them."""
    files = {
        path.relative_to(PACKAGE.parent).as_posix() for path in PACKAGE.rglob("*.*") if "__pycache__" not in path.parts
    }
    assert {path.rpartition(".")[2] for path in files} >= {"py", "typed", "html", "css", "js", "json", "mako"}
    assert files <= set(zipfile.ZipFile(wheel).namelist())


def test_the_package_runs_from_the_wheel(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    done = subprocess.run(
        [sys.executable, "-m", "surepick", "--version"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "installed")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert wheel.name.split("-")[1] in done.stdout


def test_the_wheel_says_what_it_adds(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path / "installed")
    done = subprocess.run(
        [sys.executable, "-m", "surepick", "bench", "--help"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "installed")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Experiments over many seeds" in done.stdout
