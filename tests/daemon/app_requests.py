"""Requests to a daemon that runs in the process of the test."""

import json
from typing import Any

from toold.daemon.app import Daemon
from websockets.asyncio.client import connect

NO_SDKS = {"TOOLD_KIMI_SDK": "http", "TOOLD_GLM_SDK": "http", "TOOLD_GRACE_PERIOD_S": "0.1"}


async def call(
    daemon: Daemon, name: str, *, token: str | None = None, client: dict[str, str] | None = None, **arguments: Any
) -> dict[str, Any]:
    """One call over the WebSocket port, with the daemon's token unless another is given."""
    token = token or (daemon.settings.state_dir / "token").read_text().strip()
    async with connect(daemon.address().url, compression=None) as socket:
        await socket.send(json.dumps({"op": "hello", "token": token, "client": client or {}}))
        assert json.loads(await socket.recv())["ok"]
        await socket.send(json.dumps({"op": "call_tool", "request_id": 1, "name": name, "arguments": arguments}))
        while True:
            frame: dict[str, Any] = json.loads(await socket.recv())
            if frame["op"] == "call_tool_res":
                return frame


async def hello_ack(daemon: Daemon) -> dict[str, Any]:
    """The answer to a hello with the daemon's token."""
    token = (daemon.settings.state_dir / "token").read_text().strip()
    async with connect(daemon.address().url, compression=None) as socket:
        await socket.send(json.dumps({"op": "hello", "token": token}))
        ack: dict[str, Any] = json.loads(await socket.recv())
        return ack
