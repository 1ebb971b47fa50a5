"""What every policy plans and answers is what it was, for every combination of question, noise, features and rule."""

import json
import os

import pytest
import traces
from budgets import ALL

STORED = json.loads(traces.TRACES.read_text(encoding="utf-8"))
CASES = {case.key: case for case in traces.cases()}


def test_every_combination_has_its_trace():
    assert set(CASES) == set(STORED)
    assert len(STORED) - list(STORED.values()).count(traces.REFUSED) > 200


@pytest.mark.cases(101)  # of the first seed; the program of traces.py compares all of each seed
@pytest.mark.parametrize("key", CASES)
def test_the_trace_is_what_it_was(key, monkeypatch):
    stored, seeds = STORED[key], traces.SEEDS
    if stored != traces.REFUSED and not os.environ.get(ALL):
        stored, seeds = stored[:1], seeds[:1]
    monkeypatch.setattr(traces, "SEEDS", seeds)
    assert traces.traced(CASES[key]) == stored


def test_another_seed_has_another_trace():
    """The saboteur: hashes that did not depend on what is planned would agree with anything."""
    case = CASES["certified-independent known"]
    assert len({traces.trace(case, seed) for seed in range(4)}) == 4
