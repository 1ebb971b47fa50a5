"""The registration code: one line that stands for what is asked, of which candidates, by which policy."""

import base64
import hashlib
import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from budgets import budget
from certified_files import POLICIES, cli, resealed, study_of
from hypothesis import given, settings, strategies as st

import surepick as sp
from surepick.certificates.document import certificate_document
from surepick.certificates.verify import verify_certificate
from surepick.policies.carried.elimination import CarriedElimination
from surepick.studies import database, registration
from surepick.studies.database import resume_stored_study
from surepick.studies.logs.memory import MemoryLog
from surepick.studies.registration import read_code

ARMS = sp.Arms([[1.0, 0.0], [0.0, 1.0], [0.6, 0.6]], [*"abc"], columns=["x", "y"])
ID = "the id of a study"
OTHER = "sp1-ogmv-dy6z-lrwc-gv4n-d4cy-y76l-3ayy"
registration_code = partial(registration.registration_code, study_id=ID)


def policy(arms: sp.Arms = ARMS, name: str = "certified-linear", **changed):
    noise = changed.pop("noise", sp.Bernoulli())
    return sp.make_policy(name, arms, **{"epsilon": 0.2, "delta": 0.05, "norm_bound": 2.0, **changed}, noise=noise)


def by_hand(document: dict) -> str:
    """The code as docs/certificates.md defines it, without this package."""

    def plain(value):
        if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
            return int(value)
        return value

    asked = {
        "arms": {name: document["arms"][name] for name in ("columns", "preparation", "sha256")},
        "minimize": document["minimize"],
        "policy": {name: plain(value) for name, value in document["policy"].items() if value is not None},
        "registration": 1,
        "study_id": document["study_id"],
    }
    if document.get("judge") == "as they come":
        asked["judge"] = document["judge"]
    text = json.dumps(asked, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    letters = base64.b32encode(hashlib.sha256(text.encode()).digest()).decode().lower()[:28]
    return "-".join(["sp1", *(letters[place : place + 4] for place in range(0, 28, 4))])


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("judge", ["closed rounds", "as they come"])
def test_it_is_as_the_document_defines_it(name, judge):
    if judge == "as they come" and name not in ("certified-linear", "certified-independent"):
        pytest.skip("it does not judge parts")
    chosen = sp.make_policy(name, ARMS, epsilon=0.2, delta=0.05, noise="bernoulli", **POLICIES[name])
    study = sp.Study(chosen, judge=judge)
    document = certificate_document(study)
    assert document["registration"] == study.registration == by_hand(document)
    assert verify_certificate(document, registered=study.registration).holds


def test_it_is_one_line_that_can_be_copied():
    code = registration_code(ARMS, policy())
    assert read_code(code) == code
    assert len(code) == 38
    assert 5 * registration.LETTERS >= 128  # bits


OTHERS = {
    "epsilon": {"epsilon": 0.1},
    "delta": {"delta": 0.01},
    "noise": {"noise": sp.SubGaussian(0.5)},
    "norm bound": {"norm_bound": 2.5},
    "where it is from": {"norm_source": "estimated"},
    "an option": {"largest_batch": 50},
    "its default": {"reserve": 0.1},
    "another policy": {"name": "linear-embedding"},
    "the last bit": {"epsilon": np.nextafter(0.2, 1.0).item()},
}


@pytest.mark.parametrize("changed", OTHERS.values(), ids=OTHERS)
def test_every_part_of_what_is_asked_is_in_it(changed):
    assert registration_code(ARMS, policy(**changed)) != registration_code(ARMS, policy())


CANDIDATES = {
    "an id": sp.Arms(ARMS.features, ["a", "b", "d"], columns=["x", "y"]),
    "their order": sp.Arms(ARMS.features[::-1], [*"cba"], columns=["x", "y"]),
    "a feature": sp.Arms(ARMS.features + np.array([[0.0, 1e-15]]), [*"abc"], columns=["x", "y"]),
    "a column": sp.Arms(ARMS.features, [*"abc"], columns=["x", "z"]),
    "their preparation": sp.Arms(ARMS.features, [*"abc"], columns=["x", "y"], preparation=["standardize"]),
}


@pytest.mark.parametrize("arms", CANDIDATES.values(), ids=CANDIDATES)
def test_every_part_of_the_candidates_is_in_it(arms):
    assert registration_code(arms, policy(arms)) != registration_code(ARMS, policy())
    assert registration_code(ARMS, policy(), minimize=True) != registration_code(ARMS, policy())


def test_equal_numbers_are_equal_however_they_are_written():
    assert registration_code(ARMS, policy(epsilon=1, norm_bound=2)) == registration_code(ARMS, policy(epsilon=1.0))
    narrow = sp.Arms(np.asarray(ARMS.features, np.float32).astype(np.float64), ARMS.ids)
    wide = sp.Arms(narrow.features.astype(np.float32), ARMS.ids)
    assert registration_code(wide, policy(wide)) == registration_code(narrow, policy(narrow))


def test_two_studies_of_one_question_have_two_codes(stored_at):
    made = [sp.Study(ARMS, policy()), sp.Study(ARMS, policy()), sp.Study(ARMS, policy(), study_id=ID)]
    made += [sp.create_study(stored_at, name, ARMS, policy()) for name in ("one", "two")]
    assert len({study.registration for study in made}) == len({study.study_id for study in made}) == 5
    documents = [certificate_document(study) for study in made]
    for document, study in zip(documents, made, strict=True):
        assert document["registration"] == study.registration
        assert verify_certificate(document, registered=study.registration).holds
    refused = verify_certificate(documents[0], registered=made[1].registration)
    assert "it is another study of the same question" in refused.lines[-1].words
    passed_off = resealed({**documents[0], "study_id": documents[1]["study_id"]})
    assert [line.what for line in verify_certificate(passed_off).lines if not line.holds] == ["the configuration"]


def test_a_study_that_is_resumed_keeps_its_id():
    log = MemoryLog()
    study = sp.Study(ARMS, policy(), log=log)
    assert sp.Study(ARMS, policy(), log=log).registration == study.registration


@pytest.mark.parametrize("text", ["", "x" * 101, 7, "a\ud800"])
def test_an_id_is_a_short_text(text):
    with pytest.raises(sp.InvalidInput, match=r"study_id|text"):
        sp.Study(ARMS, policy(), study_id=text)


def test_a_study_its_database_and_its_certificate_have_one_code(sqlite_url, monkeypatch):
    code = registration_code(ARMS, policy(), minimize=True)
    assert sp.Study(ARMS, policy(), minimize=True, study_id=ID).registration == code
    study = sp.create_study(sqlite_url, "paint", ARMS, policy(), minimize=True, study_id=ID)
    assert study.registration == code
    study.tell_totals(study.ids, study.ask().counts, study.ask().counts * 0.5)
    assert certificate_document(study, "paint")["registration"] == code
    assert [one.registration for one in sp.list_studies(sqlite_url)] == [code]

    def loaded(*_):
        raise AssertionError("status needs no features")

    monkeypatch.setattr(database, "stored_arms", loaded)
    assert resume_stored_study(sqlite_url, "paint").registration == code


def test_the_commands_show_it(sqlite_url, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("arms.csv").write_text("sku\na\nb\n")
    words = ["--arms", "arms.csv", "--id", "sku", "--noise", "bernoulli", "--epsilon", "0.4"]
    made = cli("create", sqlite_url, "coins", *words)
    code = sp.open_study(sqlite_url, "coins").registration
    assert f"Registration code: {code}. Keep it outside of the database" in made.stdout
    more = json.loads(cli("create", sqlite_url, "more", *words, "--format", "json").stdout)["registration"]
    assert more != code
    assert f"registration code {code}" in cli("status", sqlite_url, "coins").stdout
    assert json.loads(cli("status", sqlite_url, "coins", "--format", "json").stdout)["registration"] == code
    listed = json.loads(cli("list", sqlite_url, "--format", "json").stdout)["studies"]
    assert [one["registration"] for one in listed] == [code, more]
    assert f"Registration code: {code}" in cli("certificate", sqlite_url, "coins").stdout
    assert json.loads(cli("certificate", sqlite_url, "coins", "--format", "json").stdout)["registration"] == code
    cli("report", sqlite_url, "coins", "--out", "r.html", "--forecast-up-to", "0")
    assert code in Path("r.html").read_text(encoding="utf-8")
    Path("told.csv").write_text("cup,score\n" + "".join(f"{cup},{cup == 'b':d}\n" for cup in "abca"))
    words = ["told.csv", "--id", "cup", "--reward", "score", "--noise", "bernoulli", "--epsilon", "0.4"]
    ran = cli("run", *words, "--certificate", "c.json", "--format", "json")
    assert "registration" not in json.loads(ran.stdout)
    assert "Registration" not in cli("run", *words).stdout  # a rehearsal registers nothing
    assert json.loads(Path("c.json").read_text())["study_id"] == "rehearsal"
    assert cli("verify", "c.json").exit_code == 0


# --- verify


@pytest.fixture(scope="module")
def linear() -> dict:
    return certificate_document(study_of("certified-linear", most=2, **POLICIES["certified-linear"]), "paint")


def test_verify_refuses_another_code_and_names_both(linear, tmp_path):
    file = tmp_path / "c.json"
    file.write_text(json.dumps(linear))
    code, other = linear["registration"], OTHER
    result = cli("verify", str(file), "--registered", other)
    assert result.exit_code == 3
    assert "FAILS  the registration" in result.stdout
    assert code in result.stdout
    assert other in result.stdout
    answer = json.loads(cli("verify", str(file), "--registered", other, "--format", "json").stdout)
    assert (answer["holds"], answer["registration"], answer["registered"]) == (False, code, other)
    good = cli("verify", str(file), "--registered", code.upper().replace("-", " "))
    assert good.exit_code == 0
    assert "cannot tell whether epsilon" not in good.stdout
    assert "It cannot tell when this registration code was written down" in good.stdout
    assert "It cannot tell whether other studies of this question" in good.stdout
    plain = cli("verify", str(file))
    assert plain.exit_code == 0
    assert "It cannot tell whether epsilon, delta, noise and policy were fixed before the first result" in plain.stdout
    assert f"This file amounts to {code}." in plain.stdout
    answer = json.loads(cli("verify", str(file), "--format", "json").stdout)
    assert (answer["registration"], answer["registered"], len(answer["unchecked"])) == (code, None, 3)
    assert f"This file amounts to {code}.\n" in str(verify_certificate(file))


def test_the_code_that_stands_in_the_file_must_be_its_own(linear):
    for value in (OTHER, None, 5, linear["registration"].upper()):
        result = verify_certificate(resealed({**linear, "registration": value}), registered=linear["registration"])
        assert [line.what for line in result.lines if not line.holds] == ["the configuration"]


def test_a_file_that_cannot_be_computed_has_no_code(linear):
    spoilt = resealed({**linear, "arms": None})
    result = verify_certificate(spoilt, registered=linear["registration"])
    assert [line.what for line in result.lines if not line.holds][-1] == "the registration"
    assert result.registration is None
    assert "It cannot tell whether" in str(verify_certificate(spoilt))


def test_a_policy_with_parts_without_a_name_has_none():
    nameless = CarriedElimination(
        sp.Problem(ARMS.num_arms, epsilon=0.3, delta=0.1, noise=sp.Bernoulli()),
        sp.KernelEmbedding(ARMS.features, kernel=lambda left, right: left @ right.T, norm_bound=2.0),
    )
    study = sp.Study(ARMS, nameless)
    assert study.registration is None
    document = certificate_document(study)
    assert document["registration"] is None
    result = verify_certificate(document, policy=nameless)
    assert result.holds
    assert "has no code" in str(result)
    refused = verify_certificate(document, policy=nameless, registered=OTHER)
    assert [line.what for line in refused.lines if not line.holds] == ["the registration"]


# --- as somebody types it


@settings(max_examples=budget(100))
@given(st.lists(st.tuples(st.booleans(), st.sampled_from(["", "", " ", "-", "–", "\t"])), min_size=31, max_size=31))
def test_capitals_spaces_and_hyphens_do_not_matter(marks):
    letters = OTHER.replace("-", "")
    typed = "".join(
        (one.upper() if capital else one) + after for one, (capital, after) in zip(letters, marks, strict=True)
    )
    assert read_code(f"  {typed}\n") == OTHER


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "does not begin with sp1"),
        ("sp2-2f7u-cv2q-ryje-shhc-53dg-s22h-n4pp", "does not begin with sp1"),
        ("sp1-2f7u-cv2q-ryje-shhc-53dg-s22h-n4p", "27 letters and digits after sp1"),
        ("sp1-2f7u-cv2q-ryje-shhc-53dg-s22h-n4ppp", "29 letters"),
        ("sp1-2f7u-cv2q-ryje-shhc-53dg-s22h-n4p0", "no code has '0' in it"),
        ("sp1-2f7u-cv2q-ryje-shhc-53dg-s22h-n4p\x1b", "no code has"),
        ("x" * 10_000, "does not begin"),
    ],
)
def test_what_is_no_code_is_bad_input(text, words, linear):
    with pytest.raises(sp.InvalidInput, match=words) as error:
        verify_certificate(linear, registered=text)
    assert len(str(error.value)) < 300
    assert str(error.value).isprintable()
