"""What is said of a study for people, beside what it promises: rows that are only added, the latest of a kind counts.

candidates    the columns of the table that it was made from
owner         who made it
title         what pages call it, in place of its name
archived      "yes" while it is kept out of lists
note          what its people want to remember
"""

import json
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from surepick.core.descriptions import NOTHING_SAID, Described
from surepick.core.records import encode, from_json
from surepick.core.values import storable_text
from surepick.errors import StorageError
from surepick.studies.logs.base import system_clock
from surepick.studies.logs.hash_chain import chained
from surepick.studies.logs.sql.engine import in_words
from surepick.studies.logs.sql.schema import description

CANDIDATES, OWNER = "candidates", "owner"
TITLE, ARCHIVED, NOTE = "title", "archived", "note"
SHORT = (OWNER, TITLE, ARCHIVED, NOTE)  # what a list of studies can show


def says(described: Described, owner: str) -> dict[str, str]:
    """What is stored when a study is made, by its kind."""
    found = {OWNER: owner} if owner else {}
    if described:
        found[CANDIDATES] = json.dumps(encode(described), ensure_ascii=False)
    return found


def add(connection: Connection, study: int, start: str, said: Mapping[str, str], source: str) -> None:
    """Store what somebody says of a study, by its kind; `start` is the hash of the study."""
    now = system_clock()
    rows = [
        {"study": study, "kind": kind, "value": storable_text(kind, value), "source": source, "at": now}
        for kind, value in said.items()
    ]
    if rows:
        connection.execute(sa.insert(description), [{**row, "hash": _hash(start, row)} for row in rows])


def said(engine: Engine, kinds: tuple[str, ...], studies: Mapping[int, str]) -> dict[int, dict[str, str]]:
    """The latest of these kinds, of studies (id -> hash)."""
    columns = description.c
    latest = sa.select(sa.func.max(columns.id)).where(columns.kind.in_(kinds)).group_by(columns.study, columns.kind)
    if len(studies) == 1:
        latest = latest.where(columns.study == next(iter(studies)))
    with in_words(engine.url), engine.connect() as connection:
        rows = connection.execute(sa.select(description).where(columns.id.in_(latest))).all()
    found: dict[int, dict[str, str]] = {study: {} for study in studies}
    for row in rows:
        if row.study not in studies:
            continue
        if row.hash != _hash(studies[row.study], row._mapping):
            raise StorageError(
                f"what is said of a study ({row.kind}) is not what was stored: the bytes do not match their hash. The "
                "database was altered or is damaged. Nothing was changed now; take the latest backup "
                "(docs/studies.md)."
            )
        found[row.study][row.kind] = row.value
    return found


def described_in(said_of_it: Mapping[str, str]) -> Described:
    """What the candidates are."""
    return from_json(Described, said_of_it[CANDIDATES]) if CANDIDATES in said_of_it else NOTHING_SAID


def _hash(start: str, row: Any) -> str:
    return chained(start, row["kind"], row["value"], row["source"], repr(float(row["at"])))
