"""A TCP proxy between clients and daemon that injects network faults.

The fault of a connection is drawn when it opens, from the run's seed and the connection's number. Its position is a
byte count, so that runs with the same seed break connections at the same points of their traffic.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal, Self

Fault = Literal["none", "cut in a frame", "cut clean", "delay", "half-open", "stall"]

WEIGHTS: Final[Mapping[Fault, int]] = {
    "none": 2,
    "cut in a frame": 3,
    "cut clean": 3,
    "delay": 2,
    "half-open": 2,
    "stall": 2,
}
"""The relative frequency of each fault. A connection without a fault lasts until the daemon ends."""
_CHUNK: Final = 16 * 1024
_GREETING_BYTES: Final = 2_500
"""Roughly the traffic until a session is open; one fault in five comes earlier."""
_MOST_BYTES: Final = 16_000
"""The most traffic before a fault, some 25 calls."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The fault of one connection."""

    fault: Fault
    after: int
    """The bytes that pass before it, in both directions together."""
    to_daemon: bool
    """The direction that a half-open connection drops, or that a cut frame has."""
    seconds: float
    """The duration of a stall, or the delay of each piece."""


def draw(seed: int, number: int) -> Plan:
    """Draws the plan of a connection. Pure."""
    chance = random.Random(f"{seed} {number}")
    fault = chance.choices(list(WEIGHTS), list(WEIGHTS.values()))[0]
    early = chance.random() < 0.2
    after = chance.randrange(_GREETING_BYTES) if early else chance.randrange(_GREETING_BYTES, _MOST_BYTES)
    seconds = chance.uniform(0.001, 0.03) if fault == "delay" else chance.uniform(0.2, 3.0)
    return Plan(fault, after, chance.random() < 0.5, seconds)


class Proxy:
    """Listens on a loopback port and forwards to a port, except for the planned faults.

    ``upstream`` returns the ports to try for a connection, in order. ``plan`` returns the plan of a connection by its
    number, from 1.
    """

    def __init__(self, upstream: Callable[[], Sequence[int]], plan: Callable[[int], Plan]) -> None:
        self.broken: Counter[Fault] = Counter()
        """The faults that happened; a connection that ended before its fault is not counted."""
        self.connections = 0
        """The number of connections that reached the daemon."""
        self.calm = False
        """Set at the end of a run: no further faults; half-open and stalled connections are cut."""
        self._upstream = upstream
        self._plan = plan
        self._passages = set[_Passage]()
        self._tasks = set[asyncio.Task[None]]()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._begin, "127.0.0.1", 0)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def calm_down(self) -> None:
        """Inject no further faults, and cut half-open and stalled connections, so that their clients reconnect."""
        self.calm = True
        for passage in self._passages:
            if passage.blocked:
                passage.cut()

    def cut_to(self, port: int) -> None:
        """Cut all connections to a port, as a balancer with health checks does."""
        for passage in self._passages:
            if passage.port == port:
                passage.cut()

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError):  # no daemon listens
                upstream = await self._connect()
                self.connections += 1
                plan = Plan("none", 0, False, 0) if self.calm else self._plan(self.connections)
                passage = _Passage(self, plan, (reader, writer), upstream)
                self._passages.add(passage)
                try:
                    await passage.run()
                finally:
                    self._passages.discard(passage)
                    passage.cut()
        finally:
            writer.transport.abort()

    async def _connect(self) -> "_Streams":
        """A connection to the first port that accepts it.

        Raises:
            OSError: none does.
        """
        refused = OSError("no port")
        for port in self._upstream():
            try:
                return await asyncio.open_connection("127.0.0.1", port)
            except OSError as error:
                refused = error
        raise refused


_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class _Passage:
    """One connection with its two directions and its fault."""

    def __init__(self, proxy: Proxy, plan: Plan, client: _Streams, daemon: _Streams) -> None:
        self._proxy = proxy
        self._plan = plan
        self._client = client
        self._daemon = daemon
        peer = daemon[1].get_extra_info("peername")
        if peer is None:
            raise ConnectionResetError("the daemon closed the connection before it was used")
        self.port: int = peer[1]
        self._passed = 0
        self._struck = False
        # Cleared during a stall.
        self._flowing = asyncio.Event()
        self._flowing.set()

    @property
    def blocked(self) -> bool:
        """Whether a fault withholds bytes."""
        return self._struck and self._plan.fault in ("half-open", "stall")

    @property
    def _half_open(self) -> bool:
        return self._struck and self._plan.fault == "half-open"

    def cut(self) -> None:
        """Abort both sides."""
        for _, writer in (self._client, self._daemon):
            writer.transport.abort()

    async def run(self) -> None:
        (from_client, to_client), (from_daemon, to_daemon) = self._client, self._daemon
        await asyncio.gather(
            self._pass_on(from_client, to_daemon, to_daemon=True),
            self._pass_on(from_daemon, to_client, to_daemon=False),
        )

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, to_daemon: bool) -> None:
        """Forward one direction until it ends. A clean end is forwarded; a reset resets both sides."""
        with suppress(OSError):
            while piece := await reader.read(_CHUNK):
                self._passed += len(piece)
                if self._plan.fault != "none" and not self._struck and self._passed > self._plan.after:
                    await self._strike(piece, writer, to_daemon=to_daemon)
                if self._plan.fault == "delay" and self._struck and not self._proxy.calm:
                    await asyncio.sleep(self._plan.seconds)
                await self._flowing.wait()
                if not (self._half_open and to_daemon == self._plan.to_daemon):
                    writer.write(piece)
                    await writer.drain()
            # In a half-open connection, the other side does not learn of an end.
            if not self._half_open:
                writer.write_eof()
            return
        if not self._half_open:
            self.cut()

    async def _strike(self, piece: bytes, writer: asyncio.StreamWriter, *, to_daemon: bool) -> None:
        """Inject the fault, beginning with this piece."""
        fault = self._plan.fault
        if self._proxy.calm or (fault == "cut in a frame" and (to_daemon != self._plan.to_daemon or len(piece) < 2)):
            return  # wait for a frame in the drawn direction
        self._struck = True
        self._proxy.broken[fault] += 1
        if fault == "cut in a frame":
            # Pieces mostly end with a frame, so this writes the beginning of a frame last.
            writer.write(piece[: max(1, len(piece) - 1 - self._plan.after % 60)])
            await writer.drain()
        if fault.startswith("cut"):
            for _, each in (self._client, self._daemon):
                each.close() if fault == "cut clean" else each.transport.abort()
            raise ConnectionAbortedError
        if fault == "stall":
            self._flowing.clear()
            asyncio.get_running_loop().call_later(self._plan.seconds, self._flowing.set)
