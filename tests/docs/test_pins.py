"""The versions with hashes are those that continuous integration has seen, and all that a default install needs."""

import re
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PIN = re.compile(r"^([\w.-]+)==([^\s;\\]+)([^\n]*?)((?: \\\n {4}--hash=sha256:[0-9a-f]{64})+)\n", re.MULTILINE)


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return {plain(name): version for name, _, version in (line.partition("==") for line in lines) if version}


def locked() -> dict[str, str]:
    return {plain(name): version for name, version, _, _ in PIN.findall(LOCK)}


def test_every_line_of_the_lock_is_a_version_with_hashes():
    left = PIN.sub("", LOCK)
    assert all(line.startswith("#") for line in left.splitlines()), left
    assert len(locked()) >= 10


def test_the_lock_has_the_versions_of_the_constraints():
    assert {name: pinned()[name] for name in locked()} == locked()


def needed(name: str) -> set[str]:
    """Names of what a package needs, without extras, on some platform or other."""
    found = set()
    for line in requires(name) or []:
        requirement, _, condition = line.partition(";")
        if "extra ==" not in condition and "extra==" not in condition:
            found.add(plain(re.match(r"[\w.-]+", requirement)[0]))
    return found


def test_the_lock_has_all_that_a_default_install_needs():
    """Every requirement, over and over; those that another platform needs are in it too."""
    known, todo = set(), ["surepick"]
    while todo:
        for name in needed(todo.pop()) - known:
            known.add(name)
            try:
                requires(name)
            except PackageNotFoundError:  # of another platform: colorama
                continue
            todo.append(name)
    assert known == set(locked())


@pytest.mark.parametrize("document", ["docs/install.md", "SECURITY.md"])
def test_the_command_is_written_down(document):
    assert "pip install --require-hashes -r requirements.lock" in (ROOT / document).read_text(encoding="utf-8")
