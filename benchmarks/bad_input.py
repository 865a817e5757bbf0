"""``python -m benchmarks.bad_input``: the longest turn of the event loop while a client sends a bad message of 20 MiB.

The daemon runs in this process, clients in threads. A turn is measured as CPU time of the event loop's thread, which
other programs do not prolong, except that they share cores and caches. A timer of a millisecond measures what passes
between two of its calls: a long turn, and up to a millisecond of others.
"""

import asyncio
import http.client
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import uvloop
from rich.console import Console
from rich.table import Table
from toold.daemon.app import Daemon
from toold.daemon.config.setting_sources import load_settings
from toold.daemon.lifecycle import running
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from .wire import HELLO

TARGET_MS: Final = 50
_BYTES: Final = 20 * 1024**2
_ENVELOPE_BYTES: Final = 1024
"""What surrounds the value in each message."""
_ROUNDS: Final = 3
_LONGEST_S: Final = 120.0
_TICK_S: Final = 0.001
_CONFIG: Final = """
simulate = true
auth = false
kimi_sdk = "http"
glm_sdk = "http"
[agents.helper]
description = "Answers questions."
prompt = "You answer questions."
"""

_ROOM: Final = _BYTES - _ENVELOPE_BYTES


def _repeated(part: bytes, before: bytes, after: bytes, separator: bytes = b"") -> bytes:
    return before + separator.join([part] * (_ROOM // (len(part) + len(separator)) - 2)) + after


def _nested(opening: bytes, closing: bytes) -> bytes:
    depth = _ROOM // (len(opening) + len(closing)) - 1
    return opening * depth + b"1" + closing * depth


VALUES: Final[dict[str, Callable[[], bytes]]] = {
    "lists, nested as deeply as fits": lambda: _nested(b"[", b"]"),
    "objects, nested as deeply as fits": lambda: _nested(b'{"a":', b"}"),
    "a million keys": lambda: b"{%b}" % b",".join(b'"k%07d":%d' % (number, number) for number in range(1_000_000)),
    "a million small objects": lambda: b"[%b]" % b",".join([b'{"a":1,"b":"c"}'] * 1_000_000),
    "empty lists": lambda: _repeated(b"[]", b"[", b"]", b","),
    "numbers": lambda: _repeated(b"1", b"[", b"]", b","),
    "one text of letters": lambda: _repeated(b"a", b'"', b'"'),
    "one text of escapes": lambda: _repeated(rb"\u00fc", b'"', b'"'),
    "one text of emoji": lambda: _repeated("😀".encode(), b'"', b'"'),
    "an integer of 20 million digits": lambda: _repeated(b"9", b"", b""),
    "no JSON": lambda: _repeated(b"x", b"", b""),
}


class Turns:
    """The longest turn of the event loop, in CPU seconds of its thread, up to ``_TICK_S`` too long."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._began = time.thread_time()
        self.longest_s = 0.0
        self._next = loop.call_later(_TICK_S, self._turn)

    def _turn(self) -> None:
        now = time.thread_time()
        self.longest_s = max(self.longest_s, now - self._began)
        self._began = now
        self._next = self._loop.call_later(_TICK_S, self._turn)

    def stop(self) -> None:
        """Ends the measurement."""
        self._next.cancel()


def over_websocket(port: int, value: bytes) -> str:
    """Calls ``echo`` with the value as its argument. Returns how the daemon answered, as the other functions do."""
    frame = b'{"op":"call_tool","request_id":"bad","name":"echo","arguments":{"text":%b}}' % value
    with connect(f"ws://127.0.0.1:{port}/", compression=None, max_size=None, proxy=None) as socket:
        socket.send(HELLO.decode())
        socket.recv()
        try:
            socket.send(frame, text=True)
            answer = json.loads(socket.recv(_LONGEST_S))
        except ConnectionClosed as closed:
            return f"closed with {closed.rcvd.code if closed.rcvd else 'nothing'}"
    return str((answer.get("error") or {}).get("code", "ok"))


def over_mcp(port: int, value: bytes) -> str:
    """Calls ``echo`` over ``/mcp``."""
    call = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":%b}}}' % value
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
    return _posted(port, "/mcp", call, headers)


def over_a2a(port: int, value: bytes) -> str:
    """Sends the value to an agent, as data of a message."""
    message = b'{"messageId":"m-1","role":"ROLE_USER","parts":[{"data":%b}]}' % value
    body = b'{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":%b}}' % message
    return _posted(port, "/agents/helper/", body, {"a2a-version": "1.0"})


def _posted(port: int, path: str, body: bytes, headers: dict[str, str]) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_LONGEST_S)
    try:
        with suppress(BrokenPipeError, ConnectionResetError):  # refused before all of it was sent
            connection.request("POST", path, body, {"content-type": "application/json", **headers})
        response = connection.getresponse()
        answer = json.loads(response.read() or b"{}")
    finally:
        connection.close()
    if (error := answer.get("error")) is not None:
        return f"{response.status}, {error.get('code')}"
    return f"{response.status}, isError" if (answer.get("result") or {}).get("isError") else str(response.status)


async def measure(say: Callable[[str], None]) -> list[tuple[str, str, float, str]]:
    """Returns for each value and way: the longest turn in ms, the median of the rounds, and the last answer."""
    rows: list[tuple[str, str, float, str]] = []
    with _directory() as directory:
        env = {"TOOLD_STATE_DIR": str(directory / "state"), "TOOLD_PORT": "0", "TOOLD_HTTP_PORT": "0"}
        async with running(load_settings({}, env=env, cwd=directory)) as daemon:
            await asyncio.sleep(2)  # until the imports after the start are done
            for name, make in VALUES.items():
                value = await asyncio.to_thread(make)
                for way, send, port in _ways(daemon):
                    say(f"{name}, {way}")
                    turns, answer = [], ""
                    for _ in range(_ROUNDS):
                        longest_s, answer = await _longest_turn(send, port, value)
                        turns.append(longest_s * 1000)
                    rows.append((name, way, statistics.median(turns), answer))
    return rows


async def _longest_turn(send: Callable[[int, bytes], str], port: int, value: bytes) -> tuple[float, str]:
    turns = Turns(asyncio.get_running_loop())
    answer = await asyncio.to_thread(send, port, value)
    turns.stop()
    return turns.longest_s, answer


def _ways(daemon: Daemon) -> list[tuple[str, Callable[[int, bytes], str], int]]:
    http_port = daemon.http.port
    return [
        ("WebSocket", over_websocket, daemon.websocket.port),
        ("MCP", over_mcp, http_port),
        ("A2A", over_a2a, http_port),
    ]


@contextmanager
def _directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="toold-bench-") as temporary:
        (Path(temporary) / "toold.toml").write_text(_CONFIG, encoding="utf-8")
        yield Path(temporary)


def main() -> int:
    """Measure, and print the table."""
    console = Console()
    with console.status("starting") as status:
        rows = uvloop.run(measure(status.update))
    table = Table("a value of 20 MiB", "over", "longest turn", "", "answer")
    for name, way, longest_ms, answer in rows:
        table.add_row(name, way, f"{longest_ms:.0f} ms", "met" if longest_ms <= TARGET_MS else "missed", answer)
    console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
