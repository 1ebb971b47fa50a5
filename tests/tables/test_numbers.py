"""How people write numbers: a column is read as it was meant or refused, never as a thousandth of it."""

import re
import warnings

import numpy as np
import pytest
from budgets import budget
from hypothesis import given, settings, strategies as st
from table_notes import noted
from together import of_each

import surepick as sp
from surepick.errors import InvalidInput
from surepick.studies import program
from surepick.tables import Table, TableWarning, read_table, write_table
from surepick.tables.numbers import COMMA, POINT, Notation, NumberText, Written, cell_number, is_missing, lone_number
from surepick_server.pages.layout import typed_number

MARKS = [POINT, COMMA, "'", "’", " ", "\u00a0", "\u202f", ""]
WRITTEN = {POINT: Written(), COMMA: Written(continental=True)}


def numbers(cells, **options):
    """The numbers of a column, read from cells as they stand."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        return Table("t", {"y": tuple(cells)}, written=Written(**options)).numbers("y").tolist()


def doubt(cells, **options):
    """The question that a column of cells leaves."""
    with pytest.raises(InvalidInput) as caught:
        numbers(cells, **options)
    assert len(str(caught.value)) < 500
    return str(caught.value)


def grouped(whole, mark, *, india=False):
    """The digits of a whole number with a mark between thousands."""
    digits, size, parts = str(whole), 3, []
    while len(digits) > size:
        parts.append(digits[-size:])
        digits, size = digits[:-size], 2 if india else 3
    return mark.join([digits, *reversed(parts)])


@st.composite
def columns(draw):
    """(cells, the numbers that were meant, what stands before decimals): one notation a column, as programs write."""
    decimal = draw(st.sampled_from([POINT, COMMA]))
    mark = draw(st.sampled_from([one for one in MARKS if one != decimal]))
    places, india = draw(st.integers(0, 4)), draw(st.booleans())
    minus = draw(st.sampled_from(["-", "−"]))
    cells, meant = [], []
    for scaled in draw(st.lists(st.integers(-(10**10), 10**10), min_size=1, max_size=5)):
        whole, rest = divmod(abs(scaled), 10**places)
        digits = f"{rest:0{places}d}" if places else ""
        cell = grouped(whole, mark, india=india and bool(mark)) + (decimal + digits if digits else "")
        cells.append((minus if scaled < 0 else "") + cell)
        meant.append(float(f"{'-' * (scaled < 0)}{whole}.{digits or 0}"))
    return cells, meant, decimal


@settings(max_examples=budget(100))
@given(columns())
def test_a_column_is_read_as_it_was_meant_or_refused(drawn):
    cells, meant, decimal = drawn
    assert numbers(cells, decimal=decimal) == meant
    found = Notation.of(cells, WRITTEN[decimal])
    if not found.question:
        assert [cell_number(cell, decimal=found.decimal) for cell in cells] == meant


@settings(max_examples=budget(100))
@given(columns(), st.data())
def test_the_order_of_the_rows_decides_nothing(drawn, data):
    cells, _, decimal = drawn
    shuffled = data.draw(st.permutations(cells))
    one, other = Notation.of(cells, WRITTEN[decimal]), Notation.of(shuffled, WRITTEN[decimal])
    assert (one.decimal, bool(one.question)) == (other.decimal, bool(other.question))


@settings(max_examples=budget(100))
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=6))
def test_what_a_program_writes_is_read_back(values):
    assert numbers(list(map(repr, values))) == values


@of_each(
    ("cells", "meant"),
    [
        (["1,5", "2"], [1.5, 2]),
        (["1,5", "1,234"], [1.5, 1.234]),
        (["0,123", "1,234"], [0.123, 1.234]),
        (["1,5e3", "2,5E-03", "1,234e+2"], [1500, 0.0025, 123.4]),
        (["1.234,5", "987"], [1234.5, 987]),
        (["1.234.567", "987"], [1234567, 987]),
        (["1,234.5", "1,234"], [1234.5, 1234]),
        (["1,234,567", "12,400"], [1234567, 12400]),
        (["12,34,567", "987"], [1234567, 987]),
        (["1'234", "987", "1’234’567.5"], [1234, 987, 1234567.5]),
        (["1 234", "1\u00a0234", "1\u202f234,5"], [1234, 1234, 1234.5]),
        (["−1.5", "–2", "－３．５", "１２"], [-1.5, -2, -3.5, 12]),
        (["1e−3", "+7", "  8 "], [1e-3, 7, 8]),
        (["\u202a-1.5\u202c", "2\u200b"], [-1.5, 2]),
        (["1.234", "0.5"], [1.234, 0.5]),
        (["1.234", "2.345"], [1.234, 2.345]),
        (["1.234", "10.0"], [1.234, 10]),
        (["1.234e3", "5"], [1234, 5]),
        ([NumberText("1.234"), "987"], [1.234, 987]),
        (["1.234", NumberText("987")], [1.234, 987]),
    ],
)
def test_columns_with_one_reading(cells, meant):
    assert numbers(cells) == meant


@of_each(
    "cells",
    [
        ["1,234"],
        ["1,234", "987"],
        ["12,400", "0"],
        ["−1,234"],
        ["1.234", "987"],
        ["12.345", "1234"],
        ["1,234", "1.234"],
        ["1,5", "1.5"],
        ["1,5", "1.234"],
        ["1.5", "1,234"],
        ["1,234,567", "1,5"],
    ],
)
def test_columns_with_two_readings_are_refused(cells):
    assert "is '" in doubt(cells) or "has a decimal point, and" in doubt(cells)


@pytest.mark.parametrize("cells", [["12.400", "9.850"], ["1.234"]])
def test_points_before_three_digits_are_doubted_where_semicolons_stand(cells):
    assert "Give --decimal . or --thousands ." in doubt(cells, continental=True)
    assert numbers(cells) == [float(cell) for cell in cells]


@pytest.mark.parametrize("options", [{"decimal": COMMA}, {"thousands": POINT}])
def test_an_option_settles_it_for_all_columns(write, options):
    path = write("id\ty\ta\na\t1.234\t1,234\nb\t987\t5\n")
    table = noted(lambda: read_table(path, **options), "tabs")
    assert table.text("id") == ("a", "b")
    assert noted(lambda: table.numbers("y").tolist(), "we read points between thousands: '1.234' is 1234") == [
        1234,
        987,
    ]
    assert noted(lambda: table.numbers("a").tolist(), "commas as decimal points") == [1.234, 5]


def test_each_kind_of_reading_is_said_once(write):
    table = noted(lambda: read_table(write("x;y\n1,5;2,5\n")), "semicolons")
    noted(lambda: table.numbers("x"), "commas as decimal points: '1,5' is 1.5 (column 'x')")
    noted(lambda: (table.numbers("x"), table.numbers("y"), table.without([]).numbers("y")))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"decimal": ";"}, "decimal is ';'"),
        ({"thousands": "x"}, "thousands is 'x'"),
        ({"decimal": ",", "thousands": ","}, "are both ','"),
    ],
)
def test_options_that_say_nothing_are_refused(write, options, words):
    with pytest.raises(InvalidInput, match=words):
        read_table(write("a\n1\n"), **options)


@of_each("cell", ["12,34", "1,23,4", "1,2345", "1234,567,890", "01,234", "1_000", "1,,234", ",", "1 23"])
def test_marks_that_stand_as_no_marks_stand_are_not_taken_away(cell):
    assert cell_number(cell, decimal=POINT) is None


@of_each(
    ("cell", "words"),
    [
        ("$1,234", "without a unit or a currency"),
        ("3 mg", "without a unit or a currency"),
        ("1.5€", "without a unit or a currency"),
        ("<0.5", "A limit is no number, nor a missing value"),
        ("≥3", "A limit is no number, nor a missing value"),
        ("(1,234)", "is not numeric"),
        ("2024-05-01", "is not numeric"),
        ("1:30", "is not numeric"),
        ("1.5*", "is not numeric"),
        ("true", "Words for yes and no stand alone"),
    ],
)
def test_what_is_no_number_is_refused_with_what_helps(cell, words):
    assert words in doubt(["2.5", cell, "3.5"])
    assert not is_missing(cell)


# words for yes and no


@of_each(
    "cells",
    [
        ["TRUE", "FALSE"],
        ["true", "False"],
        ["True", "True", "0"],
        ["yes", "No", "1"],
        ["pass", "FAIL"],
        ["passed", "failed"],
        ["WAHR", "FALSCH"],
        ["VRAI", "FAUX"],
        ["t", "f"],
        ["y", "n"],
    ],
)
def test_words_for_yes_and_no_are_1_and_0(cells):
    yes = {"true", "yes", "pass", "passed", "wahr", "vrai", "t", "y", "1"}
    table = Table("t", {"y": tuple(cells)})
    meant = [float(cell.lower() in yes) for cell in cells]
    assert noted(lambda: table.numbers("y").tolist(), "we read words as numbers: ") == meant
    assert len(table.bad_rows("y")) == sum(cell not in "01" for cell in cells)  # no feature unless it is named


@of_each("cells", [["true", "yes"], ["true", "2"], ["t", "1"], ["failed", "1"], ["TRUE", "0.5"]])
def test_words_of_several_kinds_and_beside_numbers_are_refused(cells):
    assert "is not numeric" in doubt(cells)


def test_a_missing_cell_beside_words_is_missing():
    table = Table("t", {"y": ("true", "n/a", "")})
    assert table.missing_rows("y") == [1, 2]
    with pytest.raises(InvalidInput, match="2 of 3 cells are not numbers"):
        table.numbers("y")


# words for no value


@of_each(
    "word",
    re.findall(
        r"\S+",
        r"""<NA> \N NULL (null) [NULL] . .. NaT NaN -nan nan(ind) 1.#IND -1.#QNAN #NUM! #NAME? #NULL! #N/A #NV #WERT!
        #BEZUG! #ZAHL! #VALEUR! #NOM? #¡DIV/0! #¿NOMBRE? #SPILL! #CALC! Err:502 N.A. n.d. n/d missing nothing None k.A.
        -- — ?""",
    ),
)
def test_words_for_no_value(word):
    assert is_missing(f" {word} ")
    table = Table("t", {"y": ("1.5", word, "2.5")})
    assert table.missing_rows("y") == [1]
    assert table.without([1]).numbers("y").tolist() == [1.5, 2.5]


@of_each("word", ["<0.5", "<LOD", "bdl", "not detected", "inf", "0", "x", "#1", "failed", "no", "blank"])
def test_words_that_are_no_missing_value(word):
    assert not is_missing(word)


# the same rule elsewhere


@of_each(("cell", "meant"), [("1,5", 1.5), ("1.234", 1.234), ("1.234,5", 1234.5), ("−2", -2)])
def test_a_number_that_is_typed_is_read_by_the_same_rule(cell, meant):
    assert lone_number(cell) == typed_number(cell, "y") == meant


def test_a_number_that_is_typed_and_could_be_two_is_refused():
    with pytest.raises(InvalidInput, match=r"'1,234' could be 1.234 or 1234: write it with a decimal point"):
        typed_number("1,234", "y")


@of_each("line", ["1,234", "1,5", "1 234", "1'234", "true"])
def test_a_program_writes_plain_numbers(line):
    assert program.number_in(line) is None


def test_a_table_that_was_written_here_is_read_back(tmp_path):
    values = [1.234, 987.0, 0.0, 1e16]
    write_table(tmp_path / "t.csv", {"y": values})
    np.testing.assert_array_equal(read_table(tmp_path / "t.csv").numbers("y"), values)


def test_a_table_without_columns_has_no_rows(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({}), tmp_path / "none.parquet")
    with pytest.raises(sp.InvalidInput, match="no rows"):
        sp.read_arms(tmp_path / "none.parquet")


def test_a_question_of_5000_digits_is_none():
    with pytest.raises(sp.InvalidInput, match="question is"):
        sp.make_policy(
            "certified-independent", sp.Arms(ids=["a", "b"]), epsilon=1, delta=0.1, noise="bernoulli", question=10**5000
        )
