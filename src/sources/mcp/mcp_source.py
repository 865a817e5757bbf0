"""An upstream MCP server as a source of tools: keeps a connection open, and reconnects whenever it is lost."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Container, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

from ...protocol.backoff import backoff_s
from ...protocol.error_codes import CallError, CallTimeoutError
from ...protocol.terminal_text import one_line
from ...tools import Tool
from ..address_policy import AddressPolicy
from ..checked_network import CheckedNetwork
from ..oauth.oauth_requests import SourceOAuth
from ..oauth.sign_in_desk import SignInDesk
from ..pin_storage import PinStorage
from ..pinned_catalog import PinnedCatalog
from ..source import QuarantinedVersion, SourceListener
from ..source_content import ContentSource, NoSourceEvents, SourceEvents
from ..source_settings import McpSettings
from ..tool_pins import PinConflictError, PinError
from ..upstream_definition import UpstreamListing
from .sdk_modules import new_content_requests, session_opener
from .server_output import ServerLog
from .upstream_calls import UpstreamCalls, UpstreamLink
from .upstream_content import UpstreamContent, content_problem
from .upstream_failures import UpstreamUnavailableError, unavailable_reason
from .upstream_instructions import UpstreamInstructions
from .upstream_secrets import UpstreamSecrets

if TYPE_CHECKING:  # imports the SDK, which takes a second
    from .content_requests import ContentRequests
    from .upstream_session import UpstreamSession

LIST_INTERVAL_S: Final = 60.0
"""The interval between listings. Some servers do not announce changes, and an HTTP server may have stopped."""
LOOK_AGAIN_S: Final = 5.0
"""The minimum interval between listings that happen because clients list tools."""
FIRST_RECONNECT_S: Final = 0.5
MAX_RECONNECT_S: Final = 60.0
"""The maximum delay before a reconnect; the first delay is ``FIRST_RECONNECT_S``."""
STABLE_S: Final = 10.0
"""A connection that lasted this long resets the reconnect delay."""
_SETTLE_S: Final = 1.0
"""The time that running calls have to notice that their session has ended."""
_NO_EVENTS: Final = NoSourceEvents()


class McpSource:
    """Implements ``Source``, ``Quarantine``, ``InstructsModels`` and ``OffersContent``."""

    def __init__(
        self,
        name: str,
        settings: McpSettings,
        pins: PinStorage,
        taken: Callable[[], Container[str]],
        events: SourceEvents = _NO_EVENTS,
        desk: SignInDesk | None = None,
    ) -> None:
        """``taken`` returns the tool names that other sources use; ``desk`` has the sign-ins."""
        self._name = name
        self._settings = settings
        self._network = CheckedNetwork(AddressPolicy(settings.allow_private))
        self._catalog = PinnedCatalog(name, pins, taken, settings.naming)
        self._secrets = UpstreamSecrets(settings, lambda: self._oauth.secrets)
        self._oauth = SourceOAuth(name, settings, desk or SignInDesk())
        self._events = events
        self._instructions = UpstreamInstructions(name, pins)
        self._link = UpstreamLink()
        self._calls = UpstreamCalls(
            name, settings, self._link, self._catalog, self._secrets, self._network, self._oauth, events
        )
        self._content = UpstreamContent(name, pins, events, settings.timeout_s, self._calls.ask)
        self._wake = asyncio.Event()
        self._listener: SourceListener | None = None
        self._listing_failed = False
        self._listed_at = float("-inf")
        self._content_failed = False  # whether the reported problem concerns resources and prompts

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
            self._link.reconnect_at = time.monotonic() + pause
            listener.report_problem(f"source {self._name}: {self._link.problem}")
            self._wake.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()

    async def _connect_and_serve(self, listener: SourceListener, on_log: Callable[[str], None]) -> float:
        """Connects, and serves until the connection ends; returns the seconds for which it was ready."""
        ready_at: float | None = None
        try:
            if not self._catalog.restored:
                await self._restore(listener)
            async with self._opened(on_log) as (session, listed):
                ready_at = time.monotonic()
                await self._serve(session, listed, listener)
        except Exception as error:  # noqa: BLE001 - whatever the SDK or the server does, reconnect
            self._link.problem = self._secrets.redact_text(unavailable_reason(error))
            self._link.failed_attempts += ready_at is None
        finally:
            self._link.session = None
        return 0.0 if ready_at is None else time.monotonic() - ready_at

    def refresh(self) -> None:
        self._wake.set()

    def look_again(self) -> None:
        """Called when a client lists tools: lists the server's tools again soon, unless they were listed in the last
        seconds.
        """
        if self._link.session is not None and time.monotonic() >= self._listed_at + LOOK_AGAIN_S:
            self._wake.set()

    async def close(self) -> None:
        await self._oauth.close()
        await self._network.close()

    @property
    def quarantined(self) -> tuple[str, ...]:
        """The server's names of quarantined tools and prompts."""
        return tuple(version.name for version in self.waiting)

    @property
    def waiting(self) -> list[QuarantinedVersion]:
        """The versions of tools, prompts and instructions that wait for approval."""
        return [*self._catalog.latest.waiting("tool"), *self._content.waiting, *self._instructions.waiting]

    @property
    def instructions(self) -> str:
        return self._instructions.text

    async def approve(self, tool: str, digest: str) -> tuple[str, ...]:
        """Approves a version of a tool or prompt, by its served or upstream name, or of the ``instructions``; returns
        its upstream name.

        Raises:
            PinConflictError: another version was approved meanwhile.
            PinError: the pins cannot be written.
        """
        selected = self._catalog.latest.select_quarantined(tool, digest)
        names = tuple(comparison.definition.name for comparison in selected)
        try:
            if selected:
                await self._catalog.approve(selected)
            names += await self._content.approve(tool, digest)
            names += await self._instructions.approve(tool, digest)
        except PinConflictError:
            self._publish_notes()
            raise
        if names:
            self._publish_notes()
        return names

    async def reload_pins(self, revisions: Mapping[str, int]) -> None:
        parts = (self._catalog, self._content, self._instructions)
        if any([await part.reload(revisions) for part in parts]):
            self._publish_notes()

    async def check(self, listener: SourceListener) -> str:
        """Connects once and publishes the tools; returns the server's title.

        Raises:
            UpstreamUnavailableError: the server cannot be used.
        """
        try:
            await self._restore(listener)
            async with self._opened(lambda _: None) as (session, listing):
                await self._instructions.update(session.instructions)
                await self._catalog.update(listing)
                self._publish(listener)
                return one_line(session.title, 200)
        except Exception as error:  # report every failure of the SDK or the server
            raise UpstreamUnavailableError(self._secrets.redact_text(unavailable_reason(error))) from error

    async def _restore(self, listener: SourceListener) -> None:
        """Restores the pinned tools: they are listed while the server starts, and calls to them fail with a reason.

        Raises:
            UpstreamUnavailableError: the pins cannot be read.
        """
        try:
            await self._instructions.restore()
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
        open_session = await asyncio.to_thread(session_opener)
        variables = self._secrets.load()
        start_timeout = asyncio.timeout(self._settings.start_timeout_s)
        try:
            async with (
                start_timeout,
                open_session(
                    self._name,
                    self._settings,
                    variables,
                    self._network,
                    on_log,
                    self._wake,
                    oauth=self._oauth.shared,
                    events=self._events,
                ) as session,
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
        requests = await asyncio.to_thread(new_content_requests, self._name, session, self._events)
        listening = asyncio.create_task(session.listen(), name=f"changes of source {self._name}")
        following: asyncio.Task[None] | None = None
        try:
            await self._accept_listing(listing, listener, session)
            await self._list_content(requests, session, listener)
            following = asyncio.create_task(
                self._content.report_updates(requests), name=f"resource updates of source {self._name}"
            )
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(LIST_INTERVAL_S):
                        await self._wake.wait()
                self._wake.clear()
                self._listed_at = time.monotonic()
                await self._list_again(session, listener)
                await self._list_content(requests, session, listener)
        finally:
            self._link.session = None
            tasks = [task for task in (listening, following) if task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _list_content(
        self, requests: "ContentRequests", session: "UpstreamSession", listener: SourceListener
    ) -> None:
        """Lists resources and prompts again. If this fails, the earlier ones and the tools stay."""
        notes = self._content.notes
        try:
            await self._content.update(requests)
        except (CallError, PinError) as error:
            if session.busy and isinstance(error, CallTimeoutError):  # as for tools
                return
            if session.ended.is_set():
                raise UpstreamUnavailableError(str(error)) from error
            self._content_failed = True
            listener.report_problem(self._secrets.redact_text(content_problem(self._name, error)))
            return
        repaired = self._content_failed and not self._listing_failed
        self._content_failed = False
        if repaired or self._content.notes != notes:
            self._publish_notes()

    def _publish_notes(self) -> None:
        if self._listener is not None and self._catalog.listing is not None:
            self._publish(self._listener)

    async def _list_again(self, session: "UpstreamSession", listener: SourceListener) -> None:
        """Lists the tools again.

        Raises:
            UpstreamUnavailableError: the session has ended.
        """
        if session.ended.is_set():
            self._link.problem = "its program has ended" if self._settings.runs_program else "it closed the connection"
            await session.wait_idle(_SETTLE_S)  # running calls will fail for the same reason
            raise UpstreamUnavailableError(self._link.problem)
        busy = session.busy
        try:
            async with asyncio.timeout(self._settings.start_timeout_s):
                listing = await session.listing()
        except (UpstreamUnavailableError, TimeoutError) as error:
            if session.ended.is_set():
                raise UpstreamUnavailableError(str(error)) from error
            # Ignore this timeout: a single-threaded program cannot answer while it executes a call.
            busy = busy or session.busy
            if busy and self._settings.runs_program and isinstance(error, TimeoutError):
                return
            # A server that fails to list its tools may still answer calls.
            self._listing_failed = True
            listener.report_problem(f"source {self._name}: {str(error) or 'it did not list its tools in time'}")
            return
        if listing != self._catalog.listing or self._listing_failed:
            await self._accept_listing(listing, listener, session)

    async def _accept_listing(
        self, listing: UpstreamListing, listener: SourceListener, session: "UpstreamSession"
    ) -> None:
        """Compares a listing with the pins, and publishes it. Calls use the session only afterwards, because the server
        may have been replaced.
        """
        await self._instructions.update(session.instructions)
        await self._catalog.update(listing)
        self._link.session = session
        self._publish(listener)  # without an await after the update, because another source could take the free names
        if any([await self._catalog.save(), await self._instructions.save()]):
            self._publish(listener)

    def _publish(self, listener: SourceListener) -> None:
        self._listing_failed = False
        notes = (*self._catalog.latest.notes, *self._content.notes, *self._instructions.notes)
        listener.publish(self._tools(), notes)

    def _tools(self) -> list[Tool]:
        auth = self._settings.auth
        return self._catalog.latest.tools(
            self._calls.call, self._settings.timeout_s, () if auth is None else auth.credentials
        )

    @property
    def offered(self) -> ContentSource:
        """The source's resources and prompts."""
        return self._content


def upstream_reconnect_delay_s(attempt: int) -> float:
    """Returns the seconds before reconnect ``attempt`` (from 0)."""
    draw = random.random()  # noqa: S311 - jitter, not a secret
    return backoff_s(attempt, draw, base_s=FIRST_RECONNECT_S, cap_s=MAX_RECONNECT_S)
