"""A package beside surepick adds a policy, a question, an embedding and a command, each found by its name."""

import os
import subprocess
import sys
import tomllib
from importlib import import_module
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import surepick as sp
from surepick.cli import app as command_line
from surepick.cli.app import app
from surepick.core import plugins
from surepick.core.plugins import COMMANDS, EMBEDDINGS, POLICIES, QUESTIONS, CommandSpec, plugin_names
from surepick.embeddings.base import EmbeddingSpec
from surepick.policies.options import PolicySpec
from surepick.policies.registry import IN_BENCH, policy_options
from surepick.questions import NAMES, question_name, question_spec, wrongly_listed

OUTSIDE = Path(__file__).parent / "fixtures/outside"
MEANS = {"a": 0.9, "b": 0.2, "c": 0.5}
GOAL = {"epsilon": 0.1, "noise": "subgaussian:0.1"}
COLUMNS = ("--reward", "reward", "--id", "id")
GONE = "made with the package 'surepick-outside', which is absent here: install it, if you trust who wrote it"


def forget() -> None:
    """No module of the package is loaded."""
    for name in [name for name in sys.modules if name.split(".")[0] == "surepick_outside"]:
        del sys.modules[name]


@pytest.fixture(autouse=True)
def commands_are_loaded_anew():
    """Tests load a command once, and here its help depends on what is installed."""
    kept, command_line.loaded = command_line.loaded, command_line.loaded.__wrapped__
    yield
    command_line.loaded = kept


@pytest.fixture
def outside():
    """The package is installed; `outside()` uninstalls it."""
    sys.path.insert(0, str(OUTSIDE))

    def uninstall():
        if str(OUTSIDE) in sys.path:
            sys.path.remove(str(OUTSIDE))
        forget()

    yield uninstall
    uninstall()


@pytest.fixture
def alone(monkeypatch):
    """surepick without any other package."""
    monkeypatch.setattr(plugins, "_entry_points", lambda *_: {})


@pytest.fixture
def unasked(monkeypatch):
    """Nobody may look for other packages."""

    def refuse(group, _):
        raise AssertionError(f"{group} was looked up")

    monkeypatch.setattr(plugins, "_entry_points", refuse)


def measure_with(seed: int = 0):
    rng = np.random.default_rng(seed)
    return lambda ids: [MEANS[one] + 0.1 * rng.normal() for one in ids]


def surepick(*words: str, code: int = 0):
    """What a command prints, as `main` ends it."""
    result = CliRunner(env={"COLUMNS": "300", "TERM": "dumb"}).invoke(app, list(words))
    if isinstance(result.exception, sp.SurepickError):
        assert code == 2
        return str(result.exception)
    assert result.exit_code == code, result.output
    return " ".join(result.output.split())


@pytest.fixture
def table(tmp_path) -> str:
    """Recorded measurements of the candidates."""
    rng = np.random.default_rng(1)
    rows = [f"{one},{MEANS[one] + 0.1 * rng.normal()}" for one in MEANS for _ in range(30)]
    path = tmp_path / "lab.csv"
    path.write_text("\n".join(["id,reward", *rows]) + "\n")
    return str(path)


# policies


def test_a_policy_from_outside_is_found_by_its_name(outside):
    assert "even-pulls" in sp.policy_names()
    assert "even-pulls" in sp.policy_names(None)
    assert policy_options("even-pulls") == ("gap_bound", "growth")
    arms = sp.Arms(ids=list(MEANS))
    policy = sp.make_policy("even-pulls", arms, delta=0.1, growth=0.5, **GOAL)
    assert policy.spec == {
        "name": "even-pulls", "delta": 0.1, "gap_bound": None, "growth": 0.5, "packages": ["surepick-outside"], **GOAL,
    }  # fmt: skip
    assert sp.make_policy(arms=arms, **policy.spec) == policy
    assert sp.find_best(list(MEANS), measure_with(), policy="even-pulls", **GOAL).best_arm == "a"
    outside()
    assert "even-pulls" not in sp.policy_names()
    with pytest.raises(sp.InvalidInput, match="there is no policy 'even-pulls'"):
        sp.make_policy("even-pulls", arms, delta=0.1, **GOAL)
    with pytest.raises(sp.InvalidInput, match=GONE):
        sp.make_policy(arms=arms, **policy.spec)


def test_a_policy_is_taken_as_it_is(outside):
    from surepick_outside.policy import EvenPulls

    from surepick.policies.base import Problem

    problem = Problem(3, 0.2, 0.1, sp.SubGaussian(0.1))
    by_hand = sp.find_best(MEANS, measure_with(), policy=EvenPulls(problem)) if False else None
    assert by_hand is None
    answer = sp.find_best(list(MEANS), measure_with(), policy=EvenPulls(problem, growth=1.0))
    assert answer.best_arm == "a"
    assert (answer.certificate.epsilon, answer.certificate.delta) == (0.2, 0.1)


def test_a_policy_that_is_given_has_its_settings_itself():
    arms = sp.Arms(ids=list(MEANS))
    policy = sp.make_policy("certified-independent", arms, delta=0.1, **GOAL)
    assert sp.find_best(arms, measure_with(), policy=policy).certificate.delta == 0.1
    for name, value in {**GOAL, "delta": 0.2, "batch_size": 6}.items():
        with pytest.raises(sp.InvalidInput, match=f"{name} is given, and the policy, a MixtureElimination, has it"):
            sp.find_best(arms, measure_with(), policy=policy, **{name: value})
    with pytest.raises(
        sp.InvalidInput, match=r"made for other candidates, 'a', \.\.\.; make it of those that are given"
    ):
        sp.find_best(["x", "y", "z"], measure_with(), policy=policy)
    with pytest.raises(sp.InvalidInput, match="policy is 7; give a name"):
        sp.find_best(arms, measure_with(), policy=7)


def test_the_goal_is_needed_beside_a_name():
    with pytest.raises(sp.InvalidInput, match="certified-independent needs epsilon"):
        sp.find_best(["a", "b"], measure_with(), noise="bernoulli")


def test_a_study_in_a_database_and_its_certificate(outside, tmp_path):
    url, file = f"sqlite:///{tmp_path}/lab.db", tmp_path / "certificate.json"
    arms = sp.Arms(ids=list(MEANS))
    sp.create_study(url, "paint", arms, "even-pulls", growth=0.5, **GOAL).run(measure_with())
    by_object = sp.create_study(url, "ink", sp.make_policy("even-pulls", arms, delta=0.05, **GOAL))
    by_object.run(measure_with(1))
    again = sp.open_study(url, "paint")
    assert type(again.policy).__name__ == "EvenPulls"
    assert again.certificate().verdict == "certified"
    sp.write_certificate(again, file)
    assert sp.verify_certificate(file).holds
    sp.write_report(again, tmp_path / "report.html", forecast_up_to=0)
    assert "even-pulls" in (tmp_path / "report.html").read_text()
    assert "certified" in surepick("status", url, "ink")
    outside()
    with pytest.raises(sp.InvalidInput, match=GONE):
        sp.open_study(url, "paint")
    checked = sp.verify_certificate(file)
    assert not checked.holds
    assert GONE in str(checked)
    assert GONE in surepick("verify", str(file), code=3)


def test_options_stand_beside_the_name_of_a_policy_only(tmp_path):
    arms = sp.Arms(ids=list(MEANS))
    policy = sp.make_policy("certified-independent", arms, delta=0.1, **GOAL)
    with pytest.raises(sp.InvalidInput, match="stand beside the name of a policy"):
        sp.create_study(f"sqlite:///{tmp_path}/lab.db", "paint", arms, policy, epsilon=0.1)


def test_what_cannot_be_loaded_is_said_to_whoever_names_it(outside):
    assert "broken" not in sp.policy_names()
    with pytest.raises(sp.InvalidInput, match="'broken' of surepick-outside cannot be loaded: ModuleNotFoundError"):
        sp.make_policy("broken", sp.Arms(ids=["a"]), delta=0.1, **GOAL)
    assert "'sad' of surepick-outside is a str, and surepick.commands takes a CommandSpec" in surepick("sad", code=2)


def test_two_packages_may_not_add_the_same_name(outside, tmp_path, monkeypatch):
    twin = tmp_path / "twin-2.0.dist-info"
    twin.mkdir()
    (twin / "METADATA").write_text("Metadata-Version: 2.3\nName: twin\nVersion: 2.0\n")
    (twin / "entry_points.txt").write_text("[surepick.policies]\neven-pulls = twin:SPEC\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(sp.InvalidInput, match="surepick-outside and twin both add 'even-pulls' to"):
        sp.make_policy("even-pulls", sp.Arms(ids=["a"]), delta=0.1, **GOAL)


# what surepick-bench and surepick-server have


def test_what_is_declared_is_there():
    kinds = {COMMANDS: CommandSpec, POLICIES: PolicySpec, EMBEDDINGS: EmbeddingSpec}
    names: dict[str, list[str]] = {group: [] for group in kinds}
    for file in sorted(Path(__file__).parents[1].glob("packages/*/pyproject.toml")):
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        for group, declared in project.get("entry-points", {}).items():
            for name, value in declared.items():
                found = EntryPoint(name, value, group).load()
                assert isinstance(found, kinds[group])
                module, _, of = found.path.partition(":")
                assert callable(getattr(import_module(module), of)), name
            names[group] += declared
    assert tuple(sorted(names[POLICIES])) == IN_BENCH
    assert all(names.values())


def test_the_names_of_our_own_packages():
    assert set(IN_BENCH) <= set(plugin_names(POLICIES))
    assert plugin_names(EMBEDDINGS) == ("mercer",)
    assert plugin_names(COMMANDS) == ("bench", "serve", "token")
    for name in IN_BENCH:
        assert policy_options(name)


@pytest.mark.parametrize("name", IN_BENCH)
def test_a_policy_of_surepick_bench_says_what_to_install(alone, name):
    with pytest.raises(sp.InvalidInput) as refusal:
        sp.make_policy(name, sp.Arms(ids=["a", "b"]), delta=0.1, **GOAL)
    assert str(refusal.value) == f'{name} is in another package, which is absent: pip install "surepick[bench]".'


def test_an_expansion_says_what_to_install(alone):
    with pytest.raises(sp.InvalidInput, match=r'expansion is in another package.*pip install "surepick\[bench\]"'):
        sp.make_policy("certified-kernel", sp.Arms([[0.1], [0.4]]), delta=0.1, expansion="sine", norm_bound=1.0, **GOAL)


@pytest.mark.parametrize(("name", "extra"), [("serve", "serve"), ("token", "serve"), ("bench", "bench")])
def test_a_command_of_another_package_says_what_to_install(alone, name, extra):
    said = f'surepick {name} is in another package, which is absent: pip install "surepick[{extra}]".'
    assert surepick(name, "--help", code=2) == said
    assert f" {name} " not in surepick("--help")


def test_a_server_without_the_client_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "surepick_server.client", None)
    monkeypatch.delitem(sys.modules, "surepick_server.client.server", raising=False)
    with pytest.raises(sp.InvalidInput, match=r'list_studies of a server is in .*: pip install "surepick\[client\]"'):
        sp.list_studies("https://example.org")


# questions


def test_a_question_from_outside(outside, tmp_path):
    arms = sp.Arms(ids=list(MEANS))
    policy = sp.make_policy("certified-independent", arms, delta=0.1, question="passing", mark=0.5, **GOAL)
    asked = policy.problem.question
    assert question_name(asked) == "passing"
    assert question_spec(asked) == policy.spec["question"] == {"name": "passing", "mark": 0.5}
    assert policy.spec["packages"] == ["surepick-outside"]
    assert sp.make_policy(arms=arms, **policy.spec) == policy
    url, file = f"sqlite:///{tmp_path}/lab.db", tmp_path / "certificate.json"
    sp.create_study(url, "paint", policy).run(measure_with())
    study = sp.open_study(url, "paint")
    lists = study.certificate().lists
    assert lists.question == "Who passes at 0.5?"
    assert lists.guarantee == "Somebody is on the wrong list with probability at most 0.1."
    assert "a" in lists.inside
    assert "b" in lists.outside
    assert not wrongly_listed(policy.problem, lists, arms, np.array(list(MEANS.values()))).any()
    assert wrongly_listed(policy.problem, lists, arms, np.array([0.2, 0.9, 0.5])).tolist() == [True, True, False]
    sp.write_certificate(study, file)
    assert sp.verify_certificate(file).holds
    sp.write_report(study, tmp_path / "report.html", forecast_up_to=0)
    assert "Who passes at 0.5?" in (tmp_path / "report.html").read_text()
    assert sp.find_best(arms, measure_with(), question=asked, **GOAL).lists.question == "Who passes at 0.5?"
    outside()
    assert GONE in str(sp.verify_certificate(file))
    with pytest.raises(sp.InvalidInput, match=GONE):
        sp.open_study(url, "paint")
    with pytest.raises(sp.InvalidInput, match="question is 'passing'; choose one of best, above"):
        sp.make_policy("certified-independent", arms, delta=0.1, question="passing", mark=0.5, **GOAL)


def test_a_question_from_outside_is_refused_where_it_has_no_meaning(outside):
    arms = sp.Arms(ids=list(MEANS))
    with pytest.raises(sp.InvalidInput, match="rage answers question 'best', not 'passing'"):
        sp.make_policy("rage", sp.Arms([[1.0], [2.0]]), delta=0.1, question="passing", mark=0.5, **GOAL)
    with pytest.raises(sp.InvalidInput, match=r"certified-independent has no option 'height'; it knows .*mark"):
        sp.make_policy("certified-independent", arms, delta=0.1, question="passing", height=0.5, **GOAL)
    with pytest.raises(sp.InvalidInput, match="question 'passing' has no option 'm'; it knows mark"):
        sp.make_policy("certified-independent", arms, delta=0.1, question="passing", m=2, **GOAL)
    with pytest.raises(sp.InvalidInput, match="a threshold is for rewards of which large ones are good"):
        sp.find_best(arms, measure_with(), question="passing", mark=0.5, minimize=True, **GOAL)
    segmented = sp.Arms(ids=list(MEANS), segments=["x", "x", "y"])
    with pytest.raises(sp.InvalidInput, match="question 'passing' is not asked of segments"):
        sp.make_policy("certified-independent", segmented, delta=0.1, question="passing", mark=0.5, **GOAL)


def test_the_command_line_asks_it(outside, table):
    said = surepick(
        "run",
        table,
        "--epsilon",
        "0.1",
        "--noise",
        "subgaussian:0.1",
        *COLUMNS,
        "--question",
        "passing",
        "--option",
        "mark=0.5",
    )
    assert "Who passes at 0.5?" in said
    assert "passes at 0.5" in said
    assert "passing" in surepick("run", "--help")


# embeddings


def test_an_embedding_from_outside(outside, tmp_path):
    features = np.linspace(-1.0, 1.0, 9)[:, None]
    arms = sp.Arms(features, ids=list("abcdefghi"))
    means = dict(zip(arms.ids, np.square(features[:, 0]) * 0.9, strict=True))
    rng = np.random.default_rng(2)
    policy = sp.make_policy("certified-embedding", arms, delta=0.1, embedding="squares", norm_bound=1.0, **GOAL)
    assert policy.spec["embedding"] == "squares"
    assert policy.embedding.max_dim == 2
    assert sp.make_policy(arms=arms, **policy.spec) == policy
    study = sp.Study(policy)
    answer = study.run(lambda ids: [means[one] + 0.1 * rng.normal() for one in ids])
    assert answer.best_arm in ("a", "i")
    file = tmp_path / "certificate.json"
    sp.write_certificate(study, file)
    assert sp.verify_certificate(file).holds
    by_options = sp.find_best(
        arms, lambda ids: [means[one] + 0.1 * rng.normal() for one in ids], embedding="squares", norm_bound=1.0, **GOAL
    )
    assert by_options.certificate.verdict == "certified"
    outside()
    assert GONE in str(sp.verify_certificate(file))
    with pytest.raises(sp.InvalidInput, match="no embedding 'squares' is installed; those that are: mercer"):
        sp.make_policy("certified-embedding", arms, delta=0.1, embedding="squares", norm_bound=1.0, **GOAL)
    with pytest.raises(sp.InvalidInput, match="certified-embedding needs embedding"):
        sp.make_policy("certified-embedding", arms, delta=0.1, **GOAL)


def test_the_command_line_names_it(outside, tmp_path):
    rng = np.random.default_rng(3)
    rows = [
        f"{k},{x},{0.9 * x * x + 0.1 * rng.normal()}" for k, x in enumerate(np.linspace(-1, 1, 9)) for _ in range(20)
    ]
    path = tmp_path / "lab.csv"
    path.write_text("\n".join(["id,x,reward", *rows]) + "\n")
    words = (
        *COLUMNS,
        "--features",
        "x",
        "--epsilon",
        "0.1",
        "--noise",
        "subgaussian:0.1",
        "--embedding",
        "squares",
        "--norm-bound",
        "1",
    )
    assert "certified" in surepick("run", str(path), *words)


# commands


def test_a_command_from_outside(outside):
    listed = surepick("--help")
    assert "Outside" in listed
    assert "count Count the policies." in listed
    assert "'sad' of surepick-outside is a str" in listed
    assert surepick("count", "--start", "even") == "1 policies."
    assert "Only names that begin so." in surepick("count", "--help")
    assert surepick("count", "--start", "7", code=2) == "no policy begins with 7."


def test_a_command_from_outside_in_a_process_of_its_own():
    path = os.pathsep.join([str(OUTSIDE), os.environ.get("PYTHONPATH", "")])

    def run(*words):
        return subprocess.run(
            [sys.executable, "-m", "surepick", *words],
            env={**os.environ, "PYTHONPATH": path, "COLUMNS": "200"},
            capture_output=True,
            text=True,
            check=False,
        )

    assert run("count", "--start", "even").stdout == "1 policies.\n"
    refused = run("count", "--start", "7")
    assert (refused.returncode, refused.stderr) == (2, "error: no policy begins with 7.\n")


# nobody pays for what is not asked for


def test_names_of_our_own_are_not_looked_up(unasked, table, tmp_path):
    arms = sp.Arms([[0.1, 0.3], [0.5, 0.2], [0.9, 0.8]], ids=list(MEANS))
    for name, options in {
        "certified-independent": {"question": "top", "m": 1},
        "certified-linear": {"norm_bound": 2.0},
        "rage": {},
    }.items():
        sp.make_policy(name, arms, delta=0.1, **GOAL, **options)
    assert sp.find_best(list(MEANS), measure_with(), question="all-good", **GOAL).lists
    study = sp.create_study(f"sqlite:///{tmp_path}/lab.db", "paint", arms, "certified-independent", **GOAL)
    study.run(measure_with())
    sp.write_certificate(sp.open_study(f"sqlite:///{tmp_path}/lab.db", "paint"), tmp_path / "certificate.json")
    assert sp.verify_certificate(tmp_path / "certificate.json").holds
    assert "certified" in surepick("run", table, *COLUMNS, "--epsilon", "0.1", "--noise", "subgaussian:0.1")
    with pytest.raises(AssertionError, match="was looked up"):
        sp.policy_names()


def test_a_name_of_our_own_wins(outside, tmp_path, monkeypatch):
    thief = tmp_path / "thief-1.0.dist-info"
    thief.mkdir()
    (thief / "METADATA").write_text("Metadata-Version: 2.3\nName: thief\nVersion: 1.0\n")
    (thief / "entry_points.txt").write_text(
        "[surepick.policies]\nrage = thief:A\n[surepick.questions]\ntop = thief:B\n[surepick.commands]\nrun = thief:C\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    arms = sp.Arms([[0.1], [0.5], [0.9]])
    assert type(sp.make_policy("rage", arms, delta=0.1, **GOAL)).__name__ == "ArmElimination"
    assert "rage" in sp.policy_names()
    assert set(NAMES) & set(plugin_names(QUESTIONS)) == {"top"}
    assert sp.make_policy("certified-independent", arms, delta=0.1, question="top", m=1, **GOAL).problem.question.m == 1
    assert "thief" not in surepick("--help")
