"""The pages that answer a question: their programs print, and their policies cost, what they say."""

import contextlib
import io
import re

import numpy as np
import pytest
from built_site import DOCS, read
from fresh_modules import run_fresh

import surepick as sp

QUESTIONS = ["noise", "which-policy", "cost", "looking", "resume", "verdict", "certificates", "questions"]


PROGRAM = re.compile(r"^```python\n(((?!^```).)*?)^```\n\nIt prints:\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("name", ["noise", "verdict", "looking", "resume", "questions"])
def test_a_program_prints_what_its_page_shows(name, tmp_path, monkeypatch, sqlite_url):
    monkeypatch.setattr("tempfile.mkdtemp", lambda: str(tmp_path))
    text = read(DOCS / f"{name}.md")
    programs = PROGRAM.findall(text)
    assert len(programs) == text.count("\nIt prints:\n") > 0
    for program, _, shown in programs:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            run_fresh(program)
        assert printed.getvalue() == shown


FITS = 94  # characters in a line of code, on a screen of 1280 pixels


@pytest.mark.parametrize("name", ["index", *QUESTIONS, "concepts"])
def test_the_lines_of_a_program_fit_on_a_page(name):
    programs = re.findall(r"^```python\n(.*?)^```$", read(DOCS / f"{name}.md"), re.MULTILINE | re.DOTALL)
    assert programs
    assert [line for program in programs for line in program.splitlines() if len(line) > FITS] == []


def rows(text: str, first: str) -> list[list[str]]:
    """The cells of the table whose heading starts with a word."""
    table = re.search(rf"^\| {re.escape(first)}.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)[1]
    return [[cell.strip(" `") for cell in line.strip("|").split("|")] for line in table.splitlines()]


def cost(
    name: str, arms: sp.Arms, means: np.ndarray, *, sigma: float = 0.5, epsilon: float = 0.1, **more: float
) -> float:
    """The forecast of the page: sigma .5, epsilon .1, delta .05 unless said."""
    options = {"delta": 0.05, "epsilon": epsilon, **more}
    policy = sp.make_policy(name, arms, noise=sp.SubGaussian(sigma), **options)
    return sp.forecast(policy, means=means, rehearsals=20 if arms.features.size else 200).total


def told(cell: str) -> float:
    return pytest.approx(float(cell.replace(",", "")), rel=0.2)  # two forecasts of 6 % each, twice


@pytest.mark.slow
def test_costs_are_what_the_page_says():
    text = read(DOCS / "cost.md")
    named = sp.Arms(ids=[str(number) for number in range(20)])
    first = sp.Arms(ids=named.ids[:10])
    for sigma, epsilon, delta, pulls in rows(text, "sigma"):
        settings = {"sigma": float(sigma), "epsilon": float(epsilon), "delta": float(delta)}
        assert cost("certified-independent", first, np.linspace(1, 0, 10), **settings) == told(pulls)
    sizes = re.search(r"^\| candidates, all with the same mean \|(.*)\|$", text, re.MULTILINE)[1].split("|")
    for size, pulls in zip(sizes, rows(text, "candidates, all")[0][1:], strict=True):
        some = sp.Arms(ids=named.ids[: int(size)])
        assert cost("certified-independent", some, np.zeros(int(size))) == told(pulls)


@pytest.mark.slow
def test_features_and_batches_cost_what_the_page_says():
    text = read(DOCS / "cost.md")
    sizes = re.search(r"^\| candidates \|(.*)\|$", text, re.MULTILINE)[1].split("|")
    plain_costs, linear_costs = rows(text, "candidates |")
    for size, plain_cost, linear_cost in zip(sizes, plain_costs[1:], linear_costs[1:], strict=True):
        features = np.random.default_rng(0).uniform(-1, 1, (int(size), 3))
        means = features @ [0.5, -0.3, 0.2]
        assert cost("certified-independent", sp.Arms(features), means) == told(plain_cost)
        for norm_bound in (1.0, 4.0) if int(size) == 40 else (1.0,):
            linear = cost("certified-linear", sp.Arms(features), means, norm_bound=norm_bound)
            assert linear == pytest.approx(float(linear_cost), rel=0.3)
        if int(size) == 40:
            said = re.search(r"at most 10, 40, 100 and 400 take ([\d,]+),\s+([\d,]+), ([\d,]+) and ([\d,]+),", text)
            for batch, pulls in zip((10, 40, 100, 400), said.groups(), strict=True):
                assert cost("certified-independent", sp.Arms(features), means, largest_batch=batch) == told(pulls)


@pytest.mark.slow
def test_a_wrong_noise_does_what_the_page_says():
    arms = sp.Arms(ids=list("ABCDE"))
    world = sp.environments.Environment(arms=arms, means=[0.11, 0, 0, 0, 0], noise=sp.SubGaussian(0.5))
    for declared, pulls, wrong, verdict in rows(read(DOCS / "noise.md"), "declared sigma"):
        sigma = float(declared.partition(",")[0])
        policy = sp.make_policy("certified-independent", arms, epsilon=0.1, delta=0.05, noise=sp.SubGaussian(sigma))
        runs = [sp.simulate(policy, world, seed=seed) for seed in range(300)]
        assert np.mean([run.pulls for run in runs]) == pytest.approx(float(pulls.replace(",", "")), rel=0.05)
        assert sum(not run.success for run in runs) == pytest.approx(int(wrong.split()[0]), abs=6)
        certified = np.mean([run.verdict == "certified" for run in runs])
        if verdict == "always `certified":
            assert certified == 1.0
        else:  # "`heuristic` in N of M studies"
            part, whole = map(int, re.findall(r"\d+", verdict))
            assert 1.0 - certified == pytest.approx(part / whole, abs=0.06)
