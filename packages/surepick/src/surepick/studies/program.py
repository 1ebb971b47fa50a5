"""A measurement by a program: it is run without a shell and prints one reward a line; and the loop ask - measure - tell
over it, with several calls at a time."""

from __future__ import annotations

import hashlib
import math
import os
import re
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import product, zip_longest
from typing import IO, Any

from surepick.core import values as settings
from surepick.errors import InvalidInput, MeasurementFailed, OutOfTurn, UnusualResult
from surepick.studies.closed_loop import OnUnusual, limit_of, tell_measured
from surepick.studies.recording import Receipt
from surepick.studies.study import Study
from surepick.studies.validation import check_rewards, split_values
from surepick.tables.numbers import number_or_none
from surepick.text import did_you_mean, printable, quoted

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

    def arguments(self, name: str, pulls: int, block: str = "", key: str = "") -> list[str]:  # noqa: ARG002
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
        self,
        names: Sequence[str],
        running: Running | None = None,
        blocks: Sequence[str] | None = None,
        values: int = 1,
        keys: Sequence[str] = ("",),
    ) -> Outcome:
        """Call it once for measurements of these ids, each of which gives so many values, the reward first."""
        block = blocks[0] if blocks else ""
        out, failure = called(self.arguments(names[0], len(names), block, keys[0]), self.timeout, running)
        return Outcome(failure=failure) if failure else _read(out, len(names), values)


NAMED = re.compile(r"\{([^{}]*)\}")
A_NAME = re.compile(r"[^\W\d][\w ./-]*")  # what else stands in braces is left as it is
SEEDS = 2**31  # a seed is below
OWN = ("id", "pulls", "block", "seed")


@dataclass(frozen=True, slots=True)
class RowCommand(Command):
    """A program that is given the row of its candidate in a table: "{lr}" becomes the cell of column lr.

    "{seed}" becomes a whole number below 2^31: of each measurement its own; where measurements have blocks that of the
    block, which all candidates in it share. InvalidInput where a name in braces is no column, or a cell is empty.
    """

    rows: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # id -> column -> cell
    study_id: str = ""  # no two studies have the same seeds

    def __post_init__(self) -> None:
        words = words_of(self.template, self.timeout)
        named = dict.fromkeys(name for word in words for name in NAMED.findall(word))
        columns = next(iter(self.rows.values()), {})
        odd = next((name for name in named if name not in (*OWN, *columns) and A_NAME.fullmatch(name)), None)
        if odd is not None:
            raise InvalidInput(
                f"the command {self.template!r} names {{{odd}}}, and the table has no such column; it has "
                f"{', '.join(map(quoted, columns))}.{did_you_mean(odd, list(columns))}"
            )
        used = [name for name in named if name in columns and name not in OWN]
        if not words or not ("id" in named or used):
            raise InvalidInput(
                f"the command {self.template!r} does not say which candidate is measured; write {{id}}, or a column of "
                "the table in braces, where its cell belongs."
            )
        if "pulls" in named and ("block" in named or "seed" in named):
            raise InvalidInput(
                f"the command {self.template!r} names {{pulls}}, and a call that is told its block or its seed makes "
                "one measurement. Leave {pulls} out."
            )
        for (name, row), column in product(self.rows.items(), used):
            if not row[column].strip():
                raise InvalidInput(f"column {column!r} is empty for candidate {name!r}, and the command needs it.")
        object.__setattr__(self, "_words", words)

    @property
    def takes_blocks(self) -> bool:
        """Whether a call is told its block, or a seed that stands for it."""
        return any("{block}" in word or "{seed}" in word for word in self._words)

    def check(self, ids: Sequence[str]) -> None:
        """Refuse ids and cells that the program would take for options; numbers are none."""
        Command.check(self, ids)
        for place, word in enumerate(self._words):
            first = NAMED.match(word)
            if first is None or "--" in self._words[:place]:
                continue
            cells = [row.get(first[1], "") for row in self.rows.values()]
            risky = [cell for cell in cells if cell.startswith("-") and number_or_none(cell) is None]
            if risky and first[1] not in OWN:
                raise InvalidInput(
                    f"a cell of column {first[1]!r} is {printable(risky[0])!r}, which a program can take for an "
                    f"option. Give it an option of its own in the command, as in --name={word}."
                )

    def arguments(self, name: str, pulls: int, block: str = "", key: str = "") -> list[str]:
        """The program and its arguments for one call."""
        drawn = hashlib.sha256(f"{self.study_id}/{block or key}".encode()).digest()
        seed = int.from_bytes(drawn[:8], "big") % SEEDS
        given = {**self.rows[name], "id": name, "pulls": str(pulls), "block": block, "seed": str(seed)}
        return [NAMED.sub(lambda found: given.get(found[1], found[0]), word) for word in self._words]


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
        self,
        names: Sequence[str],
        running: Running | None = None,
        blocks: Sequence[str] | None = None,
        values: int = 1,
        keys: Sequence[str] = ("",),  # noqa: ARG002 (of all commands)
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


# --- The loop.

POLL_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Call:
    """Pulls that are being measured: whose lease they are of, and the id, the key and the block of each."""

    worker: str
    names: tuple[str, ...]
    keys: tuple[str, ...]
    blocks: tuple[str, ...] | None = None


@dataclass(slots=True)
class Loop:
    """A study measured by a program. Every slot is a worker of its own, so that a loop that was killed is given the
    same leases when it starts again."""

    study: Study
    command: Command
    worker: str  # name of this loop among those that measure the study at the same time
    slots: int = 1
    retries: int = 3  # calls for a candidate that may fail one after the other before it gives up
    batch: int = 64
    lease: str | float = "1h"
    most: int | None = None  # no plan is begun that would pass it in measurements; None: `usual_limit`
    most_money: float | None = None  # the same in money, of all that the study has spent; None: no limit
    unusual: OnUnusual = "warn"  # what becomes of results that stand out, as in `Study.run`
    heard: Callable[[Study, Receipt], None] | None = None  # after every result
    idle: Callable[[Study], None] | None = None  # when all is out with others, so that it begins to wait
    _failures: Counter[str] = field(default_factory=Counter)
    _running: Running = field(default_factory=Running)

    def run(self) -> bool:
        """Measure until the study stops; False if the budget ended it before."""
        self.command.check(self.study.ids)
        blocking = self.study.blocking
        if blocking is not None and not self.command.takes_blocks:
            raise InvalidInput(
                f"results of this study name their {blocking.name}, and the command does not say which one a call "
                "measures in. Write {block} where its name belongs (a seed, a plate), or take --measure-batch, which "
                "gives it after the id and a tab."
            )
        if self.study.policy.traits.items is not None:
            raise InvalidInput(
                "a program of run-study is given candidates and no test items; lease with ask, tell the answers, or "
                "take Study.run(measure), which gives both."
            )
        workers = [f"{self.worker}/{slot + 1}" for slot in range(self.slots)]
        calls: dict[Future[Outcome], Call] = {}
        pool = ThreadPoolExecutor(self.slots)
        waiting = False
        try:
            while True:
                over = False
                busy = {call.worker for call in calls.values()}
                for worker in workers:
                    if worker in busy or over:
                        continue
                    over = not self._opened()
                    call = None if over else self._next(worker)
                    if call is not None:
                        told = self._beside(call)
                        calls[pool.submit(self.command.measure, call.names, self._running, **told)] = call
                if not calls:
                    if over:
                        return self.study.stopped
                    if self.idle is not None and not waiting:
                        self.idle(self.study)
                    waiting = True
                    time.sleep(POLL_SECONDS)
                    continue
                waiting = False
                done, _ = wait(calls, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
                for one in done:
                    self._conclude(calls.pop(one), one.result())
        finally:
            self._running.end()
            pool.shutdown(wait=True, cancel_futures=True)

    def _beside(self, call: Call) -> dict[str, Any]:
        """What a call is told beside its ids."""
        beside: dict[str, Any] = {} if call.blocks is None else {"blocks": call.blocks}
        if self.study.constraints:
            beside["values"] = 1 + len(self.study.constraints)
        if isinstance(self.command, RowCommand):
            beside["keys"] = call.keys
        return beside

    def _opened(self) -> bool:
        """Whether a plan is open that is within the budget."""
        if self.study.ask() is None:
            return False
        most = self.limit
        if most is None and self.most_money is None:
            return True
        progress = self.study.progress()
        within = most is None or progress.pulls + progress.asked <= most
        paid = progress.cost_after
        return progress.told > 0 or (within and (self.most_money is None or paid is None or paid <= self.most_money))

    @property
    def limit(self) -> int | None:
        """Most measurements of the study; None where its policy ends by itself."""
        return limit_of(self.study) if self.most is None else self.most

    def _next(self, worker: str) -> Call | None:
        """What the worker measures next; None while nothing is free. A fair share, so that no slot idles."""
        fair = math.ceil(int(self.study.missing.sum()) / self.slots)
        plan = self.study.lease(max(1, min(self.batch, fair)), worker=worker, duration=self.lease)
        if plan is None or plan.total == 0:
            return None
        names, keys = zip(*self.command.share(plan.keys()), strict=True)
        if not plan.blocks:
            return Call(worker, names, keys)
        block_of = {key: block for (_, key), block in zip(plan.keys(), plan.blocks, strict=True)}
        return Call(worker, names, keys, tuple(block_of[key] for key in keys))

    def _check_declared(self, names: Sequence[str], readings: Sequence[Reading]) -> None:
        """Refuse to go on if a reward is not what the study declares: to measure again would be to choose by value."""
        try:
            rewards = split_values(readings, self.study.constraints)[0]
            check_rewards(rewards, self.study.noise, len(readings), list(names))
        except InvalidInput as error:
            raise MeasurementFailed(
                f"the program's answer for {_called(names)} is refused: {error} Nothing of this call was stored. "
                "If the program is wrong, mend it and give the same command again; it is not asked again by itself, "
                "since repeating a measurement because of its value would make the certificate worthless."
            ) from error

    def _conclude(self, call: Call, outcome: Outcome) -> None:
        """Tell what a call gave, and give back what it did not."""
        rows = list(zip_longest(call.names, call.keys, outcome.rewards))
        came = [(name, key, reward) for name, key, reward in rows if reward is not None]
        told_blocks = None
        if call.blocks is not None:
            told_blocks = [block for block, (_, _, reward) in zip(call.blocks, rows, strict=True) if reward is not None]
        missing = [(name, key) for name, key, reward in rows if reward is None]
        self._check_declared([name for name, _, _ in came], [reward for _, _, reward in came])
        lacking = {name for name, _ in missing}
        for name in dict.fromkeys(call.names):
            self._failures[name] = self._failures[name] + 1 if name in lacking else 0
        if missing:
            with suppress(OutOfTurn):  # the study was closed, or the plan abandoned: nothing waits for them
                self.study.fail([name for name, _ in missing], [key for _, key in missing], worker=call.worker)
        receipt = self._tell(call, came, told_blocks) if came else Receipt()
        tired = next((name for name, _ in missing if self._failures[name] > self.retries), None)
        if tired is not None and not self.study.stopped:
            raise MeasurementFailed(
                f"{tired!r} could not be measured in {self._failures[tired]} calls, one after the other; in "
                f"the last, {outcome.failure}. The reported results are stored. Give the same command "
                "again when the program works."
            )
        if self.heard is not None:
            self.heard(self.study, receipt)

    def _tell(self, call: Call, came: Sequence[tuple[str, str, Reading]], blocks: Sequence[str] | None) -> Receipt:
        names, keys, rewards = zip(*came, strict=True)
        try:
            tell = partial(self.study.tell, names, rewards, keys, worker=call.worker, blocks=blocks)
            return tell_measured(lambda how: tell(accept_unusual=how), self.unusual)
        except UnusualResult as question:
            raise MeasurementFailed(
                f"{question} The loop ends here, as --unusual refuse says; --unusual accept goes on."
            ) from question
        except InvalidInput as error:
            raise MeasurementFailed(
                f"a result of {_called(names)} was refused: {error} If this study is measured in several places at "
                "once, give each of them a name of its own (--worker)."
            ) from error


def _called(names: Sequence[str]) -> str:
    """Candidates as a message names them."""
    others = len(set(names)) - 1
    return repr(names[0]) + (f" and {others} others" if others > 0 else "")
