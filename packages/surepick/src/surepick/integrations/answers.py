"""Answers of models to test items as the programs write them: read with the place of each, and checked."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from surepick.core.files import read_regular, write_whole
from surepick.core.records import each_once, record
from surepick.errors import InvalidInput
from surepick.text import did_you_mean, quoted

DIGITS = 16  # of a SHA-256 in the id of an item: enough to see that a set was changed


@record
class FileAnswers:
    """What came, one row an answer."""

    candidates: tuple[str, ...]  # ids of candidates, n of them
    items: tuple[str, ...]  # ids of test items, n of them
    scores: tuple[float, ...]  # n numbers from 0 to 1
    empty: int = 0  # samples without a score, which are left out
    notes: tuple[str, ...] = ()  # what was chosen where files have several scores, and nobody said which counts

    @staticmethod
    def of(rows: Iterable[tuple[str, str, float | None]]) -> FileAnswers:
        """The answers of (candidate, item, score); a score of None is none."""
        all_rows = list(rows)
        kept = [(candidate, item, score) for candidate, item, score in all_rows if score is not None]
        candidates, items, scores = zip(*kept, strict=True) if kept else ((), (), ())
        return FileAnswers(candidates, items, scores, len(all_rows) - len(kept))


@record
class Expected:
    """What a study knows, and what the user says of the files; without a study all answers in the files."""

    candidates: tuple[str, ...] | None = None  # ids of the study's candidates
    items: tuple[str, ...] | None = None  # ids of its test items
    candidate: str | None = None  # the one whose answers these are; None: as the files say
    metric: str | None = None  # the name of the score; None: the only one
    filter: str | None = None  # the name of the way in which answers were extracted; None: the only one
    chosen: dict[str, str] = field(default_factory=dict, compare=False)  # flag -> what was taken, without a study

    def known_candidate(self, named: Sequence[str], where: str) -> str:
        """The candidate whose answers these are: the one that the user names, else the first known name of the file."""
        names = [self.candidate] if self.candidate is not None else named or [""]
        if self.candidates is None:
            return names[0]
        known = [name for name in names if name in self.candidates]
        if known:
            return known[0]
        raise InvalidInput(
            f"{where}: {quoted(names[0])} is no candidate of this study.{did_you_mean(names[0], self.candidates)} Its "
            f"candidates are {', '.join(map(quoted, self.candidates[:5]))}, ...; say which with --candidate ID."
        )

    def name_of(self, given: str | None, names: Sequence[str], flag: str, what: str, where: str) -> str:
        """As `only_name`; without a study the first of several, whatever the scores are, which is noted."""
        if self.items is not None or given is not None or len(names) < 2:
            return only_name(given, names, flag, what, where)
        self.chosen[flag] = f"{what[:-1]} {names[0]} ({flag} takes another: {', '.join(names[1:])})"
        return names[0]

    def score(self, value: object, metric: str, where: str) -> float:
        """A score of an answer; without a study it may be any number."""
        if self.items is not None:
            return score_of(value, metric, where)
        number = float(value) if isinstance(value, bool | int | float) and abs(value) < 2**53 else math.nan
        if math.isnan(number):
            raise InvalidInput(f"{where}: {metric} is {quoted(value)}; the score of an answer is a number.")
        return number


def sha(value: Any) -> str:
    """The first digits of the SHA-256 of a value as JSON."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGITS]


def read_json_file(text: str, where: str) -> Any:
    """What a JSON text says; NaN is read, and refused where a score is one."""
    try:
        return json.loads(text, object_pairs_hook=each_once)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{where} is not JSON ({error}); give the file as it was written, whole.") from error


def answers_text(path: Path) -> str:
    """A file in UTF-8."""
    try:
        return read_regular(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{path} is not a text in UTF-8 (byte {error.start:,}); give the file as written."
        ) from error


def score_of(value: object, metric: str, where: str) -> float:
    """A score of an answer."""
    number = float(value) if isinstance(value, bool | int | float) and abs(value) < 2**53 else math.nan
    if not 0.0 <= number <= 1.0:
        raise InvalidInput(
            f"{where}: {metric} is {quoted(value)}; the score of an answer must be a number from 0 to 1 (divide by the "
            "full score). Nothing of this call was stored."
        )
    return number


def field_of(data: object, name: str, kinds: type | tuple[type, ...], where: str, program: str) -> Any:
    """A field of a JSON object."""
    value = data.get(name) if isinstance(data, Mapping) else None
    if not isinstance(value, kinds) or isinstance(value, bool):
        given = "there is none" if not isinstance(data, Mapping) or name not in data else f"it is {quoted(value)}"
        raise InvalidInput(f"{where} has no field {name!r} as {program} writes it: {given}.")
    return value


def only_name(given: str | None, names: Sequence[str], flag: str, what: str, where: str) -> str:
    """The name that was given, or the only one that there is."""
    there = ", ".join(quoted(name) for name in names) or "none"
    if given is None and len(names) == 1:
        return names[0]
    if given is None:
        raise InvalidInput(f"{where} has {len(names)} {what}: {there}. Say which one counts with {flag} NAME.")
    if given not in names:
        raise InvalidInput(f"{where} has no {what[:-1]} {quoted(given)}; there is {there}.")
    return given


# --- Folders with a file for each candidate, for programs to read.


def sanitized(name: str) -> str:
    """A name in which a file can be stored."""
    return re.sub(r"[\"<>:/|\\?*\[\]\s]+", "__", name)


def write_each(folder: Path, wanted: Mapping[str, str]) -> list[Path]:
    """Write a file for each candidate."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {name: folder / f"{sanitized(name)}.json" for name in wanted}
    for name, text in wanted.items():
        write_whole(files[name], f"{text}\n".encode())
    return list(files.values())


def check_folder(candidates: Sequence[str], folder: Path) -> None:
    """Refuse a folder in which a file for each candidate cannot be written."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidInput(f"{folder} is there already, and is not an empty folder; give another name.")
    if len({sanitized(name).lower() for name in candidates}) < len(candidates):
        raise InvalidInput(
            "two candidates would have one file, since their names differ in / or : or capitals only; rename one, or "
            "ask and tell tables."
        )
