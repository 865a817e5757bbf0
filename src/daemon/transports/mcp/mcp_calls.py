"""``tools/call``: submits calls to the router and returns their answers."""

import asyncio
from typing import Final

from ....protocol import json_rpc
from ....protocol.json_pieces import LONG_BYTES
from ....protocol.json_rpc import JsonRpcId, MessageProblem, RpcRequest
from ....protocol.mcp.mcp_call import parse_call, request_error
from ....protocol.tool_call import ToolResult
from ...dispatch import Router, RunningCall, Session, prepare_call
from ...off_loop import off_loop
from ..http_io import wait_disconnected
from . import mcp_tasks
from .mcp_caller import McpCaller
from .mcp_exchange import ABSENT_PORT, McpExchange
from .mcp_tasks import CALL, McpTasks

TASK_AFTER_S: Final = 0.5
"""Faster calls are answered with their result even if the client accepts a task."""

_Address = tuple[str, str, JsonRpcId]


class McpCalls:
    """The calls of all clients. Each call has its own session, which ends with it."""

    def __init__(self, router: Router, tasks: McpTasks) -> None:
        self._router = router
        self._tasks = tasks
        # Running calls of clients with a label, to cancel them by JSON-RPC id.
        self._running: dict[_Address, Session] = {}

    def __repr__(self) -> str:
        return f"<McpCalls cancellable={len(self._running)}>"

    async def run(self, request: RpcRequest, caller: McpCaller) -> bytes | MessageProblem | None:
        """Runs a call and returns its answer; None if the client disconnected."""
        call = parse_call(request, CALL, caller.size, caller.traceparent)
        if isinstance(call, MessageProblem):
            return call
        session = self._router.sessions.open(
            caller.label,
            caller.principal,
            caller.client,
            toolset=caller.toolset,
            transport="mcp",
            streaming=False,
            absent_port=ABSENT_PORT,
            usable=caller.access.toolsets,
        )
        session.result_text = caller.result_text
        exchange = McpExchange(request.id, caller.envelope)
        caller.unsent.append(exchange)
        address = (caller.principal.name, caller.label, request.id) if caller.labelled else None
        self._router.connect(session, exchange)
        try:
            prepared = (
                await off_loop(prepare_call, self._router.catalog, session, call) if caller.size > LONG_BYTES else call
            )
            running = self._router.submit(session, prepared, exchange)
            if not isinstance(running, RunningCall):
                return _refusal(running, exchange)
            if address is not None:
                self._running[address] = session
            if caller.envelope.revision.tasks == "requested" and isinstance(request.params.get("task"), dict):
                return await self._as_task(running, request, caller)
            # Most calls of local tools are done in the next loop iteration: no need to watch their clients.
            await asyncio.sleep(0)
            return exchange.answer or await self._follow(running, exchange, request, caller)
        finally:
            if address is not None and self._running.get(address) is session:  # a client may reuse an id
                del self._running[address]
            self._router.disconnect(session, exchange)

    def cancel(self, request_id: object, caller_label: str, principal: str) -> None:
        """Cancels a client's running call by its JSON-RPC id."""
        if isinstance(request_id, str | int):
            session = self._running.get((principal, caller_label, request_id))
            if session is not None:
                self._tasks.cancel(session)

    async def _follow(
        self, running: RunningCall, exchange: McpExchange, request: RpcRequest, caller: McpCaller
    ) -> bytes | None:
        """Forwards progress until the call is answered or becomes a task."""
        watch = asyncio.ensure_future(wait_disconnected(caller.receive))
        watch.add_done_callback(exchange.set_disconnected)
        timer = None
        if caller.envelope.tasks and caller.envelope.progress_token is None:  # tasks have no progress
            timer = asyncio.get_running_loop().call_later(TASK_AFTER_S, exchange.set_overdue)
        try:
            while exchange.answer is None:
                await exchange.changed.wait()
                exchange.changed.clear()
                if exchange.disconnected and exchange.answer is None:
                    if caller.envelope.revision.stateless:  # there, disconnecting means cancelling
                        self._tasks.cancel(running.session)
                    return None
                if exchange.overdue and not running.answered:
                    return await self._as_task(running, request, caller)
                reports = exchange.reports()
                if reports and caller.stream is not None and exchange.answer is None:
                    await caller.stream.write(reports)
            return exchange.answer
        finally:
            watch.cancel()
            if timer is not None:
                timer.cancel()

    async def _as_task(self, running: RunningCall, request: RpcRequest, caller: McpCaller) -> bytes:
        task = await self._tasks.create(running.session, running)
        return json_rpc.answer(request.id, mcp_tasks.create_task_result(task, caller.envelope.revision))


def _refusal(result: ToolResult | None, exchange: McpExchange) -> bytes | MessageProblem | None:
    """Returns the answer to a call that did not start."""
    if result is None:
        return None
    fault = request_error(result.error)
    if fault is not None:
        return fault
    exchange.refuse(result)
    return exchange.answer
