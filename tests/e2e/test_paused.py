"""A hosted agent that waits for a person, on a running daemon that is killed meanwhile."""

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any
from uuid import uuid4

AGENT = """
description = "Writes after approval."
prompt = "Write."
tools = ["sim_effect"]
approve = ["sim_effect"]
"""


def effects(daemon: Any) -> list[str]:
    """The written lines."""
    log: Path = daemon.state / "sim_effect.log"
    return log.read_text().splitlines() if log.exists() else []


async def test_an_approved_agent_goes_on_after_two_kills(start_daemon: Any, tmp_path: Path) -> None:
    """It is killed while it is paused and again after the decision; the approved writes happen once, as edited."""
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "scribe.toml").write_text(AGENT)
    script = [
        {"calls": [{"name": "sim_effect", "arguments": {"text": name, "delay_ms": 0}} for name in ("a", "b")]},
        {"text": "Written."},
    ]
    first = start_daemon(TOOLD_AGENT_DIR=str(tmp_path / "agents"))
    async with first.peer() as peer:
        answer = await peer.call("1", "scribe", prompt=f"Write. [[sim:script={json.dumps(script)}]]")
        assert answer["error"] is None, answer
        paused = answer["structured"]
    assert (paused["paused"], [request["tool"] for request in paused["requests"]]) == (True, ["sim_effect"] * 2)
    os.kill(first.process.pid, signal.SIGKILL)
    first.process.wait()
    assert effects(first) == []

    second = start_daemon(TOOLD_AGENT_DIR=str(tmp_path / "agents"))
    kept, edited = [request["id"] for request in paused["requests"]]
    decisions = [
        {"id": kept, "decision": "approve"},
        {"id": edited, "decision": "approve", "arguments": {"text": "edited"}},
    ]
    async with second.peer() as peer:
        status = await peer.call(uuid4().hex, "call_status", call_id=paused["call_id"])
        assert (status["structured"]["state"], status["structured"]["requests"]) == ("paused", paused["requests"])
        decided = await peer.call(uuid4().hex, "agent_decide", call_id=paused["call_id"], decisions=decisions)
        assert decided["error"] is None, decided
    os.kill(second.process.pid, signal.SIGKILL)
    second.process.wait()

    third = start_daemon(TOOLD_AGENT_DIR=str(tmp_path / "agents"))
    async with third.peer() as peer, asyncio.timeout(60):
        while (await peer.call(uuid4().hex, "call_status", call_id=paused["call_id"]))["structured"]["state"] in {
            "waiting", "running", "ending",
        }:  # fmt: skip
            await asyncio.sleep(0.05)
        result = (await peer.call(uuid4().hex, "call_result", call_id=paused["call_id"]))["structured"]
    assert result["state"] == "done", result
    written = sorted(effects(third))
    # A write that the second kill interrupted is unknown, and not repeated.
    assert len(set(written)) == len(written)
    assert set(written) <= {"a", "edited"}
    assert result["result"]["answer"] == "Written."
    assert third.stop() == 0
