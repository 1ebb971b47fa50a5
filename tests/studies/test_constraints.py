"""Studies whose measurements tell more than a reward: in memory and in both databases, by tables and by programs."""

import json
import shlex
import sys

import numpy as np
import pytest
from certified_files import resealed
from databases import first_on
from refusals import refused
from study_commands import surepick
from together import of_each

import surepick as sp
from surepick import environments
from surepick.certificates.verify import verify_certificate
from surepick.core.observations import Quantity
from surepick.errors import MeasurementFailed
from surepick.studies.audit import export_results
from surepick.studies.database import create_stored_study, open_stored_study
from surepick.tables.reading import read_table

ARMS = sp.Arms(ids=["a", "b", "c", "d"])
TRUTH = {"a": (3.0, 1.0), "b": (2.0, -1.0), "c": (1.0, -1.0), "d": (0.0, -2.0)}
BOUND = "heat<=0,tolerance=0.5,noise=subgaussian:0.3"


def policy(constraints=BOUND):
    asked = {"epsilon": 0.5, "delta": 0.05, "noise": "subgaussian:0.5", "constraints": constraints}
    return sp.make_policy("certified-independent", ARMS, **asked)


def row(name: str, number: int) -> tuple[float, float]:
    """The reward and the heat of a measurement; every fifth heat is missing."""
    rng = np.random.default_rng([number, ord(name)])
    reward, heat = TRUTH[name]
    return reward + rng.normal(0, 0.5), np.nan if number % 5 == 4 else heat + rng.normal(0, 0.3)


def finish(study: sp.Study) -> sp.Study:
    """Two workers measure until it stops; each result is told twice."""
    while not study.stopped:
        for worker in ("left", "right"):
            batch = study.lease(7, worker=worker)
            if batch is None or batch.total == 0:
                continue
            pulls = batch.keys()
            rows = [row(name, sum(map(ord, key))) for name, key in pulls]
            names, keys = zip(*pulls, strict=True)
            assert study.tell(names, rows, keys, worker=worker).counted == len(names)
            assert study.tell(names, rows, keys, worker=worker).repeated == len(names)
    return study


@first_on("postgresql")
def test_a_database_keeps_what_a_study_in_memory_has(database_url, tmp_path):
    stored = finish(create_stored_study(database_url, "soup", ARMS, policy()))
    free = finish(sp.Study(policy()))
    assert str(stored.certificate()) == str(free.certificate())
    assert stored.recommend() == "b"
    assert (
        "Whether heat was measured does not depend on its value, nor on the reward." in stored.certificate().assumptions
    )
    again = open_stored_study(database_url, "soup")
    assert again.certificate() == stored.certificate()
    assert verify_certificate(sp.write_certificate(again, tmp_path / "soup.json")).holds
    document = json.loads((tmp_path / "soup.json").read_text())
    totals = document["rounds"][0]["looks"][0]["quantities"][0]
    totals["sums"][0] += 1.0
    assert not verify_certificate(write(tmp_path / "other.json", document)).holds
    del document["rounds"][0]["looks"][0]["quantities"]
    assert not verify_certificate(write(tmp_path / "other.json", document)).holds


def write(path, document):
    path.write_text(json.dumps(resealed(document)))
    return path


def test_a_key_names_one_reward_and_one_quantity(stored_at):
    study = create_stored_study(stored_at, "soup", ARMS, policy())
    batch = study.lease(2, worker="left")
    (name, key), *_ = batch.keys()
    study.tell([name], [(1.0, 0.5)], [key])
    assert study.tell([name], [(1.0, 0.5)], [key]).repeated == 1
    refused(lambda: study.tell([name], [(1.0, 0.6)], [key]), "with another value")
    refused(lambda: study.tell([name], [(1.0, np.nan)], [key]), "with another value")


@of_each(
    ("rows", "words"),
    [
        ([1.0, 2.0], "gives 2 numbers: the reward, then heat"),
        ([(1.0, 2.0, 3.0)] * 2, "gives 2 numbers: the reward, then heat"),
        ([(np.nan, 1.0)] * 2, "not finite"),
        ([(1.0, np.inf)] * 2, "infinite"),
        ([("hot", 1.0)] * 2, "no rows of numbers"),
    ],
)
def test_rows_that_are_none_are_refused(rows, words):
    study = sp.Study(policy())
    study.ask()
    refused(lambda: study.tell(["a", "b"], rows), words)


def test_a_value_that_was_not_declared_is_refused():
    study = sp.Study(policy("heat<=0.2,tolerance=0.1,noise=bernoulli"))
    study.ask()
    refused(lambda: study.tell(["a"], [(1.0, 0.5)]), "outside what was declared", "heat")


def test_a_study_without_constraints_takes_rewards_alone():
    study = sp.Study(sp.make_policy("certified-independent", ARMS, epsilon=0.5, delta=0.05, noise="subgaussian:0.5"))
    study.ask()
    refused(lambda: study.tell(["a"], [(1.0, 0.5)]), "shape")


def test_totals_come_with_those_of_the_quantities():
    study = sp.Study(policy())
    study.ask()
    heat = quantity([2, 1], [-2.0, 1.0], [2.0, 1.0])
    study.tell_totals(["b", "a"], [2, 2], [4.0, 6.0], [8.0, 18.0], quantities=[heat])
    refused(lambda: study.tell_totals(["c"], [2], [2.0], [2.0]), "totals of heat")
    wrong = quantity([2], [-2.0], [0.1])
    refused(
        lambda: study.tell_totals(["c"], [2], [2.0], [2.0], quantities=[wrong]),
        "totals of heat: the totals of 1 arms have squares",
    )


def quantity(counts, sums, squares):
    return Quantity(np.array(counts), np.array(sums), np.array(squares))


def test_a_function_returns_a_row_for_each_id():
    def measure(ids):
        return [row(name, place) for place, name in enumerate(ids)]

    found = sp.find_best(["a", "b", "c", "d"], measure, epsilon=0.5, noise="subgaussian:0.5", constraints=BOUND)
    assert (found.best_arm, found.verdict) == ("b", "certified")
    refused(
        lambda: sp.find_best(
            ["a", "b"], lambda ids: [1.0] * len(ids), epsilon=0.5, noise="bernoulli", constraints=BOUND
        ),
        "a row for each id: the reward, then heat",
    )


def test_a_table_of_results_has_a_column_for_each_constraint(stored_at, tmp_path):
    arms = tmp_path / "arms.csv"
    arms.write_text("id\n" + "\n".join(TRUTH))
    asked = ("--arms", arms, "--id", "id", "--noise", "subgaussian:0.5", "--epsilon", 0.5, "--constraint", BOUND)
    code, said, _ = surepick("create", stored_at, "soup", *asked)
    assert code == 0
    assert "best of those with heat at most 0?" in said.replace("\n", " ")
    table, number = tmp_path / "todo.csv", 0
    while surepick("ask", stored_at, "soup", "--out", table)[0] == 0 and table.exists():
        rows = read_table(table)
        assert [*rows.columns] == ["id", "key", "reward", "heat"]
        lines = ["id,key,reward,heat"]
        for name, key in zip(rows.text("id"), rows.text("key"), strict=True):
            number += 1
            reward, heat = row(name, number)
            lines.append(f"{name},{key},{reward},{'' if np.isnan(heat) else heat}")
        table.write_text("\n".join(lines))
        code, _, failed = surepick("tell", stored_at, "soup", table)
        assert code == 0, failed
        table.unlink()
    study = open_stored_study(stored_at, "soup")
    assert study.certificate().verdict == "certified"
    assert study.recommend() == "b"
    exported = tmp_path / "all.csv"
    export_results(study, exported)
    assert "heat" in read_table(exported).columns
    lacking = tmp_path / "lacking.csv"
    lacking.write_text("id,reward\na,1\n")
    refused(lambda: surepick("tell", stored_at, "soup", lacking), "no column 'heat'")


@pytest.mark.parametrize("flag", ["--measure", "--measure-batch"])
def test_a_program_prints_the_reward_and_the_quantities(flag, sqlite_url, tmp_path):
    create_stored_study(sqlite_url, "soup", ARMS, policy())
    program = tmp_path / "program.py"
    program.write_text(
        f"import sys\ntruth = {TRUTH!r}\n"
        "for name in sys.argv[1:] or [line.strip() for line in sys.stdin]:\n"
        "    print(*truth[name])\n"
    )
    words = f"{shlex.quote(sys.executable)} -ISE {shlex.quote(str(program))}" + (" {id}" if flag == "--measure" else "")
    code, _, failed = surepick("run-study", sqlite_url, "soup", flag, words)
    assert code == 0, failed
    assert open_stored_study(sqlite_url, "soup").recommend() == "b"
    create_stored_study(sqlite_url, "stew", ARMS, policy())
    program.write_text("import sys\nfor name in sys.argv[1:] or sys.stdin: print(1.5)\n")
    said = "2 numbers: the reward, then what the constraints are on"
    refused(lambda: surepick("run-study", sqlite_url, "stew", flag, words), said, kind=MeasurementFailed)


def test_a_recorded_table_has_quantities_with_gaps(tmp_path):
    table = tmp_path / "soup.csv"
    table.write_text("id,taste,heat\na,5,2\na,6,\nb,4,-1\nb,4,-2\nc,1,-1\n")
    world = environments.table(table, "id", "taste", noise=sp.SubGaussian(1.0), beside=["heat"])
    assert world.quantity_means.tolist() == [[2.0], [-1.5], [-1.0]]
    assert world.arms.columns in (None, ())
    seen = world.pull(np.array([400, 3, 0]), np.random.default_rng(0))
    (heat,) = seen.quantities
    assert 100 < heat.counts[0] < 300
    assert heat.sums[0] == 2.0 * heat.counts[0]
    assert heat.counts[1:].tolist() == [3, 0]


def test_rows_of_different_lengths_are_refused():
    def measure(ids):
        return [(1.0, 2.0)] * (len(ids) - 1) + [(1.0,)]

    asked = {"epsilon": 0.5, "noise": "subgaussian:0.5", "constraints": BOUND}
    refused(lambda: sp.find_best(["a", "b"], measure, **asked), "different lengths")


def test_a_recorded_quantity_that_was_not_declared_is_refused(tmp_path):
    table = tmp_path / "soup.csv"
    table.write_text("id,taste,heat\na,5,2\nb,4,-1\n")
    world = environments.table(table, "id", "taste", noise=sp.SubGaussian(1.0), beside=["heat"])
    asked = {
        "epsilon": 0.5,
        "delta": 0.1,
        "noise": "subgaussian:1",
        "constraints": "heat<=1,tolerance=1,noise=bernoulli",
    }
    made = sp.make_policy("certified-independent", world.arms, **asked)
    refused(lambda: sp.simulate(made, world), "outside bernoulli", "heat")


def test_nobody_is_named_where_nobody_keeps_the_bound():
    def measure(ids):
        return [(TRUTH[name][0], 5.0) for name in ids]

    found = sp.find_best(["a", "b"], measure, epsilon=0.5, noise="subgaussian:0.5", constraints="heat<=0")
    assert (found.best_arm, found.verdict) == (None, "certified")
    assert found.certificate.reason == "No candidate keeps all bounds."
