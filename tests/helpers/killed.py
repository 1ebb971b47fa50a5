"""A process that is killed with signal 9 while it measures, by its own measurement: no clock decides when."""

import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Calls:
    """Calls that are counted in a file, whichever process makes them; one of them kills the process.

    Args:
        file: has a line for each call.
        deadly: the number of the call that kills, from 1; None: none does.
    """

    def __init__(self, file: Path, deadly: int | None = None) -> None:
        self.file, self.deadly = file, deadly

    @property
    def lines(self) -> list[str]:
        return self.file.read_text().splitlines() if self.file.exists() else []

    def note(self, word: object) -> int:
        """Count a call; its number."""
        with self.file.open("a") as file:
            file.write(f"{word}\n")
        number = len(self.lines)
        if number == self.deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        return number


def killed(work: Callable[..., Any], *given: Any) -> None:
    """Run it in a fork of this process, which must die by signal 9."""
    process = multiprocessing.get_context("fork").Process(target=work, args=given)
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL, f"it ended by itself, with code {process.exitcode}"
