"""Who judges parts is killed before any statement: each result counts once, in the part in which it would have."""

import pytest
import sqlalchemy as sa
from judged_parts import small_policy
from part_sessions import NAME, run_killed

import surepick as sp
from surepick.core.records import to_json
from surepick.studies.logs.sql import schema as tables

COLUMNS = ("plan", "state", "seen", "trace", "deviations", "leader", "stopped", "verdict")


def left_behind(url: str, seed: int) -> tuple[int, dict]:
    """(deaths, what is there at the end), after all of it was computed again."""
    sp.create_study(url, NAME, small_policy(epsilon=0.25), judge="as they come").log._engine.dispose()
    deaths = run_killed(url, seed)
    study = sp.open_study(url, NAME)
    observation, decision = tables.observation.c, tables.decision.c
    try:
        with study.log._engine.connect() as connection:
            told = sa.select(observation.key, observation.plan, observation.status, observation.sum)
            decided = sa.select(*(decision[name] for name in COLUMNS)).order_by(decision.plan)
            return deaths, {
                "certificate": to_json(study.certificate()),
                "results": sorted(map(tuple, connection.execute(told))),
                "decisions": list(map(tuple, connection.execute(decided))),
            }
    finally:
        study.log._engine.dispose()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> dict:
    return left_behind(f"sqlite:///{tmp_path_factory.mktemp('undisturbed') / 'whole.db'}", 0)[1]


def check(url: str, seed: int, undisturbed: dict) -> int:
    deaths, there = left_behind(url, seed)
    assert there == undisturbed
    return deaths


def test_the_session_has_late_results(undisturbed):
    late = [key for key, plan, status, _ in undisturbed["results"] if not key.startswith(f"p{plan}.")]
    assert len(late) > 5
    keys = [key for key, *_ in undisturbed["results"]]
    assert len(set(keys)) == len(keys)
    assert {status for _, _, status, _ in undisturbed["results"]} == {"counted"}


def test_those_who_judge_parts_are_killed(database_url, undisturbed):
    assert check(database_url, 1, undisturbed) >= 4


@pytest.mark.slow
def test_those_who_judge_parts_are_killed_in_twenty_sessions(tmp_path, undisturbed):
    deaths = sum(check(f"sqlite:///{tmp_path / f'{seed}.db'}", seed, undisturbed) for seed in range(2, 22))
    print(f"\n{deaths} kills")
    assert deaths >= 80
