"""The proxy injects the planned fault, and a seed determines the plans."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.chaos.proxy import WEIGHTS, Fault, Plan, Proxy, draw

LINE = b"0123456789\n"


@asynccontextmanager
async def echo_server() -> AsyncIterator[int]:
    """The port of a server that echoes every line."""
    writers = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        try:
            while line := await reader.readline():
                writer.write(line)
        except OSError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()
        await server.wait_closed()


class Line:
    """A client of the echo server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def echoes(self, timeout_s: float = 20) -> bool:
        """Send a line. Returns False if the connection ended or no echo arrived."""
        try:
            self.writer.write(LINE)
            async with asyncio.timeout(timeout_s):
                return await self.reader.readexactly(len(LINE)) == LINE
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            return False


@asynccontextmanager
async def proxied(plan: Plan) -> AsyncIterator[tuple[Proxy, Line]]:
    async with echo_server() as port, Proxy(lambda: [port], lambda _: plan) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        try:
            yield proxy, Line(reader, writer)
        finally:
            writer.transport.abort()


def test_a_seed_determines_the_plans() -> None:
    """The same seed draws the same plans, with every fault; another seed draws others."""
    plans = [draw(1, number) for number in range(500)]
    assert plans == [draw(1, number) for number in range(500)]
    assert plans != [draw(2, number) for number in range(500)]
    assert Counter(plan.fault for plan in plans).keys() == WEIGHTS.keys()


async def test_a_connection_without_a_fault_passes_everything() -> None:
    """Both directions pass until a side ends."""
    async with proxied(Plan("none", 0, True, 0)) as (proxy, line):
        assert all([await line.echoes() for _ in range(50)])
        assert not proxy.broken


@pytest.mark.parametrize("to_daemon", [True, False])
@pytest.mark.parametrize("fault", ["cut in a frame", "cut clean"])
async def test_a_cut_ends_both_sides(fault: Fault, to_daemon: bool) -> None:
    """Both sides end after the planned number of bytes."""
    async with proxied(Plan(fault, 4 * len(LINE), to_daemon, 0)) as (proxy, line):
        assert await line.echoes()
        assert await line.echoes()
        assert not await line.echoes()
        assert proxy.broken == {fault: 1}


async def test_a_cut_in_a_frame_passes_its_beginning() -> None:
    """The reader receives a part of a message before the connection ends."""
    async with proxied(Plan("cut in a frame", 0, False, 0)) as (_, line):
        line.writer.write(LINE)
        part = await line.reader.read()
        assert LINE.startswith(part)
        assert 0 < len(part) < len(LINE)


@pytest.mark.parametrize("to_daemon", [True, False])
async def test_a_half_open_connection_drops_one_direction(to_daemon: bool) -> None:
    """No echo arrives and both sides stay open; `calm_down` cuts the connection."""
    async with proxied(Plan("half-open", 2 * len(LINE), to_daemon, 0)) as (proxy, line):
        assert await line.echoes()
        assert not await line.echoes(0.2)
        assert not line.reader.at_eof()
        proxy.calm_down()
        assert await line.reader.read() == b""


async def test_a_stall_loses_nothing() -> None:
    """Everything sent during a stall arrives afterwards."""
    async with proxied(Plan("stall", len(LINE), True, 0.3)) as (proxy, line):
        began = asyncio.get_running_loop().time()
        assert await line.echoes()
        assert asyncio.get_running_loop().time() - began >= 0.29
        assert await line.echoes()
        assert proxy.broken == {"stall": 1}


async def test_a_delay_applies_to_every_piece() -> None:
    """Every piece is delayed, in both directions."""
    async with proxied(Plan("delay", 0, True, 0.02)) as (_, line):
        began = asyncio.get_running_loop().time()
        assert all([await line.echoes() for _ in range(3)])
        assert asyncio.get_running_loop().time() - began >= 6 * 0.019


async def test_no_fault_happens_after_calm_down() -> None:
    """A planned fault of an open connection is dropped."""
    async with proxied(Plan("cut clean", 2 * len(LINE), True, 0)) as (proxy, line):
        assert await line.echoes()
        proxy.calm_down()
        assert all([await line.echoes() for _ in range(5)])


async def test_a_connection_ends_if_the_daemon_is_down() -> None:
    """The proxy keeps listening, so that clients reach the next daemon on the same port."""
    async with echo_server() as port:
        pass
    async with Proxy(lambda: [port], lambda _: Plan("none", 0, True, 0)) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        with pytest.raises((asyncio.IncompleteReadError, OSError)):
            await reader.readexactly(1)
        writer.transport.abort()
