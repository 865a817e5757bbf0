"""The simulator's HTTP: both vendors' chat and model list, with keys, delays, hanging and streaming."""

import asyncio
import contextlib
import hashlib
import json
from collections import Counter, deque
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ..catalogue import Catalogue, ProviderName
from . import shapes
from .conversation import Conversation, Reply, read_conversation, reply_to, wishes
from .directives import DirectiveError, Directives
from .shapes import Failure, Json

SIMULATOR_KEY: Final = "sim-key"
"""The key that the simulator takes for either vendor; and any other that begins with ``sim-``."""

LOG_SIZE: Final = 200
"""How many requests are remembered."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A chat request that came in with a right key."""

    vendor: ProviderName
    body: Json
    headers: Mapping[str, str]
    """Lower-cased; without the authorization."""


class Census:
    """Who is being served: the requests seen, and how many run at once."""

    def __init__(self) -> None:
        self.log: deque[Seen] = deque(maxlen=LOG_SIZE)
        self.running: Counter[str] = Counter()
        self.peaks: Counter[str] = Counter()
        self.closing = asyncio.Event()
        """Set when the simulator stops: hung requests end."""
        self._changed = asyncio.Condition()

    @contextlib.asynccontextmanager
    async def serving(self, seen: Seen) -> AsyncIterator[None]:
        self.log.append(seen)
        self.running[seen.vendor] += 1
        self.peaks[seen.vendor] = max(self.peaks[seen.vendor], self.running[seen.vendor])
        await self._tell()
        try:
            yield
        finally:
            self.running[seen.vendor] -= 1
            await self._tell()

    async def until(self, vendor: ProviderName, count: int) -> None:
        """Wait until exactly ``count`` requests of this vendor run."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.running[vendor] == count)

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()


def simulator_app(catalogue: Catalogue, census: Census) -> Starlette:
    """Serves ``/kimi/v1`` and ``/glm/api/paas/v4``."""
    roots: Mapping[ProviderName, str] = {"kimi": "/kimi/v1", "glm": "/glm/api/paas/v4"}
    routes = []
    for vendor, root in roots.items():
        routes.append(Route(f"{root}/chat/completions", _Chat(vendor, catalogue, census), methods=["POST"]))
        routes.append(Route(f"{root}/models", _Models(vendor, catalogue), methods=["GET"]))
    return Starlette(routes=routes)


class _Models:
    """``GET …/models``."""

    def __init__(self, vendor: ProviderName, catalogue: Catalogue) -> None:
        self._vendor = vendor
        self._catalogue = catalogue

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response: Response
        if _key_is_right(Request(scope)):
            models = [
                {"id": model.id, "object": "model", "created": shapes.CREATED, "owned_by": "simulator"}
                for model in self._catalogue.models
                if model.provider == self._vendor
            ]
            response = JSONResponse({"object": "list", "data": models})
        else:
            response = _error(self._vendor, shapes.failure(self._vendor, 401))
        await response(scope, receive, send)


class _Chat:
    """``POST …/chat/completions``."""

    def __init__(self, vendor: ProviderName, catalogue: Catalogue, census: Census) -> None:
        self._vendor = vendor
        self._catalogue = catalogue
        self._models = {model.id: model for model in catalogue.models if model.provider == vendor}
        self._census = census

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            body = await request.body()
        except ClientDisconnect:
            return  # a call that was cancelled before it was sent whole
        if not _key_is_right(request):
            await _error(self._vendor, shapes.failure(self._vendor, 401))(scope, receive, send)
            return
        document = _read_body(body)
        if document is None:
            await _error(self._vendor, shapes.failure(self._vendor, 400))(scope, receive, send)
            return
        async with self._census.serving(Seen(self._vendor, document, _headers(request))):
            await self._serve_while_wanted(document, scope, receive, send)

    async def _serve_while_wanted(self, body: Json, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, unless the client goes or the simulator stops before that."""
        serving = asyncio.create_task(self._serve(body, scope, receive, send))
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

    async def _serve(self, body: Json, scope: Scope, receive: Receive, send: Send) -> None:
        talk = read_conversation(body["messages"])
        try:
            wish = wishes(talk)
        except DirectiveError as error:
            await _error(self._vendor, Failure(400, "simulator", str(error)))(scope, receive, send)
            return
        await asyncio.sleep(wish.delay)
        if wish.hang:
            await asyncio.Event().wait()
        reply = self._reply(body, talk, wish)
        if isinstance(reply, Failure):
            await _error(self._vendor, reply, wish)(scope, receive, send)
        elif body.get("stream"):
            asked = bool((body.get("stream_options") or {}).get("include_usage"))
            chunks = shapes.chunk_bodies(self._vendor, _answer_id(body), body["model"], reply, usage_asked=asked)
            breach = shapes.error_body(self._vendor, shapes.failure(self._vendor, 500, wish.code))
            await _send_stream(send, chunks, wish, breach)
        else:
            document = shapes.completion_body(self._vendor, _answer_id(body), body["model"], reply)
            await _whole(document, wish)(scope, receive, send)

    def _reply(self, body: Json, talk: Conversation, wish: Directives) -> Reply | Failure:
        name = str(body.get("model"))
        model = self._models.get(name)
        if model is None:
            return shapes.unknown_model(self._vendor, name)
        if wish.too_long or talk.input_tokens > model.context_window:
            return shapes.too_long(self._vendor, model.context_window, talk.input_tokens)
        if wish.filter:
            return shapes.unsafe(self._vendor)
        if wish.status is not None and wish.status != 200:
            return shapes.failure(self._vendor, wish.status, wish.code)
        reply = reply_to(body, model, talk, wish)
        return replace(reply, text="", tool_calls=(), finish="content_filter") if wish.withhold else reply


def _whole(document: Json, wish: Directives) -> Response:
    if wish.garbage:
        return Response('{"choices": [not JSON', media_type="application/json")
    return JSONResponse({**document, "choices": []} if wish.empty else document)


async def _send_stream(send: Send, chunks: Iterator[Json], wish: Directives, breach: Json) -> None:
    """Server-sent events, chunk by chunk. Returning without the last body breaks the connection off."""
    headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})

    async def event(data: str) -> None:
        await send({"type": "http.response.body", "body": f"data: {data}\n\n".encode(), "more_body": True})

    if wish.garbage:
        await event("{not JSON")
    for number, chunk in enumerate([] if wish.empty else chunks):
        if number == wish.hang_after:
            await asyncio.Event().wait()
        if number == wish.break_after:
            return
        if number == wish.error_after:
            await event(json.dumps(breach))
            break
        await asyncio.sleep(wish.stream_delay)
        await event(json.dumps(chunk, ensure_ascii=False))
    await event("[DONE]")
    await send({"type": "http.response.body", "body": b""})


def _error(vendor: ProviderName, fault: Failure, wish: Directives | None = None) -> JSONResponse:
    headers = {"retry-after": f"{wish.retry_after:g}"} if wish and wish.retry_after is not None else None
    return JSONResponse(shapes.error_body(vendor, fault), fault.status, headers)


def _key_is_right(request: Request) -> bool:
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return scheme == "Bearer" and key.startswith("sim-")


def _headers(request: Request) -> dict[str, str]:
    return {name: value for name, value in request.headers.items() if name != "authorization"}


def _read_body(body: bytes) -> Json | None:
    """The request, if it is one: an object whose messages are objects."""
    try:
        document: Any = json.loads(body)
    except ValueError:
        return None
    if not isinstance(document, dict):
        return None
    messages = document.get("messages")
    is_request = isinstance(messages, list) and all(isinstance(message, dict) for message in messages)
    return document if is_request else None


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _answer_id(body: Mapping[str, Any]) -> str:
    """The same for the same request."""
    return "sim-" + hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:16]
