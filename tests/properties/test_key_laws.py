"""A key counts once in whatever spelling it comes back: what is accepted is found to be told, all else is refused."""

import unicodedata

import numpy as np
import pytest
from budgets import budget
from hypothesis import given, settings
from hypothesis import strategies as st

import surepick as sp
from surepick.studies.logs import keys as keys_module
from surepick.studies.logs.keys import canonical_key, other_spellings, read_pull_key

IDS = ("A", "b c", "p1.0@A", "e\u0301", "Å", "x@y", "7", "007")
texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=12).filter(
    lambda text: text.strip()
)


def opened(**options) -> sp.Study:
    """A study whose open plan wants several pulls of each arm, all of them leased."""
    arms = sp.Arms(ids=IDS)
    asked = {"epsilon": 1.0, "delta": 0.05, "noise": sp.SubGaussian(3.0), "evidence": "epochs"}
    study = sp.Study(sp.make_policy("certified-independent", arms, **asked))
    assert study.lease(worker="ann").counts.min() >= 2
    return study


def respelled(key: str, draw) -> str:
    """The key as a person, a spreadsheet or another program may write it."""
    zeros, wide = "0" * draw(st.integers(0, 2)), str.maketrans("p.@0123456789", "ｐ．＠０１２３４５６７８９")
    changes = [
        lambda text: f" {text}",
        lambda text: f"{text}\t",
        lambda text: f"\u00a0{text}\u2003\n",
        str.upper,
        str.lower,
        str.title,
        lambda text: unicodedata.normalize(draw(st.sampled_from(["NFC", "NFD", "NFKC", "NFKD"])), text),
        lambda text: text.replace("p", f"p{zeros}", 1),
        lambda text: text.replace(".", f".{zeros}", 1),
        lambda text: text.replace(".", ",", 1),
        lambda text: text.replace(".", " . ", 1),
        lambda text: text.replace("@", " @ ", 1),
        lambda text: text.translate(wide),
        lambda text: f"'{text}",
        lambda text: f"\ufeff{text}",
        lambda text: text + draw(st.sampled_from([".", ".0", ".00"])) if text.isascii() and text.isdigit() else text,
        lambda text: text.removesuffix(".0"),
    ]
    for change in draw(st.lists(st.sampled_from(changes), min_size=1, max_size=3)):
        key = change(key)
    return key


def counted_twice(study: sp.Study, name: str, key: str, again: str) -> bool:
    """Whether a result that counts under the key counts once more under the other spelling of it."""
    assert study.tell([name], [1.0], [key]).counted == 1
    try:
        return study.tell([name], [1.0], [again]).counted > 0
    except sp.InvalidInput:
        return False


@given(st.data())
@settings(max_examples=budget(150))
def test_a_spelling_of_the_key_of_a_leased_pull_that_is_accepted_is_found_to_be_told(data):
    arm, ordinal = data.draw(st.integers(0, len(IDS) - 1)), data.draw(st.integers(0, 1))
    key = f"p1.{ordinal}@{IDS[arm]}"
    assert not counted_twice(opened(), IDS[arm], key, respelled(key, data.draw))


@given(st.data(), st.one_of(texts, st.integers(0, 10**20).map(str), st.integers(0, 99).map("{}.0".format)))
@settings(max_examples=budget(150))
def test_a_spelling_of_a_key_of_the_users_own_that_is_accepted_is_found_to_be_told(data, key):
    """Case and width are left alone there: `a` and `A` are two keys. Forms of a character and white space are not."""
    form, space = data.draw(st.sampled_from(["NFC", "NFD"])), data.draw(st.sampled_from(["", " ", "\t", "\u00a0"]))
    again = space + unicodedata.normalize(form, key) + space
    if key.isascii() and key.isdigit():
        again += data.draw(st.sampled_from(["", ".", ".0"])) if not space else ""
    elif key.endswith(".0") and key.isascii() and key.removesuffix(".0").isdigit():
        again = again.replace(".0", data.draw(st.sampled_from(["", ".", ".0", ".00"])))
    study = opened()
    try:
        canonical_key(key, IDS[1])
    except sp.InvalidInput:
        return  # looks like the key of a leased pull
    assert not counted_twice(study, IDS[1], key, again)


@given(texts, texts)
@settings(max_examples=budget(300))
def test_the_canonical_form_is_its_own(key, name):
    try:
        once = canonical_key(key, name)
    except sp.InvalidInput:
        return
    assert canonical_key(once, name) == once


@given(st.integers(1, 10**18 - 1), st.integers(0, 10**18 - 1), texts)
@settings(max_examples=budget(300))
def test_what_ask_writes_is_canonical(plan, ordinal, name):
    key = f"p{plan}.{ordinal}@{name}"
    assert canonical_key(key, name) == key
    assert read_pull_key(key) == (plan, ordinal)


@pytest.mark.parametrize(
    ("saboteur", "again"),
    [("normal_form", " p1.0@A"), ("LOOKS_LIKE_ONE", "P1.0@A"), ("LOOKS_LIKE_ONE", "p1.00@A")],
)
def test_the_laws_would_notice_what_each_part_does(monkeypatch, saboteur, again):
    """Without the part the result counts twice, as it did before there was one."""
    assert not counted_twice(opened(), "A", "p1.0@A", again)
    gone = (lambda text: text) if saboteur == "normal_form" else keys_module.re.compile("never")
    monkeypatch.setattr(keys_module, saboteur, gone)
    if saboteur == "normal_form":
        monkeypatch.setattr(keys_module, "LOOKS_LIKE_ONE", keys_module.re.compile("never"))
    assert counted_twice(opened(), "A", "p1.0@A", again)


def test_the_laws_would_notice_that_numbers_are_not_looked_up(monkeypatch):
    monkeypatch.setattr("surepick.studies.recording.other_spellings", lambda _: {})
    assert counted_twice(opened(), "A", "7", "7.0")


@pytest.mark.parametrize(
    ("key", "others"),
    [("7", {"7.", "7.0", "7.00"}), ("7.0", {"7", "7.", "7.00"}), ("-3", {"-3.", "-3.0", "-3.00"}), ("7.5", set())],
)
def test_other_spellings_of_whole_numbers(key, others):
    assert set(other_spellings([key, None, "sample 7"])) == others


@pytest.mark.parametrize("key", [7.0, float("nan"), np.float64(7), True, b"k", ""])
def test_what_is_no_key(key):
    study = opened()
    with pytest.raises(sp.InvalidInput, match="a key is"):
        study.tell(["A"], [1.0], [key])
    assert study.tell(["A"], [1.0], [np.int64(7)]).counted == 1
    assert study.tell(["A"], [1.0], ["7"]).repeated == 1


def test_keys_that_are_no_sequence_are_refused():
    with pytest.raises(sp.InvalidInput, match="give a sequence of keys"):
        opened().tell(["A"], [1.0], "p1.0@A")


def test_half_of_a_character_is_no_key():
    with pytest.raises(sp.InvalidInput, match="half of a character"):
        opened().tell(["A"], [1.0], ["k\ud800"])
