"""``kimi_capture_headers``: Kimi's response headers and the use of its context cache."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Final

from pydantic import Field, WithJsonSchema, model_validator

from ...completions import ModelQuestion, complete, prepared
from ...former_arguments import FormerNames
from ...tool import Arguments, ToolOutput, tool
from ...tool_context import ToolContext
from ..chat import TIMEOUT_S
from .chat_messages import ChatMessages, parse_messages
from .chat_request import chat_request

ANSWER_TOKENS: Final = 64
"""The maximum length of the answer, whose text is not needed."""


class KimiCaptureHeadersArguments(Arguments):
    """A small prompt, or messages."""

    ignored_arguments: ClassVar[Mapping[str, str]] = {
        "call_key": "a repeated request id gets the stored answer; no key is sent to the vendor",
        "tool_name": "cache_key now names the cache",
    }

    prompt: str = Field(
        default="Answer with OK.", min_length=1, description="The prompt. Its answer is cut at 64 tokens."
    )
    messages: Annotated[ChatMessages | None, WithJsonSchema({"anyOf": [{"type": "array"}, {"type": "string"}]})] = (
        Field(default=None, description="A conversation as in kimi_chat_with_tools, in place of prompt and system.")
    )
    system: str | None = Field(default=None, description="The common beginning of prompts, which is cached.")
    model: str | None = Field(default=None, description="A Kimi model, or auto for the cheapest suitable one.")
    temperature: float | None = Field(default=None, ge=0, le=1, description="0 is the most deterministic.")
    cache_key: Annotated[str | None, FormerNames("session_id")] = Field(
        default=None,
        min_length=1,
        description="Sent as prompt_cache_key. Use one key per common beginning of prompts.",
    )

    @model_validator(mode="after")
    def _prompt_or_messages(self) -> "KimiCaptureHeadersArguments":
        if self.messages is not None and not self.model_fields_set.isdisjoint({"prompt", "system"}):
            raise ValueError("give messages, or prompt and system")
        return self


@tool("kimi_capture_headers", read_only=True, open_world=True, timeout_s=TIMEOUT_S)
async def kimi_capture_headers(arguments: KimiCaptureHeadersArguments, context: ToolContext) -> ToolOutput:
    """Make one small Kimi completion and show the request's fields, the response headers and the cached tokens. Account
    identifiers are redacted. Call it twice to see the context cache work.
    """
    question = ModelQuestion(
        arguments.prompt,
        system=arguments.system,
        model=arguments.model,
        provider="kimi",
        temperature=arguments.temperature,
        max_tokens=ANSWER_TOKENS,
        cache_key=arguments.cache_key,
    )
    if arguments.messages is None:
        choice, request, _ = await prepared(question, context)
    else:
        choice, request = chat_request(parse_messages(arguments.messages), question, context)
    body = context.capabilities("kimi").preview(request)
    completion = (await complete(request, context, model_choice_reason=choice.reason, stream=False)).completion
    usage = completion.usage
    data: dict[str, Any] = {
        "model": completion.model,
        "provider": "kimi",
        "request": {key: value for key, value in body.items() if key != "messages"},
        "headers": dict(completion.headers),
        "input_tokens": usage.input_tokens if usage else None,
        "cached_tokens": usage.cached_tokens if usage else None,
    }
    if choice.reason:
        data["model_choice_reason"] = choice.reason
    lines = [f"{name}: {value}" for name, value in completion.headers.items()]
    if usage:
        lines.append(f"{usage.cached_tokens:,} of {usage.input_tokens:,} input tokens came from the cache")
    return ToolOutput("\n".join(lines), data)
