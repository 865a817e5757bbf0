"""Fixtures: nodes on one PostgreSQL database, as processes that a test kills, pauses and cuts off."""

import asyncio
import secrets
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.chaos.cluster_nodes import Database, DatabaseLink
from tests.e2e.conftest import Peer, Process, start
from tests.postgres_cluster import Cluster, running_cluster
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

LEASE_S = 2.7
"""Three quarters of it are valid: 2 s."""
RESUME = ["ack", "resume", "going_away"]


@pytest.fixture(scope="module")
def server(starts_processes: None) -> Iterator[Cluster]:
    """A separate PostgreSQL server, because these tests stop it."""
    with running_cluster() as cluster:
        yield cluster


@pytest.fixture
async def database(server: Cluster) -> AsyncIterator[Database]:
    """A migrated database."""
    name = f"toold_{secrets.token_hex(4)}"
    server.sql(f"CREATE DATABASE {name}")
    database = Database(server, name)
    await database.migrate()
    yield database
    if not database.runs:
        server.start()


FAST_CLOCK = """
import time
clock = time.time
time.time = lambda: clock() + 3600
from toold.tools import Arguments, tool
@tool("clock", read_only=True, open_world=False)
async def read_clock(arguments: Arguments, context):
    'The time.'
    return str(time.time())
"""


def _install_fast_clock(packages: Path) -> None:
    """A package of tools whose import sets the clock of its process ahead."""
    info = packages / "fast_clock-1.0.dist-info"
    info.mkdir(parents=True)
    (packages / "fast_clock.py").write_text(FAST_CLOCK)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fast-clock\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[toold.tools]\nclock = fast_clock\n")


class Nodes:
    """Starts nodes, each with a link to the database that can be cut."""

    def __init__(self, directory: Path, database: Database) -> None:
        self._directory = directory
        self.database = database
        self._token, self._audit_key = secrets.token_urlsafe(32), secrets.token_hex(32)
        self.started: list[Process] = []
        self.links: dict[str, DatabaseLink] = {}

    async def start(self, name: str, *, fast_clock: bool = False, **settings: str) -> Process:
        """A running node; a second start under the same name uses the same directory. ``fast_clock``: its clock is an
        hour ahead.
        """
        directory = self._directory / name
        state = directory / "state"
        if not state.exists():
            state.mkdir(parents=True)
            (state / "audit.key").write_text(self._audit_key)
            (state / "audit.key").chmod(0o600)
        if fast_clock:
            _install_fast_clock(directory / "packages")
        given: dict[str, Any] = {
            "TOOLD_STORE": self.links[name].url if name in self.links else self.database.url,
            "TOOLD_NODE_NAME": name,
            "TOOLD_CLUSTER_SECRET": "a-secret-of-all-nodes",
            "TOOLD_LEASE_S": str(LEASE_S),
            "TOOLD_TOKEN": self._token,
            "TOOLD_GRACE_PERIOD_S": "2",
            "TOOLD_LOG_FORMAT": "json",
        }
        node = await asyncio.to_thread(lambda: start(directory, **given | settings))
        self.started.append(node)
        return node

    async def end(self) -> None:
        """Ends the nodes that still run."""
        for node in self.started:
            if node.process.poll() is None:
                node.process.send_signal(signal.SIGCONT)
                node.process.kill()
                await asyncio.to_thread(node.process.wait)
        for link in self.links.values():
            await link.close()


@pytest.fixture
async def nodes(database: Database, tmp_path: Path) -> AsyncIterator[Nodes]:
    """Ends the nodes that still run at the end, and expects no traceback in their logs."""
    nodes = Nodes(tmp_path, database)
    yield nodes
    await nodes.end()
    assert [line for node in nodes.started for line in node.tracebacks()] == []


async def open_client(node: Process, **hello: Any) -> Peer:
    """A connection that the test need not close. The hello may be refused."""
    socket: ClientConnection = await connect(node.url, compression=None, max_size=None)
    peer = Peer(socket)
    await peer.send(**{"op": "hello", "token": node.token, "features": RESUME, **hello})
    peer.ack = await peer.receive()
    return peer


async def resumed(node: Process, earlier: Peer) -> Peer:
    """The session of an earlier connection, tried until a node answers for it."""
    async with asyncio.timeout(60):
        while True:
            peer = await open_client(node, resume={"key": earlier.ack["resume_key"]})
            if peer.ack["ok"]:
                assert peer.ack["resumed"]
                return peer
            await peer.socket.close()
            await asyncio.sleep(0.05)


async def call_repeatedly(peer: Peer) -> None:
    """Calls a tool with an effect every now and then, without waiting for answers."""
    while True:
        request_id = secrets.token_hex(4)
        await peer.send(op="call_tool", request_id=request_id, name="sim_effect", arguments={"text": request_id})
        await asyncio.sleep(0.1)


async def ended(node: Process) -> int:
    """The exit code of a node that ends by itself."""
    return await asyncio.to_thread(node.process.wait, 60)


def written(node: Process) -> list[str]:
    log = node.state / "sim_effect.log"
    return log.read_text().split() if log.exists() else []


async def closed_with(peer: Peer) -> int | None:
    """The code with which the node closes the connection."""
    try:
        while True:
            await peer.receive(60)
    except ConnectionClosed:
        return peer.socket.close_code
