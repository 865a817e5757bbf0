"""The table of docs/tokens.md: what each kind of token sees and may do, over WebSocket, MCP and the command line."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Literal

import httpx
import pytest
import pytest_asyncio
from click.testing import CliRunner
from structlog.testing import capture_logs
from toold.cli.command_line import toold
from toold.client import MCPWebSocketClient
from toold.daemon.access import TokenBook, change_tokens
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.config.settings_mapping import tool_catalog
from toold.daemon.lifecycle import running
from toold.protocol.error_codes import CallError, ToolExecutionError
from toold.tools import Arguments, ToolContext, tool
from websockets.asyncio.client import connect

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from toold.daemon.app import Daemon

    from .conftest import Issuer

pytestmark = pytest.mark.asyncio(loop_scope="module")

OWN = "the-token-of-the-daemon"
VIA = ("websocket", "mcp", "cli")
OPERATORS = ("local", "operator token", "oauth operator")
OTHERS = ("named token", "named token with toolset", "oauth subject")
via_each = pytest.mark.parametrize("via", VIA)


class LeakArguments(Arguments):
    """The words of an error, and its kind."""

    text: str
    kind: Literal["call error", "other"]


@dataclass
class World:
    """One daemon for all tests, and callers with tokens of every kind."""

    daemon: Daemon
    issuer: Issuer
    state: Path
    numbers: count[int] = field(default_factory=count)

    def token(self, kind: str) -> str | None:
        """Returns a token of this kind whose principal no other test has."""
        name = f"{kind.replace(' ', '-')}-{next(self.numbers)}"
        match kind:
            case "none":
                return None
            case "local":
                return OWN
            case "oauth subject" | "oauth operator":
                scope = "tools operate" if kind == "oauth operator" else "tools"
                return self.issuer.token(sub=name, scope=scope)
        created: list[str] = []

        def add(book: TokenBook) -> TokenBook:
            toolsets = ("few",) if kind == "named token with toolset" else ()
            changed, token = book.with_new(name, 1.0, toolsets=toolsets, operator=kind == "operator token")
            created.append(token)
            return changed

        change_tokens(self.state, add)
        return created[0]

    async def call(self, via: str, token: str | None, tool: str, /, **arguments: Any) -> Any:
        """Returns the data of a tool's result.

        Raises:
            CallError: the call failed, or the caller was refused.
        """
        match via:
            case "websocket":
                return await self._by_websocket(token, tool, arguments)
            case "mcp":
                return await self._by_mcp(token, tool, arguments)
            case _:
                return await self._by_command(token, tool, arguments)

    async def get(self, path: str, token: str | None = None) -> httpx.Response:
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        address = f"http://127.0.0.1:{self.daemon.http.port}"
        async with httpx.AsyncClient(base_url=address, trust_env=False, headers=headers, verify=False) as client:
            return await client.get(path)

    async def _by_websocket(self, token: str | None, tool: str, arguments: dict[str, Any]) -> Any:
        client = MCPWebSocketClient(self.daemon.address().url, token=token or "")
        if not await client.connect(max_retries=1):
            raise CallError(str(client.last_error))
        async with client:
            return (await client.call(tool, arguments, timeout=60)).structured

    async def _by_mcp(self, token: str | None, tool: str, arguments: dict[str, Any]) -> Any:
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        headers = {"accept": "application/json", "mcp-protocol-version": "2025-06-18"} | (
            {} if token is None else {"authorization": f"Bearer {token}"}
        )
        address = f"http://127.0.0.1:{self.daemon.http.port}"
        async with httpx.AsyncClient(
            base_url=address, trust_env=False, headers=headers, timeout=60, verify=False
        ) as client:
            answer = await client.post("/mcp", json=message)
        result = answer.json().get("result")
        if answer.status_code != 200 or result is None or result.get("isError"):
            raise CallError(result["content"][0]["text"] if result else answer.text)
        return result.get("structuredContent")

    async def _by_command(self, token: str | None, tool: str, arguments: dict[str, Any]) -> Any:
        words = [f"{name}:={json.dumps(value)}" for name, value in arguments.items()]
        ran = await self.command(token, "call", tool, *words, "--json")
        lines = [line for line in ran.stdout.splitlines() if line.startswith("{")]  # the daemon logs there too
        answer = json.loads(lines[0]) if lines else {"error": {"message": ran.output}}
        if answer.get("error"):
            raise CallError(answer["error"]["message"])
        return answer["structured"]

    async def command(self, token: str | None, *words: str) -> Any:
        """Runs a command with this token in another thread."""
        env = {"TOOLD_STATE_DIR": str(self.state), "TOOLD_TOKEN": token or "none-of-this-daemon"}
        return await asyncio.to_thread(CliRunner(env=env).invoke, toold, words)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory, shared_issuer: Issuer) -> AsyncIterator[World]:
    directory = tmp_path_factory.mktemp("rights")
    (directory / "toold.toml").write_text(
        '[oauth_scopes]\ntools = ["standard"]\n[toolsets.few]\ninclude = ["echo", "status", "health", "self-check"]\n'
    )
    env = {
        "TOOLD_PORT": "0",
        "TOOLD_HTTP_PORT": "0",
        "TOOLD_STATE_DIR": str(directory / "state"),
        "TOOLD_TOKEN": OWN,
        "TOOLD_SIMULATE": "true",
        "TOOLD_KIMI_SDK": "http",
        "TOOLD_GLM_SDK": "http",
        "TOOLD_GRACE_PERIOD_S": "0.1",
        "TOOLD_OAUTH_ISSUER": shared_issuer.url,
        "TOOLD_OAUTH_RESOURCE": "https://tools.example/mcp",
        "TOOLD_OAUTH_OPERATOR_SCOPE": "operate",
        "TOOLD_WORKSPACE": str(directory),
    }
    async with running(load_settings({}, env=env, cwd=directory)) as daemon:
        yield World(daemon, shared_issuer, directory / "state")


async def marked_call(world: World, via: str, token: str | None) -> str:
    """Makes one call whose row can be recognized; returns its principal's name once the row is written."""
    await world.call(via, token, "echo", text="mark")
    await world.daemon.store.flush()
    (row,) = await world.daemon.store.audit.recent(1)
    return row.principal


def principals(status: dict[str, Any]) -> set[str]:
    return {call["principal"] for call in status["recent"]}


@via_each
@pytest.mark.parametrize("kind", OTHERS)
async def test_a_principal_sees_its_own_calls_only(world: World, kind: str, via: str) -> None:
    """``status`` has its own recent calls, sums and errors, nothing of other principals, and no counts of the audit."""
    bystander = await marked_call(world, "websocket", world.token("named token"))
    token = world.token(kind)
    own = await marked_call(world, via, token)
    assert own != bystander
    status = await world.call(via, token, "status", recent=100)
    assert principals(status) == {own}
    assert status["totals"]["all"]["calls"] == status["totals"]["by_tool"]["echo"]["calls"] == 1
    assert "audit" not in status
    assert {"limits", "providers", "version"} <= status.keys()
    assert bystander not in json.dumps(status)


@via_each
@pytest.mark.parametrize("kind", OPERATORS)
async def test_an_operator_sees_the_calls_of_all(world: World, kind: str, via: str) -> None:
    """``status`` has the recent calls and sums of every principal, and the state of the audit."""
    names = {await marked_call(world, via, world.token(other)) for other in OTHERS}
    status = await world.call(via, world.token(kind), "status", recent=100)
    assert len(names) == 3
    assert names <= principals(status)
    assert status["totals"]["all"]["calls"] >= 3
    assert status["audit"]["dropped"] == 0


@via_each
async def test_a_caller_without_a_token_may_do_nothing(world: World, via: str) -> None:
    """It is refused on every transport."""
    with pytest.raises(CallError):
        await world.call(via, world.token("none"), "version")


async def test_pages_without_a_token_have_no_principal(world: World) -> None:
    """``/readyz`` and ``/metrics`` count the calls of all, and name no principal, session or problem's reason."""
    own = await marked_call(world, "websocket", world.token("named token"))
    world.daemon.view.reload_error = "/etc/secret-place is not readable"
    try:
        pages = [(await world.get(path)).text for path in ("/readyz", "/metrics", "/healthz", "/")]
    finally:
        world.daemon.view.reload_error = None
    assert "the new configuration is refused; the old one stays in effect" in pages[0]
    assert not any(word in page for page in pages for word in (own, "secret-place"))


@via_each
async def test_the_reason_of_a_problem_is_for_operators(world: World, via: str) -> None:
    """In ``health``, ``status`` and ``self-check``; others see that there is a problem."""
    world.daemon.view.reload_error = "/etc/secret-place is not readable"
    world.daemon.store._reader.damage = "page 7 of /var/secret-place: restore a backup"
    try:
        for kind, shown in (("operator token", True), ("named token", False)):
            token = world.token(kind)
            for tool in ("health", "status", "self-check"):
                answer = json.dumps(await world.call(via, token, tool))
                assert ("secret-place" in answer) == shown, (kind, tool)
                assert tool == "self-check" or "the database is damaged" in answer or shown
    finally:
        world.daemon.view.reload_error = world.daemon.store._reader.damage = None


async def test_operator_commands_need_the_right(world: World) -> None:
    """``toold calls`` works with each operator's token; with another it is refused, and says why."""
    for kind in OPERATORS:
        ran = await world.command(world.token(kind), "calls", "--json")
        assert ran.exit_code == 0, ran.output
    for kind in OTHERS:
        ran = await world.command(world.token(kind), "calls", "--json")
        assert ran.exit_code == 1
        assert "no operator right" in ran.output
    assert (await world.command(None, "calls", "--json")).exit_code == 3


async def test_a_resumed_session_has_the_right_of_its_new_token(world: World) -> None:
    """A token of the same name without the right does not get it from the session."""
    tokens: list[str] = []

    def replace(book: TokenBook, *, operator: bool) -> TokenBook:
        free = book.revoked("resumes", 2.0) if tokens else book
        changed, token = free.with_new("resumes", 3.0, operator=operator)
        tokens.append(token)
        return changed

    hello = {"op": "hello", "features": ["resume"]}
    change_tokens(world.state, lambda book: replace(book, operator=True))
    async with connect(world.daemon.address().url) as socket:
        await socket.send(json.dumps({**hello, "token": tokens[-1]}))
        key = json.loads(await socket.recv())["resume_key"]
        change_tokens(world.state, lambda book: replace(book, operator=False))
        await socket.wait_closed()
    async with connect(world.daemon.address().url) as socket:
        await socket.send(json.dumps({**hello, "token": tokens[-1], "resume": {"key": key}}))
        assert json.loads(await socket.recv())["resumed"]
        await socket.send(json.dumps({"op": "call_tool", "request_id": "s", "name": "status", "arguments": {}}))
        while (frame := json.loads(await socket.recv()))["op"] != "call_tool_res":
            pass
        assert "audit" not in frame["structured"]


async def upload(world: World, via: str, token: str | None, name: str) -> str:
    """Uploads a new file to Kimi and returns its id."""
    path = world.state.parent / name
    path.write_text(f"the text of {name}")
    uploaded = await world.call(via, token, "kimi_upload_files", files=[str(path)])
    return str(uploaded["files"][0]["file_id"])


async def listed(world: World, via: str, token: str | None) -> set[str]:
    files = (await world.call(via, token, "kimi_manage_files", operation="list", limit=1000))["files"]
    return {file["file_id"] for file in files}


USES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("kimi_manage_files", {"operation": "info", "file_id": "ID"}),
    ("smart_file_download", {"file_id": "ID"}),
    ("smart_file_query", {"file_id": "ID", "question": "What?", "model": "kimi-k2.6"}),
    ("kimi_chat_with_files", {"file_ids": ["ID"], "prompt": "What?", "model": "kimi-k2.6"}),
    ("kimi_manage_files", {"operation": "delete", "file_id": "ID"}),
)
"""Every use of a file at a vendor, the last one its deletion."""


def with_id(arguments: dict[str, Any], file_id: str) -> dict[str, Any]:
    filled = json.dumps(arguments).replace("ID", file_id)
    return dict(json.loads(filled))


@via_each
async def test_a_vendor_file_belongs_to_its_principal(world: World, via: str) -> None:
    """It alone lists, reads, asks about and deletes the file. For another one the file does not exist: the answer is
    that for an id that no file has.
    """
    owner, other = world.token("named token"), world.token("oauth subject")
    file_id = await upload(world, via, owner, f"own-{via}.txt")
    foreign = await upload(world, via, other, f"other-{via}.txt")
    assert await listed(world, via, owner) == {file_id}
    for name, arguments in USES:
        answers = []
        for used in (file_id, "f" * len(file_id)):
            with pytest.raises(CallError) as refused:
                await world.call(via, other, name, **with_id(arguments, used))
            answers.append(str(refused.value).replace(used, "ID"))
        assert "You have no file" in answers[0]
        assert answers[0] == answers[1]
    planned = await world.call(
        via, other, "kimi_manage_files", operation="cleanup_expired", older_than_days=0, dry_run=False
    )
    assert (planned["matching"], planned["deleted"]) == (1, 1)
    assert foreign not in await listed(world, "websocket", OWN)
    for name, arguments in USES:
        await world.call(via, owner, name, **with_id(arguments, file_id))
    assert await listed(world, via, owner) == set()


@via_each
@pytest.mark.parametrize("kind", OPERATORS)
async def test_an_operator_manages_all_vendor_files(world: World, kind: str, via: str) -> None:
    """Those of each principal, and those that toold did not upload."""
    token = world.token(kind)
    file_id = await upload(world, "websocket", world.token("named token"), "managed.txt")
    kimi: Any = world.daemon.vendors.providers["kimi"].files
    elsewhere = (await kimi.upload("elsewhere.txt", b"text", "file-extract", timeout_s=30)).id
    assert {file_id, elsewhere} <= await listed(world, via, token)
    assert elsewhere not in await listed(world, via, world.token("named token"))
    for used in (file_id, elsewhere):
        for name, arguments in USES:
            await world.call(via, token, name, **with_id(arguments, used))


@tool("leaks", read_only=True, open_world=False)
async def leaks(arguments: LeakArguments, _context: ToolContext) -> str:
    """Fails with words of its arguments."""
    if arguments.kind == "call error":
        raise ToolExecutionError(f"There is no {arguments.text}.")
    raise ValueError(arguments.text)


@via_each
async def test_words_of_an_error_reach_its_caller_only(world: World, via: str) -> None:
    """Database, log and ``status`` have code, exception type and place, but no words of arguments or tools."""
    if "leaks" not in world.daemon.registry:
        world.daemon.replace_catalog(tool_catalog(world.daemon.settings, world.daemon.registry.with_more([leaks])))
    text = f"patient Jane Roe of {via}"
    token = world.token("named token")
    with capture_logs() as lines:
        with pytest.raises(CallError, match=text):
            await world.call(via, token, "leaks", text=text, kind="call error")
        with pytest.raises(CallError, match="failed with ValueError"):
            await world.call(via, token, "leaks", text=text, kind="other")
        with pytest.raises(CallError):
            await world.call("websocket" if via == "cli" else via, token, "leaks", text=text, kind=text)
    assert [line["error"] for line in lines if line["event"] == "tool failed"] == ["ValueError"]
    assert text not in repr([{**line, "exc_info": None} for line in lines])
    await world.daemon.store.flush()
    for reader in (token, OWN):
        status = await world.call("websocket", reader, "status", recent=100)
        messages = [call["message"] for call in status["recent"] if call["tool"] == "leaks"]
        failed = "The tool leaks failed with ValueError; the daemon's log says where."
        assert messages[:3] == ["fields: kind", failed, None]
        assert text not in json.dumps(status)
    with closing(sqlite3.connect(world.daemon.store.path)) as database:
        assert text not in "".join(database.iterdump())
