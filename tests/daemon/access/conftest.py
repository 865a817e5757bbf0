"""An OAuth issuer for tests: an HTTP server with signing keys, which a test can rotate, break and observe."""

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

Claims = dict[str, Any]


@cache  # once, when a test needs it: generation is slow
def _rsa(number: int) -> rsa.RSAPrivateKey:
    """One of several keys."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@dataclass
class Issuer:
    """The documents that it serves and the keys that it signs with."""

    port: int
    keys: dict[str, Any] = field(default_factory=dict)
    """Private keys by ``kid``."""
    answers: dict[str, Callable[[], tuple[int, bytes]]] = field(default_factory=dict)
    """Replacements for its documents, by path."""
    requests: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def public_keys(self) -> list[dict[str, Any]]:
        return [{**_public(key), "kid": kid, "use": "sig"} for kid, key in self.keys.items()]

    def answer(self, path: str) -> tuple[int, bytes]:
        self.requests.append(path)
        if path in self.answers:
            return self.answers[path]()
        match path:
            case "/.well-known/openid-configuration":
                return 200, json.dumps({"issuer": self.url, "jwks_uri": f"{self.url}/keys"}).encode()
            case "/keys":
                return 200, json.dumps({"keys": self.public_keys()}).encode()
            case _:
                return 404, b"{}"

    def token(
        self, kid: str = "rsa", algorithm: str = "RS256", headers: dict[str, Any] | None = None, **changed: Any
    ) -> str:
        """Returns a valid token, with some claims changed, or omitted if None."""
        claims: Claims = {
            "iss": self.url,
            "sub": "alice",
            "aud": "https://tools.example/mcp",
            "exp": int(time.time()) + 600,
            **changed,
        }
        known_values = {name: value for name, value in claims.items() if value is not None}
        named = {name: value for name, value in {"kid": kid, **(headers or {})}.items() if value is not None}
        return jwt.encode(known_values, self.keys[kid], algorithm=algorithm, headers=named)


def _public(key: Any) -> dict[str, Any]:
    kinds = [(rsa.RSAPrivateKey, RSAAlgorithm), (ec.EllipticCurvePrivateKey, ECAlgorithm)]
    algorithm: Any = next((one for kind, one in kinds if isinstance(key, kind)), OKPAlgorithm)
    public: dict[str, Any] = algorithm.to_jwk(key.public_key(), as_dict=True)
    return public


def unsigned(header: dict[str, Any], claims: Claims) -> str:
    """Returns a token with any header and without a signature."""
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=").decode() for part in (header, claims)]
    return ".".join([*parts, ""])


@pytest.fixture
def spare_rsa() -> Any:
    """Another RSA key."""
    return _rsa(1)


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    """A running issuer with a key of each kind."""
    with running_issuer() as issuer:
        yield issuer


@pytest.fixture(scope="module")
def shared_issuer() -> Iterator[Issuer]:
    """A running issuer for all tests of a module, which do not change it."""
    with running_issuer() as issuer:
        yield issuer


@contextmanager
def running_issuer() -> Iterator[Issuer]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = new_issuer.answer(self.path)
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            if body.startswith(b"\x1f\x8b"):
                self.send_header("content-encoding", "gzip")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    new_issuer = Issuer(server.server_port)
    new_issuer.keys = {
        "rsa": _rsa(0),
        "ec": ec.generate_private_key(ec.SECP256R1()),
        "ed": ed25519.Ed25519PrivateKey.generate(),
    }
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield new_issuer
    server.shutdown()
    thread.join()
    server.server_close()
