"""An upstream MCP server as a source of tools: keeps a connection open, and reconnects whenever it is lost."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Container
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...protocol.backoff import backoff_s
from ...protocol.error_codes import CallError, CallTimeoutError
from ...protocol.terminal_text import one_line
from ...tools import Tool, ToolContext, ToolOutput
from ...version import install_extra
from ..address_policy import AddressPolicy
from ..checked_network import CheckedNetwork
from ..content_blocks import read_answer
from ..pinned_catalog import PinnedCatalog
from ..source import SourceListener
from ..source_settings import McpSettings
from ..tool_pins import PinError
from ..upstream_definition import UpstreamListing
from .caller_session import CallerSessions
from .server_output import ServerLog
from .upstream_failures import UpstreamUnavailableError, not_connected, unavailable, unavailable_reason
from .upstream_result import failure
from .upstream_secrets import UpstreamSecrets

if TYPE_CHECKING:  # imports the SDK, which takes a second
    from .upstream_session import UpstreamResult, UpstreamSession

LIST_INTERVAL_S: Final = 60.0
"""The interval between listings: not all servers announce changes, and an HTTP server may have gone away."""
FIRST_RECONNECT_S: Final = 0.5
MAX_RECONNECT_S: Final = 60.0
"""The delay before a reconnect grows from ``FIRST_RECONNECT_S`` to this."""
STABLE_S: Final = 10.0
"""A connection that lasted this long resets the reconnect delay."""
_MARGIN_S: Final = 0.1
"""A call ends this long before its deadline, so that the caller learns the reason."""
_SETTLE_S: Final = 1.0
"""How long running calls may take to notice that their session has ended."""
_POLL_S: Final = 0.05
_PROGRESS_CHARS: Final = 500


class McpSource:
    """Implements ``Source`` and ``Quarantine``."""

    def __init__(self, name: str, settings: McpSettings, pins: Path, taken: Callable[[], Container[str]]) -> None:
        """``pins`` is the directory of the pin files; ``taken`` returns the tool names that other sources use."""
        self._name = name
        self._settings = settings
        self._network = CheckedNetwork(AddressPolicy(settings.allow_private))
        self._catalog = PinnedCatalog(name, pins, taken)
        self._secrets = UpstreamSecrets(settings)
        auth, self._caller_sessions = settings.auth, None
        if auth is not None and auth.credential is not None:
            self._caller_sessions = CallerSessions(name, settings, auth, self._network)
        self._wake = asyncio.Event()
        self._listener: SourceListener | None = None
        self._listing_failed = False
        # The session, or None. The other three describe the time without one: failed attempts, reason, next attempt.
        self._session: UpstreamSession | None = None
        self._failed_attempts = 0
        self._problem = "the daemon is connecting to it"
        self._reconnect_at = 0.0

    async def run(self, listener: SourceListener) -> None:
        self._listener = listener
        server_log = ServerLog(self._name, self._secrets.redact_text)
        attempt = 0
        while True:
            self._wake.clear()
            # In a separate task: an exception from the SDK during cancellation would replace the cancellation.
            connection = asyncio.create_task(
                self._connect_and_serve(listener, server_log.write), name=f"source {self._name}"
            )
            try:
                await asyncio.wait([connection])
            finally:
                connection.cancel()
                await asyncio.wait([connection])
            if connection.result() >= STABLE_S:
                attempt = 0
            pause = upstream_reconnect_delay_s(attempt)
            attempt += 1
            self._reconnect_at = time.monotonic() + pause
            listener.report_problem(f"source {self._name}: {self._problem}")
            self._wake.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()

    async def _connect_and_serve(self, listener: SourceListener, on_log: Callable[[str], None]) -> float:
        """Connects, and serves until the connection ends; returns for how many seconds it was ready."""
        ready_at: float | None = None
        try:
            if not self._catalog.restored:
                await self._restore(listener)
            async with self._opened(on_log) as (session, listed):
                ready_at = time.monotonic()
                await self._serve(session, listed, listener)
        except Exception as error:  # noqa: BLE001 - whatever the SDK or the server does, reconnect
            self._problem = self._secrets.redact_text(unavailable_reason(error))
            self._failed_attempts += ready_at is None
        finally:
            self._session = None
        return 0.0 if ready_at is None else time.monotonic() - ready_at

    def refresh(self) -> None:
        self._wake.set()

    async def close(self) -> None:
        await self._network.close()

    @property
    def quarantined(self) -> tuple[str, ...]:
        """The server's names of the quarantined tools."""
        return self._catalog.latest.quarantined

    def approve(self, tool: str | None) -> tuple[str, ...]:
        """Approves a tool, by its served or upstream name, or all quarantined tools; returns their upstream names.

        Raises:
            PinError: the pins cannot be written.
        """
        selected = self._catalog.latest.select_quarantined(tool)
        if selected and self._listener is not None:
            self._catalog.approve(selected)
            self._publish(self._listener)
        return tuple(comparison.definition.name for comparison in selected)

    async def check(self, listener: SourceListener) -> str:
        """Connects once and publishes the tools; returns the server's title.

        Raises:
            UpstreamUnavailableError: the server cannot be used.
        """
        try:
            await self._restore(listener)
            async with self._opened(lambda _: None) as (session, listing):
                await self._catalog.update(listing)
                self._publish(listener)
                return one_line(session.title, 200)
        except Exception as error:  # whatever the SDK or the server does, report it
            raise UpstreamUnavailableError(self._secrets.redact_text(unavailable_reason(error))) from error

    async def _restore(self, listener: SourceListener) -> None:
        """Restores the pinned tools: they are listed while the server starts, and calls to them fail with a reason.

        Raises:
            UpstreamUnavailableError: the pins cannot be read.
        """
        try:
            restored = await self._catalog.restore()
        except PinError as error:
            raise UpstreamUnavailableError(str(error)) from None
        if restored:
            listener.restore(self._tools())

    @asynccontextmanager
    async def _opened(self, on_log: Callable[[str], None]) -> AsyncIterator[tuple["UpstreamSession", UpstreamListing]]:
        """Yields a session and its first listing; ``on_log`` receives the server's log lines.

        Raises:
            Exception: the session failed to open, with any exception of the SDK, or has ended.
        """
        open_session = await asyncio.to_thread(_opener)
        variables = self._secrets.load()
        start_timeout = asyncio.timeout(self._settings.start_timeout_s)
        try:
            async with (
                start_timeout,
                open_session(self._name, self._settings, variables, self._network, on_log, self._wake) as session,
            ):
                listing = await session.listing()
                start_timeout.reschedule(None)
                yield session, listing
        except TimeoutError:
            if start_timeout.expired():
                raise UpstreamUnavailableError(
                    f"it was not ready within {self._settings.start_timeout_s:g} s"
                ) from None
            raise

    async def _serve(self, session: "UpstreamSession", listing: UpstreamListing, listener: SourceListener) -> None:
        """Serves until the session ends.

        Raises:
            UpstreamUnavailableError: the session has ended.
        """
        listening = asyncio.create_task(session.listen(), name=f"changes of source {self._name}")
        self._session = session
        try:
            await self._accept_listing(listing, listener)
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(LIST_INTERVAL_S):
                        await self._wake.wait()
                self._wake.clear()
                await self._list_again(session, listener)
        finally:
            self._session = None
            listening.cancel()
            await asyncio.wait([listening])

    async def _list_again(self, session: "UpstreamSession", listener: SourceListener) -> None:
        """Lists the tools again.

        Raises:
            UpstreamUnavailableError: the session has ended.
        """
        if session.ended.is_set():
            self._problem = "its program has ended" if self._settings.command else "it closed the connection"
            await session.wait_idle(_SETTLE_S)  # running calls are about to fail for the same reason
            raise UpstreamUnavailableError(self._problem)
        busy = session.busy
        try:
            async with asyncio.timeout(self._settings.start_timeout_s):
                listing = await session.listing()
        except (UpstreamUnavailableError, TimeoutError) as error:
            if session.ended.is_set():
                raise UpstreamUnavailableError(str(error)) from error
            # A single-threaded program cannot answer while it executes a call, so ignore this timeout.
            busy = busy or session.busy
            if busy and self._settings.command is not None and isinstance(error, TimeoutError):
                return
            # A server that fails to list its tools may still answer calls.
            self._listing_failed = True
            listener.report_problem(f"source {self._name}: {str(error) or 'it did not list its tools in time'}")
            return
        if listing != self._catalog.listing or self._listing_failed:
            await self._accept_listing(listing, listener)

    async def _accept_listing(self, listing: UpstreamListing, listener: SourceListener) -> None:
        await self._catalog.update(listing)
        self._publish(listener)  # no await since the update: another source could take the free names
        await self._catalog.save()

    def _publish(self, listener: SourceListener) -> None:
        self._listing_failed = False
        listener.publish(self._tools(), self._catalog.latest.notes)

    def _tools(self) -> list[Tool]:
        auth = self._settings.auth
        return self._catalog.latest.tools(self.call, self._settings.timeout_s, () if auth is None else auth.credentials)

    async def call(self, tool: str, arguments: dict[str, Any], context: ToolContext) -> ToolOutput | str:
        """Calls the server's tool of this name and returns its answer.

        Raises:
            CallError: the server's error, or the reason why it could not be called.
        """
        if self._caller_sessions is not None:
            return await self._call_as_caller(self._caller_sessions, tool, arguments, context)
        session = self._session
        if session is None or session.ended.is_set():
            raise unavailable(self._name, self._problem, self._reconnect_at - time.monotonic())
        try:
            try:
                result = await self._call_session(session, tool, arguments, context)
            except CallError as error:
                # If the server has forgotten the session, it has not executed the call: repeat it in the next session.
                next_session = await self._next_session(session, context) if error.executed == "no" else None
                if next_session is None:
                    raise
                result = await self._call_session(next_session, tool, arguments, context)
            if result.failed:
                raise failure(self._name, result.content, result.structured)
        except CallError as error:
            error.message, error.details = self._secrets.redact_text(error.message), self._secrets.redact(error.details)
            raise
        return read_answer(self._secrets.redact(result.content), self._secrets.redact(result.structured))

    async def _call_as_caller(
        self, sessions: CallerSessions, tool: str, arguments: dict[str, Any], context: ToolContext
    ) -> ToolOutput | str:
        try:
            open_session = await asyncio.to_thread(_opener)
        except UpstreamUnavailableError as error:
            raise not_connected(self._name, str(error)) from None
        report, seconds = self._report(context), self._seconds_left(context)
        result, mask = await sessions.call(open_session, tool, arguments, context, seconds, report)
        content, structured = mask.value(result.content), mask.value(result.structured)
        if result.failed:
            raise failure(self._name, content, structured)
        return read_answer(content, structured)

    async def _call_session(
        self, session: "UpstreamSession", tool: str, arguments: dict[str, Any], context: ToolContext
    ) -> "UpstreamResult":
        return await session.call(tool, arguments, self._seconds_left(context), self._report(context))

    def _report(self, context: ToolContext) -> Callable[[str, float, float | None], None]:
        def report(message: str, done: float, total: float | None) -> None:
            text = one_line(self._secrets.redact_text(message), _PROGRESS_CHARS)
            context.progress(text or f"{self._name} is working", done, total)

        return report

    def _seconds_left(self, context: ToolContext) -> float:
        seconds = context.remaining() - _MARGIN_S
        if seconds <= 0:
            raise CallTimeoutError(f"The deadline passed before {self._name} could be called.", executed="no")
        return seconds

    async def _next_session(self, ended: "UpstreamSession", context: ToolContext) -> "UpstreamSession | None":
        """Returns the session that replaces ``ended``; None if ``ended`` is still open, or no new one opens in time."""
        if not ended.ended.is_set():
            return None
        failed_attempts = self._failed_attempts
        async with context.without_permit():
            while (  # noqa: ASYNC110 - rare; an event would be one more state to maintain
                self._session in {None, ended}
                and self._failed_attempts == failed_attempts
                and context.remaining() > _MARGIN_S
            ):
                await asyncio.sleep(_POLL_S)
        return None if self._session is ended else self._session


def _opener() -> Callable[..., AbstractAsyncContextManager["UpstreamSession"]]:
    """Returns ``upstream_session.open_session``.

    Raises:
        UpstreamUnavailableError: the MCP SDK is not installed.
    """
    try:
        from . import upstream_session  # noqa: PLC0415 - takes a second; imported in a thread
    except ImportError as error:
        raise UpstreamUnavailableError(f"the MCP SDK is not installed ({error.name}); {install_extra('mcp')}") from None
    return upstream_session.open_session


def upstream_reconnect_delay_s(attempt: int) -> float:
    """Returns the seconds before reconnect ``attempt`` (from 0)."""
    draw = random.random()  # noqa: S311 - jitter, not a secret
    return backoff_s(attempt, draw, base_s=FIRST_RECONNECT_S, cap_s=MAX_RECONNECT_S)
