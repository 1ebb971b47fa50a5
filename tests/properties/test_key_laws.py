"""A key counts once in whatever spelling it comes back: what is accepted is found to be told, all else is refused."""

import unicodedata
from decimal import Decimal

import numpy as np
import pytest
from budgets import budget
from hypothesis import given, settings, strategies as st

import surepick as sp
from surepick.studies.logs import keys as keys_module
from surepick.studies.logs.keys import canonical_key, read_pull_key

IDS = ("A", "b c", "p1.0@A", "e\u0301", "Å", "x@y", "7", "007")
texts = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=12).filter(
    lambda text: text.strip()
)


def opened(**options) -> sp.Study:
    """A study whose open plan wants several pulls of each arm, all of them leased."""
    arms = sp.Arms(ids=IDS)
    asked = {"epsilon": 1.0, "delta": 0.05, "noise": sp.SubGaussian(3.0), "batch_size": 3 * len(IDS)}
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
        again += data.draw(st.sampled_from(["", ".", ".0"])) if not space and key[0] != "0" else ""
    elif key.endswith(".0") and key.isascii() and key.removesuffix(".0").isdigit():
        again = again.replace(".0", data.draw(st.sampled_from(["", ".", ".0", ".00"])))
    study = opened()
    try:
        canonical_key(key, IDS[1])
    except sp.InvalidInput:
        return  # looks like a key that ask gave, or like a number that may have lost digits
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
    ("saboteur", "again"), [("normal_form", " p1.0@A"), ("LOOKS_LIKE_ONE", "P1.0@A"), ("LOOKS_LIKE_ONE", "p1.00@A")]
)
def test_the_laws_would_notice_what_each_part_does(monkeypatch, saboteur, again):
    """Without the part the result counts twice, as it did before there was one."""
    assert not counted_twice(opened(), "A", "p1.0@A", again)
    gone = (lambda text: text) if saboteur == "normal_form" else keys_module.re.compile("never")
    monkeypatch.setattr(keys_module, saboteur, gone)
    if saboteur == "normal_form":
        monkeypatch.setattr(keys_module, "LOOKS_LIKE_ONE", keys_module.re.compile("never"))
        monkeypatch.setattr(keys_module, "one_form", lambda _, text: text)
    assert counted_twice(opened(), "A", "p1.0@A", again)


@given(st.data(), st.decimals(-(10**9), 10**9, places=3))
@settings(max_examples=budget(300))
def test_a_number_is_one_key_however_it_is_written(data, number):
    """Same number, same key; another number, another key."""
    key = canonical_key(f"{number.normalize():f}", "A")
    for spelling in data.draw(st.lists(st.sampled_from(SPELLINGS), min_size=1, max_size=4)):
        written = spelling(number)
        try:
            assert canonical_key(written, "A") == key, written
        except sp.InvalidInput as error:
            assert "without a comma" in str(error) or "other programs write" in str(error), written  # noqa: PT017
    other = number + data.draw(st.sampled_from([1, -1, 10, 1000])) * data.draw(st.sampled_from([1, Decimal("0.001")]))
    assert canonical_key(f"{other.normalize():f}", "A") != key


SPELLINGS = (
    lambda number: f"{number.normalize():f}",
    lambda number: f"{number:f}",
    lambda number: f"{number.normalize():e}" if abs(number) < 10**8 else f"{number:f}",
    lambda number: f"{number.normalize():E}".replace("E+", "E+0") if abs(number) < 10**8 else f"{number:f}",
    lambda number: f"{number.normalize():f}".replace(".", ","),
    lambda number: f"{number:+f}",
    lambda number: f"{number:,f}",
    lambda number: f"{number:,f}".translate(str.maketrans(".,", ",.")),
    lambda number: f"\u00a0{number.normalize():f}\u200b",
    lambda number: f"{number.normalize():f}".replace("-", "\u2212"),
    lambda number: f"{number.normalize():f}".translate(str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")),
    lambda number: repr(float(number)),
    lambda number: repr(int(number)) if number == int(number) else f"{number:f}",
)


def test_the_laws_would_notice_that_numbers_have_no_one_form(monkeypatch):
    assert not counted_twice(opened(), "A", "7", "7.0")
    monkeypatch.setattr(keys_module, "one_form", lambda _, text: text)
    assert counted_twice(opened(), "A", "7", "7.0")


@pytest.mark.parametrize(
    ("key", "same"),
    [
        ("7", ("7.", "7.0", "7.000", "+7", 7, 7.0, np.int64(7), np.float32(7), Decimal("7.0"), "7,0", "７", "7\u200b")),
        ("1000", ("1e3", "1E+03", "1000.0", 1000, "1,000.0", "1.000,00")),
        ("100000", ("1E+05", "1e5", 1e5)),
        ("-3", ("-3.0", "\u22123", -3)),
        ("2.5", (2.5, "2,5", "+2.5", "25e-1")),
        ("1234567", ("1,234,567", "1.234.567,0")),
        ("a b", ("a\u00a0b", " a  b", "a\u2009b\t", "a\u200b b", "\ufeffa b", "a\u00ad b")),
    ],
)
def test_one_key_in_many_spellings(key, same):
    study = opened()
    assert study.tell(["A"], [1.0], [key]).counted == 1
    for other in same:
        assert study.tell(["A"], [1.0], [other]).repeated == 1, other
        with pytest.raises(sp.InvalidInput, match="reported before with another value"):
            study.tell(["A"], [2.0], [other])


@pytest.mark.parametrize(("one", "other"), [("007", "7"), ("7²", "72"), ("a", "A"), ("1.2.3", "1.23"), ("7", "17")])
def test_keys_that_are_two(one, other):
    study = opened()
    assert study.tell(["A", "A"], [1.0, 1.0], [one, other]).counted == 2


@pytest.mark.parametrize("pair", [("7", "7.0"), ("1000", "1e3"), (7, 7.0)])
def test_two_spellings_of_a_number_in_one_call_are_refused(pair):
    with pytest.raises(sp.InvalidInput, match="the same number, written in two ways"):
        opened().tell(["A", "A"], [1.0, 1.0], list(pair))


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (True, "a key is True, a bool"),
        (np.bool_(True), "a key is np.True_, a bool"),
        (b"k", "a key is b'k', a bytes"),
        ("", "a key is empty"),
        ("\u200b", "a key is empty"),
        ("nan", "where none is"),
        ("<NA>", "where none is"),
        ("NaT", "where none is"),
        ("1,234", "which is 1234 or 1.234"),
        ("12,345", "which is 12345 or 12.345"),
        ("1.10", "other programs write 1.1"),
        ("2,50", "other programs write 2.5"),
        ("1.23457E+15", "has left digits out"),
        (12345678901234567.0, "holds 53 binary digits"),
        (np.float32(2**24), "holds 24 binary digits"),
        (float("inf"), "holds 53 binary digits"),
    ],
)
def test_what_is_no_key(key, said):
    study = opened()
    with pytest.raises(sp.InvalidInput) as refused:
        study.tell(["A"], [1.0], [key])
    assert said in str(refused.value)
    assert study.log.set_aside() == (0, 0)
    assert not study.replay.look(study.log.last_plan()).recorded.any()


def test_long_whole_numbers_are_told_apart():
    keys = [12345678901234567, 12345678901234568, "12345678901234569"]
    assert opened().tell(["A"] * 3, [1.0] * 3, keys).counted == 3


def missing() -> list:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    frame = pandas.DataFrame({"key": [None, None]})
    kinds = [
        frame["key"].astype(kind) for kind in ("string", "Int64", "float64", "object", "datetime64[ns]", "Float64")
    ]
    return [
        *kinds,
        polars.Series("key", [None, None], dtype=polars.Int64),
        [None, float("nan")],
        [pandas.NA, pandas.NaT],
        [np.datetime64("NaT"), np.timedelta64("NaT")],
        [np.float32("nan"), Decimal("nan")],
    ]


def test_a_missing_key_of_any_kind_is_none():
    for keys in missing():
        study = opened()
        assert study.tell(["A", "A"], [1.0, 1.0], keys).counted == 2, keys
        assert study.log.recorded(["nan", "<NA>", "NaT", "None"]) == {}


def test_keys_that_are_no_sequence_are_refused():
    with pytest.raises(sp.InvalidInput, match="give a sequence of keys"):
        opened().tell(["A"], [1.0], "p1.0@A")


def test_half_of_a_character_is_no_key():
    with pytest.raises(sp.InvalidInput, match="half of a character"):
        opened().tell(["A"], [1.0], ["k\ud800"])
