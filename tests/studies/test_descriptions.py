"""What candidates are, for people: kept beside a study, shown where somebody measures, and part of no promise."""

import csv
import json

import pytest
import sqlalchemy as sa
from fuzz_commands import run

import surepick as sp
from surepick.core.descriptions import Described, Scale
from surepick.errors import UnusualResult
from surepick.tables import described as rules

SCREEN = "Reaction,Ligand,Base,Yield\nrxn-1,XPhos,K2CO3,60\nrxn-2,SPhos,,70\nrxn-3,SPhos,K3PO4,80\n"
SAID = {"epsilon": 5.0, "noise": "subgaussian:3"}


@pytest.fixture
def screen(tmp_path):
    path = tmp_path / "screen.csv"
    path.write_text(SCREEN)
    return path


def surepick(*words):
    ended = run([str(word) for word in words])
    return ended.code, ended.out, ended.err


def test_arms_of_a_table_say_what_they_are_and_are_the_same_arms(screen):
    arms = sp.read_arms(screen, "Reaction", "none", reward="Yield")
    assert arms.described == Described(("Ligand", "Base"), (("XPhos", "SPhos", "SPhos"), ("K2CO3", "", "K3PO4")))
    assert (arms.described.line(0), arms.described.line(1)) == ("XPhos · K2CO3", "SPhos")
    bare = sp.read_arms(screen, "Reaction", "none", reward="Yield", describe="none")
    assert not bare.described
    assert arms == bare
    assert sp.read_arms(screen, "Reaction", "none", describe="Base, Yield").described.columns == ("Base", "Yield")
    with pytest.raises(sp.InvalidInput, match="Solvent"):
        sp.read_arms(screen, "Reaction", describe="Solvent")


def test_what_differs_between_rows_of_a_candidate_says_nothing_of_it(tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text("id,ligand,day\na,X,1\nb,Y,1\na,X,2\n")
    from surepick.tables import grouped_arms, read_table

    found = grouped_arms(read_table(path), "id", []).arms.described
    assert found == Described(("ligand",), (("X", "Y"),))


def test_long_tables_keep_as_many_columns_as_fit(screen, monkeypatch):
    monkeypatch.setattr(rules, "MOST_CELLS", 4)
    assert sp.read_arms(screen, "Reaction", "none").described.columns == ("Ligand",)
    monkeypatch.setattr(rules, "MOST_CELLS", 2)
    assert not sp.read_arms(screen, "Reaction", "none").described


def test_a_parquet_file_says_the_same(screen, tmp_path):
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "screen.parquet"
    pandas.read_csv(screen).fillna("").to_parquet(path)
    told = {"reward": "Yield", "features": "none"}
    assert sp.read_arms(path, "Reaction", **told).described == sp.read_arms(screen, "Reaction", **told).described


def test_the_registration_does_not_know_of_it(screen, database_url):
    codes = set()
    for name, describe in (("a", None), ("b", "none")):
        arms = sp.read_arms(screen, "Reaction", "none", reward="Yield", describe=describe)
        scale = Scale("%", 0.0, 100.0) if describe is None else Scale()
        made = sp.create_study(
            database_url,
            name,
            arms,
            "certified-independent",
            study_id="one",
            scale=scale,
            reward_column="Yield",
            **SAID,
        )
        codes.add(made.registration)
        opened = sp.open_study(database_url, name)
        assert opened.described == arms.described
        assert opened.scale == scale
        assert "described" not in json.dumps(made.certificate().reason)
    assert len(codes) == 1


def test_a_description_that_was_altered_is_refused(screen, sqlite_url):
    arms = sp.read_arms(screen, "Reaction", "none", reward="Yield")
    sp.create_study(sqlite_url, "a", arms, "certified-independent", **SAID)
    engine = sa.create_engine(sqlite_url)
    with engine.begin() as connection:
        changed = connection.execute(sa.text("UPDATE description SET value = replace(value, 'XPhos', 'YPhos')"))
        assert changed.rowcount == 1
    engine.dispose()
    with pytest.raises(sp.StorageError, match="what is said of a study"):
        assert sp.open_study(sqlite_url, "a").described


def test_ask_shows_what_to_measure_and_its_file_is_told(screen, sqlite_url, tmp_path):
    made = surepick(
        *("create", sqlite_url, "s", "--arms", screen, "--id", "Reaction", "--reward", "Yield", "--epsilon", 5),
        *("--noise", "subgaussian:3", "--unit", "%", "--limits", "0:100"),
    )
    assert made[0] == 0, made
    file = tmp_path / "todo.csv"
    code, output, errors = surepick("ask", sqlite_url, "s", "--worker", "ann", "--out", file)
    assert code == 0, errors
    assert all(word in output for word in ("Ligand", "Base", "XPhos", "K3PO4"))
    with file.open() as text:
        rows = list(csv.DictReader(text))
    assert list(rows[0]) == ["id", "Ligand", "Base", "key", "reward"]
    assert {row["id"]: (row["Ligand"], row["Base"]) for row in rows}["rxn-3"] == ("SPhos", "K3PO4")
    for place, row in enumerate(rows):
        row["reward"] = "7200" if place == 0 else "72"
    write(file, rows)
    code, _, errors = surepick("tell", sqlite_url, "s", file)
    assert code != 0
    assert "7200 of 'rxn-1' stands out: no result is above 100" in errors
    rows[0]["reward"] = "60"
    write(file, rows)
    assert surepick("tell", sqlite_url, "s", file)[0] == 0


def write(file, rows):
    with file.open("w", newline="") as text:
        writer = csv.DictWriter(text, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def test_nothing_is_said_where_nobody_wants_it(screen, sqlite_url):
    words = ("create", sqlite_url, "s", "--arms", screen, "--id", "Reaction", "--describe", "none", "--epsilon", 5)
    assert surepick(*words)[0] == 0
    _, output, _ = surepick("ask", sqlite_url, "s", "--format", "json")
    assert all(set(row) == {"id", "pulls"} for row in json.loads(output)["table"])


@pytest.mark.parametrize("limits", ["0", "high:low", "5:1", ":", "1:1"])
def test_limits_that_are_none_are_refused(screen, sqlite_url, limits):
    words = ("create", sqlite_url, "s", "--arms", screen, "--epsilon", 5, f"--limits={limits}")
    code, _, errors = surepick(*words)
    assert code != 0
    assert "limit" in errors


def test_a_confirmed_result_beyond_the_limits_counts_and_the_certificate_says_so(sqlite_url):
    arms, noise = sp.Arms(ids=["a", "b"]), "bounded:0:10"
    study = sp.create_study(
        sqlite_url, "s", arms, "certified-independent", epsilon=1.0, noise=noise, scale=Scale(low=2.0)
    )
    batch = study.lease(worker="ann")
    with pytest.raises(UnusualResult, match="no result is below 2") as caught:
        study.tell(batch, [1.0] + [5.0] * (batch.total - 1))
    assert caught.value.rows == (0,)
    study.tell(batch, [1.0] + [5.0] * (batch.total - 1), accept_unusual=True)
    assert "1 unusual result" in " ".join(study.certificate().assumptions)


@pytest.mark.parametrize("kind", ["memory", "database"])
def test_who_told_how_much_is_counted_as_its_history_says(kind, sqlite_url):
    """Also of what was undone, corrected by somebody else, or came late."""
    arms = sp.Arms(ids=["a", "b", "c"])
    policy = sp.make_policy("certified-independent", arms, epsilon=0.2, delta=0.1, noise="subgaussian:1")
    study = sp.Study(policy) if kind == "memory" else sp.create_study(sqlite_url, "s", policy)
    batch = study.ask()
    ids = batch.pulls()
    keys = [f"k{place}" for place in range(len(ids))]
    study.tell(ids[:2], [0.1, 0.2], keys[:2], worker="ann")
    study.undo(["k1"], worker="ann")
    study.tell(ids[1:], [0.1] * (len(ids) - 1), keys[1:], worker="bob")
    study.tell(["a"], [0.3], ["late"], worker="eve", plan=1)
    study.correct("k0", 0.15, worker="ann", reason="a slip")
    study.ask()
    study.tell_prior(["a"], [0.3], ["before"], worker="eve")
    judged = study.progress().judged
    counted: dict[tuple[str, int, str], int] = {}
    for one in study.log.history(judged):
        if one.status not in ("undone", "corrected"):
            who = (one.status, one.plan, one.results.source)
            counted[who] = counted.get(who, 0) + int(one.results.pulls.sum())
    assert {(one.status, one.plan, one.source): one.pulls for one in study.log.tellers(judged)} == counted
    assert {one.source for one in study.log.tellers(judged)} == {"ann", "bob", "eve"}


def test_report_and_notebooks_show_what_the_candidates_are(screen, tmp_path):
    arms = sp.read_arms(screen, "Reaction", "none", reward="Yield")
    means = {"rxn-1": 60.0, "rxn-2": 70.0, "rxn-3": 80.0}
    result = sp.find_best(arms, lambda ids: [means[one] for one in ids], epsilon=5.0, noise="subgaussian:3")
    page = sp.write_report(result.study, tmp_path / "report.html").read_text()
    for shown in (page, result._repr_html_(), result.study._repr_html_()):
        assert "SPhos · K3PO4" in shown
    assert "SPhos, K3PO4" in page
