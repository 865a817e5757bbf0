"""The WebSocket server: handles upgrades, the hello, and the end of connections. ``websocket_connection`` handles
frames."""

import asyncio
import ssl
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from socket import socket
from typing import Any, Final, cast
from uuid import uuid4
from weakref import WeakSet

import structlog
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.typing import Origin

from ...protocol.authorization import Authenticate, Authorization, on_behalf
from ...protocol.error_codes import CallError, ServiceUnavailableError
from ...protocol.frames import (
    CLOSE_LIMIT,
    CLOSE_NO_PONG,
    CLOSE_RESTART,
    CLOSE_SUPERSEDED,
    CLOSE_UNAUTHORIZED,
    HelloAck,
    ServerInfo,
    encode,
)
from ...protocol.handshake import HelloAccepted, HelloRefused, hello_timed_out, parse_hello, token_of, validate_hello
from ...protocol.tool_call import Principal
from ...protocol.user_credential import USER_HEADER
from ...serving import SLOW_READER_BYTES, ConnectionLimits, ConnectionSlots, listen_on
from ...tools import ToolsetView
from ..cluster.session_relay import RelayedSession, SessionRelay
from ..dispatch import Router
from ..observability.logging_setup import bind_session, log_task_failure
from ..resource_host import ResourceHost
from .large_frames import LargeFrames, TurnLimits
from .peer_connection import MAX_HELLO_BYTES, PeerConnection
from .session_opening import OpenedSession, build_ack, open_or_resume
from .websocket_connection import WebSocketConnection

_CLOSE_TIMEOUT_S: Final = 2.0
"""The time in which a peer has to answer the close; a peer that does not read has one second more."""

_log = structlog.get_logger("toold.websocket")


@dataclass(frozen=True, slots=True)
class WebSocketOptions:
    """The operator's settings; the names give the units."""

    host: str
    port: int
    shared_port: bool
    """Whether other processes listen on the port too."""
    tls: ssl.SSLContext | None
    allowed_origins: tuple[str, ...]
    connections: ConnectionLimits
    max_frame_bytes: int
    ping_interval_s: float
    ping_timeout_s: float
    hello_timeout_s: float


class WebSocketServer:
    """Listens, performs the hello, and tracks all connections."""

    def __init__(
        self,
        options: WebSocketOptions,
        router: Router,
        *,
        authenticate: Authenticate,
        server: ServerInfo,
        instructions: Callable[[ToolsetView], str],
        health: Callable[[Principal], dict[str, Any]],
        resources: ResourceHost,
        relay: SessionRelay | None = None,
    ) -> None:
        """``relay``: in a cluster, reaches the sessions of other nodes."""
        self._relay = relay
        self._options = options
        self._router = router
        self._authenticate = authenticate
        self._server = server
        self._instructions = instructions
        self._health = health
        self._resources = resources
        self._listeners: list[Server] = []
        self.port = options.port
        """The port to listen on; after the start, the actual port, even if port 0 was requested."""
        self.own_port = options.port
        """After the start, a port that no other process shares."""
        self._connections: set[WebSocketConnection] = set()
        self._slots: ConnectionSlots[PeerConnection] = ConnectionSlots(options.connections)
        self._large_frames = LargeFrames(self._turn_limits)
        # All peers, from their first byte.
        self._peers: set[PeerConnection] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    def __repr__(self) -> str:
        return f"<WebSocketServer {self._slots!r}>"

    @property
    def connections(self) -> int:
        """The number of connections with a valid hello."""
        return len(self._connections)

    async def start(self) -> None:
        """Starts listening.

        Raises:
            OSError: as raised by ``serving.listen``.
        """
        options = self._options
        listening = listen_on(options.host, options.port, "--port", shared=options.shared_port)
        self.port, self.own_port = (int(listening[place].getsockname()[1]) for place in (0, -1))
        self._listeners = [await self._serve_on(each) for each in listening]
        self._in_background(self._watch_peers())

    async def _serve_on(self, listening: socket) -> Server:
        options = self._options
        return await serve(
            self._handle,
            sock=listening,
            ssl=options.tls,
            # None: clients other than browsers send no Origin.
            origins=[None, *(Origin(origin) for origin in options.allowed_origins)],
            process_request=self._before_upgrade,
            create_connection=cast(
                "type[PeerConnection]",
                partial(
                    PeerConnection,
                    register=self._peers,
                    slots=self._slots,
                    large_frames=self._large_frames,
                    max_frame_bytes=options.max_frame_bytes,
                ),
            ),
            compression=None,  # decision 6
            write_limit=SLOW_READER_BYTES,
            max_size=min(MAX_HELLO_BYTES, options.max_frame_bytes),  # a ``PeerConnection`` raises it after the hello
            open_timeout=options.hello_timeout_s,
            ssl_handshake_timeout=options.hello_timeout_s if options.tls else None,
            ping_interval=None,  # ``_watch_peers`` replaces it, without a task per connection
            ping_timeout=None,
            close_timeout=_CLOSE_TIMEOUT_S,
            server_header=f"toold/{self._server.version}",
        )

    def _turn_limits(self) -> TurnLimits:
        """How many frames of the largest size fit into the limits for requests."""
        bounds, frame = self._router.limits.request_bytes, self._options.max_frame_bytes
        return TurnLimits(bounds.principal // frame, bounds.daemon // frame)

    def tools_changed(self) -> None:
        """Notifies the clients whose tool listing has changed."""
        for connection in self._connections:
            connection.tools_changed()

    def close_unauthorized(self, denial_reason: Callable[[Authorization], str | None]) -> None:
        """Closes the connections whose authorization is no longer valid, with 4003 and the reason."""
        for connection in tuple(self._connections):
            reason = denial_reason(connection.access)
            if reason is not None:
                # No further frames are handled, and the next check skips the connection.
                self._connections.discard(connection)
                self._in_background(_drop(connection.stop_reading(), CLOSE_UNAUTHORIZED, reason))

    async def announce_shutdown(self, deadline_ms: float) -> None:
        """Sends ``going_away`` to the clients that support it."""
        notifications = [asyncio.create_task(connection.going_away(deadline_ms)) for connection in self._connections]
        if notifications:
            await asyncio.wait(notifications, timeout=1)

    async def close(self) -> None:
        """Closes all connections with 1012 (service restart) and stops listening; takes up to 4 seconds."""
        for task in self._tasks:
            task.cancel()
        if not self._listeners:
            return
        for listener in self._listeners:
            listener.close(code=CLOSE_RESTART, reason="the daemon is shutting down; reconnect later")
        for peer in tuple(self._peers):
            if peer.response is None:  # it has sent no request yet
                peer.transport.abort()
        if not await _closed(self._listeners, _CLOSE_TIMEOUT_S + 1):
            for peer in tuple(self._peers):
                peer.transport.abort()
            await _closed(self._listeners, 1)

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(log_task_failure)

    async def _watch_peers(self) -> None:
        """Sends pings, and closes the connections of peers that are gone, and of readers that stay behind.

        The library would need a task per connection, and would close a connection if no pong arrived in time. But a
        pong arrives only after everything sent before its ping: a large answer on a slow line would be interrupted,
        redelivered and interrupted again.
        """
        interval_s, timeout_s = self._options.ping_interval_s, self._options.ping_timeout_s
        heartbeat, tick_s = interval_s + timeout_s, min(1.0, interval_s / 4, timeout_s / 4)
        dropped: WeakSet[PeerConnection] = WeakSet()
        displaced = 0
        while True:
            await asyncio.sleep(tick_s)
            now = time.monotonic()
            if self._slots.displaced > displaced:
                _log.warning("silent connections displaced by newcomers", connections=self._slots.displaced - displaced)
                displaced = self._slots.displaced
            late = self._large_frames.overdue(now, timeout_s)
            if isinstance(late, PeerConnection) and late not in dropped:
                dropped.add(late)
                reason = f"a large frame took more than {timeout_s:g} s while others wait"
                self._in_background(_drop(late, CLOSE_LIMIT, reason))
            for peer in self._peers - set(dropped):
                stalled_s = peer.stalled_for(now)
                # A pong arrives only after all data sent before its ping, so a reader that is behind has more time.
                patience = heartbeat + timeout_s if stalled_s else heartbeat
                if stalled_s > timeout_s:
                    drop = _drop(peer, CLOSE_LIMIT, f"the reader is too slow: it read nothing for {timeout_s:g} s")
                elif peer.silent_for(now) > patience:
                    drop = _drop(peer, CLOSE_NO_PONG, f"no data and no pong for {patience:g} s")
                else:
                    peer.ping_if_due(interval_s - tick_s, now)  # the next tick would be too late
                    continue
                dropped.add(peer)
                self._in_background(drop)

    def _drop_lapsed(self, connection: WebSocketConnection) -> None:
        reason = "this node has lost contact with the database; reconnect"
        self._in_background(_drop(connection.stop_reading(), CLOSE_RESTART, reason))

    def close_lapsed(self) -> None:
        """Closes with 1012 the connections whose sessions this node may no longer answer for."""
        for connection in self._connections:
            connection.lapse()

    def _before_upgrade(self, connection: ServerConnection, _request: Request) -> Response | None:
        if not self._router.accepting:
            return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, "The daemon is shutting down; reconnect later.\n")
        return None

    async def _handle(self, connection: ServerConnection) -> None:
        peer = cast("PeerConnection", connection)
        accepted: WebSocketConnection | RelayedSession | None = None
        try:
            accepted = await self._accept(peer)
            if isinstance(accepted, RelayedSession):
                await accepted.pump(peer)
            elif accepted is not None:
                await accepted.serve()
        except ConnectionClosed:
            pass  # the peer disconnected; its calls are settled
        finally:
            if isinstance(accepted, WebSocketConnection):
                self._connections.discard(accepted)
                _log.info("disconnected", code=peer.close_code, reason=peer.close_reason or None)

    async def _accept(self, peer: PeerConnection) -> WebSocketConnection | RelayedSession | None:
        """Handles the hello of a new connection. Returns the object that serves the connection, or None if the hello is
        refused.

        Raises:
            ConnectionClosed: the peer has disconnected.
        """
        full = f"all {self._slots.limits.authenticated} connections of the daemon are in use"
        if self._slots.full:
            await peer.close(CLOSE_LIMIT, full)
            return None
        hello, data = await self._hello(peer)
        if isinstance(hello, HelloRefused):
            await _refuse(peer, hello)
            return None
        if not peer.admit():
            peer.reject()
            await peer.close(CLOSE_LIMIT, full)
            return None
        try:
            opened = await self._open(peer, hello, data)
            if not self._router.accepting and not isinstance(opened, RelayedSession):
                raise ServiceUnavailableError("The daemon is shutting down; reconnect later.", executed="no")
        except CallError as error:
            await _refuse(peer, HelloRefused(CLOSE_RESTART, error.to_tool_error()))
            return None
        if isinstance(opened, HelloRefused):
            await _refuse(peer, opened)
            return None
        peer.read_on(hello.principal.name)
        if isinstance(opened, RelayedSession):
            _log.info("connection relayed", principal=hello.principal.name, node=opened.holder.name)
            return opened
        return self._begin(peer, hello, opened)

    def _begin(self, peer: PeerConnection, hello: HelloAccepted, opened: OpenedSession) -> WebSocketConnection:
        """Starts the connection of an opened session."""
        session = opened.session
        bind_session(session.label)
        connection = WebSocketConnection(
            peer,
            hello,
            session,
            self._router,
            self._health,
            self._resources,
            None if self._relay is None else self._relay.may_answer,
            self._drop_lapsed,
        )
        superseded, missed = self._router.connect(session, connection)
        if isinstance(superseded, WebSocketConnection):
            self._in_background(
                _drop(superseded.stop_reading(), CLOSE_SUPERSEDED, "the session was resumed on another connection")
            )
        self._connections.add(connection)
        _log.info(
            "connected",
            session_id=session.id,
            principal=session.principal.name,
            client=session.client.name,
            resumed=opened.resumed,
        )
        connection.begin(self._ack(hello, opened), missed)
        return connection

    async def _open(
        self, peer: PeerConnection, hello: HelloAccepted, data: str | bytes
    ) -> OpenedSession | HelloRefused | RelayedSession:
        """Opens or resumes the session of a hello, on this node or on the node that holds it.

        Raises:
            ServiceUnavailableError: that is impossible at present.
        """
        if self._relay is None or not hello.resumable:
            return await open_or_resume(self._router, hello)
        return await self._relay.open_or_relay(partial(open_or_resume, self._router, hello), data, peer.request)

    async def _hello(self, peer: ServerConnection) -> tuple[HelloAccepted | HelloRefused, str | bytes]:
        try:
            async with asyncio.timeout(self._options.hello_timeout_s):
                data = await peer.recv()
        except TimeoutError:
            return hello_timed_out(self._options.hello_timeout_s), b""
        return await self._validated(peer, data), data

    async def _validated(self, peer: ServerConnection, data: str | bytes) -> HelloAccepted | HelloRefused:
        hello = parse_hello(data)
        if isinstance(hello, HelloRefused):
            return hello
        users = [] if peer.request is None else peer.request.headers.get_all(USER_HEADER)
        access = on_behalf(await self._authenticate(token_of(hello)), ", ".join(users) if users else None)
        return validate_hello(hello, access, make_label=_make_label, toolsets=self._router.catalog.names)

    def _ack(self, hello: HelloAccepted, opened: OpenedSession) -> HelloAck:
        return build_ack(
            hello,
            opened,
            self._router,
            server=self._server,
            instructions=self._instructions(self._router.catalog.view(opened.session.toolset)),
            ping_interval_s=self._options.ping_interval_s,
        )


def _make_label() -> str:
    return f"session-{uuid4().hex[:12]}"


async def _refuse(peer: PeerConnection, refused: HelloRefused) -> None:
    """Sends the reason of a rejected hello and closes the connection."""
    peer.reject()
    _log.info("hello refused", code=refused.error.code, close=refused.close_code, reason=refused.error.message)
    with suppress(TimeoutError):  # a peer that does not read does not delay the close
        async with asyncio.timeout(_CLOSE_TIMEOUT_S):
            await peer.send(encode(HelloAck(False, error=refused.error)), text=True)
            await peer.close(refused.close_code, refused.error.code)
    peer.transport.abort()


async def _drop(peer: ServerConnection, code: int, reason: str) -> None:
    """Closes the connection with the reason, or aborts it if the peer does not read."""
    _log.warning("connection closed", reason=reason, unsent_bytes=peer.transport.get_write_buffer_size())
    with suppress(TimeoutError, ConnectionClosed):
        async with asyncio.timeout(_CLOSE_TIMEOUT_S):
            await peer.close(code, reason)
    peer.transport.abort()


async def _closed(listeners: Sequence[Server], timeout_s: float) -> bool:
    """Waits for listeners that are closing. Returns whether they closed within ``timeout_s`` seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            for listener in listeners:
                await listener.wait_closed()
            return True
    return False
