"""The commands with the address of a server in the place of a database's."""

import json
import socket
import sys

import pytest
from servers import serving, token_for
from study_commands import IDS, MEANS, NOISE, Lab, by_hand, surepick, write_rows

from surepick_server.client import transport

SECRET = "spk_s3cret"


@pytest.fixture(autouse=True)
def _nothing_said(monkeypatch):
    for name in ("SUREPICK_TOKEN", "SUREPICK_URL", "SUREPICK_INSECURE_HTTP"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(transport, "PAUSES", (0.02,))


@pytest.fixture
def served(sqlite_url, tmp_path):
    """(commands on a server, commands on its database)."""
    with serving(sqlite_url) as client:
        over = Lab(str(client.base_url).rstrip("/"), tmp_path)
        yield over, Lab(sqlite_url, tmp_path), client


def test_a_whole_study_on_a_server(stored_at, tmp_path):
    with serving(stored_at) as client:
        address = str(client.base_url).rstrip("/")
        lab = Lab(address, tmp_path)
        said = lab.create()
        assert f"Next: surepick ask {address} paint\n" in said
        assert "No round is complete" in lab("certificate")[1]
        assert lab("recommend")[0] == 3
        first = lab.filled("first.csv")
        assert lab.json("tell", first)["counted"] == 5
        assert lab.json("tell", first) | {"plan": 0} == {
            **dict.fromkeys(("plan", "counted", "late", "prior", "failed", "empty"), 0),
            "repeated": 5,
            "closed": False,
            "stopped": False,
        }
        while not lab.json("ask")["stopped"]:
            lab.done("tell", lab.filled())
        certificate = lab.json("certificate")
        assert certificate == by_hand(certificate["study_id"])
        assert lab.json("recommend")["best_arm"] == "a b"
        assert lab.json("status") == Lab(stored_at, tmp_path).json("status")
        assert json.loads(surepick("list", address, "--format", "json")[1]) == json.loads(
            surepick("list", stored_at, "--format", "json")[1]
        )


def test_documents_are_equal_byte_by_byte(served, tmp_path):
    over, kept, _ = served
    over.create()
    while not over.json("ask")["stopped"]:
        over.done("tell", over.filled())
    for lab, name in ((over, "there"), (kept, "here")):
        lab.done("certificate", "--out", tmp_path / f"{name}.json")
        lab.done("report", "--out", tmp_path / f"{name}.html", "--forecast-up-to", 0)
        assert lab.json("export", "--out", tmp_path / f"{name}.parquet")["rows"] > 4
        lab.done("export", "--out", tmp_path / f"{name}.csv")
    for suffix in (".json", ".html", ".parquet", ".csv"):
        assert (tmp_path / f"there{suffix}").read_bytes() == (tmp_path / f"here{suffix}").read_bytes(), suffix
    assert surepick("verify", tmp_path / "there.json")[0] == 0


def test_totals_failures_priors_and_the_rest(served):
    over, kept, _ = served
    over.create("--surplus", "count")
    part = over.json("ask", "--worker", "ann", "--max-pulls", 3)["measurements"]
    rows = [{**part[0], "reward": 0.5}, {**part[1], "reward": "failed"}]
    assert over.told(rows, "--worker", "ann", name="some.csv")["failed"] == 1
    assert over.told([{"id": IDS[2], "pulls": 2, "sum": 0.7}])["counted"] == 1
    assert over.told([{"id": IDS[0], "reward": 0.5}], "--as-prior")["prior"] == 1
    assert over.json("release", "--worker", "ann")["released"] == 0
    over.done("abandon", "--reason", "independent-of-value", "--id", IDS[1])
    assert over.json("status") | {"done_by": None} == kept.json("status") | {"done_by": None}
    assert over.json("close", "--reason", "enough")["stopped"]
    assert over("certificate")[0] == 3
    assert over.json("tell", over.folder / "some.csv", "--worker", "ann")["repeated"] == 1


def test_a_program_measures_for_a_server(served, tmp_path):
    over, _, client = served
    program = tmp_path / "measure.py"
    program.write_text(f"import sys\nprint({MEANS!r}[sys.argv[2]])\n")
    over.create()
    code, _, said = over("run-study", "--measure", f"{sys.executable} -ISE {program} -- {{id}}", "--workers", 2)
    assert code == 0, said
    assert over.json("status")["verdict"] == "certified"
    assert client.get("/api/v1/studies/paint").json()["progress"]["stopped"]


def test_tokens_from_the_environment(served, monkeypatch, refused):
    over, _, client = served
    over.create()
    texts = {
        role: token_for(client, role, role)["authorization"].split()[1] for role in ("viewer", "measurer", "owner")
    }
    words = refused("status", over.url, "paint")
    assert "(401)" in words
    assert "SUREPICK_TOKEN" in words
    monkeypatch.setenv("SUREPICK_TOKEN", SECRET)
    assert SECRET not in refused("status", over.url, "paint")
    monkeypatch.setenv("SUREPICK_TOKEN", texts["viewer"])
    assert "round 1" in over.done("status")
    assert "takes the role measurer" in refused("ask", over.url, "paint")
    monkeypatch.setenv("SUREPICK_TOKEN", texts["measurer"])
    monkeypatch.setenv("SUREPICK_URL", over.url)
    code, said, noted = surepick("ask", "-", "paint", "--max-pulls", 1)
    assert (code, "for measurer, until" in said, "anyone" in noted) == (0, True, False)
    assert "surepick tell - paint RESULTS --worker measurer" in said
    assert "You are 'measurer'" in refused("ask", "-", "paint", "--worker", "bob")
    assert "takes the role owner" in refused("close", "-", "paint")
    arms = write_rows(over.folder / "more.csv", [{"id": "a"}, {"id": "b"}])
    assert "takes the role owner" in refused("create", "-", "more", "--arms", arms, "--noise", NOISE, "--epsilon", 0.1)
    monkeypatch.setenv("SUREPICK_TOKEN", texts["owner"])
    assert surepick("close", "-", "paint")[0] == 0


@pytest.mark.parametrize(
    "words", [("migrate",), ("serve",), ("token", "list"), ("token", "revoke", "ann"), ("token", "create", "ann")]
)
def test_what_needs_the_database_itself(refused, monkeypatch, words):
    for url in ("http://127.0.0.1:8421", "https://lab.example.org"):
        at = 2 if words[0] == "token" else 1
        given = [*words[:at], url, *words[at:]]
        assert "this works on the database itself, and the address is a server's" in refused(*given)
    monkeypatch.setenv("SUREPICK_URL", "https://lab.example.org")
    assert "the address is a server's" in refused("migrate", "-")


def test_servers_that_are_not_there(refused, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert "no server answers at" in refused("status", f"http://127.0.0.1:{port}", "paint", code=1)
    assert "is another machine, and http is not encrypted" in refused("status", "http://lab.example.org", "paint")
    assert SECRET not in refused("status", f"https://ann:{SECRET}@lab.example.org", "paint")
    monkeypatch.setattr("importlib.util.find_spec", lambda name, *_: None)
    assert 'need httpx, which is absent: pip install "surepick[client]"' in refused("list", "https://lab.example.org")


def test_a_study_that_is_not_there(served, refused):
    over, _, _ = served
    assert "There is no study 'paint'." in refused("status", over.url, "paint")
    over.create()
    assert "There is a study 'paint' already" in refused(
        "create",
        over.url,
        "paint",
        "--arms",
        over.folder / "arms.csv",
        "--id",
        "sku",
        "--noise",
        NOISE,
        "--epsilon",
        0.1,
    )
    wrong = write_rows(over.folder / "x.csv", [{"id": IDS[0], "reward": 0.5, "key": f"p1.9@{IDS[0]}"}])
    assert "p1.9@a b" in refused("tell", over.url, "paint", wrong)
