"""Another MCP server as a source of tools: kept connected, and when it is away, looked for until it is back."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Container
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...protocol.error_codes import CallError, CallTimeoutError
from ...protocol.terminal_text import one_line
from ...tools import Answer, ToolContext
from ..address_policy import AddressPolicy
from ..checked_network import CheckedNetwork
from ..source import SourceListener
from ..source_settings import McpSettings
from .server_output import ServerLog
from .tool_pins import PinError, PinFile, Pins, accepted
from .upstream_catalog import UpstreamCatalog, catalogd, prepare
from .upstream_definition import UpstreamListing
from .upstream_failures import UpstreamUnavailableError, reconnect_delay_s, unavailable, unavailable_reason
from .upstream_result import failure, read_answer
from .upstream_secrets import UpstreamSecrets

if TYPE_CHECKING:  # it imports the SDK, which takes a second
    from .upstream_session import UpstreamResult, UpstreamSession

LOOK_S: Final = 60.0
"""How often a server is asked for its tools: not all say when these change, and one at an address may be away."""
STEADY_S: Final = 10.0
"""A server that was there for so long is looked for soon, as if it had never failed."""
_MARGIN_S: Final = 0.1
"""A call is given up so long before its deadline, so that its caller learns what it waited for."""
_SETTLE_S: Final = 1.0
"""So long the calls of a session that is over may take to learn of it."""
_LOOK_AGAIN_S: Final = 0.05
_PROGRESS_CHARS: Final = 500


class McpSource:
    """Satisfies ``Source``, and ``Quarantine``."""

    def __init__(self, name: str, settings: McpSettings, pins: Path, taken: Callable[[], Container[str]]) -> None:
        """``pins`` is the directory that has them; ``taken`` tells the names that others' tools have here."""
        self._name = name
        self._settings = settings
        self._network = CheckedNetwork(AddressPolicy(settings.allow_private))
        self._pin_file = PinFile(pins, name)
        self._secrets = UpstreamSecrets(settings)
        self._taken = taken
        self._stirred = asyncio.Event()
        self._listener: SourceListener | None = None
        self._pins: Pins | None = None
        # What it listed last, and what that comes to.
        self._listing: UpstreamListing | None = None
        self._catalogue = UpstreamCatalog(name)
        self._complained = False
        # While it is away: no session, how often in vain, why, and when it is tried again, by the monotonic clock.
        self._session: UpstreamSession | None = None
        self._in_vain = 0
        self._problem = "it is being connected to"
        self._again_at = 0.0

    async def run(self, listener: SourceListener) -> None:
        self._listener = listener
        server_log = ServerLog(self._name, self._secrets.out_of_text)
        attempt = 0
        while True:
            self._stirred.clear()
            # In a task of its own: what the SDK raises while it is cancelled would take the cancellation's place.
            at_work = asyncio.create_task(self._work(listener, server_log.write), name=f"source {self._name}")
            try:
                await asyncio.wait([at_work])
            finally:
                at_work.cancel()
                await asyncio.wait([at_work])
            if at_work.result() >= STEADY_S:
                attempt = 0
            pause = reconnect_delay_s(attempt)
            attempt += 1
            self._again_at = time.monotonic() + pause
            listener.report_problem(f"source {self._name}: {self._problem}")
            self._stirred.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._stirred.wait()

    async def _work(self, listener: SourceListener, say: Callable[[str], None]) -> float:
        """Be connected for as long as it lasts; returns how many seconds its tools were there."""
        ready_at: float | None = None
        try:
            if self._pins is None:
                await self._recall(listener)
            async with self._opened(say) as (session, listed):
                ready_at = time.monotonic()
                await self._serve(session, listed, listener)
        except Exception as error:  # noqa: BLE001 - whatever the SDK and other people's servers do, it is tried again
            self._problem = self._secrets.out_of_text(unavailable_reason(error))
            self._in_vain += ready_at is None
        finally:
            self._session = None
        return 0.0 if ready_at is None else time.monotonic() - ready_at

    def refresh(self) -> None:
        self._stirred.set()

    async def close(self) -> None:
        await self._network.close()

    @property
    def quarantined(self) -> tuple[str, ...]:
        """The server's names of the tools that wait for approval."""
        return self._catalogue.quarantined

    def approve(self, tool: str | None) -> tuple[str, ...]:
        """Accept a tool, by its name here or at the server, or all that are quarantined, as they are now; returns their
        names.

        Raises:
            PinError: that cannot be written.
        """
        meant = self._catalogue.meant(tool)
        if meant and self._listener is not None:
            pins = accepted(self._pins, meant)
            self._pin_file.write(pins)
            self._pins = pins
            self._catalogue = self._catalogue.judged_anew(pins, self._taken())
            self._put(self._listener)
        return tuple(one.definition.name for one in meant)

    async def check(self, listener: SourceListener) -> str:
        """Connect once, and put out what there is; returns what the server calls itself.

        Raises:
            AwayError: it cannot be had.
        """
        try:
            await self._recall(listener)
            async with self._opened(lambda _: None) as (session, listing):
                await self._catalogue_of(listing)
                self._put(listener)
                return one_line(session.title, 200)
        except Exception as error:  # whatever the SDK and other people's servers do, it is told
            raise UpstreamUnavailableError(self._secrets.out_of_text(unavailable_reason(error))) from error

    async def _recall(self, listener: SourceListener) -> None:
        """Know the tools from before: they are listed while the server starts, and calls are told that it does.

        Raises:
            AwayError: what was accepted is not known.
        """
        try:
            pins = await asyncio.to_thread(self._pin_file.read)
        except PinError as error:
            raise UpstreamUnavailableError(str(error)) from None
        if pins:
            self._pins = pins
            await self._catalogue_of(UpstreamListing([pin.definition for pin in pins.values()]))
            listener.restore(self._catalogue.tools(self.call, self._settings.timeout_s))

    @asynccontextmanager
    async def _opened(self, say: Callable[[str], None]) -> AsyncIterator[tuple["UpstreamSession", UpstreamListing]]:
        """A session, with the tools that it listed first; ``say`` gets what the server says beside.

        Raises:
            Exception: it could not be had, whatever the SDK raises; or it has ended.
        """
        open_session = await asyncio.to_thread(_opener)
        variables = self._secrets.read()
        patience = asyncio.timeout(self._settings.start_timeout_s)
        try:
            async with (
                patience,
                open_session(self._name, self._settings, variables, self._network, say, self._stirred) as session,
            ):
                listing = await session.listing()
                patience.reschedule(None)
                yield session, listing
        except TimeoutError:
            if patience.expired():
                raise UpstreamUnavailableError(
                    f"it was not ready within {self._settings.start_timeout_s:g} s"
                ) from None
            raise

    async def _serve(self, session: "UpstreamSession", listing: UpstreamListing, listener: SourceListener) -> None:
        """For as long as the session lasts.

        Raises:
            AwayError: it has ended.
        """
        listening = asyncio.create_task(session.listen(), name=f"changes of source {self._name}")
        self._session = session
        try:
            await self._take(listing, listener)
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await self._stirred.wait()
                self._stirred.clear()
                await self._look_again(session, listener)
        finally:
            self._session = None
            listening.cancel()
            await asyncio.wait([listening])

    async def _look_again(self, session: "UpstreamSession", listener: SourceListener) -> None:
        """List the tools again.

        Raises:
            AwayError: the session has ended.
        """
        if session.ended.is_set():
            self._problem = "its program has ended" if self._settings.command else "it has ended the connection"
            await session.settled(_SETTLE_S)  # others may be about to learn the same
            raise UpstreamUnavailableError(self._problem)
        busy = session.busy
        try:
            async with asyncio.timeout(self._settings.start_timeout_s):
                listing = await session.listing()
        except (UpstreamUnavailableError, TimeoutError) as error:
            if session.ended.is_set():
                raise UpstreamUnavailableError(str(error)) from error
            # A program that does one thing at a time lists nothing until its call is done, which may have begun first.
            busy = busy or session.busy
            if busy and self._settings.command is not None and isinstance(error, TimeoutError):
                return
            # One that lists nothing may well answer its calls.
            self._complained = True
            listener.report_problem(f"source {self._name}: {str(error) or 'it does not list its tools in time'}")
            return
        if listing != self._listing or self._complained:
            await self._take(listing, listener)

    async def _take(self, listing: UpstreamListing, listener: SourceListener) -> None:
        await self._catalogue_of(listing)
        self._put(listener)  # at once: another source would take names that were found free, and are not put out yet
        if not self._pins and listing.tools:
            pins = accepted(None, self._catalogue.judged)
            await asyncio.to_thread(self._pin_file.write, pins)
            self._pins = pins

    async def _catalogue_of(self, listing: UpstreamListing) -> None:
        prepared = await asyncio.to_thread(prepare, listing, self._pins)
        self._catalogue = catalogd(self._name, listing, self._pins, self._taken(), prepared)
        self._listing = listing

    def _put(self, listener: SourceListener) -> None:
        self._complained = False
        listener.publish(self._catalogue.tools(self.call, self._settings.timeout_s), self._catalogue.notes)

    async def call(self, tool: str, arguments: dict[str, Any], context: ToolContext) -> Answer | str:
        """The answer of the server's tool of this name.

        Raises:
            CallError: what the server said, or why it could not be asked.
        """
        session = self._session
        if session is None or session.ended.is_set():
            raise unavailable(self._name, self._problem, self._again_at - time.monotonic())
        try:
            try:
                result = await self._asked(session, tool, arguments, context)
            except CallError as error:
                # A session that the server has forgotten: it has not looked at the call.
                after = await self._session_after(session, context) if error.executed == "no" else None
                if after is None:
                    raise
                result = await self._asked(after, tool, arguments, context)
            if result.failed:
                raise failure(self._name, result.content, result.structured)
        except CallError as error:
            error.message, error.details = self._secrets.out_of_text(error.message), self._secrets.out_of(error.details)
            raise
        return read_answer(self._secrets.out_of(result.content), self._secrets.out_of(result.structured))

    async def _asked(
        self, session: "UpstreamSession", tool: str, arguments: dict[str, Any], context: ToolContext
    ) -> "UpstreamResult":
        def report(message: str, done: float, total: float | None) -> None:
            said = one_line(self._secrets.out_of_text(message), _PROGRESS_CHARS)
            context.progress(said or f"{self._name} is at it", done, total)

        seconds = context.remaining() - _MARGIN_S
        if seconds <= 0:
            raise CallTimeoutError(f"The time was up before {self._name} could be asked.", executed="no")
        return await session.call(tool, arguments, seconds, report)

    async def _session_after(self, ended: "UpstreamSession", context: ToolContext) -> "UpstreamSession | None":
        """The session in place of one that has ended; None where it has not, or the next cannot be had in time."""
        if not ended.ended.is_set():
            return None
        in_vain = self._in_vain
        async with context.without_permit():
            while self._session in {None, ended} and self._in_vain == in_vain and context.remaining() > _MARGIN_S:  # noqa: ASYNC110 - it is rare, and an event would be one more state to keep right
                await asyncio.sleep(_LOOK_AGAIN_S)
        return None if self._session is ended else self._session


def _opener() -> Callable[..., AbstractAsyncContextManager["UpstreamSession"]]:
    """``upstream_session.open_session``.

    Raises:
        AwayError: it is not installed.
    """
    try:
        from . import upstream_session  # noqa: PLC0415 - it takes a second, and is imported in a thread
    except ImportError as error:
        raise UpstreamUnavailableError(f"the MCP SDK is not there ({error.name}); pip install 'toold[mcp]'") from None
    return upstream_session.open_session
