"""Signed cards, verified with another library."""

import base64
import json
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from toold.daemon.config.setting_sources import SettingsError, load_settings
from toold.daemon.transports.a2a.card_signer import CardKeyError, CardSigner
from toold.providers.simulator import Simulator

from .conftest import SETTINGS, environment, served


def write_key(path: Path, key: Any) -> Path:
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return path


async def test_a_signed_card_is_verified_with_the_published_key(tmp_path: Path) -> None:
    """The signatures name the key and the key set at ``a2a_url``, without which the daemon does not start, not at the
    request's host; one fits the card without its empty values; they stay the same.
    """
    (tmp_path / "toold.toml").write_text(SETTINGS)
    key = write_key(tmp_path / "card.pem", ec.generate_private_key(ec.SECP256R1()))
    async with Simulator() as simulator:
        env = environment(tmp_path, simulator) | {"TOOLD_A2A_CARD_KEY": str(key)}
        with pytest.raises(SettingsError, match="a2a_card_key: needs a2a_url"):
            async with served(load_settings({}, env=env, cwd=tmp_path)):
                pass
        env["TOOLD_A2A_URL"] = "https://agents.example"
        async with served(load_settings({}, env=env, cwd=tmp_path)) as (_, client):
            answer = await client.get("/agents/helper/.well-known/agent-card.json")
            again = await client.get("/agents/helper/.well-known/agent-card.json")
            keys = (await client.http.get("/.well-known/jwks.json")).json()
    assert answer.headers["etag"] == again.headers["etag"]
    card = answer.json()
    signatures = card.pop("signatures")
    header = json.loads(base64.urlsafe_b64decode(signatures[0]["protected"] + "=="))
    assert header["jku"] == "https://agents.example/.well-known/jwks.json"
    assert card["supportedInterfaces"][0]["url"] == "https://agents.example/agents/helper/"
    assert (header["alg"], header["typ"], header["kid"]) == ("ES256", "JOSE", keys["keys"][0]["kid"])
    forms = []
    for signature in signatures:
        forms += [form for form in candidates(card) if verifies(signature, form, keys["keys"][0])]
    assert len(forms) == len(signatures) == 2


def candidates(card: dict[str, Any]) -> list[bytes]:
    """The card as the specification canonicalizes it, and without what only names an empty list."""
    strict = {**card, "securityRequirements": [{"schemes": {"bearer": {}}}]}
    lean = {name: value for name, value in card.items() if name != "securityRequirements"}
    return [json.dumps(form, sort_keys=True, separators=(",", ":")).encode() for form in (strict, lean)]


def verifies(signature: dict[str, str], form: bytes, key: dict[str, Any]) -> bool:
    payload = base64.urlsafe_b64encode(form).rstrip(b"=").decode()
    token = f"{signature['protected']}.{payload}.{signature['signature']}"
    try:
        jwt.api_jws.decode(token, jwt.PyJWK(key), algorithms=["ES256"])
    except jwt.InvalidTokenError:
        return False
    return True


@pytest.mark.parametrize("content", [b"", b"no key", None])
def test_other_files_are_refused(tmp_path: Path, content: bytes | None) -> None:
    """A file without a key, or with one of another kind, is an error that says what it must be."""
    path = tmp_path / "key.pem"
    if content is None:
        write_key(path, rsa.generate_private_key(65537, 2048))
    else:
        path.write_bytes(content)
    with pytest.raises(CardKeyError, match=r"P-256|PEM"):
        CardSigner(path)
    with pytest.raises(CardKeyError, match="cannot be read"):
        CardSigner(tmp_path / "absent")
