"""Questions beside "which is the best": what each needs and refuses, and its way to plain data and back."""

import json
import math
import re
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st
from refusals import refused

import surepick as sp
from surepick.cli.policy_options import PolicyOptions
from surepick.core.records import from_json, to_json
from surepick.errors import InvalidInput
from surepick.noise import parse_noise
from surepick.questions import (
    NAMES,
    QUESTION_OPTIONS,
    Above,
    AllGood,
    BestFeasible,
    Constraint,
    OneOf,
    Question,
    TopM,
    parse_question,
    question_spec,
    taken_question,
)
from surepick.questions.feasible import RESERVED

numbers = st.floats(allow_nan=False, allow_infinity=False, width=32)
ids = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), min_size=1, max_size=20)
errors = st.sampled_from(["family", "discovery"])
QUESTIONS = st.one_of(
    st.builds(Above, threshold=numbers, by=numbers, errors=errors),
    st.builds(Above, control=ids, by=numbers, errors=errors),
    st.builds(TopM, m=st.integers(1, 2**53)),
    st.builds(AllGood, slack=st.one_of(st.none(), st.floats(1e-6, 1e6))),
    st.builds(OneOf, share=st.floats(1e-6, 0.999), sample_seed=st.integers(0, 2**32)),
)
NOISES = st.sampled_from(["bernoulli", "bounded:-1:2.5", "subgaussian:0.3", "subgaussian:1,2,3"])
CONSTRAINTS = st.one_of(
    st.builds(
        Constraint,
        ids.filter(lambda text: text.strip() not in ("", *RESERVED) and not set(text) & set("<>=,")),
        numbers,
        st.booleans(),
    ),
    st.builds(Constraint, st.just("temp in C"), numbers, st.booleans(), st.floats(1e-6, 1e6), NOISES.map(parse_noise)),
)


# --- plain data and back


@given(QUESTIONS)
def test_the_spec_makes_an_equal_question(question: Question):
    spec = question_spec(question)
    assert spec["name"] in NAMES
    assert None not in spec.values()
    assert parse_question(json.loads(json.dumps(spec)), {}) == question
    assert taken_question({"question": spec}) == question


@given(QUESTIONS)
def test_it_survives_json_and_a_parse_of_itself(question: Question):
    assert from_json(type(question), to_json(question)) == question
    assert parse_question(question, {}) is question


@given(st.lists(CONSTRAINTS, min_size=1, max_size=3, unique_by=lambda one: one.name))
def test_constraints_have_a_text_each_from_which_they_come_again(constraints):
    question = BestFeasible(constraints)
    spec = json.loads(json.dumps(question_spec(question)))
    assert spec["name"] == "feasible"
    assert parse_question(spec, {}) == question
    assert taken_question({"constraints": spec["constraints"]}) == question
    assert taken_question({"question": "best", "constraints": spec["constraints"]}) == question
    assert question.constraints == tuple(constraints)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("temp", "not understood"),
        ("temp<80", "not understood"),
        ("temp<=hot", "no number"),
        ("temp<=1,near=2", "neither tolerance=... nor noise=..."),
        ("temp<=1,noise=subgaussian:1", "Say how far beyond"),
        ("temp<=1,tolerance=0.1,noise=normal", "names no scale"),
        ("temp<=1,tolerance=-1", "not negative"),
        ("temp<=inf", "finite"),
        (7, "not understood"),
        ("reward<=1", "another column of that name"),
    ],
)
def test_a_constraint_that_says_too_little_is_refused(given, words):
    refused(lambda: BestFeasible([given]), words)


def test_constraints_are_some_each_on_another_quantity():
    refused(lambda: BestFeasible([]), "needs constraints")
    refused(lambda: BestFeasible(["t<=1", "t>=0"]), "two constraints are on 't'")


@pytest.mark.parametrize("nothing", [None, "best"])
def test_the_best_arm_is_no_record(nothing):
    assert parse_question(nothing, {}) is None
    assert question_spec(None) is None


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ({"question": "above", "threshold": 3}, Above(threshold=3.0)),
        ({"question": "above", "threshold": 0, "by": 1}, Above(threshold=0.0, by=1.0)),
        ({"question": "above", "control": "old", "errors": "discovery"}, Above(control="old", errors="discovery")),
        ({"question": "above", "control": "old", "threshold": None}, Above(control="old")),
        ({"question": "top", "m": 4, "slack": None}, TopM(4)),
        ({"question": "all-good"}, AllGood()),
        ({"question": "all-good", "slack": 0.5}, AllGood(0.5)),
        ({"question": TopM(2)}, TopM(2)),
        ({"question": None}, None),
        ({"question": "best", "m": None}, None),
    ],
)
def test_options_make_a_question_and_are_taken_out(words, asked):
    options = {**words, "tolerance": 0.1}
    assert taken_question(options) == asked
    assert options == {"tolerance": 0.1}


def test_without_a_question_control_is_left_for_blocks():
    options = {"control": "old", "blocks": "plate"}
    assert taken_question(options) is None
    assert options == {"control": "old", "blocks": "plate"}


def test_the_options_of_questions_are_the_fields_of_their_records():
    assert set(QUESTION_OPTIONS) == {each.name for made in NAMES.values() for each in fields(made)}
    assert {"threshold", "control", "by", "errors", "m", "slack", "share"} <= set(QUESTION_OPTIONS)


def test_whole_numbers_of_any_kind_are_whole():
    for m in (np.int64(3), 3.0, np.float32(3.0)):
        asked = TopM(m)
        assert type(asked.m) is int
        assert question_spec(asked) == {"name": "top", "m": 3}
    assert type(AllGood(1).slack) is float


# --- refusals


@pytest.mark.parametrize("wrong", [{}, {"threshold": 1.0, "control": "old"}])
def test_above_needs_a_threshold_or_a_control(wrong):
    refused(lambda: Above(**wrong), "needs threshold, a number, or control", "not both")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "many", True, None, [1.0]])
@pytest.mark.parametrize("name", ["threshold", "by"])
def test_numbers_are_finite(name, value):
    given_to = {"threshold": 0.0, name: value}
    if name == "threshold" and value is None:
        return
    refused(lambda: Above(**given_to), name, repr(value))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Above(control=3), ("control", "must be a text")),
        (lambda: Above(control="a\0b"), ("control", "zero byte")),
        (lambda: Above(control="\ud800"), ("control", "half of a character")),
        (lambda: Above(threshold=0.0, errors="all"), ("errors is 'all'", "'family', 'discovery'")),
        (lambda: Above(threshold=0.0, errors=None), ("errors is None", "'family', 'discovery'")),
        (lambda: TopM(0), ("m is 0", "1 or more", "how many of the best are wanted")),
        (lambda: TopM(2.5), ("m is 2.5", "whole number")),
        (lambda: TopM("2"), ("m is '2'", "must be a number")),
        (lambda: TopM(None), ("m is None", "must be a number")),
        (lambda: TopM(True), ("m is True", "must be a number")),
        (lambda: AllGood(0.0), ("slack is 0.0", "positive", "how much worse than epsilon")),
        (lambda: AllGood(-1), ("slack is -1", "positive")),
        (lambda: AllGood(math.inf), ("slack is inf", "finite")),
    ],
)
def test_values_without_a_meaning_are_refused(make, words):
    refused(make, *words)


@pytest.mark.parametrize(
    ("asked", "options", "words"),
    [
        ("which", {}, ("question is 'which'", "best, above, top, all-good, one-of")),
        ({"name": "which"}, {}, ("question is 'which'", "best, above, top, all-good, one-of")),
        ({"m": 3}, {}, ("question is None", "best, above, top, all-good, one-of")),
        (7, {}, ("question is 7", "or its record")),
        ("top", {}, ("'top' needs m", "how many")),
        ("top", {"m": 2, "slack": 0.1}, ("'top' has no option 'slack'", "it knows m")),
        ("all-good", {"m": 2}, ("'all-good' has no option 'm'", "it knows slack")),
        ({"name": "above", "threshold": 0.0, "colour": "red"}, {}, ("no option 'colour'", "threshold, control, by")),
        ("above", {}, ("needs threshold",)),
        (None, {"m": 2}, ("m: belongs to a question by its name", "question='top', m=5")),
        ("best", {"m": 2, "slack": 1.0}, ("m, slack: belong to a question by its name",)),
        (TopM(2), {"m": 3}, ("m: belongs to a question by its name",)),
        ({"name": "top", "m": 2}, {"m": 3}, ("m: belongs to a question by its name",)),
    ],
)
def test_what_is_no_question_is_refused(asked, options, words):
    refused(lambda: parse_question(asked, options), *words)


def test_options_without_a_question_are_refused_by_policies():
    with pytest.raises(InvalidInput, match="threshold: belongs to a question by its name"):
        sp.make_policy(
            "certified-independent", sp.Arms(ids=[*"ab"]), epsilon=0.1, delta=0.1, noise="bernoulli", threshold=0.5
        )


# --- a question is one file


SOURCES = Path(__file__).parents[1] / "packages"


@pytest.mark.parametrize("made", [Above, TopM, AllGood, BestFeasible])
def test_nobody_but_the_registry_knows_a_question(made):
    """So that a new one is a file, and a name in two others: forms, commands, words and the truth are made of it."""
    files = [*SOURCES.glob("surepick*/src/**/*.py*"), *SOURCES.glob("surepick-server/src/**/*.html")]
    known = [file for file in files if "surepick_bench" not in file.parts and file.suffix != ".pyc"]
    naming = {file.name for file in known if re.search(rf"\b{made.__name__}\b", file.read_text(encoding="utf-8"))}
    assert naming == {f"{made.__module__.rpartition('.')[2]}.py", "registry.py", "__init__.pyi"}


@pytest.mark.parametrize("name", NAMES)
def test_the_command_line_has_what_a_question_lets_it_set(name):
    group = {each.name: each.metadata for each in fields(PolicyOptions)}
    said = [each for each in fields(NAMES[name]) if each.metadata]
    for each in said:
        assert group[each.metadata.get("flag", each.name)]["help"] == each.metadata["help"]
    assert said or not fields(NAMES[name])


def test_the_page_about_questions_has_all_of_them():
    table = (SOURCES.parent / "docs/questions.md").read_text(encoding="utf-8").partition("\n## ")[0]
    flags = [made.implied_by.rstrip("s") or f"question {name}" for name, made in NAMES.items()]
    assert [flag for flag in flags if not re.search(rf"`--{flag}[ `]", table)] == []
