"""The vendors' JSON responses, as documented. Pure.

Kimi: platform.kimi.ai/docs/api. GLM: docs.bigmodel.cn/api-reference, with its error codes.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..completion_parsing import SIMULATED
from ..provider_presets import PRESETS
from .simulated_answer import SimulatedReply
from .simulated_dialects import counts_unasked, error_document, spoken

CREATED: Final = 1_767_225_600
"""A fixed time, 2026-01-01T00:00Z, so that the same request gets the same response."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class VendorFailure:
    """An error response: HTTP status, and the vendor's code and message."""

    status: int
    code: str
    message: str


_BY_STATUS: Final[Mapping[str, Mapping[int, tuple[str, str]]]] = {
    "kimi": {
        400: ("invalid_request_error", "Invalid request: the simulator was asked to refuse it"),
        401: ("invalid_authentication_error", "Invalid Authentication"),
        403: ("permission_denied_error", "The API you are accessing is not open"),
        404: ("resource_not_found_error", "The simulator was asked not to find it"),
        429: ("rate_limit_reached_error", "Your account reached max request per minute: 3, please try again later"),
    },
    "openai": {
        400: ("invalid_request_error", "Invalid request: the simulator was asked to refuse it"),
        401: ("invalid_api_key", "Incorrect API key provided"),
        404: ("model_not_found", "The simulator was asked not to find it"),
        429: ("rate_limit_exceeded", "Rate limit reached for requests"),
    },
    "glm": {
        400: ("1210", "API 调用参数有误，请检查文档。"),
        401: ("1002", "Authorization Token非法，请确认Authorization Token正确传递。"),
        404: ("1211", "模型不存在，请检查模型代码。"),
        429: ("1302", "您的账户已达到速率限制，请您控制请求频率"),
    },
}
_SERVER_FAILURE: Final[Mapping[str, tuple[str, str]]] = {
    "kimi": ("server_error", "The server had an error while processing your request"),
    "openai": ("server_error", "The server had an error while processing your request"),
    "glm": ("500", "内部错误"),
}


def _format(vendor: str) -> str:
    """Returns the vendor, or ``openai`` for a configured provider: platform.openai.com/docs/guides/error-codes."""
    return vendor if vendor in _BY_STATUS else "openai"


def failure(vendor: str, status: int, code: str | None = None) -> VendorFailure:
    """Returns the vendor's error for a status, with ``code`` instead of the usual one if given."""
    usual, message = _BY_STATUS[_format(vendor)].get(status, _SERVER_FAILURE[_format(vendor)])
    return VendorFailure(status, code or usual, message)


def unknown_model(vendor: str, name: str) -> VendorFailure:
    if _format(vendor) == "openai":
        return VendorFailure(404, "model_not_found", f"The model {name} does not exist")
    if vendor == "kimi":
        return VendorFailure(404, "resource_not_found_error", f"Not found the model {name} or Permission denied")
    return VendorFailure(400, "1211", "模型不存在，请检查模型代码。")


def too_long(vendor: str, window: int, tokens: int) -> VendorFailure:
    if _format(vendor) == "openai":
        message = f"This model's maximum context length is {window} tokens, but the messages have {tokens}"
        return VendorFailure(400, "context_length_exceeded", message)
    if vendor == "kimi":
        message = f"Invalid request: Your request exceeded model token limit: {window} (requested: {tokens})"
        return VendorFailure(400, "invalid_request_error", message)
    return VendorFailure(400, "1261", "Prompt 超长")


def unsafe(vendor: str) -> VendorFailure:
    if vendor != "glm":
        return VendorFailure(400, "content_filter", "The request was rejected because it was considered high risk")
    return VendorFailure(400, "1301", "系统检测到输入或生成内容可能包含不安全或敏感内容，请您修改后重试。")


def invalid_request(vendor: str, message: str) -> VendorFailure:
    """Returns the error for invalid fields of the request."""
    return VendorFailure(400, "1214" if vendor == "glm" else "invalid_request_error", message)


def no_file(vendor: str, file_id: str) -> VendorFailure:
    if vendor == "kimi":
        return VendorFailure(404, "resource_not_found_error", f"file {file_id} not found")
    return VendorFailure(404, "1222", "文件不存在")


def headers(vendor: str, answer_id: str, *, cached_tokens: int = 0) -> dict[str, str]:
    """Returns the response headers; Moonshot's have the request id and the tokens saved by the cache."""
    if vendor == "glm":
        return {"x-log-id": answer_id}
    if vendor != "kimi":
        return {"x-request-id": answer_id}
    saved = {"msh-context-cache-token-saved": str(cached_tokens)} if cached_tokens else {}
    return {"msh-request-id": answer_id, "msh-uid": "sim-account", **saved}


def file_body(vendor: str, file_id: str, name: str, size: int, purpose: str) -> Json:
    """Returns a file; GLM reports no status."""
    about: Json = {"id": file_id, "object": "file", "bytes": size, "created_at": CREATED, "filename": name}
    about |= {"purpose": purpose, SIMULATED: True}
    return {**about, "status": "ok", "status_details": ""} if vendor == "kimi" else about


def count_body(vendor: str, tokens: int) -> Json:
    """Returns a token count."""
    if vendor == "kimi":
        return {"data": {"total_tokens": tokens}, SIMULATED: True}
    return {"id": "sim-count", "created": CREATED, "usage": {"prompt_tokens": tokens}, SIMULATED: True}


def search_body(query: str, results: Sequence[Json]) -> Json:
    """Returns the results of GLM's web search."""
    intent = {"query": query, "intent": "SEARCH_ALL", "keywords": query}
    return {
        "id": "sim-search",
        "created": CREATED,
        "search_intent": [intent],
        "search_result": list(results),
        SIMULATED: True,
    }


def error_body(vendor: str, fault: VendorFailure, retry_after_s: float | None = None) -> Any:
    if vendor in PRESETS:
        return error_document(vendor, fault.status, fault.code, fault.message, retry_after_s)
    key = "type" if vendor == "kimi" else "code"
    return {"error": {key: fault.code, "message": fault.message}}


def completion_body(vendor: str, answer_id: str, model: str, reply: SimulatedReply) -> Json:
    """Returns a whole completion."""
    message: Json = {"role": "assistant", "content": reply.text}
    if reply.reasoning:
        message["reasoning_content"] = reply.reasoning
    if reply.tool_calls:
        message["tool_calls"] = _tool_calls(answer_id, reply)
    choice = {"index": 0, "message": message, "finish_reason": finish_reason(vendor, reply.finish)}
    document = {**_head(vendor, answer_id, model, "chat.completion"), "choices": [choice], "usage": usage_body(reply)}
    document = spoken(vendor, document, reply)
    return {**document, "web_search": list(reply.search_results)} if reply.search_results else document


def chunk_bodies(
    vendor: str, answer_id: str, model: str, reply: SimulatedReply, *, usage_asked: bool
) -> Iterator[Json]:
    """Yields a streamed completion in the vendor's form."""
    counted = usage_asked or counts_unasked(vendor)
    for chunk in _common_chunks(vendor, answer_id, model, reply, usage_asked=counted):
        yield spoken(vendor, chunk, reply)


def _common_chunks(
    vendor: str, answer_id: str, model: str, reply: SimulatedReply, *, usage_asked: bool
) -> Iterator[Json]:
    """Yields a streamed completion: reasoning first, one word per chunk, and the usage in the vendor's location."""
    head = _head(vendor, answer_id, model, "chat.completion.chunk")

    def chunk(delta: Json, finish: str | None = None) -> Json:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    first = chunk({"role": "assistant", "content": ""})
    yield {**first, "web_search": list(reply.search_results)} if reply.search_results else first
    for word in _words(reply.reasoning):
        yield chunk({"reasoning_content": word})
    for word in _words(reply.text):
        yield chunk({"content": word})
    for index, call in enumerate(_tool_calls(answer_id, reply)):
        arguments = call["function"]["arguments"]
        half = len(arguments) // 2
        begun = {**call, "index": index, "function": {**call["function"], "arguments": arguments[:half]}}
        yield chunk({"tool_calls": [begun]})
        yield chunk({"tool_calls": [{"index": index, "function": {"arguments": arguments[half:]}}]})
    last = chunk({}, finish_reason(vendor, reply.finish))
    if vendor == "glm":
        yield {**last, "usage": usage_body(reply)}
        return
    if vendor == "kimi":
        last["choices"][0]["usage"] = usage_body(reply)
    yield last
    if usage_asked:
        yield {**head, "choices": [], "usage": usage_body(reply)}


def usage_body(reply: SimulatedReply) -> Json:
    return {
        "prompt_tokens": reply.input_tokens,
        "completion_tokens": reply.output_tokens,
        "total_tokens": reply.input_tokens + reply.output_tokens,
        "prompt_tokens_details": {"cached_tokens": reply.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": reply.reasoning_tokens},
    }


def finish_reason(vendor: str, finish: str) -> str:
    return "sensitive" if vendor == "glm" and finish == "content_filter" else finish


def _head(vendor: str, answer_id: str, model: str, kind: str) -> Json:
    head: Json = {"id": answer_id, "created": CREATED, "model": model, SIMULATED: True}
    return {**head, "request_id": answer_id} if vendor == "glm" else {**head, "object": kind}


def _tool_calls(answer_id: str, reply: SimulatedReply) -> list[Json]:
    return [
        {
            "id": f"call_{answer_id}_{index}",
            "type": "builtin_function" if name.startswith("$") else "function",
            "function": {"name": name, "arguments": arguments},
        }
        for index, (name, arguments) in enumerate(reply.tool_calls)
    ]


def _words(text: str) -> list[str]:
    return re.findall(r"\s*\S+\s*?(?=\s|$)|\s+", text)
