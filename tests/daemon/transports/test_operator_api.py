"""The operator's HTTP routes: who is let in, what is asked for, and what is told."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from starlette.responses import Response
from toold.daemon.access.authentication import token_check
from toold.daemon.transports.http_port import side_app
from toold.daemon.transports.operator_api import operator_app
from toold.protocol.error_codes import InvalidArgumentsError, NotFoundError
from toold.serving import HttpServer

TOKEN = "the-token-of-the-daemon"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
ROUTES = [("GET", "/operator/calls"), ("POST", "/operator/calls/1/cancel"), ("POST", "/operator/reload")]


class Desk:
    """Notes what is asked for."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    async def calls(self, recent: int) -> dict[str, Any]:
        self.asked.append(("calls", recent))
        return {"running": [], "recent": []}

    async def cancel(self, given: str) -> dict[str, Any]:
        self.asked.append(("cancel", given))
        if given == "none":
            raise NotFoundError("No such call.")
        return {"id": given}

    async def reload(self) -> dict[str, Any]:
        self.asked.append("reload")
        raise InvalidArgumentsError("port (toold.toml): must be a whole number")

    async def sources(self) -> dict[str, Any]:
        self.asked.append("sources")
        return {"sources": []}

    async def approve(self, source: str, tool: str | None) -> dict[str, Any]:
        self.asked.append(("approve", source, tool))
        return {"approved": [tool]}

    async def stubs(self, toolset: str) -> dict[str, Any]:
        self.asked.append(("stubs", toolset))
        return {"modules": {}}


@pytest.fixture
def desk() -> Desk:
    return Desk()


def app(desk: Desk, *, token: str | None = TOKEN, host: str = "127.0.0.1", loopback_only: bool = False) -> Any:
    operator = operator_app(desk, authenticate=token_check(SecretStr(token) if token else None), host=host)
    return side_app(
        health=dict,
        metrics=bytes,
        mcp=Response(),
        resource=lambda _: None,
        operator=operator,
        loopback_only=loopback_only,
        allowed_origins=(),
    )


@pytest.fixture
async def client(desk: Desk) -> AsyncIterator[httpx.AsyncClient]:
    """Over a real socket, as the command does it."""
    server = HttpServer(app(desk, loopback_only=True), "127.0.0.1", 0, "--http-port")
    await server.start()
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", trust_env=False) as client:
        yield client
    await server.close()


def peer(desk: Desk, address: str, *, url: str = "http://127.0.0.1", **options: Any) -> httpx.AsyncClient:
    """A peer with an address of its own, which a test's sockets cannot have."""
    transport = httpx.ASGITransport(app=app(desk, **options), client=(address, 50000))
    return httpx.AsyncClient(transport=transport, base_url=url, headers=BEARER)


async def test_with_the_token_it_answers(client: httpx.AsyncClient, desk: Desk) -> None:
    """Each route asks for its own, and no answer may be kept by anybody."""
    answer = await client.get("/operator/calls?recent=7", headers=BEARER)
    assert (answer.status_code, answer.json()) == (200, {"running": [], "recent": []})
    assert answer.headers["cache-control"] == "no-store"
    for call_id in ("0a-1", "0a-1/batch%2F2", ""):
        answer = await client.post(f"/operator/calls/{call_id}/cancel", headers=BEARER)
        assert answer.json() == {"id": call_id.replace("%2F", "/")}
    assert (await client.get("/operator/stubs/full", headers=BEARER)).json() == {"modules": {}}
    approved = await client.post("/operator/sources/fs/approve?tool=read", headers=BEARER)
    assert approved.json() == {"approved": ["read"]}
    cancelled = [("cancel", call_id) for call_id in ("0a-1", "0a-1/batch/2", "")]
    assert desk.asked == [("calls", 7), *cancelled, ("stubs", "full"), ("approve", "fs", "read")]


async def test_a_refusal_has_its_words_and_its_status(client: httpx.AsyncClient) -> None:
    """404 for a call that is not there, 400 for a configuration that is wrong."""
    missing = await client.post("/operator/calls/none/cancel", headers=BEARER)
    assert (missing.status_code, missing.json()["error"]) == (404, {"code": "NOT_FOUND", "message": "No such call."})
    wrong = await client.post("/operator/reload", headers=BEARER)
    assert (wrong.status_code, wrong.json()["error"]["message"]) == (400, "port (toold.toml): must be a whole number")
    assert wrong.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "authorization", [None, "Bearer", f"Bearer {TOKEN}x", TOKEN, f"Basic {TOKEN}", "Bearer \udcff"]
)
@pytest.mark.parametrize(("method", "path"), [*ROUTES, ("GET", "/operator/nothing"), ("POST", "/operator/calls")])
async def test_without_the_token_nothing_is_told(
    client: httpx.AsyncClient, desk: Desk, method: str, path: str, authorization: str | None
) -> None:
    """401 on every path, there or not, and nothing is asked for."""
    headers = {} if authorization is None else {"Authorization": authorization.encode("utf-8", "surrogateescape")}
    refused = await client.request(method, path, headers=headers)  # type: ignore[arg-type] # bytes are taken too
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == "Bearer"
    assert refused.headers["cache-control"] == "no-store"
    assert TOKEN not in refused.text
    assert desk.asked == []


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/operator/reload", 405), ("GET", "/operator/calls/1/cancel", 405), ("GET", "/operator/nothing", 404)],
)
async def test_what_changes_something_is_posted(
    client: httpx.AsyncClient, desk: Desk, method: str, path: str, status: int
) -> None:
    """A link or an image can ask for nothing; the answer names the method that can, and is not kept either."""
    refused = await client.request(method, path, headers=BEARER)
    assert refused.status_code == status
    assert path in refused.json()["error"]["message"]
    assert status == 404 or "POST" in refused.json()["error"]["message"]
    assert refused.headers["cache-control"] == "no-store"
    assert desk.asked == []


@pytest.mark.parametrize("recent", ["-1", "101", "x", "", "1e1", "٣"])
async def test_how_many_is_a_number_in_its_bounds(client: httpx.AsyncClient, recent: str) -> None:
    """Else the bounds are told."""
    refused = await client.get("/operator/calls", params={"recent": recent}, headers=BEARER)
    assert refused.status_code == 400
    assert "0 to 100" in refused.json()["error"]["message"]


@pytest.mark.parametrize("header", [{"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"},
                                    {"Origin": "http://127.0.0.1"}])  # fmt: skip
@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize("token", [TOKEN, None], ids=["with a token", "auth off"])
async def test_no_web_page_is_let_in(
    desk: Desk, header: dict[str, str], method: str, path: str, token: str | None
) -> None:
    """Neither by a name that was rebound to this machine nor across origins, also where no token is asked for."""
    async with peer(desk, "127.0.0.1", token=token) as page:
        assert (await page.request(method, path, headers=header)).status_code == 403
    assert desk.asked == []


async def test_where_auth_is_off_no_token_is_needed(desk: Desk) -> None:
    """Auth is off on loopback alone; a token that is sent all the same does no harm."""
    async with peer(desk, "127.0.0.1", token=None) as anybody:
        assert (await anybody.get("/operator/calls")).status_code == 200
        del anybody.headers["Authorization"]
        assert (await anybody.get("/operator/calls")).status_code == 200


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_from_another_machine_not_even_the_token_helps(desk: Desk, method: str, path: str) -> None:
    """It would have come unencrypted."""
    async with peer(desk, "192.0.2.7", url="http://192.0.2.1", host="192.0.2.1") as stranger:
        assert (await stranger.request(method, path)).status_code == 403
    assert desk.asked == []


@pytest.mark.parametrize("name", ["Forwarded", "Via", "X-Forwarded-For", "X-Real-IP"])
async def test_behind_a_proxy_nobody_is_of_this_machine(desk: Desk, name: str) -> None:
    """A proxy on this machine speaks for peers that are not."""
    async with peer(desk, "127.0.0.1") as proxy:
        assert (await proxy.get("/operator/calls", headers={name: "192.0.2.7"})).status_code == 403


@pytest.mark.parametrize(
    ("url", "host"),
    [("http://192.0.2.1", "192.0.2.1"), ("http://[2001:db8::1]", "2001:db8::1")],
)
async def test_this_machine_is_let_in_by_its_own_address(desk: Desk, url: str, host: str) -> None:
    """Where the daemon listens on that alone, a command here comes from there."""
    async with peer(desk, httpx.URL(url).host, url=url, host=host) as here:
        assert (await here.get("/operator/calls")).status_code == 200


async def test_this_machine_is_let_in_by_the_name_that_the_operator_gave_it(desk: Desk) -> None:
    """In whichever case; another name is refused."""
    async with peer(desk, "192.0.2.1", url="http://192.0.2.1", host="Box.lan") as here:
        assert (await here.get("/operator/calls", headers={"Host": "box.LAN:8080"})).status_code == 200
        assert (await here.get("/operator/calls", headers={"Host": "other.lan:8080"})).status_code == 403
