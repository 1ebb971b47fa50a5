"""Studies that servers are tested with."""

import functools
import shutil
import sqlite3
import tempfile
import weakref
from contextlib import closing
from pathlib import Path

import surepick as sp
from surepick.studies.database import Database
from surepick_server.access.schema import make_tables
from surepick_server.access.tokens import Role, Tokens

ROLES = ("viewer", "measurer", "owner", "admin")
Headers = dict[str, dict[str, str]]


def make_study(url, name, ids=("a", "b", "c"), **more):
    """A study whose first round asks for a result of each candidate."""
    asked = {"epsilon": 0.5, "delta": 0.1, "noise": "subgaussian:1", "largest_batch": len(ids)}
    policy = sp.make_policy("certified-independent", sp.Arms(ids=[*ids]), **asked)
    return sp.create_study(url, name, policy, **more)


class Furnished:
    """A database with the studies "paint" and "other", made once, of which tests take copies.

    Args:
        people: whether somebody has a token: one of each role, and "foreign", who measures in the other study only.
    """

    def __init__(self, *, people: bool) -> None:
        folder = tempfile.mkdtemp(prefix="surepick-furnished-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.file = Path(folder) / "whole.db"
        url = f"sqlite:///{folder}/studies.db"
        for name in ("paint", "other"):
            make_study(url, name)
        database = Database(url)
        make_tables(database.engine, "a secret of tests")
        self.headers: Headers = {}
        if people:
            tokens = Tokens(database.engine)
            asked = {role: (f"a {role}", role, None) for role in ROLES} | {"foreign": ("foreign", "measurer", "other")}
            for who, (name, role, study) in asked.items():
                text, _ = tokens.make(name, Role[role], study=study)
                self.headers[who] = {"authorization": f"Bearer {text}"}
        database.engine.dispose()
        copied(Path(folder) / "studies.db", self.file)

    def copy(self, url: str) -> None:
        """Put a copy where no database is yet."""
        shutil.copy(self.file, url.removeprefix("sqlite:///"))


@functools.cache
def furnished(*, people: bool) -> Furnished:
    return Furnished(people=people)


def copied(source: Path, target: Path) -> None:
    """A copy of a SQLite database, with what stands in its write-ahead log."""
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(target)) as other:
        one.backup(other)
