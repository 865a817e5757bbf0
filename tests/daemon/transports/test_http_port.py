"""The HTTP port, over real sockets."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from toold.daemon.access import WELL_KNOWN
from toold.daemon.app import Daemon
from toold.daemon.observability.metrics import CONTENT_TYPE
from toold.daemon.transports.http_port import side_app
from toold.serving import HttpServer
from toold.version import __version__


class State:
    """The daemon's health, set by the test."""

    def __init__(self) -> None:
        self.health: dict[str, Any] = {"status": "ready", "uptime_s": 1.0}

    def __call__(self) -> dict[str, Any]:
        return self.health


async def mcp(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse(f"for clients of MCP: {scope['toolset']}")(scope, receive, send)


def app(state: State, *, loopback_only: bool = True) -> ASGIApp:
    return side_app(
        health=state,
        agent_health=lambda: None,
        metrics=lambda: b"toold_calls_total 1.0\n",
        mcp=mcp,
        sse=mcp,
        openai=mcp,
        rest=mcp,
        a2a=mcp,
        platform=mcp,
        registry=mcp,
        is_registry=lambda *_: False,
        resource=lambda _: None,
        operator=PlainTextResponse("for the operator"),
        loopback_only=loopback_only,
        allowed_origins=(),
    )


@pytest.fixture
def state() -> State:
    return State()


@pytest.fixture
async def server(state: State) -> AsyncIterator[HttpServer]:
    server = HttpServer(app(state), "127.0.0.1", 0, "--http-port")
    await server.start()
    yield server
    await server.close()


@pytest.fixture
async def client(server: HttpServer) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", trust_env=False, verify=False) as client:
        yield client


async def test_healthz(client: httpx.AsyncClient, state: State) -> None:
    """200 while the event loop runs, even if no calls are accepted."""
    state.health = {"status": "draining", "reasons": ["the daemon stops"]}
    answer = await client.get("/healthz")
    assert (answer.status_code, answer.json()) == (200, {"status": "alive"})


async def test_readyz(client: httpx.AsyncClient, state: State) -> None:
    """200 with the state if calls are accepted; otherwise 503 with the reasons."""
    answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()) == (200, state.health)
    state.health = {"status": "draining", "reasons": ["the daemon stops"]}
    answer = await client.get("/readyz")
    assert (answer.status_code, answer.json()["reasons"]) == (503, ["the daemon stops"])


async def test_metrics(client: httpx.AsyncClient) -> None:
    """The Prometheus format and content type."""
    answer = await client.get("/metrics")
    assert (answer.status_code, answer.text) == (200, "toold_calls_total 1.0\n")
    assert answer.headers["content-type"] == CONTENT_TYPE


async def test_index(client: httpx.AsyncClient) -> None:
    """It describes the port and lists paths that exist."""
    contents = (await client.get("/")).json()
    assert (contents["server"], contents["version"]) == ("toold", __version__)
    for path in contents["paths"]:
        assert (await client.get(path)).status_code == 200


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
@pytest.mark.parametrize(
    ("path", "toolset"), [("/mcp", None), ("/mcp/", None), ("/mcp/lean", "lean"), ("/mcp/a%20b", "a b")]
)
async def test_mcp_paths(client: httpx.AsyncClient, method: str, path: str, toolset: str | None) -> None:
    """All requests to ``/mcp`` and its toolsets go to MCP, with the toolset."""
    assert (await client.request(method, path)).text == f"for clients of MCP: {toolset}"


async def test_the_operator_api_is_not_listed(client: httpx.AsyncClient) -> None:
    """It answers below its path, but the index omits it."""
    assert (await client.get("/operator/calls")).text == "for the operator"
    assert "operator" not in (await client.get("/")).text


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nothing", 404), ("POST", "/mcp/a/b", 404), ("POST", "/mcpx", 404), ("POST", "/healthz", 405)],
)
async def test_unknown_paths_and_methods(client: httpx.AsyncClient, method: str, path: str, status: int) -> None:
    """They get JSON errors."""
    answer = await client.request(method, path)
    assert answer.status_code == status
    assert path in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "host", ["localhost", "localhost.", "127.0.0.1:8080", "[::1]:8080", "127.1.2.3", "LOCALHOST:1"]
)
async def test_loopback_names_are_accepted(client: httpx.AsyncClient, host: str) -> None:
    """All names of this machine."""
    assert (await client.get("/healthz", headers={"Host": host})).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "192.168.0.1", "", "["),
        *("[::1].evil.example", "[::1", "127.0.0.1:80@evil.example", "localhost:evil.example"),
    ],
)
async def test_other_names_are_refused(client: httpx.AsyncClient, host: str) -> None:
    """A web page that rebound its name to loopback gets 403 on every path."""
    for path in ("/readyz", "/metrics", "/operator/calls", "/nothing", "/mcp", "/mcp/lean"):
        answer = await client.get(path, headers={"Host": host})
        assert answer.status_code == 403
        assert answer.json()["error"]["code"] == "PERMISSION_DENIED"


async def test_any_name_is_accepted_on_other_addresses(state: State) -> None:
    """The daemon cannot know its names if it listens on more than loopback."""
    transport = httpx.ASGITransport(app=app(state, loopback_only=False))
    async with httpx.AsyncClient(transport=transport, base_url="http://toold.example") as client:
        assert (await client.get("/readyz")).status_code == 200


EDITOR = "https://editor.example"
CALL = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
TOKEN = "the-token-of-this-daemon-0123456789"


@pytest.fixture
async def http(serve: Callable[..., Awaitable[Daemon]]) -> AsyncIterator[httpx.AsyncClient]:
    daemon = await serve(TOOLD_ALLOWED_ORIGINS=EDITOR, TOOLD_AUTH="true", TOOLD_TOKEN=TOKEN)
    base = f"http://127.0.0.1:{daemon.http.port}"
    async with httpx.AsyncClient(base_url=base, trust_env=False, verify=False) as client:
        yield client


def preflight(http: httpx.AsyncClient, path: str, origin: str) -> Awaitable[httpx.Response]:
    request = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type"}
    return http.options(path, headers={"origin": origin, **request})


def cors(answer: httpx.Response) -> dict[str, str]:
    """Returns the CORS headers of a response."""
    return {name: value for name, value in answer.headers.items() if name.startswith("access-control-")}


@pytest.mark.parametrize("path", ["/mcp", "/mcp/lean", WELL_KNOWN])
async def test_preflight_of_an_allowed_origin(http: httpx.AsyncClient, path: str) -> None:
    """Allowed without a token, for the requests of MCP clients, without credentials."""
    answer = await preflight(http, path, EDITOR)
    allowed = cors(answer)
    assert (answer.status_code, answer.content, answer.headers["vary"]) == (204, b"", "origin")
    assert allowed["access-control-allow-origin"] == EDITOR
    assert "POST" in allowed["access-control-allow-methods"]
    headers = allowed["access-control-allow-headers"].split(", ")
    assert {"authorization", "content-type", "mcp-protocol-version", "mcp-session-id", "mcp-method"} <= set(headers)
    assert "access-control-allow-credentials" not in allowed


@pytest.mark.parametrize("path", ["/mcp", "/mcp/lean"])
@pytest.mark.parametrize("origin", ["http://evil.example", "https://editor.example.evil.example", "null"])
async def test_preflight_of_another_origin(http: httpx.AsyncClient, path: str, origin: str) -> None:
    """Refused, without CORS headers."""
    answer = await preflight(http, path, origin)
    assert (answer.status_code, cors(answer)) == (403, {})


async def test_responses_to_an_allowed_origin(http: httpx.AsyncClient) -> None:
    """The page may read them, errors included, with MCP's headers; other pages may not."""
    for token, status in ((TOKEN, 200), ("wrong", 401)):
        headers = {"authorization": f"Bearer {token}"}
        answer = await http.post("/mcp", json=CALL, headers=headers | {"origin": EDITOR})
        assert answer.status_code == status
        assert answer.headers["access-control-allow-origin"] == EDITOR
        assert answer.headers["access-control-expose-headers"] == (
            "etag, mcp-session-id, retry-after, retry-after-ms, toold-metadata, www-authenticate, x-request-id, "
            "x-should-retry"
        )
        assert answer.headers["vary"] == "origin"
        assert cors(await http.post("/mcp", json=CALL, headers=headers)) == {}
    answer = await http.post("/mcp", json=CALL, headers=headers | {"origin": "http://evil.example"})
    assert (answer.status_code, cors(answer)) == (403, {})


async def test_other_paths_have_no_cors(http: httpx.AsyncClient) -> None:
    """Pages of other sites cannot read the rest of the port; a plain OPTIONS is not a preflight."""
    assert cors(await preflight(http, "/readyz", EDITOR)) == {}
    assert cors(await http.get("/readyz", headers={"origin": EDITOR})) == {}
    answer = await http.options("/mcp", headers={"origin": EDITOR, "authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 405
