"""One call of `find_best` that keeps its results: the same call goes on, and another one is refused."""

import pytest

import surepick as sp

MEANS = {"a": 0.1, "b": 0.9, "c": 0.5, "d": 0.7}
ASKED = {"epsilon": 0.3, "noise": "subgaussian:0.1"}


def measuring(asked: list, most: int = 10**6):
    def measure(ids):
        if len(asked) >= most:
            raise RuntimeError("the reactor is off")
        asked.extend(ids)
        return [MEANS[name] for name in ids]

    return measure


def test_the_same_call_goes_on_and_loses_nothing(stored_at):
    kept, asked = {"url": stored_at, "name": "best", "at_once": 1}, []
    with pytest.raises(RuntimeError):
        sp.find_best(list(MEANS), measuring(asked, most=3), **kept, **ASKED)
    found = sp.find_best(list(MEANS), measuring(asked), **kept, **ASKED)
    assert (found.best_arm, found.verdict, found.pulls) == ("b", "certified", len(asked))
    again = sp.find_best(list(MEANS), measuring([], most=0), **kept, **ASKED)
    assert (again.best_arm, again.pulls) == ("b", found.pulls)
    assert sp.open_study(stored_at, "best").stopped


def test_candidates_are_given_back_as_they_were(sqlite_url):
    for _ in range(2):
        found = sp.confirm([1, 2, 3], lambda ids: [-float(one) for one in ids], url=sqlite_url, **ASKED)
        assert found.best_arm == 1


@pytest.mark.parametrize("changed", [{"epsilon": 0.2}, {"minimize": True}, {"arms": ["a", "b", "c"]}])
def test_another_question_is_refused(sqlite_url, changed):
    first = {"arms": list(MEANS), "url": sqlite_url, **ASKED}
    sp.find_best(first.pop("arms"), measuring([]), **first)
    other = {"arms": list(MEANS), **first, **changed}
    with pytest.raises(sp.InvalidInput, match="'best' there has other candidates, or asks something else"):
        sp.find_best(other.pop("arms"), measuring([]), **other)
    assert len(sp.list_studies(sqlite_url)) == 1


def test_items_keep_the_order_that_was_drawn_for_them(sqlite_url):
    seen = []

    def judge(ids, items):
        seen.append(list(items))
        return [MEANS[name] > int(item) / 50 for name, item in zip(ids, items, strict=True)]

    asked = {"items": 50, "noise": "bernoulli", "epsilon": 0.1, "url": sqlite_url, "at_once": 1}

    def broken(ids, items):
        if len(seen) >= 5:
            raise RuntimeError("no more")
        return judge(ids, items)

    with pytest.raises(RuntimeError):
        sp.find_best(list(MEANS), broken, **asked)
    found = sp.find_best(list(MEANS), judge, **asked)
    assert found.verdict == "certified"
    with pytest.raises(sp.InvalidInput, match="asks something else"):
        sp.find_best(list(MEANS), judge, **asked, seed=3)
