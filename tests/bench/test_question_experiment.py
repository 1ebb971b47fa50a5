"""The experiment of questions: what each instance is, what its peers are told, and what a row says of lists."""

from dataclasses import replace

import numpy as np
import pytest
from together import of_each

from surepick.core.certificate import Listed
from surepick.policies.base import Problem
from surepick.questions import parse_question, wrongly_listed
from surepick_bench import experiment, play
from surepick_bench.commands import own_row, print_summary
from surepick_bench.datasets.registry import make_environment
from surepick_bench.experiments import MEDIAN_MODEL, NAME, TUNED, ratio_lines
from surepick_bench.results import Results
from surepick_bench.spec import Cell
from surepick_bench.summary import summarize

CELLS = experiment(NAME).cells
PLACES = {cell.environment.label: cell for cell in CELLS}


def cells(environment: str, policy: str = "") -> list[Cell]:
    return [cell for cell in CELLS if cell.environment.label == environment and policy in cell.policy.label]


@of_each("better", [5, 20, 50])
@of_each("kind", ["0", "a control"])
def test_either_wrong_list_is_wrong_on_the_shifted_arms(better, kind):
    """Arms at 0 and at .4 stand at the edges, .2 from what is wanted: on the other list each would be wrong."""
    cell = PLACES[f"{better} of 100 above {kind}"]
    env = make_environment(cell.environment.name, seed=0, **cell.environment.options)
    question = parse_question(cell.policy.options["question"], {})
    problem = Problem(env.num_arms, cell.epsilon, cell.delta, env.noise, None, env.arms, question)
    best = tuple(np.array(env.arms.ids)[env.means > 0.3])
    rest = tuple(set(env.arms.ids) - {*best, "control"})
    assert (len(best), len(rest)) == (better, 100 - better)
    right, turned = (Listed("", "", "", *lists, (), "") for lists in ((best, rest), (rest, best)))
    assert not wrongly_listed(problem, right, env.arms, env.means).any()
    assert wrongly_listed(problem, turned, env.arms, env.means).sum() == 100


def test_the_control_of_the_models_is_the_median_one(shared_data):
    env = make_environment("livecodebench", seed=0, data=shared_data)
    assert env.num_arms % 2 == 1
    assert env.arms.ids[int(np.argsort(env.means)[env.num_arms // 2])] == MEDIAN_MODEL


def test_the_widths_that_peers_are_told_decide_the_instance(request):
    """Half of (epsilon + the gap at the cut) of the m best; the lead over the null of an arm above a threshold."""
    for cell in CELLS:
        asked = cell.policy.options["question"]
        if asked["name"] != "top" or not cell.policy.label.endswith(TUNED):
            continue
        data = request.getfixturevalue("shared_data") if cell.environment.name == "crossed-barrel" else "."
        env = make_environment(cell.environment.name, seed=0, data=data, **cell.environment.options)
        means = np.sort(env.means)[::-1]
        cut = means[asked["m"] - 1] - means[asked["m"]]
        assert cell.policy.options["accuracy"] == pytest.approx((cell.epsilon + cut) / 2, rel=0.02)


def test_every_place_has_ours_a_peer_and_uniform_sampling():
    for place in PLACES:
        names = {cell.policy.name for cell in cells(place)}
        assert {"certified-independent", "uniform-lists"} <= names
        assert [cell.policy.label for cell in cells(place, "discovery")] == (
            ["certified-independent discovery"] if "above" in place else []
        )


@pytest.fixture(scope="module")
def small():
    """Twenty arms, two of them better: every policy of the threshold, played to its own stop."""
    found = []
    for cell in cells("5 of 100 above 0"):
        options = {**cell.environment.options, "num_arms": 20, "better": 2}
        found.append(play(replace(cell, environment=replace(cell.environment, options=options)), 1))
    return found


def test_a_row_says_what_is_on_the_lists(small):
    for played in small:
        row = played.replicate
        assert (row["failure"], row["verdict"], row["ended_by"]) == ("", "certified", "policy")
        assert (row["listed"], row["wrong_share"], row["reference_pulls"]) == (2, 0.0, None)
        assert row["success"]


def test_the_summary_has_the_lists_and_the_ratios(small, capsys):
    results = Results.of(small)
    rows = {cell.policy: own_row(cell) for cell in summarize(results)}
    assert {(row["listed"], row["wrong share"]) for row in rows.values()} == {("2", "0.00%")}
    print_summary(results)
    shown = capsys.readouterr().out
    assert "5 of 100 above 0: certified-independent takes 0." in shown
    assert "wrong share" in shown


def test_ratios_are_to_the_best_peer_and_to_the_best_tuned_one():
    spent = {("a", "certified-independent"): 50.0, ("a", "apt"): 100.0, ("a", "uniform-lists"): 200.0}
    assert ratio_lines(spent) == ["a: certified-independent takes 0.50 times the pulls of apt."]
    spent[("a", f"apt{TUNED}")] = 80.0
    assert ratio_lines(spent | {("b", "certified-independent"): 1.0}) == [
        "a: certified-independent takes 0.50 times the pulls of apt and 0.62 times the pulls of apt, tuned."
    ]
