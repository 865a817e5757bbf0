"""Verification of an OAuth issuer's tokens."""

from __future__ import annotations

import gzip
import json
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st
from toold.daemon.access.issuer_keys import (
    MAX_BYTES,
    REFRESH_S,
    RETRY_S,
    STALE_S,
    UNKNOWN_KEY_S,
    IssuerKeys,
    metadata_addresses,
)
from toold.daemon.access.oauth_issuer import LEEWAY_S, OAuthIssuer
from toold.daemon.access.protected_resource import ProtectedResource
from toold.protocol.authorization import Authorization, AuthorizationDenied

from .conftest import unsigned

if TYPE_CHECKING:
    from .conftest import Issuer

IDENTIFIER = "https://tools.example/mcp"
TOOLSETS = ("lean", "standard", "full")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def verifier(issuer: Issuer, clock: Clock | None = None, **scopes: tuple[str, ...]) -> OAuthIssuer:
    resource = ProtectedResource(issuer.url, IDENTIFIER, IDENTIFIER, scopes)
    return OAuthIssuer(resource, lambda: TOOLSETS, IssuerKeys(issuer.url, clock=clock or Clock()))


async def refusal(verify: OAuthIssuer, token: str) -> AuthorizationDenied:
    denied = await verify.verify(token)
    assert isinstance(denied, AuthorizationDenied), denied
    assert token not in denied.message
    return denied


@pytest.mark.parametrize(("kid", "algorithm"), [("rsa", "RS256"), ("rsa", "PS512"), ("ec", "ES256"), ("ed", "EdDSA")])
async def test_a_valid_token(issuer: Issuer, kid: str, algorithm: str) -> None:
    """Its subject is the principal, it permits all toolsets, and it expires at ``exp``."""
    access = await verifier(issuer).verify(issuer.token(kid, algorithm, exp=4_000_000_000))
    assert isinstance(access, Authorization)
    assert (access.principal.name, access.toolsets, access.expires_at) == ("oauth:alice", None, 4_000_000_000.0)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"aud": "https://other.example/mcp"}, "for another audience; request one for https://tools.example/mcp"),
        ({"aud": ["https://tools.example"]}, "for another audience"),
        ({"aud": None}, "without aud"),
        ({"iss": "https://other.example"}, "of another issuer"),
        ({"iss": None}, "without iss"),
        ({"exp": 1_000_000_000}, "expired"),
        ({"exp": None}, "without exp"),
        ({"exp": "soon"}, "not signed by"),
        ({"exp": 10**18}, "exp is out of range"),
        ({"exp": 10**400}, "not signed by"),
        ({"nbf": 4_000_000_000}, "not valid yet"),
        ({"sub": None}, "without sub"),
        ({"sub": ""}, "without a valid subject"),
        ({"sub": "a\nb"}, "without a valid subject"),
        ({"sub": "x" * 256}, "without a valid subject"),
    ],
)
async def test_invalid_claims_are_rejected(issuer: Issuer, changed: dict[str, Any], message: str) -> None:
    """The reason names the problem, and does not quote the token."""
    denied = await refusal(verifier(issuer), issuer.token(**changed))
    assert denied.reason == "invalid"
    assert message in denied.message


async def test_clock_differences_are_tolerated(issuer: Issuer) -> None:
    """A difference up to the leeway is accepted."""
    now = int(time.time())
    verify = verifier(issuer)
    assert isinstance(await verify.verify(issuer.token(exp=now - LEEWAY_S // 2)), Authorization)
    assert isinstance(await verify.verify(issuer.token(nbf=now + LEEWAY_S // 2)), Authorization)
    await refusal(verify, issuer.token(exp=now - 2 * LEEWAY_S))


async def test_unsigned_tokens_are_rejected(issuer: Issuer) -> None:
    """``none`` in any spelling is not accepted, nor is a truncated signature."""
    verify = verifier(issuer)
    claims = jwt.decode(issuer.token(), options={"verify_signature": False})
    for algorithm in ("none", "None", "NONE", "", None, 5):
        await refusal(verify, unsigned({"alg": algorithm, "kid": "rsa"}, claims))
    await refusal(verify, unsigned({"alg": "RS256", "kid": "rsa"}, claims))
    await refusal(verify, issuer.token().rpartition(".")[0] + ".")


async def test_a_public_key_is_not_a_shared_secret(issuer: Issuer) -> None:
    """A token signed by HS256 with the issuer's public key is rejected."""
    public = issuer.keys["rsa"].public_key()
    for secret in (
        public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        json.dumps(issuer.public_keys()[0]).encode(),
    ):
        signed = jwt.api_jws.PyJWS().encode(b"{}", b"x" * 32, algorithm="HS256", headers={"kid": "rsa"})
        head = signed.rpartition(".")[0]
        import base64
        import hashlib
        import hmac

        mac = base64.urlsafe_b64encode(hmac.new(secret, head.encode(), hashlib.sha256).digest()).rstrip(b"=")
        denied = await refusal(verifier(issuer), f"{head}.{mac.decode()}")
        assert "signed with an unsupported algorithm" in denied.message


async def test_unsuitable_keys_are_ignored(issuer: Issuer) -> None:
    """Shared secrets, encryption keys, and keys that are too short."""
    secret = {"kty": "oct", "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0", "kid": "oct", "alg": "HS256"}
    [public, *_] = issuer.public_keys()
    keys = [secret, {**public, "use": "enc"}, "no key", {"kty": "RSA", "kid": "broken"}]
    issuer.answers["/keys"] = lambda: (200, json.dumps({"keys": keys}).encode())
    verify = verifier(issuer)
    await refusal(verify, jwt.encode({}, "secret-secret-secret-secret-secret", "HS256", headers={"kid": "oct"}))
    await refusal(verify, issuer.token())
    await refusal(verify, issuer.token(headers={"kid": "broken"}))


async def test_short_rsa_keys_are_rejected(issuer: Issuer) -> None:
    """They can be factored."""
    issuer.keys["rsa"] = rsa.generate_private_key(public_exponent=65537, key_size=1024)  # noqa: S505 - refused here
    with pytest.warns(jwt.warnings.InsecureKeyLengthWarning):
        token = issuer.token()
    await refusal(verifier(issuer), token)


async def test_a_token_is_verified_by_the_key_that_it_names(issuer: Issuer, spare_rsa: Any) -> None:
    """Another key of the issuer, or a foreign key that the header refers to, is not accepted."""
    verify = verifier(issuer)
    await refusal(verify, issuer.token("ec", "ES256", headers={"kid": "rsa"}))
    good = issuer.keys["rsa"]
    issuer.keys["rsa"] = spare_rsa
    elsewhere = {"jku": "https://evil.example/keys", "jwk": issuer.public_keys()[0]}
    forged = issuer.token(headers=elsewhere)
    issuer.keys["rsa"] = good
    denied = await refusal(verify, forged)
    assert "not signed by" in denied.message


async def test_a_token_without_a_key_id(issuer: Issuer, spare_rsa: Any) -> None:
    """It is verified if exactly one key is suitable, and rejected otherwise."""
    nameless = issuer.token(headers={"kid": None})
    assert isinstance(await verifier(issuer).verify(nameless), Authorization)
    issuer.keys["other"] = spare_rsa
    await refusal(verifier(issuer), nameless)


async def test_keys_are_fetched_once(issuer: Issuer) -> None:
    """A hundred tokens cause no more requests than the first."""
    verify = verifier(issuer)
    for _ in range(100):
        assert isinstance(await verify.verify(issuer.token()), Authorization)
    assert issuer.requests.count("/keys") == 1


async def test_rotated_keys(issuer: Issuer, spare_rsa: Any) -> None:
    """A token with a new key id causes a refresh; the withdrawn key is then no longer valid."""
    clock = Clock()
    verify = verifier(issuer, clock)
    old = issuer.token()
    assert isinstance(await verify.verify(old), Authorization)
    del issuer.keys["rsa"]
    issuer.keys["new"] = spare_rsa
    clock.now += UNKNOWN_KEY_S
    assert isinstance(await verify.verify(issuer.token("new")), Authorization)
    await refusal(verify, old)
    assert issuer.requests.count("/keys") == 2


async def test_unknown_key_ids_cause_few_requests(issuer: Issuer) -> None:
    """Clients that send random key ids cannot make the daemon flood the issuer."""
    clock = Clock()
    verify = verifier(issuer, clock)
    for number in range(50):
        await refusal(verify, issuer.token(headers={"kid": f"made-up-{number}"}))
    assert issuer.requests.count("/keys") == 1
    clock.now += UNKNOWN_KEY_S
    for number in range(50):
        await refusal(verify, issuer.token(headers={"kid": f"made-up-{number}"}))
    assert issuer.requests.count("/keys") == 2


async def test_an_unreachable_issuer_is_retried(issuer: Issuer) -> None:
    """Without keys, no token is accepted or rejected; fetched keys stay valid for a day."""
    clock = Clock()
    verify = verifier(issuer, clock)
    issuer.answers["/keys"] = lambda: (503, b"")
    assert (await refusal(verify, issuer.token())).reason == "unavailable"
    assert (await refusal(verify, issuer.token())).reason == "unavailable"
    assert issuer.requests.count("/keys") == 1
    clock.now += RETRY_S
    del issuer.answers["/keys"]
    assert isinstance(await verify.verify(issuer.token()), Authorization)
    issuer.answers["/keys"] = lambda: (503, b"")
    clock.now += REFRESH_S + 1
    assert isinstance(await verify.verify(issuer.token()), Authorization)
    clock.now += STALE_S
    assert (await refusal(verify, issuer.token())).reason == "unavailable"


@pytest.mark.parametrize(
    "body",
    ["", "[]", "{", "[" * 100_000, "GOOD" + " " * MAX_BYTES, '{"issuer": "https://other.example", "jwks_uri": "KEYS"}'],
)
async def test_invalid_metadata(issuer: Issuer, body: str) -> None:
    """With malformed or endless metadata, or metadata of another issuer, tokens cannot be verified; the reason says
    why.
    """
    good = json.dumps({"issuer": issuer.url, "jwks_uri": f"{issuer.url}/keys"})
    document = body.replace("GOOD", good).replace("KEYS", f"{issuer.url}/keys").encode()
    issuer.answers["/.well-known/openid-configuration"] = partial(_answer, document)
    assert (await refusal(verifier(issuer), issuer.token())).reason == "unavailable"


async def test_compressed_keys_are_rejected(issuer: Issuer) -> None:
    """They were not requested, and a few bytes could expand to gigabytes."""
    keys = json.dumps({"keys": issuer.public_keys()}).encode()
    issuer.answers["/keys"] = partial(_answer, gzip.compress(keys))
    assert (await refusal(verifier(issuer), issuer.token())).reason == "unavailable"


async def test_keys_are_fetched_by_https_only(issuer: Issuer) -> None:
    """Other URLs, for example of files, are refused."""
    for place in ("file:///etc/passwd", None, 5):
        document = json.dumps({"issuer": issuer.url, "jwks_uri": place}).encode()
        issuer.answers["/.well-known/openid-configuration"] = partial(_answer, document)
        assert (await refusal(verifier(issuer), issuer.token())).reason == "unavailable"


def _answer(document: bytes) -> tuple[int, bytes]:
    return 200, document


def test_metadata_addresses() -> None:
    """RFC 8414 first, then OpenID Connect, with the issuer's path in either place."""
    assert metadata_addresses("https://id.example/realms/a") == [
        "https://id.example/.well-known/oauth-authorization-server/realms/a",
        "https://id.example/.well-known/openid-configuration/realms/a",
        "https://id.example/realms/a/.well-known/openid-configuration",
    ]


@given(st.text())
async def test_any_text_is_answered(text: str) -> None:
    """No text raises or causes a request to the issuer."""
    keys = IssuerKeys("http://127.0.0.1:1")
    verify = OAuthIssuer(ProtectedResource("http://127.0.0.1:1", IDENTIFIER, IDENTIFIER), lambda: TOOLSETS, keys)
    for token in (text, f"{text}.{text}.{text}", "e30.e30." + text):
        assert isinstance(await verify.verify(token), AuthorizationDenied)


# --- scopes and toolsets ---------------------------------------------------------------------------------------------


async def test_scopes_permit_toolsets(issuer: Issuer) -> None:
    """The toolsets of all scopes, the first being the default; for others, the required scope."""
    verify = verifier(issuer, read=("lean",), write=("standard", "lean"), all=("full",))
    access = await verify.verify(issuer.token(scope="openid write"))
    assert isinstance(access, Authorization)
    assert (access.toolsets, access.scopes) == (("standard", "lean"), (("full", "all"),))
    listed = await verify.verify(issuer.token(scp=["read", "all"]))
    assert isinstance(listed, Authorization)
    assert listed.toolsets == ("lean", "full")


async def test_a_token_without_a_useful_scope(issuer: Issuer) -> None:
    """It is valid but permits nothing: the error names the available scopes."""
    denied = await refusal(verifier(issuer, read=("lean",), all=("full",)), issuer.token(scope="openid"))
    assert (denied.reason, denied.scope) == ("insufficient_scope", "read all")


async def test_a_token_for_one_toolset_permits_only_that(issuer: Issuer) -> None:
    """``aud`` may be /mcp/{toolset}: RFC 8707 has clients request the narrowest."""
    access = await verifier(issuer).verify(issuer.token(aud=f"{IDENTIFIER}/lean"))
    assert isinstance(access, Authorization)
    assert access.toolsets == ("lean",)
    narrow = await verifier(issuer, read=("standard",)).verify(issuer.token(aud=f"{IDENTIFIER}/lean", scope="read"))
    assert isinstance(narrow, AuthorizationDenied)
    assert narrow.reason == "insufficient_scope"
