"""A measurement by a program: it is run without a shell and prints one reward a line."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from dataclasses import dataclass, field

from surepick.errors import InvalidInput
from surepick.settings import as_number

LONGEST = 200  # characters of a program's words in a message


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one call gave.

    Args:
        rewards: the numbers that it printed, at most as many as were asked.
        failure: why some or all are missing, in words; "" if none is.
    """

    rewards: tuple[float, ...] = ()
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Command:
    """A program that measures.

    Args:
        template: the command line, split as a shell would but run without one. "{id}" becomes the candidate's id, as
            (a part of) one argument whatever it contains; "{pulls}" the number of measurements. Without "{pulls}" the
            program is called once a measurement.
        timeout: seconds after which a call and all that it started are killed; None: never.

    Raises:
        InvalidInput: the template has no command or no "{id}", or is not well-formed; the time-out is not positive.
    """

    template: str
    timeout: float | None = None
    _words: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        try:
            words = tuple(shlex.split(self.template))
        except ValueError as error:
            raise InvalidInput(f"the command {self.template!r} is not well-formed: {error}.") from error
        if not words or not any("{id}" in word for word in words):
            raise InvalidInput(
                f"the command {self.template!r} does not say which candidate is measured; write {{id}} where its id "
                "belongs, and {pulls} where the number of measurements does."
            )
        if self.timeout is not None and not as_number("timeout", self.timeout) > 0:
            raise InvalidInput(f"timeout is {self.timeout!r}; it must be positive: the seconds that a call may take.")
        object.__setattr__(self, "_words", words)

    @property
    def takes_pulls(self) -> bool:
        """Whether one call can measure several times."""
        return any("{pulls}" in word for word in self._words)

    def arguments(self, name: str, pulls: int) -> list[str]:
        """The program and its arguments for one call."""
        return [word.replace("{pulls}", str(pulls)).replace("{id}", name) for word in self._words]

    def measure(self, name: str, pulls: int, running: set[subprocess.Popen[str]] | None = None) -> Outcome:
        """Measure a candidate `pulls` times, in one call or in several.

        Args:
            running: where the processes at work are kept, for whoever must stop them.
        """
        if self.takes_pulls:
            return self._call(name, pulls, running)
        rewards: list[float] = []
        for _ in range(pulls):
            outcome = self._call(name, 1, running)
            rewards += outcome.rewards
            if outcome.failure:
                return Outcome(tuple(rewards), outcome.failure)
        return Outcome(tuple(rewards))

    def _call(self, name: str, pulls: int, running: set[subprocess.Popen[str]] | None) -> Outcome:
        try:
            process = subprocess.Popen(
                self.arguments(name, pulls),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            return Outcome(failure=f"the program could not be started: {error}")
        if running is not None:
            running.add(process)
        try:
            out, err = process.communicate(timeout=self.timeout)
        except subprocess.TimeoutExpired:
            kill(process)
            process.communicate()
            return Outcome(failure=f"it took longer than {self.timeout:g} s and was killed")
        finally:
            if running is not None:
                running.discard(process)
        if process.returncode != 0:
            said = err.strip().splitlines()[-1:] or [""]
            return Outcome(failure=f"it ended with code {process.returncode}: {said[0][:LONGEST]}".rstrip(": "))
        return _read(out, pulls)


def kill(process: subprocess.Popen[str]) -> None:
    """End a program and all that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _read(out: str, pulls: int) -> Outcome:
    """The rewards of a call that ended well; none of them if one line is wrong, since nobody knows which."""
    lines = [line.strip() for line in out.splitlines() if line.strip()]
    rewards = []
    for line in lines:
        try:
            rewards.append(float(line))
        except ValueError:
            return Outcome(failure=f"it printed {line[:LONGEST]!r}, which is not a number")
    if len(rewards) > pulls:
        return Outcome(failure=f"it printed {len(rewards)} rewards for {pulls} measurements")
    missing = pulls - len(rewards)
    return Outcome(tuple(rewards), f"it printed {len(rewards)} rewards for {pulls} measurements" if missing else "")
