"""Signatures of certificates: Ed25519, so that others can tell who vouches for the file.

    "signature": {"algorithm": "Ed25519", "public_key": ..., "value": ...}       base64 of 32 and of 64 bytes

The signature is of the certificate's canonical form without `signature` and `sha256`; `sha256` is then of all.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from surepick.core.files import as_path
from surepick.core.plans import Plan
from surepick.core.records import encode, first_difference
from surepick.core.special_functions import scipy
from surepick.errors import InvalidInput
from surepick.policies.base import Policy, stopped
from surepick.studies.logs.hash_chain import canonical
from surepick.studies.replay import Closed
from surepick.text import quoted

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


# --- How this process rounds: two that round alike have the same fingerprint.


def arithmetic() -> str:
    """How this process rounds, in 16 hexadecimal digits: equal programs with equal digits may give equal bits.
    Processors, numbers of threads and versions of the libraries add in different orders; a solver that iterates turns
    differences in the last bit into another design as good as the first. The sizes are such that more threads show."""
    grid = np.arange(1, 1 + 300 * 100, dtype=np.float64).reshape(300, 100)
    wide = np.sin(grid**1.1)
    matrix = np.ascontiguousarray(wide[:, :24])
    gram, large = matrix.T @ matrix + np.eye(24), wide @ wide.T + np.eye(300)
    parts = [
        gram,
        large,
        np.linalg.cholesky(gram),
        np.linalg.cholesky(large),
        scipy.linalg.solve(gram, matrix[:5].T, assume_a="pos"),
        *scipy.linalg.eigh(gram),
        *scipy.linalg.svd(matrix[:60], full_matrices=False),
        *scipy.linalg.svd(wide, full_matrices=False),
        np.exp(matrix),
        np.log1p(np.abs(matrix)).sum(axis=0),
        np.einsum("ij,ij->i", matrix, matrix),
        np.sqrt(np.sum(matrix * matrix, axis=1)),
    ]
    found = hashlib.sha256(f"numpy {np.__version__} scipy {scipy.__version__}".encode())
    for part in parts:
        found.update(np.ascontiguousarray(part).tobytes())
    return found.hexdigest()[:16]


# --- The digest of a certificate, the bytes that a signature is of, and how its file is laid out.


def sealed(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with the digest of all the rest, at the end."""
    rest = without_fields(document, "sha256")
    return {**rest, "sha256": digest(rest)}


def digest(document: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical form of a certificate without `sha256`; the signature is part of it."""
    return hashlib.sha256(canonical(without_fields(document, "sha256"))).hexdigest()


def signed_bytes(document: Mapping[str, Any]) -> bytes:
    """What a signature is of: the canonical form of a certificate without `sha256` and `signature`."""
    return canonical(without_fields(document, "sha256", "signature"))


def without_fields(document: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """The other fields."""
    return {name: value for name, value in document.items() if name not in names}


def laid_out(value: Any, indent: str = "") -> str:
    """JSON with a field a line, and lists of plain values on one line each."""
    deeper = indent + " "
    if isinstance(value, dict) and value:
        rows = [f"{json.dumps(name, ensure_ascii=False)}: {laid_out(item, deeper)}" for name, item in value.items()]
        return "{\n" + ",\n".join(deeper + row for row in rows) + f"\n{indent}}}"
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        return "[\n" + ",\n".join(deeper + laid_out(item, deeper) for item in value) + f"\n{indent}]"
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


ALGORITHM = "Ed25519"
LARGEST_KEY = 100_000  # bytes of a file
MAKE_ONE = "Make a pair of keys with `openssl genpkey -algorithm ed25519 -out key.pem` (docs/certificates.md)."


def sign_certificate(document: Mapping[str, Any], key: str | Path) -> dict[str, Any]:
    """A certificate with a signature, in place of any that it had.

    Args:
        document: the certificate as JSON data.
        key: a file with a private Ed25519 key without a passphrase, in PEM (PKCS 8) or as OpenSSH writes it.

    Raises:
        InvalidInput: the key cannot be read, the certificate is none or was altered, or the package
            cryptography is absent.
    """
    private = signing_key(key)
    if not isinstance(document, Mapping):
        raise InvalidInput(f"{quoted(document)} is a {type(document).__name__}; give the certificate as JSON data.")
    if "signature" not in document or document.get("sha256") != digest(document):
        raise InvalidInput(
            "this certificate cannot be signed: it was altered since it was written. Write it "
            "anew: surepick certificate URL NAME --sign KEYFILE --out FILE."
        )
    stated = {
        "algorithm": ALGORITHM,
        "public_key": _text(private.public_key().public_bytes_raw()),
        "value": _text(private.sign(signed_bytes(document))),
    }
    return sealed({**document, "signature": stated})


def signing_key(path: str | Path) -> Ed25519PrivateKey:
    """The private key in a file."""
    check_extra()
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 (an extra)
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # noqa: PLC0415

    data = _read(path)
    openssh = b"BEGIN OPENSSH" in data
    load = serialization.load_ssh_private_key if openssh else serialization.load_pem_private_key
    try:
        key = load(data, password=None)
    except TypeError as error:  # how cryptography says that it needs one
        again = "ssh-keygen -p -f KEYFILE" if openssh else "openssl pkey -in KEYFILE -out plain.pem"
        raise InvalidInput(
            f"the key in {path} has a passphrase, and this command never asks for one. Sign with a copy without it "
            f"that only you can read: {again}."
        ) from error
    except Exception as error:  # the package raises what the format does
        raise InvalidInput(f"{path} holds no private key in PEM or OpenSSH form. {MAKE_ONE}") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise InvalidInput(
            f"the key in {path} is not for Ed25519, the only signatures that certificates have. {MAKE_ONE}"
        )
    return key


def trusted_key(path: str | Path) -> bytes:
    """The public key in a file, 32 bytes."""
    check_extra()
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 (an extra)
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415

    data = _read(path)
    if b"PRIVATE KEY" in data:
        raise InvalidInput(
            f"{path} is a private key, which stays with the one who signs. Give the public one: "
            "`openssl pkey -in KEYFILE -pubout`."
        )
    ssh = data.lstrip().startswith(b"ssh-")
    load = serialization.load_ssh_public_key if ssh else serialization.load_pem_public_key
    try:
        key = load(data.strip() if ssh else data)
    except Exception as error:  # the package raises what the format does
        raise InvalidInput(f"{path} holds no public key in PEM or OpenSSH form.") from error
    if not isinstance(key, Ed25519PublicKey):
        raise InvalidInput(f"the key in {path} is not for Ed25519, the only signatures that certificates have.")
    return key.public_bytes_raw()


def check_signature(document: Mapping[str, Any], trusted: bytes | None) -> str:
    """What a certificate's signature says; "" where there is none and none is wanted."""
    stated = document.get("signature")
    if stated is None:
        if trusted is not None:
            raise ValueError(f"the file is not signed, and a signature by the key {_text(trusted)} is asked for")
        return ""
    key, value = _parts(stated)
    shown = _text(key)
    if trusted is not None and key != trusted:
        raise ValueError(f"the file is signed by the key {shown}, and you asked for {_text(trusted)}")
    if not has_cryptography():
        return (
            f"by the key {shown}, says the file; not checked, because cryptography is absent: "
            'pip install "surepick[sign]"'
        )
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 (an extra)
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415

    try:
        Ed25519PublicKey.from_public_bytes(key).verify(value, signed_bytes(document))
    except (InvalidSignature, ValueError):  # ValueError: the bytes are no point of the curve
        raise ValueError(f"the signature by the key {shown} is not of what stands in this file") from None
    if trusted is not None:
        return f"by the key that you gave, {shown}"
    return f"by the key {shown}, which the file itself names; not checked against a key that you trust (--public-key)"


def has_cryptography() -> bool:
    """Whether the package for signatures is there."""
    return importlib.util.find_spec("cryptography") is not None


def check_extra() -> None:
    """Refuse to go on without what signatures need."""
    if not has_cryptography():
        raise InvalidInput('signatures need cryptography, which is absent: pip install "surepick[sign]".')


def _parts(stated: object) -> tuple[bytes, bytes]:
    """(public key, signature) as bytes."""
    wrong = ValueError(f"a signature has algorithm {ALGORITHM!r}, public_key and value, the last two in base64")
    if not isinstance(stated, dict) or set(stated) != {"algorithm", "public_key", "value"}:
        raise wrong
    if stated["algorithm"] != ALGORITHM:
        raise wrong
    key, value = _bytes(stated["public_key"]), _bytes(stated["value"])
    if key is None or value is None or len(key) != 32 or len(value) != 64:
        raise wrong
    return key, value


def _bytes(text: object) -> bytes | None:
    """The bytes; None where the text is not exactly their base64."""
    if not isinstance(text, str):
        return None
    try:
        found = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    return found if _text(found) == text else None


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _read(path: str | Path) -> bytes:
    path = as_path(path, meaning="the key is in a file.")
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_KEY + 1)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error
    if len(data) > LARGEST_KEY:
        raise InvalidInput(f"{path} is larger than {LARGEST_KEY:,} bytes, so it is no key.")
    return data


# --- Plans of a certificate that are computed again: how many, and whether they come out equal.

QUICK_PLANS = 50
LARGEST_QUICK_DESIGN = 30_000


class Repeated:
    """Plans computed again while a study is replayed."""

    def __init__(self, policy: Policy[Any], most: int) -> None:
        self.most = most
        self.equal = 0
        self._policy = policy

    def watch(self, look: Closed, state: Any) -> None:
        """Count the plan if all before it and it itself come out equal."""
        if look.number == self.equal + 1 <= self.most and (look.deviations.alone or not stopped(self._policy, state)):
            self.equal += look.deviations.alone or not plan_difference(look.plan, self._policy.ask(state))


def plan_difference(stored: Plan, again: Plan) -> str:
    """Where two plans differ, "" where they agree: numbers within 1e-9, all else exactly."""
    return first_difference(encode(stored), encode(again)).lstrip(".")


def quick_plans(policy: Policy[Any], number: int) -> int:
    """How many plans can be computed again in seconds: all, the first 50, or none where a search may take seconds."""
    embedding, features = policy.traits.embedding, policy.traits.features
    size = 0 if features is None else int(features.size)
    if embedding is not None:
        size = 0 if embedding.traits.family == "independent" else int(policy.problem.num_arms * embedding.max_dim)
    if size == 0:
        return number
    return min(number, QUICK_PLANS) if size <= LARGEST_QUICK_DESIGN else 0
