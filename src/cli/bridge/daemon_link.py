"""The way to the daemon: one client that comes back, and a daemon to come back to."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

import msgspec

from ...client import ConnectionFailedError, ConnectionLostError, MCPWebSocketClient, OnProgress
from ...protocol.error_codes import CallError, OutcomeUnknownError, ServiceUnavailableError
from ...protocol.tool_call import (
    ClientInfo,
    ContentBlock,
    Metadata,
    TextContent,
    Timings,
    ToolCall,
    ToolInfo,
    ToolResult,
)
from .daemon_starter import DaemonStarter, DaemonStartError

_log = logging.getLogger(__name__)

ATTEMPTS: Final = 3
_IN_FLIGHT: Final = 32
"""Calls that a session may have in flight where the daemon does not say (docs/protocol.md, hello)."""


@dataclass(eq=False)
class _DaemonClient:
    """A client, and how many wait for answers by it."""

    client: MCPWebSocketClient
    directory: Path | None
    waiting: int = 0
    idle: asyncio.Event = field(default_factory=asyncio.Event)

    @cached_property
    def turns(self) -> asyncio.Semaphore:
        """One for each call that the session may have in flight, once that is known: more would be turned away."""
        limits = self.client.hello.limits if self.client.hello else None
        return asyncio.Semaphore(limits.max_inflight if limits else _IN_FLIGHT)

    @contextmanager
    def waited_by(self) -> Iterator[None]:
        """Wait for an answer; what goes wrong with the way is told as a call's error."""
        self.waiting += 1
        self.idle.clear()
        try:
            yield
        except ConnectionFailedError as error:
            raise ServiceUnavailableError(str(error), executed="no") from error
        except ConnectionLostError as error:
            if error.executed == "no":
                raise ServiceUnavailableError(str(error), executed="no") from error
            raise OutcomeUnknownError(f"{error}; look whether the call had its effect.") from error
        finally:
            self.waiting -= 1
            if not self.waiting:
                self.idle.set()


class DaemonLink:
    """Asks the daemon, which is found or started when somebody asks, and never before.

    ``on_tools_changed`` is called when the toolset's listing is another one.
    """

    def __init__(
        self, starter: DaemonStarter, toolset: str | None, directory: Path | None, on_tools_changed: Callable[[], None]
    ) -> None:
        self.editor = ClientInfo("toold-mcp")
        """Who the daemon is told that it is."""
        self.directory = directory
        """Where relative paths start. Another one holds from the next question on."""
        self._starter = starter
        self._toolset = toolset
        self._on_tools_changed = on_tools_changed
        self._way: _DaemonClient | None = None
        self._connecting = asyncio.Lock()
        # Clients of directories from before, on their way out.
        self._leaving: set[asyncio.Task[None]] = set()

    async def instructions(self) -> str:
        """What the daemon says of itself to a model.

        Raises:
            CallError: there is no way to the daemon; the message says why and what to do.
        """
        way = await self._ready()
        hello = way.client.hello
        return hello.instructions or "" if hello else ""

    async def list_tools(self) -> tuple[ToolInfo, ...]:
        """The tools of the toolset. Raises as ``instructions``."""
        way = await self._ready()
        with way.waited_by():
            return await way.client.list_tools()

    async def call(self, call: ToolCall, on_progress: OnProgress | None) -> ToolResult:
        """What becomes of a call, whatever that is. A task that is cancelled has its call cancelled too."""
        began = time.perf_counter()
        timeout_s = None if call.timeout_ms is None else call.timeout_ms / 1000
        try:
            way = await self._ready()
            with way.waited_by():
                async with way.turns:
                    answer = await way.client.answer(
                        call.name,
                        call.arguments,
                        timeout=timeout_s,
                        on_progress=on_progress,
                        request_id=str(call.request_id),
                    )
        except CallError as error:
            took = Metadata((time.perf_counter() - began) * 1000, Timings())
            return ToolResult(took, error=error.to_tool_error())
        return ToolResult(answer.metadata, tuple(map(_block, answer.outputs)), answer.structured, answer.error)

    async def keep_up(self) -> None:
        """Where somebody waits for an answer and the daemon is gone, see to it that there is one again."""
        way = self._way
        if way is None or not way.waiting or way.client.connected:
            return
        try:
            await self._ready()
        except CallError as error:
            _log.warning("the daemon is not back yet: %s", error.message)

    async def close(self) -> None:
        """Say goodbye in good order."""
        way, self._way = self._way, None
        for task in self._leaving:
            task.cancel()
        if way is not None:
            await way.client.disconnect()

    # --- within ------------------------------------------------------------------------------------------------------

    async def _ready(self) -> _DaemonClient:
        async with self._connecting:
            way = self._way
            if way is None or way.directory != self.directory:
                way = self._begin(way)
            if not way.client.connected:
                await self._connect(way.client)
            return way

    def _begin(self, before: _DaemonClient | None) -> _DaemonClient:
        """A client that names the directory; the one before leaves once nobody waits by it."""
        client = MCPWebSocketClient(
            client_name=self.editor.name or "toold-mcp",
            workspace=self.directory,
            toolset=self._toolset,
            on_tools_changed=lambda _: self._on_tools_changed(),
        )
        self._way = _DaemonClient(client, self.directory)
        if before is not None:
            if not before.waiting:
                before.idle.set()
            leaving = asyncio.create_task(_leave(before))
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)
        return self._way

    async def _connect(self, client: MCPWebSocketClient) -> None:
        """Raises ServiceUnavailableError where there is no way; retryable unless the daemon refuses who asks."""
        try:
            if not self._starter.named:
                await self._starter.ensure_running()
            if await client.ensure_connected(max_retries=1):
                return
            failed = client.last_error
            if isinstance(failed, ConnectionFailedError) and failed.nobody_there:
                if self._starter.named and self._starter.local:
                    await self._starter.ensure_running()
            elif isinstance(failed, ConnectionFailedError) and not failed.retryable:
                raise ServiceUnavailableError(str(failed), executed="no", transient=False)
            if not await client.ensure_connected(max_retries=ATTEMPTS):
                raise ServiceUnavailableError(str(client.last_error), executed="no")
        except DaemonStartError as error:
            raise ServiceUnavailableError(str(error), executed="no") from error


def _block(block: object) -> ContentBlock:
    try:
        known: ContentBlock = msgspec.convert(block, ContentBlock)
    except msgspec.ValidationError:  # the daemon was started anew since, and is a later version
        return TextContent("[content that this `toold mcp` does not know; start it again]")
    return known


async def _leave(way: _DaemonClient) -> None:
    await way.idle.wait()
    await way.client.disconnect()
