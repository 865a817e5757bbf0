"""A scripted daemon that tests control frame by frame."""

import asyncio
import json
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from toold.client import MCPWebSocketClient, reconnect_policy
from websockets.asyncio.server import Server, ServerConnection, serve

PATIENCE_S = 20.0
"""A time limit for events that happen at once; no test waits for it to pass."""

Frame = dict[str, Any]


@dataclass(eq=False)
class Peer:
    """The daemon's side of one connection."""

    socket: ServerConnection
    hello: Frame = field(default_factory=dict)
    frames: asyncio.Queue[Frame] = field(default_factory=asyncio.Queue)

    async def expect(self, op: str) -> Frame:
        """Returns the next frame, which must have this op."""
        async with asyncio.timeout(PATIENCE_S):
            frame = await self.frames.get()
        assert frame["op"] == op, frame
        return frame

    async def status(self, **calls: str) -> Frame:
        """Answers the next frame, which must be a call_status for these calls."""
        request = await self.expect("call_status")
        assert set(request["request_ids"]) == set(calls)
        await self.send("call_status_res", calls=calls)
        return request

    def cut(self) -> None:
        """Closes the connection without a close frame."""
        self.socket.transport.abort()

    async def send(self, op: str, **fields: Any) -> None:
        await self.socket.send(json.dumps({"op": op, **fields}))

    async def answer(self, call: Frame, text: str = "done", **fields: Any) -> None:
        """Sends the answer of a call; a result unless the fields say otherwise."""
        metadata = {"latency_ms": 1.0, "timings": {"queue_ms": 0.0, "tool_ms": 1.0, "provider_ms": 0.0}}
        answer = {"outputs": [{"type": "text", "text": text}], "error": None, "metadata": metadata} | fields
        await self.send("call_tool_res", request_id=call["request_id"], **answer)


class ScriptedDaemon:
    """Sends the ack unless it is None; the test does the rest.

    With a ``key``, a hello with that key resumes the session, and any other hello starts a new one.
    """

    def __init__(self) -> None:
        self.key: str | None = None
        self.ack: Frame | None = {"ok": True, "protocol": 1, "features": ["ack", "stream", "resume", "going_away"]}
        self.peers: asyncio.Queue[Peer] = asyncio.Queue()
        self.connections = 0
        self.open: set[Peer] = set()
        self._server: Server | None = None

    async def start(self, host: str = "127.0.0.1", port: int = 0, context: ssl.SSLContext | None = None) -> None:
        self._server = await serve(self._handle, host, port, ssl=context, max_size=None)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    @property
    def port(self) -> int:
        assert self._server is not None
        port: int = next(iter(self._server.sockets)).getsockname()[1]
        return port

    async def accept(self) -> Peer:
        """Returns the next connection after its hello."""
        async with asyncio.timeout(PATIENCE_S):
            return await self.peers.get()

    async def _handle(self, socket: ServerConnection) -> None:
        self.connections += 1
        peer = Peer(socket)
        peer.hello = json.loads(await socket.recv())
        self.open.add(peer)
        await self.peers.put(peer)
        if self.ack is not None:
            resumption: Frame = {}
            if self.key is not None:
                resumption = {"resume_key": self.key, "resumed": peer.hello.get("resume", {}).get("key") == self.key}
            await peer.send("hello_ack", **({"session_id": peer.hello.get("session_id")} | resumption | self.ack))
        try:
            async for message in socket:
                await peer.frames.put(json.loads(message))
        finally:
            self.open.discard(peer)


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Hides the machine's daemon: no variables, and an empty state directory, which is returned."""
    for name in ("HOST", "PORT", "TOKEN"):
        monkeypatch.delenv(f"TOOLD_{name}", raising=False)
        monkeypatch.delenv(f"EXAI_WS_{name}", raising=False)
    directory = tmp_path / "state"
    monkeypatch.setenv("TOOLD_STATE_DIR", str(directory))
    return directory


@pytest.fixture(autouse=True)
def short_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients reconnect within milliseconds."""
    monkeypatch.setattr(reconnect_policy, "FIRST_WINDOW_S", 0.005)


@pytest.fixture
async def daemon() -> AsyncIterator[ScriptedDaemon]:
    """A scripted daemon on 127.0.0.1."""
    scripted = ScriptedDaemon()
    await scripted.start()
    yield scripted
    await scripted.stop()


@pytest.fixture
async def client(daemon: ScriptedDaemon) -> AsyncIterator[MCPWebSocketClient]:
    """A client of the scripted daemon, not connected."""
    client = MCPWebSocketClient(port=daemon.port, token="a token of a test")
    yield client
    await client.disconnect()


@pytest.fixture
async def peer(daemon: ScriptedDaemon, client: MCPWebSocketClient) -> Peer:
    """The daemon's side of the connected client."""
    assert await client.connect(max_retries=1)
    return await daemon.accept()


@pytest.fixture
async def resumable(daemon: ScriptedDaemon, client: MCPWebSocketClient) -> Peer:
    """Like ``peer``, of a daemon with resumable sessions."""
    daemon.key = "first key"
    assert await client.connect(max_retries=1)
    return await daemon.accept()


@pytest.fixture
def certificate(starts_processes: None, tmp_path: Path) -> tuple[Path, Path]:
    """A self-signed certificate for 127.0.0.1 and its key, made by the openssl command."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("the openssl command is missing: it makes the self-signed certificate")
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    new_key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", str(key)]
    command = [openssl, "req", "-x509", "-days", "2", *new_key, *names, "-out", str(certificate)]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key
