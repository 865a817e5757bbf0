"""``kimi_capture_headers``: what Kimi says of its context cache beside an answer."""

from typing import Any, Final

from pydantic import Field

from ...completions import ModelQuestion, complete, prepared
from ...tool import Answer, Arguments, tool
from ...tool_context import ToolContext
from ..chat import TIMEOUT_S

ANSWER_TOKENS: Final = 64
"""Bound on the answer, which nobody wants: what is paid for is mostly the question."""


class KimiCaptureHeadersArguments(Arguments):
    """A small question."""

    prompt: str = Field(default="Answer with OK.", min_length=1, description="The question; its answer is cut short.")
    system: str | None = Field(default=None, description="What questions begin with alike: the part that is cached.")
    model: str | None = Field(default=None, description="A Kimi model, or auto for the cheapest; else the default one.")
    cache_key: str | None = Field(
        default=None, min_length=1, description="Sent as prompt_cache_key: the same for questions that begin alike."
    )


@tool("kimi_capture_headers", read_only=True, open_world=True, timeout_s=TIMEOUT_S)
async def kimi_capture_headers(arguments: KimiCaptureHeadersArguments, context: ToolContext) -> Answer:
    """Make one small completion with Kimi and show what bears on its context cache: the request's fields, the answer's
    headers and the tokens that came from the cache. What names the account is taken out. Ask twice to see the cache.
    """
    question = ModelQuestion(
        arguments.prompt,
        system=arguments.system,
        model=arguments.model,
        provider="kimi",
        max_tokens=ANSWER_TOKENS,
        cache_key=arguments.cache_key,
    )
    choice, request, _ = await prepared(question, context)
    body = context.abilities("kimi").preview(request)
    completion = (await complete(request, context, chosen_because=choice.because, stream=False)).completion
    usage = completion.usage
    data: dict[str, Any] = {
        "model": completion.model,
        "provider": "kimi",
        "request": {key: value for key, value in body.items() if key != "messages"},
        "headers": dict(completion.headers),
        "input_tokens": usage.input_tokens if usage else None,
        "cached_tokens": usage.cached_tokens if usage else None,
    }
    if choice.because:
        data["chosen_because"] = choice.because
    lines = [f"{name}: {value}" for name, value in completion.headers.items()]
    if usage:
        lines.append(f"{usage.cached_tokens:,} of the question's {usage.input_tokens:,} tokens came from the cache")
    return Answer("\n".join(lines), data)
