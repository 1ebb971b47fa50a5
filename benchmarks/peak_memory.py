"""The most memory that a process has held; for the benchmarks that measure one in a process of its own."""

import resource
import sys
from pathlib import Path


def peak_memory() -> float:
    """Megabytes, of this process alone."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage would count the process from which this one was started
        line = next(line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024 / 1e6
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)
