"""Signed certificates: whose they are, and that no other file passes for one."""

import base64
import importlib.util
import json
import subprocess
from pathlib import Path

import pytest
from certified_files import POLICIES, cli, resealed, study_of
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import surepick as sp
from surepick.certificates import signature
from surepick.certificates.document import certificate_document
from surepick.certificates.signature import signed_bytes
from surepick.certificates.verify import verify_certificate

PEM, OPENSSH = serialization.PrivateFormat.PKCS8, serialization.PrivateFormat.OpenSSH


def written(path: Path, key, form=PEM, password: bytes | None = None) -> Path:
    hidden = serialization.NoEncryption() if password is None else serialization.BestAvailableEncryption(password)
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, hidden))
    return path


def public(path: Path, key, encoding=serialization.Encoding.PEM) -> Path:
    openssh = encoding is serialization.Encoding.OpenSSH
    form = serialization.PublicFormat.OpenSSH if openssh else serialization.PublicFormat.SubjectPublicKeyInfo
    path.write_bytes(key.public_key().public_bytes(encoding, form))
    return path


@pytest.fixture
def keys(tmp_path) -> tuple[Path, Path, Path]:
    """(private, public, somebody else's public)."""
    key, other = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    return (
        written(tmp_path / "key.pem", key),
        public(tmp_path / "key.pub", key),
        public(tmp_path / "other.pub", other),
    )


@pytest.fixture(scope="module")
def document() -> dict:
    return certificate_document(study_of("certified-linear", most=2, **POLICIES["certified-linear"]), "paint")


def failing(result) -> list[str]:
    return [line.what for line in result.lines if not line.holds]


def test_a_signed_certificate_is_verified_with_its_key(document, keys):
    private, own, other = keys
    signed = sp.sign_certificate(document, private)
    assert verify_certificate(signed, public_key=own).holds
    assert failing(verify_certificate(signed, public_key=other)) == ["the signature"]
    assert failing(verify_certificate(document, public_key=own)) == ["the signature"]
    alone = verify_certificate(signed)
    assert alone.holds
    assert "not checked against a key that you trust" in str(alone)
    assert signed["signature"]["public_key"] in str(alone)
    assert "the signature" not in str(verify_certificate(document))


def test_nothing_can_be_altered_under_a_signature(document, keys):
    private, own, _ = keys
    signed = sp.sign_certificate(document, private)
    for name in signed:
        if name in ("signature", "sha256"):
            continue
        spoilt = resealed({**signed, name: "x"})
        assert "the signature" in failing(verify_certificate(spoilt, public_key=own, most_plans=0)), name
        assert "the signature" in failing(verify_certificate(spoilt, most_plans=0)), name
    renamed = resealed({**signed, "study": "ink"})
    assert failing(verify_certificate(renamed)) == ["the signature"]


def test_a_signature_by_another_key_is_another_signature(document, keys, tmp_path):
    private, own, _ = keys
    thief = written(tmp_path / "thief.pem", Ed25519PrivateKey.generate())
    stolen = sp.sign_certificate(sp.sign_certificate(document, private), thief)
    assert verify_certificate(stolen).holds  # it says by whom, and that nobody checked that
    assert failing(verify_certificate(stolen, public_key=own)) == ["the signature"]
    signed = sp.sign_certificate(document, private)
    mixed = {**stolen["signature"], "public_key": signed["signature"]["public_key"]}
    assert failing(verify_certificate(resealed({**signed, "signature": mixed}), public_key=own)) == ["the signature"]


def test_what_is_no_signature_fails(document, keys):
    private, own, _ = keys
    signed = sp.sign_certificate(document, private)
    good = signed["signature"]
    bad = [
        *(5, "x", [], {}, {**good, "more": 1}, {**good, "algorithm": "RSA"}, {**good, "value": None}),
        *({**good, "value": good["value"][:-4]}, {**good, "public_key": "é" * 44}, {**good, "value": "A" * 86 + "=="}),
        {**good, "public_key": base64.b64encode(b"\xff" * 32).decode()},
        {**good, "public_key": good["public_key"] + "\n"},
    ]
    for one in bad:
        spoilt = resealed({**signed, "signature": one})
        assert failing(verify_certificate(spoilt, most_plans=0)) == ["the signature"], one
        assert failing(verify_certificate(spoilt, public_key=own, most_plans=0)) == ["the signature"], one


def test_an_altered_file_is_not_signed(document, keys):
    with pytest.raises(sp.InvalidInput, match="altered"):
        sp.sign_certificate({**document, "study": "ink"}, keys[0])


def test_openssl_and_ssh_write_keys_that_fit(document, tmp_path):
    key = Ed25519PrivateKey.generate()
    ssh = written(tmp_path / "id_ed25519", key, OPENSSH)
    line = public(tmp_path / "id_ed25519.pub", key, serialization.Encoding.OpenSSH)
    line.write_bytes(line.read_bytes() + b" ann@lab\n")
    assert verify_certificate(sp.sign_certificate(document, ssh), public_key=line).holds
    content, value = tmp_path / "content", tmp_path / "value"
    signed = sp.sign_certificate(document, ssh)
    content.write_bytes(signed_bytes(signed))
    value.write_bytes(base64.b64decode(signed["signature"]["value"]))
    pem = public(tmp_path / "key.pub", key)
    words = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", pem, "-rawin", "-in", content, "-sigfile", value]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no openssl here to compare with")
    assert "Verified Successfully" in done.stdout, done.stderr


def test_files_that_are_no_such_key_get_a_sentence(document, keys, tmp_path):
    private, own, _ = keys
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "large").write_bytes(b"x" * 200_000)
    curve = ec.generate_private_key(ec.SECP256R1())
    locked = written(tmp_path / "locked.pem", Ed25519PrivateKey.generate(), password=b"secret")
    for path, words in (
        (locked, "has a passphrase"),
        (own, "holds no private key"),
        (tmp_path / "empty", "holds no private key"),
        (tmp_path / "large", "larger than"),
        (tmp_path / "absent", "cannot be read"),
        (tmp_path, "cannot be read"),
        (written(tmp_path / "curve.pem", curve), "not for Ed25519"),
    ):
        with pytest.raises(sp.InvalidInput, match=words):
            sp.sign_certificate(document, path)
    for path, words in (
        (private, "is a private key"),
        (tmp_path / "empty", "holds no public key"),
        (public(tmp_path / "curve.pub", curve), "not for Ed25519"),
    ):
        with pytest.raises(sp.InvalidInput, match=words):
            verify_certificate(document, public_key=path)


def test_without_cryptography(document, keys, monkeypatch):
    private, own, _ = keys
    signed = sp.sign_certificate(document, private)
    found = importlib.util.find_spec
    monkeypatch.setattr(
        signature.importlib.util, "find_spec", lambda name: None if name == "cryptography" else found(name)
    )
    with pytest.raises(sp.InvalidInput, match=r'pip install "surepick\[sign\]"'):
        sp.sign_certificate(document, private)
    with pytest.raises(sp.InvalidInput, match=r'pip install "surepick\[sign\]"'):
        verify_certificate(signed, public_key=own)
    alone = verify_certificate(signed)
    assert alone.holds
    assert "not checked, because cryptography is absent" in str(alone)
    assert verify_certificate(document).holds


def test_the_commands_sign_and_check(sqlite_url, keys, tmp_path):
    private, own, other = (str(path) for path in keys)
    arms = sp.Arms(ids=["a", "b"])
    policy = sp.make_policy("certified-independent", arms, epsilon=0.5, delta=0.2, noise=sp.Bernoulli())
    study = sp.create_study(sqlite_url, "coins", arms, policy)
    file = str(tmp_path / "c.json")
    made = cli("certificate", sqlite_url, "coins", "--sign", private, "--out", file)
    assert made.exit_code == 3  # not certified yet
    assert cli("verify", file, "--public-key", own).exit_code == 0
    assert cli("verify", file, "--public-key", other).exit_code == 3
    printed = cli("certificate", sqlite_url, "coins", "--sign", private, "--format", "json").stdout
    assert json.loads(printed) == json.loads(Path(file).read_text())
    assert isinstance(cli("certificate", sqlite_url, "coins", "--sign", private).exception, sp.InvalidInput)
    assert isinstance(cli("certificate", sqlite_url, "coins", "--sign", own, "--out", file).exception, sp.InvalidInput)
    sp.write_certificate(study, file, sign=private)
    assert verify_certificate(file, public_key=own).holds
