"""A certificate in the formats of other programs: an in-toto statement, and results of every-eval-ever.

The schema of every-eval-ever is the one of its package, version 0.3.0 (tests/fixtures/every_eval_ever).
"""

import base64
import hashlib
import json
from pathlib import Path

import jsonschema
import pytest
from command_line import answered, surepick
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import surepick as sp
from surepick.certificates.document import certificate_document
from surepick.errors import InvalidInput
from surepick.integrations import every_eval_ever_results, in_toto

SCHEMA = json.loads((Path(__file__).parents[1] / "fixtures/every_eval_ever/eval.schema.json").read_text("utf-8"))
STATEMENT = {  # of the in-toto Attestation Framework, version 1
    "type": "object",
    "required": ["_type", "subject", "predicateType", "predicate"],
    "additionalProperties": False,
    "properties": {
        "_type": {"const": "https://in-toto.io/Statement/v1"},
        "subject": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["digest"],
                "properties": {
                    "name": {"type": "string", "minLength": 1},
                    "digest": {
                        "type": "object",
                        "minProperties": 1,
                        "additionalProperties": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
                    },
                },
            },
        },
        "predicateType": {"type": "string", "pattern": "^[a-z][a-z0-9+.-]*:"},
        "predicate": {"type": "object", "minProperties": 1},
    },
}


def studied(noise="bernoulli", *, minimize=False, ids=("lab/small", "lab/large", "plain")) -> sp.Study:
    policy = sp.make_policy("certified-independent", sp.Arms(ids=list(ids)), epsilon=0.2, delta=0.05, noise=noise)
    study = sp.Study(policy, minimize=minimize)
    study.run(lambda asked: [float(name == "lab/large") for name in asked])
    return study


@pytest.fixture(scope="module")
def study() -> sp.Study:
    return studied()


@pytest.fixture(scope="module")
def file(study, tmp_path_factory) -> Path:
    return sp.write_certificate(study, tmp_path_factory.mktemp("certificate") / "c.json", name="a study, of labs")


def test_a_statement_is_one_and_names_the_bytes_of_the_file(file):
    stated = in_toto.statement(file)
    jsonschema.validate(stated, STATEMENT)
    assert stated["subject"] == [
        {"name": "c.json", "digest": {"sha256": hashlib.sha256(file.read_bytes()).hexdigest()}}
    ]


def test_a_statement_says_what_the_certificate_says_and_no_measurement(file, study):
    predicate, document = in_toto.statement(file)["predicate"], json.loads(file.read_text())
    assert {name: predicate[name] for name in predicate.keys() - {"candidates"}}.items() <= document.items()
    assert (predicate["best_arm"], predicate["registration"]) == ("lab/large", study.registration)
    assert predicate["candidates"] == {"number": 3, "sha256": document["arms"]["sha256"]}
    assert not {"rounds", "intervals"} & predicate.keys()


def test_another_file_has_another_digest(file, tmp_path):
    (tmp_path / "c.json").write_bytes(file.read_bytes() + b"\n")
    assert in_toto.statement(tmp_path / "c.json")["subject"] != in_toto.statement(file)["subject"]


@pytest.mark.parametrize("text", ["{}", '{"format": 1, "rounds": [], "sha256": ""}', "no json"])
def test_what_is_no_certificate_has_no_statement(text, tmp_path):
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(InvalidInput):
        in_toto.statement(tmp_path / "c.json")


def test_a_signed_statement_is_in_an_envelope_that_its_key_opens(file, tmp_path):
    key = Ed25519PrivateKey.generate()
    form, hidden = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (tmp_path / "key.pem").write_bytes(key.private_bytes(serialization.Encoding.PEM, form, hidden))
    signed = json.loads(in_toto.write_statement(file, tmp_path / "s.json", sign=tmp_path / "key.pem").read_text())
    payload = base64.b64decode(signed["payload"])
    (signature,) = signed["signatures"]
    assert json.loads(payload) == in_toto.statement(file)
    assert signed["payloadType"] == "application/vnd.in-toto+json"
    covered = b"DSSEv1 28 application/vnd.in-toto+json " + str(len(payload)).encode() + b" " + payload
    key.public_key().verify(base64.b64decode(signature["sig"]), covered)
    with pytest.raises(InvalidSignature):
        key.public_key().verify(base64.b64decode(signature["sig"]), covered.replace(b"large", b"small"))
    assert signature["keyid"] == hashlib.sha256(key.public_key().public_bytes_raw()).hexdigest()


@pytest.mark.parametrize(
    ("noise", "minimize", "least", "most"),
    [
        ("bernoulli", False, 0.0, 1.0),
        ("bounded:-1:1", True, -1.0, 1.0),
        ("subgaussian:0.5", False, "-Infinity", "Infinity"),
    ],
)
def test_results_keep_the_schema_of_every_eval_ever(noise, minimize, least, most):
    document = certificate_document(studied(noise, minimize=minimize), "a study, of labs")
    found = every_eval_ever_results.results(document, seconds=1_795_000_000, organization="We")
    for data in found.values():
        jsonschema.validate(data, SCHEMA)
    metrics = [data["evaluation_results"][0]["metric_config"] for data in found.values()]
    assert {(one["min_score"], one["max_score"], one["lower_is_better"]) for one in metrics} == {
        (least, most, minimize)
    }
    scores = {data["model_info"]["id"]: data["evaluation_results"][0]["score_details"] for data in found.values()}
    listed = document["candidates"]
    for name, pulls, mean in zip(document["arms"]["ids"], listed["pulls"], listed["means"], strict=True):
        assert (scores[name]["score"], scores[name]["uncertainty"]["num_samples"]) == (mean, pulls)
    assert {one["details"]["promise"] for one in scores.values()} == {document["promise"]}


def test_a_field_that_the_schema_does_not_have_would_be_noticed(study):
    (data, *_) = every_eval_ever_results.results(certificate_document(study), seconds=1).values()
    for spoiled in ({**data, "verdict": "certified"}, {**data, "model_info": {}}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(spoiled, SCHEMA)


def test_a_candidate_that_nobody_measured_has_no_score():
    policy = sp.make_policy(
        "certified-independent", sp.Arms(ids=["a", "b"]), epsilon=0.2, delta=0.05, noise="bernoulli"
    )
    assert every_eval_ever_results.results(certificate_document(sp.Study(policy)), seconds=1) == {}


def test_a_long_list_is_refused_in_a_sentence(study):
    document = certificate_document(study) | {"candidates": None}
    with pytest.raises(InvalidInput, match="more than 10,000 candidates"):
        every_eval_ever_results.results(document, seconds=1)


@pytest.mark.usefixtures("sqlite_url")  # closes what is opened
def test_the_command_writes_all_of_them(tmp_path):
    url = f"sqlite:///{tmp_path}/lab.db"
    policy = sp.make_policy(
        "certified-independent", sp.Arms(ids=["a/x", "b"]), epsilon=0.5, delta=0.05, noise="bernoulli"
    )
    sp.create_study(url, "s", policy).run(lambda ids: [float(name == "b") for name in ids])
    words = ["certificate", url, "s", "--out", tmp_path / "c.json", "--in-toto", tmp_path / "s.json"]
    code, output, errors = surepick(*words, "--every-eval-ever", tmp_path / "data", "--organization", "We")
    assert (code, errors) == (0, "")
    assert json.loads((tmp_path / "s.json").read_text()) == in_toto.statement(tmp_path / "c.json")
    files = sorted((tmp_path / "data").rglob("*.json"))
    assert [path.relative_to(tmp_path / "data").parts[:-1] for path in files] == [
        ("s", "a", "x"),
        ("s", "unknown", "b"),
    ]
    for path in files:
        data = json.loads(path.read_text())
        jsonschema.validate(data, SCHEMA)
        assert data["source_metadata"]["source_organization_name"] == "We"
    assert "2 files of results" in output


def test_a_statement_without_a_file_is_refused(tmp_path):
    code, said = answered(["certificate", f"sqlite:///{tmp_path}/lab.db", "s", "--in-toto", str(tmp_path / "s.json")])
    assert (code, "add --out FILE" in " ".join(said.split())) == (2, True)
