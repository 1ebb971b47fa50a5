"""What tests of faults may ask for."""

import shutil
import subprocess
import sys

import pytest
from stored_studies import released, start

from surepick.cli import main


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    mounted = shutil.which("mount") and subprocess.run(command, capture_output=True, check=False).returncode == 0
    if not mounted:
        pytest.skip("no right to mount a file system of 1 MB here; the tests that need no mount run all the same")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def path(tmp_path, sqlite_url):
    """A file with a study that is under way, and no connection to it."""
    released(start(sqlite_url))
    (file,) = tmp_path.glob("*.db")
    return file


@pytest.fixture
def command(monkeypatch, capsys):
    """Runs the command line on bad input: one message on standard error, nothing on standard output, exit code 2."""

    def _command(*arguments, says=()):
        monkeypatch.setattr(sys, "argv", ["surepick", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        output, errors = capsys.readouterr()
        assert stop.value.code == 2
        assert output == ""
        assert errors.startswith("error: ")
        assert len(errors.splitlines()) == 1
        for word in says:
            assert word in errors

    return _command
