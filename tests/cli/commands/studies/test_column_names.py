"""The names of the columns that were said at `create` hold for results; and which columns a study looks at."""

import pytest
from fuzz_commands import run

import surepick as sp


def surepick(*words):
    """(exit code, standard output, standard error) of a command, as a user meets it."""
    ended = run([str(word) for word in words])
    return ended.code, ended.out, ended.err


SAID = ("--noise", "subgaussian:3", "--epsilon", "5")


def make(lab, text, *words, name="paint", code=0):
    path = lab.folder / f"{name}.csv"
    path.write_text(text)
    ended, output, errors = surepick("create", lab.url, name, "--arms", path, *words, *SAID)
    assert ended == code, errors
    return output + errors


def write(lab, text):
    path = lab.folder / "told.csv"
    path.write_text(text)
    return path


def test_tell_knows_the_columns_of_create(lab):
    made = make(lab, "Reaction,Yield\nA,\nB,\n", "--id", "Reaction", "--reward", "Yield")
    assert "2 candidates" in made
    assert "2 results counted" in lab.done("tell", write(lab, "Reaction,Yield\nA,66\nB,50\n"))
    assert "1 result kept apart" in lab.done("tell", write(lab, "id,reward\nB,60\n"), "--as-prior")
    assert "1 result kept apart" in lab.done("tell", write(lab, "Reaction,reward\nA,65\n"), "--as-prior")


def test_several_id_columns(lab):
    make(lab, "metal,base\nPd,K\nNi,K\n", "--id", "metal,base")
    assert "1 result counted" in lab.done("tell", write(lab, "metal,base,reward\nPd,K,66\n"))
    assert "1 result counted" in lab.done("tell", write(lab, "id,reward\nNi/K,50\n"))


def test_names_are_no_part_of_the_registration(lab):
    policy = sp.make_policy(
        "certified-independent", sp.Arms(ids=["A", "B"]), epsilon=5, delta=0.05, noise="bounded:0:9"
    )
    codes = set()
    for name, words in (("one", {"id_column": "Reaction", "reward_column": "Yield"}), ("two", {})):
        made = sp.create_study(lab.url, name, policy, study_id="x", **words)
        codes.add(made.registration)
        made.log._engine.dispose()
    assert len(codes) == 1


def test_results_in_the_table_of_the_candidates_are_no_feature(lab):
    made = make(lab, "id,x,y\nA,1,5\nB,2,9\n", "--id", "id", "--reward", "y", "--norm-bound", "9")
    assert "1 feature: x\n" in made


def test_a_percentage_is_answered_with_the_option(paint, refused):
    for cells in ("66 %", "66%,0.5", "0.5,66 % "):
        rows = "".join(f"a b,{cell}\n" for cell in cells.split(","))
        said = refused("tell", paint.url, "paint", write(paint, f"id,reward\n{rows}"))
        assert "give --percent" in said
    assert "1 result counted" in paint.done("tell", write(paint, "id,reward\na b,66 %\n"), "--percent")


def test_an_id_of_another_spelling_is_answered_with_the_one_that_is_there(lab, refused):
    make(lab, "id\n1\n2\n", "--id", "id")
    assert "the first is '1.0'. Did you mean '1'?" in refused(
        "tell", lab.url, "paint", write(lab, "id,reward\n1.0,5\n")
    )
    assert "Did you mean 'Reward'?" in refused("tell", lab.url, "paint", write(lab, "id,Reward\n1,5\n"))
    assert "Did you mean 'paint'?" in refused("status", lab.url, "paimt")


# which columns a study looks at

LIGANDS = "id,mass,lab,run\nL1,100.5,a,1\nL2,,b,2\nL3,,c,3\n"


@pytest.mark.parametrize("words", [(), ("--drop-missing",), ("--features", "none"), ("--standardize",)])
def test_a_study_without_features_looks_at_no_column_of_them(lab, world, words):
    text = (world / "descriptor_blank.csv").read_text()
    made = make(lab, text, "--id", "id", *words)
    assert "3 candidates, policy certified-independent" in made
    assert "note: " not in made
    certificate = lab.folder / "c.json"
    lab("certificate", "--out", certificate)
    verified, output, errors = surepick("verify", certificate, "--arms", lab.folder / "paint.csv", "--id", "id")
    assert verified == 0, output + errors


def test_named_features_that_nobody_uses_are_said(lab):
    assert "note: --features mass is not used" in make(lab, LIGANDS, "--id", "id", "--features", "mass")


def test_candidates_without_a_used_feature_are_named(lab):
    used = ("--id", "id", "--norm-bound", "2")
    assert "2 of 3 rows miss a cell (row 3: 'mass' is empty" in make(lab, LIGANDS, *used, code=2)
    assert "candidates 'L2', 'L3' have no row left" in make(lab, LIGANDS, *used, "--drop-missing", code=2)
    made = make(lab, LIGANDS, *used, "--features", "mass", "--drop-candidates")
    assert "Candidates 'L2', 'L3' have no row left and are not compared." in made
    assert "1 feature: mass\n" in made
    assert "3 candidates" in make(lab, LIGANDS, *used, "--features", "run", name="other")


@pytest.mark.parametrize(("name", "column"), [("index.csv", "column 1"), ("index_unnamed.csv", "Unnamed: 0")])
def test_numbers_of_rows_are_no_features_of_a_study(lab, world, name, column):
    made = make(lab, (world / name).read_text(), "--id", "id", "--norm-bound", "2")
    assert f"column '{column}' looks like row numbers, and is no feature" in made
    assert "1 feature: x\n" in made
    named = make(
        lab, (world / name).read_text(), "--id", "id", "--norm-bound", "2", "--features", f"{column},x", name="b"
    )
    assert f"2 features: {column}, x\n" in named


@pytest.mark.parametrize("name", ["run_number.csv", "blank_elsewhere.csv"])
@pytest.mark.parametrize("words", [(), ("--features", "none"), ("--drop-missing",)])
def test_a_rehearsal_without_features_looks_at_no_column_of_them(world, name, words):
    asked = ("--id", "id", "--reward", "y", "--noise", "subgaussian:0.3", "--epsilon", "0.5")
    code, output, errors = surepick("run", world / name, *asked, *words)
    assert (code, "note: " in errors) == (0, False)
    assert "Recommended: b   certified" in output
    code, output, errors = surepick("run", world / name, *asked, "--norm-bound", "5")
    assert code == 2


def test_a_candidate_that_would_go_is_named_by_run(world):
    asked = ("--id", "id", "--reward", "y", "--noise", "subgaussian:0.3", "--epsilon", "0.5")
    code, _, errors = surepick("run", world / "always_missing.csv", *asked, "--drop-missing")
    assert (code, "candidate 'b' has no row left" in errors) == (2, True)
    code, output, errors = surepick("run", world / "always_missing.csv", *asked, "--drop-candidates")
    assert "Candidate 'b' has no row left and is not compared." in errors
    assert "Recommended: c   certified" in output
