"""The server is killed again and again, also between a request and its answer: no result is lost, none counts twice."""

import contextlib
import hashlib
import random
import signal
import socket
import time

import httpx
import pytest
from servers import connected, served_apart

import surepick as sp
from surepick.certificates.document import certificate_document
from surepick.studies.database import Database
from surepick_server.access.schema import make_tables
from surepick_server.access.tokens import Role, Tokens


def path_of(name: str) -> str:
    return f"/api/v1/studies/{name}"


def reward_of(key: str) -> float:
    """The same whenever the measurement is reported."""
    candidate = "abcdef".index(key.rpartition("@")[2])
    return float(hashlib.sha256(key.encode()).digest()[0] < 90 + 20 * candidate)


class Server:
    """A process that serves, on one port, started anew after each kill."""

    def __init__(self, url: str) -> None:
        self.url = url
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.start()

    def start(self) -> None:
        self.process = served_apart(self.url, self.port)
        connected(f"http://127.0.0.1:{self.port}")

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        assert self.process.exitcode == -signal.SIGKILL, "it ended before it could be killed"


def created(url: str, number: int) -> str:
    """The name of a new study."""
    arms = sp.Arms(ids=[*"abcdef"])
    policy = sp.make_policy("certified-independent", arms, epsilon=0.05, delta=0.1, noise="bernoulli")
    sp.create_study(url, f"paint-{number}", policy)
    return f"paint-{number}"


@pytest.fixture
def world(database_url):
    """(server, header of a measurer, address of the database)."""
    database = Database(database_url, create=True)
    database.prepare()
    make_tables(database.engine, "secret")
    text, _ = Tokens(database.engine).make("lab", Role.measurer)
    database.engine.dispose()
    server = Server(database_url)
    yield server, {"authorization": f"Bearer {text}"}, database_url
    server.kill()


def measured(client: httpx.Client, name: str, most: int = 7) -> tuple[list[str], bool]:
    """(keys that were acknowledged, whether the study has stopped), of a lease and its results."""
    lease = client.post(f"{path_of(name)}/leases", json={"max_pulls": most}).json()
    rows = [{**one, "reward": reward_of(one["key"])} for one in lease["measurements"]]
    if rows:
        answer = client.post(f"{path_of(name)}/results", json={"results": rows})
        assert answer.status_code == 200, answer.text
        assert answer.json()["stored"] == len(rows)
    return [row["key"] for row in rows], lease["stopped"]


def check(url: str, name: str, acknowledged: set[str]) -> None:
    """Every acknowledged result is there, once; the certificate is that of the same results told without a server."""
    study = sp.open_study(url, name)  # computes everything again
    assert study.stopped
    stored = list(study.log.history(study.progress().judged))
    keys = [key for one in stored for key in one.results.keys or ()]
    assert len(keys) == len(set(keys))
    assert acknowledged <= set(keys)
    assert all(one.status == "counted" for one in stored)
    again = sp.Study(study.policy, study_id=study.study_id)
    for plan in range(1, study.progress().judged + 1):
        rows = [one.results for one in stored if one.plan == plan]
        ids = [study.ids[arm] for one in rows for arm in one.arms.tolist()]
        again.ask()
        again.tell(ids, [value for one in rows for value in one.sums.tolist()])
    assert again.stopped
    mine, theirs = (certificate_document(one, name) for one in (study, again))
    for field in ("best_arm", "verdict", "pulls", "promise", "reason", "registration"):
        assert mine[field] == theirs[field], field
    assert [one["pulls"] for one in mine["rounds"]] == [one["pulls"] for one in theirs["rounds"]]


@pytest.mark.parametrize("kills", [2, pytest.param(200, marks=pytest.mark.slow)])
def test_kills_at_random_instants_lose_nothing_and_double_nothing(world, kills):
    """One study after the other, as many as it takes."""
    server, header, url = world
    chance, done, number, told = random.Random(23), 0, 0, 0
    while done < kills:
        name, acknowledged, stopped = created(url, number), set[str](), False
        while not stopped:
            with httpx.Client(base_url=f"http://127.0.0.1:{server.port}", headers=header, timeout=20.0) as client:
                until = time.monotonic() + chance.uniform(0.0, 0.15)
                while not stopped and (done >= kills or time.monotonic() < until):
                    keys, stopped = measured(client, name, most=7 if done < kills else 500)
                    acknowledged |= set(keys)
                if done < kills:
                    cut_off(client, name, server, chance, stopped=stopped)
                    done += 1
                    server.start()
        number, told = number + 1, told + len(acknowledged)
        check(url, name, acknowledged)
    print(f"\n{kills} kills in {number} studies, {told} results acknowledged")


def cut_off(client: httpx.Client, name: str, server: Server, chance: random.Random, *, stopped: bool) -> None:
    """Kill the server while it works on results, whose answer nobody sees."""
    lease = {"measurements": []} if stopped else client.post(f"{path_of(name)}/leases", json={"max_pulls": 7}).json()
    rows = [{**one, "reward": reward_of(one["key"])} for one in lease["measurements"]]
    request = client.build_request("POST", f"{path_of(name)}/results", json={"results": rows})
    body = request.read()
    with socket.create_connection(("127.0.0.1", server.port), 10.0) as plain:
        lines = [
            f"POST {path_of(name)}/results HTTP/1.1",
            *(f"{name}: {value}" for name, value in request.headers.items()),
        ]
        head = ("\r\n".join(lines) + "\r\n\r\n").encode()
        sent = head + body
        plain.sendall(sent[: chance.randrange(len(sent))] if chance.random() < 0.2 else sent)
        time.sleep(chance.uniform(0.0, 0.02))
        server.kill()
        with contextlib.suppress(OSError):
            plain.recv(1)
