"""A client resumes its session with the resume key after a lost connection or a takeover, and loses no answers."""

import asyncio
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

RESUME = ["ack", "resume", "going_away"]


def back(peer: Any) -> dict[str, Any]:
    """The hello fields that resume a peer's session."""
    return {"features": RESUME, "resume": {"key": peer.ack["resume_key"]}}


def executed(daemon: Any) -> list[str]:
    """The words that ``sim_effect`` has written to its log."""
    log = Path(daemon.state / "sim_effect.log")
    return log.read_text().split() if log.exists() else []


async def drop(peer: Any) -> None:
    """Abort the connection."""
    peer.socket.transport.abort()
    await peer.socket.wait_closed()


async def test_the_ack_has_the_resume_key(make_peer: Any) -> None:
    """Clients with the feature get a key of 256 bits and its lifetime, others do not."""
    async with make_peer(features=["resume"]) as peer, make_peer() as plain:
        assert len(peer.ack["resume_key"]) >= 43
        assert (peer.ack["resumed"], peer.ack["durability"]) == (False, "disk")
        assert (peer.ack["limits"]["progress_window_s"], peer.ack["limits"]["result_ttl_s"]) == (120.0, 86400.0)
        assert "resume" in peer.ack["features"]
        assert "resume_key" not in plain.ack


async def test_a_resumed_client_gets_missed_answers(make_peer: Any) -> None:
    """It gets the answers that it missed, and those of calls that still run, under their original request ids."""
    async with make_peer(features=RESUME) as peer:
        await peer.send(op="call_tool", request_id=7, name="echo", arguments={"text": "missed", "delay_ms": 200})
        await peer.send(op="call_tool", request_id="7", name="echo", arguments={"text": "runs", "delay_ms": 2000})
        await peer.until("call_tool_ack", "7")
        await drop(peer)
    async with make_peer(features=["ack"]) as other:
        while (await other.status())["calls"] > 2:
            await asyncio.sleep(0.02)
    async with make_peer(**back(peer)) as resumed:
        assert resumed.ack["resumed"]
        assert resumed.ack["resume_key"] == peer.ack["resume_key"]
        frames: dict[Any, dict[str, Any]] = {}
        progress = []
        while len(frames) < 2:
            frame = await resumed.receive()
            if frame["op"] == "call_tool_res":
                frames[frame["request_id"]] = frame
            else:
                progress.append(frame["request_id"])
        assert frames[7]["outputs"][0]["text"] == "missed"
        assert frames[7]["metadata"]["replayed"] is True
        assert frames["7"]["outputs"][0]["text"] == "runs"
        assert "replayed" not in frames["7"]["metadata"]
        assert "7" in progress


async def test_a_resumed_session_keeps_its_label(make_peer: Any, daemon: Any) -> None:
    """A hello with only the key keeps the label and the client; a hello with a label replaces the old label."""
    client = {"name": "an-editor", "version": "7"}
    async with make_peer(session_id="first-name", client=client, features=RESUME) as peer:
        await drop(peer)
    async with make_peer(session_id=None, **back(peer)) as resumed:
        assert resumed.ack["session_id"] == "first-name"
        assert "session_id_generated" not in resumed.ack
        assert resumed.ack["notice"] == "session_id: missing, so the session keeps its label"
        await resumed.call("named", "sim_effect", text="named")
    with closing(sqlite3.connect(daemon.state / "toold.db")) as database:
        row = database.execute("SELECT session_label, client FROM call ORDER BY seq DESC LIMIT 1").fetchone()
    assert row == ("first-name", "an-editor 7")
    async with make_peer(session_id="other-name", **back(peer)) as renamed:
        assert renamed.ack["session_id"] == "other-name"
        assert "notice" not in renamed.ack


async def test_a_repeated_write_runs_once_across_a_break(make_peer: Any, daemon: Any) -> None:
    """The repeat attaches to the running call or gets the stored answer; the tool writes once."""
    call = {"request_id": "w", "name": "sim_effect", "arguments": {"text": "once", "delay_ms": 300}}
    async with make_peer(features=RESUME) as peer:
        await peer.send(op="call_tool", **call)
        await peer.until("call_tool_ack", "w")
        await drop(peer)
    async with make_peer(**back(peer)) as resumed:
        await resumed.send(op="call_tool", **call)
        assert (await resumed.until("call_tool_res", "w"))["outputs"][0]["text"] == "written: once"
        await resumed.send(op="call_tool", **call)
        repeat = await resumed.until("call_tool_res", "w")
        assert repeat["metadata"]["replayed"] is True
    assert executed(daemon).count("once") == 1


async def test_a_resume_takes_over_an_open_connection(make_peer: Any) -> None:
    """The old connection closes with 4004; running calls are answered once, on the new one."""
    async with make_peer(features=RESUME) as old:
        await old.send(op="call_tool", request_id="a", name="echo", arguments={"text": "x", "delay_ms": 500})
        await old.until("call_tool_ack", "a")
        async with make_peer(**back(old)) as new:
            assert new.ack["resumed"]
            assert (await new.until("call_tool_res", "a"))["outputs"][0]["text"] == "x"
            ops = []
            with suppress(ConnectionClosed):
                while True:
                    ops.append((await old.receive())["op"])
            assert old.socket.close_code == 4004
            assert "call_tool_res" not in ops


async def test_acknowledged_answers_are_not_redelivered(make_peer: Any) -> None:
    """The session remembers the id of an acknowledged write as expired, and forgets that of an acknowledged read."""
    async with make_peer(features=RESUME) as peer:
        for request_id, name in (("local", "echo"), ("write", "sim_effect"), ("kept", "echo")):
            await peer.call(request_id, name, text=f"f-{request_id}")
        await peer.send(op="acknowledge", request_ids=["local", "write"])
        await peer.send(op="ping")
        await peer.until("pong")
        await drop(peer)
    async with make_peer(**back(peer)) as resumed:
        await resumed.send(op="call_status", request_ids=["local", "write", "kept"])
        frames = [await resumed.receive(), await resumed.receive()]
        answers = [frame["request_id"] for frame in frames if frame["op"] == "call_tool_res"]
        (status,) = [frame["calls"] for frame in frames if frame["op"] == "call_status_res"]
        assert answers == ["kept"]
        assert status == {"local": "unknown", "write": "expired", "kept": "done"}


@pytest.mark.parametrize(
    "hello",
    [
        {"features": RESUME, "resume": {"key": "x" * 43}},
        {"features": RESUME, "resume": {"key": 5}},
        {"features": RESUME, "resume": "key"},
        {"features": ["ack"], "resume": {"key": "x" * 43}},
    ],
    ids=["unknown", "not a string", "not an object", "without the feature"],
)
async def test_a_failed_resume_is_reported(make_peer: Any, hello: dict[str, Any]) -> None:
    """The session is new, ``resumed`` is false, and the notice has the reason."""
    async with make_peer(**hello) as peer:
        assert peer.ack["resumed"] is False
        assert "resume:" in peer.ack["notice"]


async def test_sessions_with_the_same_label_are_isolated(make_peer: Any) -> None:
    """Neither gets the other's answers, and closing one does not affect the other."""
    async with make_peer(session_id="same", features=RESUME) as first, make_peer(session_id="same") as second:
        assert (await first.call("id", "echo", text="mine"))["outputs"][0]["text"] == "mine"
        assert (await second.call("id", "echo", text="other"))["outputs"][0]["text"] == "other"
        await drop(second)
        assert (await first.call("id2", "echo", text="still"))["outputs"][0]["text"] == "still"


async def test_a_plain_clients_reading_call_ends_with_its_connection(make_peer: Any) -> None:
    """A plain client cannot resume; with resume the call continues unless its caller disabled that."""
    async with make_peer() as watcher:
        async with make_peer() as plain, make_peer(features=RESUME) as peer:
            for item in (plain, peer):
                await item.send(op="call_tool", request_id="a", name="bad_hangs", arguments={"seconds": 60})
            await peer.send(
                op="call_tool", request_id="b", name="bad_hangs", arguments={"seconds": 60}, on_disconnect="cancel"
            )
            while (await watcher.status())["calls"] < 4:
                await asyncio.sleep(0.02)
            await drop(plain)
            await drop(peer)
        while (await watcher.status())["calls"] > 2:
            await asyncio.sleep(0.02)
        async with make_peer(**back(peer)) as resumed:
            assert (await resumed.until("call_tool_res", "b"))["error"]["code"] == "CANCELLED"
            await resumed.send(op="cancel", request_id="a")
            assert (await resumed.until("call_tool_res", "a"))["error"]["code"] == "CANCELLED"
