"""``POST …/chat/completions`` of either vendor, whole and streamed."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace

from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from ..model_catalog import Model, ModelCatalog, ProviderName
from . import vendor_responses
from .directives import Directives
from .request_log import RequestLog
from .simulated_answer import SimulatedConversation, SimulatedReply, read_conversation, reply_to, wishes
from .simulator_endpoint import SimulatorEndpoint, SimulatorRequest, error_response, stable_id
from .vendor_responses import Json, VendorFailure
from .vendor_rules import objection


class SimulatedChat(SimulatorEndpoint):
    """Completions by the models of the catalog."""

    def __init__(self, vendor: ProviderName, catalog: ModelCatalog, census: RequestLog) -> None:
        super().__init__(vendor, "chat", census, _wishes)
        self._models = {model.id: model for model in catalog.models if model.provider == vendor}

    async def serve(
        self, incoming: SimulatorRequest, wish: Directives, scope: Scope, receive: Receive, send: Send
    ) -> None:
        body = incoming.document
        reply = self._reply(body, wish) if _is_request(body) else vendor_responses.failure(self._vendor, 400)
        if isinstance(reply, VendorFailure):
            await error_response(self._vendor, reply, wish)(scope, receive, send)
            return
        answer_id = stable_id(body)
        headers = vendor_responses.headers(self._vendor, answer_id, cached_tokens=reply.cached_tokens)
        if body.get("stream"):
            asked = bool((body.get("stream_options") or {}).get("include_usage"))
            chunks = vendor_responses.chunk_bodies(self._vendor, answer_id, body["model"], reply, usage_asked=asked)
            breach = vendor_responses.error_body(self._vendor, vendor_responses.failure(self._vendor, 500, wish.code))
            await _send_stream(send, headers, chunks, wish, breach)
        else:
            document = vendor_responses.completion_body(self._vendor, answer_id, body["model"], reply)
            await _whole(document, headers, wish)(scope, receive, send)

    def _reply(self, body: Json, wish: Directives) -> SimulatedReply | VendorFailure:
        talk = read_conversation(body["messages"])
        name = str(body.get("model"))
        model = self._models.get(name)
        if model is None:
            return vendor_responses.unknown_model(self._vendor, name)
        return self._refusal(body, model, talk, wish) or _answer(body, model, talk, wish)

    def _refusal(self, body: Json, model: Model, talk: SimulatedConversation, wish: Directives) -> VendorFailure | None:
        if wish.too_long or talk.input_tokens > model.context_window:
            return vendor_responses.too_long(self._vendor, model.context_window, talk.input_tokens)
        if wish.filter:
            return vendor_responses.unsafe(self._vendor)
        message = objection(self._vendor, body, model)
        return None if message is None else vendor_responses.objected(self._vendor, message)


def _answer(body: Json, model: Model, talk: SimulatedConversation, wish: Directives) -> SimulatedReply:
    reply = reply_to(body, model, talk, wish)
    return replace(reply, text="", tool_calls=(), finish="content_filter") if wish.withhold else reply


def _wishes(incoming: SimulatorRequest) -> Directives:
    """Those of the prompt."""
    if not _is_request(incoming.document):
        return Directives()
    return wishes(read_conversation(incoming.document["messages"]))


def _is_request(document: Json) -> bool:
    """Whether its messages are objects."""
    messages = document.get("messages")
    return isinstance(messages, list) and all(isinstance(message, dict) for message in messages)


def _whole(document: Json, headers: Mapping[str, str], wish: Directives) -> Response:
    if wish.garbage:
        return Response('{"choices": [not JSON', media_type="application/json")
    return JSONResponse({**document, "choices": []} if wish.empty else document, headers=headers)


async def _send_stream(
    send: Send, headers: Mapping[str, str], chunks: Iterator[Json], wish: Directives, breach: Json
) -> None:
    """Server-sent events, chunk by chunk. Returning without the last body breaks the connection off."""
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    raw.append((b"content-type", b"text/event-stream; charset=utf-8"))
    await send({"type": "http.response.start", "status": 200, "headers": raw})

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
