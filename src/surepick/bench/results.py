"""Where results lie: one part a replicate while running, two Parquet files at the end.

    NAME.parquet          replicates, sorted by key
    NAME.rounds.parquet   rounds, sorted by key, in the order in which they happened
    NAME.parts/           one JSON file a replicate, written by rename; gone when the two files are there

Rounds are written first, so that a file of replicates always has its rounds. A part that cannot be read is not there.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from surepick.bench.replicate import Played
from surepick.bench.tables import Replicate, Round, column_kinds
from surepick.core.arrays import record
from surepick.core.files import is_file, is_folder
from surepick.core.json import to_json
from surepick.errors import InvalidInput, StorageError
from surepick.tables import read_columns, write_table

Row = dict[str, Any]


@record
class Results:
    """The two tables as rows.

    Args:
        replicates: sorted by key.
        rounds: sorted by key, in the order of each study.
    """

    replicates: tuple[Row, ...]
    rounds: tuple[Row, ...]

    @classmethod
    def of(cls, everything: Iterable[Played]) -> Results:
        """The tables of these replicates."""
        ordered = sorted(everything, key=lambda played: str(played.replicate["key"]))
        rounds = tuple(row for played in ordered for row in played.rounds)
        return cls(tuple(played.replicate for played in ordered), rounds)

    @property
    def played(self) -> tuple[Played, ...]:
        """Each replicate with its rounds."""
        rounds: dict[str, list[Row]] = {}
        for row in self.rounds:
            rounds.setdefault(row["key"], []).append(row)
        return tuple(Played(row, tuple(rounds.get(row["key"], ()))) for row in self.replicates)

    @property
    def experiments(self) -> tuple[str, ...]:
        """Names of the experiments, in the order of their first row."""
        return tuple(dict.fromkeys(row["experiment"] for row in self.replicates))


@record
class Place:
    """The files of one `--out`.

    Args:
        out: the file of replicates; its name ends in .parquet.

    Raises:
        InvalidInput: the name ends otherwise.
    """

    out: Path

    def __post_init__(self) -> None:
        object.__setattr__(self, "out", Path(self.out))
        if self.out.suffix != ".parquet" or self.out.name.endswith(".rounds.parquet"):
            raise InvalidInput(
                f"--out is {self.out}; results are written as NAME.parquet, with the rounds in NAME.rounds.parquet."
            )
        if is_folder(self.out) or is_file(self.parts):
            raise InvalidInput(f"{self.out} or {self.parts} is in the way; choose another --out.")

    @property
    def rounds(self) -> Path:
        return self.out.with_suffix(".rounds.parquet")

    @property
    def parts(self) -> Path:
        return self.out.with_suffix(".parts")

    def part(self, digest: str, seed: int) -> Path:
        """The file of one replicate while the experiment runs."""
        return self.parts / f"{digest}-{seed:06d}.json"

    def write_part(self, digest: str, seed: int, played: Played) -> None:
        """Keep a replicate: after this it survives whatever happens to the process."""
        path = self.part(digest, seed)
        unfinished = path.with_suffix(".unfinished")
        try:
            unfinished.write_text(to_json(played), encoding="utf-8")
            unfinished.replace(path)
        except OSError as error:
            raise StorageError(
                f"{path} cannot be written: {error.strerror}. Other parts are kept; run again."
            ) from error

    def read_part(self, digest: str, seed: int, key: str) -> Played | None:
        """A replicate that is kept; None if it is not there, or not what it should be."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            kept = json.loads(self.part(digest, seed).read_text(encoding="utf-8"))
            if kept["replicate"]["key"] == key:
                return Played(kept["replicate"], tuple(kept["rounds"]))
        return None

    def open_parts(self) -> None:
        """Make the folder of parts.

        Raises:
            InvalidInput: it cannot be made there.
        """
        try:
            self.parts.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInput(f"{self.parts} cannot be made: {error.strerror}. Choose another --out.") from error

    def write(self, everything: Iterable[Played]) -> Results:
        """Write both tables, each by rename."""
        results = Results.of(everything)
        _write(self.rounds, results.rounds, Round)
        _write(self.out, results.replicates, Replicate)
        return results

    def remove_parts(self, names: Iterable[tuple[str, int]]) -> None:
        """Remove the parts of these (digest, seed), and the folder if no other part is in it."""
        for digest, seed in names:
            self.part(digest, seed).unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.parts.rmdir()


def _write(path: Path, rows: tuple[Row, ...], kind: type[Any]) -> None:
    kinds = column_kinds(kind)
    write_table(path, {name: [row.get(name) for row in rows] for name in kinds}, kinds=kinds)


def read_results(out: str | Path) -> Results:
    """The two tables of a finished experiment.

    Raises:
        InvalidInput: a file is missing, or is not a table of results.
    """
    place = Place(Path(out))
    if not is_file(place.out) and is_folder(place.parts):
        raise InvalidInput(
            f"{place.out} is not there yet: {place.parts} holds an experiment that did not finish. Run the same "
            "`surepick bench run` again; it goes on where it stopped."
        )
    replicates = tuple(_rows(place.out, Replicate))
    if not is_file(place.rounds):
        raise InvalidInput(
            f"{place.rounds} is missing, which belongs to {place.out}. Put it back, or move {place.out.name} away and "
            "run the experiment again."
        )
    return Results(replicates, tuple(_rows(place.rounds, Round)))


def _rows(path: Path, kind: type[Any]) -> Iterator[Row]:
    columns = read_columns(path)
    missing = [name for name in column_kinds(kind) if name not in columns]
    if missing:
        raise InvalidInput(
            f"{path} has no column {missing[0]!r}: it is not a table that `surepick bench run` of this version wrote."
        )
    return (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))


def finished(place: Place) -> Mapping[str, Played]:
    """What an earlier run has written to the two files: key -> replicate; empty when there are none."""
    if not is_file(place.out):
        return {}
    return {played.replicate["key"]: played for played in read_results(place.out).played}
