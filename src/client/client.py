"""``MCPWebSocketClient``: calls a daemon's tools over one connection at a time, and reconnects when it is lost.

Its parts: ``request_exchange`` sends requests, ``client_session`` has the state that outlives a connection,
``client_link`` connects and reconnects, ``reconnect_policy`` decides when, ``client_connection`` is one socket,
``client_frames`` encodes and decodes frames.
"""

import logging
import os
import ssl
import time
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, Self

from ..protocol.daemon_address import default_state_dir
from ..protocol.error_codes import CallError
from ..protocol.frames import CallToolRes, HealthRes, HelloAck, ListToolsRes, Pong
from ..protocol.handshake import JSON_TEXT, PROSE_TEXT
from ..protocol.tool_call import DEFAULT_TIMEOUT_S, MAX_FRAME_BYTES, ToolInfo
from ..version import __version__
from . import client_frames
from .call_result import CallOutcome, CallResult, error_text, metrics_record, result_of, version_and_timeout
from .client_connection import ClientConnection
from .client_errors import ConnectionFailedError, ConnectionLostError
from .client_link import ATTEMPTS, BACKOFF_FACTOR, ClientLink
from .client_session import ClientSession
from .daemon_endpoint import DaemonEndpoint, EndpointRequest, read_announcement, resolve
from .pending_answers import OnChunk, OnNotification, OnProgress, OnToolsChanged, expect_frame
from .question_callbacks import OnQuestion
from .request_exchange import RequestExchange

_log = logging.getLogger(__name__)

FEATURES: Final = ("ack", "stream", "resume", "going_away")
"""The optional protocol features of this client (docs/protocol.md, hello)."""
_KNOWN_FEATURES: Final = (*FEATURES, JSON_TEXT, PROSE_TEXT)


class MCPWebSocketClient:
    """A client of one daemon; supports concurrent calls from all tasks of one event loop.

    Host, port and token default to ``TOOLD_HOST|PORT|TOKEN``, then ``EXAI_WS_HOST|PORT|TOKEN``, then the daemon's state
    directory, then 127.0.0.1:8079 without a token. They are resolved again at each connect.

    Args:
        host: a name, an address, or a ``ws://…`` or ``wss://…`` URL.
        max_message_size: bytes; a longer frame from the daemon ends the connection.
        tls: true for ``wss`` with the system's certificates; an ``ssl.SSLContext`` for other certificates.
        session_id: a label for logs and audit, which stays the same after reconnects; generated if None.
        features: optional protocol features to request; ``()`` makes a plain client.
        client_name: this program's name in the daemon's logs.
        workspace: the base directory of relative paths in arguments.
        toolset: the toolset to use; None for the daemon's default. The daemon refuses unknown names.
        on_tools_changed: called when the result of ``list_tools`` has changed, also after a reconnect.
        on_question: an async function that answers the questions of running calls (docs/questions.md).
        answers: the kinds of questions that ``on_question`` answers: ``form``, ``url``, ``sampling``,
            ``sampling_tools``, ``roots``.
        on_notification: called with the method and the parameters of each notification about resources, prompts and log
            messages (docs/protocol.md). The client renews subscriptions of ``call_tool`` after a reconnect.

    Raises:
        ValueError: a host, port or feature is invalid.
    """

    def __init__(
        self,
        host: str | None = None,
        port: int | None = None,
        token: str | None = None,
        max_message_size: int = MAX_FRAME_BYTES,
        *,
        tls: bool | ssl.SSLContext | None = None,
        session_id: str | None = None,
        features: Sequence[str] = FEATURES,
        client_name: str = "toold-python",
        workspace: str | os.PathLike[str] | None = None,
        toolset: str | None = None,
        on_tools_changed: OnToolsChanged | None = None,
        on_question: OnQuestion | None = None,
        answers: Sequence[str] = ("form", "url", "sampling", "roots"),
        on_notification: OnNotification | None = None,
    ) -> None:
        unknown = sorted(set(features) - set(_KNOWN_FEATURES))
        if unknown:
            raise ValueError(f"unknown feature {unknown[0]!r}; this client understands {', '.join(_KNOWN_FEATURES)}")
        self.session_id = session_id or f"client-{uuid.uuid4().hex[:8]}"
        self.max_message_size = max_message_size
        self._context = tls if isinstance(tls, ssl.SSLContext) else None
        self._request = EndpointRequest(
            host, port, token, True if self._context else bool(tls) if tls is not None else None
        )
        self._features = (
            *features,
            *(("tools_changed",) if on_tools_changed else ()),
            *(("questions",) if on_question else ()),
            *(("resources",) if on_notification else ()),
        )
        self._on_question = on_question
        self._answers = tuple(answers) if on_question else ()
        self._toolset = toolset
        self._client = {
            "name": client_name,
            "version": __version__,
            "workspace": os.fspath(workspace) if workspace is not None else None,
        }
        self._endpoint = self._find_endpoint()
        self._session = ClientSession(on_tools_changed, on_notification)
        self._link = ClientLink(self._session, self._dial)
        self._exchange = RequestExchange(self._session, self._link)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url} {'connected' if self.connected else 'not connected'}>"

    async def __aenter__(self) -> Self:
        """Connects as ``connect()`` does.

        Raises:
            ConnectionFailedError: connecting failed.
        """
        await self._link.establish()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.disconnect()

    # --- the connection ----------------------------------------------------------------------------------------------

    @property
    def connected(self) -> bool:
        """Whether the client is connected, as far as it knows."""
        return self._link.connected

    @property
    def last_error(self) -> Exception | None:
        """The latest failure: of an attempt to connect, or of a connection."""
        return self._link.last_error

    @property
    def url(self) -> str:
        """The URL of the current connection, or else of the last or the next connection."""
        return self._endpoint.url

    @property
    def hello(self) -> HelloAck | None:
        """The daemon's answer to the last hello that it accepted: its version, features, toolset and limits."""
        return self._link.connection.ack if self._link.connection else None

    async def connect(self, max_retries: int = ATTEMPTS, backoff_factor: float = BACKOFF_FACTOR) -> bool:
        """Connects unless connected, with up to ``max_retries`` attempts, at least one.

        Waits ``backoff_factor``, then ``backoff_factor²``, … seconds between attempts, at most 30. A permanent failure,
        such as a wrong token, ends the attempts. Returns False if all failed; ``last_error`` and the log have the
        reason. Once connected, the client reconnects automatically until ``disconnect()``.
        """
        try:
            await self._link.establish(max_retries, backoff_factor)
        except ConnectionFailedError:
            return False
        return True

    async def disconnect(self) -> None:
        """Closes the connection, if any, and stops reconnecting. Calls in flight fail with ``ConnectionLostError``, and
        the client's session ends.
        """
        await self._link.close()

    async def ensure_connected(self, max_retries: int = ATTEMPTS) -> bool:
        """Connects unless connected. Does not take over a session that was resumed elsewhere."""
        try:
            await self._link.restore(max_retries)
        except ConnectionFailedError:
            return False
        return True

    # --- calls -------------------------------------------------------------------------------------------------------

    async def call_tool(
        self,
        tool_name: str,
        arguments: Mapping[str, Any] | None = None,
        timeout: float | None = DEFAULT_TIMEOUT_S,
        auto_reconnect: bool = True,
    ) -> CallOutcome:
        """Calls a tool; returns ``(success, outputs, error)``. ``error`` is one line, None on success. The tuple also
        has the attributes ``structured`` and ``metadata``.

        ``timeout`` and ``auto_reconnect`` are as in ``call``, whose errors are returned as ``error``.

        Raises:
            ValueError: the timeout is not positive.
        """
        metadata = None
        try:
            answer = await self.answer(tool_name, arguments, timeout=timeout, auto_reconnect=auto_reconnect)
            metadata = answer.metadata
            result = result_of(answer)
        except (CallError, ConnectionFailedError, ConnectionLostError) as error:
            return CallOutcome([], error_text(error), metadata=metadata)
        return CallOutcome(result.outputs, None, result.structured, metadata)

    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        on_chunk: OnChunk | None = None,
        request_id: str | None = None,
        auto_reconnect: bool = True,
        traceparent: str | None = None,
    ) -> CallResult:
        """Calls a tool and returns its result.

        Args:
            timeout: the call's timeout in seconds, enforced by the daemon; None for the tool's default. The client
                waits 5 s longer, and then cancels the call. The timeout includes the time to reconnect; with None, a
                reconnect may take 30 s.
            on_progress: called with each ``Progress``, at least every 5 s while the call runs.
            on_chunk: called with each chunk of the answer's text, a ``str`` with its ``offset`` in the text. Needs the
                feature ``stream``.
            request_id: the id for ``cancel``; generated if None.
            auto_reconnect: connect first if not connected, and keep waiting after a lost connection as long as the
                session can be resumed. A call that was sent is never sent in another session, because it may have run.
            traceparent: the caller's span in the format of W3C Trace Context. It becomes the parent of the call's span.

        Raises:
            CallError: the daemon's error, by its code; CallTimeoutError if no answer arrives in time.
            ConnectionFailedError: connecting failed, so the call was not sent.
            ConnectionLostError: the connection ended before the answer; ``executed`` says whether the call was sent.
            ValueError: the timeout is not positive, the id is in flight, or ``on_chunk`` is used without ``stream``.
        """
        answer = await self.answer(
            name,
            arguments,
            timeout=timeout,
            on_progress=on_progress,
            on_chunk=on_chunk,
            request_id=request_id,
            auto_reconnect=auto_reconnect,
            traceparent=traceparent,
        )
        return result_of(answer)

    async def answer(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        on_chunk: OnChunk | None = None,
        request_id: str | None = None,
        auto_reconnect: bool = True,
        traceparent: str | None = None,
        on_question: OnQuestion | None = None,
        answers: Sequence[str] | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> CallToolRes:
        """Calls a tool and returns its raw answer, in which errors also have ``metadata``, such as their cost.

        Like ``call``, but the daemon's errors are returned. ``on_question`` and ``answers`` replace those of the
        client, which must have an ``on_question``. ``meta`` is the ``_meta`` for the MCP server whose tool is called.
        """
        if timeout is not None and not timeout > 0:
            raise ValueError(f"timeout must be more than 0 seconds, not {timeout}")
        if on_chunk is not None and "stream" not in self._features:
            raise ValueError("on_chunk needs the 'stream' feature; this client was made without it")
        if "/" in name:  # a method about resources and prompts
            self._session.follow_again(name, arguments)
        return await self._exchange.answer(
            request_id or uuid.uuid4().hex,
            name,
            arguments,
            timeout,
            survives_reconnect=auto_reconnect,
            on_progress=on_progress,
            on_chunk=on_chunk,
            traceparent=traceparent,
            on_question=on_question or self._on_question,
            answers=self._answers if answers is None else answers,
            meta=meta,
        )

    async def cancel(self, request_id: str) -> bool:
        """Cancels a running call; False if it had ended or is unknown.

        The task that waits for the call gets its one answer: ``CallCancelledError``, or the result if that came first.
        If the connection is lost, the cancel is resent on the next one; a call that was not sent yet ends at once.

        Raises:
            CallError: as raised by ``ping``; ConnectionLostError: not connected.
        """
        return await self._exchange.cancel(request_id)

    async def execute_tool_with_metrics(
        self,
        tool_name: str,
        arguments: Mapping[str, Any] | None = None,
        baseline_version: str | float | None = None,
        iteration: int = 1,
        *,
        timeout: float | None = None,
    ) -> dict[str, Any]:
        """Calls a tool and returns a flat record of its outcome; never raises for a failed call.

        Signatures: ``(tool_name, arguments, "v1.2", iteration=3)`` and ``(tool_name, arguments, 30.0)``. The record has
        tool_name, iteration, status (``success`` or ``error``), latency_ms (as this client saw it), timestamp (start,
        ISO 8601 in UTC), baseline_version where given, and output_count or error.

        Raises:
            TypeError: the third argument is neither a string nor a number.
        """
        version, seconds = version_and_timeout(baseline_version, timeout)
        started, began = datetime.now(UTC), time.perf_counter()
        _, outputs, error = await self.call_tool(tool_name, arguments, seconds)
        return metrics_record(
            tool_name=tool_name,
            iteration=iteration,
            baseline_version=version,
            started=started,
            latency_ms=(time.perf_counter() - began) * 1000,
            outputs=outputs,
            error=error,
        )

    # --- other requests ----------------------------------------------------------------------------------------------

    async def list_tools(self) -> tuple[ToolInfo, ...]:
        """Returns the tools that this session may call. Raises the same errors as ``ping``."""
        return expect_frame(ListToolsRes, await self._exchange.request("list_tools")).tools

    async def health(self) -> dict[str, Any]:
        """Returns the daemon's health, as in ``/readyz``. Raises the same errors as ``ping``."""
        return expect_frame(HealthRes, await self._exchange.request("health")).health

    async def ping(self) -> float:
        """Returns the round-trip time in seconds.

        Raises:
            CallError: the daemon's error, or CallTimeoutError after 10 s without an answer.
            ConnectionFailedError: connecting failed.
            ConnectionLostError: the connection ended before the answer.
        """
        await self._exchange.connected()
        began = time.perf_counter()
        expect_frame(Pong, await self._exchange.request("ping"))
        return time.perf_counter() - began

    # --- internal ----------------------------------------------------------------------------------------------------

    def _find_endpoint(self) -> DaemonEndpoint:
        return resolve(self._request, os.environ, read_announcement(default_state_dir(os.environ)))

    async def _dial(self) -> ClientConnection:
        try:
            self._endpoint = self._find_endpoint()
        except ValueError as exc:
            raise ConnectionFailedError(str(exc), retryable=False) from exc
        hello = client_frames.hello_frame(
            session_id=self.session_id,
            token=self._endpoint.token,
            features=self._features,
            client=self._client,
            toolset=self._toolset,
            resume_key=self._session.key,
            connection_number=self._session.next_connection_number(),
        )
        connection = await ClientConnection.connect(
            self._endpoint, hello, tls_context=self._context, max_message_size=self.max_message_size
        )
        if connection.ack.notice:
            _log.warning("%s: %s", self.url, connection.ack.notice)
        return connection
