"""Converts the simulator's responses to the dialect of a preset, as documented or observed. Pure.

``docs/providers.md`` and ``tests/contracts`` have the sources.
"""

from collections.abc import Mapping
from typing import Any, Final

from ..provider_presets import PRESETS
from .simulated_answer import SimulatedReply

Json = dict[str, Any]

_REASONING: Final = frozenset({"openrouter", "groq", "ollama", "vllm"})
"""Presets whose reasoning is in ``reasoning``, not in ``reasoning_content``."""
_NO_REASONING: Final = frozenset({"openai", "anthropic", "gemini"})
"""Presets that count reasoning tokens but do not send the reasoning."""
_REASONING_BEYOND: Final = frozenset({"gemini", "xai"})
"""Presets that count reasoning tokens only in the total of the usage."""
_ALWAYS_COUNTED: Final = frozenset({"openrouter", "mistral", "groq"})
"""Presets whose streams have the usage even if the request does not ask for it."""
_COMMENTS: Final[Mapping[str, str]] = {"openrouter": "OPENROUTER PROCESSING", "deepseek": "keep-alive"}
_GOOGLE_STATUS: Final[Mapping[int, str]] = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}
DOLLARS_PER_TOKEN: Final = 1e-6
"""The made-up price of OpenRouter and LiteLLM."""


def comment_of(form: str) -> str | None:
    """Returns the comment with which the vendor keeps a stream open."""
    return _COMMENTS.get(form)


def counts_unasked(form: str) -> bool:
    """Whether the last chunk of a stream has the usage even if the request does not ask for it."""
    return form in _ALWAYS_COUNTED


def error_document(form: str, status: int, code: str, message: str, retry_after_s: float | None) -> Any:
    """Returns the body of an error of a preset. Gemini has no header for the wait."""
    if form == "gemini":
        details: list[Json] = [{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": code}]
        if retry_after_s is not None:
            kind = "type.googleapis.com/google.rpc.RetryInfo"
            details.append({"@type": kind, "retryDelay": f"{retry_after_s:g}s"})
        name = _GOOGLE_STATUS.get(status, "UNKNOWN")
        return [{"error": {"code": status, "message": message, "status": name, "details": details}}]
    if form == "anthropic":
        return {"type": "error", "error": {"type": code, "message": message}, "request_id": "req_sim"}
    if form == "xai":
        return {"code": code, "error": message}
    if form in ("ollama", "lmstudio"):
        return {"error": message}
    if form == "mistral":
        return {"object": "error", "message": message, "type": code, "param": None, "code": None}
    if form == "openrouter":
        reasons = {"metadata": {"reasons": ["simulated"]}} if code == "content_filter" else {}
        return {"error": {"code": status, "message": message, **reasons}}
    return {"error": {"message": message, "type": code, "param": None, "code": code}}


def spoken(form: str, document: Json, reply: SimulatedReply) -> Json:
    """Returns a whole response or a chunk in the preset's form."""
    if form not in PRESETS:
        return document
    choices = [_choice(form, choice) for choice in document["choices"]]
    usage = document.get("usage")
    document = {**document, "choices": choices}
    if usage is None:
        return document
    return {**document, **_usage(form, usage, reply, streamed=document["object"].endswith("chunk"))}


def response_headers(form: str, reply: SimulatedReply) -> dict[str, str]:
    """Returns further headers of a response that is not streamed."""
    return {"x-litellm-response-cost": f"{_dollars(reply):.9f}"} if form == "litellm" else {}


def _choice(form: str, choice: Json) -> Json:
    part = "message" if "message" in choice else "delta"
    message = dict(choice[part])
    reasoning = message.pop("reasoning_content", None)
    if reasoning and form == "mistral":
        thought = {"type": "thinking", "thinking": [{"type": "text", "text": reasoning}]}
        text = message.get("content")
        message["content"] = [thought, {"type": "text", "text": text}] if text else [thought]
    elif reasoning and form not in _NO_REASONING:
        message["reasoning" if form in _REASONING else "reasoning_content"] = reasoning
    return {**choice, part: message}


def _usage(form: str, usage: Json, reply: SimulatedReply, *, streamed: bool) -> Json:
    usage = dict(usage)
    if form in _REASONING_BEYOND:
        usage["completion_tokens"] -= reply.reasoning_tokens
    if form == "gemini":
        del usage["completion_tokens_details"]
    if form == "deepseek":
        del usage["prompt_tokens_details"]
        usage["prompt_cache_hit_tokens"] = reply.cached_tokens
        usage["prompt_cache_miss_tokens"] = reply.input_tokens - reply.cached_tokens
    if form == "openrouter":
        usage["cost"] = _dollars(reply)
    return {"usage": None, "x_groq": {"usage": usage}} if form == "groq" and streamed else {"usage": usage}


def _dollars(reply: SimulatedReply) -> float:
    return round((reply.input_tokens + reply.output_tokens) * DOLLARS_PER_TOKEN, 9)
