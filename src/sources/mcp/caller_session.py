"""Calls of an MCP server with the credential of the caller: each call has a separate session.

The server binds a session to the user who opened it, and may set cookies, so principals do not share sessions and
cookies. A replaced credential is used from the next call on.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from ...protocol.error_codes import CallError, PermissionDeniedError, ServiceUnavailableError
from ...tools import ToolContext, ValueMask
from ..checked_network import CheckedNetwork
from ..oauth.oauth_requests import OAuthRequests
from ..oauth.sign_in_values import TokenUnavailableError
from ..source_auth import NO_AUTH, Auth, AuthValues, caller_auth, worded_for_user
from ..source_content import NoSourceEvents
from ..source_settings import McpSettings
from . import upstream_failures
from .upstream_exchange import UpstreamExchange
from .upstream_failures import unavailable_reason
from .upstream_questions import CallQuestions

if TYPE_CHECKING:  # imports the SDK, which takes a second
    from .content_requests import ContentRequests
    from .upstream_session import UpstreamResult, UpstreamSession

T = TypeVar("T")

OpenSession = Callable[..., AbstractAsyncContextManager["UpstreamSession"]]
Report = Callable[[str, float, float | None], float]
ContentQuestion = Callable[["ContentRequests", float], Awaitable[dict[str, Any]]]
"""Sends a request about resources or prompts, with a timeout in seconds."""
_Use = Callable[["UpstreamSession", float, ValueMask], Awaitable[T]]
_NO_EVENTS: Final = NoSourceEvents()


class CallerSessions:
    """Opens a session for each call."""

    def __init__(
        self,
        source: str,
        settings: McpSettings,
        auth: Auth | None,
        network: CheckedNetwork,
        oauth: Callable[[str], OAuthRequests] | None = None,
    ) -> None:
        """Callers have credentials (``auth``) or sign in. ``oauth`` returns the authorized requests of a principal."""
        self._oauth = oauth
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
        report: Report,
        questions: CallQuestions,
        *,
        as_task: bool,
    ) -> tuple["UpstreamResult", ValueMask]:
        """The result of a call of the server's tool, and a mask that hides the credential in it. ``as_task`` is as for
        ``UpstreamSession.call``.

        Raises:
            CallError: there is no result. The error does not contain the credential.
        """

        async def call(session: "UpstreamSession", left: float, mask: ValueMask) -> "UpstreamResult":
            def masked(message: str, done: float, total: float | None) -> float:
                return report(mask.text(message), done, total)

            questions.hide(mask.value)
            return await session.call(tool, arguments, left, masked, questions, as_task=as_task)

        return await self._run(open_session, call, context, seconds)

    async def ask(
        self,
        open_session: OpenSession,
        ask: ContentQuestion,
        context: ToolContext,
        seconds: float,
        questions: CallQuestions,
    ) -> tuple[dict[str, Any], ValueMask]:
        """The answer to a request about resources or prompts, and a mask that hides the credential in it.

        Raises:
            CallError: there is no answer. The error does not contain the credential.
        """

        async def request(session: "UpstreamSession", left: float, mask: ValueMask) -> dict[str, Any]:
            from .content_requests import ContentRequests  # noqa: PLC0415 - needs the SDK

            questions.hide(mask.value)
            return await ask(ContentRequests(self._source, session, _NO_EVENTS, questions), left)

        return await self._run(open_session, request, context, seconds)

    async def _run(
        self, open_session: OpenSession, use: "_Use[T]", context: ToolContext, seconds: float
    ) -> tuple[T, ValueMask]:
        values = NO_AUTH if self._auth is None else await caller_auth(self._auth, context)
        oauth = None if self._oauth is None else self._oauth(context.principal.name)
        if oauth is not None:
            await _checked(oauth)
        mask = ValueMask([*values.redacted_values, *(oauth.secrets if oauth else ())])

        try:
            # In a separate task: an exception from the SDK during cancellation would replace the cancellation.
            calling = asyncio.create_task(
                self._in_session(open_session, values, oauth, seconds, lambda session, left: use(session, left, mask)),
                name=f"call of {self._source}",
            )
            result = await _ended(calling)
            return result, mask if oauth is None else ValueMask([*values.redacted_values, *oauth.secrets])
        except CallError as error:
            error.message, error.details = mask.text(error.message), mask.value(error.details)
            raise worded_for_user(error, self._source, self._auth) from None

    async def _in_session(
        self,
        open_session: OpenSession,
        values: AuthValues,
        oauth: OAuthRequests | None,
        seconds: float,
        use: Callable[["UpstreamSession", float], Awaitable[T]],
    ) -> T:
        deadline = asyncio.get_running_loop().time() + seconds
        connecting = asyncio.timeout(min(seconds, self._settings.start_timeout_s))
        exchange = UpstreamExchange()
        ended: T | CallError | None = None
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
                    oauth=oauth,
                    connecting=exchange,
                ) as session,
            ):
                connecting.reschedule(None)
                try:
                    left = deadline - asyncio.get_running_loop().time()
                    ended = await use(session, left)
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
        if exchange.refused is not None:
            return upstream_failures.call_failure(self._source, 0, "", exchange)
        if exchange.status in {401, 403}:
            failure = upstream_failures.call_failure(self._source, 0, "", exchange)
            return PermissionDeniedError(failure.message, executed="no", summary=failure.summary)
        return upstream_failures.not_connected(self._source, unavailable_reason(error))


async def _checked(oauth: OAuthRequests) -> None:
    """
    Raises:
        SignInNeededError: the caller has to sign in.
        ServiceUnavailableError: the caller's token cannot be renewed now.
    """
    try:
        await oauth.sign_in()
    except TokenUnavailableError as error:
        raise ServiceUnavailableError(f"{error}.", executed="no") from None


async def _ended(task: "asyncio.Task[T]") -> T:
    """Waits for a task, even if the caller is cancelled meanwhile, and returns its result."""
    try:
        await asyncio.wait([task])
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
    return task.result()
