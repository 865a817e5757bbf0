"""Credentials in Google Secret Manager, by a stand-in that answers as its REST API (v1) is documented."""

import base64
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send
from toold.protocol.error_codes import OverCapacityError, ServiceUnavailableError
from toold.protocol.user_credential import SERVICE_NAME, USER_ID, CredentialField
from toold.serving import HttpServer
from toold.user_credentials import (
    SecretManagerVault,
    VaultSettingsError,
    read_vault,
    secret_manager_vault,
)
from toold.user_credentials.secret_names import secret_id, service_of

KEY = CredentialField("jira", "api_key")
TEMPLATE = "user-credentials--{user}--{service}"
USERS = st.one_of(
    st.from_regex(USER_ID, fullmatch=True).map("user:{}".format),
    st.text(min_size=1, max_size=20).map("oauth:{}".format),
    st.sampled_from(["local", "user:local", "token:a", "user:a", "user:a--b", "user:_local"]),
)


class SecretManager:
    """The stand-in: secrets with versions, in memory, in pages of two."""

    def __init__(self) -> None:
        self.secrets: dict[str, list[tuple[str, bytes]]] = {}
        """State and payload of each version."""
        self.tokens: list[str] = []
        self.status = 200
        self.listed = 0
        """How many secrets the last filter matched."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if request.url.path.startswith("/computeMetadata"):
            await JSONResponse({"access_token": "from-metadata", "expires_in": 3600})(scope, receive, send)
            return
        self.tokens.append(request.headers["authorization"])
        status, body = self.status, {"error": {"message": "the secret is ann-key"}}
        if status == 200:
            path = request.url.path.removeprefix("/v1/projects/p/secrets").removeprefix("/")
            status, body = self._answer(request, path, json.loads(await request.body() or b"{}"))
        await JSONResponse(body, status)(scope, receive, send)

    def _answer(self, request: Request, path: str, body: Any) -> tuple[int, Any]:
        query = request.query_params
        if not path and request.method == "POST":
            assert body["replication"] == {"automatic": {}}
            taken = self.secrets.setdefault(query["secretId"], []) is not None and query["secretId"] in self.secrets
            return (200 if taken else 409), {}
        if not path:
            wanted = [part.removeprefix("name:") for part in query["filter"].split(" AND ")]
            names = [name for name in self.secrets if all(part in name for part in wanted)]
            self.listed = len(names)
            begin = int(query["pageToken"] or 0)
            more = {"nextPageToken": str(begin + 2)} if begin + 2 < len(names) else {}
            return 200, {"secrets": [{"name": f"projects/1/secrets/{n}"} for n in names[begin : begin + 2]], **more}
        match = re.fullmatch(r"([A-Za-z0-9_-]{1,255})(.*)", path)
        assert match is not None
        name, rest = match[1], match[2]
        if name not in self.secrets:
            return 404, {}
        versions = self.secrets[name]
        if request.method == "DELETE":
            del self.secrets[name]
        elif rest == ":addVersion":
            versions.append(("ENABLED", base64.b64decode(body["payload"]["data"])))
            return 200, {"name": f"projects/1/secrets/{name}/versions/{len(versions)}"}
        elif rest == "/versions/latest:access":
            if not versions:
                return 404, {}
            return 200, {"payload": {"data": base64.b64encode(versions[-1][1]).decode()}}
        elif rest == "/versions":
            rows = [f"{name}/versions/{n}" for n, (state, _) in enumerate(versions, 1) if state == "ENABLED"]
            return 200, {"versions": [{"name": row} for row in rows]}
        elif destroyed := re.fullmatch(r"/versions/(\d+):destroy", rest):
            versions[int(destroyed[1]) - 1] = ("DESTROYED", b"")
        return 200, {}


@pytest.fixture
async def manager() -> AsyncIterator[tuple[SecretManager, SecretManagerVault]]:
    stand_in = SecretManager()
    server = HttpServer(stand_in, "127.0.0.1", 0, "--api")
    await server.start()
    url = f"http://127.0.0.1:{server.port}"
    table = {"project": "p", "url": url, "metadata_url": url, "allow_private": True}
    settings = read_vault({"secret_manager": table}).secret_manager
    assert settings is not None
    vault = SecretManagerVault(settings, None)
    yield stand_in, vault
    await vault.close()
    await server.close()


async def test_a_credential_is_a_secret_of_its_user(manager: tuple[SecretManager, SecretManagerVault]) -> None:
    """Stored, replaced, listed and removed; the version before is destroyed, and no other principal has it."""
    stand_in, vault = manager
    await vault.put("user:ann", "jira", {"api_key": "ann-old"})
    await vault.put("user:ann", "jira", {"api_key": "ann-key", "domain": "acme"})
    await vault.put("user:ann", "slack", {"bot_token": "ann-bot"})
    await vault.put("user:ann", "github", {"token": "ann-hub"})
    assert next(iter(stand_in.secrets)) == "user-credentials--ann--jira"
    assert [state for state, _ in stand_in.secrets["user-credentials--ann--jira"]] == ["DESTROYED", "ENABLED"]
    assert await vault.value("user:ann", KEY) == "ann-key"
    assert [await vault.value(other, KEY) for other in ("oauth:ann", "token:ann", "user:an", "local")] == [None] * 4
    assert [(entry.service_type, entry.fields) for entry in await vault.entries("user:ann")] == [
        ("github", ("token",)), ("jira", ("api_key", "domain")), ("slack", ("bot_token",)),
    ]  # fmt: skip
    assert [await vault.remove("user:ann", "jira") for _ in range(2)] == [True, False]
    assert await vault.value("user:ann", KEY) is None
    assert set(stand_in.tokens) == {"Bearer from-metadata"}


async def test_a_secret_that_another_program_wrote(manager: tuple[SecretManager, SecretManagerVault]) -> None:
    """It is found under the name of the predecessor; one that is not an object of texts counts as missing."""
    stand_in, vault = manager
    stand_in.secrets["user-credentials--ann--jira"] = [("ENABLED", b'{"api_key": "from-ui"}')]
    stand_in.secrets["user-credentials--bob--jira"] = [("ENABLED", b"plain")]
    assert await vault.value("user:ann", KEY) == "from-ui"
    assert await vault.value("user:bob", KEY) is None


async def test_failures_and_limits(
    manager: tuple[SecretManager, SecretManagerVault], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of Secret Manager is not a missing credential, and its text is not repeated."""
    stand_in, vault = manager
    monkeypatch.setattr(secret_manager_vault, "MAX_SERVICES", 1)
    await vault.put("user:ann", "jira", {"api_key": "ann-key"})
    with pytest.raises(OverCapacityError):
        await vault.put("user:ann", "slack", {"bot_token": "ann-bot"})
    for status in (401, 403, 429, 500):
        stand_in.status = status
        with pytest.raises(ServiceUnavailableError) as failed:
            await vault.value("user:ann", KEY)
        assert f"HTTP {status}" in failed.value.message
        assert "ann-key" not in failed.value.message


async def test_a_list_that_is_too_long(
    manager: tuple[SecretManager, SecretManagerVault], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is an error, not a shorter list; a single credential can still be read."""
    stand_in, vault = manager
    for service in ("github", "jira", "slack"):
        stand_in.secrets[f"user-credentials--ann--{service}"] = [("ENABLED", b'{"api_key": "ann-key"}')]
    assert len(await vault.entries("user:ann")) == 3
    monkeypatch.setattr(secret_manager_vault, "MAX_PAGES", 1)
    for listing in (vault.entries("user:ann"), vault.put("user:ann", "jira", {"api_key": "new"})):
        with pytest.raises(ServiceUnavailableError, match="too many to list"):
            await listing
    assert await vault.value("user:ann", KEY) == "ann-key"


@given(USERS, USERS, *[st.from_regex(SERVICE_NAME, fullmatch=True)] * 2)
def test_names_are_unique(first: str, second: str, service: str, other: str) -> None:
    """Different principals or services have different secrets, with legal names; a name gives the service back."""
    name = secret_id(TEMPLATE, first, service)
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,255}", name)
    assert service_of(TEMPLATE, first, name) == service
    if (first, service) != (second, other):
        assert secret_id(TEMPLATE, second, other) != name
    if first != second:
        assert service_of(TEMPLATE, second, name) is None


@pytest.mark.parametrize(
    "name", ["{user}{service}", "{user}-{service}", "a--{user}", "{user}--{service}.x", "{user}--{user}"]
)
def test_templates_that_could_mix_users_up(name: str) -> None:
    """The name of the setting is in the error."""
    with pytest.raises(VaultSettingsError, match=r"^secret_manager\.name must have the user and the service once"):
        read_vault({"secret_manager": {"project": "p", "name": name}})


async def test_a_list_asks_for_the_names_of_one_user(manager: tuple[SecretManager, SecretManagerVault]) -> None:
    """A user whose id is in the names of all secrets gets no other names than the own ones."""
    stand_in, vault = manager
    stand_in.secrets |= {f"user-credentials--user{number}--jira": [] for number in range(20)}
    await vault.put("user:user", "jira", {"api_key": "k"})
    assert [entry.service_type for entry in await vault.entries("user:user")] == ["jira"]
    assert stand_in.listed == 1
