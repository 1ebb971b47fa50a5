"""What a provider says of a person: the ID token, once its signature and its claims are known to be right."""

from __future__ import annotations

import re
from typing import Any

from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

from surepick.core.arrays import record
from surepick.serve.openid.errors import NotBelieved
from surepick.studies.logs.leases import system_clock

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")  # of a private key
KINDS = ("RSA", "EC")  # of keys: a key that both sides have would be one that everybody has
LEEWAY = 60  # seconds that clocks may differ by
SUBJECT = re.compile(r"[!-~](?:[ -~]{0,253}[!-~])?")
ADDRESS = re.compile(r"[!-?A-~]+@[!-?A-~]+")


@record
class Expected:
    """What has to be in an ID token.

    Args:
        issuer: who says it.
        client: for whom.
        nonce: in which login.
        access_token: beside which access token; None: there was none.
    """

    issuer: str
    client: str
    nonce: str
    access_token: str | None


def claims_of(id_token: object, keys: object, expected: Expected) -> dict[str, Any]:
    """The claims of an ID token.

    Args:
        id_token: as it came.
        keys: the provider's document of them.
        expected: what has to be in it.

    Raises:
        NotBelieved: it is not signed by one of the keys, or is not for us, or not for this login, or not from now.
    """
    try:
        known = keys["keys"] if isinstance(keys, dict) else []
        usable = KeySet.import_key_set({"keys": [one for one in known if one.get("kty") in KINDS]})
        registry = JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
        token = jwt.decode(str(id_token), usable, registry=registry)
        wanted = {
            "iss": {"essential": True, "value": expected.issuer},
            "aud": {"essential": True, "value": expected.client},
        }
        params = {"nonce": expected.nonce, "client_id": expected.client, "access_token": expected.access_token}
        claims = CodeIDToken(token.claims, token.header, wanted, params)
        claims.validate(now=int(system_clock()), leeway=LEEWAY)
    except JoseError as error:
        raise NotBelieved(str(getattr(error, "claim", None) or error.error)) from error
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise NotBelieved("its signature cannot be checked") from error
    if not SUBJECT.fullmatch(claims["sub"]):
        raise NotBelieved("sub")
    return dict(claims)


def email_in(claims: dict[str, Any]) -> str | None:
    """The address of e-mail that the provider has verified; None: there is none."""
    found = claims.get("email")
    verified = claims.get("email_verified") is True
    return found if verified and isinstance(found, str) and ADDRESS.fullmatch(found) and "://" not in found else None
