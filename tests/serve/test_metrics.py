"""What operators see: counts by route, and a line a request; no reward, no id, no name."""

import json
import logging
import time

from surepick_server.web.open_studies import Lines

SECRET = "0.987654321"


def test_counts_and_lines_name_routes_and_nothing_of_a_study(client, people, caplog):
    with caplog.at_level(logging.INFO, logger="surepick_server"):
        lease = client.post("/api/v1/studies/paint/leases", json={}, headers=people["measurer"]).json()["measurements"]
        rows = [{**one, "reward": float(SECRET)} for one in lease]
        client.post("/api/v1/studies/paint/results", json={"results": rows}, headers=people["measurer"])
        client.post("/api/v1/studies/paint/results", json={"results": rows}, headers=people["measurer"])  # counts once
        client.get("/api/v1/studies/paint?reward=" + SECRET, headers=people["viewer"])
        client.get("/nowhere/paint/" + SECRET)
        client.request("BREW", "/api/v1/studies/paint", headers=people["viewer"])
        until = time.monotonic() + 10.0  # a line is written once the answer is away
        while len(caplog.records) < 6 and time.monotonic() < until:
            time.sleep(0.01)
    records = [record for record in caplog.records if record.name == "surepick_server"]
    page = client.get("/metrics", headers=people["viewer"])
    assert page.headers["content-type"].startswith("text/plain")
    told = 'surepick_requests_total{method="POST",route="/api/v1/studies/{name}/results",status="200"} 2.0'
    assert told in page.text
    assert "surepick_results_stored_total 3.0" in page.text
    lines = [Lines().format(record) for record in records]
    assert [json.loads(line)["status"] for line in lines] == [200, 200, 200, 200, 404, 405]
    for text in (page.text, *lines):
        for hidden in (SECRET, "paint", "p1.0@a", "a measurer", "BREW", "spk_"):
            assert hidden not in text


def test_a_line_of_a_failure_has_its_kind_and_place_and_not_its_words():
    try:
        raise ValueError(SECRET)
    except ValueError as error:
        known = (type(error), error, error.__traceback__)
        record = logging.LogRecord("uvicorn.error", logging.ERROR, "x", 1, "failed", None, known)
    line = json.loads(Lines().format(record))
    assert line["kind"] == "ValueError"
    assert line["where"].startswith("test_metrics.py:")
    assert SECRET not in json.dumps(line)
