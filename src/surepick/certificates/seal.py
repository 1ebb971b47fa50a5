"""The digest of a certificate, the bytes that a signature is of, and how its file is laid out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from surepick.studies.logs.hash_chain import canonical


def sealed(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with the digest of all the rest, at the end."""
    rest = without(document, "sha256")
    return {**rest, "sha256": digest(rest)}


def digest(document: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical form of a certificate without `sha256`; the signature is part of it."""
    return hashlib.sha256(canonical(without(document, "sha256"))).hexdigest()


def signed_bytes(document: Mapping[str, Any]) -> bytes:
    """What a signature is of: the canonical form of a certificate without `sha256` and `signature`."""
    return canonical(without(document, "sha256", "signature"))


def without(document: Mapping[str, Any], *names: str) -> dict[str, Any]:
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
