"""Calls of an MCP server with the credential of the caller: each call has a separate session.

The server binds a session to the user who opened it, and may set cookies. So no session or cookie of one
principal is used for another, and a replaced credential counts from the next call on.
"""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, TypeVar

from ...protocol.error_codes import CallError, PermissionDeniedError
from ...tools import ToolContext, ValueMask
from ..checked_network import CheckedNetwork
from ..source_auth import Auth, AuthValues, caller_auth, worded_for_user
from ..source_settings import McpSettings
from . import upstream_failures
from .upstream_exchange import UpstreamExchange
from .upstream_failures import unavailable_reason

if TYPE_CHECKING:  # imports the SDK, which takes a second
    from .upstream_session import UpstreamResult, UpstreamSession

T = TypeVar("T")

OpenSession = Callable[..., AbstractAsyncContextManager["UpstreamSession"]]
Report = Callable[[str, float, float | None], None]


class CallerSessions:
    """Opens a session for each call."""

    def __init__(self, source: str, settings: McpSettings, auth: Auth, network: CheckedNetwork) -> None:
        self._source = source
        self._settings = settings
        self._auth = auth
        self._network = network

    async def call(
        self,
        open_session: OpenSession,
        tool: str,
        arguments: dict[str, Any],
        context: ToolContext,
        seconds: float,
        report: Callable[[str, float, float | None], None],
    ) -> tuple["UpstreamResult", ValueMask]:
        """The result of a call of the server's tool, and what hides the credential in it.

        Raises:
            CallError: there is no result. No error contains the credential.
        """
        values = await caller_auth(self._auth, context)
        mask = ValueMask(values.redacted_values)

        def masked(message: str, done: float, total: float | None) -> None:
            report(mask.text(message), done, total)

        try:
            # In a separate task: an exception from the SDK during cancellation would replace the cancellation.
            calling = asyncio.create_task(
                self._call(open_session, values, tool, arguments, seconds, masked), name=f"call of {self._source}"
            )
            return await _ended(calling), mask
        except CallError as error:
            error.message, error.details = mask.text(error.message), mask.value(error.details)
            raise worded_for_user(error, self._source, self._auth) from None

    async def _call(
        self,
        open_session: OpenSession,
        values: AuthValues,
        tool: str,
        arguments: dict[str, Any],
        seconds: float,
        report: Report,
    ) -> "UpstreamResult":
        deadline = asyncio.get_running_loop().time() + seconds
        connecting = asyncio.timeout(min(seconds, self._settings.start_timeout_s))
        exchange = UpstreamExchange()
        ended: UpstreamResult | CallError | None = None
        try:
            async with (
                connecting,
                open_session(
                    self._source,
                    self._settings,
                    {},
                    self._network,
                    lambda _: None,
                    asyncio.Event(),
                    auth=values,
                    connecting=exchange,
                ) as session,
            ):
                connecting.reschedule(None)
                try:
                    left = deadline - asyncio.get_running_loop().time()
                    ended = await session.call(tool, arguments, left, report)
                except CallError as error:
                    ended = error
        except TimeoutError:
            ended = ended or upstream_failures.timed_out(self._source, sent=False)
        except Exception as error:  # noqa: BLE001 - whatever the SDK or the server does
            ended = ended or self._not_connected(error, exchange)
        if isinstance(ended, CallError):
            raise ended
        if ended is None:
            raise upstream_failures.connection_lost(self._source, sent=True)
        return ended

    def _not_connected(self, error: Exception, exchange: UpstreamExchange) -> CallError:
        """The error of a call whose session could not be opened; the call was not sent."""
        if exchange.status in {401, 403}:
            failure = upstream_failures.call_failure(self._source, 0, "", exchange)
            return PermissionDeniedError(failure.message, executed="no", summary=failure.summary)
        return upstream_failures.not_connected(self._source, unavailable_reason(error))


async def _ended(task: "asyncio.Task[T]") -> T:
    """The result of a task, which ends before its caller is cancelled."""
    try:
        await asyncio.wait([task])
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
    return task.result()
