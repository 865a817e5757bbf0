"""Pings: silent peers are detected, busy ones are not, and a peer that reads nothing blocks nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from toold.client import ConnectionLostError, MCPWebSocketClient, client_connection, client_session
from toold.client.socket_opening import OpenSocket
from websockets.protocol import State

if TYPE_CHECKING:
    from tests.client.conftest import Peer, ScriptedDaemon
from .echo_calls import start


async def test_a_silent_peer_is_detected_within_two_heartbeats(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection ends even if the socket has unsent data."""
    monkeypatch.setattr(client_connection, "PING_INTERVAL_S", 0.05)
    monkeypatch.setattr(client_connection, "PING_TIMEOUT_S", 0.05)
    assert await client.connect()
    peer = await daemon.accept()
    peer.socket.transport.pause_reading()
    large = start(client, "x" * (8 * 1024 * 1024))  # more than a socket takes: not even a ping gets out
    with pytest.raises(ConnectionLostError, match=r"no pong within 0\.05 s") as lost:
        await large
    assert lost.value.close_code == 1011
    peer.socket.transport.resume_reading()
    await daemon.accept()


async def test_a_peer_that_answers_pings_stays_connected(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection stays open over many heartbeats."""
    monkeypatch.setattr(client_connection, "PING_INTERVAL_S", 0.001)
    assert await client.connect()
    peer = await daemon.accept()
    current = client._link.connection
    assert current is not None
    while peer.socket.state is State.OPEN and not current.confirmed:  # by a pong: no frame came
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.05)
    assert client.connected
    assert daemon.connections == 1


async def test_a_peer_that_is_sending_is_not_considered_silent(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large answer on a slow line delays the pong."""
    monkeypatch.setattr(client_connection, "PING_INTERVAL_S", 0.01)
    monkeypatch.setattr(client_connection, "PING_TIMEOUT_S", 0.01)
    rounds = 0

    async def ping(self: OpenSocket, data: object = None) -> asyncio.Future[float]:
        nonlocal rounds
        rounds += 1
        if rounds <= 3:
            self.data_received(b"")  # a part of a frame; no pong
        return asyncio.get_running_loop().create_future()

    monkeypatch.setattr(OpenSocket, "ping", ping)
    assert await client.connect()
    await daemon.accept()
    while client.last_error is None:
        await asyncio.sleep(0.001)
    assert rounds == 4
    assert "no pong" in str(client.last_error)


async def test_a_peer_that_reads_nothing_cannot_block_the_disconnect(
    daemon: ScriptedDaemon, client: MCPWebSocketClient, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The close has a time limit."""
    monkeypatch.setattr(client_connection, "CLOSE_TIMEOUT_S", 0.05)
    monkeypatch.setattr(client_session, "FLUSH_S", 0.05)
    peer.socket.transport.pause_reading()
    task = start(client, "x" * (8 * 1024 * 1024))
    await asyncio.sleep(0)
    async with asyncio.timeout(4):
        await client.disconnect()
    with pytest.raises(ConnectionLostError):
        await task
    peer.socket.transport.resume_reading()
