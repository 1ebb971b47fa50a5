"""What columns of tables are called: those of a study's ids and results, and those that only number the rows."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from surepick.core.arrays import FloatArray, record
from surepick.core.validation import storable_text
from surepick.errors import InvalidInput

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
    """The names that were said when a study was made; no part of what it promises.

    Args:
        id: the column of the ids, "a,b" for several; None: "id".
        reward: the column of the results; None: "reward".

    Raises:
        InvalidInput: one is empty, or no text that can be stored.
    """

    id: str | None = None
    reward: str | None = None

    def __post_init__(self) -> None:
        for what, name in (("id", self.id), ("results", self.reward)):
            if name is None:
                continue
            if not isinstance(name, str) or not name.strip():
                raise InvalidInput(f"the name of the column of the {what} is empty; name it, or leave it out.")
            storable_text(f"the name of the column of the {what}", name)

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
    """Whether a column among those of these names is no feature unless somebody names it as one.

    Args:
        names: of all columns of the table.
        name: of the column.
        values: its cells as numbers, shape (rows,), NaN where one is none; of no matter unless `may_count(name)`.
    """
    return is_nameless(names, name) or (may_count(name) and counts(values))
