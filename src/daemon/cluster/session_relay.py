"""Relays connections of clients to the node that holds their session, or takes the session over if that node is dead.

A client that resumes its session may reach any node. The hello and all later frames pass through this node unchanged,
so clients and holders need no special code, and a balancer needs no session affinity.
"""

import asyncio
import contextlib
import ssl
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

import structlog
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.frames import CloseCode
from websockets.http11 import Request

from ...protocol.error_codes import ServiceUnavailableError
from ...protocol.frames import CLOSE_RESTART
from ...protocol.user_credential import USER_HEADER
from ...store import NodeRow, SessionHeldError, StoreError, Suspicion
from ..transports.large_frames import LARGE_BYTES
from ..transports.peer_connection import BinaryMessage, PeerConnection
from .membership import Membership
from .node_address import address_of, is_refused
from .peer_key import RELAYED_HEADER, PeerKey

ANSWER_S: Final = 3.0
"""How long a hello waits for the holder of its session. Then the connection closes with 1012: the client reconnects."""
DEATH_S: Final = 7.0
"""How long a hello waits until a holder that does not answer may be declared dead, to take over its sessions. The
client waits 10 s for the answer; each reconnect would lengthen its delays.
"""
SILENT_S: Final = 2.0
"""How long a holder accepts no connection until it counts as silent."""
_AGAIN_S: Final = 0.1
"""The time between two attempts to claim a session whose holder is stopping."""
_CLOSE_S: Final = 1.0
"""How long to wait until the other side of a relay answers the close."""

T = TypeVar("T")

Unreached = Literal["refused", "stopping", "silent", "slow"]
"""Why a holder was not reached. ``refused``: nothing listens at its address. ``stopping``: it accepts no connections,
or closed this one. ``silent``: it did not accept the connection in time. ``slow``: it accepted the connection but did
not answer the hello in time, because its database is slow; or it has announced no address."""

_log = structlog.get_logger("toold.websocket")


@dataclass(frozen=True, slots=True)
class RelayedSession:
    """A connection to the holder of a session, to which the hello was sent."""

    holder: NodeRow
    connection: ClientConnection
    first: bytes
    """The holder's answer to the hello."""
    relays: set[ClientConnection]
    """All connections to this holder, which are cut when it is declared dead."""

    async def pump(self, client: PeerConnection) -> None:
        """Passes frames in both directions until one side closes; then closes the other side in the same way.

        Raises:
            ConnectionClosed: the client has closed its connection.
        """
        self.relays.add(self.connection)
        up = asyncio.create_task(_pass_up(client, self.connection))
        try:
            await _pass_down(self.connection, client, self.first)
        finally:
            self.relays.discard(self.connection)
            up.cancel()
            await asyncio.gather(up, return_exceptions=True)
            await _close(self.connection)


@dataclass(frozen=True, slots=True)
class RelayOptions:
    """The settings of the daemon for connections to other nodes; the names give the units."""

    ping_interval_s: float
    ping_timeout_s: float
    tls: ssl.SSLContext | None


class SessionRelay:
    """Opens sessions that another node may hold."""

    def __init__(self, membership: Membership, key: PeerKey, options: RelayOptions) -> None:
        self._membership = membership
        self._key = key
        self._options = options
        self._relays: defaultdict[str, set[ClientConnection]] = defaultdict(set)
        membership.on_declared_dead.append(self._close_relays)
        self.relayed = 0
        """The number of connections that were relayed since the start."""

    def may_answer(self) -> bool:
        """Whether this node may receive and send frames on sessions that can be resumed."""
        return self._membership.may_answer

    def is_relayed(self, request: Request | None) -> bool:
        """Whether another node relays this connection.

        Raises:
            ServiceUnavailableError: its signature is invalid.
        """
        signatures = [] if request is None else request.headers.get_all(RELAYED_HEADER)
        if not signatures:
            return False
        user = ", ".join([] if request is None else request.headers.get_all(USER_HEADER))
        if self._key.verifies(signatures[0], self._membership.epoch, RELAYED_HEADER, user):
            return True
        _log.error("a relayed connection has an invalid signature: cluster_secret differs between the nodes")
        raise ServiceUnavailableError("The nodes of the cluster do not trust each other.", executed="no")

    async def open_or_relay(
        self, open_session: Callable[[], Awaitable[T]], hello: str | bytes, request: Request | None
    ) -> T | RelayedSession:
        """Opens a session here, or at the node that holds it. If that node is dead, this node first takes over its
        sessions.

        Raises:
            ServiceUnavailableError: its holder does not answer at present; or this connection is relayed already.
        """
        is_relayed, began = self.is_relayed(request), time.monotonic()
        if not self.may_answer():
            message = "This node has lost contact with the database; reconnect in a moment."
            raise ServiceUnavailableError(message, executed="no")
        while True:
            try:
                return await open_session()
            except SessionHeldError as held:
                holder, read_at = held.holder, time.monotonic()
            if is_relayed:
                raise _held_elsewhere()
            if holder.left_s < 0 and await self._is_dead(holder, "none"):
                continue
            reached = await self._reach(holder, hello, request, read_at - began)
            if isinstance(reached, RelayedSession):
                return reached
            if reached == "refused" and await self._is_dead(holder, "unreachable"):
                continue
            may_die_at = read_at + (holder.valid_s if reached == "silent" else holder.left_s)
            if reached == "silent" and may_die_at < time.monotonic() and await self._is_dead(holder, "silent"):
                continue
            await _pause(reached, may_die_at, began)

    async def _is_dead(self, holder: NodeRow, suspicion: Suspicion) -> bool:
        try:
            return await self._membership.declare_dead(holder, suspicion)
        except StoreError as error:
            raise ServiceUnavailableError(
                f"Sessions cannot be read at present ({error.reason}); try again later.", executed="no"
            ) from None

    async def _reach(
        self, holder: NodeRow, hello: str | bytes, request: Request | None, elapsed_s: float
    ) -> RelayedSession | Unreached:
        """Connects to the holder and sends the hello, which this node has received ``elapsed_s`` ago."""
        address = address_of(holder)
        if address is None:
            return "slow"
        users = [] if request is None else request.headers.get_all(USER_HEADER)
        signature = self._key.sign(holder.epoch, RELAYED_HEADER, ", ".join(users))
        connection: ClientConnection | None = None
        try:
            async with asyncio.timeout(connect_timeout_s(holder, elapsed_s)):
                connection = await connect(
                    address.websocket,
                    additional_headers=[(RELAYED_HEADER, signature), *((USER_HEADER, user) for user in users)],
                    ssl=self._options.tls if address.websocket.startswith("wss:") else None,
                    compression=None,
                    proxy=None,
                    open_timeout=None,
                    max_size=None,  # no limit: the frames come from another node, and the client has its own limit
                    ping_interval=self._options.ping_interval_s,
                    ping_timeout=self._options.ping_timeout_s,
                    close_timeout=_CLOSE_S,
                )
            async with asyncio.timeout(max(_AGAIN_S, ANSWER_S - elapsed_s)):
                await connection.send(hello)
                first = await connection.recv(decode=False)
            self.relayed += 1
            return RelayedSession(holder, connection, first, self._relays[holder.epoch])
        except TimeoutError:
            reason: Unreached = "silent" if connection is None else "slow"
        except InvalidStatus:
            reason = "stopping"
        except (ConnectionClosed, InvalidHandshake, EOFError):
            reason = "stopping"
        except OSError as error:
            reason = "refused" if is_refused(error) else "silent"
        if connection is not None:
            connection.transport.abort()
        return reason

    def _close_relays(self, epoch: str) -> None:
        """Cuts the relays to a node that was declared dead: its clients reconnect and find their sessions at another
        node.
        """
        for connection in self._relays.pop(epoch, ()):
            connection.transport.abort()


async def _pause(reached: Unreached, may_die_at: float, began: float) -> None:
    """Waits until a hello that was received at ``began`` tries again.

    Raises:
        ServiceUnavailableError: the hello cannot wait that long.
    """
    now = time.monotonic()
    has_no_answer = reached in {"silent", "slow"}
    if may_die_at > began + DEATH_S if has_no_answer else now > began + ANSWER_S:
        raise _held_elsewhere()
    await asyncio.sleep((max(0.0, may_die_at - now) if has_no_answer else 0.0) + _AGAIN_S)


def connect_timeout_s(holder: NodeRow, elapsed_s: float) -> float:
    """Returns how long to wait until the holder accepts a connection. If the holder may be declared dead in time for
    the hello, this is until then, but long enough to call it silent. ``elapsed_s``: how long the hello has waited.
    """
    until_dead_s = max(SILENT_S, holder.valid_s + _AGAIN_S)
    return until_dead_s if elapsed_s + until_dead_s <= DEATH_S else max(SILENT_S, ANSWER_S - elapsed_s)


async def _pass_up(client: PeerConnection, holder: ClientConnection) -> None:
    """Passes the client's frames on. When the client's connection ends, closes the connection to the holder."""
    try:
        while True:
            data = await client.receive()
            await holder.send(data, text=not isinstance(data, BinaryMessage))
            if len(data) > LARGE_BYTES:
                client.frame_handled()
    except ConnectionClosed:
        await _close(holder)


async def _pass_down(holder: ClientConnection, client: PeerConnection, first: bytes) -> None:
    data: Any = first
    try:
        while True:
            await client.send(data, text=True)
            data = await holder.recv(decode=False)
    except ConnectionClosed:
        if client.close_code is not None:
            raise
    code, reason = holder.close_code, holder.close_reason
    if code is None or code in _NEVER_SENT:
        code, reason = CLOSE_RESTART, "the node that holds the session has ended; reconnect"
    await client.close(code, reason or "")


async def _close(connection: ClientConnection) -> None:
    with contextlib.suppress(TimeoutError, ConnectionClosed):
        async with asyncio.timeout(_CLOSE_S):
            await connection.close()
    connection.transport.abort()


_NEVER_SENT: Final = {
    CloseCode.NO_STATUS_RCVD,
    CloseCode.ABNORMAL_CLOSURE,
    CloseCode.TLS_HANDSHAKE,
    CloseCode.NORMAL_CLOSURE,
}
"""Codes that only report how a connection ended (RFC 6455, 7.4.1), and the code after which clients do not
reconnect.
"""


def _held_elsewhere() -> ServiceUnavailableError:
    return ServiceUnavailableError(
        "Another node holds the session and does not answer at present; reconnect in a moment.", executed="no"
    )
