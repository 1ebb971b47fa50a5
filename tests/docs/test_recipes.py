"""Every recipe of docs/environments.md gives the arms that the document promises, and its noise scale holds."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import surepick as sp
from surepick import environments
from surepick.environments import RecordedRewards
from surepick.environments.environment import RecordedAnswers
from surepick_bench import datasets

DOCUMENT = Path(__file__).parents[2] / "docs" / "environments.md"
RECIPE = re.compile(r"^### ([^\n]+)\n\n(.*?)\n\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PROMISE = re.compile(
    r"^([\d,]+) arms, (\d+) features; (\d+) (?:are|is) good enough; takes about ([\d,]+) measurements\."
)
TABLES = 13  # five of Olympus, three of PV-Lab, one of networks, two of language models, two of Open Bandit


@dataclass(frozen=True)
class Recipe:
    """A recipe of the document: its two lines, and what it says of them."""

    title: str
    text: str
    code: str

    @property
    def promised(self) -> tuple[int, ...]:
        """Arms, features, arms that are good enough, and measurements."""
        return tuple(int(number.replace(",", "")) for number in PROMISE.match(self.text).groups())

    @property
    def run(self) -> tuple[environments.Environment, sp.Policy]:
        """The environment and the policy that its lines make."""
        names = {"sp": sp}
        exec(self.code, names)
        return names["env"], names["policy"]


def recipes() -> Iterator[Recipe]:
    for parts in RECIPE.findall(DOCUMENT.read_text(encoding="utf-8")):
        yield Recipe(*parts)


@pytest.fixture
def in_data_folder(shared_data, monkeypatch):
    monkeypatch.chdir(shared_data)


def test_no_recipe_escapes():
    text = DOCUMENT.read_text(encoding="utf-8")
    found = list(recipes())
    assert len(found) == text.count("```python") == text.count("\n### ") == TABLES + 1  # Open Bandit's pairs
    assert all(PROMISE.match(recipe.text) and len(recipe.code.splitlines()) == 2 for recipe in found)


@pytest.mark.usefixtures("in_data_folder")
@pytest.mark.parametrize("recipe", list(recipes()), ids=lambda recipe: recipe.title)
def test_a_recipe_gives_what_it_promises(recipe):
    env, policy = recipe.run
    arms, features, good, pulls = recipe.promised
    assert (*env.arms.features.shape, int(env.epsilon_best(policy.problem.epsilon).sum())) == (arms, features, good)
    run = sp.simulate(policy, env, seed=0)
    assert (run.verdict, run.success) == ("certified", True)
    assert pulls / 3 < run.pulls < 3 * pulls


@pytest.mark.usefixtures("in_data_folder")
@pytest.mark.parametrize("recipe", list(recipes()), ids=lambda recipe: recipe.title)
def test_the_noise_scale_of_a_recipe_is_valid(recipe):
    env, policy = recipe.run
    assert policy.problem.noise == env.noise
    law = env.law.as_draws if isinstance(env.law, RecordedAnswers) else env.law
    if isinstance(law, RecordedRewards):
        assert np.all(law.half_ranges <= env.noise.sigma)
    else:
        np.testing.assert_array_equal(law.scales, env.noise.sigma)


@pytest.mark.parametrize(("name", "share"), [("photo_wf3", ".078"), ("fullerenes", ".062")])
def test_the_added_noise_is_above_what_repeats_show(shared_data, name, share):
    measured = environments.table(shared_data / "olympus" / name, noise=sp.SubGaussian(1.0))
    found = measured.law.half_ranges.max() / np.ptp(measured.means)
    (recipe,) = [recipe for recipe in recipes() if name in recipe.code]
    assert f"{found:.3f}"[1:] == share
    assert f"half their largest difference is {share}" in " ".join(recipe.text.split())


def test_every_environment_is_in_the_table():
    text = DOCUMENT.read_text(encoding="utf-8")
    for name in datasets.environment_names():
        assert f"| `{name.replace('-', '_')}`, `{name}` |" in text
    for name in environments.__all__:
        if callable(getattr(environments, name)) and name[0].islower() and not name.startswith(("make", "environment")):
            assert name in text


@pytest.mark.parametrize(
    "name", ["two-clusters", "one-better", "falling-means", "random-network", "digits", "yahoo-like"]
)
def test_the_table_says_how_many_arms_and_features_there_are(name):
    num_arms, num_features = datasets.make_environment(name, seed=0).arms.features.shape
    assert f"`{name}` | {num_arms} | {num_features} |" in DOCUMENT.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("action-elimination", r"action elimination takes (\S+) pulls in the median \((\d+) of 20"),
        ("rage", r"RAGE (\S+) \((\d+) of 20"),
    ],
)
def test_the_document_says_what_generated_records_take(name, said):
    text = " ".join(DOCUMENT.read_text(encoding="utf-8").split())
    median, right = re.search(said, text).groups()
    pulls = []
    for seed in range(10, 30):
        env = datasets.yahoo_like(seed=seed)
        policy = sp.make_policy(name, env.arms, epsilon=0.1, delta=0.05, noise=env.noise, **sp.paper_settings(name))
        pulls.append(sp.simulate(policy, env, seed=seed, max_pulls=50_000_000).oracle_pulls)
    assert sum(number is not None for number in pulls) == int(right)
    assert np.median([np.inf if number is None else number for number in pulls]) == pytest.approx(
        float(median), rel=0.05
    )
