"""Programs that measure, and candidates with awkward names."""

import time
from pathlib import Path

PATIENCE = 60.0  # seconds after which something that must happen is said not to


def until(condition, what: str):
    """The first true value of the condition."""
    deadline = time.monotonic() + PATIENCE
    while not (value := condition()):
        assert time.monotonic() < deadline, f"after {PATIENCE:g} s {what} did not happen"
        time.sleep(0.02)
    return value


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def written(folder: Path, pattern: str) -> list[int]:
    """The process ids that programs left in files of such names."""
    return [int(path.read_text() or 0) for path in folder.glob(pattern)]
