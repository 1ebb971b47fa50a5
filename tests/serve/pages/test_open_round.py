"""Nothing of an open round's results is shown to anybody: pages are equal whatever the rewards are."""

import re
import sys

import pytest
from page_forms import Visitor, shown
from server_studies import copied
from servers import serving

from surepick.reports.study import charts

PATHS = ("/", "/studies/coffee", "/studies/coffee/standing", "/studies/coffee/answer", "/studies/coffee/history")
LOGINS = ("/login", "/login/openid", "/login/openid/back")
DOCUMENTS = ("/studies/coffee/results.csv", "/studies/coffee/report", "/studies/coffee/certificate.json")
MOMENT = re.compile(r"\b1\d{9}\.\d+")  # seconds since 1970
NEW = {"name": "coffee", "candidates": {"ids": list("abcd")}, "epsilon": 0.3, "noise": "subgaussian:1"}


@pytest.fixture(autouse=True)
def _one_moment(monkeypatch):
    """All clocks stand still, so that pages do not differ by their times."""
    for name, module in list(sys.modules.items()):
        if name.startswith("surepick") and hasattr(module, "system_clock"):
            monkeypatch.setattr(module, "system_clock", lambda: 1_800_000_000.0)
    monkeypatch.setattr(charts, "ROUNDS", 3)  # what a report forecasts knows no reward


OWN = re.compile(r'<section class="card" aria-labelledby="just".*?</section>', re.DOTALL)


def told(url, rewards) -> dict[str, str]:
    """What others see after ann told these rewards of the open round."""
    with serving(url) as server:
        ann = Visitor(server).login("ann", "measurer")
        ann.send("/studies/coffee/take", max_pulls="2")
        rows, asked = {}, []
        for place, (name, key) in enumerate(ann.tasks("coffee")):
            rows |= {f"id.{place}": name, f"key.{place}": key, f"reward.{place}": rewards[place]}
            asked.append(f"{key} {float(rewards[place])!r}")
        rows |= {"accept_unusual": "yes", "asked": asked}  # some stand out from the first round
        done = ann.send("/studies/coffee/results", way="rows", **rows)
        own = OWN.sub("", ann.get("/studies/coffee").text)  # she sees what she reported herself, to take it back
        seen = {"ann": shown(own), "said": ann.get(done.headers["location"]).status_code}
        for name, role in (("vic", "viewer"), ("bob", "measurer"), ("own", "owner"), ("adm", "admin")):
            other = Visitor(server).login(name, role)
            for path in PATHS + LOGINS + DOCUMENTS:
                answer = other.get(path)
                seen[f"{name} {path}"] = f"{answer.status_code} {shown(answer.text)}"
            with other.http.stream("GET", "/api/v1/studies/coffee/events") as stream:
                event = next(line for line in stream.iter_lines() if line.startswith("data: "))
            assert '"told": 2' in event
            seen[f"{name} events"] = MOMENT.sub("", event)
            other.close()
        ann.close()
    return seen


def begun(url, rounds) -> None:
    """A study of which that many rounds are closed."""
    with serving(url) as server:
        assert server.post("/api/v1/studies", json=NEW).status_code == 201
        if not rounds:
            return
        leased = server.post("/api/v1/studies/coffee/leases", json={}).json()["measurements"]
        rows = [{"id": one["id"], "key": one["key"], "reward": 0.1 * place} for place, one in enumerate(leased)]
        server.post("/api/v1/studies/coffee/results", json={"results": rows})


@pytest.mark.parametrize("rounds", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_pages_do_not_depend_on_rewards_of_the_open_round(tmp_path, rounds):
    seen = []
    base = tmp_path / "base.db"
    begun(f"sqlite:///{base}", rounds)  # once: what is drawn when a study is made is then the same
    for which, rewards in (("one", ("0.5", "-3")), ("other", ("-7", "1e6"))):
        path = tmp_path / f"{which}.db"
        copied(base, path)
        seen.append(told(f"sqlite:///{path}", rewards))
    assert seen[0].keys() == seen[1].keys()
    for place in seen[0]:
        assert seen[0][place] == seen[1][place], place
    assert "2 of" in seen[0]["vic /studies/coffee"]
