"""An authorization server and a protected MCP server, both of the official SDK, and a daemon that signs in there."""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.routes import create_auth_routes
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send
from tests.simulated_daemon import TOKEN, simulated_environment
from tests.waiting import until
from toold.daemon.access import TokenBook, change_tokens
from toold.daemon.app import Daemon
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.lifecycle import running
from toold.providers.simulator import Simulator
from toold.serving import HttpServer

SETTINGS: Final = """
[sources.shared]
type = "mcp"
url = "{url}/mcp"
allow_private = true
auth = {{ type = "oauth" }}

[sources.own]
type = "mcp"
url = "{url}/mcp"
allow_private = true
auth = {{ type = "oauth", per = "user" }}

[sources.machine]
type = "mcp"
url = "{url}/mcp"
allow_private = true
[sources.machine.auth]
type = "oauth"
grant = "client_credentials"
client_id = "robot"
client_secret = {{ env = "ROBOT_SECRET" }}
issuer = "{url}/machine"
"""
ROBOT_SECRET: Final = "the-secret-of-the-robot"

Override = Callable[[Request], Awaitable[ASGIApp]]


class Grants(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """What the authorization server stores. Everybody who opens its page is ``user``, and agrees."""

    def __init__(self) -> None:
        self.user = "nobody"
        self.lifetime_s = 3600
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}
        self.refreshed = 0
        self.issued: list[str] = []
        """All tokens."""

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        code = AuthorizationCode(
            code=secrets.token_hex(16),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=True,
            resource=params.resource,
            subject=self.user,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self.issue(
            client.client_id, authorization_code.scopes, authorization_code.subject, authorization_code.resource
        )

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        if self.refresh.pop(refresh_token.token, None) is None:
            raise TokenError("invalid_grant")
        self.refreshed += 1
        return self.issue(
            client.client_id, scopes or refresh_token.scopes, refresh_token.subject, refresh_token.resource
        )

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    verify_token = load_access_token

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.access.pop(token.token, None)

    def issue(self, client: str, scopes: list[str], subject: str | None, resource: str | None) -> OAuthToken:
        """Tokens that can be used once: a refresh ends the refresh token."""
        access, refresh = f"at-{secrets.token_hex(16)}", f"rt-{secrets.token_hex(16)}"
        self.issued += [access, refresh]
        ends = int(time.time()) + 3600
        self.access[access] = AccessToken(
            token=access, client_id=client, scopes=scopes, expires_at=ends, subject=subject, resource=resource
        )
        self.refresh[refresh] = RefreshToken(
            token=refresh, client_id=client, scopes=scopes, subject=subject, resource=resource
        )
        return OAuthToken(
            access_token=access, refresh_token=refresh, expires_in=self.lifetime_s, scope=" ".join(scopes) or None
        )


class Servers:
    """Both servers on one port. ``overrides`` replace the answer at a path; ``asked`` has the requests."""

    def __init__(self) -> None:
        self.grants = Grants()
        self.overrides: dict[str, Override] = {}
        self.asked: list[tuple[str, str]] = []
        self._auth: ASGIApp | None = None
        self._mcp: ASGIApp | None = None

    async def open(self, url: str, stack: AsyncExitStack) -> None:
        options = ClientRegistrationOptions(enabled=True, default_scopes=["read"], valid_scopes=["read", "write"])
        self._auth = Starlette(routes=create_auth_routes(self.grants, AnyHttpUrl(url), None, options))
        settings = AuthSettings(
            issuer_url=AnyHttpUrl(url),
            resource_server_url=AnyHttpUrl(f"{url}/mcp"),
            required_scopes=["read"],
            validate_token_resource=True,
        )
        server = MCPServer("hub", token_verifier=self.grants, auth=settings)

        @server.tool()
        def whoami() -> str:
            token = get_access_token()
            assert token is not None
            return f"{token.subject or token.client_id} with {token.token}"

        self._mcp = server.streamable_http_app(stateless_http=True, json_response=True)
        # In a separate task: a fixture begins and ends in different tasks, which the manager does not allow.
        started, ended = asyncio.Event(), asyncio.Event()

        async def run() -> None:
            async with server.session_manager.run():
                started.set()
                await ended.wait()

        running_manager = asyncio.create_task(run())
        stack.push_async_callback(asyncio.wait, [running_manager])
        stack.callback(ended.set)
        await started.wait()

    @property
    def mcp(self) -> ASGIApp:
        """The protected server."""
        assert self._mcp is not None
        return self._mcp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        self.asked.append((scope["method"], path))
        override = self.overrides.get(path)
        app = self._mcp if path.startswith(("/mcp", "/.well-known/oauth-protected-resource")) else self._auth
        if override is not None:
            app = await override(Request(scope, receive))
        assert app is not None
        await app(scope, receive, send)


@dataclass
class OAuthWorld:
    """The daemon, and its callers."""

    servers: Servers
    url: str
    daemon: Daemon
    http: httpx.AsyncClient
    directory: Path
    tokens: dict[str, str] = field(default_factory=dict)

    @property
    def grants(self) -> Grants:
        return self.servers.grants

    async def operator(self, method: str, path: str, body: Any = None) -> httpx.Response:
        headers = {"authorization": f"Bearer {TOKEN}"}
        return await self.http.request(method, f"/operator{path}", json=body, headers=headers)

    async def link(self, source: str = "shared") -> str:
        """The link for the operator's browser."""
        answer = await self.operator("POST", f"/sources/{source}/login?redirect_uri=http://127.0.0.1:9/callback")
        assert answer.status_code == 200, answer.text
        return str(answer.json()["url"])

    async def agree(self, link: str, user: str) -> dict[str, str]:
        """Opens a link as a user, who agrees; returns the query of the redirect, and the end of its path."""
        self.grants.user = user
        answer = await self.http.get(link)
        assert answer.status_code == 302, answer.text
        redirect = urlsplit(answer.headers["location"])
        return dict(parse_qsl(redirect.query)) | {"issuer_path": redirect.path.partition("/callback/")[2]}

    async def redirected(self, answer: dict[str, str]) -> httpx.Response:
        """Follows the redirect of a user's sign-in."""
        query = {name: value for name, value in answer.items() if name != "issuer_path"}
        return await self.http.get(f"/oauth/callback/{answer['issuer_path']}", params=query)

    async def sign_in(self, user: str = "operator", source: str = "shared") -> httpx.Response:
        """The daemon's own sign-in."""
        return await self.operator("POST", "/login", await self.agree(await self.link(source), user))

    async def ready(self, source: str) -> None:
        """Returns when the tools of a source are listed."""
        await self._state_with(source, lambda state: state["state"] == "ready" and state["tools"])
        await self.daemon.publisher.published()

    async def state(self, source: str) -> dict[str, Any]:
        states = (await self.operator("GET", "/sources")).json()["sources"]
        return next(dict(state) for state in states if state["name"] == source)

    async def problem(self, source: str, text: str) -> str:
        """The problem of a source, when it has this text."""
        return str((await self._state_with(source, lambda state: text in (state["problem"] or "")))["problem"])

    async def _state_with(self, source: str, reached: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """The state of a source, once ``reached`` is true of it; the source is read again until then."""
        states: list[dict[str, Any]] = []

        async def look() -> object:
            states.append(await self.state(source))
            found = reached(states[-1])
            if not found:
                self.daemon.sources.refresh()
            return found

        try:
            await until(look)
        except TimeoutError:
            pytest.fail(
                f"after {len(states)} looks, the source is {states[-1]}; the last requests: {self.servers.asked[-8:]}"
            )
        return states[-1]

    async def whoami(self, principal: str, source: str) -> dict[str, Any]:
        """The result of the source's tool, called by a principal."""
        tool = next(tool.name for tool in self.daemon.sources.tools if tool.source == source)
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": {}}}
        token = TOKEN if principal == "local" else self.tokens[principal]
        # Without `accept`, a call that takes long is answered with events.
        headers = {"accept": "application/json", "mcp-protocol-version": "2025-06-18"}
        headers["authorization"] = f"Bearer {token}"
        answer = await self.http.post("/mcp", json=message, headers=headers)
        assert answer.status_code == 200, answer.text
        return dict(answer.json()["result"])


async def open_oauth_world(directory: Path, simulator: Simulator, stack: AsyncExitStack) -> OAuthWorld:
    """A started daemon with three sources: the daemon signs in, each user does, and by client credentials."""
    servers = Servers()
    server = HttpServer(servers, "127.0.0.1", 0, "--oauth")
    await server.start()
    stack.push_async_callback(server.close)
    url = f"http://127.0.0.1:{server.port}"
    await servers.open(url, stack)
    (directory / "toold.toml").write_text(SETTINGS.format(url=url))
    (directory / "state").mkdir(mode=0o700)
    tokens: dict[str, str] = {}
    for name in ("ann", "bob"):

        def add(book: TokenBook, name: str = name) -> TokenBook:
            changed, tokens[name] = book.with_new(name, 1.0)
            return changed

        change_tokens(directory / "state", add)
    environment = simulated_environment(directory / "state", simulator, TOOLD_WARM_UP="false")
    daemon = await stack.enter_async_context(running(load_settings({}, env=environment, cwd=directory)))
    base = f"http://127.0.0.1:{daemon.http.port}"
    http = await stack.enter_async_context(httpx.AsyncClient(base_url=base, trust_env=False, timeout=60))
    await daemon.sources.loaded()
    return OAuthWorld(servers, url, daemon, http, directory, tokens)
