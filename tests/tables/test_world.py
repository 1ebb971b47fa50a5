"""Files as the world writes them, on the command line: each is read as it was meant, or refused with what helps.

The files and what is expected of each: `../shared/world/README.md`.
"""

import json

import pytest
from command_line import surepick

from surepick.errors import InvalidInput

ANSWER = ("--id", "id", "--noise", "subgaussian:0.3", "--epsilon", "0.5")
HALF = ("--id", "id", "--noise", "bernoulli", "--epsilon", "0.3")
TOTALS = ("--pulls", "impressions", "--sum", "clicks")
needs_calamine = pytest.mark.usefixtures("calamine")


@pytest.fixture
def calamine():
    pytest.importorskip("python_calamine")


def best(path, *options, reward="y", given=ANSWER):
    """(the best candidate, what was noted) of `surepick run`."""
    named = () if reward is None else ("--reward", reward)
    code, out, err = surepick("run", path, *given, *named, *options, "--format", "json")
    assert code == 0, err
    found = json.loads(out)
    assert found["verdict"] == "certified"
    return found["best_arm"], " ".join(err.split())


def refusal(path, *options, reward="y", given=ANSWER):
    """The sentence with which `surepick run` refuses a file."""
    with pytest.raises(InvalidInput) as caught:
        best(path, *options, reward=reward, given=given)
    message = str(caught.value)
    assert len(message) <= 500
    assert message.isprintable()
    return message


# numbers


@pytest.mark.parametrize(
    ("name", "cell", "one", "other", "noise", "epsilon"),
    [
        ("thousands.tsv", "1,234", "1.234", "1234", "subgaussian:8", "5"),
        ("thousands_semicolon.csv", "12,400", "12.4", "12400", "subgaussian:4455", "400"),
    ],
)
def test_thousands_are_never_decimals_unasked(world, name, cell, one, other, noise, epsilon):
    given = ("--id", "id", "--noise", noise, "--epsilon", epsilon)  # half of what the repeats span
    message = refusal(world / name)
    assert f"is '{cell}' the number {one} or {other}? Give --decimal , or --thousands ," in message
    winner, notes = best(world / name, "--thousands", ",", given=given)
    assert winner == "a"
    assert f"commas between thousands: '{cell}' is {other}" in notes
    assert best(world / name, "--decimal", ".", given=given)[0] == "a"
    winner, notes = best(world / name, "--decimal", ",", given=given)
    assert winner == "b"
    assert f"commas as decimal points: '{cell}' is {one}" in notes


@pytest.mark.parametrize("name", ["bool.csv", "bool_lower.csv", "bool.json"])
def test_true_is_1_and_false_is_0(world, name):
    winner, notes = best(world / name, given=HALF)
    assert winner == "b"
    assert "we read words as numbers: " in notes
    assert " is 0, " in notes


def test_only_columns_that_are_used_decide_what_a_comma_is(world):
    winner, notes = best(world / "positions.csv")
    assert winner == "3,5"
    assert "decimal" not in notes


@pytest.mark.parametrize(
    ("name", "options", "noted"),
    [
        ("minus.csv", (), "'−1.5' is -1.5"),
        ("sep.csv", (), "as its line sep= says"),
        ("space_quotes.csv", (), ""),
        ("row_names.txt", (), "the first column has row names, as R writes them"),
        ("utf16.csv", (), "we read UTF-16"),
        ("sparse.json", (), ""),
        ("empty_rows.csv", (), ""),
        ("spaces_last.csv", (), ""),
        ("ctrl_z.csv", (), ""),
        ("merged_ids.csv", ("--fill-down", "id"), "we fill 3 empty cells of column 'id'"),
        ("title.csv", ("--header", "3"), "we skip 1 line above the header"),
        ("units.csv", ("--skip-units",), "we skip line 2, which has units (mg/L)"),
        ("na_pandas.csv", ("--drop-missing",), "we leave out 1 of 4 rows"),
        ("na_sql.csv", ("--drop-missing",), "we leave out 1 of 4 rows"),
        ("na_lab.csv", ("--drop-missing",), "we leave out 1 of 4 rows"),
        ("na_num.csv", ("--drop-missing",), "we leave out 1 of 4 rows"),
        ("na_time.csv", ("--drop-missing",), "we leave out 1 of 4 rows"),
    ],
)
def test_a_file_is_read_as_it_was_meant(world, name, options, noted):
    winner, notes = best(world / name, *options)
    assert winner == "b"
    assert noted in notes


def test_a_bound_that_is_passed_by_rounding_alone_is_kept(world):
    winner, notes = best(world / "edge.csv", given=("--id", "id", "--noise", "bounded:0:1", "--epsilon", "0.5"))
    assert winner == "a"
    assert "1.0000000000000002 in row 2" in notes


def test_repeats_may_stand_side_by_side(world):
    assert best(world / "replicates_wide.csv", reward="rep1,rep2,rep3")[0] == "b"


@needs_calamine
def test_a_hidden_sheet_is_not_the_first(world):
    winner, notes = best(world / "hidden_sheet.xlsx")
    assert winner == "b"
    assert "the first that is not hidden, 'Data'. Hidden: 'old'" in notes


# words


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("title.csv", "The header seems to be line 3; give --header 3"),
        ("units.csv", "Line 2 looks like units ('mg/L'): leave it out with --skip-units"),
        ("page.csv", "is a web page, not the table itself"),
        ("merged_ids.csv", "Cells below a merged one are empty: fill them with --fill-down"),
    ],
)
def test_what_cannot_be_read_is_said_with_what_helps(world, name, words):
    assert words in refusal(world / name)


# totals


CLICKS = "id,impressions,clicks\na,1000,91\nb,1200,300\na,500,40\n"


def test_totals_of_zeros_and_ones_are_drawn_by_their_share(write):
    winner, _ = best(write(CLICKS), *TOTALS, reward=None, given=HALF)
    assert winner == "b"
    code, out, _ = surepick("run", write(CLICKS), *HALF, *TOTALS)
    assert code == 0
    assert "0.25" in out or "b" in out


def test_a_count_as_a_bernoulli_reward_is_pointed_to_totals(write):
    assert "of totals (impressions and clicks) give --pulls COLUMN --sum COLUMN" in refusal(
        write("id,clicks\na,91\nb,300\n"), reward="clicks", given=HALF
    )


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("a,10,11\n", "row 2: 'clicks' is 11 of 10 'impressions'"),
        ("a,10,-1\n", "'clicks' is -1 of 10"),
        ("a,10,1.5\n", "'clicks' is 1.5 of 10"),
        ("a,2.5,1\n", "'clicks' is 1 of 2.5"),
        ("a,0,0\n", "candidate 'a' has no measurement"),
        ("a,inf,0\n", "'clicks' is 0 of inf"),
        ("a,,0\n", "miss a cell"),
    ],
)
def test_totals_that_are_none_are_refused(write, rows, words):
    assert words in refusal(write(f"id,impressions,clicks\n{rows}b,3,1\n"), *TOTALS, reward=None, given=HALF)


@pytest.mark.parametrize("noise", ["bounded:0:1", "subgaussian:1", "normal", "pilot"])
def test_totals_say_nothing_of_how_other_measurements_vary(write, noise):
    given = ("--id", "id", "--noise", noise, "--epsilon", "0.3")
    assert "totals do not say how single measurements vary" in refusal(write(CLICKS), *TOTALS, reward=None, given=given)


@pytest.mark.parametrize("options", [("--pulls", "impressions"), ("--sum", "clicks"), (*TOTALS, "--reward", "clicks")])
def test_totals_are_two_columns_in_place_of_a_reward(write, options):
    assert "totals are two columns, pulls and sum" in refusal(write(CLICKS), *options, reward=None, given=HALF)
