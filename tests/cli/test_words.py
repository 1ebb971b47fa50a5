"""What the command line says of policies, progress and options, where a careless word would be wrong."""

import re
from functools import cache

from rich.text import Text
from together import of_each
from typer.testing import CliRunner

import surepick as sp
from surepick.cli.answers import print_certificate
from surepick.cli.app import app, as_written, command_names, command_spec, loaded
from surepick.noise import informative
from surepick.studies.progress import rounded_up

# help


FRAME = re.compile("[\u2500-\u257f]")


def shown(*words: str) -> str:
    """What a command prints, without frames and line breaks."""
    result = CliRunner(env={"COLUMNS": "220", "TERM": "dumb"}).invoke(app, words, catch_exceptions=False)
    return " ".join(FRAME.sub(" ", result.stdout).split())


@cache
def plain_commands() -> dict:
    """Words -> the command as Typer makes it of the function, for every command."""
    commands = {}
    for name in command_names():
        found = commands[name,] = loaded(name, helps=True)
        commands.update({(name, below): command for below, command in getattr(found, "commands", {}).items()})
    return commands


@of_each("words", plain_commands(), ids=" ".join)
def test_help_is_printed_as_it_is_written(words):
    command = plain_commands()[words]
    said = shown(*words, "--help")
    assert said.isascii(), "a picture stands in place of text"
    for parameter in command.params:
        for part in Text.from_markup(parameter.help or "").plain.split():
            assert part in said, (words, parameter.name)


def test_a_pilot_is_no_picture():
    assert "(pilot:100: 100 measurements)" in shown("run", "--help")


@of_each("text", ["pilot:100:", "a [b] c:100::smile: d", ":smile:", "x:y", "::", ":a:b:", "[a[b]]", "\\[a]"])
def test_text_is_not_markup(text):
    assert Text.from_markup(as_written(text)).plain == text


@of_each("name", command_names())
def test_the_list_of_commands_says_what_their_own_help_says(name):
    summary = command_spec(name).summary
    own = Text.from_markup(loaded(name).help).plain.split("\n\n")[0]
    assert " ".join(own.split()).startswith(summary.removesuffix(".")), "docstring and summary differ"


def test_commands_stand_in_groups():
    said = shown("--help")
    place = 0
    panels = {name: command_spec(name).panel for name in command_names()}
    assert list(dict.fromkeys(panels.values())) == ["Try", "Studies", "Team", "Share and check", "Experiments"]
    for panel in dict.fromkeys(panels.values()):
        for word in (panel, *(name for name in panels if panels[name] == panel)):
            place = said.index(f" {word} ", place) + len(word)
    assert " Commands " not in said.partition("Options")[2]


# bounds that say nothing


@of_each(
    ("gap", "noise", "stated"),
    [
        (1.0, "bernoulli", None),
        (1.2, "bernoulli", None),
        (0.99, "bernoulli", 0.99),
        (4.0, "bounded:-1:3", None),
        (3.0, "bounded:-1:3", 3.0),
        (1e9, "subgaussian:1", 1e9),
        (None, "bernoulli", None),
    ],
)
def test_a_bound_that_is_no_smaller_than_any_difference_is_none(gap, noise, stated):
    assert informative(gap, sp.parse_noise(noise)) == stated


def test_a_bound_that_is_no_smaller_than_the_declared_one_is_none():
    assert informative(0.4, sp.SubGaussian(1.0), 0.4) is None
    assert informative(0.3, sp.SubGaussian(1.0), 0.4) == 0.3
    assert informative(0.3, sp.Bounded(0.0, 0.2), 0.4) is None


def clicks(pulls: int) -> sp.Study:
    """A study of 0/1 rewards with a round that is complete."""
    arms = sp.Arms([[1.0], [2.0], [3.0]], ("a", "b", "c"))
    study = sp.Study(arms, sp.make_policy("lucb", arms, epsilon=0.01, delta=0.05, noise="bernoulli"))
    while len(study.trace) < pulls:
        plan = study.ask()
        study.tell_totals(study.ids, plan.counts, plan.counts * [0.0, 1.0, 0.0])
    return study


def test_a_study_of_clicks_does_not_say_that_it_is_at_most_1_worse(capsys):
    study = clicks(1)
    assert study.trace[-1].certified_gap >= 1.0
    assert str(study.progress()).endswith("best of the closed rounds b, nothing is proved about it yet.")
    assert study.progress().certified_gap is None
    print_certificate(study.certificate(), study.policy.problem)
    said = capsys.readouterr().out
    assert "within 1 of" not in said
    assert "nothing can be said yet about how good it is" in said
    assert study.candidates().gap is None


def test_a_bound_that_says_something_is_still_stated(capsys):
    study = clicks(20)
    gap = study.trace[-1].certified_gap
    assert gap < 1.0
    assert f"b, with 95% confidence at most {rounded_up(gap)} worse than the best." in str(study.progress())
    print_certificate(study.certificate(), study.policy.problem)
    assert f"proved to be within {gap:.4g} of" in capsys.readouterr().out
