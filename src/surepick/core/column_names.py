"""What the columns of a study's tables are called: of the ids, and of the results."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from surepick.core.arrays import record
from surepick.core.validation import storable_text
from surepick.errors import InvalidInput

ID, REWARD = "id", "reward"  # the usual names, which are always understood


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

    def written(self, taken: Collection[str]) -> tuple[str, str]:
        """(column of the ids, column of the results) of a table that we write: the study's own names, where it has one
        of each that no other column has.

        Args:
            taken: names of the other columns.
        """
        mine, results = self.id or ID, self.reward or REWARD
        mine = ID if "," in mine or mine in taken else mine
        return mine, REWARD if results in taken or results == mine else results

    def id_in(self, columns: Collection[str]) -> str:
        """The column (or "a,b") of the ids in a table with these columns: the study's own name if it is there."""
        name = self.id or ID
        return name if name in columns or all(part.strip() in columns for part in name.split(",")) else ID

    def reward_in(self, columns: Collection[str]) -> str:
        """The column of the results in a table with these columns: the study's own name if it is there."""
        return str(self.reward) if self.reward in columns else REWARD
