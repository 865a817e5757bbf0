"""The clients of the comparison count correct answers, failures and broken connections."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from benchmarks.clients import CallFailedError, HttpClient, SocketClient
from benchmarks.driving import Drive, drive
from websockets.asyncio.server import ServerConnection, serve


@asynccontextmanager
async def serving(answer: Callable[[str], str | None]) -> AsyncIterator[int]:
    """A server that echoes the greeting and answers each frame with ``answer``; it closes if that returns None."""

    async def handle(connection: ServerConnection) -> None:
        await connection.send(await connection.recv())
        async for message in connection:
            reply = answer(str(message))
            if reply is None:
                return
            await connection.send(reply)

    async with serve(handle, "127.0.0.1", 0, compression=None) as server:
        yield next(iter(server.sockets)).getsockname()[1]


def order(port: int, **changed: float) -> Drive:
    times = {"warm_up_s": 0.0, "seconds": 0.05, "longest_s": 5.0, **changed}
    return Drive("socket", port, 0, 2, 64, "echo", {}, "/", **times)


async def test_correct_answers_are_counted() -> None:
    """An echo server gets calls and no errors."""
    async with serving(lambda message: message) as port:
        seen = await drive(order(port), lambda: 0.0)
    assert seen.calls >= 2
    assert (seen.errors, seen.reconnects) == ({}, 0)
    assert seen.p50_ms is not None


async def test_an_error_counts_as_failed() -> None:
    """An answer with an error counts as failed, not as a call."""
    error = '{"op":"call_tool_res","error":{"code":"OVER_CAPACITY"},"padding":"' + "x" * 64 + '"}'
    async with serving(lambda _: error) as port:
        seen = await drive(order(port, longest_s=0.2), lambda: 0.0)
    assert seen.calls == 0
    assert sum(seen.errors.values()) >= 2


async def test_a_broken_connection_counts_as_failed_and_as_reconnect() -> None:
    """A call whose connection ends counts as failed, and the client reconnects."""
    async with serving(lambda _: None) as port:
        seen = await drive(order(port, longest_s=0.3), lambda: 0.0)
    assert seen.calls == 0
    assert seen.errors
    assert seen.reconnects >= 1


async def test_unanswered_calls_count_as_failed() -> None:
    """Each call without an answer at the end counts as failed."""
    forever = asyncio.Event()

    async def handle(connection: ServerConnection) -> None:
        await connection.send(await connection.recv())
        await forever.wait()

    async with serve(handle, "127.0.0.1", 0, compression=None) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        seen = await drive(order(port, longest_s=0.1), lambda: 0.0)
        forever.set()
    assert seen.calls == 0
    assert seen.errors == {"no answer in time": 2}


async def test_a_wrong_answer_counts_as_failed() -> None:
    """An answer without the call's text is rejected, so that wrong answers do not count as fast ones."""
    stale = '{"op":"call_tool_res","text":"' + "9" * 64 + '"}'
    async with serving(lambda _: stale) as port:
        client = SocketClient(port, "/", "echo", {}, 64)
        await client.open()
        with pytest.raises(CallFailedError):
            await client.call(b"0000000001")
        client.close()


async def test_mcp_calls_carry_the_session_id() -> None:
    """Requests after ``initialize`` carry the session id that the server returned."""
    heads: list[bytes] = []

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(3):
            head = await reader.readuntil(b"\r\n\r\n")
            heads.append(head)
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            body = (await reader.readexactly(length)).replace(b'"method"', b'"result"')
            answer = b"HTTP/1.1 200 OK\r\nMcp-Session-Id: abc\r\nContent-Length: %d\r\n\r\n" % len(body)
            writer.write(answer + body)
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with server:
        client = HttpClient(server.sockets[0].getsockname()[1], "echo", {}, 64)
        await client.open()
        await client.call(b"0000000001")
        client.close()
    assert [b"mcp-session-id: abc" in head.lower() for head in heads] == [False, True, True]
