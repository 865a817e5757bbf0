"""The clients of a fault run: the client library, and an aggressive client that sends everything twice.

Each records the answers that it receives.
"""

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Final, Protocol
from unittest import mock

from toold.client import (
    ConnectionFailedError,
    ConnectionLostError,
    MCPWebSocketClient,
    client_connection,
    reconnect_policy,
    socket_opening,
)
from toold.protocol.error_codes import CallError
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidHandshake, WebSocketException

from .tally import LOCAL, NESTED, WRITES, Answer, Call

HEARTBEAT_S: Final = 1.0
"""The ping interval of both sides, and their time for the pong. Short, so that a run of minutes detects half-open
connections."""
OPENING_S: Final = 2.0
PAUSE_S: Final = 0.25
"""The window of the first pause before a reconnect; later ones double, up to eight times."""
PATIENCE_S: Final = 1700.0
"""The timeout of a call, longer than any run: an unanswered call counts as lost, and no clock may answer it."""
CHAT: Final = "chat"
_REFUSED_S: Final = 0.3


@dataclass(frozen=True, slots=True)
class CallSpec:
    """The parameters of one call."""

    id: str
    tool: str
    delay_ms: int
    repeat: bool
    """Whether to repeat the call under its id after the answer."""
    cancel_after_s: float | None

    @property
    def drawn(self) -> bool:
        """Whether it is one of the calls that the run has to make."""
        return self.tool in {WRITES, NESTED}

    @property
    def pause_s(self) -> float:
        """How long its client waits if it is refused: the next call would be too."""
        return _REFUSED_S

    @property
    def arguments(self) -> Mapping[str, Any]:
        if self.tool == CHAT:
            return {"prompt": f"[[sim:say={self.id}]]"}
        write = {"text": self.id, "delay_ms": self.delay_ms}
        if self.tool == NESTED:
            batch = {"tool_name": WRITES, "items": [write], "options": {"result_mode": "detail"}}
            return {"steps": [{"id": "batch", "tool_name": "execute_batch", "args": batch}]}
        return write

    def answer(self, text: str, structured: Any, *, replayed: bool) -> Answer:
        """The answer that a result without an error is; its text is unique to this call."""
        if self.tool == NESTED:
            succeeded = bool(structured["success"])
            own = not succeeded or f"written: {self.id}" in json.dumps(structured)
            return Answer("ok", "yes" if succeeded else "maybe", own, replayed)
        expected = {WRITES: "written: ", CHAT: "Simulated: "}.get(self.tool, "") + self.id
        return Answer("ok", "yes", text == expected, replayed)


def call_specs(name: str, seed: int) -> Iterator[CallSpec]:
    """The endless calls of a client, most of them with an effect. Pure."""
    chance = random.Random(f"{seed} {name}")
    for number in count():
        yield CallSpec(
            id=f"{name}-{number}",
            tool=chance.choices([WRITES, LOCAL, CHAT, NESTED], [82, 10, 2, 6])[0],
            delay_ms=chance.choice([0, chance.randrange(50), chance.randrange(50), chance.randrange(400)]),
            repeat=chance.random() < 0.1,
            cancel_after_s=chance.uniform(0, 0.3) if chance.random() < 0.05 else None,
        )


class Caller(Protocol):
    """A client of a run."""

    async def make(self, call_spec: CallSpec, call: Call) -> None:
        """Make one call, with its repeat, and record the answers in ``call``."""


@contextmanager
def shortened_times() -> Iterator[None]:
    """Shorten the library's times to fit a run of minutes."""
    with (
        mock.patch.multiple(reconnect_policy, FIRST_WINDOW_S=PAUSE_S, MAX_DELAY_S=8 * PAUSE_S),
        mock.patch.multiple(client_connection, PING_INTERVAL_S=HEARTBEAT_S, PING_TIMEOUT_S=HEARTBEAT_S),
        mock.patch.object(socket_opening, "OPEN_TIMEOUT_S", OPENING_S),
    ):
        yield


class LibraryCaller:
    """The client library, which reconnects and resumes by itself."""

    def __init__(self, client: MCPWebSocketClient) -> None:
        self._client = client

    async def make(self, call_spec: CallSpec, call: Call) -> None:
        ending = asyncio.create_task(self._cancel(call_spec)) if call_spec.cancel_after_s is not None else None
        try:
            await self._once(call_spec, call)
        finally:
            if ending is not None:
                ending.cancel()
                await asyncio.wait([ending])
        # The library itself answers calls that were cancelled before they were sent; such a call may run when repeated.
        if call_spec.repeat and call.answers and call.answers[0].executed != "no":
            await self._once(call_spec, call)

    async def _once(self, call_spec: CallSpec, call: Call) -> None:
        asked_at = time.monotonic()
        while True:
            call.sent = True
            try:
                result = await self._client.call(
                    call_spec.tool, call_spec.arguments, timeout=PATIENCE_S, request_id=call_spec.id
                )
            except ConnectionFailedError as error:
                call.sent = False
                if not error.retryable:
                    call.lost = str(error)
                    return
            except ConnectionLostError as error:
                call.lost = str(error)
                call.sent = error.executed != "no"
                return
            except CallError as error:
                answer = Answer(error.code.value, error.executed, own=True)
                call.answers.append(replace(answer, asked_at=asked_at, at=time.monotonic()))
                return
            else:
                replayed = bool(result.metadata.replayed)
                text = result.outputs[0]["text"]  # chat sends the id of the conversation as a second text
                answer = call_spec.answer(text, result.structured, replayed=replayed)
                call.answers.append(replace(answer, asked_at=asked_at, at=time.monotonic()))
                return

    async def _cancel(self, call_spec: CallSpec) -> None:
        await asyncio.sleep(call_spec.cancel_after_s or 0)
        with suppress(CallError, ConnectionFailedError, ConnectionLostError):
            await self._client.cancel(call_spec.id)


def _final(answer: Answer) -> bool:
    """Whether a repeat must get the same answer. A daemon that shuts down refuses calls without accepting them: such a
    call may run when it is repeated.
    """
    return (answer.outcome, answer.executed) != ("SERVICE_UNAVAILABLE", "no")


class BriefCaller:
    """Opens a connection for every call, so that faults hit sessions that are being opened."""

    def __init__(self, port: int, token: str, name: str) -> None:
        self._port, self._token, self._name = port, token, name

    async def make(self, call_spec: CallSpec, call: Call) -> None:
        async with library_caller(self._port, self._token, self._name) as caller:
            await caller.make(call_spec, call)


class AggressiveCaller:
    """Sends every call twice, and again after each reconnect; acknowledges nothing, and reads every redelivered answer.

    It uses only two parts of the protocol: the resume key, and that an id runs once.
    """

    def __init__(self, port: int, token: str, name: str) -> None:
        self._hello = {"op": "hello", "session_id": name, "token": token, "features": ["resume", "ack"]}
        self._url = f"ws://127.0.0.1:{port}/"
        self._chance = random.Random(name)
        self._key: str | None = None
        self._socket: ClientConnection | None = None
        self._open: dict[str, tuple[CallSpec, asyncio.Future[None]]] = {}
        self._made: dict[str, tuple[CallSpec, Call]] = {}
        self.unexpected: list[str] = []
        """Errors that answer no call, and answers to calls that this client did not make."""

    async def make(self, call_spec: CallSpec, call: Call) -> None:
        answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._open[call_spec.id] = (call_spec, answered)
        self._made[call_spec.id] = (call_spec, call)
        if self._socket is not None:
            with suppress(WebSocketException):
                await self._send(self._socket, call_spec)
        if call_spec.cancel_after_s is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(answered), call_spec.cancel_after_s)
            if self._socket is not None:
                with suppress(WebSocketException):
                    await self._socket.send(json.dumps({"op": "cancel", "request_id": call_spec.id}))
        await answered
        if call_spec.repeat and self._socket is not None and call.answers and _final(call.answers[0]):
            with suppress(WebSocketException):
                await self._send(self._socket, call_spec)

    async def keep_connected(self) -> None:
        """Connect, read and reconnect until cancelled."""
        while True:
            with suppress(OSError, TimeoutError, InvalidHandshake, WebSocketException):
                async with (
                    asyncio.timeout(None) as opening_time,
                    connect(
                        self._url,
                        compression=None,
                        max_size=None,
                        proxy=None,
                        open_timeout=OPENING_S,
                        close_timeout=0.5,
                        ping_interval=HEARTBEAT_S,
                        ping_timeout=HEARTBEAT_S,
                    ) as socket,
                ):
                    opening_time.reschedule(asyncio.get_running_loop().time() + OPENING_S)
                    await self._greet(socket)
                    opening_time.reschedule(None)
                    self._socket = socket
                    for call_spec, _ in tuple(self._open.values()):
                        await self._send(socket, call_spec)
                    async for frame in socket:
                        self._receive(json.loads(frame))
            self._socket = None
            await asyncio.sleep(self._chance.uniform(0, PAUSE_S))

    async def _greet(self, socket: ClientConnection) -> None:
        resume = {} if self._key is None else {"resume": {"key": self._key}}
        await socket.send(json.dumps(self._hello | resume))
        ack = json.loads(await socket.recv())
        if not ack["ok"]:
            raise ConnectionRefusedError(ack["error"]["message"])
        if self._key is not None and not ack["resumed"]:
            for call_spec, answered in tuple(self._open.values()):
                self._made[call_spec.id][1].lost = f"the session could not be resumed: {ack['notice']}"
                answered.set_result(None)
            self._open.clear()
        self._key = ack["resume_key"]

    async def _send(self, socket: ClientConnection, call_spec: CallSpec) -> None:
        frame = {
            "op": "call_tool",
            "request_id": call_spec.id,
            "name": call_spec.tool,
            "arguments": call_spec.arguments,
        }
        data = json.dumps(frame | {"timeout_ms": PATIENCE_S * 1000})
        await socket.send(data)
        await socket.send(data)

    def _receive(self, frame: Mapping[str, Any]) -> None:
        if frame["op"] == "error":
            self.unexpected.append(json.dumps(frame))
        if frame["op"] != "call_tool_res":
            return
        if frame["request_id"] not in self._made:
            self.unexpected.append(frame["request_id"])
            return
        call_spec, call = self._made[frame["request_id"]]
        error, replayed = frame["error"], bool(frame["metadata"].get("replayed"))
        if error is None:
            answer = call_spec.answer(frame["outputs"][0]["text"], frame.get("structured"), replayed=replayed)
        else:
            answer = Answer(error["code"], error["executed"], own=True, replayed=replayed)
        # Which of its frames it answers is unknown, so it may have been asked for at the first one.
        call.answers.append(replace(answer, asked_at=call.asked_at, at=time.monotonic()))
        _, answered = self._open.pop(call_spec.id, (None, None))
        if answered is not None:
            answered.set_result(None)


@asynccontextmanager
async def library_caller(port: int, token: str, name: str) -> AsyncIterator[LibraryCaller]:
    """A connected client; its session ends with the block."""
    client = MCPWebSocketClient("127.0.0.1", port, token, session_id=name, client_name="chaos")
    while not await client.connect(max_retries=1):  # the first connection may have a fault too
        await asyncio.sleep(PAUSE_S)
    try:
        yield LibraryCaller(client)
    finally:
        await client.disconnect()


@asynccontextmanager
async def aggressive_caller(port: int, token: str, name: str) -> AsyncIterator[AggressiveCaller]:
    caller = AggressiveCaller(port, token, name)
    connected = asyncio.create_task(caller.keep_connected())
    try:
        yield caller
    finally:
        connected.cancel()
        await asyncio.wait([connected])


@asynccontextmanager
async def brief_caller(port: int, token: str, name: str) -> AsyncIterator[BriefCaller]:
    yield BriefCaller(port, token, name)


Connect = Callable[[int, str, str], AbstractAsyncContextManager[Caller]]
"""Connects a client; takes the port, the token and a name."""
Kind = tuple[str, Connect]
"""The name of a kind of client, and the function that connects one."""
KINDS: Final[Sequence[Kind]] = (
    ("library", library_caller),
    ("library", library_caller),
    ("brief", brief_caller),
    ("aggressive", aggressive_caller),
)
"""The clients of a run, in turn."""
