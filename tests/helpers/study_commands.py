"""Commands about studies, the tables that they read and write, and the folder that they are run in."""

import csv
import json
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
from typer.testing import CliRunner
from workbooks import csv_rows

import surepick as sp
from surepick.certificates.document import certificate_document
from surepick.cli.app import app

IDS = ("a b", "c,d", 'e"f', "é/ü", "-x $(y)")


MEANS = dict(zip(IDS, (0.9, 0.2, 0.55, 0.1, 0.4), strict=True))


NOISE, EPSILON = "bounded:0:1", 0.8
PLANS_OF_EVERYBODY = ("--option", "batch_size=5")  # the first plan asks for a result of every candidate


FORMATS = ("csv", "parquet", "jsonl")


@dataclass(frozen=True)
class Lab:
    """A database, a folder for tables, and the study "paint" in it."""

    url: str
    folder: Path

    def __call__(self, command, *words) -> tuple[int, str, str]:
        """(exit code, standard output, standard error) of a command on the study, in this process."""
        return surepick(command, self.url, "paint", *words)

    def done(self, command, *words) -> str:
        """The standard output of a command that ends well."""
        code, output, _ = self(command, *words)
        assert code == 0, output
        return output

    def json(self, command, *words, code=0) -> dict:
        """The answer of a command that ends with this code."""
        found, output, _ = self(command, *words, "--format", "json")
        assert found == code
        return json.loads(output)

    def create(self, *options, ids=IDS) -> str:
        arms = write_rows(self.folder / "arms.csv", [{"sku": name, "x": place} for place, name in enumerate(ids)])
        words = ("--arms", arms, "--id", "sku", "--noise", NOISE, "--epsilon", EPSILON)
        usual = () if "--policy" in options else PLANS_OF_EVERYBODY
        return self.done("create", *words, *usual, *options)

    def told(self, rows, *words, name="results.jsonl", code=0) -> dict:
        """The receipt of these rows."""
        return self.json("tell", write_rows(self.folder / name, rows), *words, code=code)

    def filled(self, name="todo.csv", *words, rewards=MEANS) -> Path:
        """A file of leased measurements with the rewards filled in."""
        path = self.folder / name
        self.done("ask", "--out", path, *words)
        return write_rows(path, [row | {"reward": rewards[row["id"]]} for row in read_rows(path)])


def surepick(*arguments) -> tuple[int, str, str]:
    words = [str(argument) for argument in arguments]
    result = CliRunner(env={"COLUMNS": "80", "TERM": "dumb"}).invoke(app, words, catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


def read_rows(path: Path) -> list[dict]:
    """A table read by other means than the library's."""
    if path.suffix == ".parquet":
        return pyarrow.parquet.read_table(path).to_pylist()
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return csv_rows(path)


def write_rows(path: Path, rows: list[dict]) -> Path:
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    else:
        with path.open("w", encoding="utf-8", newline="") as lines:
            table = csv.DictWriter(lines, rows[0])
            table.writeheader()
            table.writerows(rows)
    return path


def by_hand(study_id: str) -> dict:
    """The certificate of the same study in memory."""
    arms = sp.Arms([[]] * len(IDS), IDS, columns=())  # nobody looks at the column of numbers
    asked = {"epsilon": EPSILON, "delta": 0.05, "noise": sp.Bounded(0, 1), "batch_size": 5}
    study = sp.Study(sp.make_policy("certified-independent", arms, **asked), study_id=study_id)
    while (plan := study.ask()) is not None:
        for name, pulls in plan.table():
            study.tell([name] * pulls, [MEANS[name]] * pulls)
    return certificate_document(study, "paint")
