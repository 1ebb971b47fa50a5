"""A norm that measurements suggest is no bound: what rests on it is heuristic, and says why."""

import json
from dataclasses import replace

import numpy as np
import pytest
from together import of_each
from typer.testing import CliRunner

import surepick as sp
from surepick.cli.app import app
from surepick.core.records import from_json, to_json
from surepick.embeddings.base import ESTIMATED_NORM
from surepick.forecasts import simulated_studies
from surepick.policies.registry import policy_options
from surepick.policies.verdict import certificate_of

LINE = np.linspace(0.0, 1.0, 8)
ARMS = sp.Arms(np.column_stack([LINE, 1.0 - LINE]))  # 8 candidates, 2 directions
WORLD = sp.environments.Environment(arms=ARMS, means=0.9 * LINE, noise=sp.SubGaussian(0.1))
LINEAR = ("linear-embedding", "fixed-linear", "certified-linear")
KERNEL = ("kernel-embedding", "fixed-kernel", "certified-kernel")
NAMES = (*LINEAR, *KERNEL)
OTHERS = ("unknown-misspecification", "lingape", "lingame", "rage", "certified-independent")


def make(name: str, arms: sp.Arms = ARMS, **changes) -> sp.Policy:
    usual = {"epsilon": 0.3, "delta": 0.05, "noise": sp.SubGaussian(0.1), "norm_bound": 2.0}
    kernel = {"kernel": "polynomial:1:1"} if "kernel" in name else {}
    return sp.make_policy(name, arms, **(usual | kernel | changes))


@of_each("name", NAMES)
def test_only_the_verdict_and_its_reasons_differ(name):
    """The study is pull for pull the one with a declared bound."""
    declared, estimated = (
        sp.simulate(make(name, norm_source=source), WORLD, seed=1).certificate for source in ("declared", "estimated")
    )
    assert (declared.verdict, estimated.verdict) == ("certified", "heuristic")
    assert estimated.pulls > 0
    assert ESTIMATED_NORM in estimated.reason
    assert declared.reason in estimated.reason
    assert not any("estimated" in sentence for sentence in declared.assumptions)
    assert any("norm at most 2 (estimated from measurements)" in sentence for sentence in estimated.assumptions)
    same = {"verdict": "", "reason": "", "assumptions": ()}
    assert replace(declared, **same) == replace(estimated, **same)


@of_each("name", NAMES)
def test_where_the_norm_plays_no_part_the_answer_stays_certified(name):
    """As many directions as candidates: every list of means is representable, whatever its norm."""
    arms = sp.Arms(np.eye(4))
    world = sp.environments.Environment(arms=arms, means=[0.9, 0.1, 0.2, 0.3], noise=sp.SubGaussian(0.1))
    more = {"kernel": "gaussian:2"} if "kernel" in name else {}
    dim = {} if name.startswith("certified") else {"dim": 4}
    run = sp.simulate(make(name, arms, norm_source="estimated", **dim, **more), world, seed=1)
    assert run.verdict == "certified"
    assert "Nothing is assumed about the features" in run.certificate.assumptions[0]


@of_each("name", NAMES)
def test_an_answer_without_a_pull_needs_no_norm(name):
    single = make(name, sp.Arms([[1.0, 2.0]]), norm_source="estimated")
    close = make(name, gap_bound=0.1, norm_source="estimated")
    for policy in (single, close):
        answer = certificate_of(policy, policy.init())
        assert (answer.verdict, answer.pulls) == ("certified", 0)
        assert not any("norm" in sentence for sentence in answer.assumptions)


@of_each("name", NAMES)
def test_an_unfinished_study_is_not_yet_decided(name):
    policy = make(name, norm_source="estimated")
    assert certificate_of(policy, policy.init()).verdict == "not-yet"


@of_each("name", NAMES)
@of_each("source", ["declared", "estimated"])
def test_the_spec_carries_the_source(name, source):
    policy = make(name, norm_source=source)
    spec = json.loads(json.dumps(policy.spec))
    assert spec["norm_source"] == source
    assert sp.make_policy(arms=ARMS, **spec) == policy
    assert sp.make_policy(arms=ARMS, **from_json(dict, to_json(policy.spec))) == policy
    other = "estimated" if source == "declared" else "declared"
    assert sp.make_policy(arms=ARMS, **(spec | {"norm_source": other})) != policy


@of_each("name", NAMES)
def test_a_norm_is_declared_unless_it_is_said_to_be_estimated(name):
    assert make(name).embedding.traits.heuristic == ""
    assert make(name) == make(name, norm_source="declared")
    assert make(name, norm_source="estimated").embedding.traits.heuristic == ESTIMATED_NORM


@of_each("source", ["guessed", "", "Estimated", None, True, 1.0])
def test_another_source_is_refused(source):
    build = (
        lambda: sp.LinearEmbedding(LINE[:, None], norm_bound=1.0, norm_source=source),
        lambda: sp.KernelEmbedding(LINE[:, None], kernel="gaussian:1", norm_bound=1.0, norm_source=source),
    )
    for each in build:
        with pytest.raises(sp.InvalidInput, match=r"norm_source is .*; choose 'declared' .* 'estimated'"):
            each()


@of_each("name", OTHERS)
def test_policies_that_would_take_it_for_a_bound_do_not_know_it(name):
    assert "norm_source" not in policy_options(name)


# the command line


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "paint.csv"
    path.write_text("colour,red,blue,gloss\na,1,0,0.1\na,1,0,0.2\nb,0,1,0.5\nb,0,1,0.4\nc,1,1,0.9\nc,1,1,1.0\n")
    return path


def surepick(command, table, *arguments) -> tuple[int, str]:
    usual = ("--id", "colour", "--reward", "gloss", "--noise", "bounded:0:1", "--epsilon", 0.2)
    words = [str(word) for word in (command, table, *usual, *arguments)]
    result = CliRunner(env={"COLUMNS": "80", "TERM": "dumb"}).invoke(app, words, catch_exceptions=False)
    return result.exit_code, result.stdout


@pytest.mark.parametrize("more", [(), ("--gamma", 1), ("--policy", "linear-embedding")])
def test_run_with_an_estimate(table, more):
    """Heuristic where the norm was used; three candidates and a Gaussian kernel are representable, so it was not."""
    code, output = surepick("run", table, "--norm-estimate", 2, *more, "--format", "json")
    found = json.loads(output)
    assert found["policy"]["norm_source"] == "estimated"
    assert found["policy"]["norm_bound"] == 2.0
    expected = (0, "certified") if "--gamma" in more else (3, "heuristic")
    assert (code, found["verdict"]) == expected
    declared = json.loads(surepick("run", table, "--norm-bound", 2, *more, "--format", "json")[1])
    assert (declared["verdict"], declared["pulls"]) == ("certified", found["pulls"])
    assert declared["policy"]["norm_source"] == "declared"


def test_run_says_why_in_words(table):
    _, output = surepick("run", table, "--norm-estimate", 2)
    assert ESTIMATED_NORM in output
    assert "norm at most 2 (estimated from measurements)" in output


def test_a_forecast_with_estimates_is_marked(table, monkeypatch):
    monkeypatch.setattr(simulated_studies, "EQUAL_STUDIES", 1)  # what it says is looked at, not how good it is
    code, output = surepick("forecast", table, "--norm-estimate", "2,4", "--rehearsals", 1, "--format", "json")
    rows = json.loads(output)["rows"]
    assert code == 0
    assert [row["policy"] for row in rows] == ["certified-linear", "certified-linear", "certified-independent"]
    assert [row["options"].get("norm_bound") for row in rows] == [2.0, 4.0, None]
    for row in rows[:2]:
        assert row["spec"]["norm_source"] == "estimated"
        assert not row["believable"]
        assert any(ESTIMATED_NORM in warning for warning in row["warnings"])
    assert rows[2]["believable"]


def test_a_built_in_examples_own_bound_gives_way_to_an_estimate():
    words = [
        "forecast",
        "two-clusters",
        "--epsilon",
        "0.1",
        "--norm-estimate",
        "1",
        "--policy",
        "linear-embedding",
        "--rehearsals",
        "1",
        "--format",
        "json",
    ]
    result = CliRunner().invoke(app, words, catch_exceptions=False)
    first = json.loads(result.stdout)["rows"][0]
    assert (first["options"]["norm_source"], first["options"]["norm_bound"]) == ("estimated", 1.0)


@pytest.mark.parametrize("command", ["run", "forecast"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--norm-bound", 1, "--norm-estimate", 2), "--norm-bound 1.* and --norm-estimate 2.* were both given"),
        (("--norm-estimate", 0), "norm_bound is 0.0; it must be positive"),
        (("--norm-estimate", 2, "--policy", "certified-independent"), "--norm-estimate has no meaning"),
        (("--norm-estimate", 2, "--policy", "lingape"), "--norm-estimate has no meaning for lingape"),
        (("--norm-estimate", 2, "--policy", "rage"), "--norm-estimate has no meaning for rage"),
    ],
)
def test_what_makes_no_sense_is_refused(table, command, arguments, message):
    with pytest.raises(sp.InvalidInput, match=message):
        surepick(command, table, *arguments)


def test_a_forecast_never_takes_an_estimate_for_a_bound(table):
    """Beside a policy that knows estimates, one that would not see that it is one."""
    with pytest.raises(sp.InvalidInput, match="lingape, which takes every norm for a bound"):
        surepick("forecast", table, "--norm-estimate", 2, "--policy", "certified-linear,lingape")


def test_a_list_of_estimates_must_be_numbers(table):
    with pytest.raises(sp.InvalidInput, match="--norm-estimate is '1,x'"):
        surepick("forecast", table, "--norm-estimate", "1,x")
