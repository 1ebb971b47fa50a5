"""Numbers, probabilities and names as people write them."""

from report_pages import made_up, rendered
from together import of_each

from surepick.reports.study.facts import column, distinct, labels, number_text, plain_words, shortened_id, signed_column
from surepick.text import percent


@of_each(
    ("delta", "words"),
    [(0.05, "5"), (0.01, "1"), (0.3, "30"), (0.125, "12.5"), (1e-6, "0.0001"), (0.1234567891, "12.34567891")],
)
def test_a_probability_in_words(delta, words):
    assert percent(delta) == words
    said = rendered(made_up(delta=delta)).words
    assert f"Of many such studies at most {words}\xa0% name a wrong answer, in the long run" in said


def test_numbers_as_people_write_them():
    given = [0.0, 1204.0, 0.15342, -2.5, 3.1e-7, 123456.7, None]
    assert [number_text(one) for one in given] == ["0", "1,204", "0.1534", "−2.5", "3.100e-07", "123,457", "unknown"]
    assert shortened_id("abcdefghij", 5) == "ab…ij"


@of_each(
    ("names", "found"),
    [
        (["ab", "abcdef"], ["ab", "abcdef"]),
        (["recipe-1", "recipe-2"], ["…ipe-1", "…ipe-2"]),
        (["xxxxxaxxxxx1", "yxxxxbxxxxx2"], ["xx…xx1", "yx…xx2"]),
        (["aXaaaaaaaaaa", "bXaaaYaaaaaa", "bXaaaZaaaaaa"], ["aX…aaa", "bX…aaa", "bX…aaa"]),
        (["x" * 9 + "abcdef", "y" * 9 + "Abcdef"], ["xx…def", "yy…def"]),
        (["a1bcdefghij", "a1bXdefghij"], ["…c…hij", "…X…hij"]),
    ],
)
def test_short_names_differ_where_the_long_ones_do(names, found):
    short = labels(names, 6)
    assert all(len(one) <= 6 for one in short)
    assert short == found


def test_numbers_of_a_column_have_the_same_decimals():
    assert column([0.12345, 12.5, None, 0.0, 0.2]) == ["0.1235", "12.5000", "unknown", "0.0000", "0.2000"]
    assert signed_column([123.456, -0.5, 0.0]) == ["+123.5", "−0.5", "0.0"]
    assert column([1.0, 1e-9]) == ["1.000", "1.000e-09"]  # lest it look like nothing
    assert column([31234.5, 2.0, 1500.0]) == ["31,234", "2", "1,500"]
    assert column([]) == []


def test_names_are_made_longer_until_they_differ():
    names = ["aXaaaaaaaaaa", "bXaaaYaaaaaa", "bXaaaZaaaaaa"]
    assert len(set(labels(names, 6))) == 2
    assert len(set(distinct(names, 6, 12))) == 3
    assert distinct(names, 6, 7) == labels(names, 7)


def test_a_short_name_comes_with_the_whole_one():
    ids = [f"a very long name that nobody can read at once {arm}" for arm in range(4)]
    titles = rendered(made_up(ids=ids)).texts["title"]
    assert set(ids[1:]) <= {title.split(":")[0] for title in titles}  # a bar each but for the recommended one


def test_the_words_of_the_field_are_replaced_but_not_those_of_users():
    said = "All arms but one pull left ('the robot arm broke')."
    assert (
        plain_words(said, ["the robot arm broke", "a"])
        == "All candidates but one measurement left ('the robot arm broke')."
    )
