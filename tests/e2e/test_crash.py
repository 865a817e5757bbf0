"""After a ``kill -9`` and a restart stored results exist, interrupted calls are reported, and nothing runs again."""

from pathlib import Path
from typing import Any

RESUME = ["ack", "resume"]


def back(peer: Any) -> dict[str, Any]:
    """The hello fields that resume a peer's session."""
    return {"features": RESUME, "resume": {"key": peer.ack["resume_key"]}}


def executed(daemon: Any) -> list[str]:
    """The lines of ``sim_effect``."""
    return Path(daemon.state / "sim_effect.log").read_text().split()


def kill(daemon: Any) -> None:
    """Kill the process, as a crash would."""
    daemon.process.kill()
    daemon.process.wait()


async def test_a_crash_loses_no_answer_and_runs_nothing_again(start_daemon: Any, command: Any) -> None:
    """Answers are replayed, interrupted calls are OUTCOME_UNKNOWN, local calls are unknown; one row each."""
    daemon = start_daemon()
    calls = {
        "done": {"name": "sim_effect", "arguments": {"text": "done"}},
        "cut": {"name": "sim_effect", "arguments": {"text": "cut", "delay_ms": 60_000}},
        "local": {"name": "echo", "arguments": {"text": "local", "delay_ms": 60_000}},
    }
    async with daemon.peer(features=RESUME) as peer:
        await peer.send(op="call_tool", request_id="done", **calls["done"])
        await peer.until("call_tool_res", "done")
        for request_id in ("cut", "local"):
            await peer.send(op="call_tool", request_id=request_id, **calls[request_id])
            await peer.until("progress", request_id)
        assert executed(daemon) == ["done", "cut"]
        kill(daemon)

    daemon = start_daemon()
    async with daemon.peer(**back(peer)) as resumed:
        assert resumed.ack["resumed"]
        assert resumed.ack["server"]["epoch"] != peer.ack["server"]["epoch"]
        done = await resumed.until("call_tool_res", "done")
        cut = await resumed.until("call_tool_res", "cut")
        assert done["outputs"][0]["text"] == "written: done"
        assert done["metadata"]["replayed"] is True
        assert (cut["error"]["code"], cut["error"]["executed"]) == ("OUTCOME_UNKNOWN", "maybe")
        assert cut["error"]["retryable"] is False
        await resumed.send(op="call_status", request_ids=["done", "cut", "local", "never"])
        status = (await resumed.until("call_status_res"))["calls"]
        assert status == {"done": "done", "cut": "interrupted", "local": "unknown", "never": "unknown"}
        await resumed.send(op="call_tool", request_id="cut", **calls["cut"])
        assert (await resumed.until("call_tool_res", "cut"))["error"]["code"] == "OUTCOME_UNKNOWN"
        changed = {"name": "sim_effect", "arguments": {"text": "other"}}
        await resumed.send(op="call_tool", request_id="done", **changed)
        assert (await resumed.until("call_tool_res", "done"))["error"]["code"] == "REQUEST_ID_CONFLICT"
    assert executed(daemon) == ["done", "cut"]
    assert daemon.stop() == 0
    rows = command("audit", "tail", "--json", state=daemon.state).stdout
    assert rows.count('"outcome":"OUTCOME_UNKNOWN"') == 1


async def test_the_answer_of_a_call_that_never_started_survives_a_crash(start_daemon: Any) -> None:
    """A call that timed out while it waited never runs under its id: a resend gets the same answer."""
    daemon = start_daemon(TOOLD_MAX_RUNNING_PER_SESSION="1")
    late = {"op": "call_tool", "request_id": "late", "name": "sim_effect", "arguments": {"text": "late"}}
    async with daemon.peer(features=RESUME) as peer:
        await peer.send(
            op="call_tool", request_id="slow", name="sim_effect", arguments={"text": "1", "delay_ms": 60_000}
        )
        await peer.until("progress", "slow")
        await peer.send(**late, timeout_ms=50)
        first = (await peer.until("call_tool_res", "late"))["error"]
        assert (first["code"], first["executed"], first["retryable"]) == ("TIMEOUT", "no", True)
    for attempt in range(2):
        async with daemon.peer(**back(peer)) as resumed:
            assert (await resumed.until("call_tool_res", "late"))["error"] == first  # redelivered
            await resumed.send(op="cancel", request_id="slow")  # its permit is free
            await resumed.until("cancel_res" if attempt else "call_tool_res", "slow")
            await resumed.send(**late)
            assert (await resumed.until("call_tool_res", "late"))["error"] == first
            await resumed.send(**late | {"arguments": {"text": "other"}})
            assert (await resumed.until("call_tool_res", "late"))["error"]["code"] == "REQUEST_ID_CONFLICT"
            kill(daemon)
        daemon = start_daemon(TOOLD_MAX_RUNNING_PER_SESSION="1")
    async with daemon.peer(**back(peer)) as resumed:
        await resumed.send(op="acknowledge", request_ids=["late"])
        await resumed.send(**late)
        expired = (await resumed.until("call_tool_res", "late"))["error"]
        while expired == first:  # the redelivered answer may come first
            expired = (await resumed.until("call_tool_res", "late"))["error"]
        assert (expired["code"], expired["executed"]) == ("RESULT_EXPIRED", "no")
    assert executed(daemon) == ["1"]


async def test_a_resume_key_is_valid_immediately(start_daemon: Any) -> None:
    """A crash right after the hello does not lose the session."""
    daemon = start_daemon()
    async with daemon.peer(features=RESUME) as peer:
        kill(daemon)
    daemon = start_daemon()
    async with daemon.peer(**back(peer)) as resumed:
        assert resumed.ack["resumed"]


async def test_a_second_crash_changes_nothing(start_daemon: Any) -> None:
    """Sessions resume after every kill; acknowledged ids stay known."""
    daemon = start_daemon()
    async with daemon.peer(features=RESUME) as peer:
        for request_id in ("a", "b"):
            await peer.call(request_id, "sim_effect", text=request_id)
        await peer.send(op="acknowledge", request_ids=["a"])
        await peer.call("c", "sim_effect", text="c")  # after the acknowledgement in the journal
        kill(daemon)
    for _ in range(2):
        daemon = start_daemon()
        async with daemon.peer(**back(peer)) as resumed:
            answers = [(await resumed.until("call_tool_res"))["request_id"] for _ in range(2)]
            assert answers == ["b", "c"]
            await resumed.send(op="call_tool", request_id="a", name="sim_effect", arguments={"text": "a"})
            assert (await resumed.until("call_tool_res", "a"))["error"]["code"] == "RESULT_EXPIRED"
            kill(daemon)
    assert executed(daemon) == ["a", "b", "c"]


async def test_a_drain_stores_the_answers_of_local_calls_too(start_daemon: Any) -> None:
    """A clean restart keeps all accepted calls, including local ones."""
    daemon = start_daemon(TOOLD_GRACE_PERIOD_S="5")
    async with daemon.peer(features=RESUME) as peer:
        await peer.send(op="call_tool", request_id="local", name="echo", arguments={"text": "kept", "delay_ms": 500})
        await peer.until("call_tool_ack", "local")
        peer.socket.transport.abort()
        assert daemon.stop() == 0
    daemon = start_daemon()
    async with daemon.peer(**back(peer)) as resumed:
        answer = await resumed.until("call_tool_res", "local")
        assert answer["outputs"][0]["text"] == "kept"
        assert answer["metadata"]["replayed"] is True
