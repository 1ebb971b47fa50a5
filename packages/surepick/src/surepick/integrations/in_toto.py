"""in-toto: a statement about the file of a certificate, for programs that keep and check attestations.

    {"_type": "https://in-toto.io/Statement/v1", "subject": [{"name": ..., "digest": {"sha256": ...}}],
     "predicateType": ..., "predicate": {...}}

The subject is the file by the SHA-256 of its bytes; the predicate is what the certificate states, without its
measurements. A signed one is the payload of a DSSE envelope. Both formats are those of the in-toto Attestation
Framework, version 1.
"""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from surepick.certificates.signature import laid_out, signing_key
from surepick.certificates.verify import read_certificate
from surepick.core.files import read_regular, write_whole
from surepick.errors import InvalidInput
from surepick.text import quoted

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://pypi.org/project/surepick/#certificate-v1"
PAYLOAD = "application/vnd.in-toto+json"
STATED = (
    *("format", "version", "made_by", "study", "study_id", "registration", "best_arm", "lists", "epsilon", "delta"),
    *("verdict", "promise", "reason", "certified_gap", "pulls", "cost", "minimize", "judge", "items", "assumptions"),
    *("checks", "algorithm", "policy"),
)


def statement(certificate: str | Path) -> dict[str, Any]:
    """What is said of the file of a certificate, as JSON data.

    Args:
        certificate: the file that `write_certificate` or `surepick certificate --out` wrote. It is not verified: that
            takes `verify_certificate`, and whoever trusts a statement trusts who signed it.

    Raises:
        InvalidInput: the file cannot be read, or is no certificate.
    """
    path, document = Path(certificate), read_certificate(certificate)
    if missing := [name for name in ("best_arm", "verdict", "promise", "arms") if name not in document]:
        raise InvalidInput(f"{path} is no whole certificate: it lacks {quoted(missing[0])}. Write it anew.")
    candidates = {name: document["arms"][name] for name in ("number", "sha256")}
    return {
        "_type": STATEMENT,
        "subject": [{"name": path.name, "digest": {"sha256": hashlib.sha256(read_regular(path)).hexdigest()}}],
        "predicateType": PREDICATE,
        "predicate": {**{name: document[name] for name in STATED if name in document}, "candidates": candidates},
    }


def envelope(stated: dict[str, Any], key: str | Path) -> dict[str, Any]:
    """A statement in a DSSE envelope, signed with a private Ed25519 key (`sign_certificate` says which files hold
    one); `keyid` is the SHA-256 of the public key's 32 bytes."""
    private = signing_key(key)
    payload = json.dumps(stated, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()
    public = private.public_key().public_bytes_raw()
    signature = {"keyid": hashlib.sha256(public).hexdigest(), "sig": _base64(private.sign(signed_bytes(payload)))}
    return {"payloadType": PAYLOAD, "payload": _base64(payload), "signatures": [signature]}


def signed_bytes(payload: bytes, kind: str = PAYLOAD) -> bytes:
    """What the signature of a DSSE envelope is of: its pre-authentication encoding."""
    return b"DSSEv1 %d %b %d %b" % (len(kind.encode()), kind.encode(), len(payload), payload)


def write_statement(certificate: str | Path, out: str | Path, *, sign: str | Path | None = None) -> Path:
    """Write the statement about the file of a certificate; with a key, the envelope that holds it."""
    stated, target = statement(certificate), Path(out)
    written = stated if sign is None else envelope(stated, sign)
    write_whole(target, f"{laid_out(written)}\n".encode(), what="the statement")
    return target


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
