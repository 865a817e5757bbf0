"""Tools that pause, in daemons that run on one real database, one after the other."""

import asyncio
import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any, cast

from toold.daemon.observability.call_recorder import CallRecorder
from toold.daemon.observability.metrics import Metrics
from toold.daemon.persistence.store_journal import StoreJournal
from toold.daemon.persistence.store_pauses import StorePauses
from toold.protocol.input_request import CallPausedError, InputRequest
from toold.protocol.tool_call import LOCAL, Principal, ToolResult
from toold.store import CallRow, Retention, open_sqlite_store
from toold.tools import CallInfo
from toold.tools.builtin.agent_decide import agent_decide
from toold.tools.builtin.own_calls import call_status, cancel_call
from toold.tools.orchestration.execute_batch import execute_batch
from toold.tools.orchestration.execute_pipeline import execute_pipeline

from .dispatch_harness import DispatchHarness
from .scripted_tools import make_tool

HOUR = 3600.0


class Office:
    """The tools of these tests: ``write`` counts its effects, and orchestration tools pause before they write."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.clerks = 0
        """How often a clerk has begun or gone on."""
        self.expires_s = HOUR
        self.tools = [
            make_tool("write", self.write, read_only=False),
            make_tool("clerk", self.clerk, read_only=False, orchestration=True),
            make_tool("boss", self.boss, read_only=False, orchestration=True),
            *(agent_decide, call_status, cancel_call, execute_pipeline, execute_batch),
        ]

    async def write(self, arguments: Any, context: Any) -> str:
        self.written.append(arguments.get("text"))
        return "written"

    async def clerk(self, arguments: Any, context: Any) -> Any:
        """Writes a draft, asks whether it may send, and sends."""
        self.clerks += 1
        if arguments.get("detach") and not context.detached:
            return await context.detach(changed={}, timeout_s=60)
        if arguments.get("resume"):
            await context.resume(arguments.get("resume"))
        await context.call("write", {"text": "draft"}, name="draft")
        decision = context.decision("send")
        if decision is None:
            requests = [InputRequest("send", "approve", "write", {"text": "mail"}, "write has effects")]
            if arguments.get("question"):
                requests.append(InputRequest("tone", "question", text="Which tone?"))
            raise CallPausedError(tuple(requests), time.time() + self.expires_s)
        tone = context.decision("tone")
        if decision.decision == "approve":
            await context.call("write", decision.arguments or {"text": "mail"}, name="send")
        return {"send": decision.decision, "why": decision.text, "tone": tone and tone.text}

    async def boss(self, arguments: Any, context: Any) -> Any:
        result = await context.call("clerk", {}, name="clerk")
        await context.call("write", {"text": "filed"}, name="file")
        return {"clerk": result.structured}


class Process:
    """One run of the daemon's dispatch on the database."""

    def __init__(
        self, database: Path, office: Office, number: int, retention: Retention, bounds: dict[str, Any]
    ) -> None:
        self.store = open_sqlite_store(
            database, content=json.dumps, retention=retention, key=bytes(32), expects_chain=number > 1
        )
        recorder = CallRecorder(self.store.audit, Metrics(is_tool=lambda _: True, gauges=cast("Any", None)))
        journal = StoreJournal(self.store, recorder)
        self.harness = DispatchHarness(
            office.tools,
            journal=cast("Any", journal),
            pauses=StorePauses(self.store, journal),
            epoch=f"{number:012x}",
            **bounds,
        )
        self._ids = 0
        self._expiring = asyncio.create_task(self.harness.router.paused.expire())

    async def call(self, tool: str, principal: Principal = LOCAL, **arguments: Any) -> ToolResult:
        self._ids += 1
        session = self.harness.session(principal=principal)
        result: ToolResult = await self.harness.call(session, self._ids, tool, arguments=arguments)
        return result

    async def value(self, tool: str, principal: Principal = LOCAL, **arguments: Any) -> Any:
        result = await self.call(tool, principal, **arguments)
        assert result.error is None, result.error
        return result.value

    async def pause(self, tool: str = "clerk", **arguments: Any) -> str:
        answer = await self.value(tool, **arguments)
        assert answer["paused"] is True
        return str(answer["call_id"])

    async def decide(self, call_id: str, *decisions: dict[str, Any], principal: Principal = LOCAL) -> ToolResult:
        return await self.call("agent_decide", principal, call_id=call_id, decisions=list(decisions))

    async def info(self, call_id: str, principal: Principal = LOCAL) -> CallInfo:
        info: CallInfo = await self.harness.router.lookup.look_up(principal, call_id)
        return info

    async def ended(self, call_id: str) -> CallInfo:
        async with asyncio.timeout(20):
            while (info := await self.info(call_id)).is_unfinished:
                await asyncio.sleep(0.005)
        return info

    async def end(self) -> None:
        """Stop as at a shutdown; running children may end."""
        self._expiring.cancel()
        await asyncio.gather(self._expiring, return_exceptions=True)
        await self.harness.router.close("restart", 5.0)
        await self.store.close()


class Daemon:
    """The processes of one database, one after the other."""

    def __init__(self, database: Path) -> None:
        self.office = Office()
        self._database = database
        self._number = 0
        self.process: Process | None = None

    async def start(self, *, later_s: float = 0.0, retention: Retention | None = None, **bounds: Any) -> Process:
        """End the present process, move the store's clock, and start the next one."""
        if self.process is not None:
            await self.process.end()
        if later_s:
            with closing(sqlite3.connect(self._database)) as connection, connection:
                connection.execute("UPDATE store_clock SET at = at + ?", (later_s,))
        self._number += 1
        self.process = Process(self._database, self.office, self._number, retention or Retention(), bounds)
        await self.process.harness.router.load_detached()
        await self.process.harness.router.resume_detached()
        return self.process

    async def audit(self) -> list[CallRow]:
        assert self.process is not None
        await self.process.store.flush()
        return await self.process.store.audit.recent(50)
