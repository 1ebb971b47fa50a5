"""What every test may ask for."""

import os
from pathlib import Path

# The last bits of a matrix product depend on the processor, and where designs tie they decide which arm is measured.
# The figures in the documents are those of these kernels; set before numpy is loaded, it makes all machines agree.
os.environ.setdefault("OPENBLAS_CORETYPE", "Haswell")

import pytest

SHARED_DATA = Path(__file__).parents[1].parent / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of public data sets beside the repository; skips without it, fails where it is required."""
    if not SHARED_DATA.is_dir():
        message = f"the data sets are not at {SHARED_DATA}"
        if os.environ.get("SUREPICK_REQUIRE_SHARED_DATA"):
            pytest.fail(f"{message}, and SUREPICK_REQUIRE_SHARED_DATA is set")
        pytest.skip(message)
    return SHARED_DATA


@pytest.fixture(scope="session")
def mnist_directory(shared_data: Path) -> Path:
    """The folder of MNIST's original files."""
    return shared_data / "mnist"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """After the long proofs, the seconds that each file took."""
    if config.option.markexpr != "slow":
        return
    seconds: dict[str, float] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                file = report.nodeid.partition("::")[0]
                seconds[file] = seconds.get(file, 0.0) + report.duration
    terminalreporter.section("seconds per file")
    for file, total in sorted(seconds.items()):
        terminalreporter.write_line(f"{total:8.1f}  {file}")
