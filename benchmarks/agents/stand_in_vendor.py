"""A stand-in for a vendor with OpenAI's API, whose model takes a second per turn and follows ``flow``.

``POST …/chat/completions`` is a turn; which one follows from the messages. A request that is not the next one of its
run (a missing or wrong result, other tools, no instructions) gets 400. ``GET /turns`` returns the time of each turn
since the last ``GET``, by the clock that all processes of the machine share (``time.monotonic``).

``python -m benchmarks.agents.stand_in_vendor`` prints its port and serves until it is terminated.
"""

import asyncio
import re
import time
from typing import Any, Final, cast

import msgspec
import uvloop

from .flow import ANSWER, INSTRUCTIONS, MODEL, MODEL_S, TOOLS, wanted_calls

_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_RUN: Final = re.compile(r"my order (\S+) arrive")
_NAMES: Final = {function.__name__ for function in TOOLS}


class WrongRequestError(Exception):
    """The request is not a turn of the flow; the message says why."""


class VendorTurn(msgspec.Struct, frozen=True, array_like=True):
    """When the request of a turn had arrived, and when its answer was sent."""

    run: str
    arrived: float
    answered: float


def answer(request: dict[str, Any]) -> tuple[str, bytes]:
    """The run, and the model's next turn as the vendor writes it.

    Raises:
        WrongRequestError: it is not a turn of the flow.
    """
    names = {tool["function"]["name"] for tool in request.get("tools", ())}
    if request.get("stream") or names != _NAMES:
        raise WrongRequestError(f"it streams, or its tools are not those of the flow: {sorted(names)}")
    messages = request["messages"]
    if messages[0]["role"] not in {"system", "developer"} or INSTRUCTIONS not in _text(messages[0]):
        raise WrongRequestError("without the instructions")
    named = _RUN.search(" ".join(_text(message) for message in messages if message["role"] == "user"))
    if named is None:
        raise WrongRequestError("without the question")
    run = named[1]
    turn = sum(message["role"] == "assistant" for message in messages)
    results = [(message["tool_call_id"], _text(message)) for message in messages if message["role"] == "tool"]
    expected = [identity for number in range(turn) for identity in _ids(number, run)]
    if [identity for identity, _ in results] != expected or any(run not in text for _, text in results):
        raise WrongRequestError(f"turn {turn} has the results {results}")
    calls = [
        {
            "id": identity,
            "type": "function",
            "function": {"name": name, "arguments": msgspec.json.encode(each).decode()},
        }
        for identity, (name, each) in zip(_ids(turn, run), wanted_calls(turn, run), strict=True)
    ]
    message = {"role": "assistant", "content": None if calls else ANSWER.format(order=run)}
    body = {
        "id": f"chatcmpl-{run}-{turn}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": MODEL,
        "choices": [
            {
                "index": 0,
                "message": message | ({"tool_calls": calls} if calls else {}),
                "finish_reason": "tool_calls" if calls else "stop",
            }
        ],
        "usage": {"prompt_tokens": 300 + 60 * turn, "completion_tokens": 30, "total_tokens": 330 + 60 * turn},
    }
    return run, msgspec.json.encode(body)


def _ids(turn: int, run: str) -> list[str]:
    return [f"call_{run}_{turn}_{index}" for index in range(len(wanted_calls(turn, run)))]


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content or ())


class _Connection(asyncio.Protocol):
    """One connection of HTTP/1.1, with one request at a time."""

    def __init__(self, turns: list[VendorTurn]) -> None:
        self._turns = turns
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop has its own class

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not end or len(body) < (int(length[1]) if length else 0):
            return
        self._received = b""
        arrived = time.monotonic()
        if head.startswith(b"GET /turns"):
            self._send(msgspec.json.encode(self._turns))
            self._turns.clear()
        elif head.startswith(b"GET "):
            self._send(msgspec.json.encode({"object": "list", "data": [{"id": MODEL, "object": "model"}]}))
        else:
            try:
                run, turn = answer(msgspec.json.decode(body))
            except (WrongRequestError, LookupError, TypeError) as error:
                self._send(msgspec.json.encode({"error": {"message": f"{error!r}"}}), b"400 Bad Request")
            else:
                asyncio.get_running_loop().call_later(MODEL_S, self._say, run, turn, arrived)

    def _say(self, run: str, turn: bytes, arrived: float) -> None:
        self._turns.append(VendorTurn(run, arrived, time.monotonic()))
        self._send(turn)

    def _send(self, body: bytes, status: bytes = b"200 OK") -> None:
        head = b"HTTP/1.1 %b\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % (status, len(body))
        self._transport.write(head + body)


async def main() -> None:
    """Serve on a free loopback port."""
    turns: list[VendorTurn] = []
    server = await asyncio.get_running_loop().create_server(lambda: _Connection(turns), "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main())
