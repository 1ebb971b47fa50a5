"""What every policy plans and answers is what it was, for every combination of question, noise, features and rule."""

import json

import pytest
import traces

STORED = json.loads(traces.TRACES.read_text(encoding="utf-8"))
CASES = {case.key: case for case in traces.cases()}


def test_every_combination_has_its_trace():
    assert set(CASES) == set(STORED)
    assert len(STORED) - list(STORED.values()).count(traces.REFUSED) > 200


@pytest.mark.cases(101)  # the program of traces.py compares all
@pytest.mark.parametrize("key", CASES)
def test_the_trace_is_what_it_was(key):
    assert traces.traced(CASES[key]) == STORED[key]


def test_another_seed_has_another_trace():
    """The saboteur: hashes that did not depend on what is planned would agree with anything."""
    case = CASES["certified-independent known"]
    assert len({traces.trace(case, seed) for seed in range(4)}) == 4
