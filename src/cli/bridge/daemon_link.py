"""The bridge's link to the daemon: one client that reconnects. Starts a daemon if none runs."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import msgspec

from ...client import (
    ConnectionFailedError,
    ConnectionLostError,
    MCPWebSocketClient,
    OnNotification,
    OnProgress,
    OnQuestion,
)
from ...protocol.error_codes import CallError, OutcomeUnknownError, ServiceUnavailableError
from ...protocol.frames import QuestionFrame
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
"""The limit of calls in flight per session if the daemon does not report one (docs/protocol.md, hello)."""


@dataclass(eq=False)
class _DaemonClient:
    """A client, and the number of requests that wait for its answers."""

    client: MCPWebSocketClient
    directory: Path | None
    waiting: int = 0
    idle: asyncio.Event = field(default_factory=asyncio.Event)

    @cached_property
    def permits(self) -> asyncio.Semaphore:
        """One permit per call that the session may have in flight; the daemon would reject more."""
        limits = self.client.hello.limits if self.client.hello else None
        return asyncio.Semaphore(limits.max_inflight if limits else _IN_FLIGHT)

    @contextmanager
    def waiter(self) -> Iterator[None]:
        """Counts a waiting request for the duration of the block, and converts connection errors to call errors."""
        self.waiting += 1
        self.idle.clear()
        try:
            yield
        except ConnectionFailedError as error:
            raise ServiceUnavailableError(str(error), executed="no") from error
        except ConnectionLostError as error:
            if error.executed == "no":
                raise ServiceUnavailableError(str(error), executed="no") from error
            raise OutcomeUnknownError(f"{error}; check whether the call took effect.") from error
        finally:
            self.waiting -= 1
            if not self.waiting:
                self.idle.set()


async def _no_answer(_: QuestionFrame) -> Mapping[str, Any]:
    """Handles a question during a call whose client declared no kinds of questions."""
    raise ValueError("the client declared no kinds of questions")


class DaemonLink:
    """Sends requests to the daemon, which is found or started at the first request.

    ``on_tools_changed`` is called when the toolset's listing changes, ``on_notification`` with the method and the
    parameters of other notifications.
    """

    def __init__(
        self,
        starter: DaemonStarter,
        toolset: str | None,
        directory: Path | None,
        on_tools_changed: Callable[[], None],
        on_notification: OnNotification,
    ) -> None:
        self.editor = ClientInfo("toold-mcp")
        """The client info that the daemon gets."""
        self.directory = directory
        """The directory of relative paths. A change takes effect with the next request."""
        self._starter = starter
        self._toolset = toolset
        self._on_tools_changed = on_tools_changed
        self._on_notification = on_notification
        self._current: _DaemonClient | None = None
        self._connecting = asyncio.Lock()
        # Clients of earlier directories that are closing.
        self._closing: set[asyncio.Task[None]] = set()

    async def instructions(self) -> str:
        """The daemon's instructions for models.

        Raises:
            CallError: the daemon is not reachable; the message says why and what to do.
        """
        daemon = await self._ready()
        hello = daemon.client.hello
        return hello.instructions or "" if hello else ""

    async def list_tools(self) -> tuple[ToolInfo, ...]:
        """The tools of the toolset. Raises the same error as ``instructions``."""
        daemon = await self._ready()
        with daemon.waiter():
            return await daemon.client.list_tools()

    async def call(
        self, call: ToolCall, on_progress: OnProgress | None, on_question: OnQuestion = _no_answer
    ) -> ToolResult:
        """Make a call and return its result or error. Cancelling the task cancels the call."""
        began = time.perf_counter()
        timeout_s = None if call.timeout_ms is None else call.timeout_ms / 1000
        try:
            daemon = await self._ready()
            with daemon.waiter():
                async with daemon.permits:
                    answer = await daemon.client.answer(
                        call.name,
                        call.arguments,
                        timeout=timeout_s,
                        on_progress=on_progress,
                        request_id=str(call.request_id),
                        traceparent=call.traceparent,
                        on_question=on_question,
                        answers=call.answers,
                        meta=call.meta,
                    )
        except CallError as error:
            metadata = Metadata((time.perf_counter() - began) * 1000, Timings())
            return ToolResult(metadata, error=error.to_tool_error())
        outputs = tuple(map(_block, answer.outputs))
        return ToolResult(answer.metadata, outputs, answer.structured, answer.error, answer.meta)

    async def restore_connection(self) -> None:
        """Reconnect, and restart the daemon if needed, while requests wait for answers."""
        daemon = self._current
        if daemon is None or not daemon.waiting or daemon.client.connected:
            return
        try:
            await self._ready()
        except CallError as error:
            _log.warning("cannot reconnect to the daemon yet: %s", error.message)

    async def close(self) -> None:
        """Disconnect."""
        daemon, self._current = self._current, None
        for task in self._closing:
            task.cancel()
        if daemon is not None:
            await daemon.client.disconnect()

    async def _ready(self) -> _DaemonClient:
        async with self._connecting:
            daemon = self._current
            if daemon is None or daemon.directory != self.directory:
                daemon = self._begin(daemon)
            if not daemon.client.connected:
                await self._connect(daemon.client)
            return daemon

    def _begin(self, previous: _DaemonClient | None) -> _DaemonClient:
        """Create a client for the directory. The previous client closes when no request waits for it."""
        client = MCPWebSocketClient(
            client_name=self.editor.name or "toold-mcp",
            workspace=self.directory,
            toolset=self._toolset,
            on_tools_changed=lambda _: self._on_tools_changed(),
            on_question=_no_answer,
            on_notification=self._on_notification,
        )
        self._current = _DaemonClient(client, self.directory)
        if previous is not None:
            if not previous.waiting:
                previous.idle.set()
            closing = asyncio.create_task(_close_when_idle(previous))
            self._closing.add(closing)
            closing.add_done_callback(self._closing.discard)
        return self._current

    async def _connect(self, client: MCPWebSocketClient) -> None:
        """Raises ServiceUnavailableError if the daemon is not reachable; retryable unless it refuses the client."""
        try:
            if not self._starter.named:
                await self._starter.ensure_running()
            if await client.ensure_connected(max_retries=1):
                return
            error = client.last_error
            if isinstance(error, ConnectionFailedError) and error.not_listening:
                if self._starter.named and self._starter.local:
                    await self._starter.ensure_running()
            elif isinstance(error, ConnectionFailedError) and not error.retryable:
                raise ServiceUnavailableError(str(error), executed="no", transient=False)
            if not await client.ensure_connected(max_retries=ATTEMPTS):
                raise ServiceUnavailableError(str(client.last_error), executed="no")
        except DaemonStartError as failure:
            raise ServiceUnavailableError(str(failure), executed="no") from failure


def _block(block: object) -> ContentBlock:
    try:
        known: ContentBlock = msgspec.convert(block, ContentBlock)
    except msgspec.ValidationError:  # the daemon has restarted with a later version
        return TextContent("[content of a type unknown to this version of `toold mcp`; restart it]")
    return known


async def _close_when_idle(daemon: _DaemonClient) -> None:
    await daemon.idle.wait()
    await daemon.client.disconnect()
