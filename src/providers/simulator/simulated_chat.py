"""``POST …/chat/completions`` of either vendor, with and without streaming."""

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from ..model import Model
from ..model_catalog import ModelCatalog
from ..open_provider import OpenProvider
from . import vendor_responses
from .directives import Directives, follow_script
from .request_log import RequestLog
from .simulated_answer import SimulatedConversation, SimulatedReply, read_conversation, read_prompt_directives, reply_to
from .simulated_dialects import comment_of, response_headers
from .simulator_endpoint import NESTED_JSON, SimulatorEndpoint, SimulatorRequest, error_response, stable_id
from .vendor_responses import Json, VendorFailure
from .vendor_rules import rejection_reason

MAX_FAILED: Final = 1_000
"""The maximum number of failed requests whose repetition the simulator recognizes."""
OPEN_WINDOW: Final = 1_000_000
"""The context window of the simulated models of configured providers."""


class SimulatedChat(SimulatorEndpoint):
    """Simulated completions of the catalog's models."""

    def __init__(self, vendor: str, catalog: ModelCatalog, request_log: RequestLog, form: str | None = None) -> None:
        super().__init__(vendor, "chat", request_log, self._prompt_directives, form)
        # The requests, by their messages, that a script made fail once and that were not repeated yet.
        self._failed: dict[str, None] = {}
        self._has_every_model = vendor not in {model.provider for model in catalog.models}
        self._models = {model.id: model for model in catalog.models if model.provider == vendor}

    async def serve(
        self, incoming: SimulatorRequest, directives: Directives, scope: Scope, receive: Receive, send: Send
    ) -> None:
        body = incoming.document
        reply = self._reply(body, directives) if _is_request(body) else vendor_responses.failure(self._form, 400)
        if isinstance(reply, VendorFailure):
            await error_response(self._form, reply, directives)(scope, receive, send)
            return
        answer_id = stable_id(body)
        headers = vendor_responses.headers(self._form, answer_id, cached_tokens=reply.cached_tokens)
        if body.get("stream"):
            include_usage = bool((body.get("stream_options") or {}).get("include_usage"))
            chunks = vendor_responses.chunk_bodies(
                self._form, answer_id, body["model"], reply, usage_asked=include_usage
            )
            error = vendor_responses.error_body(self._form, vendor_responses.failure(self._form, 500, directives.code))
            await _send_stream(send, headers, chunks, directives, error, comment_of(self._form))
        else:
            document = vendor_responses.completion_body(self._form, answer_id, body["model"], reply)
            headers |= response_headers(self._form, reply)
            await _whole_response(document, headers, directives)(scope, receive, send)

    def _prompt_directives(self, incoming: SimulatorRequest) -> Directives:
        """Returns the directives of the prompt, or of the script's item for this turn."""
        if not _is_request(incoming.document):
            return Directives()
        messages = incoming.document["messages"]
        conversation = read_conversation(messages)
        directives = read_prompt_directives(conversation)
        if not directives.script:
            return directives
        if conversation.turn >= len(directives.script):
            return Directives()
        item = directives.script[conversation.turn]
        return follow_script(directives, item, repaired=item.fails and not item.always and self._fails_again(messages))

    def _fails_again(self, messages: Json) -> bool:
        """Whether this request, identified by its messages, repeats a failed one. A further repetition fails again."""
        key = stable_id(messages)
        if key in self._failed:
            del self._failed[key]
            return True
        if len(self._failed) == MAX_FAILED:
            del self._failed[next(iter(self._failed))]
        self._failed[key] = None
        return False

    def _reply(self, body: Json, directives: Directives) -> SimulatedReply | VendorFailure:
        conversation = read_conversation(body["messages"])
        name = str(body.get("model"))
        model = OpenProvider(self._vendor).model(name) if self._has_every_model else self._models.get(name)
        if model is None:
            return vendor_responses.unknown_model(self._form, name)
        return self._refusal(body, model, conversation, directives) or _answer(body, model, conversation, directives)

    def _refusal(
        self, body: Json, model: Model, conversation: SimulatedConversation, directives: Directives
    ) -> VendorFailure | None:
        window = OPEN_WINDOW if model.context_window is None else model.context_window
        if directives.too_long or conversation.input_tokens > window:
            return vendor_responses.too_long(self._form, window, conversation.input_tokens)
        if directives.filter:
            return vendor_responses.unsafe(self._form)
        message = rejection_reason(self._form, body, model)
        return None if message is None else vendor_responses.invalid_request(self._form, message)


def _answer(body: Json, model: Model, conversation: SimulatedConversation, directives: Directives) -> SimulatedReply:
    reply = reply_to(body, model, conversation, directives)
    return replace(reply, text="", tool_calls=(), finish="content_filter") if directives.withhold else reply


def _is_request(document: Json) -> bool:
    """Whether ``messages`` is a list of objects."""
    messages = document.get("messages")
    return isinstance(messages, list) and all(isinstance(message, dict) for message in messages)


def _whole_response(document: Json, headers: Mapping[str, str], directives: Directives) -> Response:
    if directives.garbage:
        return Response('{"choices": [not JSON', media_type="application/json")
    if directives.nested:
        return Response(NESTED_JSON, media_type="application/json")
    return JSONResponse({**document, "choices": []} if directives.empty else document, headers=headers)


async def _send_stream(
    send: Send,
    headers: Mapping[str, str],
    chunks: Iterator[Json],
    directives: Directives,
    error: Any,
    comment: str | None,
) -> None:
    """Sends server-sent events. Returning without the final body closes the connection prematurely."""
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    raw.append((b"content-type", b"text/event-stream; charset=utf-8"))
    await send({"type": "http.response.start", "status": 200, "headers": raw})

    async def event(data: str) -> None:
        await send({"type": "http.response.body", "body": f"data: {data}\n\n".encode(), "more_body": True})

    if comment is not None:
        await send({"type": "http.response.body", "body": f": {comment}\n\n".encode(), "more_body": True})
    if directives.garbage:
        await event("{not JSON")
    if directives.nested:
        await event(NESTED_JSON)
    for number, chunk in enumerate([] if directives.empty else chunks):
        if number == directives.hang_after:
            await asyncio.Event().wait()
        if number == directives.break_after:
            return
        if number == directives.error_after:
            await event(json.dumps(error))
            break
        await asyncio.sleep(directives.stream_delay)
        await event(json.dumps(chunk, ensure_ascii=False))
    await event("[DONE]")
    await send({"type": "http.response.body", "body": b""})
