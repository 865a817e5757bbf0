"""The common part of all simulator endpoints: keys, the request log, directives, and client disconnects."""

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

from ...protocol.json_text import InvalidJsonError, parse_json
from . import vendor_responses
from .directives import DirectiveError, Directives
from .request_log import LoggedRequest, Operation, RequestLog
from .vendor_responses import Json, VendorFailure

NESTED_JSON: Final = "[" * 100_000
"""JSON that is nested more deeply than JSON parsers recurse."""

SIMULATOR_KEY: Final = "sim-key"
"""The simulator's key for both vendors. It also accepts any other key that begins with ``sim-``."""


@dataclass(frozen=True, slots=True)
class SimulatorRequest:
    """A request with a valid key."""

    content: bytes
    headers: Mapping[str, str]
    """The headers by lower-case name, without the authorization."""
    query: Mapping[str, str]
    path: Mapping[str, str]
    """The path parameters."""
    document: Json = field(default_factory=dict)
    """The JSON object of the request; empty if the body has none."""


ReadDirectives = Callable[[SimulatorRequest], Directives]
"""Reads the directives of a request. Raises ``DirectiveError``."""


class SimulatorEndpoint(ABC):
    """One endpoint: authentication, logging and directives around its response."""

    def __init__(
        self,
        vendor: str,
        operation: Operation,
        request_log: RequestLog,
        read_directives: ReadDirectives,
        form: str | None = None,
    ) -> None:
        """``form`` names the vendor or preset in whose form the endpoint responds."""
        self._vendor = vendor
        self._form = form or vendor
        self._operation = operation
        self._request_log = request_log
        self._read_directives = read_directives

    @abstractmethod
    async def serve(
        self, incoming: SimulatorRequest, directives: Directives, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Sends the response. Called after the delay that a directive sets, unless a directive sets an error status."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            content = await request.body()
        except ClientDisconnect:
            return  # the call was cancelled before the request was complete
        if not _has_valid_key(request):
            await error_response(self._form, vendor_responses.failure(self._form, 401))(scope, receive, send)
            return
        headers = {name: value for name, value in request.headers.items() if name != "authorization"}
        incoming = SimulatorRequest(content, headers, request.query_params, request.path_params, _object(content))
        async with self._request_log.serving(LoggedRequest(self._vendor, incoming.document, headers, self._operation)):
            await self._serve_while_connected(incoming, scope, receive, send)

    async def _serve_while_connected(
        self, incoming: SimulatorRequest, scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Sends the response, unless the client disconnects or the simulator stops first."""
        serving = asyncio.create_task(self._apply_directives_and_serve(incoming, scope, receive, send))
        disconnected = asyncio.create_task(_disconnected(receive))
        closing = asyncio.create_task(self._request_log.closing.wait())
        try:
            await asyncio.wait({serving, disconnected, closing}, return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                serving.result()  # raises its exception
        finally:
            for task in (serving, disconnected, closing):
                task.cancel()
            await asyncio.gather(serving, disconnected, closing, return_exceptions=True)

    async def _apply_directives_and_serve(
        self, incoming: SimulatorRequest, scope: Scope, receive: Receive, send: Send
    ) -> None:
        try:
            directives = self._request_log.planned(self._vendor, self._operation) or self._read_directives(incoming)
        except DirectiveError as error:
            await error_response(self._form, VendorFailure(400, "simulator", str(error)))(scope, receive, send)
            return
        await asyncio.sleep(directives.delay)
        if directives.hang:
            await asyncio.Event().wait()
        if directives.status is not None and directives.status != 200:
            failure = vendor_responses.failure(self._form, directives.status, directives.code)
            await error_response(self._form, failure, directives)(scope, receive, send)
            return
        await self.serve(incoming, directives, scope, receive, send)


class SimulatorService(SimulatorEndpoint):
    """An endpoint whose response is a function of the request."""

    def __init__(
        self,
        vendor: str,
        operation: Operation,
        request_log: RequestLog,
        answer: Callable[[SimulatorRequest], Response | VendorFailure],
        read_directives: ReadDirectives,
        form: str | None = None,
    ) -> None:
        super().__init__(vendor, operation, request_log, read_directives, form)
        self._answer = answer

    async def serve(
        self, incoming: SimulatorRequest, directives: Directives, scope: Scope, receive: Receive, send: Send
    ) -> None:
        answer = self._answer(incoming)
        if directives.garbage:
            answer = Response('{"data": [not JSON', media_type="application/json")
        elif directives.nested:
            answer = Response(NESTED_JSON, media_type="application/json")
        elif directives.empty:
            answer = JSONResponse({})
        elif isinstance(answer, VendorFailure):
            answer = error_response(self._form, answer)
        for name, value in vendor_responses.headers(self._form, _answer_id(incoming)).items():
            answer.headers[name] = value
        await answer(scope, receive, send)


def no_directives(_: SimulatorRequest) -> Directives:
    """Returns no directives, for endpoints whose requests have no text."""
    return Directives()


def error_response(form: str, failure: VendorFailure, directives: Directives | None = None) -> JSONResponse:
    retry_after_s = directives.retry_after if directives else None
    headers = {"retry-after": f"{retry_after_s:g}"} if retry_after_s is not None and form != "gemini" else None
    return JSONResponse(vendor_responses.error_body(form, failure, retry_after_s), failure.status, headers)


def stable_id(document: Any) -> str:
    """Returns an id that depends only on the document."""
    return "sim-" + hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()[:16]


def _answer_id(incoming: SimulatorRequest) -> str:
    return stable_id([incoming.document, dict(incoming.path), dict(incoming.query)])


def _has_valid_key(request: Request) -> bool:
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return scheme == "Bearer" and key.startswith("sim-")


def _object(content: bytes) -> Json:
    try:
        document = parse_json(content)
    except InvalidJsonError:
        return {}
    return document if isinstance(document, dict) else {}


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
