"""When the latest entry of a study is from: found without reading its other rows, however many there are."""

import pytest
import sqlalchemy as sa

import surepick as sp
from surepick.studies.database import create_stored_study, resume_stored_study
from surepick.studies.logs.sql import log as sql_log
from surepick.studies.logs.sql.chain import RECENT, RECENT_TIMES, STUDY


def made(url, name):
    policy = sp.make_policy("certified-independent", sp.Arms(ids=[*"abcd"]), epsilon=0.1, delta=0.1, noise=sp.Normal())
    return create_stored_study(url, name, policy)


@pytest.mark.cases(4)
@pytest.mark.parametrize("most", [1, 3, 1_000])
def test_it_is_that_of_the_newest_row_also_where_others_wrote_since(database_url, monkeypatch, most):
    monkeypatch.setattr(sql_log, "MOST_RECENT", most)
    quiet, busy = made(database_url, "quiet"), made(database_url, "busy")
    empty = quiet.log.latest_time()
    assert empty <= quiet.log.clock()
    quiet.tell(["a"], [0.5], ["k"])
    told = quiet.log.latest_time()
    assert told >= empty
    for number in range(5):
        busy.tell(["a"], [0.5], [f"k{number}"])
    assert resume_stored_study(database_url, "quiet").log.latest_time() == told
    assert busy.log.latest_time() >= told
    quiet.lease(1, worker="ann")
    assert quiet.log.latest_time() > told


def test_sqlite_reads_the_last_rows_alone(sqlite_url):
    study = made(sqlite_url, "paint")
    study.tell([*"abcd"], [0.5] * 4)
    with study.log._engine.connect() as connection:
        asked = RECENT_TIMES.params({STUDY: 1, RECENT: 9}).compile(connection, compile_kwargs={"literal_binds": True})
        steps = [row.detail for row in connection.execute(sa.text(f"EXPLAIN QUERY PLAN {asked}"))]
    assert [step for step in steps if "B-TREE" in step or "results_of_a_plan" in step] == []
    assert any("INTEGER PRIMARY KEY (rowid>?)" in step for step in steps)
