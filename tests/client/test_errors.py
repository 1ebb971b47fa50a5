"""What is refused is refused as by a study in a database: by the same errors, in the same words."""

import numpy as np
import pytest
from servers import serving, token_for
from together import of_each

import surepick as sp
from surepick.core.plans import Design
from surepick.core.records import encode
from surepick.errors import ContractError, NotConverged, SurepickError
from surepick.studies.opening import checked_address
from surepick_server.access.tokens import Role
from surepick_server.client import Server
from surepick_server.web import open_studies

USUAL = {"epsilon": 0.3, "delta": 0.05, "noise": "bounded:0:1"}
SECRET = "spk_" + "s3cret" * 8


def created(url, name="paint", **more):
    return sp.create_study(url, name, sp.make_policy("certified-independent", sp.Arms(ids=[*"abc"]), **USUAL), **more)


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """(address of a database, address of a server on another); each call has studies of its own in them."""
    folder = tmp_path_factory.mktemp("both")
    with serving(f"sqlite:///{folder}/there.db", requests_a_minute=10**6) as client:
        yield f"sqlite:///{folder}/here.db", str(client.base_url)


def said(call, study):
    with pytest.raises(SurepickError) as refused:
        call(study)
    return type(refused.value), str(refused.value)


def stopped(call):
    def after(study):
        study.close("enough")
        call(study)

    return after


CALLS = {
    "an unknown arm": lambda study: study.tell(["x"], [0.5]),
    "another number of rewards": lambda study: study.tell(["a"], [0.5, 0.6]),
    "not finite": lambda study: study.tell(["a"], [np.nan]),
    "outside of the noise": lambda study: study.tell(["a"], [2.0]),
    "no numbers": lambda study: study.tell(["a"], ["much"]),
    "a key of nobody": lambda study: study.tell(["a"], [0.5], ["p1.77@a"]),
    "a key of another arm": lambda study: study.tell(["a"], [0.5], ["p1.0@b"]),
    "another value": lambda study: [study.tell(["a"], [value], ["k"], worker="w") for value in (0.5, 0.6)],
    "another plan": lambda study: study.tell(["a"], [0.5], plan=9),
    "plan 0": lambda study: study.tell(["a"], [0.5], plan=0),
    "items": lambda study: study.tell(["a"], [0.5], items=["q"]),
    "blocks": lambda study: study.tell(["a"], [0.5], blocks=["q"]),
    "failed is no pair": lambda study: study.tell(["a"], [0.5], failed=["b"]),
    "totals": lambda study: study.tell_totals(["a"], [-1], [0.5]),
    "totals outside": lambda study: study.tell_totals(["a"], [2], [2.5]),
    "no quantities": lambda study: study.tell_totals(["a"], [2], [1.0], quantities=()),
    "prior": lambda study: study.tell_prior(["y"], [0.5]),
    "fail": lambda study: study.fail(["a"], ["p1.9@a"]),
    "lease of nothing": lambda study: study.lease(0),
    "lease of nobody": lambda study: study.lease(worker=" "),
    "lease of no time": lambda study: study.lease(duration="soon"),
    "abandon": lambda study: study.abandon(""),
    "abandon unknown": lambda study: study.abandon("lost", ["z"]),
    "withdraw all": lambda study: study.withdraw([*"abc"], "sold out"),
    "withdraw": lambda study: study.withdraw(["a"], " "),
    "add": lambda study: study.add(["a"]),
    "add nothing": lambda study: study.add([]),
    "interim": lambda study: study.interim(),
    "recorded": lambda study: study.recorded(["a"], []),
    "run": lambda study: study.run(lambda ids: [0.5]),
    "told after the end": stopped(lambda study: study.tell(["a"], [0.5])),
    "failed after the end": stopped(lambda study: study.fail(["a"])),
    "withdrawn after the end": stopped(lambda study: study.withdraw(["a"], "sold out")),
    "abandoned after the end": stopped(lambda study: study.abandon("lost")),
}


@pytest.mark.cases(17)
@pytest.mark.parametrize("name", CALLS)
def test_the_same_error_in_the_same_words(both, name):
    call = CALLS[name]
    here, there = (created(url, name) for url in both)
    before = (there.progress().told, there.progress().set_aside)
    words = said(call, there)
    assert words == said(call, here)
    assert (there.progress().told, there.progress().set_aside) == (
        (1, (0, 0)) if "another value" in words[1] else before
    )


def test_every_kind_of_error_comes_back_as_itself(server, monkeypatch):
    """Also those that no call of a small study raises."""
    study = created(str(server.base_url))
    kinds = [kind for kind, _ in open_studies.KINDS]
    assert {ContractError, NotConverged} < set(kinds)
    for kind in kinds:
        error = kind("of this kind", best=None, gap=0.5) if kind is NotConverged else kind("of this kind")
        monkeypatch.setattr(
            "surepick.studies.study.Study.progress", lambda *_, error=error: (_ for _ in ()).throw(error)
        )
        with pytest.raises(kind, match="of this kind"):
            study.progress()


@pytest.mark.parametrize("gap", [0.5, np.inf])
def test_what_did_not_converge_brings_its_design(server, monkeypatch, gap):
    study = created(str(server.base_url))
    weights = np.zeros(1_000)
    weights[[3, 700]] = 1 / 3, 2 / 3
    best = Design(weights, 1.5, 1.0, 2)

    def raised(*_):
        raise NotConverged("not yet", best=best, gap=gap)

    monkeypatch.setattr("surepick.studies.study.Study.ask", raised)
    with pytest.raises(NotConverged, match="not yet") as refused:
        study.ask()
    assert refused.value.gap == gap
    assert encode(refused.value.best) == encode(best)
    token = token_for(server, "ann", "owner")
    page = server.get("/studies/paint", headers=token)
    assert page.headers["content-type"].startswith("text/html")


def test_a_study_that_is_not_there_or_is_there(server):
    address = str(server.base_url)
    with pytest.raises(sp.InvalidInput, match="no study 'paint'"):
        sp.open_study(address, "paint")
    created(address)
    with pytest.raises(sp.InvalidInput, match="a study 'paint' already"):
        created(address)
    other = sp.make_policy("certified-independent", sp.Arms(ids=[*"abc"]), **(USUAL | {"epsilon": 0.4}))
    with pytest.raises(sp.InvalidInput, match=r"its epsilon is 0.4 and the study's is 0.3"):
        sp.open_study(address, "paint", other)
    other = sp.make_policy("certified-independent", sp.Arms(ids=[*"abcd"]), **USUAL)
    with pytest.raises(sp.InvalidInput, match="for 4 arms and there are 3"):
        sp.open_study(address, "paint", other)
    with pytest.raises(sp.InvalidInput, match="judge is 'later'"):
        created(address, judge="later")


def test_names_and_ids_of_all_kinds_come_through(server):
    names = ["a b", "c/d", 'e"f', "é?&=#", "%2F..", "x\ty"]
    policy = sp.make_policy("certified-independent", sp.Arms(ids=names), largest_batch=6, **USUAL)
    study = sp.create_study(str(server.base_url), "é %2F?#&", policy)
    part = study.lease()
    assert part.pulls() == names
    assert study.tell(part, [0.5] * 6).counted == 6
    assert sp.open_study(str(server.base_url), "é %2F?#&").progress().judged == 1


def test_tokens(server, monkeypatch):
    address = str(server.base_url)
    created(address)
    own = token_for(server, "ann", "measurer")["authorization"].split()[1]
    with pytest.raises(sp.InvalidInput, match=r"401.*Authorization: Bearer TOKEN.*SUREPICK_TOKEN"):
        sp.open_study(address, "paint")
    with pytest.raises(sp.InvalidInput, match=r"refuses this \(401\)") as refused:
        sp.open_study(address, "paint", token=SECRET)
    assert SECRET not in str(refused.value)
    monkeypatch.setenv("SUREPICK_TOKEN", own)
    study = sp.open_study(address, "paint")
    assert own not in repr(study) + repr(Server(address))
    assert study.lease(1).lease.worker == "ann"
    assert study.lease(1, worker="ann/2").lease.worker == "ann/2"
    assert study.worker_name("me@here") == "ann/me@here"
    with pytest.raises(sp.InvalidInput, match=r"403.*You are 'ann': leave worker out, or name a part of you"):
        study.lease(worker="bob")
    with pytest.raises(sp.InvalidInput, match="takes the role owner, and yours is measurer"):
        study.close()
    with pytest.raises(sp.InvalidInput, match="takes the role owner"):
        Server(address).create("more", study.policy)
    assert server.app.state.server.tokens.principal(own).role is Role.measurer


def test_nobody_else_s_results_are_tried_out(server):
    address = str(server.base_url)
    created(address)
    tokens = [token_for(server, name, "measurer")["authorization"].split()[1] for name in ("ann", "bob")]
    ann, bob = (Server(address, token=token).study("paint") for token in tokens)
    part = ann.lease(2)
    ann.tell(["a"], [0.5], [part.keys()[0][1]])
    for value in (0.5, 0.6):
        key = [part.keys()[0][1]]
        for call in (bob.tell, bob.tell_prior):
            with pytest.raises(sp.InvalidInput, match="was reported by somebody else"):
                call(["a"], [value], key)
        with pytest.raises(sp.InvalidInput, match="was reported by somebody else"):
            bob.tell_totals(["a"], [1], [value], [value**2], key)
    with pytest.raises(sp.InvalidInput, match="is leased to somebody else"):
        bob.fail(["a"], [part.keys()[1][1]])


@of_each(
    ("address", "why"),
    [
        ("http://example.org", "is another machine, and http is not encrypted"),
        ("http://10.0.0.7:8421", "is another machine"),
        ("http://127.0.0.1.example.org", "is another machine"),
        ("http://ann:word@127.0.0.1", "a name or a password in it"),
        ("https://ann:word@example.org", "a name or a password in it"),
        ("http://", "is no address of a server"),
        ("http://127.0.0.1:8421?token=word", "is no address of a server"),
        ("http://127.0.0.1:x", "is no address of a server"),
    ],
)
def test_addresses_that_are_refused(address, why):
    with pytest.raises(sp.InvalidInput, match=why) as refused:
        sp.open_study(address, "paint", token=SECRET)
    assert SECRET not in str(refused.value)
    assert "word" not in str(refused.value).replace("password", "")


def test_http_to_another_machine_where_it_is_meant(monkeypatch):
    assert checked_address("http://lab.example.org/", insecure=True) == "http://lab.example.org"
    monkeypatch.setenv("SUREPICK_INSECURE_HTTP", "1")
    assert checked_address("HTTP://lab.example.org:80/surepick/") == "http://lab.example.org:80/surepick"
    with pytest.raises(sp.InvalidInput, match="another machine"):
        checked_address("http://lab.example.org", insecure=False)
    for usual in ("http://localhost:8421", "http://[::1]:8421", "http://127.9.9.9", "https://lab.example.org"):
        assert checked_address(usual, insecure=False) == usual


@of_each("token", ["spk_é", "a\nb", "a\0b", 7])
def test_a_token_that_no_request_can_carry(token):
    with pytest.raises(sp.InvalidInput, match="characters that no token has") as refused:
        Server("http://127.0.0.1:1", token=token)
    assert str(token) not in str(refused.value).replace("127.0.0.1", "")


def test_a_token_is_for_a_server(sqlite_url):
    with pytest.raises(sp.InvalidInput, match="a token is for a server") as refused:
        sp.open_study(sqlite_url, "paint", token=SECRET)
    assert SECRET not in str(refused.value)


def test_what_else_a_server_does(server):
    address = str(server.base_url)
    study = created(address)
    here = Server(address)
    assert [one.name for one in here.studies()] == ["paint"]
    assert here.studies()[0].registration == study.registration
    study.run(lambda ids: [{"a": 0.9, "b": 0.2, "c": 0.1}[name] for name in ids])
    from surepick.certificates.document import certificate_document

    document = certificate_document(study, "paint")
    assert here.verify(document)["holds"]
    assert here.verify(document, registered=study.registration)["holds"]
    assert not here.verify(document | {"pulls": document["pulls"] + 1})["holds"]
    forecast = here.forecast(study.policy, means=[0.9, 0.2, 0.1], rehearsals=2)
    assert forecast["candidates"] == 3
    here.close()


def test_a_server_of_something_else(tmp_path):
    """Under another root it has no studies; its answer is no problem document of ours."""
    with serving(f"sqlite:///{tmp_path}/lab.db") as client, pytest.raises(sp.InvalidInput, match="404"):
        sp.open_study(f"{client.base_url}/elsewhere".replace("//e", "/e"), "paint")
