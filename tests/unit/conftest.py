"""What unit tests may ask for."""

from pathlib import Path

import pytest


@pytest.fixture
def write(tmp_path):
    """Writes a file in the folder of the test: (content, name) -> its path."""

    def write(content: str | bytes, name: str = "arms.csv") -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write
