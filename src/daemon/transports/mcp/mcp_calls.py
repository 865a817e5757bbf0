"""``tools/call``: submits calls to the router and returns their answers."""

import asyncio
from secrets import token_urlsafe
from typing import Final

from ....protocol import json_rpc
from ....protocol.json_rpc import INVALID_PARAMS, INVALID_REQUEST, JsonRpcId, MessageProblem, RpcReply, RpcRequest
from ....protocol.mcp.input_rounds import InputRound, ParkedCall, ParkedCalls, asked, input_required_result, read_round
from ....protocol.mcp.mcp_call import parse_call, parse_method_call, request_error
from ....protocol.mcp.mcp_revision import McpRevision
from ....protocol.questions.question_answer import fits
from ....protocol.tool_call import Principal, ToolCall, ToolResult
from ....tools import Tool
from ...dispatch import Router, RunningCall, Session, prepared
from ..http_io import wait_disconnected
from . import mcp_tasks
from .mcp_caller import McpCaller
from .mcp_exchange import ABSENT_PORT, CatalogExchange, McpExchange
from .mcp_tasks import CALL, McpTasks
from .parked_port import ParkedPort

TASK_AFTER_S: Final = 0.5
"""Faster calls are answered with their result even if the client accepts a task."""

_STATE_BYTES: Final = 24
"""Random bytes in the state of a parked call, so that it cannot be guessed."""

_Address = tuple[str, str, JsonRpcId]


class McpCalls:
    """The calls of all clients. Each call has a separate session, which ends with the call."""

    def __init__(self, router: Router, tasks: McpTasks) -> None:
        self._router = router
        self._tasks = tasks
        # Running calls of clients with a label, to cancel them by JSON-RPC id.
        self._running: dict[_Address, tuple[Session, McpExchange]] = {}
        # Calls of the stateless revisions that wait for input.
        self._parked: ParkedCalls[RunningCall] = ParkedCalls()

    def __repr__(self) -> str:
        return f"<McpCalls cancellable={len(self._running)} parked={len(self._parked)}>"

    async def run(self, request: RpcRequest, caller: McpCaller) -> bytes | MessageProblem | None:
        """Runs a call of a tool and returns its answer; None if the client disconnected or cancelled the call."""
        call = parse_call(request, CALL, caller.size, caller.traceparent, caller.envelope.answers)
        if isinstance(call, MessageProblem):
            return call
        following = read_round(request.params) if caller.envelope.revision.stateless else None
        if isinstance(following, MessageProblem):
            return following
        exchange = McpExchange(request.id, caller.envelope)
        if following is not None:
            return await self._follow_up(following, call, request, caller, exchange, None)
        return await self._run(call, request, caller, exchange, None)

    async def run_method(self, request: RpcRequest, caller: McpCaller, tool: Tool) -> bytes | MessageProblem | None:
        """Runs a request about resources or prompts, which ``tool`` answers, and returns its answer; None if the client
        disconnected.
        """
        call = parse_method_call(request, CALL, caller.size, caller.traceparent, caller.envelope.answers)
        if isinstance(call, MessageProblem):
            return call
        following = read_round(request.params) if caller.envelope.revision.stateless else None
        if isinstance(following, MessageProblem):
            return following
        exchange = CatalogExchange(request, caller.envelope)
        if following is not None:
            return await self._follow_up(following, call, request, caller, exchange, tool)
        return await self._run(call, request, caller, exchange, tool)

    async def _follow_up(
        self,
        following: InputRound,
        call: ToolCall,
        request: RpcRequest,
        caller: McpCaller,
        exchange: McpExchange,
        tool: Tool | None,
    ) -> bytes | MessageProblem | None:
        """Runs a call with answers to questions: to its own questions, or to those of the parked call that it
        repeats."""
        exchange.responses = dict(following.responses)
        if following.state is None:
            return await self._run(call, request, caller, exchange, tool)
        answer = await self._continue(following.state, call, request, caller, exchange)
        return exchange.problem if answer is not None and exchange.problem is not None else answer

    async def _run(
        self, call: ToolCall, request: RpcRequest, caller: McpCaller, exchange: McpExchange, tool: Tool | None
    ) -> bytes | MessageProblem | None:
        session = self._router.sessions.open(
            caller.label,
            caller.principal,
            caller.client,
            toolset=caller.toolset,
            transport="mcp",
            streaming=False,
            absent_port=ABSENT_PORT,
            usable=caller.access.toolsets,
            repeatable=False,
        )
        session.result_text = caller.result_text
        caller.unsent.append(exchange)
        address = (caller.principal.name, caller.label, request.id) if caller.labelled else None
        self._router.connect(session, exchange)
        try:
            ready = call if tool is not None else await prepared(self._router.catalog, session, call)
            running = self._router.submit(session, ready, exchange, tool=tool)
            if not isinstance(running, RunningCall):
                return _refusal(running, exchange, caller.envelope.revision)
            if address is not None:
                self._running[address] = session, exchange
            as_task = tool is None and caller.envelope.revision.tasks == "requested"
            if as_task and isinstance(request.params.get("task"), dict):
                return await self._as_task(running, request, caller)
            # Most calls of local tools are done in the next loop iteration, so their clients need not be watched.
            await asyncio.sleep(0)
            answer = exchange.answer or await self._follow(running, exchange, request, caller)
            if exchange.cancelled or answer is None:
                return None
            return exchange.problem or answer
        finally:
            if address is not None and self._running.get(address) == (session, exchange):  # a client may reuse an id
                del self._running[address]
            self._router.disconnect(session, exchange)  # does nothing if the call was parked

    def cancel(self, request_id: object, caller_label: str, principal: str) -> bool:
        """Cancels a client's running call by its JSON-RPC id. Such a call is not answered, as the revisions require.
        Returns False if it does not run here.
        """
        if not isinstance(request_id, str | int):
            return False
        running = self._running.get((principal, caller_label, request_id))
        if running is None:
            return False
        session, exchange = running
        exchange.cancelled = True
        self._tasks.cancel(session)
        return True

    def take_reply(self, reply: RpcReply, label: str | None, principal: Principal) -> MessageProblem | None:
        """Passes a client's answer to its question. Returns the problem if the answer is refused.

        Raises:
            SessionHeldError: another node has asked.
        """
        self._router.node_tokens.require_here(reply.id)
        waiting = self._router.questions.find(reply.id, principal) if isinstance(reply.id, str) else None
        if waiting is None or waiting[1].session.label != label:
            return _NO_QUESTION
        invalid = self._router.questions.answer(waiting[0], reply.result, reply.error)
        return None if invalid is None else MessageProblem(INVALID_PARAMS, invalid.message)

    async def _continue(
        self, state: str, call: ToolCall, request: RpcRequest, caller: McpCaller, exchange: McpExchange
    ) -> bytes | MessageProblem | None:
        """Continues a parked call with the answers of its client.

        Raises:
            SessionHeldError: the call is parked at another node.
        """
        self._router.node_tokens.require_here(state)
        running = self._parked.take(state, _owner_of(caller), call.name, call.identity)
        if isinstance(running, MessageProblem):
            return running
        responses, exchange.responses = exchange.responses, {}
        for entry in self._router.questions.open_questions(running):
            if entry.id in responses:
                self._router.questions.answer(entry, responses[entry.id])
        caller.unsent.append(exchange)
        # Asks the unanswered questions again.
        self._router.connect(running.session, exchange)
        try:
            return await self._follow(running, exchange, request, caller)
        finally:
            self._router.disconnect(running.session, exchange)

    def _answer_early(self, running: RunningCall, exchange: McpExchange) -> None:
        """Answers the questions whose answers the call already contained, each once. The client has not seen these
        questions, so an answer that does not fit is ignored, and the question is asked.
        """
        for entry in self._router.questions.open_questions(running) if exchange.responses else ():
            response = exchange.responses.pop(entry.id, None)
            if response is not None and fits(entry.question, response):
                self._router.questions.answer(entry, response)

    def _park(self, running: RunningCall, request: RpcRequest, caller: McpCaller) -> bytes | None:
        """Answers the request with the open questions, if any; the call waits for the next round."""
        questions = self._router.questions.open_questions(running)
        if not questions or running.answered:
            return None
        state, session = self._router.node_tokens.named(token_urlsafe(_STATE_BYTES)), running.session

        def ended() -> None:
            self._parked.drop(state)
            self._router.disconnect(session, port)

        def abandoned() -> None:
            self._parked.drop(state)
            self._tasks.cancel(session)

        port = ParkedPort(ended, abandoned)
        self._parked.park(state, ParkedCall(_owner_of(caller), running.request.name, running.request.identity, running))
        self._router.connect(session, port)
        return json_rpc.answer(request.id, input_required_result(asked(questions), state))

    async def _follow(
        self, running: RunningCall, exchange: McpExchange, request: RpcRequest, caller: McpCaller
    ) -> bytes | None:
        """Forwards progress until the call is answered or becomes a task."""
        watch = asyncio.ensure_future(wait_disconnected(caller.receive))
        watch.add_done_callback(exchange.set_disconnected)
        timer = None
        offered = caller.envelope.tasks and caller.envelope.progress_token is None  # tasks have no progress
        if offered and not isinstance(exchange, CatalogExchange):
            timer = asyncio.get_running_loop().call_later(TASK_AFTER_S, exchange.set_overdue)
        try:
            while exchange.answer is None:
                await exchange.wait_changed()
                if exchange.disconnected and exchange.answer is None:
                    if caller.envelope.revision.stateless:  # in these revisions, a disconnect cancels the call
                        self._tasks.cancel(running.session)
                    return None
                if exchange.overdue and not running.answered:
                    return await self._as_task(running, request, caller)
                if exchange.asked:
                    exchange.asked = False
                    await asyncio.sleep(0)  # so that simultaneous questions form one round
                    self._answer_early(running, exchange)
                    parked = self._park(running, request, caller) if caller.envelope.revision.stateless else None
                    if parked is not None:
                        return parked
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


def _owner_of(caller: McpCaller) -> str:
    """Identifies who may continue a parked call: the same principal, with the same tools."""
    return f"{caller.toolset} {caller.principal.name}"


_NO_QUESTION: Final = MessageProblem(
    INVALID_REQUEST, "No question to you with this id is open: it was answered or withdrawn, or it is another client's."
)


def _refusal(result: ToolResult | None, exchange: McpExchange, revision: McpRevision) -> bytes | MessageProblem | None:
    """Returns the answer to a call that did not start."""
    if result is None:
        return None
    fault = request_error(result.error, revision)
    if fault is not None:
        return fault
    exchange.refuse(result)
    return exchange.problem or exchange.answer
