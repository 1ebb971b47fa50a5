"""A new study by forms, what owners do with one, and tokens."""

import io
import re
import zipfile
from html import unescape

import pytest
from workbooks import write_ods, write_xlsx

from surepick.errors import InvalidInput
from surepick.tables import write_table
from surepick_server.pages import uploads
from surepick_server.pages.layout import Form
from surepick_server.pages.uploads import table_in

TABLE = "recipe,grams,price\nlight,14,1.0\nmedium,16,1.5\ndark,18,2.0\n"
ASKED = {
    "table": TABLE,
    "kind": "csv",
    "name": "coffee",
    **{"use.0": "name", "use.1": "shown", "use.2": "shown"},
    "good": "large",
    "noise": "subgaussian",
    "sigma": "0,2",
    "epsilon": "0.5",
    "delta": "0.05",
    "question": "best",
}


@pytest.mark.parametrize("way", ["pasted", "file", "names", "json"])
def test_the_first_step_shows_the_columns(server, visit, way):
    own = visit("own", "owner")
    if way == "pasted":
        page = own.send("/new", pasted=TABLE)
    elif way == "names":
        page = own.send("/new", names='light\n"medium", strong\n\ndark\n')
    elif way == "json":
        content = b'[{"recipe": "light", "grams": 14}, {"recipe": "dark", "grams": 18}]'
        page = own.send("/new", files={"file": ("x.json", content)})
    else:
        page = own.send("/new", files={"file": ("x.csv", io.BytesIO(TABLE.encode("utf-8-sig")))})
    assert page.status_code == 200
    assert f"{'2' if way == 'json' else '3'} rows" in page.text
    uses = re.findall(r'<th scope="row">([^<]*)<br.*?<option value="([^"]*)" selected', page.text, re.S)
    assert uses[0] == ("name" if way == "names" else "recipe", "name")
    assert {use for _, use in uses[1:]} <= {"shown"}
    if way == "names":
        text = unescape(re.search(r'name="table" value="([^"]*)"', page.text, re.S)[1])
        made = own.send("/new/create", **{**ASKED, "table": text})
        assert made.status_code == 303
        assert own.get("/api/v1/studies/coffee/candidates").json()["ids"] == ["light", '"medium", strong', "dark"]


@pytest.mark.parametrize(
    ("files", "fields", "why"),
    [
        ({}, {}, "There is no table yet"),
        pytest.param(
            {"file": ("x.parquet", b"PAR1")},
            {},
            "&#39;x.parquet&#39; is not a readable Parquet",
            marks=pytest.mark.slow,
        ),
        pytest.param(  # in a process of its own, as the table that is too large below
            {"file": ("x.xlsx", b"PK")}, {}, "&#39;x.xlsx&#39; is not a readable spreadsheet", marks=pytest.mark.slow
        ),
        ({"file": ("x.doc", b"PK")}, {}, "Save the table as CSV"),
        ({"file": ("x.csv", b"\xff\xff")}, {}, "no text in UTF-8"),
        ({"file": ("x.csv", b"\xff\xfe")}, {}, "There is no table yet"),
        ({"file": ("x.csv", b"<!DOCTYPE html><title>Sign in</title>")}, {}, "is a web page, not the table itself"),
        ({}, {"pasted": "a,b\n1,2,3\n"}, "a,b"),
        ({"file": ("x.json", b"{")}, {}, 'role="alert"'),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(visit, files, fields, why):
    refused = visit("own", "owner").send("/new", files=files or None, **fields)
    assert (refused.status_code, why in refused.text) == (422, True)
    assert "/tmp" not in refused.text


@pytest.mark.parametrize("kind", ["xlsx", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("ods", "parquet"))])
def test_spreadsheets_and_parquet_files_are_tables_too(server, visit, tmp_path, kind):
    rows = [["recipe", "grams"], ["light", 14.0], ["=dark", 1 / 3], ["007", 2.5]]
    path = tmp_path / f"x.{kind}"
    if kind == "parquet":
        write_table(path, {name: cells for name, *cells in zip(*rows, strict=True)})
    else:
        (write_xlsx if kind == "xlsx" else write_ods)(path, {"first": rows, "second": [["not", "read"]]})
    own = visit("own", "owner")
    page = own.send("/new", files={"file": (path.name, path.read_bytes())})
    assert (page.status_code, "3 rows, 2 columns" in page.text) == (200, True)
    assert ("2 sheets (&#39;first&#39;, &#39;second&#39;); we read the first." in page.text) == (kind != "parquet")
    assert "--sheet" not in page.text
    assert "/tmp" not in page.text
    text = unescape(re.search(r'name="table" value="([^"]*)"', page.text, re.S)[1])
    made = own.send("/new/create", **{**ASKED, "table": text})
    assert made.status_code == 303
    assert own.get("/api/v1/studies/coffee/candidates").json()["ids"] == ["light", "=dark", "007"]


def test_a_small_file_that_unpacks_to_a_large_table_is_refused_in_a_sentence(visit, tmp_path, monkeypatch):
    own = visit("own", "owner")
    path = write_xlsx(tmp_path / "x.xlsx", {"first": [["recipe"], ["light"]]}, cells={"XFD1048576": 1})
    refused = own.send("/new", files={"file": (path.name, path.read_bytes())})
    assert (refused.status_code, "more than 50,000,000 cells" in refused.text) == (422, True)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as book:
        book.writestr("xl/media/large.bin", b"0" * 5_000_000)
    monkeypatch.setattr(uploads, "MOST_SECONDS", 0.01)
    refused = own.send("/new", files={"file": (path.name, path.read_bytes())})
    assert (refused.status_code, "is too large to be read here, or damaged" in refused.text) == (422, True)


def test_what_reads_a_file_may_fail_alone(monkeypatch):
    monkeypatch.setattr(uploads, "READER", "import os; os.abort()")
    with pytest.raises(InvalidInput, match=r"'x\.xlsx' is too large to be read here, or damaged"):
        uploads.as_csv(b"PK", ".xlsx", "'x.xlsx'")
    monkeypatch.setattr(uploads, "READER", "from surepick_server.pages.uploads import _limit; _limit(); b'0' * 2**33")
    with pytest.raises(InvalidInput, match="is too large to be read here"):
        uploads.as_csv(b"PK", ".xlsx", "'x.xlsx'")


def test_a_table_that_no_later_step_could_carry_is_refused_at_once():
    table = "recipe\n" + "light\n" * 20_000
    with pytest.raises(InvalidInput, match="As text the table has 120,007 bytes, and this page takes 34,464"):
        table_in(Form({"table": [table]}, {}), largest=100_000)


def test_the_form_makes_what_the_api_makes(server, visit):
    own = visit("own", "owner")
    assert own.send("/new/create", **ASKED).headers["location"].startswith("/studies/coffee?said=")
    new = {
        "name": "twin",
        "candidates": {"table": TABLE, "id_column": "recipe"},
        "epsilon": 0.5,
        "noise": "subgaussian:0.2",
        "study_id": own.get("/api/v1/studies/coffee/terms").json()["configuration"]["study_id"],
    }
    assert server.post("/api/v1/studies", json=new, headers={"authorization": f"Bearer {own.token}"}).status_code == 201
    made, twin = (own.get(f"/api/v1/studies/{name}").json() for name in ("coffee", "twin"))
    assert made["registration"] == twin["registration"]
    assert made["noise"] == "subgaussian:0.2"
    again = own.send("/new/create", **ASKED)
    assert (again.status_code, "There is a study" in again.text) == (409, True)
    assert 'value="coffee"' in again.text


PREDICT = {"use.1": "predicts", "use.2": "predicts"}
QUESTIONS = [
    {"question": "above", "threshold": "1.5"},
    {"question": "control", "control": "dark"},
    {"question": "top", "m": "2"},
    {"question": "all-good"},
    {**PREDICT, "norm_bound": "20"},
    PREDICT,
    {"use.2": "cost", "good": "small", "noise": "bounded", "low": "0", "high": "10"},
    {"noise": "bernoulli", "epsilon": "0.2"},
    {"noise": "normal"},
    {"batch": "12", "what": "taste", "unit": "points", "least": "0", "most": "10"},
]


@pytest.mark.cases(4)
@pytest.mark.parametrize("more", QUESTIONS)
def test_every_choice_makes_a_study(visit, more):
    own = visit("own", "owner")
    made = own.send("/new/create", **(ASKED | more))
    assert made.status_code == 303, re.search(r'id="refused".*?<span>(.*?)</span>', made.text)
    assert own.get("/studies/coffee").status_code == 200
    assert own.get("/api/v1/studies/coffee").json()["minimize"] == (more.get("good") == "small")
    policy = own.get("/api/v1/studies/coffee/terms").json()["configuration"]["policy"]
    assert (policy.get("assume") == "linear") == ("use.1" in more and "norm_bound" not in more)
    assert policy.get("batch_size") == (12 if "batch" in more else None)


@pytest.mark.cases(6)
@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"noise": ""}, "Say what a measurement is"),
        ({"epsilon": ""}, "how much worse"),
        ({"epsilon": "0"}, "epsilon"),
        ({"delta": "0"}, "delta"),
        ({"question": "top", "m": "1.5"}, "m"),
        ({"epsilon": "x"}, "is no number"),
        ({"batch": "2.5"}, "whole number"),
        ({"batch": "1OO"}, "Did you mean 100?"),
        ({"least": "5", "most": "1"}, "above 5"),
        ({"name": ""}, "name"),
        ({"sigma": ""}, "standard deviation"),
        ({"question": "above"}, "Give the number"),
        ({"question": "control", "control": "none"}, "none"),
        ({"norm_bound": "20"}, "choose some"),
        ({"use.1": "predicts", "noise": "normal"}, "how far repeats scatter at most"),
        ({"use.0": "shown"}, "No column names the candidates"),
        ({"use.1": "cost", "use.2": "cost"}, "a study takes one"),
        ({"name": ".."}, "more than dots"),
        ({"unit": "x" * 41}, "At most 40 characters."),
        ({"batch": "2"}, "It must be a whole number"),
        ({"table": "recipe,grams,price\nlight,14,1.0\nlight,15,1.0\n"}, "Some names stand twice"),
        ({"table": "recipe,grams,price\nlight,14,1.0\n"}, "two candidates at least"),
    ],
)
def test_what_has_no_meaning_is_refused_and_stays_in_the_form(visit, more, why):
    own = visit("own", "owner")
    refused = own.send("/new/create", **(ASKED | more))
    assert refused.status_code == 422
    alarm = re.search(r'role="alert" id="refused".*?</div>', refused.text, re.S)[0]
    said = " ".join([alarm, *re.findall(r'<p class="error" id="[^"]*-error">(.*?)</p>', refused.text)])
    assert why in unescape(said)
    for field in re.findall(r'href="#([^"]+)"', alarm):
        assert f'id="{field}"' in refused.text, field
        assert f'id="{field}-error"' in refused.text, field
    assert "light,14,1.0" in refused.text
    assert own.get("/api/v1/studies").json()["studies"] == []


def test_errors_of_a_step_are_said_all_at_once_beside_their_fields(visit):
    own = visit("own", "owner")
    wrong = {"sigma": "", "least": "O", "most": "1OO", "epsilon": ""}
    page = own.send("/new/create", **(ASKED | wrong)).text  # the step where the first of them is
    assert re.findall(r'<p class="error" id="([^"]*)-error">', page) == ["sigma", "least", "most"]
    assert page.count('aria-invalid="true"') == 3
    assert "3 things to mend" in page
    assert 'value="1OO"' in page
    assert "Did you mean 100?" in page
    assert 'name="epsilon" value=""' in page  # carried along


def test_the_forecast_is_of_three_kinds_of_candidates(visit):
    own = visit("own", "owner")
    page = own.send("/new/forecast", **ASKED).text
    rows = re.findall(
        r"<strong>([A-Z][a-z ]+)</strong>.*?([0-9,]+) to ([0-9,]+) measurements?, ([0-9,]+) in the middle", page
    )
    assert [name for name, *_ in rows] == ["Clear differences", "Usual", "Nearly equal"]
    found = [[int(one.replace(",", "")) for one in ends] for _, *ends in rows]
    assert all(low <= middle <= high for low, high, middle in found)
    clear, usual, equal = (middle for *_, middle in found)
    assert clear <= usual <= equal
    assert own.get("/api/v1/studies").json()["studies"] == []
    data = {"form_token": own.form_token("/verify"), **ASKED}
    part = own.http.post("/new/forecast", data=data, headers={"hx-request": "true"})
    assert "<html" not in part.text
    assert part.text.count("g-median") == 3
    part = own.http.post("/new/forecast", data=data | {"epsilon": "0"}, headers={"hx-request": "true"})
    assert "above 0" in part.text


def test_a_study_is_duplicated_renamed_noted_and_archived(server, visit):
    own = visit("own", "owner")
    more = {"use.2": "cost", "what": "taste", "unit": "points", "least": "0", "most": "10", "question": "top", "m": "2"}
    assert own.send("/new/create", **(ASKED | more)).status_code == 303
    page = own.get("/new?like=coffee").text
    fields = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page))
    uses = re.findall(r'<select id="(use.\d)".*?<option value="([^"]*)" selected', page, re.S)
    fields = {name: unescape(value) for name, value in fields.items() if name != "form_token"} | dict(uses)
    name = re.search(r'name="name" class="full" value="([^"]*)"', page)[1]
    assert name == "coffee 2"
    assert own.send("/new/create", **fields, name=name).status_code == 303
    first, second = (own.get(f"/api/v1/studies/{one}/terms").json()["configuration"] for one in ("coffee", "coffee 2"))
    assert {**first, "study_id": ""} == {**second, "study_id": ""}
    said = [own.get(f"/api/v1/studies/{one}/candidates").json()["described"] for one in ("coffee", "coffee 2")]
    assert said[0] == said[1] == {"columns": ["grams"], "cells": [["14", "16", "18"]]}
    assert own.send("/studies/coffee/rename", title="Coffee <2026>").status_code == 303
    assert own.send("/studies/coffee/note", note="roasted on Monday").status_code == 303
    page = own.get("/studies/coffee").text
    assert "<h1>Coffee &lt;2026&gt;</h1>" in page
    assert "roasted on Monday" in page
    assert "Coffee &lt;2026&gt;" in own.get("/").text
    assert own.send("/studies/coffee/archive", archived="yes").status_code == 303
    assert "Coffee &lt;2026&gt;" not in own.get("/").text
    assert "Coffee &lt;2026&gt;" in own.get("/?show=archived").text
    history = own.get("/studies/coffee/history").text
    assert all(words in history for words in ("renamed it to", "wrote a note", "archived it"))
    assert own.send("/studies/coffee/archive", archived="no").status_code == 303
    assert "Coffee &lt;2026&gt;" in own.get("/").text
    assert own.send("/studies/coffee/rename", title="").status_code == 422
    assert own.get("/new?like=absent").status_code == 404


def test_owners_withdraw_give_up_and_close(server, study, visit):
    own = visit("own", "owner")
    gone = own.send("/studies/coffee/withdraw", ids="a", independent="yes")
    assert "Withdrawn: a." in own.get(gone.headers["location"]).text
    refused = own.send("/studies/coffee/withdraw", ids="b")
    assert (refused.status_code, 'role="alert"' in refused.text) == (422, True)
    assert own.send("/studies/coffee/abandon", ids="b", independent="yes").status_code == 303
    assert own.get("/api/v1/studies/coffee").json()["progress"]["asked"] == 1
    for path in ("/interim", "/add"):
        assert own.send(f"/studies/coffee{path}", typed_ids="c").status_code == 422
    closed = own.send("/studies/coffee/close", reason="out of <beans>")
    page = own.get(closed.headers["location"]).text
    assert "out of &lt;beans&gt;" in page
    assert "Take measurements" not in page
    assert "Closed early" in own.get("/").text


def test_admins_make_tokens_that_are_shown_once_and_revoke_them(server, visit):
    first = visit()
    refused = first.send("/tokens", "/new", name="bob", role="viewer", days="5")
    assert (refused.status_code, "role admin" in refused.text) == (422, True)
    made = first.send("/tokens", "/new", name="root", role="admin", days="5")
    token = re.search(r"spk_[\w-]+", made.text)[0]
    assert first.get("/tokens").status_code == 303  # from now on everybody logs in
    assert first.send("/login", token=token).status_code == 303
    assert token not in first.get("/tokens").text
    made = first.send("/tokens", name="bob", role="measurer", days="5")
    bob, other = visit(), re.search(r"spk_[\w-]+", made.text)[0]
    assert bob.send("/login", token=other).status_code == 303
    assert first.send("/tokens", name="bob", role="measurer", days="5").status_code == 422
    assert first.send("/tokens", name="carl", role="measurer", days="1000").status_code == 422
    first.send("/tokens/revoke", name="bob")
    assert bob.get("/").status_code == 303
    assert first.send("/tokens/revoke", name="nobody").status_code == 422


@pytest.mark.parametrize(
    ("options", "noise", "words"),
    [
        ({}, "bounded:0:10", ("within 0.5 of the largest", "probability 0.05 at most", "between 0 and 10 (")),
        ({"question": "top", "m": 2}, "bernoulli", ("Which candidates are the 2 best?", "0 or 1 (")),
        ({}, "normal", ("nobody knows how far (",)),
    ],
)
def test_a_study_says_in_words_what_is_asked(server, visit, options, noise, words):
    own = visit("own", "owner")
    new = {"name": "coffee", "candidates": {"ids": [*"abc"]}, "epsilon": 0.5, "noise": noise, "options": options}
    header = {"authorization": f"Bearer {own.token}"}
    assert server.post("/api/v1/studies", json=new, headers=header).status_code == 201
    page = own.get("/studies/coffee").text
    for one in words:
        assert one in page
    assert ("Withdraw candidates" in own.get("/studies/coffee/settings").text) == (not options)


def test_what_columns_save_is_no_matter_of_nearly_equal_candidates(visit):
    own = visit("own", "owner")
    rows = "".join(f"r{number},{number},{number % 4}\n" for number in range(16))
    given = {"table": f"recipe,grams,price\n{rows}", **PREDICT, "epsilon": "0.5"}
    page = own.send("/new/forecast", **(ASKED | given)).text
    assert page.count("g-median") == 3
    assert "Without the columns." in page
    assert re.search(r"With the columns(: about| would save nothing).* each mean is within 0.5 of", page)
