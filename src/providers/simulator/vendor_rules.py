"""Requests that the vendors reject, as documented or observed. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...protocol.json_text import parse_json
from ..model import Model


def thinks(body: Mapping[str, Any], model: Model) -> bool:
    """Whether the model thinks first: always, as requested, or because thinking is not disabled."""
    switch = (body.get("thinking") or {}).get("type")
    if model.thinking == "unknown":
        return _asks_to_think(body)
    return model.thinking == "always" or (model.thinking == "switch" and switch != "disabled")


def _asks_to_think(body: Mapping[str, Any]) -> bool:
    """Whether a request asks for thinking, in any dialect."""
    switch, reasoning = body.get("thinking") or {}, body.get("reasoning") or {}
    return (
        body.get("reasoning_effort") not in (None, "none")
        or switch.get("type") in ("enabled", "adaptive")
        or bool(reasoning.get("enabled"))
        or reasoning.get("effort") not in (None, "none")
        or bool((body.get("chat_template_kwargs") or {}).get("enable_thinking"))
        or body.get("reasoning_format") is not None
    )


def _preset_rejection(form: str, body: Mapping[str, Any]) -> str | None:
    """Returns the message for fields that the vendor of a preset rejects."""
    kind = (body.get("response_format") or {}).get("type")
    earlier = {field for message in body["messages"] for field in message}
    if form == "mistral" and "stream_options" in body:
        return "body.stream_options: Extra inputs are not permitted"
    if form in ("mistral", "groq", "openai") and earlier & {"reasoning_content", "reasoning"}:
        return "property 'reasoning' of a message is unsupported"
    if form == "lmstudio" and kind == "json_object":
        return "'response_format.type' must be 'json_schema' or 'text'"
    if form == "deepseek" and kind == "json_schema":
        return "This response_format type is unavailable now"
    if form in ("openai", "groq", "deepseek") and kind == "json_object" and "json" not in str(body["messages"]).lower():
        return "'messages' must contain the word 'json' in some form"
    return None


def rejection_reason(vendor: str, body: Mapping[str, Any], model: Model) -> str | None:
    """Returns the vendor's error message, or None if the request is valid."""
    unpaired = next(_unpaired_calls(body["messages"]), None)
    if unpaired is not None:
        return "messages 参数非法。请检查文档。" if vendor == "glm" else unpaired
    if vendor == "kimi":
        return next(_kimi_rejections(body, model), None)
    return next(_glm_rejections(body), None) if vendor == "glm" else _preset_rejection(vendor, body)


def _unpaired_calls(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yields the violations of two rules: a tool result belongs to a call of the preceding assistant message, and each
    call has one result before the next other message (platform.openai.com/docs/guides/function-calling; the other
    vendors require the same).
    """
    waiting: list[str] = []
    for index, message in enumerate([*messages, {"role": "end"}]):
        if message.get("role") == "tool":
            call_id = str(message.get("tool_call_id"))
            if call_id not in waiting:
                yield f"messages[{index}]: tool_call_id {call_id} is not a call of the preceding assistant message"
                return
            waiting.remove(call_id)
            continue
        if waiting:
            yield (
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(waiting)}"
            )
            return
        waiting = [str(call.get("id")) for call in message.get("tool_calls") or ()]


def _kimi_rejections(body: Mapping[str, Any], model: Model) -> Iterator[str]:
    """platform.kimi.ai/docs/guide/use-kimi-k2-thinking-model and …/use-web-search."""
    thinking = thinks(body, model)
    if "thinking" in body and "reasoning_effort" in body:
        yield "cannot specify both 'thinking' and 'reasoning_effort'"
    if thinking and any(tool.get("type") == "builtin_function" for tool in body.get("tools") or ()):
        yield "builtin function $web_search is incompatible with thinking enabled"
    if thinking and body.get("tool_choice") == "required" and not model.efforts:
        yield "tool_choice 'required' is incompatible with thinking enabled"
    for index, message in enumerate(body["messages"]):
        if thinking and message.get("tool_calls") and not message.get("reasoning_content"):
            lacks = "thinking is enabled but reasoning_content is missing in assistant tool call message"
            yield f"{lacks} at index {index}"
        if message.get("role") == "tool" and message.get("name") == "$web_search" and not _is_echo(message):
            yield f"the arguments of $web_search did not come back as they were at index {index}"


def _glm_rejections(body: Mapping[str, Any]) -> Iterator[str]:
    """docs.bigmodel.cn/api-reference, 对话补全."""
    if (body.get("response_format") or {}).get("type") == "json_schema":
        yield "response_format 参数非法。请检查文档。"
    for tool in body.get("tools") or ():
        if tool.get("type") == "web_search" and not (tool.get("web_search") or {}).get("search_engine"):
            yield "search_engine:The search_engine cannot both be empty."


def _is_echo(message: Mapping[str, Any]) -> bool:
    try:
        arguments: Any = parse_json(str(message.get("content")))
        return str(arguments["search_result"]["search_id"]).startswith("sim-")
    except (ValueError, LookupError, TypeError):
        return False
