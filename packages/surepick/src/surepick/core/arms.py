"""The candidates among which we choose."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import field
from itertools import islice
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from surepick.core import values as checks
from surepick.core.descriptions import NOTHING_SAID, Described
from surepick.core.frames import SOURCE, frame_of, is_frame
from surepick.core.records import FloatArray, IntArray, record, set_fields, unwritable
from surepick.errors import InvalidInput
from surepick.text import LONGEST, html_table, printable, quoted, shortened

# --- What columns of tables are called: those of a study's ids and results, and those that only number the rows.

ID, REWARD = "id", "reward"  # the usual names, which are always understood
NAMELESS = re.compile(  # what pandas, readr, Spark and SheetJS write in place of a name
    r"unnamed: ?\d+(\.\d+)*(_level_\d+)?|__index_level_\d+__|\.\.\.\d+|level_\d+|_c0|__empty(_\d+)?", re.IGNORECASE
)
COUNTING = frozenset({  # names of columns that number the rows, without what stands between their words
    "#", "index", "idx", "no", "nr", "row", "rows", "rowid", "rowindex", "rownum", "rownumber", "rowno", "rownr",
    "rowname", "rownames", "rn", "line", "lineno", "linenumber", "obs", "observation", "record", "recordno",
    "serial", "serialno", "sno", "srno", "slno", "lfdnr", "column1", "field1",
})  # fmt: skip
BETWEEN_WORDS = re.compile(r"[\s._-]+")


@record
class ColumnNames:
    """The names that were said when a study was made; no part of what it promises."""

    id: str | None = None  # the column of the ids, "a,b" for several; None: "id"
    reward: str | None = None  # the column of the results; None: "reward"

    def __post_init__(self) -> None:
        for what, name in (("id", self.id), ("results", self.reward)):
            if name is None:
                continue
            if not isinstance(name, str) or not name.strip():
                raise InvalidInput(f"the name of the column of the {what} is empty; name it, or leave it out.")
            checks.storable_text(f"the name of the column of the {what}", name)

    @staticmethod
    def stored_in(configuration: Mapping[str, Any]) -> ColumnNames:
        """Those of a stored study."""
        return ColumnNames(**configuration.get("names", {}))

    def stored(self) -> dict[str, Any]:
        """What is stored beside the policy's spec; {} of a study whose columns have their usual names."""
        said = {name: value for name, value in (("id", self.id), ("reward", self.reward)) if value is not None}
        return {"names": said} if said else {}

    def id_in(self, columns: Collection[str]) -> str:
        """The column (or "a,b") of the ids in a table with these columns: the study's own name if it is there."""
        name = self.id or ID
        return name if name in columns or all(part.strip() in columns for part in name.split(",")) else ID

    def reward_in(self, columns: Collection[str]) -> str:
        """The column of the results in a table with these columns: the study's own name if it is there."""
        return str(self.reward) if self.reward in columns else REWARD


def is_nameless(names: Sequence[str], name: str) -> bool:
    """Whether nobody gave a column its name: a reader made it up, or the library that wrote the table."""
    return bool(NAMELESS.fullmatch(name.strip())) or not name.strip() or name == f"column {names.index(name) + 1}"


def may_count(name: str) -> bool:
    """Whether a column of this name numbers the rows if its cells count."""
    return BETWEEN_WORDS.sub("", name.lower()) in COUNTING


def counts(values: FloatArray) -> bool:
    """Whether numbers, shape (rows,), are whole ones from 0 or 1 on, each once, in any order."""
    if len(values) < 2 or values.min() not in (0.0, 1.0):
        return False
    return bool(np.array_equal(np.sort(values) - values.min(), np.arange(len(values))))


def numbers_rows(names: Sequence[str], name: str, values: FloatArray) -> bool:
    """Whether a column among those of these names is no feature unless somebody names it as one."""
    return is_nameless(names, name) or (may_count(name) and counts(values))


# --- What ids were before they became texts: whoever gave numbers, tuples or functions gets them back.

NOTHING: Mapping[str, object] = MappingProxyType({})


class Originals:
    """The objects behind ids (text -> object, of those that are no texts); they stay in the process that has them."""

    __slots__ = ("_found",)

    def __init__(self, found: Mapping[str, object] = NOTHING) -> None:
        self._found = found

    @staticmethod
    def of(names: Iterable[str], values: Iterable[object]) -> Originals:
        """Those of values that became these texts, one each."""
        return Originals({name: one for name, one in zip(names, values, strict=True) if type(one) is not str})

    def of_text(self, name: str) -> object:
        """The object whose text it is; the text where it was given as one."""
        return self._found.get(name, name)

    def __deepcopy__(self, memo: object) -> Originals:
        return self

    def all_of(self, names: Iterable[str]) -> list[object]:
        """The objects of these texts, in their order."""
        return [self._found.get(name, name) for name in names] if self._found else list(names)

    def __reduce__(self) -> tuple[type[Originals], tuple[()]]:
        return Originals, ()

    def __repr__(self) -> str:
        return f"Originals({len(self._found)})"


def _named(rows: IntArray, ids: Sequence[str], most: int = 5) -> str:
    shown = ", ".join(repr(ids[row]) for row in rows[:most])
    return shown + (f" and {len(rows) - most} more" if len(rows) > most else "")


class KnownIds(tuple[str, ...]):
    """Ids that were accepted before, or are of a table, whose reader says which of them look alike."""

    __slots__ = ()


def checked_ids(ids: Sequence[object] | None, num_arms: int) -> tuple[str, ...]:
    """The arms' ids as unique strings; "0".."K-1" when none are given."""
    if ids is None:
        return tuple(str(row) for row in range(num_arms))
    names = checks.texts_of("ids", ids)
    checks.storable_text("an id", "".join(names))
    if len(names) != num_arms:
        raise InvalidInput(f"there are {len(names)} ids for {num_arms} arms; give one id per arm.")
    if len(set(names)) != num_arms:
        repeated = [name for name, times in Counter(names).items() for _ in range(times - 1)]
        raise InvalidInput(
            f"{len(repeated)} ids are repeated (the first is {quoted(repeated[0])}); an id must name one arm. "
            + (
                "If the rows are repeated measurements of the same arm, load them as a table of measurements."
                if all(isinstance(one, str) for one in ids)
                else "Ids are kept as texts, and two of these have the same: give each a name of its own."
            )
        )
    return names


FEATURES_GO = "Features are the first argument: sp.Arms(X, ids=...)."
CHECKED_ENTRIES = 4_000_000
SHOWN_COLUMNS = 8
MOST_COST_RATIO = 1e9  # of the dearest measurement to the cheapest


def _matrix(features: ArrayLike) -> FloatArray:
    """The features as a read-only (K, D) array: a float64 copy, unless nobody can write to the float array given."""
    plain = isinstance(features, np.ndarray) and not isinstance(features, np.ma.MaskedArray)
    if plain and np.asarray(features).dtype in (np.float32, np.float64) and unwritable(np.asarray(features)):
        matrix: FloatArray = np.asarray(features)
    else:
        matrix = np.array(checks.real_numbers("features", features, wrong="features are not a numeric (K, D) array"))
        matrix.flags.writeable = False
    if matrix.ndim != 2:
        raise InvalidInput(f"features have shape {matrix.shape}; they must be (K, D), one row an arm.")
    if matrix.shape[0] == 0:
        raise InvalidInput("there is no arm (K = 0); nothing can be chosen.")
    return matrix


def _refuse_not_finite(matrix: FloatArray, ids: Sequence[str] | None) -> None:
    step = max(1, CHECKED_ENTRIES // max(matrix.shape[1], 1))
    tops = range(0, len(matrix), step)
    bad = np.concatenate([top + np.flatnonzero(~np.isfinite(matrix[top : top + step]).all(axis=1)) for top in tops])
    if bad.size:
        names = checked_ids(ids, len(matrix))
        raise InvalidInput(
            f"{bad.size} of {len(names)} arms have NaN or infinite features: {_named(bad, names)}. "
            "Fill or drop these rows."
        )


def feature_matrix(features: ArrayLike) -> FloatArray:
    """Features checked as those of `Arms` are, without ids."""
    matrix = _matrix(features)
    _refuse_not_finite(matrix, None)
    return matrix


def checked_costs(costs: ArrayLike, ids: Sequence[str]) -> FloatArray:
    """What a measurement of each arm costs, as a read-only float64 copy of shape (K,)."""
    checked: FloatArray = np.array(checks.real_numbers("costs", costs, truths=False))
    checks.check_order("costs", costs, ids)
    if checked.shape != (len(ids),):
        raise InvalidInput(f"costs have shape {checked.shape}; they must be ({len(ids)},), one for each arm.")
    bad = np.flatnonzero(~(np.isfinite(checked) & (checked > 0.0)))
    if bad.size:
        raise InvalidInput(
            f"{bad.size} of {len(ids)} arms have costs that are not positive and finite: {_named(bad, ids)}. A "
            "measurement costs something; where all cost alike, leave costs out."
        )
    least, most = float(checked.min()), float(checked.max())
    if least < checks.SMALLEST or most > checks.LARGEST or most / least > MOST_COST_RATIO:
        ends = np.array([np.argmin(checked), np.argmax(checked)])
        raise InvalidInput(
            f"costs go from {least:g} to {most:g} ({_named(ends, ids)}); they must lie between "
            f"{checks.SMALLEST:g} and {checks.LARGEST:g}, the largest at most {MOST_COST_RATIO:g} times the smallest."
        )
    checked.flags.writeable = False
    return checked


def checked_segments(segments: Sequence[object], ids: Sequence[str]) -> tuple[str, ...]:
    """The segment of each arm as a text."""
    names = checks.texts_of("segments", segments)
    checks.check_order("segments", segments, ids)
    checks.storable_text("a segment", "".join(names))
    if len(names) != len(ids):
        raise InvalidInput(f"there are {len(names)} segments for {len(ids)} arms; give one segment an arm.")
    empty = np.flatnonzero([not name.strip() for name in names])
    if empty.size:
        raise InvalidInput(f"{empty.size} of {len(ids)} arms have an empty segment: {_named(empty, ids)}. Name it.")
    return names


def _of_frame(
    frame: object, ids: Sequence[object] | str | None, columns: Sequence[str] | None
) -> tuple[FloatArray, Sequence[object] | None, Sequence[str]]:
    """(features, ids, names of the features) of a data frame all of whose columns but the ids are features."""
    found = frame_of(frame)
    named: Sequence[object]
    if isinstance(ids, str):
        if ids not in found.columns:
            raise InvalidInput(f"{SOURCE} has no column {ids!r}; it has {', '.join(map(repr, found.columns))}.")
        named, apart = found.columns[ids], {ids, *found.index}
    else:
        named, apart = found.labels if ids is None else ids, set(found.index)
    names = [name for name in found.columns if name not in apart]
    wrong = SOURCE + " has a column {0!r} that holds no numbers (for ids: sp.read_arms(frame, id={0!r}))"
    rows = [checks.real_numbers("", found.columns[name], wrong=wrong.format(name)) for name in names]
    held = [name for name in found.columns if name not in found.index]
    counting = next((name for name, cells in zip(names, rows, strict=True) if numbers_rows(held, name, cells)), None)
    if counting is not None:
        raise InvalidInput(
            f"{SOURCE} has the column {counting!r}, which looks like row numbers, and every column would be a feature. "
            "Drop it, or name the features: sp.read_arms(frame, features=[...])."
        )
    matrix = np.column_stack(rows) if rows else np.empty((len(found.labels), 0))
    return matrix, named, names if columns is None else columns


@record
class Arms:
    """The candidates among which we choose.

    Args:
        features: shape (K, D), finite floats, one row an arm; None or (K, 0) when the arms have no features. A
            read-only float32 or float64 array that nobody can write to (memory-mapped with mode "r", or frozen by its
            owner) is kept as it is and read in blocks; anything else becomes a float64 copy. float32 numbers are
            float64 numbers, and are computed with as such. Or a data frame (pandas, polars, pyarrow, whatever speaks
            the Arrow or the dataframe protocol), all of whose columns are features; `read_arms` chooses columns.
        ids: K names, each once, of any kind that has a text: they are stored as texts, and whoever measures gets the
            objects back. None: the index of a data frame, else "0".."K-1". Two that only look alike ("A" and "A ") are
            refused. A text is the column of a data frame that has them.
        columns: names of the D feature columns, for messages; may be None.
        preparation: what was done to the features ("standardize", "intercept"), in order; a norm bound refers to
            the result.
        costs: shape (K,), positive, what one measurement of each arm costs, in any currency; None: all alike. They
            change what is measured, never what is proved (docs/costs.md).
        segments: K texts, e.g. the region of each arm: a question is answered for each segment by itself, with one
            delta for all (docs/questions.md); None: there is one list.
        aside: why columns of a table that nobody named are no features, a sentence each: a policy that uses features
            refuses such arms, and no other policy is concerned. No part of what arms are: equal arms may differ in it.

    Raises:
        InvalidInput: no arm, wrong shape, features that are no numbers or not finite (the rows are named), ids that are
            repeated or look alike, costs that are not positive and finite, or not one segment an arm.
    """

    features: FloatArray
    ids: tuple[str, ...]
    columns: tuple[str, ...] | None
    preparation: tuple[str, ...]
    costs: FloatArray | None = None
    segments: tuple[str, ...] | None = None
    aside: tuple[str, ...] | None = field(default=None, compare=False, repr=False)
    objects: Originals | None = field(default=None, init=False, compare=False, repr=False)
    described: Described = field(default_factory=Described, init=False, compare=False, repr=False)  # for people

    def __init__(
        self,
        features: ArrayLike | None = None,
        ids: Sequence[object] | str | None = None,
        *,
        columns: Sequence[str] | None = None,
        preparation: Sequence[str] = (),
        costs: ArrayLike | None = None,
        segments: Sequence[object] | None = None,
        aside: Sequence[str] | None = None,
    ) -> None:
        if features is None:
            if ids is None:
                raise InvalidInput("arms need features, or ids, or both.")
            ids = ids if isinstance(ids, KnownIds) else checks.listed("ids", ids, cure=FEATURES_GO)
            features = np.empty((len(ids), 0))
        elif is_frame(features):
            features, ids, columns = _of_frame(features, ids, columns)
        matrix = _matrix(features)
        objects: Originals | None = None
        if ids is None or isinstance(ids, KnownIds):
            names = checked_ids(ids, matrix.shape[0])
        else:
            ids = checks.listed("ids", ids)
            names = checked_ids(ids, matrix.shape[0])
            checks.check_looks("an id", ids, names)
            objects = Originals.of(names, ids)
        _refuse_not_finite(matrix, names)
        set_fields(
            self,
            described=NOTHING_SAID,
            objects=objects,
            features=matrix,
            ids=names,
            aside=tuple(aside) if aside else None,
        )
        set_fields(self, columns=None if columns is None else checks.texts_of("columns", columns))
        set_fields(self, preparation=checks.texts_of("preparation", preparation))
        set_fields(self, costs=None if costs is None else checked_costs(costs, names))
        set_fields(self, segments=None if segments is None else checked_segments(segments, names))

    def with_objects(self, objects: Originals | None) -> Arms:
        """The same arms, whose ids were these objects."""
        arms = copy(self)
        object.__setattr__(arms, "objects", objects)
        return arms

    def with_description(self, described: Described) -> Arms:
        """The same arms, with what a table says of them for people; no part of what arms are."""
        if described and len(described.cells[0]) != self.num_arms:
            raise InvalidInput(f"{len(described.cells[0])} candidates are described, and there are {self.num_arms}.")
        arms = copy(self)
        object.__setattr__(arms, "described", described)
        return arms

    def only(self, members: IntArray) -> Arms:
        """The arms with these indices, without segments."""
        ids = KnownIds(self.ids[arm] for arm in members.tolist())
        costs = None if self.costs is None else self.costs[members]
        kept = Arms(self.features[members], ids, columns=self.columns, preparation=self.preparation, costs=costs)
        return kept.with_objects(self.objects).with_description(self.described.only(members))

    @property
    def num_arms(self) -> int:
        return len(self.ids)

    @property
    def features_said(self) -> str:
        """The features in a line: "3 features: x, ph, temp"; "" where there are none."""
        dim = self.features.shape[1]
        if not dim:
            return ""
        named = self.columns is not None and len(self.columns) == dim
        names = ", ".join(map(printable, islice(self.columns or (), SHOWN_COLUMNS))) if named else "without names"
        more = f" and {dim - SHOWN_COLUMNS} more" if named and dim > SHOWN_COLUMNS else ""
        return shortened(f"{dim} feature{'s' * (dim != 1)}: {names}", LONGEST - len(more)) + more

    def _repr_html_(self) -> str:
        """The first arms with their first features, for notebooks."""
        dim = self.features.shape[1]
        cut = dim > SHOWN_COLUMNS
        names = self.columns if self.columns is not None and len(self.columns) == dim else map(str, range(dim))
        head = ["id", *islice(names, SHOWN_COLUMNS), *["..."] * cut]
        pairs = zip(self.ids, self.features, strict=True)
        rows = ([name, *row[:SHOWN_COLUMNS].tolist(), *["..."] * cut] for name, row in pairs)
        return html_table(head, rows, f"{self.num_arms:,} arms, {dim:,} features", total=self.num_arms)


# --- What a user should know while a computation goes on: records of the logger "surepick", silent unless listened to.
#
# The command line prints them on standard error (`cli/output.py`); a program attaches a handler of its own.

LOG = logging.getLogger("surepick")
LOG.addHandler(logging.NullHandler())
LONG = 20.0  # seconds; what takes longer is announced


def announce(seconds: float, sentence: str) -> None:
    """Say that a computation will take long, if it will."""
    if seconds >= LONG:
        LOG.info("%s About %s to go.", sentence, spoken(seconds), extra={"seconds": seconds})


def spoken(seconds: float) -> str:
    """A duration in words, as exact as an estimate is: "40 s", "5 min", "2 h"."""
    if seconds < 100.0:
        return f"{10 * round(seconds / 10)} s"
    return f"{round(seconds / 60)} min" if seconds < 5400.0 else f"{round(seconds / 3600)} h"
