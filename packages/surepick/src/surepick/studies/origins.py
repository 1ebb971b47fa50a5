"""A study that was made of a finished table: which one, and the order of its rows, as its id says, which is registered.

id = "table:" + 32 digits of the table's SHA-256 : its rows : seed of their order : who chose it : order : 16 digits
"""

from __future__ import annotations

import re
import secrets
from typing import Literal, cast

from surepick.core.random_streams import Chooser
from surepick.core.records import record
from surepick.errors import InvalidInput

Order = Literal["drawn", "time", "items"]
DIGITS = 32  # of the table's SHA-256
MOST_SEED = 10**19
ID = re.compile("table:([0-9a-f]{32}):([0-9]{1,8}):(0|[1-9][0-9]{0,18}):(program|user):(drawn|time|items):[0-9a-f]{16}")
WHO = {"program": "drawn by the program", "user": "given by whoever asked"}


@record
class TableOrigin:
    """The table that a study begins with."""

    digest: str  # of what it holds, in no order
    rows: int
    seed: int  # of the order of its rows
    seed_by: Chooser
    order: Order  # what decides it: the seed; time, and the seed among equal times; or the study's order of test items

    @staticmethod
    def of(study_id: str) -> TableOrigin | None:
        """That of a study; None: it was made without a table."""
        found = ID.fullmatch(study_id)
        if found is None:
            return None
        digest, rows, seed, by, order = found.groups()
        return TableOrigin(digest, int(rows), int(seed), cast("Chooser", by), cast("Order", order))

    def study_id(self) -> str:
        """An id for a new study."""
        if self.seed >= MOST_SEED:
            raise InvalidInput(f"the seed of a study that goes on with a table is below {MOST_SEED}; leave it out.")
        parts = (self.digest, self.rows, self.seed, self.seed_by, self.order, secrets.token_hex(8))
        return ":".join(["table", *map(str, parts)])

    def sentence(self, pulls: int) -> str:
        """What is assumed of the rows among so many measurements."""
        drawn = f"an order drawn with seed {self.seed}, {WHO[self.seed_by]}"
        how = {
            "drawn": f"told in {drawn}",
            "time": f"told in the order of time, and rows of one time in {drawn}",
            "items": "told in the order in which the study asks for items",
        }[self.order]
        return (
            f"At most {min(self.rows, pulls):,} of its measurements are rows of a table (SHA-256 "
            f"{self.digest[:16]}..., {self.rows:,} rows) whose plan did not look at values, {how}; epsilon, delta, the "
            "noise, and which table it is, were chosen before anybody looked at its values."
        )
