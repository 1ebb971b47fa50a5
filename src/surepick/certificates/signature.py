"""Signatures of certificates: Ed25519, so that others can tell who vouches for the file.

    "signature": {"algorithm": "Ed25519", "public_key": ..., "value": ...}       base64 of 32 and of 64 bytes

The signature is of the certificate's canonical form without `signature` and `sha256`; `sha256` is then of all.
"""

from __future__ import annotations

import base64
import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surepick.certificates.seal import digest, sealed, signed_bytes, without
from surepick.core.files import as_path
from surepick.errors import InvalidInput
from surepick.text import quoted

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

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
    """The private key in a file.

    Raises:
        InvalidInput: there is none, or cryptography is absent.
    """
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
    """The public key in a file, 32 bytes.

    Raises:
        InvalidInput: there is none, or cryptography is absent.
    """
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
    """What a certificate's signature says; "" where there is none and none is wanted.

    Args:
        document: the certificate as JSON data.
        trusted: the public key that must have signed; None: any.

    Raises:
        ValueError: there is no signature though one is wanted, it is by another key, or it is not of this file.
    """
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
    if not _is_valid(key, value, signed_bytes(without(document))):
        raise ValueError(f"the signature by the key {shown} is not of what stands in this file")
    if trusted is not None:
        return f"by the key that you gave, {shown}"
    return f"by the key {shown}, which the file itself names; not checked against a key that you trust (--public-key)"


def has_cryptography() -> bool:
    """Whether the package for signatures is there."""
    return importlib.util.find_spec("cryptography") is not None


def check_extra() -> None:
    """Refuse to go on without what signatures need.

    Raises:
        InvalidInput: it is absent; the pip command is named.
    """
    if not has_cryptography():
        raise InvalidInput('signatures need cryptography, which is absent: pip install "surepick[sign]".')


def _is_valid(key: bytes, value: bytes, content: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 (an extra)
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey  # noqa: PLC0415

    try:
        Ed25519PublicKey.from_public_bytes(key).verify(value, content)
    except (InvalidSignature, ValueError):  # ValueError: the bytes are no point of the curve
        return False
    return True


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
