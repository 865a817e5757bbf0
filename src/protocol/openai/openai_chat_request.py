"""``POST /v1/chat/completions``: a request in OpenAI's format → the arguments of the tool ``complete``. Pure.

The arguments have the names of OpenAI's fields, so the tool's errors name the client's fields. This module handles only
fields that concern the transport or have another form in toold; unknown fields are refused with the tool's arguments.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from .openai_body import model_name
from .openai_error import OpenAIProblem, invalid

IGNORED: Final = frozenset({"user", "safety_identifier", "metadata", "prompt_cache_retention"})
"""Fields that are accepted but not sent. They describe the caller to the vendor, or control the vendor's storage."""

_UNSUPPORTED: Final[Mapping[str, str]] = {
    "functions": "functions is obsolete; use tools",
    "function_call": "function_call is obsolete; use tool_choice",
    "logprobs": "log probabilities are not returned; omit it",
    "top_logprobs": "log probabilities are not returned; omit it",
    "audio": "answers are text; omit it",
    "prediction": "predicted outputs are not supported; omit it",
    "web_search_options": "web search is not supported here; the tool chat has it",
    "store": "completions are not stored; omit it",
}
"""OpenAI's fields that are refused unless they are empty, with the advice."""

_OF_SDKS: Final = frozenset({"annotations", "parsed", "parsed_arguments"})
"""Fields of answers that OpenAI's SDKs send back with the next request."""


class ChatRequest(msgspec.Struct, frozen=True):
    """One parsed request."""

    arguments: dict[str, Any]
    """The arguments of the tool ``complete``."""
    model: str
    """The name that the client sent."""
    stream: bool = False
    include_usage: bool = False
    """Whether the stream ends with the token usage."""


def parse_chat(body: Any) -> ChatRequest | OpenAIProblem:
    """Parses a decoded body."""
    if not isinstance(body, dict):
        return invalid(None, "The body must be a JSON object with model and messages.")
    fields = {name: value for name, value in body.items() if value is not None and name not in IGNORED}
    model = model_name(fields)
    if isinstance(model, OpenAIProblem):
        return model
    stream, options = fields.pop("stream", False), fields.pop("stream_options", {})
    if not isinstance(stream, bool):
        return invalid("stream", "stream must be true or false.")
    if not isinstance(options, dict) or not isinstance(options.get("include_usage", False), bool | None):
        return invalid("stream_options", "stream_options must be an object; include_usage in it is true or false.")
    problem = _convert(fields)
    if problem is not None:
        return problem
    return ChatRequest(fields, model, stream, stream and options.get("include_usage") is True)


def _convert(fields: dict[str, Any]) -> OpenAIProblem | None:
    """Converts the fields that have another form in toold, in place."""
    count = fields.pop("n", 1)
    if count != 1 or isinstance(count, bool):
        return invalid("n", "n must be 1: send one request for each answer.", code="unsupported_value")
    if fields.get("modalities") == ["text"]:
        del fields["modalities"]
    for name, advice in _UNSUPPORTED.items():
        if fields.pop(name, None):
            return invalid(name, f"{name}: {advice}.", code="unsupported_parameter")
    if "max_tokens" in fields:
        limit = fields.pop("max_tokens")
        if fields.setdefault("max_completion_tokens", limit) != limit:
            return invalid("max_tokens", "max_tokens and max_completion_tokens differ; send one of them.")
    thinking = fields.get("thinking")
    if isinstance(thinking, dict) and thinking.keys() == {"type"} and thinking["type"] in {"enabled", "disabled"}:
        fields["thinking"] = thinking["type"] == "enabled"
    if isinstance(messages := fields.get("messages"), list):
        fields["messages"] = [_message(item) if isinstance(item, dict) else item for item in messages]
    if isinstance(tools := fields.get("tools"), list):
        fields["tools"] = [_function_of(item) if isinstance(item, dict) else item for item in tools]
    return None


def _message(message: dict[str, Any]) -> dict[str, Any]:
    """Converts a message. OpenAI's SDKs send the model's messages back with fields that belong to answers."""
    written = {name: value for name, value in message.items() if value is not None and value != []}
    for name in _OF_SDKS:
        written.pop(name, None)
    if written.get("role") == "developer":  # a newer name, which other vendors do not know
        written["role"] = "system"
    if "refusal" in written and written.get("role") == "assistant":
        written.setdefault("content", written.pop("refusal"))
    if isinstance(calls := written.get("tool_calls"), list):
        written["tool_calls"] = [_function_of(call) if isinstance(call, dict) else call for call in calls]
    return written


def _function_of(item: dict[str, Any]) -> dict[str, Any]:
    """Returns a function call, or the definition of a function, without the fields that SDKs add for themselves."""
    written = {name: value for name, value in item.items() if value is not None and name != "index"}
    if isinstance(function := item.get("function"), dict):
        written["function"] = {
            name: value for name, value in function.items() if value is not None and name not in _OF_SDKS
        }
    return written
