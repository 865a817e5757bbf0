"""WebSocket connections: frames per feature, slow readers, disconnects, and changes of the tools."""

import asyncio
from typing import Any

import pytest
from tests.waiting import until
from toold.daemon.config.settings_mapping import tool_catalog
from toold.protocol.error_codes import ServiceUnavailableError
from toold.tools import ToolRegistry

CLOG = 16_000_000
"""Bytes of an answer that fills every buffer between the daemon and a client that does not read."""


async def clog(arguments: Any, context: Any) -> str:
    """Answers with more than the buffers hold."""
    return "x" * CLOG


async def talk(arguments: Any, context: Any) -> str:
    """Reports progress and streams a thousand times, one event loop iteration apart."""
    for number in range(1000):
        context.progress(f"step {number}", number, 1000)
        context.stream(f"{number} ")
        await asyncio.sleep(0)
    return "".join(f"{number} " for number in range(1000))


async def test_a_slow_reader_gets_less_progress_and_all_text(serve: Any, join: Any, make_tool: Any) -> None:
    """Progress is merged and chunks are joined, numbered without gaps; the answer comes last and complete."""
    daemon = await serve(make_tool("clog", clog), make_tool("talk", talk))
    peer = await join(daemon, features=["stream"])
    peer.socket.transport.pause_reading()
    await peer.send("call_tool", request_id="clog", name="clog")
    async with asyncio.timeout(20):
        while not daemon.router.unread.total:  # until its answer is being sent
            await asyncio.sleep(0.01)
    await peer.send("call_tool", request_id="talk", name="talk")
    await peer.send("call_tool", request_id="end", name="talk")
    async with asyncio.timeout(20):
        while daemon.router.calls or daemon.router.accepted < 2:
            await asyncio.sleep(0.01)
    peer.socket.transport.resume_reading()
    frames = await peer.until_answered("end")
    for request_id in ("talk", "end"):
        *reports, answer = [frame for frame in frames if frame["request_id"] == request_id]
        assert answer["op"] == "call_tool_res"
        progress = [frame for frame in reports if frame["op"] == "progress"]
        chunks = [frame for frame in reports if frame["op"] == "stream_chunk"]
        assert len(progress) + len(chunks) < 20
        assert [frame["seq"] for frame in chunks] == list(range(1, len(chunks) + 1))
        assert "".join(frame["text"] for frame in chunks) == answer["outputs"][0]["text"]
        lengths = [len(frame["text"]) for frame in chunks]
        assert [frame["offset"] for frame in chunks] == [sum(lengths[:number]) for number in range(len(lengths))]


async def test_chunks_after_a_resume_say_what_was_missed(serve: Any, join: Any, make_tool: Any) -> None:
    """The first chunk on the new connection has the offset of its text, in characters of the whole answer."""
    go_on = asyncio.Event()

    async def dictate(arguments: Any, context: Any) -> str:
        context.stream("hé👩 ")
        await go_on.wait()
        go_on.clear()
        context.stream("missed ")
        heard.set()
        await go_on.wait()
        context.stream("the rest")
        return "hé👩 missed the rest"

    heard = asyncio.Event()
    daemon = await serve(make_tool("dictate", dictate))
    peer = await join(daemon, features=["stream", "resume"])
    await peer.send("call_tool", request_id="id", name="dictate")
    while (first := await peer.receive())["op"] != "stream_chunk":
        pass
    assert (first["text"], first["offset"]) == ("hé👩 ", 0)
    await peer.socket.close()
    await until(lambda: not daemon.websocket.connections)
    go_on.set()
    await heard.wait()
    repeat = await join(daemon, features=["stream", "resume"], resume={"key": peer.ack["resume_key"]})
    go_on.set()
    frames = await repeat.until_answered("id")
    (rest,) = [frame for frame in frames if frame["op"] == "stream_chunk"]
    assert (rest["text"], rest["offset"]) == ("the rest", len("hé👩 missed "))
    assert frames[-1]["outputs"][0]["text"] == "hé👩 missed the rest"


async def test_a_fast_reader_gets_all_progress(serve: Any, join: Any, make_tool: Any) -> None:
    """Nothing is merged, and seq counts from 1."""

    async def slowly(arguments: Any, context: Any) -> str:
        for number in range(3):
            context.progress(f"step {number}", number, 3)
            while not heard.is_set():
                await asyncio.sleep(0.001)
            heard.clear()
        return "done"

    heard = asyncio.Event()
    peer = await join(await serve(make_tool("slowly", slowly)), features=["ack"])
    await peer.send("call_tool", request_id=1, name="slowly")
    assert (await peer.receive())["op"] == "call_tool_ack"
    for number in range(3):
        frame = await peer.receive()
        assert (frame["op"], frame["seq"], frame["message"]) == ("progress", number + 1, f"step {number}")
        assert (frame["done"], frame["total"]) == (number, 3)
        heard.set()
    assert (await peer.receive())["op"] == "call_tool_res"


@pytest.mark.parametrize(
    ("features", "ops"),
    [
        ([], {"call_tool_res"}),
        (["ack"], {"call_tool_ack", "progress", "call_tool_res"}),
        (["stream"], {"progress", "stream_chunk", "call_tool_res"}),
        (["ack", "stream"], {"call_tool_ack", "progress", "stream_chunk", "call_tool_res"}),
    ],
)
async def test_frames_depend_on_features(
    serve: Any, join: Any, make_tool: Any, features: list[str], ops: set[str]
) -> None:
    """A plain client gets only the answer, between heartbeats; others get the frames of their features."""
    peer = await join(await serve(make_tool("talk", talk)), features=features)
    await peer.send("call_tool", request_id=1, name="talk")
    assert {frame["op"] for frame in await peer.until_answered(1)} == ops


async def test_the_older_id_is_echoed_in_every_frame(serve: Any, join: Any, make_tool: Any) -> None:
    """A client that sends ``id`` finds it in ack, progress, chunks and answer, next to request_id."""
    peer = await join(await serve(make_tool("talk", talk)), features=["ack", "stream"])
    await peer.send("tool_call", id="old", tool="talk")
    assert {frame["id"] for frame in await peer.until_answered("old")} == {"old"}
    await peer.send("call_tool", request_id="new", name="talk")
    assert not any("id" in frame for frame in await peer.until_answered("new"))


@pytest.mark.parametrize(
    ("read_only", "on_disconnect", "ends"),
    [
        (True, None, True),
        (True, "keep", False),
        (True, "cancel", True),
        (False, None, False),
        (False, "keep", False),
        (False, "cancel", True),
    ],
)
async def test_disconnects_cancel_read_only_calls(
    serve: Any, join: Any, make_tool: Any, read_only: bool, on_disconnect: str | None, ends: bool
) -> None:
    """By default; calls that may write continue."""
    proceed, outcomes = asyncio.Event(), asyncio.Queue[str]()

    async def wait(arguments: Any, context: Any) -> str:
        context.progress("waiting")
        try:
            await proceed.wait()
        except asyncio.CancelledError:
            outcomes.put_nowait("cancelled")
            raise
        outcomes.put_nowait("finished")
        return "done"

    daemon = await serve(make_tool("wait", wait, read_only=read_only))
    peer = await join(daemon, features=["ack"])
    await peer.send("call_tool", request_id=1, name="wait", on_disconnect=on_disconnect)
    while (await peer.receive())["op"] != "progress":
        pass
    await peer.socket.close()
    async with asyncio.timeout(20):
        while daemon.websocket.connections:
            await asyncio.sleep(0.001)
        proceed.set()
        assert await outcomes.get() == ("cancelled" if ends else "finished")
        while daemon.router.accepted:
            await asyncio.sleep(0.001)
    assert daemon.router.permits.in_use == 0


async def test_an_invalid_chunk_does_not_affect_the_answer(serve: Any, join: Any, make_tool: Any) -> None:
    """A chunk may end within a surrogate pair, which is not valid Unicode; the call continues."""

    async def odd(arguments: Any, context: Any) -> str:
        context.progress("odd \ud83d")
        context.stream("odd \ud83d")
        await asyncio.sleep(0.01)
        context.stream(" and \ude00")
        return "done"

    peer = await join(await serve(make_tool("odd", odd)), features=["ack", "stream"])
    await peer.send("call_tool", request_id=1, name="odd")
    *_, answer = await peer.until_answered(1)
    assert answer["outputs"][0]["text"] == "done"


async def test_a_superseded_connection_is_ignored(serve: Any, join: Any, make_tool: Any) -> None:
    """Its further frames reach no tool: the answers would have no reader."""
    heard: list[str] = []

    async def note(arguments: Any, context: Any) -> str:
        heard.append(arguments.who)
        return "noted"

    daemon = await serve(make_tool("note", note))
    old = await join(daemon, features=["resume"])
    (connection,) = daemon.websocket._connections
    connection.stop_reading()
    await old.send("call_tool", request_id=1, name="note", arguments={"who": "old"})
    await (await old.socket.ping())  # so that the call before it was read
    new = await join(daemon)
    await new.send("call_tool", request_id=1, name="note", arguments={"who": "new"})
    await new.until_answered(1)
    assert heard == ["new"]


# --- changes of the tools --------------------------------------------------------------------------------------------


async def say(arguments: Any, context: Any) -> str:
    """Returns a constant text."""
    return "said"


async def names(peer: Any) -> tuple[list[str], str]:
    """Returns the result of ``list_tools`` and its revision."""
    await peer.send("list_tools", request_id="list")
    listed = await peer.receive()
    assert listed["op"] == "list_tools_res"
    return [tool["name"] for tool in listed["tools"]], listed["rev"]


async def test_a_session_lists_the_tools_of_its_toolset(serve: Any, join: Any, make_tool: Any) -> None:
    """The revision is that of its listing."""
    daemon = await serve(make_tool("chat", say), make_tool("other", say))
    lean, whole = await join(daemon, toolset="lean"), await join(daemon)
    assert (await names(lean))[0] == ["chat"]
    assert (await names(whole))[0] == ["chat", "other"]
    assert (await names(lean))[1] != (await names(whole))[1]


async def test_replacing_the_tools_notifies_affected_clients(serve: Any, join: Any, make_tool: Any) -> None:
    """The tools are replaced at once, on open connections. Toolsets with an unchanged listing and clients without
    the feature get no notification.
    """
    chat, old, new = make_tool("chat", say), make_tool("old", say), make_tool("new", say)
    daemon = await serve(chat, old)
    features = ["tools_changed", "ack"]
    whole, lean = await join(daemon, features=features), await join(daemon, features=features, toolset="lean")
    plain = await join(daemon)
    daemon.replace_catalog(tool_catalog(daemon.settings, ToolRegistry([chat, new])))
    changed = await whole.receive()
    assert (changed["op"], await names(whole)) == ("tools_changed", (["chat", "new"], changed["rev"]))
    await whole.send("call_tool", request_id=1, name="new")
    assert (await whole.until_answered(1))[-1]["outputs"][0]["text"] == "said"
    await whole.send("call_tool", request_id=2, name="old")
    assert (await whole.until_answered(2))[-1]["error"]["code"] == "TOOL_NOT_FOUND"
    for untold in (lean, plain):
        await untold.send("ping")
        assert (await untold.receive())["op"] == "pong"


async def test_only_the_last_of_several_changes_is_sent(serve: Any, join: Any, make_tool: Any) -> None:
    """However often the tools change before the frame can be sent."""
    daemon = await serve(make_tool("a", say))
    peer = await join(daemon, features=["tools_changed"])
    for name in "bcde":
        daemon.replace_catalog(tool_catalog(daemon.settings, ToolRegistry([make_tool(name, say)])))
    changed = await peer.receive()
    assert (changed["op"], await names(peer)) == ("tools_changed", (["e"], changed["rev"]))


async def test_a_running_call_keeps_its_tool(serve: Any, join: Any, make_tool: Any) -> None:
    """A call accepted before the change is answered after it."""
    entered, go = asyncio.Event(), asyncio.Event()

    async def wait(arguments: Any, context: Any) -> str:
        entered.set()
        await go.wait()
        return "done"

    daemon = await serve(make_tool("wait", wait))
    peer = await join(daemon)
    await peer.send("call_tool", request_id=1, name="wait")
    await entered.wait()
    daemon.replace_catalog(tool_catalog(daemon.settings, ToolRegistry([])))
    go.set()
    assert (await peer.until_answered(1))[-1]["outputs"][0]["text"] == "done"


async def test_calls_that_the_disk_cannot_report_are_not_unknown(
    serve: Any, join: Any, make_tool: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``unknown`` would let a call of a session that exceeds memory run twice. Once the disk responds, requests
    succeed.
    """
    monkeypatch.setattr("toold.protocol.session_calls.REMEMBERED_IDS", 1)

    async def write(arguments: Any, context: Any) -> str:
        return "written"

    daemon = await serve(make_tool("write", write, read_only=False))
    peer = await join(daemon, features=["resume"])
    for request_id in (1, 2):
        await peer.send("call_tool", request_id=request_id, name="write")
        await peer.until_answered(request_id)
    await peer.send("call_status", request_ids=[1, 2, 3])
    assert (await peer.receive())["calls"] == {"1": "done", "2": "done", "3": "unknown"}

    async def refuse(*_: object) -> None:
        raise ServiceUnavailableError("The disk refuses.")

    monkeypatch.setattr("toold.daemon.persistence.store_journal.StoreJournal.call_states", refuse)
    await peer.send("call_status", request_ids=[1])
    await peer.send("cancel", request_id=1)
    await peer.send("call_status", request_ids=[2])
    frames = [await peer.receive() for _ in range(3)]
    assert [frame["op"] for frame in frames] == ["error", "error", "call_status_res"]
    assert (frames[1]["request_id"], frames[1]["error"]["code"]) == (1, "SERVICE_UNAVAILABLE")


async def test_a_stored_answer_waits_until_unread_ones_leave_room(serve: Any, make_tool: Any, join: Any) -> None:
    """While another session of the principal has unread answers up to its limit, a redelivery waits."""

    async def large(arguments: Any, context: Any) -> str:
        return "x" * 15_000_000

    daemon = await serve(make_tool("large", large), TOOLD_MAX_UNREAD_BYTES_PER_PRINCIPAL="20000000")
    first = await join(daemon, features=["resume"])
    await first.send("call_tool", request_id=1, name="large")
    await first.until_answered(1)
    resume = {"key": first.ack["resume_key"]}
    await first.socket.close()
    deaf = await join(daemon)
    deaf.socket.transport.pause_reading()
    await deaf.send("call_tool", request_id=1, name="large")
    async with asyncio.timeout(20):
        while not daemon.router.unread.total:
            await asyncio.sleep(0.001)
    held = daemon.router.unread.total
    back = await join(daemon, features=["resume"], resume=resume)
    await back.send("ping")
    assert (await back.receive())["op"] == "pong"
    assert daemon.router.unread.total == held
    deaf.socket.transport.resume_reading()
    assert (await back.receive())["op"] == "call_tool_res"
    async with asyncio.timeout(20):
        while daemon.router.unread.total:
            await asyncio.sleep(0.001)
