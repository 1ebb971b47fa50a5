"""Nobody but the user knows what difference matters: without --epsilon the table says what some would cost."""

import re
import shutil

import numpy as np
import pytest
from fuzz_commands import run
from together import of_each

import surepick as sp
from surepick.cli.answers import mean_spread, rough_pulls, tolerances_near

COFFEE = "docs/examples/coffee.csv"
RUN = ("--id", "recipe", "--reward", "taste")


@pytest.fixture
def coffee(request, tmp_path):
    return shutil.copy(request.config.rootpath / COFFEE, tmp_path / "coffee.csv")


def refused(*words) -> str:
    ended = run([str(word) for word in words])
    assert ended.code == 2
    (line,) = ended.err.splitlines()
    assert len(line) <= 507
    return line


def prices(line: str) -> list[tuple[float, int]]:
    """The tolerances that a refusal names, and their measurements."""
    (said,) = re.findall(r"knows better\): --epsilon (.*)\.$", line)
    return [
        (float(size), int(pulls.replace(",", ""))) for size, pulls in re.findall(r"([\d.e-]+) takes ([\d,]+)", said)
    ]


@pytest.mark.parametrize("noise", ["subgaussian:0.8", "normal", "pilot", "bounded:0:10"])
@pytest.mark.parametrize("command", ["run", "forecast"])
def test_the_refusal_is_computed_from_the_table(coffee, command, noise):
    if command == "forecast" and noise == "pilot":
        noise = "subgaussian:1"
    more = ("--assume-scale", "0.5") if (command, noise) == ("forecast", "normal") else ()
    said = refused(command, coffee, *RUN, "--noise", noise, *more)
    assert "say with --epsilon how much worse than the best the answer may be" in said
    assert "Repeats of a candidate typically vary by 0.297" in said
    assert "the averages of candidates go from 4.52 to 8.3" in said
    found = prices(said)
    assert [size for size, _ in found] == [0.2, 0.5, 1.0]
    assert sorted((pulls for _, pulls in found), reverse=True) == [pulls for _, pulls in found]


@pytest.mark.parametrize(
    ("noise", "sizes"), [("bernoulli", [0.1, 0.2, 0.5]), ("subgaussian:3", [1, 2, 5]), ("bounded:0:100", [10, 20, 50])]
)
def test_without_measurements_the_noise_says_what_tolerances_cost(coffee, tmp_path, noise, sizes):
    said = refused("create", f"sqlite:///{tmp_path}/lab.db", "s", "--arms", coffee, "--noise", noise)
    assert [size for size, _ in prices(said)] == sizes
    assert not (tmp_path / "lab.db").exists()
    assert "What difference would change a decision" in refused(
        "create", f"sqlite:///{tmp_path}/lab.db", "s", "--arms", coffee, "--noise", "normal"
    )


def test_examples_say_it_too_and_the_demo_has_its_own():
    assert prices(refused("forecast", "two-clusters"))
    assert run(["demo", "--format", "json"]).code == 0


@of_each("size", [1e-200, 3e-7, 0.1, 0.34, 7.0, 1e9, 1e200])
def test_three_round_numbers_about_a_size(size):
    low, middle, high = tolerances_near(size)
    assert low < middle < high
    assert 0.5 <= middle / size <= 2.0


@of_each("size", [0.0, -1.0, float("nan"), float("inf")])
def test_no_size_has_no_tolerances(size):
    assert tolerances_near(size) == ()


@pytest.mark.cases(3)
@pytest.mark.parametrize("number", [3, 10, 40])
@pytest.mark.parametrize("epsilon", [0.2, 0.5, 1.0])
def test_the_rough_price_is_right_within_a_factor_of_three(number, epsilon):
    means = np.random.default_rng(number).normal(0.0, 1.0, number)
    world = sp.environments.Environment(
        arms=sp.Arms(ids=list(map(str, range(number)))), means=means, noise=sp.SubGaussian(1.0)
    )
    policy = sp.make_policy("certified-independent", world.arms, epsilon=epsilon, delta=0.05, noise=world.noise)
    took = np.median([sp.simulate(policy, world, seed=seed).pulls for seed in range(5)])
    assert took / 3 <= rough_pulls(means, 1.0, epsilon, 0.05) <= took * 3


def test_a_table_without_repeats_says_so(write):
    path = write("id,y\na,1\nb,3\n")
    assert mean_spread(sp.environments.table(path, "id", "y", noise=sp.SubGaussian(1.0)))[0] is None
    assert "No candidate was measured twice" in refused(
        "run", path, "--id", "id", "--reward", "y", "--noise", "bounded:0:5"
    )


# delta


@pytest.mark.parametrize(("delta", "meant"), [(0.95, "0.05"), (0.9, "0.1"), (0.99, "0.01")])
def test_a_confidence_in_place_of_delta_is_asked_about(coffee, delta, meant):
    ended = run(["run", str(coffee), *RUN, "--noise", "subgaussian:0.8", "--epsilon", "0.8", "--delta", str(delta)])
    assert ended.err.count("Was that meant?") == 1
    assert f"confidence is delta {meant}" in ended.err
    with pytest.warns(UserWarning, match=f"confidence is delta {meant}. Was that meant"):
        sp.find_best(
            ["a", "b"], lambda ids: [float(one == "a") for one in ids], epsilon=0.5, delta=delta, noise="bernoulli"
        )


def test_a_usual_delta_is_not_asked_about(coffee):
    ended = run(["run", str(coffee), *RUN, "--noise", "subgaussian:0.8", "--epsilon", "0.8", "--delta", "0.5"])
    assert "Was that meant?" not in ended.err


def test_a_rehearsal_says_that_it_is_one(coffee):
    ended = run(["run", str(coffee), *RUN, "--noise", "subgaussian:0.8", "--epsilon", "0.8"])
    assert ended.out.startswith(
        "A rehearsal: draws again from your rows. To judge the rows that you have: surepick analyze.\n"
    )
    assert "features" not in ended.out
    words = ["--noise", "subgaussian:0.8", "--epsilon", "0.8", "--norm-bound", "20"]
    assert "2 features: grams, degrees\n" in run(["run", str(coffee), *RUN, *words]).out
    assert "1 feature: degrees\n" in run(["run", str(coffee), *RUN, *words, "--features", "degrees"]).out
