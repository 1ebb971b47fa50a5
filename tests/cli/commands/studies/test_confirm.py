"""confirm: a search's table and a program in, a certified finalist out."""

import json
import sys

import pytest
from command_line import surepick
from servers import serving

import surepick as sp

TRIALS = "trial,lr,depth,score,seconds\nt1,0.1,4,0.5,9\nt2,0.2,2,0.9,5\nt3,0.3,8,,1\nt4,0.4,1,0.7,2\n"
PROGRAM = """import sys
with open(sys.argv[0] + ".log", "a") as log: print(*sys.argv[1:], file=log)
mean = {"0.1": 0.8, "0.2": 0.2, "0.4": 0.75}[sys.argv[1]]
print(mean + (int(sys.argv[2]) % 3 - 1) / 100)
"""


@pytest.fixture
def search(write):
    """A table of trials, and how a program measures them anew: (table, command)."""
    path = write(PROGRAM, "train.py")
    return write(TRIALS, "trials.csv"), f"{sys.executable} -ISE {path} {{lr}} {{seed}}", path.with_name("train.py.log")


def words(search, *more, given=("--noise", "subgaussian:0.02", "--epsilon", "0.2")):
    table, command, _ = search
    return ("confirm", table, "--id", "trial", "--reward", "score", "--command", command, *given, *more)


def calls(search) -> list[list[str]]:
    return [line.split() for line in search[2].read_text().splitlines()]


def test_the_winner_of_the_search_was_lucky(search):
    code, output, errors = surepick(*words(search, "--jobs", 2))
    assert code == 0, errors
    assert "3 finalists of 3: measured anew." in output
    assert "1 of 4 rows have no score, and are no finalists." in errors
    assert "results are kept in memory only" in errors
    assert "Recommended: t1   certified" in output or "Recommended: t4   certified" in output
    assert "What is promised is about 3 finalists, not about others" in output
    assert {call[0] for call in calls(search)} == {"0.1", "0.2", "0.4"}
    seeds = [call[1] for call in calls(search)]
    assert len(set(seeds)) == len(seeds)


def test_as_json_and_with_what_is_preferred(search):
    code, output, _ = surepick(*words(search, "--prefer", "seconds", "--format", "json"))
    answer = json.loads(output)
    assert (code, answer["best_arm"], answer["verdict"]) == (0, "t4", "certified")
    assert (answer["finalists"], answer["tried"]) == (["t1", "t2", "t4"], 3)
    assert "do not count" in answer["promise"]
    assert len(calls(search)) == answer["pulls"]


def test_a_budget_stands_in_place_of_a_tolerance(search):
    given = ("--noise", "subgaussian:0.05", "--budget", 20, "--format", "json")
    code, output, _ = surepick(*words(search, given=given))
    answer = json.loads(output)
    assert (code, answer["verdict"], len(calls(search)) <= 20) == (0, "certified", True)
    assert answer["best_arm"] != "t2"


def test_the_same_command_goes_on_where_the_study_is_kept(search, sqlite_url):
    noisy = ("--noise", "subgaussian:0.3", "--epsilon", "0.2")
    kept = words(search, "--top", 2, "--study", sqlite_url, given=noisy)
    code, _, _ = surepick(*kept, "--max-pulls", 4)
    first = calls(search)
    assert (code, len(first), {call[0] for call in first}) == (3, 4, {"0.2", "0.4"})
    code, output, errors = surepick(*kept)
    assert code == 0
    assert "goes on with 4 results of before." in errors
    assert "Recommended: t4   certified" in output
    study = sp.open_study(sqlite_url, "confirm")
    assert study.progress().pulls == len(calls(search))
    surepick(*kept)  # nothing is left to do
    assert study.progress().pulls == len(calls(search))


def test_another_question_under_the_same_name_is_refused(search, sqlite_url, refused):
    kept = words(search, "--top", 2, "--study", sqlite_url, "--max-pulls", 0)
    surepick(*kept)
    assert "has other candidates, or asks something else" in refused(*words(search, "--top", 3, "--study", sqlite_url))
    assert "or give another name" in refused(*kept, "--minimize")


def test_seeds_are_shared_by_all_candidates(search):
    given = ("--epsilon", "0.2", "--streams", "seed")
    code, _, errors = surepick(*words(search, "--max-pulls", 15, given=given))
    assert code in (0, 3), errors
    found = calls(search)[:15]  # each candidate in five of them
    of_each = [{seed for one, seed in found if one == rate} for rate in ("0.1", "0.2", "0.4")]
    assert of_each[0] == of_each[1] == of_each[2]
    assert len(of_each[0]) == 5


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"given": ()}, "confirm needs --epsilon"),
        ({"given": ("--epsilon", "0.1", "--streams", "seed", "--command", "train {lr}")}, "Write {block}"),
        ({"given": ("--epsilon", "0.1", "--command", "train {rate}")}, "no such column"),
        ({"given": ("--epsilon", "0.1", "--reward", "scores")}, "scores"),
        ({"given": ("--epsilon", "0.1", "--id", "depth,lr", "--top", "0")}, "top"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_measured(search, monkeypatch, capsys, more, said):
    from surepick.cli.app import main

    monkeypatch.setattr(sys, "argv", ["surepick", *map(str, words(search, **more))])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 2
    assert said in capsys.readouterr().err
    assert not search[2].exists()


def test_a_program_that_fails_says_so(search, write, refused):
    table, _, _ = search
    broken = write("import sys\nsys.exit('no disk')\n", "broken.py")
    said = refused(
        "confirm", table, "--id", "trial", "--epsilon", "0.2", "--retries", 1,
        "--command", f"{sys.executable} -ISE {broken} {{lr}}",
    )  # fmt: skip
    assert "could not be measured in 2 calls" in said
    assert "no disk" in said


def test_it_goes_on_with_a_study_on_a_server(search, sqlite_url):
    with serving(sqlite_url) as client:
        noisy = ("--noise", "subgaussian:0.3", "--epsilon", "0.2")
        kept = words(search, "--top", 2, "--study", str(client.base_url), "--name", "last", given=noisy)
        assert surepick(*kept, "--max-pulls", 4)[0] == 3
        code, _, errors = surepick(*kept)
    assert code == 0
    assert "goes on with 4 results of before." in errors
