"""A measurement by a program: it is run without a shell and prints one reward a line."""

from __future__ import annotations

import math
import os
import re
import shlex
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import IO

from surepick.core import values as settings
from surepick.errors import InvalidInput
from surepick.tables.numbers import number_or_none
from surepick.text import printable, quoted

PLACES = re.compile(r"\{(?:pulls|id|block)\}")
LONGEST = 200  # characters of a program's words in a message

Pair = tuple[str, str]  # (id, key) of a measurement
Reading = float | tuple[float, ...]  # a reward, or with it what constraints are on; NaN for one that was not measured


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one call gave."""

    rewards: tuple[Reading | None, ...] = ()  # in the order that was asked; None: it failed
    failure: str = ""


def words_of(template: str, timeout: float | None) -> tuple[str, ...]:
    """The words of a command line, as a shell would split it."""
    try:
        words = tuple(shlex.split(template))
    except ValueError as error:
        raise InvalidInput(f"the command {quoted(template)} is not well-formed: {error}.") from error
    if timeout is not None and not settings.as_number("timeout", timeout) > 0:
        raise InvalidInput(f"timeout is {quoted(timeout)}; it must be positive: the seconds that a call may take.")
    return words


@dataclass(frozen=True, slots=True)
class Command:
    """A program that measures, run without a shell; InvalidInput where the template lacks "{id}" or is not well-formed.
    "{id}" becomes the candidate's id, as (a part of) one argument whatever it contains; "{pulls}" the number of
    measurements, without which it is called for each; "{block}" the name of the block, of which a call has one."""

    template: str  # the command line, split as a shell would
    timeout: float | None = None  # seconds after which a call and all that it started are killed; None: never
    _words: tuple[str, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        words = words_of(self.template, self.timeout)
        if not words or not any("{id}" in word for word in words):
            raise InvalidInput(
                f"the command {self.template!r} does not say which candidate is measured; write {{id}} where its id "
                "belongs, and {pulls} where the number of measurements does."
            )
        if any("{pulls}" in word for word in words) and any("{block}" in word for word in words):
            raise InvalidInput(
                f"the command {self.template!r} names {{pulls}} and {{block}}; a call that is told its block makes one "
                "measurement. Leave {pulls} out."
            )
        object.__setattr__(self, "_words", words)

    @property
    def takes_blocks(self) -> bool:
        """Whether a call is told its block."""
        return any("{block}" in word for word in self._words)

    def arguments(self, name: str, pulls: int, block: str = "") -> list[str]:
        """The program and its arguments for one call."""
        given = {"{pulls}": str(pulls), "{id}": name, "{block}": block}
        return [PLACES.sub(lambda found: given[found[0]], word) for word in self._words]

    def check(self, ids: Sequence[str]) -> None:
        """Refuse ids that the program would take for options."""
        bare = [place for place, word in enumerate(self._words) if word.startswith("{id}")]
        if all("--" in self._words[:place] for place in bare):
            return
        risky = [name for name in ids if name.startswith("-")]
        if risky:
            raise InvalidInput(
                f"{len(risky)} ids begin with '-', the first is {printable(risky[0])!r}: a program can take such an "
                "argument for an option. Say in the command where ids begin: -- {id} if the program knows --, as most "
                "do, or an option of its own, as in --id={id}; or take --measure-batch, which gives ids on standard "
                "input."
            )

    def share(self, pairs: Sequence[Pair]) -> Sequence[Pair]:
        """The measurements of a lease that one call takes: of one candidate, one of them without "{pulls}"."""
        same = [pair for pair in pairs if pair[0] == pairs[0][0]]
        return same if any("{pulls}" in word for word in self._words) else same[:1]

    def measure(
        self, names: Sequence[str], running: Running | None = None, blocks: Sequence[str] | None = None, values: int = 1
    ) -> Outcome:
        """Call it once for measurements of these ids, each of which gives so many values, the reward first."""
        block = blocks[0] if blocks else ""
        out, failure = called(self.arguments(names[0], len(names), block), self.timeout, running)
        return Outcome(failure=failure) if failure else _read(out, len(names), values)


def called(
    arguments: list[str], timeout: float | None, running: Running | None = None, given: bytes = b""
) -> tuple[str, str]:
    """(what a program printed, why that is worth nothing: "" if it ended well)."""
    # To files, not pipes: what the program leaves running in the background may hold a pipe open for ever.
    with tempfile.TemporaryFile() as into, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        into.write(given)
        into.seek(0)
        try:
            process = (running or Running()).start(arguments, into, out, err)
        except (OSError, ValueError) as error:
            return "", f"the program could not be started: {error}"
        if process is None:
            return "", "it was not started any more"
        try:
            process.wait(timeout)
        except subprocess.TimeoutExpired:
            kill(process)
            process.wait()
            return "", f"it took longer than {timeout:g} s and was killed"
        finally:
            if running is not None:
                running.discard(process)
        if process.returncode != 0:
            said = _text(err).strip().splitlines()[-1:] or [""]
            code = process.returncode
            ending = f"it ended with code {code}" if code > 0 else f"it was killed by signal {-code}"
            return "", f"{ending}: {said[0][:LONGEST]}".rstrip(": ")
        return _text(out), ""


class Running:
    """The programs at work. Once it was ended, they are dead and no other is started."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ended = False
        self._processes: set[subprocess.Popen[bytes]] = set()

    def start(
        self, arguments: list[str], into: IO[bytes], out: IO[bytes], err: IO[bytes]
    ) -> subprocess.Popen[bytes] | None:
        """Start a program as the leader of its own group, so that all of it can be killed; None once ended."""
        with self._lock:
            if self._ended:
                return None
            process = subprocess.Popen(arguments, stdin=into, stdout=out, stderr=err, start_new_session=True)
            self._processes.add(process)
            return process

    def discard(self, process: subprocess.Popen[bytes]) -> None:
        """Forget a program that is done."""
        with self._lock:
            self._processes.discard(process)

    def end(self) -> None:
        """Kill all that are at work."""
        with self._lock:
            self._ended = True
            for process in self._processes:
                kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a program and all that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")


def number_in(line: str) -> float | None:
    """The finite number that a line is; None if it is none."""
    reward = number_or_none(line)
    return None if reward is None or not math.isfinite(reward) else reward


def numbers_in(line: str, values: int) -> Reading | None:
    """The numbers of a line, the reward first, others perhaps "nan": not measured; None if they are not so many."""
    words = line.split()
    if values == 1:
        return number_in(line)
    if len(words) != values:
        return None
    first, others = number_in(words[0]), [number_or_none(word) for word in words[1:]]
    return None if first is None or None in others else (first, *(one for one in others if one is not None))


def not_read(line: str, values: int) -> str:
    """What is said of a line that holds no reward."""
    wanted = "a finite number" if values == 1 else f"{values} numbers: the reward, then what the constraints are on"
    return f"it printed {line[:LONGEST]!r}, which is not {wanted}"


def _read(out: str, pulls: int, values: int) -> Outcome:
    """The rewards of a call that ended well; none of them if one line is wrong, since nobody knows which."""
    lines = [line.strip() for line in out.splitlines() if line.strip()]
    rewards = []
    for line in lines:
        reward = numbers_in(line, values)
        if reward is None:
            return Outcome(failure=not_read(line, values))
        rewards.append(reward)
    said = f"it printed {len(rewards)} rewards for {pulls} measurements"
    if len(rewards) > pulls:
        return Outcome(failure=said)
    return Outcome(tuple(rewards), said if len(rewards) < pulls else "")


# --- Measurements by a program that takes many at once: ids on standard input, rewards on standard output.


@dataclass(frozen=True, slots=True)
class BatchCommand(Command):
    """A program that measures all that it reads; InvalidInput where the template says where an id belongs.

    It is given one id a line, an id as often as it is to be measured, and prints one reward a line in the same order.
    Where measurements have blocks the id is followed by a tab and the name of the block. A line that is no finite
    number says that this measurement failed; another number of lines says nothing: nobody knows which is whose.
    """

    def __post_init__(self) -> None:
        words = words_of(self.template, self.timeout)
        if not words:
            raise InvalidInput("--measure-batch names no program; give one that reads ids and prints rewards.")
        if any("{id}" in word or "{pulls}" in word for word in words):
            raise InvalidInput(
                f"the command {self.template!r} names {{id}} or {{pulls}}, which have no meaning for a whole batch: "
                "its ids come on standard input, one a line. Leave them out, or take --measure."
            )
        object.__setattr__(self, "_words", words)

    def check(self, ids: Sequence[str]) -> None:
        """Refuse ids that are more than one line."""
        broken = [name for name in ids if len(f"{name}.".splitlines()) > 1]
        if broken:
            raise InvalidInput(
                f"{len(broken)} ids hold a line break, the first is {printable(broken[0])!r}: the program reads one id "
                "a line and would take it for two. Take --measure, which gives each id as one argument."
            )

    @property
    def takes_blocks(self) -> bool:
        """A line has the block of its measurement."""
        return True

    def share(self, pairs: Sequence[Pair]) -> Sequence[Pair]:
        """All measurements of a lease."""
        return pairs

    def measure(
        self, names: Sequence[str], running: Running | None = None, blocks: Sequence[str] | None = None, values: int = 1
    ) -> Outcome:
        """Call the program once."""
        lines = names if blocks is None else [f"{name}\t{block}" for name, block in zip(names, blocks, strict=True)]
        given = "".join(f"{line}\n" for line in lines).encode()
        out, failure = called(list(self._words), self.timeout, running, given)
        return Outcome(failure=failure) if failure else matched(out, len(names), values)


def matched(out: str, asked: int, values: int = 1) -> Outcome:
    """The rewards of a call that ended well, each beside its measurement."""
    lines = [line.strip() for line in out.splitlines()]
    while len(lines) > asked and not lines[-1]:
        lines.pop()
    if len(lines) != asked:
        return Outcome(failure=f"it printed {len(lines)} lines for {asked} measurements")
    rewards = tuple(numbers_in(line, values) for line in lines)
    wrong = [line for line, reward in zip(lines, rewards, strict=True) if reward is None]
    if not wrong:
        return Outcome(rewards)
    more = f", and {len(wrong) - 1} more such lines" if len(wrong) > 1 else ""
    return Outcome(rewards, f"{not_read(wrong[0], values)}{more}")
