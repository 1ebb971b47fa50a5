"""Candidates and recorded measurements from a table, and the examples that stand in place of one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from typer import Argument

from surepick.chunks.sources import RowBlocks
from surepick.cli.options import ColumnOptions, Reading, given, opt
from surepick.cli.output import picked
from surepick.core.arms import Arms
from surepick.core.files import is_file, is_folder
from surepick.environments import Environment, digits, table, two_clusters
from surepick.errors import InvalidInput
from surepick.noise import Noise
from surepick.policies.registry import uses_features
from surepick.tables import Names, column_names, grouped_arms, is_olympus, read_arms, read_table
from surepick.tables.arms import column_of_arms
from surepick.tables.selection import Unnamed, Unused, not_used, wanted_features


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions(ColumnOptions):
    """The same, and how to read and prepare the table."""

    standardize: bool = opt("Scale each feature to mean 0, deviation 1.", default=False)
    intercept: bool = opt("Append a feature that is always 1.", default=False)
    drop_candidates: bool = opt("As --drop-missing, and candidates may go of which no row is left.", default=False)
    reading: Reading

    def of(self, policies: Iterable[str]) -> TableReader:
        """A reader for these policies: where none of them uses features, no column of them is looked at."""
        used = any(map(uses_features, policies))
        how = self if used else replace(self, standardize=False, intercept=False)
        return TableReader(how, wanted_features(self.features, used=used))

    @property
    def with_features(self) -> TableReader:
        """A reader for whoever uses features."""
        return TableReader(self, wanted_features(self.features, used=True))


@dataclass(frozen=True, slots=True)
class TableReader:
    """Reads tables as candidates."""

    options: TableOptions  # how
    features: Names | Unnamed | Unused  # the columns that are features

    def arms(self, source: str, *, reward: str | None = None, describe: str | None = None) -> Arms:
        """The candidates, one a row; `reward` names a column of results, which is no feature where it is there."""
        return read_arms(source, reward=reward, describe=describe, **self._keywords)

    def candidates(self, source: str, *, in_blocks: bool = False, **said: str | None) -> Arms | RowBlocks:
        """The candidates; those of a folder or a pattern, or if asked, as rows in blocks. `said` as for `arms`."""
        return self.rows(source) if in_blocks or in_files(source) else self.arms(source, **said)

    def rows(self, source: str) -> RowBlocks:
        """The candidates as rows in blocks."""
        if others := given(replace(self.options, id=None, features=None)):
            raise InvalidInput(f"candidates in blocks have ids and features only: leave out {others[0]}.")
        return read_arms(source, self.options.id, self.options.features, blocks=True)

    def grouped_arms(self, source: str, reward: str) -> Arms:
        """The candidates, one an id; `reward` names a column of measurements, which is no feature."""
        reading = self.options.reading.options
        reading["drop_missing"] = reading["drop_missing"] or self.options.drop_candidates
        read = read_table(source, **reading)
        prepare = picked(self.options, "cost", "segments", "standardize", "intercept", "drop_candidates")
        return grouped_arms(read, self.options.id, self.features, exclude=column_names(read, reward), **prepare).arms

    def recorded(
        self,
        source: str,
        reward: str | None,
        noise: Noise,
        *,
        minimize: bool = False,
        beside: Sequence[str] = (),
        totals: Mapping[str, str | None] | None = None,
    ) -> Environment:
        """The recorded measurements, with what else was measured `beside`, or `totals` in place of a reward."""
        keywords = self._keywords | dict(totals or {})
        return table(source, reward=reward, noise=noise, minimize=minimize or None, beside=beside, **keywords)

    def preference(self, source: str, arms: Arms | RowBlocks) -> dict[str, Any]:
        """The policy's option `prefer`, from the column of --prefer; none where nothing is preferred."""
        if self.options.prefer is None or isinstance(arms, RowBlocks):
            return {}
        read = read_table(source, **self.options.reading.options)
        return {"prefer": column_of_arms(read, arms, self.options.id, self.options.prefer)}

    @property
    def not_used(self) -> tuple[str, ...]:
        """A sentence about columns that were named as features and that nobody looks at."""
        if not isinstance(self.features, Unused):
            return ()
        words = not_used(
            self.options.features,
            said=f"--features {self.options.features} is",
            cure="--assume linear or a --norm-bound",
        )
        return (words,) if words else ()

    @property
    def _keywords(self) -> dict[str, Any]:
        said = picked(self.options, "id", "cost", "segments", "standardize", "intercept", "drop_candidates")
        return {**said, "features": self.features, **self.options.reading.options}


def in_files(source: str) -> bool:
    """Whether candidates of that name are read in blocks without being asked to."""
    return (is_folder(source) and not is_olympus(source)) or "*" in source or source.endswith(".npy")


Example = tuple[Callable[[int], Environment], str]  # seed -> environment, and a norm bound that is known to hold there
EXAMPLES: dict[str, Example] = {"two-clusters": (lambda seed: two_clusters(seed=seed), "1"), "digits": (digits, "2")}
SourceArgument = Annotated[str, Argument(metavar="TABLE", help="As for run, or an example: two-clusters, digits.")]


def example_named(source: str, options: TableOptions, reward: str | None, *, minimize: bool) -> Example | None:
    """The example of this name; None where it is the name of a file, or of no example."""
    if source not in EXAMPLES or is_file(Path(source)):
        return None
    if given(options) or reward is not None or minimize:
        raise InvalidInput(
            f"{source} is a built-in example: --id, --features, --cost, --prefer, --segments, --reward, "
            "--minimize, --standardize, --intercept, and what says how to read a table are for tables."
        )
    return EXAMPLES[source]
