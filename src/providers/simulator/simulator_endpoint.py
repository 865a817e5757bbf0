"""What every address of the simulator has in common: keys, the census, directives, and an end when the client goes."""

import asyncio
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from ..model_catalog import ProviderName
from . import vendor_responses
from .directives import DirectiveError, Directives
from .request_log import LoggedRequest, Operation, RequestLog
from .vendor_responses import Json, VendorFailure

SIMULATOR_KEY: Final = "sim-key"
"""The key that the simulator takes for either vendor; and any other that begins with ``sim-``."""


@dataclass(frozen=True, slots=True)
class SimulatorRequest:
    """A request with a right key."""

    content: bytes
    headers: Mapping[str, str]
    """Lower-cased; without the authorization."""
    query: Mapping[str, str]
    path: Mapping[str, str]
    """The named parts of its address."""
    document: Json = field(default_factory=dict)
    """The JSON object that was sent; empty where there was none."""


Wishes = Callable[[SimulatorRequest], Directives]
"""Reads directives out of a request. Raises ``DirectiveError``."""


class SimulatorEndpoint(ABC):
    """One address: what stands between its answer and the wire."""

    def __init__(self, vendor: ProviderName, operation: Operation, census: RequestLog, wishes: Wishes) -> None:
        self._vendor = vendor
        self._operation = operation
        self._census = census
        self._wishes = wishes

    @abstractmethod
    async def serve(
        self, incoming: SimulatorRequest, wish: Directives, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Answer, once the delay is over and no other status was wished for."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            content = await request.body()
        except ClientDisconnect:
            return  # a call that was cancelled before it was sent whole
        if not _key_is_right(request):
            await error_response(self._vendor, vendor_responses.failure(self._vendor, 401))(scope, receive, send)
            return
        headers = {name: value for name, value in request.headers.items() if name != "authorization"}
        incoming = SimulatorRequest(content, headers, request.query_params, request.path_params, _object(content))
        async with self._census.serving(LoggedRequest(self._vendor, incoming.document, headers, self._operation)):
            await self._serve_while_wanted(incoming, scope, receive, send)

    async def _serve_while_wanted(self, incoming: SimulatorRequest, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, unless the client goes or the simulator stops before that."""
        serving = asyncio.create_task(self._obey_and_serve(incoming, scope, receive, send))
        gone = asyncio.create_task(_disconnected(receive))
        closing = asyncio.create_task(self._census.closing.wait())
        try:
            await asyncio.wait({serving, gone, closing}, return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                serving.result()  # raises what went wrong
        finally:
            for task in (serving, gone, closing):
                task.cancel()
            await asyncio.gather(serving, gone, closing, return_exceptions=True)

    async def _obey_and_serve(self, incoming: SimulatorRequest, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            wish = self._census.planned(self._vendor, self._operation) or self._wishes(incoming)
        except DirectiveError as error:
            await error_response(self._vendor, VendorFailure(400, "simulator", str(error)))(scope, receive, send)
            return
        await asyncio.sleep(wish.delay)
        if wish.hang:
            await asyncio.Event().wait()
        if wish.status is not None and wish.status != 200:
            fault = vendor_responses.failure(self._vendor, wish.status, wish.code)
            await error_response(self._vendor, fault, wish)(scope, receive, send)
            return
        await self.serve(incoming, wish, scope, receive, send)


class SimulatorService(SimulatorEndpoint):
    """An address whose answer is a function of the request."""

    def __init__(
        self,
        vendor: ProviderName,
        operation: Operation,
        census: RequestLog,
        answer: Callable[[SimulatorRequest], Response | VendorFailure],
        wishes: Wishes,
    ) -> None:
        super().__init__(vendor, operation, census, wishes)
        self._answer = answer

    async def serve(
        self, incoming: SimulatorRequest, wish: Directives, scope: Scope, receive: Receive, send: Send
    ) -> None:
        answer = self._answer(incoming)
        if wish.garbage:
            answer = Response('{"data": [not JSON', media_type="application/json")
        elif wish.empty:
            answer = JSONResponse({})
        elif isinstance(answer, VendorFailure):
            answer = error_response(self._vendor, answer)
        for name, value in vendor_responses.headers(self._vendor, _answer_id(incoming)).items():
            answer.headers[name] = value
        await answer(scope, receive, send)


def no_wishes(_: SimulatorRequest) -> Directives:
    """For addresses whose requests hold no words."""
    return Directives()


def error_response(vendor: ProviderName, fault: VendorFailure, wish: Directives | None = None) -> JSONResponse:
    headers = {"retry-after": f"{wish.retry_after:g}"} if wish and wish.retry_after is not None else None
    return JSONResponse(vendor_responses.error_body(vendor, fault), fault.status, headers)


def stable_id(document: Any) -> str:
    """The same for the same request."""
    return "sim-" + hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:16]


def _answer_id(incoming: SimulatorRequest) -> str:
    return stable_id([incoming.document, dict(incoming.path), dict(incoming.query)])


def _key_is_right(request: Request) -> bool:
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return scheme == "Bearer" and key.startswith("sim-")


def _object(content: bytes) -> Json:
    try:
        document: Any = json.loads(content)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
