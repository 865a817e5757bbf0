"""The operator API: its access rules, requests and responses."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from starlette.responses import Response
from toold.daemon.access import Authenticator, NamedToken, TokenBook
from toold.daemon.access.token_book import hash_of
from toold.daemon.transports.http_port import side_app
from toold.daemon.transports.operator_api import operator_app
from toold.protocol.error_codes import InvalidArgumentsError, NotFoundError
from toold.serving import HttpServer

TOKEN = "the-token-of-the-daemon"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
BOOK = TokenBook(
    [
        NamedToken(name="plain", sha256=hash_of("toold_plain"), created_at=1.0),
        NamedToken(name="boss", sha256=hash_of("toold_boss"), created_at=1.0, operator=True),
    ]
)
ROUTES = [
    ("GET", "/operator/calls"),
    ("POST", "/operator/calls/1/cancel"),
    ("POST", "/operator/reload"),
    ("GET", "/operator/settings"),
]


class RecordingOperator:
    """Records the requests."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.sign_ins: Any = None

    async def calls(self, recent: int) -> dict[str, Any]:
        self.requests.append(("calls", recent))
        return {"running": [], "recent": []}

    async def cancel(self, value: str) -> dict[str, Any]:
        self.requests.append(("cancel", value))
        if value == "none":
            raise NotFoundError("No such call.")
        return {"id": value}

    async def reload(self) -> dict[str, Any]:
        self.requests.append("reload")
        raise InvalidArgumentsError("port (toold.toml): must be a whole number")

    async def settings(self) -> dict[str, Any]:
        self.requests.append("settings")
        return {"settings": {}}

    async def registry(self) -> dict[str, Any]:
        self.requests.append("registry")
        return {"agents": [], "problems": []}

    async def registered_agent(self, name: str) -> dict[str, Any]:
        self.requests.append(("registered_agent", name))
        return {"name": name}

    async def sources(self) -> dict[str, Any]:
        self.requests.append("sources")
        return {"sources": []}

    async def quarantined(self, source: str) -> dict[str, Any]:
        self.requests.append(("quarantined", source))
        return {"quarantined": []}

    async def approve(self, source: str, tool: str, version: str) -> dict[str, Any]:
        self.requests.append(("approve", source, tool, version))
        return {"approved": [tool]}

    async def ui_link(self) -> dict[str, Any]:
        self.requests.append("ui-link")
        return {"path": "/ui/open?code=1"}

    async def stubs(self, toolset: str) -> dict[str, Any]:
        self.requests.append(("stubs", toolset))
        return {"modules": {}}


@pytest.fixture
def operator() -> RecordingOperator:
    return RecordingOperator()


def app(
    operator: RecordingOperator, *, token: str | None = TOKEN, host: str = "127.0.0.1", loopback_only: bool = False
) -> Any:
    api = operator_app(
        operator, authenticate=Authenticator(SecretStr(token) if token else None, lambda: BOOK), host=host
    )
    return side_app(
        health=dict,
        agent_health=lambda: None,
        metrics=bytes,
        mcp=Response(),
        sse=Response(),
        openai=Response(),
        rest=Response(),
        a2a=Response(),
        platform=Response(),
        registry=Response(),
        is_registry=lambda *_: False,
        resource=lambda _: None,
        operator=api,
        loopback_only=loopback_only,
        allowed_origins=(),
    )


@pytest.fixture
async def client(operator: RecordingOperator) -> AsyncIterator[httpx.AsyncClient]:
    """Over a real socket, like the commands."""
    server = HttpServer(app(operator, loopback_only=True), "127.0.0.1", 0, "--http-port")
    await server.start()
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", trust_env=False, verify=False) as client:
        yield client
    await server.close()


def peer(
    operator: RecordingOperator, address: str, *, url: str = "http://127.0.0.1", **options: Any
) -> httpx.AsyncClient:
    """A client with any address, which a test's sockets cannot have."""
    transport = httpx.ASGITransport(app=app(operator, **options), client=(address, 50000))
    return httpx.AsyncClient(transport=transport, base_url=url, headers=BEARER)


async def test_requests_with_the_token(client: httpx.AsyncClient, operator: RecordingOperator) -> None:
    """Each route calls its operation, and no response may be cached."""
    answer = await client.get("/operator/calls?recent=7", headers=BEARER)
    assert (answer.status_code, answer.json()) == (200, {"running": [], "recent": []})
    assert answer.headers["cache-control"] == "no-store"
    for call_id in ("0a-1", "0a-1/batch%2F2", ""):
        answer = await client.post(f"/operator/calls/{call_id}/cancel", headers=BEARER)
        assert answer.json() == {"id": call_id.replace("%2F", "/")}
    assert (await client.get("/operator/stubs/full", headers=BEARER)).json() == {"modules": {}}
    approved = await client.post("/operator/sources/fs/approve?tool=read&version=3f", headers=BEARER)
    assert approved.json() == {"approved": ["read"]}
    cancelled = [("cancel", call_id) for call_id in ("0a-1", "0a-1/batch/2", "")]
    assert operator.requests == [("calls", 7), *cancelled, ("stubs", "full"), ("approve", "fs", "read", "3f")]


async def test_named_tokens_need_the_operator_right(client: httpx.AsyncClient, operator: RecordingOperator) -> None:
    """With it every route is open; without it a valid token gets 403 and nothing is done."""
    for method, path in ROUTES:
        refused = await client.request(method, path, headers={"Authorization": "Bearer toold_plain"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "PERMISSION_DENIED")
    assert operator.requests == []
    answer = await client.get("/operator/calls", headers={"Authorization": "Bearer toold_boss"})
    assert (answer.status_code, operator.requests) == (200, [("calls", 0)])


async def test_errors_have_a_message_and_a_status(client: httpx.AsyncClient) -> None:
    """404 for an unknown call, 400 for an invalid configuration."""
    missing = await client.post("/operator/calls/none/cancel", headers=BEARER)
    assert (missing.status_code, missing.json()["error"]) == (404, {"code": "NOT_FOUND", "message": "No such call."})
    wrong = await client.post("/operator/reload", headers=BEARER)
    assert (wrong.status_code, wrong.json()["error"]["message"]) == (400, "port (toold.toml): must be a whole number")
    assert wrong.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "authorization", [None, "Bearer", f"Bearer {TOKEN}x", TOKEN, f"Basic {TOKEN}", "Bearer \udcff"]
)
@pytest.mark.parametrize(("method", "path"), [*ROUTES, ("GET", "/operator/nothing"), ("POST", "/operator/calls")])
async def test_requests_without_the_token(
    client: httpx.AsyncClient, operator: RecordingOperator, method: str, path: str, authorization: str | None
) -> None:
    """401 on every path, existing or not, and no operation runs."""
    headers = {} if authorization is None else {"Authorization": authorization.encode("utf-8", "surrogateescape")}
    refused = await client.request(method, path, headers=headers)  # type: ignore[arg-type] # bytes are taken too
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == "Bearer"
    assert refused.headers["cache-control"] == "no-store"
    assert TOKEN not in refused.text
    assert operator.requests == []


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/operator/reload", 405), ("GET", "/operator/calls/1/cancel", 405), ("GET", "/operator/nothing", 404)],
)
async def test_changes_require_post(
    client: httpx.AsyncClient, operator: RecordingOperator, method: str, path: str, status: int
) -> None:
    """Links and images cannot trigger them; the error names the method and is not cached."""
    refused = await client.request(method, path, headers=BEARER)
    assert refused.status_code == status
    assert path in refused.json()["error"]["message"]
    assert status == 404 or "POST" in refused.json()["error"]["message"]
    assert refused.headers["cache-control"] == "no-store"
    assert operator.requests == []


@pytest.mark.parametrize("recent", ["-1", "101", "x", "", "1e1", "٣"])
async def test_the_limit_of_recent_calls(client: httpx.AsyncClient, recent: str) -> None:
    """The error states the limits."""
    refused = await client.get("/operator/calls", params={"recent": recent}, headers=BEARER)
    assert refused.status_code == 400
    assert "0 to 100" in refused.json()["error"]["message"]


@pytest.mark.parametrize("header", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"},
                                    {"Origin": "http://127.0.0.1"}])  # fmt: skip
@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize("token", [TOKEN, None], ids=["with a token", "auth off"])
async def test_web_pages_are_refused(
    operator: RecordingOperator, header: dict[str, str], method: str, path: str, token: str | None
) -> None:
    """Requests with a rebound name or from another origin are refused, even with auth off."""
    async with peer(operator, "127.0.0.1", token=token) as page:
        assert (await page.request(method, path, headers=header)).status_code == 403
    assert operator.requests == []


async def test_with_auth_off_no_token_is_needed(operator: RecordingOperator) -> None:
    """Auth can be off on loopback only; a token that is sent regardless is ignored."""
    async with peer(operator, "127.0.0.1", token=None) as anybody:
        assert (await anybody.get("/operator/calls")).status_code == 200
        del anybody.headers["Authorization"]
        assert (await anybody.get("/operator/calls")).status_code == 200


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_other_machines_are_refused_with_the_token(operator: RecordingOperator, method: str, path: str) -> None:
    """It would have travelled unencrypted."""
    async with peer(operator, "192.0.2.7", url="http://192.0.2.1", host="192.0.2.1") as stranger:
        assert (await stranger.request(method, path)).status_code == 403
    assert operator.requests == []


@pytest.mark.parametrize("name", ["Forwarded", "Via", "X-Forwarded-For", "X-Real-IP"])
async def test_proxied_requests_are_refused(operator: RecordingOperator, name: str) -> None:
    """A local proxy forwards requests of other machines."""
    async with peer(operator, "127.0.0.1") as proxy:
        assert (await proxy.get("/operator/calls", headers={name: "192.0.2.7"})).status_code == 403


@pytest.mark.parametrize(
    ("url", "host"),
    [("http://192.0.2.1", "192.0.2.1"), ("http://[2001:db8::1]", "2001:db8::1")],
)
async def test_requests_from_the_listening_address(operator: RecordingOperator, url: str, host: str) -> None:
    """If the daemon listens on one address only, local commands come from it."""
    async with peer(operator, httpx.URL(url).host, url=url, host=host) as here:
        assert (await here.get("/operator/calls")).status_code == 200


async def test_the_configured_host_name_is_accepted(operator: RecordingOperator) -> None:
    """In any case; other names are refused."""
    async with peer(operator, "192.0.2.1", url="http://192.0.2.1", host="Box.lan") as here:
        assert (await here.get("/operator/calls", headers={"Host": "box.LAN:8080"})).status_code == 200
        assert (await here.get("/operator/calls", headers={"Host": "other.lan:8080"})).status_code == 403
