"""The command line says what the library says: in words, as JSON, and by its exit code."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import surepick as sp
from surepick.cli.app import app, main

ANSWER = {"best_arm", "epsilon", "delta", "pulls", "verdict", "assumptions", "rounds"}
ROUND = {"round", "dim", "value", "lower_bound", "pulls", "active"}
BARREL = ("--id", "n,theta,r,t", "--reward", "toughness", "--noise", "subgaussian:19", "--epsilon", "10")


def surepick(*arguments, columns=80) -> tuple[int, str, str]:
    """(exit code, standard output, standard error), in this process."""
    words = [str(argument) for argument in arguments]
    result = CliRunner(env={"COLUMNS": str(columns), "TERM": "dumb"}).invoke(app, words, catch_exceptions=False)
    return result.exit_code, result.stdout, result.stderr


def in_a_process(*arguments) -> tuple[int, str, str]:
    """(exit code, standard output, standard error) of the installed command."""
    command = [str(Path(sys.executable).with_name("surepick")), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"COLUMNS": "80"})
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def table(tmp_path) -> Path:
    """Three candidates with two repeats each; c is best, a smallest."""
    path = tmp_path / "paint.csv"
    path.write_text("colour,red,blue,gloss\na,1,0,0.1\na,1,0,0.2\nb,0,1,0.5\nb,0,1,0.4\nc,1,1,0.9\nc,1,1,1.0\n")
    return path


def rehearse(table, *arguments):
    given = {"--id": "colour", "--reward": "gloss", "--noise": "bounded:0:1", "--epsilon": 0.2}
    words = [word for option, value in given.items() if option not in arguments for word in (option, value)]
    return surepick("run", table, *words, *arguments)


# demo


@pytest.fixture(scope="module")
def demo() -> dict:
    code, output, errors = surepick("demo", "--format", "json", "--epsilon", 0.2)
    assert (code, errors) == (0, "")
    return json.loads(output)


def test_the_demo_answers_as_published(demo):
    assert demo.keys() >= ANSWER | {"uniform_pulls", "success", "oracle_pulls", "true_gap"}
    assert all(row.keys() >= ROUND for row in demo["rounds"])
    assert (demo["verdict"], demo["success"], demo["epsilon"], demo["delta"]) == ("certified", True, 0.2, 0.05)
    assert demo["best_arm"].startswith(("7-", "1-", "2-", "9-"))
    assert demo["true_gap"] <= 0.2
    assert all(sentence.endswith(".") for sentence in demo["assumptions"])
    assert any("scale at most 1" in sentence for sentence in demo["assumptions"])


def test_the_demo_has_sixty_images_and_beats_uniform_sampling():
    code, output, _ = surepick("demo", columns=80)
    assert code == 0
    images = int(re.match(r"(\d+) images of handwritten digits", output)[1])
    assert images >= 60
    assert f"{images} candidates, round by round" in output
    spent = number_after("Measurements spent: ", output)
    uniform = number_after("would need ", output)
    assert spent < uniform
    assert f"{uniform / spent:.1f} times as many" in output
    assert "certified" in output
    assert "The answer is right." in output


def number_after(words: str, text: str) -> int:
    return int(re.search(re.escape(words) + r"([\d,]+)", text)[1].replace(",", ""))


def test_the_demo_counts_its_own_rounds(demo):
    assert sum(row["pulls"] for row in demo["rounds"]) == demo["pulls"]
    assert [row["round"] for row in demo["rounds"]] == list(range(1, len(demo["rounds"]) + 1))
    assert demo["rounds"][0]["active"] == 60
    assert demo["rounds"][-1]["active"] == 1
    assert all(1 < row["active"] <= 60 for row in demo["rounds"][:-1])
    assert all(0 < row["lower_bound"] <= row["value"] for row in demo["rounds"])


def test_the_demo_uses_the_default_policy(demo):
    assert demo["policy"]["name"] == "certified-linear"
    assert {row["dim"] for row in demo["rounds"]} == {60}  # nothing is assumed of the images


def test_the_seed_decides_the_demo(demo):
    again, other = (
        json.loads(surepick("demo", "--format", "json", "--epsilon", 0.2, "--seed", seed)[1]) for seed in (0, 1)
    )
    demo = {**demo, "seconds": 0}
    assert {**again, "seconds": 0} == demo
    assert {**other, "seconds": 0} != demo


# run


def test_run_finds_the_best_candidate(table):
    code, output, errors = rehearse(table)
    assert (code, errors) == (0, "")
    assert "3 candidates, round by round" in output
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
    answer = json.loads(surepick("run", table, "--reward", "gloss", "--noise", "bounded:0:1", "--format", "json")[1])
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


def test_the_noise_must_be_declared(table):
    with pytest.raises(sp.InvalidInput, match="--noise: bernoulli, bounded:LOW:HIGH, or subgaussian:SIGMA"):
        surepick("run", table, "--reward", "gloss")


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
    assert "600 candidates, round by round" in output
    assert f"Recommended: {answer['best_arm']}   certified" in output
    assert f"Measurements spent: {answer['pulls']:,}" in output


SILVER = ("--id", "QAgNO3(%),Qpva(%),Qtsc(%),Qseed(%),Qtot(uL/min)", "--reward", "loss", "--minimize")


@pytest.mark.parametrize(
    ("file", "question"),
    [
        ("Crossed_barrel_dataset.csv", BARREL),
        ("AgNP_dataset.csv", (*SILVER, "--noise", "subgaussian:0.21", "--epsilon", "0.05")),
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


@pytest.mark.parametrize("columns", [80, 200])
def test_tables_fit_a_terminal_and_lose_no_digit(shared_data, columns):
    folder = shared_data / "olympus" / "photo_wf3"
    words = ("--noise", "subgaussian:0.1", "--policy", "linear-embedding", "--norm-bound", 1, "--format")
    rows = json.loads(surepick("run", folder, *words, "json")[1])["rounds"]
    _, output, _ = surepick("run", folder, *words, "text", columns=columns)
    lines = output.splitlines()
    table = lines[: next(number for number, line in enumerate(lines) if line.startswith("Recommended"))]
    assert "…" not in "".join(table)
    assert max(map(len, table)) <= columns
    for row in rows:
        assert any(f"{row['total_pulls']:,}" in line and f"{row['certified_gap']:.4g}" in line for line in table)


@pytest.mark.parametrize(("more", "dims"), [((), False), (("--norm-bound", 1), True)])
def test_certified_rounds_say_who_is_possible_and_what_is_to_come(shared_data, more, dims):
    words = ("run", shared_data / "olympus" / "photo_wf3", "--noise", "subgaussian:0.1", "--epsilon", 0.2, *more)
    rows = json.loads(surepick(*words, "--format", "json")[1])["rounds"]
    _, output, _ = surepick(*words, columns=80)
    lines = output.splitlines()
    table = lines[: next(number for number, line in enumerate(lines) if line.startswith("still possible:"))]
    assert max(map(len, table)) <= 80
    assert ("dims" in table[2]) == dims
    assert "the best so far, and all that may yet be better by more than 0.2" in lines[len(table)]
    shown = [line.split() for line in table if re.match(r" +\d", line)]
    assert len(shown) == len(rows)
    for row, after, cells in zip(rows, [*rows[1:], None], shown, strict=True):
        to_come = "0" if after is None else f"{float(format(after['value'], '.2g')):,.0f}"
        assert cells[-3:] == [f"{row['total_pulls']:,}", f"{row['active']:,}", to_come]


def test_what_is_to_come_is_not_known_where_the_budget_ended(shared_data):
    words = ("--noise", "subgaussian:0.1", "--max-pulls", 2500)
    _, output, _ = surepick("run", shared_data / "olympus" / "photo_wf3", *words)
    last = [line.split() for line in output.splitlines() if re.match(r" +\d", line)][-1]
    assert last[-1] == "?"


def test_many_rounds_are_shown_as_a_selection(shared_data):
    table = shared_data / "pvlab" / "Crossed_barrel_dataset.csv"
    _, output, _ = surepick("run", table, *BARREL, "--epsilon", 40, "--policy", "action-elimination")
    shown, rounds = map(int, re.search(r"\((\d+) of (\d+) rounds shown\)", output).groups())
    assert shown < rounds
    assert len(output.splitlines()) < 40


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


# design


def test_design_shows_the_shares(table, tmp_path):
    path = tmp_path / "arms.csv"
    path.write_text("name,x\nlow,0\nmiddle,0.5\nhigh,1\n")
    code, output, errors = surepick("design", path, "--id", "name", "--intercept")
    assert (code, errors) == (0, "")
    assert re.search(r"low.*0\.5000", output)
    assert re.search(r"high.*0\.5000", output)
    assert "Measure 2 of 3 candidates. Design value 4;" in output


def test_design_as_json_is_the_librarys(tmp_path):
    path = tmp_path / "arms.csv"
    features = np.random.default_rng(0).normal(size=(12, 3)).round(3)
    path.write_text("a,b,c\n" + "\n".join(",".join(map(str, row)) for row in features) + "\n")
    code, output, errors = surepick("design", path, "--format", "json", "--tolerance", 0.001)
    found = json.loads(output)
    design = sp.solve_design(features, tolerance=0.001)
    assert (code, errors) == (0, "")
    assert found.keys() == {"value", "lower_bound", "gap", "rank", "weights"}
    assert (found["value"], found["lower_bound"], found["rank"]) == (design.value, design.lower_bound, 3)
    assert 0 <= found["gap"] <= 0.001
    assert {int(name): share for name, share in found["weights"].items()} == {
        arm: design.weights[arm] for arm in np.flatnonzero(design.weights)
    }


# help, and the process


@pytest.mark.parametrize("command", [(), ("demo",), ("run",), ("design",)])
def test_every_command_explains_itself(command):
    code, output, errors = surepick(*command, "--help", columns=120)
    assert (code, errors) == (0, "")
    assert "Usage: surepick" in output
    options = re.findall(r"^[│ *]*(--[a-z-]+)", output, re.MULTILINE)
    described = re.findall(r"^[│ *]*--[a-z-]+ +(?:<[^>]+>(?: \[[^\]]+\])?)? +\S", output, re.MULTILINE)
    assert "--help" in options
    assert len(described) == len(options)


def test_the_version_is_the_packages():
    assert surepick("--version") == (0, f"surepick {sp.__version__}\n", "")


def test_nothing_asked_shows_the_help():
    _, output, errors = surepick()
    assert "demo" in output + errors


def test_exit_codes_of_the_process(table):
    words = ("run", table, "--id", "colour", "--reward", "gloss", "--noise", "bounded:0:1", "--epsilon", "0.2")
    code, output, errors = in_a_process(*words, "--format", "json")
    assert (code, errors) == (0, "")
    assert json.loads(output)["best_arm"] == "c"
    code, output, errors = in_a_process(*words, "--max-pulls", "4", "--format", "json")
    assert (code, errors) == (3, "")
    assert json.loads(output)["verdict"] == "budget-exhausted"
    code, output, errors = in_a_process(*words, "--delta", "7")
    assert (code, output) == (2, "")
    assert errors.startswith("error: delta is 7.0; it must lie strictly between 0 and 1")
    assert len(errors.splitlines()) == 1


@pytest.fixture
def run_main(monkeypatch, capsys):
    """`main` with these words: (exit code, standard output, standard error)."""

    def run(*arguments) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["surepick", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        return stop.value.code, *capsys.readouterr()

    return run


def test_words_that_are_not_understood_are_bad_input(run_main):
    for words in (
        ("runn",),
        ("run",),
        ("demo", "--seed", "-1"),
        ("demo", "--format", "xml"),
        ("demo", "--epsilon", "x"),
    ):
        code, output, errors = run_main(*words)
        assert (code, output) == (2, "")
        assert "Error" in errors


def test_a_design_that_is_not_proved_is_a_failure(run_main, monkeypatch, table):
    def unproved(features, tolerance):
        raise sp.errors.NotConverged("design gap 3% > tolerance 1%", best=sp.Design([1.0], 1.0, 0.9, 1), gap=0.03)

    monkeypatch.setattr("surepick.cli.commands.design.solve_design", unproved)
    assert run_main("design", table) == (1, "", "error: design gap 3% > tolerance 1%\n")


def test_a_message_with_brackets_is_printed_as_it_is(run_main, tmp_path):
    missing = tmp_path / "[red]no.csv"
    code, _, errors = run_main("design", missing)
    assert code == 2
    assert errors.startswith(f"error: there is no file {missing};")


def test_progress_is_drawn_on_standard_error_only(monkeypatch, table):
    """With a terminal on standard error the bar is drawn there, and standard output stays pure JSON."""
    script = (
        "import sys; sys.stderr.isatty = lambda: True\n"
        "from surepick.cli import main; sys.argv = ['surepick', *sys.argv[1:]]; main()"
    )
    words = ("run", table, "--id", "colour", "--reward", "gloss", "--noise", "bounded:0:1", "--epsilon", "0.2")
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, words), "--format", "json"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "120"},
    )
    assert json.loads(done.stdout)["verdict"] == "certified"
    assert "round" in done.stderr
    assert re.search(r"\d of 3 (candidates left|possible)", done.stderr)
