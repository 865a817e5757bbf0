"""``MCPWebSocketClient``: calls tools of a daemon over one connection at a time, and comes back when it breaks.

Below it, each with one thing to know: ``exchange`` makes a call over whatever connection stands, ``session`` is what
outlives a connection (who waits for which answer), ``link`` dials and comes back, ``returning`` decides when,
``connection`` is one socket, ``requests`` and ``reading`` are the frames.
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
from ..protocol.tool_call import DEFAULT_TIMEOUT_S, MAX_FRAME_BYTES, ToolInfo
from ..version import __version__
from . import client_frames
from .call_result import CallResult, error_text, metrics_record, result_of, version_and_timeout
from .client_connection import ClientConnection
from .client_errors import ConnectionFailedError, ConnectionLostError
from .client_link import ATTEMPTS, BACKOFF_FACTOR, ClientLink
from .client_session import ClientSession
from .daemon_endpoint import DaemonEndpoint, EndpointRequest, read_announcement, resolve
from .pending_answers import OnChunk, OnProgress, OnToolsChanged, answered_with
from .request_exchange import RequestExchange

_log = logging.getLogger(__name__)

FEATURES: Final = ("ack", "stream", "resume", "going_away")
"""What this client understands beyond plain (docs/protocol.md, hello)."""


class MCPWebSocketClient:
    """One connection to a daemon; any number of calls at once, from any task of one event loop.

    Host, port and token default to ``TOOLD_HOST|PORT|TOKEN``, then ``EXAI_WS_HOST|PORT|TOKEN``, then to what the
    daemon left in its state directory, then to 127.0.0.1:8079 without a token. They are looked up anew at each connect.

    Args:
        host: a name, an address, or a whole ``ws://…`` or ``wss://…`` URL.
        max_message_size: bytes; a longer frame from the daemon ends the connection.
        tls: true for ``wss``, with the system's certificates; an ``ssl.SSLContext`` for others.
        session_id: a label for logs and audit; made up where it is None, and the same at each reconnect.
        features: what to ask for beyond plain; ``()`` makes a plain client.
        client_name: this program's name in the daemon's logs.
        workspace: where relative paths in arguments start.
        toolset: which tools to have; None takes the daemon's default. A name that it has not refuses the connection.
        on_tools_changed: called when ``list_tools`` would have another answer, after a reconnect too.

    Raises:
        ValueError: a host, port or feature cannot be one.
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
    ) -> None:
        unknown = sorted(set(features) - set(FEATURES))
        if unknown:
            raise ValueError(f"unknown feature {unknown[0]!r}; this client understands {', '.join(FEATURES)}")
        self.session_id = session_id or f"client-{uuid.uuid4().hex[:8]}"
        self.max_message_size = max_message_size
        self._context = tls if isinstance(tls, ssl.SSLContext) else None
        self._wish = EndpointRequest(
            host, port, token, True if self._context else bool(tls) if tls is not None else None
        )
        self._features = (*features, "tools_changed") if on_tools_changed else tuple(features)
        self._toolset = toolset
        self._client = {
            "name": client_name,
            "version": __version__,
            "workspace": os.fspath(workspace) if workspace is not None else None,
        }
        self._endpoint = self._find_endpoint()
        self._session = ClientSession(on_tools_changed)
        self._link = ClientLink(self._session, self._dial)
        self._exchange = RequestExchange(self._session, self._link)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.url} {'connected' if self.connected else 'not connected'}>"

    async def __aenter__(self) -> Self:
        """Connect as ``connect()`` does.

        Raises:
            ConnectionFailedError: it could not.
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
        """Whether a greeted connection stands, as far as this side knows."""
        return self._link.connected

    @property
    def last_error(self) -> Exception | None:
        """Why the last attempt to connect failed, or how the last connection ended, whichever was later."""
        return self._link.last_error

    @property
    def url(self) -> str:
        """Where the client is, or last was, or will first be connected to."""
        return self._endpoint.url

    @property
    def hello(self) -> HelloAck | None:
        """The daemon's answer to the last hello that it accepted: its version, features, toolset and limits."""
        return self._link.connection.ack if self._link.connection else None

    async def connect(self, max_retries: int = ATTEMPTS, backoff_factor: float = BACKOFF_FACTOR) -> bool:
        """Connect unless connected; ``max_retries`` attempts in all, at least one.

        Waits ``backoff_factor``, then ``backoff_factor²``, … seconds between attempts, 30 at most. An attempt that can
        only fail again, such as one with a wrong token, is the last. False where none succeeded: ``last_error`` and
        the log say why. Once a connection stood, the client comes back by itself until ``disconnect()``.
        """
        try:
            await self._link.establish(max_retries, backoff_factor)
        except ConnectionFailedError:
            return False
        return True

    async def disconnect(self) -> None:
        """Close the connection, if there is one, and come back no more. Calls in flight fail with
        ``ConnectionLostError``; the session is over for this client."""
        await self._link.close()

    async def ensure_connected(self, max_retries: int = ATTEMPTS) -> bool:
        """Connect where no connection stands. A session that was resumed elsewhere is not taken back by itself."""
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
    ) -> tuple[bool, list[dict[str, Any]], str | None]:
        """Call a tool: ``(success, outputs, error)``; ``error`` is one line, None on success.

        ``timeout`` and ``auto_reconnect`` are as in ``call``, which raises what this puts into ``error``.

        Raises:
            ValueError: the time-out is not above 0.
        """
        try:
            result = await self.call(tool_name, arguments, timeout=timeout, auto_reconnect=auto_reconnect)
        except (CallError, ConnectionFailedError, ConnectionLostError) as error:
            return False, [], error_text(error)
        return True, result.outputs, None

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
    ) -> CallResult:
        """Call a tool and wait for its result.

        Args:
            timeout: the call's deadline in seconds, kept by the daemon; None takes the tool's own. The client waits
                5 s longer, then gives up and has the call cancelled. A connection that is away is waited for within
                it (within 30 s where it is None).
            on_progress: called with each ``Progress``, at least every 5 s while the call runs.
            on_chunk: called with each piece of the answer's text; needs the ``stream`` feature.
            request_id: the id to ``cancel`` by; made up where it is None.
            auto_reconnect: connect first where no connection stands, and wait on where it breaks, as long as the
                session can be resumed. A call that was sent is never sent to another session: it may have run.

        Raises:
            CallError: the daemon's error, by its code; CallTimeoutError where no answer came in time.
            ConnectionFailedError: no connection came about, so the call was not sent.
            ConnectionLostError: the connection ended before the answer; ``executed`` says whether the call was sent.
            ValueError: the time-out is not above 0, the id is in flight already, or ``on_chunk`` without ``stream``.
        """
        answer = await self.answer(
            name,
            arguments,
            timeout=timeout,
            on_progress=on_progress,
            on_chunk=on_chunk,
            request_id=request_id,
            auto_reconnect=auto_reconnect,
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
    ) -> CallToolRes:
        """Call a tool and wait for its answer as it comes: an error has its ``metadata`` too, such as what it cost.

        Takes and raises what ``call`` does, but for the daemon's errors.
        """
        if timeout is not None and not timeout > 0:
            raise ValueError(f"timeout must be more than 0 seconds, not {timeout}")
        if on_chunk is not None and "stream" not in self._features:
            raise ValueError("on_chunk needs the 'stream' feature; this client was made without it")
        return await self._exchange.answer(
            request_id or uuid.uuid4().hex,
            name,
            arguments,
            timeout,
            survives_reconnect=auto_reconnect,
            on_progress=on_progress,
            on_chunk=on_chunk,
        )

    async def cancel(self, request_id: str) -> bool:
        """End a running call; true where that ended it, false where it had ended or is not known.

        The task that waits for the call gets its one answer: ``CallCancelledError``, or the result if that was first.
        A call of this client is ended over the next connection where this one breaks, and at once where it still
        waits for a connection.

        Raises:
            CallError: as ``ping``; ConnectionLostError: no connection stands.
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
        """Call a tool and return a flat record of how it went; never raises for what the call came to.

        Two shapes: ``(tool_name, arguments, "v1.2", iteration=3)`` and ``(tool_name, arguments, 30.0)``. The record has
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

    # --- questions that take no permit -------------------------------------------------------------------------------

    async def list_tools(self) -> tuple[ToolInfo, ...]:
        """The tools that this connection may call. Raises as ``ping``."""
        return answered_with(ListToolsRes, await self._exchange.ask("list_tools")).tools

    async def health(self) -> dict[str, Any]:
        """How the daemon is, as its ``/readyz`` shows it. Raises as ``ping``."""
        return answered_with(HealthRes, await self._exchange.ask("health")).health

    async def ping(self) -> float:
        """Seconds that the daemon's loop took to answer.

        Raises:
            CallError: the daemon's objection, or CallTimeoutError after 10 s without an answer.
            ConnectionFailedError: no connection came about.
            ConnectionLostError: the connection ended before the answer.
        """
        await self._exchange.connected()
        began = time.perf_counter()
        answered_with(Pong, await self._exchange.ask("ping"))
        return time.perf_counter() - began

    # --- within ------------------------------------------------------------------------------------------------------

    def _find_endpoint(self) -> DaemonEndpoint:
        return resolve(self._wish, os.environ, read_announcement(default_state_dir(os.environ)))

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
        )
        connection = await ClientConnection.connect(
            self._endpoint, hello, tls_context=self._context, max_message_size=self.max_message_size
        )
        if connection.ack.notice:
            _log.warning("%s: %s", self.url, connection.ack.notice)
        return connection
