"""Fuzz targets: what peers send. Frames of clients and of daemons, MCP over HTTP and stdio, and HTTP itself."""

import asyncio
import sys
from functools import cache
from typing import Any, Final, cast

import msgspec
import uvicorn
from starlette.types import Receive, Scope, Send
from toold.cli.bridge.line_channel import LineSplitter, LineTooLong
from toold.client.client_frames import read_frame
from toold.daemon.transports.request_guard import RequestAdmitted, RequestRefused, admit
from toold.protocol import json_rpc
from toold.protocol.authorization import Authorization, AuthorizationDenied
from toold.protocol.error_codes import ErrorCode
from toold.protocol.frame_decoding import FrameRefusal, decode_client_frame, request_id_of, request_key, tool_call
from toold.protocol.frames import CallTool, ErrorFrame, Hello, decode_server_frame, encode
from toold.protocol.handshake import HelloAccepted, HelloRefused, parse_hello, validate_hello
from toold.protocol.json_rpc import MalformedMessage, Message, MessageProblem, RpcReply, RpcRequest
from toold.protocol.mcp.mcp_call import parse_call
from toold.protocol.mcp.mcp_revision import DEFAULT_REVISION
from toold.protocol.mcp.request_envelope import http_envelope, revision_of_notification, stdio_envelope
from toold.protocol.tool_call import LOCAL, ToolCall
from toold.serving import ConnectionLimits, ConnectionSlots
from toold.serving.http_connection import HttpConnection, HttpPeer
from toold.sources.json_surrogates import LoneSurrogates, replace_lone_surrogates
from toold.sources.mcp.message_lines import HEAD_BYTES, TAIL_BYTES, read_line
from toold.sources.mcp.message_lines import request_id_of as id_in_line
from uvicorn.server import ServerState

from .target_result import in_two, text_of_input

_CLOSE_CODES: Final = {4000, 4001, 4003}
_LINE_LIMIT: Final = 256
_CUT_BYTES: Final = 1024
"""Longer requests are not sent in pieces, which takes a turn of the loop each."""
_IDLE_TURNS: Final = 8


def client_frame(data: bytes) -> bool:
    """A frame of a client is decoded, to the same after it is encoded again, or rejected with an error frame."""
    text = text_of_input(data)
    _first_frame(text)
    frame = decode_client_frame(text.encode(errors="surrogatepass"))
    if isinstance(frame, FrameRefusal):
        _check_refusal(frame)
        return False
    assert decode_client_frame(encode(frame)) == frame
    if not isinstance(frame, CallTool):
        return True
    call = tool_call(frame, len(data), make_id=lambda: "made")
    if isinstance(call, FrameRefusal):
        _check_refusal(call)
        return False
    assert request_id_of(request_key(call.request_id)) == call.request_id
    return True


def _first_frame(text: str) -> None:
    hello = parse_hello(text)
    if isinstance(hello, Hello):
        result = validate_hello(hello, Authorization(LOCAL), make_label=lambda: "made", toolsets=("standard", "full"))
        assert isinstance(result, HelloAccepted | HelloRefused)
    else:
        assert hello.close_code in _CLOSE_CODES


def _check_refusal(refusal: FrameRefusal) -> None:
    assert refusal.error.code in set(ErrorCode)
    assert refusal.error.message
    assert isinstance(decode_server_frame(encode(ErrorFrame(refusal.error, refusal.request_id))), ErrorFrame)


def server_frame(data: bytes) -> bool:
    """A frame of a daemon is decoded, to the same after it is encoded again, or skipped by the client."""
    frame = read_frame(data)
    if frame is None:
        return False
    assert read_frame(encode(frame)) == frame
    return True


def mcp_http(data: bytes) -> bool:
    """The headers (lines before an empty line) and the body of a POST are admitted or refused with a status, and each
    message in the body is accepted or answered with a JSON-RPC error.
    """
    head, _, body = data.partition(b"\n\n")
    lines = (line.partition(":") for line in head.decode("latin-1").split("\n"))
    headers = {name.lower(): value.strip() for name, _, value in lines}
    opened = _now(admit("POST", headers, scheme="http", authenticate=_authenticate, origins=("https://a.example",)))
    if isinstance(opened, RequestRefused):
        assert 400 <= opened.status < 500
        return False
    assert isinstance(opened, RequestAdmitted)
    envelopes: list[object] = [revision_of_notification(headers)]
    for message in _messages(body):
        if isinstance(message, RpcRequest):
            envelopes.append(http_envelope(message, headers))
            call = parse_call(message, "made", len(body))
            assert isinstance(call, ToolCall | MessageProblem)
    for envelope in envelopes:
        if isinstance(envelope, MessageProblem):
            json_rpc.failure(None, envelope)
    return not any(isinstance(envelope, MessageProblem) for envelope in envelopes)


async def _authenticate(token: str | None) -> Authorization | AuthorizationDenied:
    return AuthorizationDenied("missing", "Send a token.") if token == "" else Authorization(LOCAL)


def _now(coroutine: Any) -> object:
    """The result of a coroutine that does not wait."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return cast("object", end.value)
    raise AssertionError("it waits")


def _messages(body: bytes) -> list[Message]:
    """The decoded messages; each can be answered."""
    decoded = json_rpc.decode(body)
    messages = decoded if isinstance(decoded, list) else [decoded]
    for message in messages:
        match message:
            case MalformedMessage():
                assert message.problem.message
                msgspec.json.decode(json_rpc.failure(message.id, message.problem))
            case RpcRequest():
                answer = json_rpc.answer(message.id, message.params)
                assert json_rpc.decode(answer) == RpcReply(message.id, message.params)
    return messages


def mcp_stdio(data: bytes) -> bool:
    """Lines of an editor are the same however they are cut into pieces; each is a message, or gets an error."""
    lines = _lines(data)
    assert _lines(*(data[at : at + 7] for at in range(0, len(data), 7))) == lines
    accepted = True
    for line in lines:
        for message in _messages(line) if line is not None else ():
            accepted = accepted and not isinstance(message, MalformedMessage)
            if isinstance(message, RpcRequest):
                envelope = stdio_envelope(message, DEFAULT_REVISION)
                if isinstance(envelope, MessageProblem):
                    json_rpc.failure(message.id, envelope)
                    accepted = False
    return accepted


def _lines(*pieces: bytes) -> list[bytes | None]:
    """The lines; None for one that is too long."""
    splitter = LineSplitter(_LINE_LIMIT)
    lines = [line for piece in pieces for line in splitter.feed(piece)] + splitter.end()
    return [None if isinstance(line, LineTooLong) else line for line in lines]


def upstream_line(data: bytes) -> bool:
    """A line of an MCP server becomes a message that can be written as JSON, an error for its request, or nothing."""
    result = id_in_line(data[:HEAD_BYTES], data[-TAIL_BYTES:])
    assert result is None or isinstance(result, int | str)
    whole = replace_lone_surrogates(data)
    cut = LoneSurrogates()
    assert b"".join(cut.replace(data[at : at + 5]) for at in range(0, len(data), 5)) + cut.partial == whole
    assert len(whole) == len(data)
    message = read_line(data)
    if message is None:
        return False
    msgspec.json.decode(message.message.model_dump_json(by_alias=True))
    return True


# --- HTTP -------------------------------------------------------------------------------------------------------------


def http_request(data: bytes) -> bool:
    """The app gets the same requests whether the bytes arrive at once or in small pieces, up to the first invalid one,
    which gets a 400. Line ends are CRLF, except after a first line ``raw``.
    """
    first, rest = in_two(data)
    stream = rest if first == b"raw" else data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    loop = _loop()
    at_once, answer = loop.run_until_complete(_serve([stream]))
    if len(stream) <= _CUT_BYTES:
        pieces = [stream[at : at + 3] for at in range(0, len(stream), 3)]
        piecewise, _ = loop.run_until_complete(_serve(pieces))
        assert all(first == other for first, other in zip(at_once, piecewise, strict=False))
    assert answer.startswith((b"HTTP/1.1 ", b"")[not answer])
    return bool(at_once) and not answer.startswith(b"HTTP/1.1 400 ")


@cache
def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


class _Wire(asyncio.Transport):
    """The other end of a connection, in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.protocol: Any = None
        self._closing = False

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        self._closing = True

    abort = close

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


_Request = tuple[str, bytes, list[tuple[bytes, bytes]], bytes]
"""Method, path, headers and body."""


async def _serve(pieces: list[bytes]) -> tuple[list[_Request], bytes]:
    requests: list[_Request] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return
            body, more = body + message["body"], message["more_body"]
        requests.append((scope["method"], scope["raw_path"], scope["headers"], body))
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    config = uvicorn.Config(app, ws="none", lifespan="off", log_config=None, access_log=False, server_header=False)
    config.load()
    slots: ConnectionSlots[HttpPeer] = ConnectionSlots(ConnectionLimits(sys.maxsize, sys.maxsize, sys.maxsize))
    connection = HttpConnection(config, ServerState(), {}, slots=slots, direct_app=app)
    wire = _Wire()
    wire.set_protocol(connection)
    connection.connection_made(wire)
    for piece in pieces:
        if wire.is_closing():
            break
        wire.protocol.data_received(piece)
        await asyncio.sleep(0)
    idle, seen = 0, (0, 0)
    while idle < _IDLE_TURNS:  # each answer starts the next request
        await asyncio.sleep(0)
        idle, seen = (idle + 1 if seen == (now := (len(requests), len(wire.written))) else 0), now
    wire.protocol.connection_lost(None)
    while connection.server_state.tasks:
        await asyncio.sleep(0)
    return requests, wire.written
