"""A study of three candidates, and a program that measures them."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import sqlalchemy as sa
from typer.testing import CliRunner

import surepick as sp
from surepick.cli.answers import certificate_json
from surepick.cli.app import app
from surepick.studies.database import open_stored_study

MEANS = {"a": 0.9, "b": 0.25, "c": 0.5}
PROGRAM = """import os, sys, time
class Here:  # the folder; a process in which nobody asks for a file begins in half the time
    def __truediv__(self, name): return self.path() / name
    def glob(self, pattern): return self.path().glob(pattern)
    def path(self):
        from pathlib import Path
        return Path(sys.argv[0]).parent
here = Here()
if sys.argv[1] == "--":
    del sys.argv[1]
name, pulls = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1
def wait_for(condition):
    deadline = time.monotonic() + 30
    while not condition():
        if time.monotonic() > deadline:
            sys.exit("waited for 30 s in vain")
        time.sleep(0.01)
"""
ANSWER = f"print(*[{MEANS}[name] + 0.05 * (-1) ** pull for pull in range(pulls)], sep=chr(10))\n"


def rewards(name: str, pulls: int) -> list[float]:
    """What the program prints: a function of its arguments alone."""
    return [MEANS[name] + 0.05 * (-1) ** pull for pull in range(pulls)]


@dataclass
class Lab:
    """A study of three candidates, and a program to measure them."""

    url: str
    folder: Path
    ids: tuple[str, ...] = tuple(MEANS)
    policy: str = "certified-independent"
    options: dict | None = None  # None: the first round asks for a result of each candidate

    def made(self) -> tuple:
        arms = sp.Arms(np.eye(len(self.ids)), self.ids)
        usual = {"epsilon": 0.8, "delta": 0.05, "noise": sp.Bounded(0, 1), "largest_batch": len(self.ids)}
        return arms, sp.make_policy(self.policy, arms, **(self.options or usual))

    def create(self) -> None:
        sp.create_study(self.url, "x", *self.made())

    def program(self, body: str = ANSWER) -> Path:
        path = self.folder / "measure.py"
        path.write_text(PROGRAM + body)
        return path

    def words(self, *options, arguments="{id} {pulls}") -> list[str]:
        measure = f"{sys.executable} -ISE {self.folder / 'measure.py'} {arguments}"
        return ["run-study", self.url, "x", "--measure", measure, *map(str, options)]

    def run(self, *options, arguments="{id} {pulls}") -> tuple[int, str, str]:
        """(exit code, standard output, standard error), in this process."""
        result = CliRunner().invoke(app, self.words(*options, arguments=arguments), catch_exceptions=False)
        return result.exit_code, result.stdout, result.stderr

    def certificate(self, *options, arguments="{id} {pulls}", code=0) -> dict:
        found, output, errors = self.run(*options, "--format", "json", arguments=arguments)
        assert found == code, errors
        return json.loads(output)

    def stored(self) -> list[tuple[str, float, str]]:
        """(key, reward, source) of the results that count."""
        with open_stored_study(self.url, "x").log._engine.connect() as connection:
            question = "SELECT key, sum, source FROM observation WHERE status = 'counted' ORDER BY id"
            return [tuple(row) for row in connection.execute(sa.text(question))]

    def by_hand(self, value=rewards) -> dict:
        """The certificate of the same study told by hand, in memory."""
        study = sp.Study(*self.made())
        while (plan := study.ask()) is not None:
            for name, pulls in plan.table():
                study.tell([name] * pulls, value(name, pulls))
        return {"study": "x", **certificate_json(study.certificate(), study.progress())}
