"""What tests of faults may ask for."""

import shutil
import subprocess

import pytest


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
