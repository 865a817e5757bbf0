"""Signing in at an authorization server of another project (oidc-provider), with dynamic registration, PKCE and
resource indicators; the protected MCP server asks it about each token (RFC 7662).
"""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import httpx
import pytest
import pytest_asyncio
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer
from pydantic import AnyHttpUrl
from tests.chaos.daemon import free_port
from tests.peers.conftest import PEERS, require
from tests.peers.real_servers import NODE
from tests.peers.test_peers import PROGRAMS
from tests.simulated_daemon import TOKEN, simulated_environment
from toold.daemon.access import TokenBook, change_tokens
from toold.daemon.app import Daemon
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.lifecycle import running
from toold.providers.simulator import Simulator
from toold.serving import HttpServer

pytestmark = [pytest.mark.process, pytest.mark.asyncio(loop_scope="module")]

ROBOT_SECRET: Final = "the-secret-of-the-robot-in-tests"
HUB_SECRET: Final = "the-secret-of-the-server-in-tests"
REDIRECT: Final = "http://127.0.0.1:9/callback"
SETTINGS: Final = """
[sources.shared]
type = "mcp"
url = "{url}"
allow_private = true
auth = {{ type = "oauth" }}

[sources.own]
type = "mcp"
url = "{url}"
allow_private = true
auth = {{ type = "oauth", per = "user" }}

[sources.machine]
type = "mcp"
url = "{url}"
allow_private = true
[sources.machine.auth]
type = "oauth"
grant = "client_credentials"
client_id = "robot"
client_secret = {{ env = "ROBOT_SECRET" }}
issuer = "{issuer}"
"""


@dataclass
class Introspection:
    """Asks the authorization server about tokens."""

    issuer: str
    http: httpx.AsyncClient
    seen: dict[str, None] = field(default_factory=dict)
    """The active tokens, in the order of their first use."""

    async def verify_token(self, token: str) -> AccessToken | None:
        answer = await self.http.post(
            f"{self.issuer}/token/introspection", data={"token": token}, auth=("hub", HUB_SECRET)
        )
        said = answer.json()
        if not said.get("active"):
            return None
        self.seen[token] = None
        return AccessToken(
            token=token,
            client_id=said["client_id"],
            scopes=said.get("scope", "").split(),
            expires_at=said.get("exp"),
            resource=said.get("aud"),
            subject=said.get("sub"),
        )


@dataclass
class World:
    """The authorization server, the protected MCP server, and a daemon that has it as three sources."""

    issuer: str
    tokens: Introspection
    daemon: Daemon
    http: httpx.AsyncClient
    callers: dict[str, str]

    async def operator(self, path: str, body: Any = None) -> httpx.Response:
        headers = {"authorization": f"Bearer {TOKEN}"}
        return await self.http.post(f"/operator{path}", json=body, headers=headers)

    async def link(self, source: str = "shared") -> str:
        """The link for the operator's browser."""
        answer = await self.operator(f"/sources/{source}/login?redirect_uri={REDIRECT}")
        assert answer.status_code == 200, answer.text
        return str(answer.json()["url"])

    async def agreed(self, link: str, user: str, *, denied: bool = False) -> dict[str, str]:
        """Follows a link as a browser does, signs in as a user, and agrees; returns the query of the redirect and the
        end of its path.
        """
        async with httpx.AsyncClient(trust_env=False, timeout=60, base_url=self.issuer) as browser:
            answer = await browser.get(link)
            while True:
                if answer.is_redirect:
                    target = answer.headers["location"]
                    if not target.startswith(("/", self.issuer)):
                        redirect = urlsplit(target)
                        path = redirect.path.partition("/callback/")[2]
                        return dict(parse_qsl(redirect.query)) | {"issuer_path": path}
                    answer = await browser.get(target)
                    continue
                assert answer.status_code == 200, answer.text
                action = re.search(r'action="([^"]+)"', answer.text)
                prompt = re.search(r'name="prompt" value="(\w+)"', answer.text)
                assert action is not None, answer.text
                assert prompt is not None, answer.text
                if denied:
                    answer = await browser.get(f"{action[1]}/abort")
                else:
                    form = {"prompt": prompt[1], "login": user, "password": "any"}
                    answer = await browser.post(action[1], data=form)

    async def sign_in(self, source: str, user: str) -> httpx.Response:
        return await self.operator("/login", await self.agreed(await self.link(source), user))

    async def whoami(self, caller: str, source: str) -> dict[str, Any]:
        """The result of the source's tool, called by a principal, once its tools are listed."""
        while (tool := next((one.name for one in self.daemon.sources.tools if one.source == source), None)) is None:
            self.daemon.sources.refresh()
            await asyncio.sleep(0.05)
        await self.daemon.publisher.published()
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {}}}
        headers = {"authorization": f"Bearer {self.callers[caller]}", "mcp-protocol-version": "2025-11-25"}
        answer = await self.http.post("/mcp", json=message, headers=headers)
        assert answer.status_code == 200, answer.text
        return dict(answer.json()["result"])


def said(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(starts_processes: None, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    require("node-servers")
    directory = tmp_path_factory.mktemp("oidc")
    async with AsyncExitStack() as stack:
        stack.enter_context(pytest.MonkeyPatch.context()).setenv("ROBOT_SECRET", ROBOT_SECRET)
        simulator = await stack.enter_async_context(Simulator())
        yield await _opened(directory, simulator, stack)


async def _opened(directory: Path, simulator: Simulator, stack: AsyncExitStack) -> World:
    issuer = f"http://127.0.0.1:{free_port()}"
    asking = await stack.enter_async_context(httpx.AsyncClient(trust_env=False, timeout=60))
    tokens = Introspection(issuer, asking)
    url = await _protected_server(issuer, tokens, stack)
    await _authorization_server(issuer, url, stack)
    (directory / "toold.toml").write_text(SETTINGS.format(url=url, issuer=issuer))
    (directory / "state").mkdir(mode=0o700)
    callers: dict[str, str] = {}
    for name in ("ann", "bob"):

        def add(book: TokenBook, name: str = name) -> TokenBook:
            changed, callers[name] = book.with_new(name, 1.0)
            return changed

        change_tokens(directory / "state", add)
    environment = simulated_environment(directory / "state", simulator, TOOLD_WARM_UP="false")
    daemon = await stack.enter_async_context(running(load_settings({}, env=environment, cwd=directory)))
    base = f"http://127.0.0.1:{daemon.http.port}"
    http = await stack.enter_async_context(httpx.AsyncClient(base_url=base, trust_env=False, timeout=60))
    await daemon.sources.loaded()
    return World(issuer, tokens, daemon, http, callers)


async def _protected_server(issuer: str, tokens: Introspection, stack: AsyncExitStack) -> str:
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    settings = AuthSettings(
        issuer_url=AnyHttpUrl(issuer),
        resource_server_url=AnyHttpUrl(url),
        required_scopes=["read"],
        validate_token_resource=True,
    )
    hub = MCPServer("hub", token_verifier=tokens, auth=settings)

    @hub.tool()
    def whoami() -> str:
        token = get_access_token()
        assert token is not None
        return f"{token.subject or token.client_id} with {token.token}"

    app = hub.streamable_http_app(stateless_http=True, json_response=True)
    # In a separate task: a fixture begins and ends in different tasks, which the manager does not allow.
    started, ended = asyncio.Event(), asyncio.Event()

    async def run() -> None:
        async with hub.session_manager.run():
            started.set()
            await ended.wait()

    managing = asyncio.create_task(run())
    stack.push_async_callback(asyncio.wait, [managing])
    stack.callback(ended.set)
    await started.wait()
    server = HttpServer(app, "127.0.0.1", port, "--hub")
    await server.start()
    stack.push_async_callback(server.close)
    return url


async def _authorization_server(issuer: str, resource: str, stack: AsyncExitStack) -> None:
    package = PEERS / "node-servers/node_modules/oidc-provider"
    program = [str(NODE), str(PROGRAMS / "authorization_server.mjs"), str(package), str(urlsplit(issuer).port)]
    process = await asyncio.create_subprocess_exec(
        *program, resource, ROBOT_SECRET, HUB_SECRET, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )

    async def end() -> None:
        if process.returncode is None:
            process.kill()
        await process.communicate()

    stack.push_async_callback(end)
    assert process.stdout is not None
    assert process.stderr is not None
    while (line := await process.stdout.readline()) != b"ready\n":
        assert line, (await process.stderr.read()).decode()


async def test_the_daemon_registers_signs_in_and_renews(world: World) -> None:
    """The server registers it, gives a token for this resource, and a new one for each refresh token, once."""
    assert (await world.sign_in("shared", "olga")).json() == {"source": "shared"}
    assert said(await world.whoami("ann", "shared")) == "olga with [bound]"
    async with asyncio.timeout(60):  # a token is valid for 4 s
        while len(world.tokens.seen) < 3:
            answers = await asyncio.gather(*(world.whoami(caller, "shared") for caller in ("ann", "bob")))
            assert [said(answer) for answer in answers] == ["olga with [bound]"] * 2
            await asyncio.sleep(0.1)


def changed(link: str, **parameters: str | None) -> str:
    """A link with other parameters; None removes one."""
    parts = urlsplit(link)
    query = {**dict(parse_qsl(parts.query)), **parameters}
    return urlunsplit(parts._replace(query=urlencode({name: one for name, one in query.items() if one is not None})))


@pytest.mark.parametrize(
    "change",
    [
        {"code_challenge": None, "code_challenge_method": None},
        {"code_challenge_method": "plain"},
        {"code_challenge": "short"},
        {"resource": "https://elsewhere.example/mcp"},
    ],
)
async def test_a_link_that_was_changed_signs_nobody_in(world: World, change: dict[str, str | None]) -> None:
    """Without PKCE, with a weaker kind, or for another resource: the server refuses, and the daemon says so."""
    answer = await world.agreed(changed(await world.link(), **change), "olga")
    assert "code" not in answer
    refused = await world.operator("/login", answer)
    assert refused.status_code == 400
    assert f"The authorization server refuses the sign-in ({answer['error']})" in refused.text


async def test_a_code_of_another_verifier_is_refused(world: World) -> None:
    """A stolen code is worthless without the verifier, which is in the daemon."""
    first = await world.agreed(await world.link(), "olga")
    second = await world.agreed(await world.link(), "mallory")
    refused = await world.operator("/login", second | {"code": first["code"]})
    assert refused.status_code == 503
    assert "invalid_grant" in refused.text


async def test_a_challenge_of_another_verifier_is_refused(world: World) -> None:
    """A code that was made for another challenge does not fit this daemon's verifier."""
    link = changed(await world.link(), code_challenge="E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM")
    refused = await world.operator("/login", await world.agreed(link, "olga"))
    assert "invalid_grant" in refused.text


async def test_an_answer_of_another_issuer_is_refused(world: World) -> None:
    """The server names itself in each answer (RFC 9207), so one without its name, or with another, is not its own."""
    for issuer in ({"iss": "https://evil.example"}, {"iss": ""}):
        answer = {**await world.agreed(await world.link(), "olga"), **issuer}
        if not issuer["iss"]:
            del answer["iss"]
        refused = await world.operator("/login", answer)
        assert refused.status_code == 400
        assert "does not come from the sign-in's authorization server (iss)" in refused.text


async def test_a_person_who_declines_is_not_signed_in(world: World) -> None:
    """The error says so."""
    answer = await world.agreed(await world.link(), "olga", denied=True)
    refused = await world.operator("/login", answer)
    assert "access_denied" in refused.text


async def test_each_user_signs_in(world: World) -> None:
    """By the link in the error of their call; each call has the token of its user."""
    assert (await world.sign_in("own", "olga")).status_code == 200  # the daemon lists the tools
    for caller in ("ann", "bob"):
        error = (await world.whoami(caller, "own"))["_meta"]["toold/error"]
        assert error["code"] == "PERMISSION_DENIED", error
        started = await world.http.post(error["details"]["sign_in"]["url"])
        assert started.status_code == 303, started.text
        answer = await world.agreed(started.headers["location"], caller.upper())
        path = f"/oauth/callback/{answer.pop('issuer_path')}"
        assert "Signed in to own" in (await world.http.get(path, params=answer)).text
    for caller in ("ann", "bob"):
        assert said(await world.whoami(caller, "own")) == f"{caller.upper()} with [bound]"


async def test_the_daemon_gets_tokens_by_its_credentials(world: World) -> None:
    """For this resource."""
    assert said(await world.whoami("ann", "machine")) == "robot with [bound]"
