"""A daemon in a thread, which commands find by the environment, and a function that runs commands."""

import json
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from toold.cli.command_line import toold
from toold.daemon.persistence.state_directory import StateDirectory
from toold.protocol.daemon_address import DaemonAddress, encode_address
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import Server, ServerConnection, serve

Frame = dict[str, Any]
Send = Callable[..., None]
"""``send(op, **fields)``."""

HINTS = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}
ECHO: Frame = {
    "name": "echo",
    "description": "Say it back.\n\nWord for word.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "What to say."},
            "value": {"default": None},
            "times": {"type": "integer", "default": 1},
            "files": {"type": "array", "items": {"type": "string"}, "default": []},
        },
        "required": ["text"],
        "additionalProperties": False,
    },
    "annotations": HINTS,
}
STATUS: Frame = {
    "name": "status",
    "description": "How it is.",
    "inputSchema": {"type": "object", "properties": {}},
    "annotations": HINTS | {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False},
}


def result(text: str, **fields: Any) -> Frame:
    """The fields of a successful answer."""
    metadata = {"latency_ms": 12.0, "timings": {"queue_ms": 0.0, "tool_ms": 12.0, "provider_ms": 0.0}}
    return {"outputs": [{"type": "text", "text": text}], "error": None, "metadata": metadata} | fields


def echo(call: Frame, send: Send) -> None:
    """Answers with the argument ``text`` as text, and with all arguments as data."""
    answer = result(str(call["arguments"].get("text", "")), structured=call["arguments"])
    send("call_tool_res", request_id=call["request_id"], **answer)


@dataclass
class StubDaemon:
    """Accepts a hello, lists its tools, and answers calls with the result of ``on_call``."""

    tools: list[Frame] = field(default_factory=lambda: [ECHO, STATUS])
    on_call: Callable[[Frame, Send], None] = echo
    ack: Frame = field(default_factory=lambda: {"ok": True, "session_id": "s"})
    frames: list[Frame] = field(default_factory=list)
    seen: threading.Condition = field(default_factory=threading.Condition)
    server: Server | None = None

    @property
    def url(self) -> str:
        assert self.server is not None
        host, port = self.server.socket.getsockname()[:2]
        return f"ws://{host}:{port}/"

    def greet(self, hello: Frame) -> Frame:
        """The fields of the answer to a hello."""
        return self.ack

    def wait_for(self, op: str) -> Frame:
        """Wait for the first frame of this op."""
        with self.seen:
            assert self.seen.wait_for(lambda: any(frame["op"] == op for frame in self.frames), timeout=20), op
        return next(frame for frame in self.frames if frame["op"] == op)

    def handle(self, socket: ServerConnection) -> None:
        def send(op: str, **fields: Any) -> None:
            socket.send(json.dumps({"op": op, **fields}))

        try:
            for message in socket:
                self._receive(json.loads(message), send)
        except (ConnectionClosed, ConnectionAbortedError):
            pass  # the command left first, or the test has the daemon leave

    def _receive(self, frame: Frame, send: Send) -> None:
        with self.seen:
            self.frames.append(frame)
            self.seen.notify_all()
        request_id = frame.get("request_id")
        match frame["op"]:
            case "hello":
                send("hello_ack", **self.greet(frame))
            case "list_tools":
                send("list_tools_res", request_id=request_id, tools=self.tools, rev="1")
            case "ping":
                send("pong", request_id=request_id)
            case "call_tool":
                self.on_call(frame, send)


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Hides the machine's daemon: an empty state directory, which is returned, and an unused port."""
    for name in ("HOST", "TOKEN"):
        monkeypatch.delenv(f"TOOLD_{name}", raising=False)
        monkeypatch.delenv(f"EXAI_WS_{name}", raising=False)
    monkeypatch.setenv("TOOLD_PORT", "1")
    directory = tmp_path / "state"
    monkeypatch.setenv("TOOLD_STATE_DIR", str(directory))
    return directory


@pytest.fixture
def daemon(monkeypatch: pytest.MonkeyPatch) -> Iterator[StubDaemon]:
    """A running stub that the commands find by TOOLD_HOST."""
    stub = StubDaemon()
    with serve(stub.handle, "127.0.0.1", 0) as server:
        stub.server = server
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("TOOLD_HOST", stub.url)
        yield stub
        server.shutdown()
        thread.join()


Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    """Runs a command line: ``run("call", "echo", "text=hi")``."""

    def invoke(*args: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(toold, args, input=stdin, catch_exceptions=False)

    return invoke


# --- a daemon as its operator sees it --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Request:
    """One request of an operator's command."""

    method: str
    path: str
    token: str | None
    body: bytes = b""


class Operated:
    """What a running daemon shows to its operator: the lock in its state directory, its address, its HTTP side port.

    ``answers`` has status and body (JSON, or bytes as they are) by method and path; else there is a 404.
    """

    def __init__(self, directory: Path) -> None:
        self.pid = os.getpid()
        self.requests: list[Request] = []
        self.answers: dict[str, tuple[int, Any]] = {}
        self._state = StateDirectory(directory)
        self._directory = directory
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=[0.01])
        self._thread.start()
        self._open = True
        self.http_port = self._server.server_address[1]
        (directory / "token").write_text("the-token-in-the-directory\n")
        self.announce()

    def announce(self, *, stopping: bool = False) -> None:
        """Publish its address."""
        at = ("127.0.0.1", 1, self.http_port)
        address = DaemonAddress(self.pid, *at, tls=False, auth=True, version="1", stopping=stopping)
        (self._directory / "daemon.json").write_bytes(encode_address(address))

    def crash(self) -> None:
        """End as a killed process does: the lock is released, the files remain."""
        self._state.close()
        self.announce()

    def close_port(self) -> None:
        """Stop serving."""
        if self._open:
            self._open = False
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()

    def close(self) -> None:
        self.close_port()
        self._state.close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        daemon = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                token = (self.headers["Authorization"] or "").removeprefix("Bearer ") or None
                body = self.rfile.read(int(self.headers["Content-Length"] or 0))
                daemon.requests.append(Request(self.command, self.path, token, body))
                status, body = daemon.answers.get(f"{self.command} {self.path.partition('?')[0]}", (404, {}))
                self.send_response(status)
                self.end_headers()
                self.wfile.write(body if isinstance(body, bytes) else json.dumps(body).encode())

            do_POST = do_DELETE = do_GET  # noqa: N815 - by these names they are found

            def log_message(self, *_: object) -> None:
                pass

        return Handler


@pytest.fixture
def operated(bare_environment: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Operated]:
    """A daemon that an operator's commands find by the state directory."""
    daemon = Operated(bare_environment)
    yield daemon
    daemon.close()
