"""What a provider says of a person has to be signed by it, for us, for this login, and from now."""

import time

import pytest
from identity_providers import CLIENT, came_back, refused, signed_by_all, stored, trail, unsigned
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey


def later(seconds):
    return lambda claims: {**claims, "exp": int(time.time()) + seconds}


CLAIMS = {
    "nonce of another login": (lambda claims: {**claims, "nonce": "x" * 43}, "nonce"),
    "no nonce": (lambda claims: {name: one for name, one in claims.items() if name != "nonce"}, "nonce"),
    "another issuer": (lambda claims: {**claims, "iss": "https://evil.example"}, "iss"),
    "issuer with a slash": (lambda claims: {**claims, "iss": claims["iss"] + "/"}, "iss"),
    "another audience": (lambda claims: {**claims, "aud": "another"}, "aud"),
    "no audience": (lambda claims: {**claims, "aud": []}, "aud"),
    "for another party": (lambda claims: {**claims, "aud": [CLIENT, "another"], "azp": "another"}, "azp"),
    "for several, and nobody says whom": (lambda claims: {**claims, "aud": [CLIENT, "another"]}, "azp"),
    "expired": (later(-3600), "(exp)"),
    "expires never": (lambda claims: {name: one for name, one in claims.items() if name != "exp"}, "exp"),
    "expires at a word": (lambda claims: {**claims, "exp": "never"}, "exp"),
    "from tomorrow": (lambda claims: {**claims, "iat": int(time.time()) + 86_400}, "iat"),
    "not yet": (lambda claims: {**claims, "nbf": int(time.time()) + 86_400}, "nbf"),
    "of another access token": (lambda claims: {**claims, "at_hash": "x" * 22}, "at_hash"),
    "no subject": (lambda claims: {name: one for name, one in claims.items() if name != "sub"}, "sub"),
    "an empty subject": (lambda claims: {**claims, "sub": ""}, "sub"),
    "a subject that is none": (lambda claims: {**claims, "sub": 5}, "sub"),
    "a subject of two lines": (lambda claims: {**claims, "sub": "a\nb"}, "sub"),
}


@pytest.mark.cases(12)
@pytest.mark.parametrize("case", CLAIMS)
def test_claims_that_do_not_hold(server, provider, visit, case):
    provider.claims, why = CLAIMS[case]
    before, eve = stored(server), visit()
    refused(came_back(eve), eve, "does not hold", why)
    assert stored(server) == before
    assert trail(server)[0][:2] == ("", "log in refused")


STRANGE = RSAKey.generate_key(2048, {"kid": "first"})
SIGNED = {
    "by nobody (unsupported_algorithm)": lambda provider: unsigned,
    "by what everybody knows (unsupported_algorithm)": signed_by_all,
    "by a shared key": lambda provider: lambda header, claims: shared_key(claims),
    "by another key of that name": lambda provider: (
        lambda header, claims: jwt.encode(header, claims, STRANGE, ["RS256"])
    ),
    "by a key that is not there": lambda provider: (
        lambda header, claims: jwt.encode({"alg": "RS256", "kid": "none"}, claims, STRANGE, ["RS256"])
    ),
    "by a key in its own header": lambda provider: (
        lambda header, claims: jwt.encode(
            {"alg": "RS256", "kid": "mine", "jwk": STRANGE.as_dict(private=False)}, claims, STRANGE, ["RS256"]
        )
    ),
    "and changed afterwards": lambda provider: (
        lambda header, claims: (
            (provider.sign(header, claims).split(".")[0] + "." + ".".join(provider.sign(header, {}).split(".")[1:]))[
                :-4
            ]
            + "AAAA"
        )
    ),
    "not at all": lambda provider: lambda header, claims: "no.token",
    "as nothing": lambda provider: lambda header, claims: None,
    "as a list": lambda provider: lambda header, claims: [1],
}


def shared_key(claims) -> str:
    key = OctKey.import_key({"kty": "oct", "kid": "shared", "k": "b2YgYm90aCBzaWRlcw"})
    return jwt.encode({"alg": "HS256", "kid": "shared"}, claims, key, ["HS256"])


@pytest.mark.filterwarnings("ignore::joserfc.errors.SecurityWarning")
@pytest.mark.parametrize("case", SIGNED)
def test_signatures_that_do_not_hold(server, provider, visit, case):
    provider.signed = SIGNED[case](provider)
    before, eve = stored(server), visit()
    refused(came_back(eve), eve, "does not hold", case.partition("(")[2])
    assert stored(server) == before


def test_other_keys_of_the_provider_are_fine_and_new_ones_need_no_restart(server, provider, visit):
    provider.header = {"alg": "ES256", "kid": "second"}
    assert came_back(visit()).status_code == 200
    provider.header, provider.key = {"alg": "PS256", "kid": "third"}, RSAKey.generate_key(2048, {"kid": "third"})
    assert came_back(visit()).status_code == 200
