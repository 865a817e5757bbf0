"""The requests of a server to its client, as the SDK's callbacks. Importing this module takes a second.

Over HTTP, a request arrives on the stream of a call. Over stdio, a request names no call, so a client is asked only if
all running calls of the server belong to one call of a client; otherwise the wrong client might be asked.
"""

import asyncio
import contextvars
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from mcp.client.session import ClientRequestContext
from mcp_types import (
    INVALID_REQUEST,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitResult,
    ErrorData,
    ListRootsResult,
)
from pydantic import BaseModel

from ...protocol.error_codes import ProviderError
from ...protocol.questions.client_question import ELICIT, LIST_ROOTS, SAMPLE, QuestionRefusedError
from ...protocol.tool_call import Json
from .upstream_exchange import UpstreamExchange
from .upstream_questions import CallQuestions

ResultT = TypeVar("ResultT", bound=BaseModel)

MAX_INPUT_ROUNDS: Final = 10
"""The maximum number of rounds, as in the official SDKs."""
MAX_INPUT_REQUESTS: Final = 16
"""The maximum number of questions in one round."""

_NO_CALL: Final = "No call of this client is running, or several are and the request does not name its call."


class SessionQuestions:
    """The calls of a session during which the server may ask."""

    def __init__(self, current: "contextvars.ContextVar[UpstreamExchange | None]") -> None:
        """``current`` is the exchange of the HTTP request on whose stream a message arrives."""
        self._current = current
        self._running: list[UpstreamExchange] = []

    @contextmanager
    def running(self, exchange: UpstreamExchange) -> Iterator[None]:
        """Marks a block in which the server runs a call."""
        self._running.append(exchange)
        try:
            yield
        finally:
            self._running = [other for other in self._running if other is not exchange]

    async def elicit(self, context: ClientRequestContext, params: BaseModel) -> ElicitResult | ErrorData:  # noqa: ARG002
        return await self._answer(ELICIT, params, ElicitResult)

    async def sample(
        self,
        context: ClientRequestContext,  # noqa: ARG002
        params: BaseModel,
    ) -> CreateMessageResult | CreateMessageResultWithTools | ErrorData:
        with_tools = getattr(params, "tools", None) is not None
        return await self._answer(SAMPLE, params, CreateMessageResultWithTools if with_tools else CreateMessageResult)

    async def list_roots(self, context: ClientRequestContext) -> ListRootsResult | ErrorData:  # noqa: ARG002
        if self._asking() is None:  # servers ask for roots at the start of a session, and use the answer for all calls
            return ListRootsResult(roots=[])
        return await self._answer(LIST_ROOTS, None, ListRootsResult)

    async def _answer(self, method: str, params: BaseModel | None, kind: type[ResultT]) -> ResultT | ErrorData:
        exchange = self._asking()
        if exchange is None or exchange.questions is None:
            return ErrorData(code=INVALID_REQUEST, message=_NO_CALL)
        try:
            fields = {} if params is None else params.model_dump(by_alias=True, mode="json", exclude_none=True)
        except (ValueError, RecursionError):
            return ErrorData(code=INVALID_REQUEST, message="The request is nested too deeply.")
        try:
            with exchange.clock_stopped():
                return kind.model_validate(await exchange.questions.ask(method, fields))
        except QuestionRefusedError as refused:
            return ErrorData(code=INVALID_REQUEST, message=refused.message)

    def _asking(self) -> UpstreamExchange | None:
        """The call on whose behalf the server asks."""
        current = self._current.get()
        if current is not None and any(current is exchange for exchange in self._running):
            return current
        calls = {exchange.questions.client_call for exchange in self._running if exchange.questions is not None}
        return self._running[-1] if len(calls) == 1 else None


async def input_responses(
    source: str, result: Mapping[str, Any], questions: CallQuestions | None
) -> dict[str, Json] | None:
    """The answers to the questions of a result of 2026-07-28 that needs input; None if it has only a state.

    Raises:
        QuestionRefusedError: a question is not answered.
        ProviderError: the questions are not valid MCP.
    """
    requests = result.get("inputRequests")
    if requests is None:
        return None
    if questions is None or not isinstance(requests, dict) or len(requests) > MAX_INPUT_REQUESTS:
        raise ProviderError(f"{source} asks for input in a way that is not valid MCP.", executed="maybe")
    # Asked in parallel, so that a client of the stateless revision gets all questions in one round.
    asking = [asyncio.create_task(_asked(questions, name, request)) for name, request in requests.items()]
    try:
        return dict(zip(requests, await asyncio.gather(*asking), strict=True))
    finally:
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)


async def _asked(questions: CallQuestions, name: str, request: object) -> dict[str, Json]:
    fields = request if isinstance(request, Mapping) else {}
    method, params = fields.get("method"), fields.get("params")
    return await questions.ask(
        method if isinstance(method, str) else "", params if isinstance(params, Mapping) else {}, name[:100]
    )
