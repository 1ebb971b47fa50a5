"""Cases that are tried in one test: each is tried, and each that fails is named."""

import pytest
from together import of_each


def test_every_case_is_tried_and_those_that_fail_are_named(tmp_path):
    tried = []

    @of_each("right", [2, 3])
    @of_each(("left", "why"), [(1, "one"), (4, "four")], ids=str)
    def compared(folder, left, right, why):
        tried.append((left, right, why))
        assert folder == tmp_path
        assert left < right
        with pytest.raises(ZeroDivisionError):
            left / (right - 3)

    with pytest.raises(ExceptionGroup, match="2 of 2 cases") as found:
        compared(tmp_path)
    assert tried == [(left, right, why) for right in (2, 3) for left, why in ((1, "one"), (4, "four"))]
    first, second = found.value.exceptions
    assert str(first.exceptions[0]).startswith("DID NOT RAISE")
    assert [one.__notes__ for one in second.exceptions] == [["the case: {'left': 4, 'why': 'four'}"]]
    assert second.__notes__ == ["the case: {'right': 3}"]


def test_a_case_that_holds_says_nothing_and_no_case_is_refused():
    of_each("one", [1, 2])(lambda one: None)()
    with pytest.raises(AssertionError, match="no case"):
        of_each("one", [])


@of_each("number", [1, 2])
def test_what_pytest_asks_for_is_only_the_fixtures(number, tmp_path):
    assert number in (1, 2)
    assert tmp_path.is_dir()
