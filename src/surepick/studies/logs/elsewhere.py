"""Where a study is kept, as far as others have to know."""

from __future__ import annotations

from typing import Any, Protocol


class Elsewhere(Protocol):
    """Whoever has the log of a study that is not here; the documents that need all of it are made there."""

    def certificate(self, name: str | None) -> dict[str, Any]:
        """The certificate; all decisions are computed again first.

        Args:
            name: what the study is called in it.
        """

    def report(self, name: str | None, most: int) -> bytes:
        """The page about the study.

        Args:
            name: what the study is called in it.
            most: with more candidates there is no forecast.
        """

    def export(self, kind: str) -> tuple[bytes, int]:
        """(the file, its rows) of the results of the closed rounds.

        Args:
            kind: "csv", "jsonl" or "parquet".
        """


class Kept:
    """What a study says of where it is kept."""

    elsewhere: Elsewhere | None = None  # None: its log is here

    def worker_name(self, process: str) -> str:
        """Under which name a process measures, if nobody gave it one.

        Args:
            process: what the process calls itself, e.g. "ann@lab".
        """
        return process
