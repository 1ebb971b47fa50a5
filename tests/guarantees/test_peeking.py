"""Whoever sees the rewards of an open plan can make it lie; so nothing that is shown depends on them.

Measured on two arms that differ by 1.02 epsilon, at delta = .05 (normal noise of 64 epsilon, one judgement a round,
10,000 studies): a user who closes the plan as soon as what came so far would be certified makes .076 wrong
certificates, an honest one none. Of rewards of 0 and 1, when a fifth of the best arm's successes never arrives: .58
(400 studies), without the loss .007. The quick tests have noise of 1000 epsilon, where one can look more often.
"""

import itertools
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
import pytest
from bounds import failures_allowed, trials_to_notice
from peeking_studies import DELTA, honest_user, peeking_user, wrong_certificates, wrong_with_losses
from typer.testing import CliRunner

import surepick as sp
from surepick.cli import app as command_line
from surepick.cli.app import app, command_names, loaded
from surepick.studies import recording

QUICK = 500  # studies, with which one who errs as often as who peeks (.14) is missed with probability .01

# --- what peeking does


def test_closing_a_plan_when_it_looks_good_breaks_the_promise():
    """The fault itself: the reason that is given, "independent-of-value", is a lie, and no code can know."""
    assert wrong_certificates(peeking_user, QUICK, sigma=1000.0) > failures_allowed(QUICK, DELTA)


def test_the_honest_user_of_the_same_studies_keeps_the_promise():
    assert wrong_certificates(honest_user, QUICK, sigma=1000.0) <= failures_allowed(QUICK, DELTA)


LOSSES = pytest.mark.parametrize(  # with half of them lost nearly all studies are wrong
    ("lost", "studies"), [(0.5, trials_to_notice(DELTA, 0.99)), pytest.param(0.2, 40, marks=pytest.mark.slow)]
)


@LOSSES
def test_losing_some_of_the_successes_breaks_the_promise(lost, studies):
    assert wrong_with_losses(lost, studies) > failures_allowed(studies, DELTA)


@LOSSES
def test_the_same_studies_without_the_loss_keep_the_promise(lost, studies):
    assert wrong_with_losses(0.0, studies) <= failures_allowed(studies, DELTA)


@pytest.mark.slow
def test_peeking_at_the_size_of_the_figures():
    trials = 10_000
    peeking, honest = (wrong_certificates(user, trials, sigma=64.0) for user in (peeking_user, honest_user))
    print(f"\n{trials} studies: {peeking / trials:.4f} wrong with peeking, {honest / trials:.4f} without")
    assert honest <= failures_allowed(trials, DELTA) < peeking
    lost, whole = (wrong_with_losses(share, 400) for share in (0.2, 0.0))
    print(f"400 studies: {lost / 400:.3f} wrong with a fifth of the successes lost, {whole / 400:.3f} without")
    assert whole <= failures_allowed(400, DELTA) < lost


# --- what is shown

IDS = ("a", "b", "c")
SHOWN = {  # commands that show something of a study -> arguments after URL and NAME
    "shortlist": [["short"]],
    "status": [[], ["--format", "json"]],
    "recommend": [[], ["--format", "json"]],
    "read": [[], ["--assume", "nothing", "--format", "json"]],
    "certificate": [[], ["--format", "json"], ["--out", "FOLDER/certificate.json"]],
    "ask": [[], ["--format", "json"], ["--worker", "cy", "--max-pulls", "1", "--format", "json"]],
    "tell": [["FOLDER/again.csv"], ["FOLDER/other.csv"], ["FOLDER/again.csv", "--format", "json"]],
    "correct": [["k1", "7"], ["p2.0@a", "7"], ["a", "7"], ["a", "7", "--typed", "900"], ["a", "7", "--typed", "0.3"]],
    "export": [["--out", "FOLDER/results.csv"], ["--out", "FOLDER/results.csv", "--format", "json"]],
    "report": [["--out", "FOLDER/report.html", "--forecast-up-to", "0"]],
}
WRITTEN = ("results.csv", "report.html", "certificate.json")  # what these commands write
OF_ALL = {"list": [[], ["--format", "json"]], "migrate": [[], ["--format", "json"]]}
ENDING = {"release": [["--worker", "bob"]], "undo": [["k1"], ["--worker", "ann"]], "close": [["--reason", "enough"]]}
WRITING = {
    "create",
    "abandon",
    "confirm",
    "run-study",
    "interim",
    "withdraw",
    "add",
}  # make a study, or close its open plan, after which it may be seen; the last two show its status, as "status" does
QUIET = [0.3, -0.2, 0.1, 0.0, 0.4]  # rewards of an open plan
LOUD = {
    "it would be certified": [900.0, 900.0, -900.0, -900.0, -900.0],
    "another arm would lead": [-900.0, -900.0, 900.0, 900.0, -900.0],
    "one bit differs": [np.nextafter(0.3, 1.0), -0.2, 0.1, 0.0, 0.4],
}


class Home:
    """A folder with a database, and what of it must not be compared.

    Args:
        folder: where it is; its name is hidden in what is shown.
    """

    def __init__(self, folder) -> None:
        folder.mkdir()
        self.folder = folder
        self.url = f"sqlite:///{folder / 'studies.db'}"

    def hidden(self, text: str) -> str:
        return text.replace(str(self.folder), "FOLDER")


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Makes homes, each with a clock that ticks once a look, from the same time on."""

    def make(name: str) -> Home:
        ticks = itertools.count(1_750_000_000)
        monkeypatch.setattr("surepick.studies.logs.base.time", SimpleNamespace(time=lambda: float(next(ticks))))
        return Home(tmp_path / name)

    return make


def begun(home: Home, rewards) -> tuple[sp.Study, list[str]]:
    """(a study with one plan closed and five of nine results of the next one in, what telling them showed)."""
    arms = sp.Arms(ids=IDS)
    asked = {"epsilon": 1.0, "delta": 0.05, "noise": sp.SubGaussian(3.0), "batch_size": 9}
    policy = sp.make_policy("certified-independent", arms, **asked)
    study = sp.create_study(home.url, "paint", arms, policy, study_id="one")
    study.tell([*"aaabbbccc"], [1.0, 2.0, 3.0, 0.0, 1.0, 2.0, 0.0, 0.5, 1.0])
    assert study.ask().counts.min() >= 2
    keys = study.lease(max_pulls=2, worker="ann", duration="1h").keys()
    assert [arm for arm, _ in keys] == ["a", "a"]
    study.lease(max_pulls=1, worker="bob")
    sure = {"accept_unusual": True}  # whoever reports loud rewards confirms them
    said = [study.tell(["a", "a"], rewards[:2], [key for _, key in keys], worker="ann", **sure)]
    said.append(study.tell(["b", "c", "b"], rewards[2:], ["k1", "k2", None], **sure))
    rows = [f"{arm},{reward!r},{key}" for (arm, key), reward in zip(keys, map(float, rewards[:2]), strict=True)]
    (home.folder / "again.csv").write_text("\n".join(["id,reward,key", *rows]))
    (home.folder / "other.csv").write_text("id,reward,key\nb,12345,k1")
    return study, [repr(receipt) for receipt in said]


def refusals(study: sp.Study, rewards) -> list[str]:
    """What is said when results are refused."""
    calls = [
        lambda: study.tell(["b"], [12345.0], ["k1"]),
        lambda: study.tell(["a"], [12345.0], ["k2"]),
        lambda: study.tell_prior(["b"], [12345.0], ["k1"]),
        lambda: study.tell_totals(["b"], [2], [12345.0], keys=["k1"]),
        lambda: study.tell(["z"], [1.0]),
        lambda: study.tell(["a"], [1.0], plan=9),
        lambda: study.tell(["a"], [np.nan]),
        lambda: study.fail(["b"], ["p2.99@b"]),
    ]
    said = []
    for call in calls:
        with pytest.raises(sp.SurepickError) as refusal:
            call()
        said.append(str(refusal.value))
    assert study.tell(["b"], rewards[2:3], ["k1"]).repeated == 1
    return said


def shown_by_library(study: sp.Study) -> list[str]:
    reads = {
        "missing": lambda: study.missing,
        "trace": lambda: study.trace,
        "recommend": study.recommend,
        "certificate": study.certificate,
        "stopped": lambda: study.stopped,
        "ask": study.ask,
        "free": study.free_part,
        "keys": lambda: (part := study.lease(max_pulls=1, worker="dee")) and part.keys(),
        "progress": study.progress,
        "status": lambda: str(study.progress()),
        "done by": lambda: study.progress().done_by,
    }
    with np.printoptions(threshold=10**6, precision=17):
        return [f"{name}: {read()!r}" for name, read in reads.items()]


def shown_by_commands(home: Home, commands, *, named: bool = True) -> list[str]:
    """Output, messages and exit code of each command, and the files that it wrote."""
    shown = []
    for command, ways in commands.items():
        for way in ways:
            words = [command, home.url, *(["paint"] if named else []), *way]
            words = [word.replace("FOLDER", str(home.folder)) for word in words]
            result = CliRunner(env={"COLUMNS": "200", "TERM": "dumb"}).invoke(app, words)
            said = result.exception if isinstance(result.exception, sp.SurepickError) else ""
            assert said or result.exception is None or isinstance(result.exception, SystemExit), result.exception
            shown.append(f"{words} {result.exit_code}\n{result.stdout}\n{result.stderr}\n{said}")
            for file in [home.folder / name for name in WRITTEN]:
                if file.exists():
                    shown.append(file.read_text(encoding="utf-8"))
                    file.unlink()
    return [home.hidden(text) for text in shown]


def shown(home: Home, rewards, *, to_the_end: bool = False, commands=SHOWN) -> list[str]:
    """Everything that can be seen of a study whose second plan is open and was told these rewards."""
    study, said = begun(home, rewards)
    for handle in (study, sp.open_study(home.url, "paint")):
        said += shown_by_library(handle)
    said += refusals(study, rewards)
    said += shown_by_commands(home, commands)
    said += shown_by_commands(home, OF_ALL, named=False)
    said.append(repr(sp.list_studies(home.url)))
    if to_the_end:
        missing = study.missing
        study.tell_totals(study.ids, missing, 0.1 * missing, 0.1 * missing)
    else:
        said += shown_by_commands(home, ENDING)
        said += shown_by_commands(home, commands)
    return said + shown_by_library(study)


ASKED_ALWAYS = "it would be certified"  # who shows one bit shows this too
QUIET_SHOWN: list[str] = []  # what is compared with: the same each time


def shown_of_quiet(home: Callable[[str], Home]) -> list[str]:
    if not QUIET_SHOWN:
        QUIET_SHOWN.extend(shown(home("main"), QUIET))
    return QUIET_SHOWN


@pytest.mark.parametrize(
    "rewards",
    [
        pytest.param(rewards, id=name, marks=[] if name == ASKED_ALWAYS else pytest.mark.slow)
        for name, rewards in LOUD.items()
    ],
)
def test_nothing_that_is_shown_depends_on_the_rewards_of_an_open_plan(home, rewards):
    """Even after the study is closed early: what the open plan was told is then not used."""
    assert shown(home("left"), rewards) == shown_of_quiet(home)


def test_after_the_last_result_the_plan_is_seen(home):
    """So the comparison can tell: the same two studies differ once their plan is complete."""
    left = shown(home("left"), LOUD["it would be certified"], to_the_end=True, commands={})
    main = shown(home("main"), QUIET, to_the_end=True, commands={})
    differing = {ours.partition(":")[0] for ours, theirs in zip(left, main, strict=True) if ours != theirs}
    assert {"ask", "certificate", "progress", "status"} <= differing


# Every answer of these is compared in tests/serve/test_open_rounds.py, tests/serve/pages and tests/cli/test_agent.py.
SERVERS = {"serve", "mcp"}


def test_every_command_about_studies_is_compared():
    """A new command belongs into one of the lists: it shows something, or it changes something."""
    known = SHOWN.keys() | OF_ALL.keys() | ENDING.keys() | WRITING | SERVERS
    about_studies = {name for name in command_names() if "url" in {parameter.name for parameter in loaded(name).params}}
    assert about_studies >= {"status", "certificate", "report"}
    unknown = about_studies - known
    assert not unknown, f"these take a study: say in this file whether they show something of it: {unknown}"


# --- the saboteurs


def status_with_the_mean_so_far(url: str, name: str) -> None:
    study = sp.open_study(url, name)
    parts = study.log.results(study.log.last_plan().number)
    print(f"{name}: mean so far {np.concatenate([part.sums for part in parts]).mean():.6f}")


def recommend_with_what_is_open(self: sp.Study) -> str:
    parts = self.log.results(self.log.last_plan().number)
    sums = sum(np.bincount(part.arms, weights=part.sums, minlength=len(self.ids)) for part in parts)
    return self.ids[int(np.argmax(sums))]


def fresh_with_a_value(log, results, ids):
    try:
        return FRESH(log, results, ids)
    except sp.InvalidInput as error:
        told = log.recorded([key for key in results.keys if key is not None])
        raise sp.InvalidInput(f"{error} It was {[known.total for known in told.values()]}.") from error


FRESH = recording.fresh
SABOTEURS = {  # place, saboteur, what lines have that differ
    "a status with the mean so far": (
        "surepick.cli.commands.studies.status",
        status_with_the_mean_so_far,
        "['status', ",
    ),
    "a recommendation from the open plan": (
        "surepick.studies.study.Study.recommend",
        recommend_with_what_is_open,
        "recommend: ",
    ),
    "a message with the stored value": ("surepick.studies.recording.fresh", fresh_with_a_value, "It was ["),
}


def test_surfaces_that_show_something_would_be_noticed(home, monkeypatch):
    """All saboteurs at work in the same two studies, and each is noticed where it is."""
    monkeypatch.setattr(command_line, "loaded", command_line.loaded.__wrapped__)  # tests load a command once
    for place, doctored, _ in SABOTEURS.values():
        monkeypatch.setattr(place, doctored)
    left = shown(home("left"), LOUD["another arm would lead"], commands={"status": [[]]})
    main = shown(home("main"), QUIET, commands={"status": [[]]})
    differing = [ours for ours, theirs in zip(left, main, strict=True) if ours != theirs]
    for name, (_, _, part) in SABOTEURS.items():
        assert any(part in line for line in differing), name
