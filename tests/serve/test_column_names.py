"""Over HTTP as on the command line: which columns a study looks at, and what the columns of results are called."""

import pytest
from servers import serving

TABLE = "Reaction,mass,run\nL1,100.5,1\nL2,,2\nL3,,3\n"
GOAL = {"epsilon": 0.5, "noise": "subgaussian:0.2"}


@pytest.fixture
def server(tmp_path):
    with serving(f"sqlite:///{tmp_path}/studies.db") as client:
        yield client


def made(server, name, candidates, code=201, **more):
    answer = server.post("/api/v1/studies", json={"name": name, "candidates": candidates, **GOAL, **more})
    assert answer.status_code == code, answer.text
    return answer.json()


def test_a_study_without_features_looks_at_no_column_of_them(server):
    new = made(server, "s", {"table": TABLE, "id_column": "Reaction"})
    assert (new["candidates"], new["notes"]) == (3, [])
    new = made(server, "t", {"table": TABLE, "id_column": "Reaction", "feature_columns": ["mass"]})
    assert "feature_columns are not used" in new["notes"][0]
    refused = made(server, "u", {"table": TABLE, "id_column": "Reaction"}, 422, options={"norm_bound": 1.0})
    assert "'mass' is empty" in refused["detail"]
    used = {"table": TABLE, "id_column": "Reaction", "feature_columns": ["run"]}
    assert "1 feature: run" in made(server, "u", used, options={"norm_bound": 1.0})["notes"]


def test_results_may_use_the_names_of_the_columns(server):
    made(server, "s", {"table": TABLE, "id_column": "Reaction"}, reward_column="Yield")
    path, header = "/api/v1/studies/s/results", {"content-type": "text/csv", "idempotency-key": "a"}
    told = server.post(path, content="Reaction,Yield\nL1,1\nL2,2\n", headers=header)
    assert (told.status_code, told.json()["counted"]) == (200, 2)
    told = server.post(path, content="id,reward\nL3,1\n", headers={**header, "idempotency-key": "b"})
    assert told.json()["counted"] == 1
    wrong = server.post(path, content="reaction,Yield\nL1,1\n", headers={**header, "idempotency-key": "c"})
    assert (wrong.status_code, "has no column" in wrong.text) == (422, True)
    share = server.post(path, content="id,reward\nL3,66 %\n", headers={**header, "idempotency-key": "d"})
    assert "is a percentage: write 0.013 for 1.3%" in share.text


def test_a_confidence_in_place_of_delta_is_asked_about(server):
    new = made(server, "s", {"ids": ["a", "b"]}, delta=0.95)
    assert "confidence is delta 0.05. Was that meant?" in new["notes"][0]
