"""What pages of allowed sites may ask for, and read: the daemon's own answers, over real sockets."""

from collections.abc import AsyncIterator, Awaitable, Callable

import httpx
import pytest
from toold.daemon.access import WELL_KNOWN
from toold.daemon.app import Daemon

EDITOR = "https://editor.example"
CALL = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
TOKEN = "the-token-of-this-daemon-0123456789"


@pytest.fixture
async def http(serve: Callable[..., Awaitable[Daemon]]) -> AsyncIterator[httpx.AsyncClient]:
    daemon = await serve(TOOLD_ALLOWED_ORIGINS=EDITOR, TOOLD_AUTH="true", TOOLD_TOKEN=TOKEN)
    base = f"http://127.0.0.1:{daemon.http.port}"
    async with httpx.AsyncClient(base_url=base, trust_env=False) as client:
        yield client


def preflight(http: httpx.AsyncClient, path: str, origin: str) -> Awaitable[httpx.Response]:
    asked = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type"}
    return http.options(path, headers={"origin": origin, **asked})


def cors(answer: httpx.Response) -> dict[str, str]:
    """The headers that speak to a browser."""
    return {name: value for name, value in answer.headers.items() if name.startswith("access-control-")}


@pytest.mark.parametrize("path", ["/mcp", "/mcp/lean", WELL_KNOWN])
async def test_a_preflight_of_an_allowed_page(http: httpx.AsyncClient, path: str) -> None:
    """It is told, without a token, that its origin may send what MCP's clients send; and nothing of credentials."""
    answer = await preflight(http, path, EDITOR)
    told = cors(answer)
    assert (answer.status_code, answer.content, answer.headers["vary"]) == (204, b"", "origin")
    assert told["access-control-allow-origin"] == EDITOR
    assert "POST" in told["access-control-allow-methods"]
    headers = told["access-control-allow-headers"].split(", ")
    assert {"authorization", "content-type", "mcp-protocol-version", "mcp-session-id", "mcp-method"} <= set(headers)
    assert "access-control-allow-credentials" not in told


@pytest.mark.parametrize("path", ["/mcp", "/mcp/lean"])
@pytest.mark.parametrize("origin", ["http://evil.example", "https://editor.example.evil.example", "null"])
async def test_a_preflight_of_another_page(http: httpx.AsyncClient, path: str, origin: str) -> None:
    """It is refused, and told nothing by which its browser would go on."""
    answer = await preflight(http, path, origin)
    assert (answer.status_code, cors(answer)) == (403, {})


async def test_answers_to_an_allowed_page(http: httpx.AsyncClient) -> None:
    """It may read them, with the headers that MCP puts there, whether it was let in or not; others may not."""
    for token, status in ((TOKEN, 200), ("wrong", 401)):
        headers = {"authorization": f"Bearer {token}"}
        answer = await http.post("/mcp", json=CALL, headers=headers | {"origin": EDITOR})
        assert answer.status_code == status
        assert answer.headers["access-control-allow-origin"] == EDITOR
        assert answer.headers["access-control-expose-headers"] == "mcp-session-id, retry-after, www-authenticate"
        assert answer.headers["vary"] == "origin"
        assert cors(await http.post("/mcp", json=CALL, headers=headers)) == {}
    answer = await http.post("/mcp", json=CALL, headers=headers | {"origin": "http://evil.example"})
    assert (answer.status_code, cors(answer)) == (403, {})


async def test_the_rest_of_the_port_is_for_no_page(http: httpx.AsyncClient) -> None:
    """What the port says of the daemon, no page of another site may read; an OPTIONS that is no preflight is none."""
    assert cors(await preflight(http, "/readyz", EDITOR)) == {}
    assert cors(await http.get("/readyz", headers={"origin": EDITOR})) == {}
    answer = await http.options("/mcp", headers={"origin": EDITOR, "authorization": f"Bearer {TOKEN}"})
    assert answer.status_code == 405
