"""``tools/call``: onto the one road of every call, and back."""

import asyncio
from typing import Final

from ....protocol.calls import ToolResult
from ....protocol.mcp import messages
from ....protocol.mcp.calls import fault_of_request, read_call
from ....protocol.mcp.messages import JsonRpcId, Problem, Request
from ...dispatch import Router, RunningCall, Session
from . import tasks
from .caller import Caller
from .exchange import AWAY, Exchange
from .http_io import hung_up
from .tasks import CALL, Tasks

TASK_AFTER_S: Final = 0.5
"""A call that is done by then is answered with its result, also where its client takes a task."""

_Address = tuple[str, str, JsonRpcId]


class Calls:
    """The calls of all clients. Each has a session of its own, which it is alone in and which ends with it."""

    def __init__(self, router: Router, tasks: Tasks) -> None:
        self._router = router
        self._tasks = tasks
        # Running calls of clients with a label, for those that cancel by the JSON-RPC id.
        self._running: dict[_Address, Session] = {}

    def __repr__(self) -> str:
        return f"<Calls cancellable={len(self._running)}>"

    async def run(self, request: Request, caller: Caller) -> bytes | Problem | None:
        """The message that answers the call; None where its client has hung up and hears nothing."""
        call = read_call(request, CALL, caller.size)
        if isinstance(call, Problem):
            return call
        session = self._router.sessions.open(
            caller.label,
            caller.principal,
            caller.client,
            toolset=caller.toolset,
            transport="mcp",
            streaming=False,
            away=AWAY,
            usable=caller.access.toolsets,
        )
        exchange = Exchange(request.id, caller.envelope)
        address = (caller.principal.name, caller.label, request.id) if caller.labelled else None
        self._router.attach(session, exchange)
        try:
            running = self._router.submit(session, call, exchange)
            if not isinstance(running, RunningCall):
                return _refusal(running, exchange)
            if address is not None:
                self._running[address] = session
            if caller.envelope.revision.tasks == "asked" and isinstance(request.params.get("task"), dict):
                return await self._as_task(running, request, caller)
            # Most calls of local tools are done by the next turn of the loop: nobody has to watch their clients.
            await asyncio.sleep(0)
            return exchange.answer or await self._follow(running, exchange, request, caller)
        finally:
            if address is not None and self._running.get(address) is session:  # a client may have used an id twice
                del self._running[address]
            self._router.leave(session, exchange)

    def cancel(self, request_id: object, caller_label: str, principal: str) -> None:
        """End a client's running call, by its JSON-RPC id."""
        if isinstance(request_id, str | int):
            session = self._running.get((principal, caller_label, request_id))
            if session is not None:
                self._tasks.cancel(session)

    async def _follow(self, running: RunningCall, exchange: Exchange, request: Request, caller: Caller) -> bytes | None:
        """Pass on what the call reports, until it has its answer or has become a task."""
        watch = asyncio.ensure_future(hung_up(caller.receive))
        watch.add_done_callback(exchange.hang_up)
        timer = None
        if caller.envelope.tasks and caller.envelope.progress_token is None:  # a task has no progress to tell
            timer = asyncio.get_running_loop().call_later(TASK_AFTER_S, exchange.outlast)
        try:
            while exchange.answer is None:
                await exchange.news.wait()
                exchange.news.clear()
                if exchange.gone and exchange.answer is None:
                    if caller.envelope.revision.stateless:  # there, who hangs up has cancelled
                        self._tasks.cancel(running.session)
                    return None
                if exchange.outlasted and not running.answered:
                    return await self._as_task(running, request, caller)
                reports = exchange.reports()
                if reports and caller.stream is not None and exchange.answer is None:
                    await caller.stream.write(reports)
            return exchange.answer
        finally:
            watch.cancel()
            if timer is not None:
                timer.cancel()

    async def _as_task(self, running: RunningCall, request: Request, caller: Caller) -> bytes:
        task = await self._tasks.make(running.session, running)
        return messages.answer(request.id, tasks.created(task, caller.envelope.revision))


def _refusal(result: ToolResult | None, exchange: Exchange) -> bytes | Problem | None:
    """What a call gets that did not start."""
    if result is None:
        return None
    fault = fault_of_request(result.error)
    if fault is not None:
        return fault
    exchange.refuse(result)
    return exchange.answer
