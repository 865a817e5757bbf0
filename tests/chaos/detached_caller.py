"""A client that starts detached calls, and looks at them from another session until they have ended."""

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final

from toold.client import ConnectionFailedError, ConnectionLostError, MCPWebSocketClient
from toold.protocol.error_codes import CallError

from .callers import PATIENCE_S, PAUSE_S, CallSpec
from .linearizability import OPEN
from .tally import DETACHED, WRITES, Answer, Call

_LOOK_S: Final = 0.1
_UNFINISHED: Final = frozenset({"waiting", "running", "ending", "paused"})
_NO_ANSWER: Final = (CallError, ConnectionFailedError, ConnectionLostError)


class DetachedCaller:
    """Each call is a detached batch of one write, so that its id finds it from every session and node. It is looked up
    by the session that started it and by another one in turn, until the result is there.
    """

    def __init__(self, starter: MCPWebSocketClient, other: MCPWebSocketClient, name: str) -> None:
        self._starter = starter
        self._sessions = (starter, other)
        self._chance = random.Random(name)

    async def make(self, call_spec: CallSpec, call: Call) -> None:
        call.tool = DETACHED
        write = {"text": call_spec.id, "delay_ms": call_spec.delay_ms}
        batch = {"tool_name": WRITES, "items": [write], "options": {"result_mode": "detail"}, "detach": True}
        try:
            started = await self._starter.call(
                "execute_batch", batch, timeout=PATIENCE_S, request_id=f"start-{call_spec.id}"
            )
        except _NO_ANSWER:  # whether it was started is unknown, and so is its id
            call.given_up = True
            await asyncio.sleep(PAUSE_S)
            return
        assert isinstance(started.structured, dict)
        call_id = started.structured["call_id"]
        while not call.answers:
            await asyncio.sleep(self._chance.uniform(0, _LOOK_S))
            await self._look(call_id, call)

    async def _look(self, call_id: str, call: Call) -> None:
        tool = self._chance.choice(["call_status", "call_result"])
        asked_at = time.monotonic()
        try:
            found = await self._chance.choice(self._sessions).call(tool, {"call_id": call_id}, timeout=PATIENCE_S)
        except CallError as error:
            if error.code.value != "SERVICE_UNAVAILABLE":
                call.answers.append(Answer(error.code.value, error.executed, True, asked_at=asked_at, at=_now()))
            return
        except (ConnectionFailedError, ConnectionLostError):
            await asyncio.sleep(PAUSE_S)
            return
        assert isinstance(found.structured, dict)
        seen = _seen(found.structured, call.id, with_result=tool == "call_result")
        seen = replace(seen, asked_at=asked_at, at=_now())
        (call.answers if tool == "call_result" and seen.outcome != OPEN else call.looks).append(seen)


def _now() -> float:
    return time.monotonic()


def _seen(found: Mapping[str, Any], text: str, *, with_result: bool) -> Answer:
    """What a client learns about a detached call."""
    state = found["state"]
    if state in _UNFINISHED:
        return Answer(OPEN, "maybe", own=True)
    if not with_result:
        return Answer({"done": "ok", "failed": "failed"}.get(state, state), "maybe", own=True)
    if "error" in found:
        return Answer(found["error"]["code"], found["error"]["executed"], own=True)
    result = found["result"]
    succeeded = result["succeeded"] == 1
    return Answer("ok", "yes" if succeeded else "maybe", own=not succeeded or f"written: {text}" in json.dumps(result))


@asynccontextmanager
async def detached_caller(port: int, token: str, name: str) -> AsyncIterator[DetachedCaller]:
    """Two connected clients; their sessions end with the block."""
    clients = [
        MCPWebSocketClient("127.0.0.1", port, token, session_id=f"{name}-{number}", client_name="chaos")
        for number in range(2)
    ]
    for client in clients:
        while not await client.connect(max_retries=1):
            await asyncio.sleep(PAUSE_S)
    try:
        yield DetachedCaller(clients[0], clients[1], name)
    finally:
        for client in clients:
            await client.disconnect()
