"""`run` says what the library says: in words, as JSON, and as a table."""

import json
import re

import numpy as np
import pytest
from command_line import ANSWER, ROUND, surepick

import surepick as sp

BARREL = ("--id", "n,theta,r,t", "--reward", "toughness", "--noise", "subgaussian:19", "--epsilon", "10")


def rehearse(table, *arguments):
    given = {"--id": "colour", "--reward": "gloss", "--noise": "bounded:0:1", "--epsilon": 0.2}
    words = [word for option, value in given.items() if option not in arguments for word in (option, value)]
    return surepick("run", table, *words, *arguments)


def picture(output: str) -> list[str]:
    """The lines between its heading and the answer."""
    lines = output.splitlines()
    first, last = (
        next(number for number, line in enumerate(lines) if line.startswith(words))
        for words in ("Best mean first.", "Recommended")
    )
    return lines[first + 1 : last]


# run


def test_results_choose_the_class_that_is_assumed(tmp_path):
    table = tmp_path / "waves.csv"
    rows = [f"c{number},{number / 12},{np.sin(number / 2):.6f}" for number in range(12)]
    table.write_text("\n".join(["name,heat,yield", *rows, *rows]) + "\n")
    words = ("--id", "name", "--reward", "yield", "--noise", "subgaussian:0.3", "--epsilon", 0.3)
    code, output, _ = surepick("run", table, *words, "--assume", "auto")
    assert code == 0
    assert "Recommended: c3   certified" in output


def test_run_finds_the_best_candidate(table):
    code, output, errors = rehearse(table)
    assert (code, errors) == (0, "")
    assert [line.split()[1] for line in picture(output)[2:5]] == ["c", "b", "a"]
    assert picture(output)[2].startswith("★")
    assert re.search(r"^Recommended: c   certified$", output, re.MULTILINE)
    assert "Its mean is within 0.2 of the largest of all" in output
    assert "wrong with probability at most 0.05" in output
    assert "between 0 and 1." in output
    assert "the best is c with mean 0.95; c has mean 0.95, 0 worse. The answer is right." in output


def test_run_as_json_is_json_and_nothing_else(table):
    code, output, errors = rehearse(table, "--format", "json")
    answer = json.loads(output)
    assert (code, errors) == (0, "")
    assert answer.keys() >= ANSWER | {"success", "oracle_pulls", "true_gap", "certified_gap", "reason", "policy"}
    assert all(row.keys() >= ROUND for row in answer["rounds"])
    assert (answer["best_arm"], answer["verdict"], answer["success"], answer["true_gap"]) == ("c", "certified", True, 0)
    assert answer["rounds"][0]["active"] == 3
    assert sum(row["pulls"] for row in answer["rounds"]) == answer["pulls"] == answer["rounds"][-1]["total_pulls"]
    assert answer["oracle_pulls"] is None or answer["oracle_pulls"] <= answer["pulls"]
    assert answer["certified_gap"] <= 0.2
    assert answer["policy"]["name"] == "certified-independent"


def test_run_says_what_the_library_says(table):
    answer = json.loads(rehearse(table, "--format", "json", "--seed", 5)[1])
    world = sp.environments.table(table, "colour", "gloss", noise=sp.Bounded(0, 1))
    policy = sp.make_policy(arms=world.arms, **answer["policy"])
    run = sp.simulate(policy, world, seed=5)
    assert (run.best_arm, run.pulls, run.oracle_pulls) == (answer["best_arm"], answer["pulls"], answer["oracle_pulls"])


def test_minimize_turns_the_question(table):
    code, output, _ = rehearse(table, "--minimize")
    assert code == 0
    assert "Recommended: a   certified" in output
    assert "within 0.2 of the smallest of all" in output
    answer = json.loads(rehearse(table, "--minimize", "--format", "json")[1])
    assert (answer["best_arm"], answer["minimize"], answer["success"]) == ("a", True, True)


def test_without_an_id_every_row_is_a_candidate(table):
    answer = json.loads(
        surepick("run", table, "--reward", "gloss", "--noise", "bounded:0:1", "--epsilon", 0.1, "--format", "json")[1]
    )
    assert answer["rounds"][0]["active"] == 6


def test_a_norm_bound_chooses_the_linear_embedding_and_a_kernel_the_kernels(table):
    code, output, errors = rehearse(table, "--norm-bound", 2, "--format", "json")
    answer = json.loads(output)
    assert code == 0
    assert (answer["policy"]["name"], answer["policy"]["norm_bound"]) == ("certified-linear", 2.0)
    assert answer["rounds"][0]["dim"] == 2
    assert errors.startswith("note: 3 distinct arms but only 2 independent feature directions")
    for option, value in (("--gamma", 1), ("--kernel", "matern:2.5:1")):
        answer = json.loads(rehearse(table, "--norm-bound", 2, option, value, "--format", "json")[1])
        assert answer["policy"]["name"] == "certified-kernel"


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        (("--policy", "rage", "--norm-bound", 1), "take --policy certified-linear"),
        (("--policy", "certified-linear", "--gamma", 1), "take --policy certified-kernel"),
        (("--policy", "certified-independent", "--norm-bound", 1), "take --policy certified-linear"),
    ],
)
def test_an_option_that_the_policy_has_no_use_for_names_one_that_has(table, options, advice):
    with pytest.raises(sp.InvalidInput, match=advice):
        rehearse(table, *options)


def test_features_that_can_express_any_reward_need_no_note(table):
    code, _, errors = rehearse(table, "--norm-bound", 2, "--intercept")
    assert (code, errors) == (0, "")


@pytest.mark.parametrize("option", ["--standardize", "--intercept"])
def test_prepared_features_change_the_design(table, option):
    plain, prepared = (
        json.loads(rehearse(table, "--policy", "rage", "--format", "json", *more)[1])["rounds"][0]
        for more in ([], [option])
    )
    assert (plain["value"], plain["dim"]) != (prepared["value"], prepared["dim"])


def test_prepared_features_are_stated_in_the_certificate(table):
    answer = json.loads(rehearse(table, "--norm-bound", 2, "--standardize", "--format", "json")[1])
    assert any("standardiz" in sentence for sentence in answer["assumptions"])


def test_a_false_norm_bound_is_caught_by_the_truth(table):
    """A rehearsal knows the answer: what was certified under a false assumption is called wrong."""
    code, output, _ = rehearse(table, "--policy", "linear-embedding", "--norm-bound", 0.01)
    assert code == 0
    assert "certified" in output
    assert "with a coefficient vector of Euclidean norm at most 0.01" in output


def test_an_exhausted_budget_is_not_certified(table):
    code, output, _ = rehearse(table, "--max-pulls", 10)
    assert code == 3
    assert re.search(r"^Best guess so far, nothing proved: [abc]   budget-exhausted$", output, re.MULTILINE)
    assert "would have passed the budget of 10 pulls" in output
    code, output, _ = rehearse(table, "--max-pulls", 10, "--format", "json")
    answer = json.loads(output)
    assert code == 3
    assert (answer["verdict"], answer["success"]) == ("budget-exhausted", False)
    assert answer["pulls"] <= 10


def test_a_small_gap_bound_answers_at_once(table):
    code, output, _ = rehearse(table, "--gap-bound", 0.2)
    assert code == 0
    assert "every arm is epsilon-best, so nothing had to be measured" in output
    assert "Measurements spent: 0" in output


def test_numbers_are_taken_for_normal_where_no_noise_is_declared(tmp_path, table):
    with pytest.raises(sp.InvalidInput, match=r"have no two measured values that differ .* --noise subgaussian:SIGMA"):
        surepick("run", table, "--reward", "gloss", "--epsilon", 0.1)
    repeats = tmp_path / "repeats.csv"
    repeats.write_text("id,y\na,1.1\na,1.2\na,1.4\nb,5.1\nb,5.2\nb,5.4\n")
    _, output, _ = surepick("run", repeats, "--id", "id", "--reward", "y", "--epsilon", 1, "--format", "json")
    assert json.loads(output)["policy"]["noise"].startswith("normal")


def test_results_of_0_and_1_are_asked_about(tmp_path):
    clicks = tmp_path / "clicks.csv"
    clicks.write_text("id,y\na,0\na,1\nb,1\nb,1\n")
    words = ("run", clicks, "--id", "id", "--reward", "y", "--epsilon", 0.5)
    with pytest.raises(sp.InvalidInput, match=r"all results are 0 or 1.*--noise bernoulli"):
        surepick(*words)
    assert json.loads(surepick(*words, "--noise", "bernoulli", "--format", "json")[1])["policy"]["noise"] == "bernoulli"


def test_crossed_barrels(shared_data):
    """1,800 real measurements of 600 designs, with one interval an arm."""
    table = shared_data / "pvlab" / "Crossed_barrel_dataset.csv"
    words = ("run", table, *BARREL, "--delta", "0.05", "--policy", "action-elimination")
    code, output, errors = surepick(*words, "--format", "json")
    answer = json.loads(output)
    assert (code, errors) == (0, "")
    assert (answer["verdict"], answer["success"], answer["epsilon"]) == ("certified", True, 10.0)
    assert answer["rounds"][0]["pulls"] == 600
    assert answer["true_gap"] <= 10
    code, output, _ = surepick(*words)
    assert code == 0
    assert any(line.startswith("★ ") for line in picture(output))
    assert f"Recommended: {answer['best_arm']}   certified" in output
    assert f"Measurements spent: {answer['pulls']:,}" in output


SILVER = ("--id", "QAgNO3(%),Qpva(%),Qtsc(%),Qseed(%),Qtot(uL/min)", "--reward", "loss", "--minimize")


@pytest.mark.parametrize(
    ("file", "question"),
    [
        ("Crossed_barrel_dataset.csv", BARREL),
        pytest.param(
            "AgNP_dataset.csv", (*SILVER, "--noise", "subgaussian:0.21", "--epsilon", "0.05"), marks=pytest.mark.slow
        ),
    ],
)
def test_on_real_measurements_the_default_takes_at_most_a_third_of_action_elimination(shared_data, file, question):
    words = ("run", shared_data / "pvlab" / file, *question, "--format", "json")
    usual, plain = (json.loads(surepick(*words, *more)[1]) for more in ((), ("--policy", "action-elimination")))
    assert usual["policy"]["name"] == "certified-independent"
    assert (usual["verdict"], usual["success"]) == (plain["verdict"], plain["success"]) == ("certified", True)
    assert 3 * usual["pulls"] <= plain["pulls"]


def test_a_linear_embedding_of_crossed_barrels_is_called_an_assumption(shared_data):
    table = shared_data / "pvlab" / "Crossed_barrel_dataset.csv"
    words = ("run", table, *BARREL, "--policy", "linear-embedding", "--norm-bound", 30)
    for form in ("text", "json"):
        _, output, errors = surepick(*words, "--format", form)
        assert errors.startswith("note: 600 distinct arms but only 4 independent feature directions")
        assert "assumption about the world" in errors
        assert "certified-independent" in errors
        assert "note:" not in output
    json.loads(output)


def test_an_olympus_folder_says_itself_what_is_measured(shared_data):
    folder = shared_data / "olympus" / "photo_wf3"
    code, output, _ = surepick("run", folder, "--noise", "subgaussian:0.1", "--epsilon", 0.3, "--format", "json")
    answer = json.loads(output)
    assert code == 0
    assert (answer["minimize"], answer["success"]) == (True, True)
    assert answer["best_arm"].count("/") == 3


# what a reader sees


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_the_picture_fits_a_terminal_and_says_what_the_certificate_does(shared_data, columns):
    words = ("run", shared_data / "pvlab" / "Crossed_barrel_dataset.csv", *BARREL, "--format")
    answer = json.loads(surepick(*words, "json")[1])
    drawn = picture(surepick(*words, "text", columns=columns)[1])
    assert max(map(len, drawn[:-3])) <= 60
    (best,) = [line for line in drawn if line.startswith("★")]
    assert best.split()[1] == answer["best_arm"]
    (field,) = [line for line in drawn if line.startswith("field")]
    assert field.endswith(f"600, now {answer['rounds'][-1]['active']:,}")
    (gap,) = [line for line in drawn if line.startswith("gap")]
    shown = float(gap.split("now ")[1])
    assert answer["certified_gap"] <= shown <= answer["certified_gap"] + 0.1


def test_many_rounds_and_candidates_are_shown_as_a_selection(shared_data):
    table = shared_data / "pvlab" / "Crossed_barrel_dataset.csv"
    _, output, _ = surepick("run", table, *BARREL, "--epsilon", 40, "--policy", "action-elimination")
    assert len(output.splitlines()) < 45
    assert max(map(len, picture(output))) <= 80


def test_ids_that_look_like_markup_are_printed_as_they_are(tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text("id,reward\n[bold]x[/bold],1\n[/red],0\n")
    code, output, _ = surepick(
        "run", path, "--id", "id", "--reward", "reward", "--noise", "bernoulli", "--epsilon", 0.5
    )
    assert code == 0
    assert "Recommended: [bold]x[/bold]" in output
    path.write_text("id,size\n[bold]x[/bold],1\n[/red],0\n")
    assert "[bold]x[/bold]" in surepick("design", path, "--id", "id")[1]


# noise of unknown scale


def repeats_of(path, number, *, alike=False):
    """Three candidates whose measurements scatter by .1, .1 and 1."""
    rng = np.random.default_rng(6)
    rows = [f"{one},{rng.normal(mean, scale):.5f}" for one, mean, scale in SCATTERED for _ in range(number)]
    path.write_text("\n".join(["bread,y", *rows, *(["d,1", "d,1"] if alike else [])]) + "\n")
    return str(path)


UNKNOWN = ("--id", "bread", "--reward", "y", "--noise", "normal", "--epsilon", 0.3)
SCATTERED = (("a", 4.0, 0.1), ("b", 5.2, 0.1), ("c", 3.0, 1.0))


def test_scales_that_nobody_knows_are_rehearsed_too(tmp_path):
    records = repeats_of(tmp_path / "t.csv", 40)
    code, output, errors = surepick("run", records, *UNKNOWN)
    assert (code, errors) == (0, "")
    assert re.search(r"^Recommended: b   certified$", output, re.MULTILINE)
    assert "with a standard deviation of the candidate's own" in " ".join(output.split())


def test_records_that_say_little_about_unknown_scales_are_noted(tmp_path):
    records = repeats_of(tmp_path / "t.csv", 6)
    _, _, errors = surepick("run", records, *UNKNOWN, "--max-pulls", 200)
    assert "there are only 6" in " ".join(errors.split())


def test_a_rehearsal_that_could_not_end_is_refused(tmp_path, shared_data):
    records = repeats_of(tmp_path / "t.csv", 40, alike=True)
    suzuki = (shared_data / "olympus" / "suzuki", "--noise", "normal", "--epsilon", "5")
    for words in ((records, *UNKNOWN), suzuki):
        with pytest.raises(sp.InvalidInput) as refused:
            surepick("run", *words)
        for word in ("no two measured values that differ", "would not end", "bounded:LOW:HIGH", "subgaussian:SIGMA"):
            assert word in str(refused.value)


def test_a_rehearsal_ends_at_the_usual_limit_and_says_how_to_go_on(table, monkeypatch):
    monkeypatch.setattr("surepick.policies.uniform.LIMIT", 0)
    monkeypatch.setattr("surepick.policies.uniform.LEAST_EACH", 2)
    _, output, errors = rehearse(table, "--noise", "subgaussian:5")
    assert "budget-exhausted" in output
    assert re.search(r"usual limit of \d+ measurements", " ".join(errors.split()))
    assert "--max-pulls N" in " ".join(errors.split())


def test_a_question_that_a_budget_ends_is_not_called_wrong(table):
    _, output, _ = rehearse(table, "--question", "top", "--m", "2", "--noise", "subgaussian:5", "--max-pulls", "30")
    assert "The truth is known here: no candidate is on a wrong list so far." in output


def test_the_same_seed_draws_the_same_sample_of_the_list(table):
    words = ("--question", "one-of", "--share", "0.4", "--seed", "3")
    assert rehearse(table, *words) == rehearse(table, *words)
    assert "(seed 3, given by whoever set the study up)" in " ".join(rehearse(table, *words)[1].split())


@pytest.mark.parametrize(
    ("rows", "words", "said"),
    [
        ("a,1e200\na,2e200\nb,3e200\n", ("--noise", "normal"), "row 2: 1e\\+200 in column 'y' is beyond 1e\\+50"),
        ("a,1\na,2\nb,3\n", ("--noise", "subgaussian:1e100", "--epsilon", "1e-100"), "nobody can measure so often"),
        ("a,1\na,2\nb,3\n", ("--noise", "bounded:-1e90:1e90", "--epsilon", "1"), "nobody can measure so often"),
        (
            "a,1\na,2\nb,3\n",
            ("--noise", "subgaussian:1", "--constraint", "y<=2,tolerance=1e-300,noise=subgaussian:1"),
            "tolerance is 1e-300",
        ),
    ],
)
def test_sizes_that_nothing_can_be_computed_with_are_refused(tmp_path, rows, words, said):
    path = tmp_path / "huge.csv"
    path.write_text(f"id,y\n{rows}")
    with pytest.raises(sp.InvalidInput, match=said):
        rehearse(path, "--id", "id", "--reward", "y", *words)
