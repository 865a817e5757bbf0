"""The part of ``toold demo`` with a hosted agent: it asks for approval, writes, and survives a kill of the daemon."""

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from ..client import MCPWebSocketClient
from .demo_tour import TourStepError

AGENT: Final = "scribe"
AGENT_SETTINGS: Final = f"""
[agents.{AGENT}]
description = "Writes notes."
prompt = "Write the note that you are asked for, and then say that it is written."
tools = ["sim_effect"]
approve = ["sim_effect"]
"""
_NOTE: Final = "The lamp is for Ada."
_ANSWER: Final = "The note is written."
_THINKING_S: Final = 2.0
"""The duration of the simulated model's second turn, during which the daemon is killed."""
_SCRIPT: Final[list[dict[str, Any]]] = [
    {"calls": [{"name": "sim_effect", "arguments": {"text": _NOTE}}]},
    {"text": _ANSWER, "delay_s": _THINKING_S},
]
_PATIENCE_S: Final = 60.0
_POLL_S: Final = 0.05
_UNFINISHED: Final = {"waiting", "running", "ending"}


class DemoAgentRun:
    """One run of the agent, step by step. Each step returns the line to print.

    ``notes`` is the file to which the agent's tool appends a line. The steps raise ``TourStepError`` or an error of the
    client.
    """

    def __init__(self, notes: Path) -> None:
        self._notes = notes
        self._call_id = ""
        self._request: dict[str, Any] = {}

    async def begin(self, client: MCPWebSocketClient) -> str:
        """Begins the run, which pauses before the call that needs approval."""
        prompt = f"Write this note: {_NOTE} [[sim:script={json.dumps(_SCRIPT)}]]"
        answer = (await client.call(AGENT, {"prompt": prompt})).structured
        if not isinstance(answer, dict) or not answer.get("paused") or not answer.get("requests"):
            raise TourStepError(f"the run did not pause: {answer}")
        self._call_id, self._request = str(answer["call_id"]), answer["requests"][0]
        wanted = f"{self._request['tool']} {json.dumps(self._request['arguments'])}"
        return f"{AGENT} wants to call {wanted} and waits on the disk for an approval"

    async def approve(self, client: MCPWebSocketClient) -> str:
        """Approves the call, and waits until the model is asked for its next turn."""
        decision = {"id": self._request.get("id", "?"), "decision": "approve"}
        await client.call("agent_decide", {"call_id": self._call_id, "decisions": [decision]})
        await self._wait(client, lambda status: _progress(status).endswith("turn 2"), "at the second turn")
        return f"{self._written()}; the model is asked for its next turn"

    async def finish(self, client: MCPWebSocketClient) -> str:
        """Waits for the answer of the run, and checks that the call was not repeated."""
        await self._wait(client, lambda status: status["state"] == "done", "done")
        report = (await client.call("call_result", {"call_id": self._call_id})).structured
        result = report.get("result") if isinstance(report, dict) else None
        if not isinstance(result, dict) or result.get("answer") != _ANSWER:
            raise TourStepError(f"the run ended with {report}")
        return f'{AGENT} answered after {result["turns"]} turns: "{_ANSWER}"; {self._written()}'

    async def _wait(self, client: MCPWebSocketClient, reached: Callable[[dict[str, Any]], bool], expected: str) -> None:
        began = time.perf_counter()
        while True:
            status = (await client.call("call_status", {"call_id": self._call_id})).structured
            if not isinstance(status, dict) or "state" not in status:
                raise TourStepError(f"the status of the run is {status}")
            if reached(status):
                return
            if status["state"] not in _UNFINISHED or time.perf_counter() - began > _PATIENCE_S:
                raise TourStepError(f"the run is not {expected}: {status}")
            await asyncio.sleep(_POLL_S)

    def _written(self) -> str:
        """A text that the note was written exactly once.

        Raises:
            TourStepError: the note was written twice, or not at all.
        """
        lines = self._notes.read_text("utf-8").splitlines() if self._notes.exists() else []
        if lines != [_NOTE]:
            raise TourStepError(f"{self._notes.name} has {lines} instead of one note")
        return f"{self._notes.name} has the note once"


def _progress(status: dict[str, Any]) -> str:
    progress = status.get("progress")
    return str(progress["message"]) if isinstance(progress, dict) else ""
