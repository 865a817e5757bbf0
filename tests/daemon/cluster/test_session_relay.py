"""A client resumes its session at a node that does not hold it."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from toold.daemon.app import Daemon
from toold.daemon.cluster import session_relay
from toold.daemon.cluster.peer_key import RELAYED_HEADER, PeerKey
from toold.daemon.cluster.session_relay import DEATH_S, SILENT_S, connect_timeout_s
from toold.store import NodeLease, NodeRow, boot_time
from websockets.asyncio.server import ServerConnection, serve

from .conftest import FrameClient, StartNode, node_of

Greet = Callable[..., Awaitable[FrameClient]]


@pytest.fixture
async def nodes(start_node: StartNode) -> tuple[Daemon, Daemon]:
    return await start_node("a"), await start_node("b")


def resume(client: FrameClient) -> dict[str, Any]:
    return {"key": client.ack["resume_key"]}


def move(daemon: Daemon, port: int) -> None:
    """The other nodes connect to another port instead of that of this node."""
    node = node_of(daemon)
    node.address = node.address.replace(str(daemon.websocket.port), str(port))


async def closed_with(client: FrameClient) -> int | None:
    """The code with which the daemon closes the connection."""
    await client.socket.wait_closed()
    return client.socket.close_code


async def test_a_session_of_another_node_is_relayed_to_it(nodes: tuple[Daemon, Daemon], greet: Greet) -> None:
    """The holder answers the hello, replays what it has answered, and serves all further calls."""
    first, second = nodes
    client = await greet(first)
    answer = await client.call("1", "echo", text="before")
    await client.socket.close()
    back = await greet(second, resume=resume(client))
    assert (back.ack["resumed"], back.ack["server"]["epoch"]) == (True, "a0")
    replayed = await back.receive()
    assert (replayed["request_id"], replayed["outputs"]) == ("1", answer["outputs"])
    assert replayed["metadata"]["replayed"]
    assert (await back.call("2", "echo", text="after"))["outputs"][0]["text"] == "after"


async def test_large_frames_pass_in_both_directions(nodes: tuple[Daemon, Daemon], greet: Greet) -> None:
    """A relay has the limit of frames that the holder has, not that of the first frame."""
    first, second = nodes
    back = await greet(second, resume=resume(await greet(first)))
    text = "long " * 200_000
    for number in range(3):
        assert (await back.call(str(number), "echo", text=text))["outputs"][0]["text"] == text


async def test_a_relayed_connection_takes_the_session_over(nodes: tuple[Daemon, Daemon], greet: Greet) -> None:
    """The connection at the holder is closed with 4004, as if the new one were there."""
    first, second = nodes
    old = await greet(first)
    await greet(second, resume=resume(old))
    assert await closed_with(old) == 4004


async def test_a_late_hello_is_stale_through_a_relay_too(nodes: tuple[Daemon, Daemon], greet: Greet) -> None:
    """The number of the connection reaches the holder: a later one keeps the session."""
    first, second = nodes
    old = await greet(first)
    newest = await greet(first, resume={**resume(old), "n": 5})
    late = await greet(second, resume={**resume(old), "n": 4})
    assert not late.ack["ok"]
    assert await closed_with(late) == 4005
    assert (await newest.call("1", "echo", text="still here"))["error"] is None


async def test_the_holders_close_reaches_the_client(nodes: tuple[Daemon, Daemon], greet: Greet) -> None:
    """A relayed client learns why the holder closed its connection, and another one takes the session over."""
    first, second = nodes
    relayed = await greet(second, resume=resume(await greet(first)))
    await greet(first, resume=resume(relayed))
    assert await closed_with(relayed) == 4004


async def test_a_client_that_leaves_leaves_the_holder_too(nodes: tuple[Daemon, Daemon], greet: Greet) -> None:
    """The holder has no connection of a client that closed its one to the relaying node."""
    first, second = nodes
    client = await greet(first)
    relayed = await greet(second, resume=resume(client))
    await relayed.socket.close()
    await client.socket.close()
    async with asyncio.timeout(30):
        while first.websocket.connections:
            await asyncio.sleep(0.01)


async def test_a_dead_holder_is_taken_over_within_the_hello(nodes: tuple[Daemon, Daemon], greet: Greet) -> None:
    """Nothing listens at the holder's address: it is declared dead, and the hello is answered here."""
    first, second = nodes
    client = await greet(first)
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    move(first, port)
    back = await greet(second, resume=resume(client))
    assert (back.ack["ok"], back.ack["server"]["epoch"]) == (True, "b0")
    assert node_of(first).state == "dead"


async def test_a_draining_holder_is_not_declared_dead(nodes: tuple[Daemon, Daemon], greet: Greet) -> None:
    """Its port is closed, but it still answers its calls: the client comes back later."""
    first, second = nodes
    client = await greet(first)
    node_of(first).state = "draining"
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    move(first, port)
    refused = await greet(second, resume=resume(client))
    assert (refused.ack["ok"], refused.ack["error"]["executed"]) == (False, "no")
    assert await closed_with(refused) == 1012
    assert node_of(first).state == "draining"


async def test_a_silent_holder_makes_the_client_come_back(
    nodes: tuple[Daemon, Daemon], greet: Greet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A holder that accepts no connection but renews its lease is not declared dead: 1012 after 3 s."""
    monkeypatch.setattr(session_relay, "ANSWER_S", SILENT_S)
    first, second = nodes
    client = await greet(first)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        move(first, silent.getsockname()[1])
        refused = await greet(second, resume=resume(client))
    assert await closed_with(refused) == 1012
    assert node_of(first).state == "live"


async def test_a_silent_holder_that_missed_its_heartbeats_is_taken_over_before_its_lease_ends(
    nodes: tuple[Daemon, Daemon], greet: Greet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within the same hello, which waits for the third missed heartbeat."""
    monkeypatch.setattr(session_relay, "SILENT_S", 0.1)
    first, second = nodes
    client = await greet(first)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        move(first, silent.getsockname()[1])
        node_of(first).left_s = 75.5
        taking: asyncio.Future[FrameClient] = asyncio.ensure_future(greet(second, resume=resume(client)))
        connection, _ = await asyncio.to_thread(silent.accept)
        with connection:
            node_of(first).left_s = 74.9
            taken = await taking
    assert taken.ack["server"]["epoch"] == "b0"
    assert node_of(first).state == "dead"


async def test_a_holder_that_only_its_database_delays_is_not_declared_dead(
    nodes: tuple[Daemon, Daemon], greet: Greet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has missed its heartbeats, but it accepts the connection, so it is alive until its lease ends. A hello waits
    for that if it is soon.
    """
    monkeypatch.setattr(session_relay, "ANSWER_S", 0.2)
    first, second = nodes
    client = await greet(first)
    greeted = asyncio.Event()

    async def keep_silent(connection: ServerConnection) -> None:
        await connection.recv()
        greeted.set()
        await connection.wait_closed()

    async with serve(keep_silent, "127.0.0.1", 0) as slow:
        move(first, slow.sockets[0].getsockname()[1])
        node_of(first).left_s = 74.0
        refused = await greet(second, resume=resume(client))
        assert await closed_with(refused) == 1012
        assert node_of(first).state == "live"
        node_of(first).left_s = 1.0
        greeted.clear()
        taking: asyncio.Future[FrameClient] = asyncio.ensure_future(greet(second, resume=resume(client)))
        await greeted.wait()
        node_of(first).left_s = -0.1
        assert (await taking).ack["server"]["epoch"] == "b0"
    assert node_of(first).state == "dead"


@pytest.mark.parametrize(
    ("left_s", "elapsed_s", "timeout_s"),
    [
        (10.0, 0.0, 3.0),  # it has just renewed its lease of 10 s: 3 s for an answer
        (9.3, 0.0, 6.9),  # it can be declared dead after 6.8 s
        (6.0, 0.0, 3.6),
        (6.0, 4.0, SILENT_S),  # the hello cannot wait that long
        (2.6, 0.0, SILENT_S),  # it has missed its heartbeats: one check
        (0.5, 5.0, SILENT_S),
    ],
)
def test_how_long_a_hello_waits_for_a_connection(left_s: float, elapsed_s: float, timeout_s: float) -> None:
    """Until a silent holder may be declared dead, if the client waits that long; never less than a check takes."""
    holder = NodeRow(epoch="e", name="n", address="", details="", state="live", left_s=left_s, lease_s=10.0)
    assert connect_timeout_s(holder, elapsed_s) == pytest.approx(timeout_s)
    assert elapsed_s + timeout_s <= DEATH_S


async def test_a_relay_is_not_relayed_again(nodes: tuple[Daemon, Daemon], greet: Greet) -> None:
    """A node that gets a relayed hello for a session of a third one refuses it with 1012."""
    first, second = nodes
    client = await greet(first)
    signature = PeerKey("a-secret-of-all-nodes").sign("b0", RELAYED_HEADER, "")
    refused = await greet(second, headers={RELAYED_HEADER: signature}, resume=resume(client))
    assert await closed_with(refused) == 1012


async def test_another_secret_is_refused(start_node: StartNode, greet: Greet) -> None:
    """Nodes whose secrets differ do not relay to each other."""
    first = await start_node("a")
    second = await start_node("b", TOOLD_CLUSTER_SECRET="a-secret-of-another-cluster")
    refused = await greet(second, resume=resume(await greet(first)))
    assert not refused.ack["ok"]
    assert await closed_with(refused) == 1012


async def test_connections_to_a_dead_holder_are_cut(nodes: tuple[Daemon, Daemon], greet: Greet) -> None:
    """When a node finds the holder dead, its relayed clients are closed with 1012, so that they come back."""
    first, second = nodes
    relayed = await greet(second, resume=resume(await greet(first)))
    node_of(first).left_s = -1.0
    assert second.cluster is not None
    await second.cluster.membership.refresh()
    assert await closed_with(relayed) == 1012
    assert (await greet(second, resume=resume(relayed))).ack["server"]["epoch"] == "b0"


async def test_without_a_lease_nothing_is_sent(nodes: tuple[Daemon, Daemon], greet: Greet) -> None:
    """A node whose lease has ended closes connections of resumable sessions with 1012 and answers no call on them."""
    first, _ = nodes
    client, plain = await greet(first), await greet(first, features=[])
    node_of(first).lease = NodeLease(1.0)
    await client.send("call_tool", request_id="1", name="echo", arguments={"text": "hello"})
    assert await closed_with(client) == 1012
    assert (await plain.call("1", "echo", text="hello"))["error"] is None
    refused = await greet(first)
    assert await closed_with(refused) == 1012
    node_of(first).lease.renewed(boot_time())
    assert (await greet(first, resume=resume(client))).ack["resumed"]
