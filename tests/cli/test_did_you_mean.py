"""What nobody has is answered with what was meant: commands, options, columns, ids, policies, questions."""

import string

import pytest
from budgets import budget
from fuzz_commands import run
from hypothesis import given, settings, strategies as st

import surepick as sp
from surepick.cli.app import command_names
from surepick.policies.registry import policy_names, policy_options
from surepick.text import did_you_mean

ARMS = sp.Arms([[1.0, 0.0], [0.0, 1.0]], ["Rxn-1", "Rxn-2"])
COMMANDS = command_names()
QUESTION = {"epsilon": 0.5, "delta": 0.05, "noise": "bernoulli"}


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("rnu t.csv", "'run'"),
        ("forcast t.csv", "'forecast'"),
        ("Create a b", "'create'"),
        ("token lst x", "'list'"),
        ("bench rnu", "'run'"),
        ("run t.csv --nosie bernoulli", "--noise"),
    ],
)
def test_commands_and_options(line, meant):
    ended = run(line.split())
    assert ended.code == 2
    assert meant in ended.err


@settings(max_examples=budget(100))
@given(st.sampled_from(sorted(COMMANDS)), st.integers(0, 30), st.sampled_from(string.ascii_lowercase))
def test_a_slip_in_a_name_is_noticed(name, place, letter):
    place %= len(name)
    for typed in (name[:place] + letter + name[place:], name[:place] + letter + name[place + 1 :], name.upper()):
        if typed not in COMMANDS and len(typed) > 3:
            assert did_you_mean(typed, COMMANDS).startswith(" Did you mean '")


@settings(max_examples=budget(100))
@given(st.text(max_size=40), st.lists(st.text(max_size=40), max_size=20))
def test_any_text_has_an_answer(word, known):
    said = did_you_mean(word, known)
    assert said == "" or (said.startswith(" Did you mean ") and said.isprintable() and len(said) < 150)


def test_long_lists_are_only_looked_at_for_spellings():
    many = [f"sku-{number}" for number in range(50_000)]
    assert did_you_mean("SKU_49999", many) == " Did you mean 'sku-49999'?"
    assert did_you_mean("sku-x", many) == ""


@pytest.mark.parametrize(
    ("typed", "known", "meant"),
    [
        ("1.0", ["1", "2"], "'1'"),
        ("a ", ["a"], "'a'"),
        ("toughness", ["Toughness"], "'Toughness'"),
        ("cafe\u0301", ["caf\u00e9"], "'café'"),
        ("a", ["a\u200b"], r"'a\\u200b'"),
        ("rxn 1", ["Rxn-1"], "'Rxn-1'"),
        ("certified-indep", policy_names(), "'certified-independent'"),
    ],
)
def test_spellings(typed, known, meant):
    assert did_you_mean(typed, known).replace("\\\\", "\\") == f" Did you mean {meant}?".replace("\\\\", "\\")


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        (lambda: sp.make_policy("certified-lineal", ARMS, norm_bound=1.0, **QUESTION), "certified-linear"),
        (lambda: sp.make_policy("certified-linear", ARMS, norm_bond=1.0, **QUESTION), "norm_bound"),
        (lambda: sp.find_best(["a"], list, batchsize=3, **QUESTION), "batch_size"),
        (lambda: sp.find_best(["a", "b"], list, question="tpo", m=1, **QUESTION), "top"),
        (lambda: sp.find_best(["a", "b"], list, question="above", treshold=1, **QUESTION), "threshold"),
        (lambda: sp.find_best(["a", "b"], list, question="above", control="A", **QUESTION), "a"),
        (lambda: sp.find_best(["a", "b", "c"], list, later=["C"], **QUESTION), "c"),
        (lambda: sp.make_policy("linear-embedding", ARMS, norm_bound=1.0, schedule="papr", **QUESTION), "paper"),
    ],
)
def test_names_in_python(call, meant):
    with pytest.raises(sp.InvalidInput, match=f"Did you mean '{meant}'"):
        call()


def test_ids_of_results():
    study = sp.Study(sp.make_policy("certified-independent", sp.Arms(ids=["1", "2"]), **QUESTION))
    study.ask()
    with pytest.raises(sp.InvalidInput, match=r"the first is '1\.0'\. Did you mean '1'\?"):
        study.tell(["1.0", "2"], [1.0, 0.0])
    assert study.tell([1.0, 2], [1.0, 0.0]).counted == 2  # a whole number is one id in every spelling


def test_every_option_knows_itself():
    for name in policy_names():
        for option in policy_options(name):
            assert did_you_mean(option.upper(), policy_options(name)) == f" Did you mean '{option}'?"
