"""Any frame of a peer is answered, or its connection closed, as documented, and no call or permit remains.

Every frame is drawn: random JSON, JSON with one error, binary data, and near misses of the real frames with invalid
field values. ``KEY`` and ``TOKEN`` stand for a real resume key and the daemon's token.
"""

import asyncio
import json
import math
from collections.abc import AsyncIterator
from typing import Any, Final, get_args

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toold.daemon.transports.peer_connection import MAX_HELLO_BYTES
from toold.protocol.error_codes import ErrorCode
from toold.protocol.frame_decoding import OPS
from toold.protocol.frames import ServerFrame
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed
from websockets.frames import CloseCode

ANSWERS: Final = {str(frame.__struct_config__.tag) for frame in get_args(ServerFrame)}
REFUSED_HELLO: Final = {4000, 4001, 4003}
FEATURES: Final = ["ack", "stream", "resume", "going_away", "tools_changed"]
TOOLS: Final = ["echo", "status", "chat", "sim_effect", "listmodels", "bad_raises", "reports", "nope", "echo_EXAI-WS-1"]

fuzz = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

texts = st.text(st.characters(), max_size=20)  # includes half surrogate pairs, which JSON can express
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
few_ids = st.sampled_from(["a", "b", 7, "7"])  # so that ids repeat
ids = st.one_of(
    few_ids,
    texts,
    st.integers(),
    st.floats(),
    st.sampled_from([0, -0.0, 1e300, math.inf, 2**63, 2**64, -(2**63) - 1, "\0"]),
    st.sampled_from([512, 513, 100_000]).map(lambda length: "a" * length),
    st.integers(0, 1500).map(lambda digits: 10**digits),
    values,
)
long_numbers = st.integers(300, 6000).map(lambda digits: '{"op":"cancel","request_id":' + "9" * digits + "}")
nested = st.builds(
    lambda opening, closing, depth, frame: frame.replace("?", opening * depth + "1" + closing * depth),
    *(st.sampled_from(["[", '{"a":']), st.sampled_from(["]", "}", ""])),
    st.sampled_from([10, 100, 1_000, 100_000]),
    st.sampled_from(
        ["?", '{"op":?}', '{"op":"hello","resume":?}', '{"op":"call_tool","name":"echo","arguments":{"value":?}}']
    ),
)


def frames(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with some of these fields, each with a valid value or any JSON."""
    return st.fixed_dictionaries({}, optional={name: field | values for name, field in fields.items()})


arguments = st.dictionaries(
    st.sampled_from(["text", "value", "prompt", "files", "model", "recent", "x"]), values, max_size=3
)
hellos = frames(
    session_id=texts | st.just("fuzz-1"),
    token=st.just("TOKEN"),
    features=st.lists(st.sampled_from(FEATURES)),
    resume=frames(key=st.just("KEY") | texts | st.integers(0, 70).map(lambda size: "x" * size)),
    client=frames(name=texts, version=texts, workspace=texts),
    toolset=st.just("standard") | texts,
).map(lambda fields: {"op": "hello", **fields})
good_hellos = hellos.map(lambda fields: {**fields, "token": "TOKEN", "toolset": None})
calls = frames(
    request_id=ids,
    id=ids,
    name=st.sampled_from(TOOLS),
    tool=st.sampled_from(TOOLS) | frames(name=st.sampled_from(TOOLS)),
    arguments=arguments,
    timeout_ms=st.floats() | st.integers(-1, 2000),
    on_disconnect=st.sampled_from(["keep", "cancel", ""]),
).map(lambda fields: {"op": "call_tool", **fields})
questions = frames(request_id=ids, request_ids=st.lists(ids, max_size=4), id=ids).flatmap(
    lambda fields: st.sampled_from(OPS).map(lambda op: {"op": op, **fields})
)
in_order = st.one_of(
    st.builds(
        lambda name, request_id, text: {
            "op": "call_tool",
            "name": name,
            "request_id": request_id,
            "arguments": {"text": text},
        },
        *(st.sampled_from(["echo", "sim_effect"]), few_ids, st.sampled_from(["x", "y"])),
    ),
    st.builds(
        lambda op, request_ids: {"op": op, "request_ids": request_ids},
        *(st.sampled_from(["acknowledge", "forget", "call_status"]), st.lists(few_ids, max_size=4)),
    ),
    few_ids.map(lambda request_id: {"op": "cancel", "request_id": request_id}),
)
sensible = st.one_of(hellos, good_hellos, calls, questions, values).map(json.dumps)


def _spoil(text: str, place: int, other: str) -> str:
    """The text with up to several characters replaced."""
    at = place % len(text)
    return text[:at] + other + text[at + 1 :]


broken = st.builds(
    _spoil, sensible, st.integers(0, 1000), st.text(max_size=2) | st.sampled_from(['"', "}", "\\", "NaN"])
)
anything = st.one_of(
    in_order.map(json.dumps),
    sensible,
    calls.map(json.dumps),
    broken,
    nested,
    long_numbers,
    st.binary(max_size=200),
    st.text(max_size=50),
)


def real(data: str | bytes, daemon: Any, key: str) -> str | bytes:
    """The frame with the real key and token, without characters that a text frame cannot contain."""
    if isinstance(data, bytes):
        return data
    return data.replace('"KEY"', f'"{key}"').replace('"TOKEN"', f'"{daemon.token}"').encode(errors="ignore").decode()


@pytest.fixture
async def key(daemon: Any) -> str:
    """The resume key of a session, which every test tries to resume."""
    async with daemon.peer(features=["resume"]) as peer:
        await peer.call("kept", "echo", text="kept")
        resume_key: str = peer.ack["resume_key"]
        return resume_key


@pytest.fixture(autouse=True)
async def sound(daemon: Any) -> AsyncIterator[None]:
    """After the test every permit is free, every accepted call is answered, and the log has no traceback."""
    before = daemon.tracebacks()
    yield
    async with asyncio.timeout(20), daemon.peer() as peer:
        while True:
            limits = (await peer.status())["limits"]
            permits = [limits["running"], *limits["providers"].values()]
            if limits["accepted"] == 1 and not any(each["in_use"] or each["waiting"] for each in permits):
                break  # this call of status is the one accepted call
            await asyncio.sleep(0.02)
    assert daemon.tracebacks() == before


@fuzz
@given(data=st.one_of(hellos.map(json.dumps), good_hellos.map(json.dumps), anything))
async def test_any_first_frame_is_accepted_or_rejected_as_documented(daemon: Any, key: str, data: str | bytes) -> None:
    """An ack rejects with the documented close code, or the connection works. A long frame is closed with 1009."""
    first = real(data, daemon, key)
    async with asyncio.timeout(20), connect(daemon.url, compression=None) as socket:
        await socket.send(first)
        if len(first if isinstance(first, bytes) else first.encode()) > MAX_HELLO_BYTES:
            with pytest.raises(ConnectionClosed):
                await socket.recv()
            assert socket.close_code == CloseCode.MESSAGE_TOO_BIG
            return
        ack = json.loads(await socket.recv())
        assert ack["op"] == "hello_ack"
        if ack["ok"]:
            await socket.send('{"op":"ping","request_id":"still there"}')
            while json.loads(await socket.recv())["op"] != "pong":
                pass
            return
        assert ack["error"]["code"] in set(ErrorCode)
        with pytest.raises(ConnectionClosed):
            await socket.recv()
        assert socket.close_code in REFUSED_HELLO


@fuzz
@given(
    features=st.lists(st.sampled_from(FEATURES), unique=True),
    come_back=st.booleans(),
    one_by_one=st.booleans(),
    sent=st.lists(in_order.map(json.dumps), min_size=1, max_size=8) | st.lists(anything, min_size=1, max_size=8),
)
async def test_any_later_frames_are_answered(
    daemon: Any, key: str, features: list[str], come_back: bool, one_by_one: bool, sent: list[str | bytes]
) -> None:
    """The answers are frames of the protocol with documented errors, and none is an internal error."""
    resume = {"resume": {"key": key}} if come_back else {}
    async with asyncio.timeout(20), daemon.peer(features=features, **resume) as peer:
        for number, data in enumerate(sent, 1):
            await peer.socket.send(real(data, daemon, key))
            if one_by_one or number == len(sent):
                await peer.send(op="ping", request_id="still there")
                while (frame := await peer.receive()) != {"op": "pong", "request_id": "still there"}:
                    assert frame["op"] in ANSWERS
                    error = frame.get("error")
                    assert error is None or error["code"] in set(ErrorCode) - {ErrorCode.INTERNAL_ERROR}, error
