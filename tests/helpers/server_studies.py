"""Studies that servers are tested with."""

import sqlite3
from contextlib import closing
from pathlib import Path

import surepick as sp


def make_study(url, name, ids=("a", "b", "c"), **more):
    policy = sp.make_policy("certified-independent", sp.Arms(ids=[*ids]), epsilon=0.5, delta=0.1, noise="subgaussian:1")
    return sp.create_study(url, name, policy, **more)


def copied(source: Path, target: Path) -> None:
    """A copy of a SQLite database, with what stands in its write-ahead log."""
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as other:
        one.backup(other)
