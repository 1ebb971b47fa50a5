"""Identities: what people are called where they log in. An admin enters each; none is made by logging in."""

from __future__ import annotations

import re

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from surepick.errors import InvalidInput
from surepick.serve.access import schema
from surepick.text import quoted

SUBJECT = "://"  # is in ISSUER#SUBJECT, and in nothing that a proxy or an address of e-mail may say
IDENTITY = re.compile(r"[!-~](?:[ -~]{0,598}[!-~])?")


def read_identity(text: str) -> str:
    """An identity as it is stored and compared: an address of e-mail in small letters, anything else as it is.

    Args:
        text: an address of e-mail, ISSUER#SUBJECT of an identity provider, or what a proxy writes into its header.

    Raises:
        InvalidInput: it can be none.
    """
    if not isinstance(text, str) or not IDENTITY.fullmatch(text):
        raise InvalidInput(
            f"an identity is {quoted(text)}; give an address of e-mail, ISSUER#SUBJECT, or the name that the proxy "
            "gives: visible ASCII and inner spaces, at most 600 characters."
        )
    return text.lower() if "@" in text and SUBJECT not in text else text


def bind(connection: Connection, identity: str, *, token: int, made_by: str, now: float) -> None:
    """Let an identity log in under a token's name. It leaves a token that is worth nothing any more.

    Args:
        connection: a transaction that writes.
        identity: as `read_identity` gives it.
        token: number of the token.
        made_by: who decides it.
        now: seconds since 1970 (UTC).

    Raises:
        InvalidInput: it logs in under another name.
        IntegrityError: somebody else bound it at this moment.
    """
    own, tokens = schema.identity.c, schema.token.c
    row = {"token": token, "made_by": made_by, "made_at": now}
    found = connection.execute(
        sa.select(own.token, tokens.name, tokens.revoked_at, tokens.expires_at)
        .join(schema.token, tokens.id == own.token)
        .where(own.identity == identity)
    ).first()
    if found is None:
        connection.execute(sa.insert(schema.identity), [{"identity": identity, **row}])
        return
    if found.revoked_at is None and found.expires_at > now and found.token != token:
        raise InvalidInput(
            f"{quoted(identity)} logs in as {quoted(found.name)} already; revoke that token first, or take another "
            "identity."
        )
    connection.execute(sa.update(schema.identity).where(own.identity == identity).values(**row))
