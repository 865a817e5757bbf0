"""Calls of one server's tools, and requests about its resources and prompts, in the shared session or in a session of
the caller.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ...protocol.error_codes import CallError, CallTimeoutError
from ...protocol.terminal_text import one_line
from ...tools import ToolContext, ToolOutput
from ..checked_network import CheckedNetwork
from ..content_blocks import server_answer
from ..oauth.oauth_requests import SourceOAuth
from ..oauth.oauth_settings import OAuthAuth, secret_auth
from ..pinned_catalog import PinnedCatalog
from ..source_content import SourceEvents
from ..source_settings import McpSettings
from .caller_session import CallerSessions, ContentQuestion, OpenSession
from .sdk_modules import new_content_requests, session_opener
from .upstream_failures import UpstreamUnavailableError, not_connected, unavailable
from .upstream_questions import CallQuestions
from .upstream_result import failure
from .upstream_secrets import UpstreamSecrets

if TYPE_CHECKING:  # imports the SDK, which takes a second
    from .upstream_session import UpstreamResult, UpstreamSession

_MARGIN_S: Final = 0.1
"""A call ends this long before its deadline, so that the caller learns the reason."""
_POLL_S: Final = 0.05
_PROGRESS_CHARS: Final = 500


@dataclass(slots=True)
class UpstreamLink:
    """The session with a server, or the reason why there is none."""

    session: "UpstreamSession | None" = None
    """Set once the server's tools are published."""
    problem: str = "the daemon is connecting to it"
    failed_attempts: int = 0
    reconnect_at: float = 0.0
    """The time of the next attempt, by the monotonic clock."""

    def usable(self, source: str) -> "UpstreamSession":
        """Returns the session.

        Raises:
            ServiceUnavailableError: there is no session; the error says why, and when to try again.
        """
        if self.session is None or self.session.ended.is_set():
            raise unavailable(source, self.problem, self.reconnect_at - time.monotonic())
        return self.session

    async def next_session(self, ended: "UpstreamSession", context: ToolContext) -> "UpstreamSession | None":
        """Returns the session that replaces ``ended``; None if ``ended`` is still open, or no new one opens in time."""
        if not ended.ended.is_set():
            return None
        failed_attempts = self.failed_attempts
        async with context.without_permit():
            while (  # noqa: ASYNC110 - rare; an event would be one more state to maintain
                self.session in {None, ended}
                and self.failed_attempts == failed_attempts
                and context.remaining() > _MARGIN_S
            ):
                await asyncio.sleep(_POLL_S)
        return None if self.session is ended else self.session


class UpstreamCalls:
    """Calls one server."""

    def __init__(
        self,
        name: str,
        settings: McpSettings,
        link: UpstreamLink,
        catalog: PinnedCatalog,
        secrets: UpstreamSecrets,
        network: CheckedNetwork,
        oauth: SourceOAuth,
        events: SourceEvents,
    ) -> None:
        self._name = name
        self._settings = settings
        self._link = link
        self._catalog = catalog
        self._secrets = secrets
        self._events = events
        auth, self._caller_sessions = settings.auth, None
        if auth is not None and auth.of_caller:
            of_caller = oauth.of_caller if isinstance(auth, OAuthAuth) else None
            self._caller_sessions = CallerSessions(name, settings, secret_auth(auth), network, of_caller)

    def __repr__(self) -> str:
        return f"<UpstreamCalls of {self._name}>"

    async def call(self, tool: str, arguments: dict[str, Any], context: ToolContext) -> ToolOutput | str:
        """Calls the server's tool of this name and returns its answer.

        Raises:
            CallError: the server's error, or the reason why it could not be called.
        """
        questions = self._questions_of(context)
        with questions.named_in_error():
            return await self._call(tool, arguments, context, questions)

    def _questions_of(self, context: ToolContext) -> CallQuestions:
        """The questions of the server during one call."""
        settings = self._settings
        return CallQuestions(self._name, settings.sampling, context, self._secrets.redact, settings.sampling_budget)

    async def _call(
        self, tool: str, arguments: dict[str, Any], context: ToolContext, questions: CallQuestions
    ) -> ToolOutput | str:
        if self._caller_sessions is not None:
            return await self._call_as_caller(self._caller_sessions, tool, arguments, context, questions)
        session = self._link.usable(self._name)
        self._catalog.refuse_withheld(tool)  # because the published tool may be older than the session
        try:
            try:
                result = await self._call_session(session, tool, arguments, context, questions)
            except CallError as error:
                # If the server has forgotten the session, it has not executed the call: repeat it in the next session.
                next_session = await self._link.next_session(session, context) if error.executed == "no" else None
                if next_session is None:
                    raise
                self._catalog.refuse_withheld(tool)
                result = await self._call_session(next_session, tool, arguments, context, questions)
        except CallError as error:
            error.message, error.details = self._secrets.redact_text(error.message), self._secrets.redact(error.details)
            raise
        return self._answer(result, self._secrets.redact)

    async def _call_as_caller(
        self,
        sessions: CallerSessions,
        tool: str,
        arguments: dict[str, Any],
        context: ToolContext,
        questions: CallQuestions,
    ) -> ToolOutput | str:
        open_session = await self._opening()
        report, seconds = self._report(context), self._seconds_left(context)
        as_task = self._catalog.runs_as_task(tool)
        result, mask = await sessions.call(
            open_session, tool, arguments, context, seconds, report, questions, as_task=as_task
        )
        return self._answer(result, mask.value)

    def _answer(self, result: "UpstreamResult", redact: Callable[[Any], Any]) -> ToolOutput | str:
        """Returns a result without secrets.

        Raises:
            CallError: the tool failed.
        """
        parts = redact(result.content), redact(result.structured), redact(result.meta)
        if result.failed:
            raise failure(self._name, *parts)
        return server_answer(*parts)

    async def _call_session(
        self,
        session: "UpstreamSession",
        tool: str,
        arguments: dict[str, Any],
        context: ToolContext,
        questions: CallQuestions,
    ) -> "UpstreamResult":
        as_task = self._catalog.runs_as_task(tool)
        seconds = self._seconds_left(context)
        return await session.call(tool, arguments, seconds, self._report(context), questions, as_task=as_task)

    async def ask(self, ask: ContentQuestion, context: ToolContext) -> dict[str, Any]:
        """The answer to a request about resources or prompts, without the source's secrets."""
        questions = self._questions_of(context)
        with questions.named_in_error():
            return await self._ask_session(ask, context, questions)

    async def _ask_session(
        self, ask: ContentQuestion, context: ToolContext, questions: CallQuestions
    ) -> dict[str, Any]:
        seconds = self._seconds_left(context)
        if self._caller_sessions is not None:
            opening = await self._opening()
            answer, mask = await self._caller_sessions.ask(opening, ask, context, seconds, questions)
            return {name: mask.value(value) for name, value in answer.items()}
        session = self._link.usable(self._name)
        try:
            answer = await ask(new_content_requests(self._name, session, self._events, questions), seconds)
        except CallError as error:
            error.message, error.details = self._secrets.redact_text(error.message), self._secrets.redact(error.details)
            raise
        return {name: self._secrets.redact(value) for name, value in answer.items()}

    async def _opening(self) -> OpenSession:
        try:
            return await asyncio.to_thread(session_opener)
        except UpstreamUnavailableError as error:
            raise not_connected(self._name, str(error)) from None

    def _report(self, context: ToolContext) -> Callable[[str, float, float | None], float]:
        """Returns a callback that passes on progress, extends the call's deadline, and returns the remaining time."""

        def report(message: str, done: float, total: float | None) -> float:
            text = one_line(self._secrets.redact_text(message), _PROGRESS_CHARS)
            context.progress(text or f"{self._name} is working", done, total)
            context.extend_deadline(self._settings.timeout_s)
            return context.remaining() - _MARGIN_S

        return report

    def _seconds_left(self, context: ToolContext) -> float:
        seconds = context.remaining() - _MARGIN_S
        if seconds <= 0:
            raise CallTimeoutError(f"The deadline passed before {self._name} could be called.", executed="no")
        return seconds
