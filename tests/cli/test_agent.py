"""Studies as tools of an agent: a session of the protocol's own client, in this process."""

import json
import os
import re
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from typing import Any

import anyio
import numpy as np
import pytest
from command_line import answered
from mcp import Client, StdioServerParameters, stdio_client

import surepick as sp
from surepick.cli.commands.agent import agent_server

MEANS = {"a": 0.1, "b": 0.9, "c": 0.3}
TIME = re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.]+(?:\+00:00| UTC)")
CREATE = {"study": "lab", "candidates": list(MEANS), "epsilon": 0.3, "noise": "bernoulli"}


def session(url: str, act: Callable[[Any], Any]) -> Any:
    """What an agent finds out, who calls tools by `await call(name, **arguments)`."""

    async def talk() -> Any:
        async with Client(agent_server(url)) as client:

            async def call(name: str, **given: Any) -> Any:
                answer = await client.call_tool(name, given)
                said = answer.content[0].text
                return said if answer.is_error else json.loads(said)

            return await act(call)

    return anyio.run(talk)


def told(asked: dict[str, Any], reward: Callable[[str], float]) -> list[dict[str, Any]]:
    return [{"id": one["id"], "key": one["key"], "reward": reward(one["id"])} for one in asked["measurements"]]


@pytest.fixture
def url(tmp_path) -> str:
    return f"sqlite:///{tmp_path}/lab.db"


def test_an_agent_finds_the_best_and_its_certificate_verifies(url, tmp_path):
    rng = np.random.default_rng(3)

    async def act(call):
        made = await call("create", **CREATE)
        while not (asked := await call("ask", study="lab"))["stopped"]:
            came = await call("tell", study="lab", results=told(asked, lambda name: float(rng.random() < MEANS[name])))
            assert (came["counted"], came["repeated"]) == (len(asked["measurements"]), 0)
        answer = await call("certificate", study="lab", out=str(tmp_path / "c.json"))
        checked = await call("verify", file=str(tmp_path / "c.json"), registered=made["registration"])
        other = await call(
            "verify",
            file=str(tmp_path / "c.json"),
            registered=(await call("create", **CREATE | {"study": "x"}))["registration"],
        )
        return made, answer, checked, other, await call("studies")

    made, answer, checked, other, listed = session(url, act)
    assert (answer["best_arm"], answer["verdict"]) == ("b", "certified")
    assert (checked["holds"], other["holds"]) == (True, False)
    assert sp.verify_certificate(tmp_path / "c.json", registered=made["registration"]).holds
    assert [one["name"] for one in listed["studies"]] == ["lab", "x"]


def test_nothing_of_an_open_round_is_told(url, tmp_path):
    """Two databases differ in results of an open round alone: every tool says the same of both."""

    async def begin(call):
        await call("create", **CREATE)
        return await call("ask", study="lab")

    asked = session(url, begin)
    with closing(sqlite3.connect(tmp_path / "lab.db")) as one, closing(sqlite3.connect(tmp_path / "other.db")) as other:
        one.backup(other)

    def act(reward: float):
        async def acting(call):
            results = told(asked, lambda name: reward)[:-1]
            said = [await call("tell", study="lab", results=results)]
            said += [await call(name, study="lab") for name in ("status", "ask", "certificate")]
            return TIME.sub("TIME", json.dumps([*said, await call("studies")]))

        return acting

    low, high = session(url, act(0.0)), session(f"sqlite:///{tmp_path}/other.db", act(1.0))
    assert low == high
    assert json.loads(low)[1]["told"] == len(asked["measurements"]) - 1

    async def close(call):
        rest = told(asked, lambda name: float(name == "b"))[-1:]
        await call("tell", study="lab", results=rest)
        return await call("status", study="lab")

    assert session(url, close)["pulls"] == session(f"sqlite:///{tmp_path}/other.db", close)["pulls"] > 0


def test_results_count_once_and_those_that_failed_are_asked_again(url):
    async def act(call):
        await call("create", **CREATE)
        asked = await call("ask", study="lab")
        results = told(asked, lambda name: 0.0)
        results[0]["reward"] = None
        first = await call("tell", study="lab", results=results)
        again = await call("tell", study="lab", results=results[1:])
        return first, again, await call("ask", study="lab"), results[0]

    first, again, asked, failed = session(url, act)
    assert (first["failed"], again["counted"]) == (1, 0)
    assert again["repeated"] == first["counted"]
    assert [one["id"] for one in asked["measurements"]] == [failed["id"]]


@pytest.mark.parametrize(
    ("tool", "given", "words"),
    [
        ("status", {"study": "none"}, "there is no file"),
        ("create", {"study": "s", "epsilon": 0.1}, "give the names of the candidates, or a table"),
        ("create", {"study": "s", "candidates": ["a", "b"]}, "epsilon"),
        ("create", {**CREATE, "options": {"norm_bond": 1}}, "has no option 'norm_bond'"),
        ("create", {**CREATE, "noise": "loud"}, "is not understood"),
        ("verify", {"file": "none.json"}, "none.json"),
        ("analyze", {"table": "none.csv"}, "none.csv"),
    ],
)
def test_an_error_is_a_sentence(tool, given, words, url):
    async def act(call):
        return await call(tool, **given)

    said = session(url, act)
    assert isinstance(said, str)
    assert words in said


def test_results_that_nobody_asked_for_are_refused(url):
    async def act(call):
        await call("create", **CREATE)
        asked = await call("ask", study="lab")
        more = [{"id": asked["measurements"][0]["id"], "key": "mine", "reward": 1.0}]
        await call("tell", study="lab", results=told(asked, lambda name: 0.0)[1:])
        first = await call("tell", study="lab", results=[*told(asked, lambda name: 0.0)[:1], *more])
        return first, await call("status", study="lab")

    said, status = session(url, act)
    assert "more" in said
    assert status["pulls"] == 0


def test_results_with_and_without_keys_are_not_mixed(url):
    async def act(call):
        await call("create", **CREATE)
        results = told(await call("ask", study="lab"), lambda name: 0.0)
        results[0].pop("key")
        return await call("tell", study="lab", results=results), await call("status", study="lab")

    said, status = session(url, act)
    assert "give the key of each" in said
    assert status["told"] == 0


def test_a_finished_table_is_judged(url, tmp_path):
    rows = [f"{name},{mean + 0.1 * (number % 3 - 1)}\n" for number in range(30) for name, mean in MEANS.items()]
    (tmp_path / "t.csv").write_text("id,reward\n" + "".join(rows))

    async def act(call):
        return await call("analyze", table=str(tmp_path / "t.csv"), id_column="id", reward="reward", minimize=False)

    assert any("b" in line.split() for line in session(url, act)["lines"])
    assert not (tmp_path / "lab.db").exists()


def test_a_table_of_candidates_and_options_make_the_study_that_the_library_makes(url, tmp_path):
    (tmp_path / "t.csv").write_text("name,x\n" + "".join(f"p{number},{number}\n" for number in range(4)))
    given = {
        "study": "s",
        "table": str(tmp_path / "t.csv"),
        "id_column": "name",
        "epsilon": 0.5,
        "minimize": True,
        "noise": "subgaussian:1",
    }

    async def act(call):
        return await call("create", **given, options={"assume": "linear"})

    made = session(url, act)
    assert (made["candidates"], made["policy"]["name"]) == (4, "certified-readings")
    study = sp.open_study(url, "s")
    assert (study.minimize, study.registration) == (True, made["registration"])


def test_the_tools_say_what_they_do(url):
    async def talk():
        async with Client(agent_server(url)) as client:
            return (await client.list_tools()).tools

    tools = {tool.name: tool for tool in anyio.run(talk)}
    assert {*tools} == {"create", "ask", "tell", "status", "studies", "certificate", "analyze", "verify"}
    for tool in tools.values():
        assert tool.description.endswith((".", "?"))
        assert "url" not in tool.input_schema["properties"]
        assert all(one.get("description") for one in tool.input_schema["properties"].values())
    assert {name for name, tool in tools.items() if tool.annotations.read_only_hint} == {"status", "studies", "verify"}


def test_the_command_speaks_on_standard_input(url):
    server = StdioServerParameters(command=sys.executable, args=["-m", "surepick", "mcp", url], env={**os.environ})

    async def talk():
        async with Client(stdio_client(server)) as client:
            return (await client.call_tool("create", CREATE)).is_error

    assert not anyio.run(talk)
    assert sp.open_study(url, "lab").ids == tuple(MEANS)


def test_without_the_package_a_sentence_says_what_to_install(url, monkeypatch):
    monkeypatch.setattr("surepick.cli.commands.mcp.find_spec", lambda name: None)
    code, said = answered(["mcp", url])
    assert code == 2
    assert 'pip install "surepick[mcp]"' in " ".join(said.split())
