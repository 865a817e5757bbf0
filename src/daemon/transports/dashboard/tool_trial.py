"""A call that a person makes from the page of a tool: its progress, streamed text, questions and result, as events.

The call ends if the person leaves the page.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from ....protocol.questions.question_table import OpenQuestion
from ....protocol.tool_call import ClientInfo, Progress, ToolCall, ToolResult, encode_result
from ...dispatch import AbsentResultPort, DisconnectedPort, Router, RunningCall, prepared
from ...observability.logging_setup import bind_session
from ..keyed_sessions import KeyedSessions
from .dashboard_port import Viewer
from .event_response import server_sent_event
from .trial_questions import ANSWERED_KINDS

TRANSPORT: Final = "dashboard"
CLIENT: Final = ClientInfo(TRANSPORT)
_REQUEST: Final = "1"
"""The request id of a call, which is the only call of its session."""


class TrialPort(DisconnectedPort):
    """The unread reports of a call: only the latest progress; waiting chunks are joined."""

    def __init__(self, asked: Callable[[OpenQuestion], str] | None) -> None:
        """``asked`` renders a question; None if the page cannot show questions."""
        self.result: ToolResult | None = None
        self._asked = asked
        self._questions: dict[str, bytes] = {}
        """The unsent events of questions, by token."""
        self.changed = asyncio.Event()
        self._progress: Progress | None = None
        self._chunks: list[str] = []
        self._rendered: ToolResult | None = None

    def events(self) -> bytes:
        """Returns and clears the events to send."""
        progress, chunks = self._progress, self._chunks
        self._progress, self._chunks = None, []
        events = b"" if progress is None else server_sent_event("progress", msgspec.json.encode(progress))
        if chunks:
            events += server_sent_event("chunk", msgspec.json.encode("".join(chunks)))
        questions, self._questions = self._questions, {}
        return events + b"".join(questions.values())

    def question(self, _call: RunningCall, entry: OpenQuestion) -> None:
        if self._asked is not None:
            self._questions[entry.token] = server_sent_event("question", self._asked(entry).encode(errors="replace"))
            self.changed.set()

    def question_closed(self, _call: RunningCall, entry: OpenQuestion) -> None:
        self._questions[entry.token] = server_sent_event("closed", entry.token.encode())
        self.changed.set()

    def settle(self, result: ToolResult) -> None:
        """Sets the result of a call that did not run."""
        self.result = result
        self.changed.set()

    def render(self, _call: RunningCall, result: ToolResult) -> bytes:
        self._rendered = result
        return encode_result(result)

    async def deliver(self, _call: RunningCall, answer: bytes) -> None:  # noqa: ARG002 - the result is shown as it is
        if self._rendered is not None:
            self.settle(self._rendered)

    def progress(self, _call: RunningCall, progress: Progress) -> bool:
        self._progress = progress
        self.changed.set()
        return True

    def chunk(self, _call: RunningCall, text: str) -> None:
        self._chunks.append(text)
        self.changed.set()

    def heartbeat(self, calls: Sequence[RunningCall], now: float) -> None:
        for call in calls:  # always exactly one
            self._progress = self._progress or call.heartbeat(now)
        self.changed.set()


class ToolTrials:
    """Makes the calls."""

    def __init__(self, router: Router) -> None:
        self._router = router
        self._sessions = KeyedSessions(router, transport=TRANSPORT, absent_port=AbsentResultPort())

    async def run(
        self,
        viewer: Viewer,
        toolset: str,
        tool: str,
        arguments: Mapping[str, Any],
        size: int,
        shown: Callable[[ToolResult, str | None], str],
        asked: Callable[[OpenQuestion], str] | None,
    ) -> AsyncGenerator[bytes, None]:
        """The events of one call of ``size`` bytes: ``started`` with its id, ``progress``, ``chunk``, ``question`` with
        the HTML that ``asked`` returns, ``closed`` with the token of a question that is no longer open, and
        ``result`` with the HTML that ``shown`` returns of the result and the id. Closing this ends the call.
        """
        session = self._sessions.open(viewer.access, toolset, CLIENT, label=TRANSPORT, streams=True)
        bind_session(session.label)
        kinds = () if asked is None else ANSWERED_KINDS
        call = ToolCall(_REQUEST, tool, dict(arguments), None, size, "cancel", answers=kinds)
        ready = await prepared(self._router.catalog, session, call)
        port = TrialPort(asked)
        call_id = None
        self._router.connect(session, port)
        try:
            submitted = self._router.submit(session, ready, port)
            if isinstance(submitted, ToolResult):
                port.settle(submitted)
            elif isinstance(submitted, RunningCall):
                call_id = submitted.id
                yield server_sent_event("started", call_id.encode())
            while port.result is None:
                await port.changed.wait()
                port.changed.clear()
                events = port.events()
                if events:
                    yield events
            yield port.events() + server_sent_event("result", shown(port.result, call_id).encode(errors="replace"))
        finally:
            self._router.disconnect(session, port)
