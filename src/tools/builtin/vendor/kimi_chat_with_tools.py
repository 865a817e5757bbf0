"""``kimi_chat_with_tools``: a conversation in which a Kimi model may ask for functions that the caller runs."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from pydantic import Field

from ....providers import CompletionRequest, Depth, Message, TextPart, ToolInvocation, WebSearch, functions_wanted
from ...completions import (
    IMAGE_TOKENS,
    ModelChoice,
    ModelQuestion,
    ModelRequirements,
    QuestionResult,
    complete,
    estimate_tokens,
    nearest,
    pick,
    room,
    too_long,
)
from ...tool import Answer, Arguments, tool
from ...tool_context import ToolContext
from ..chat import TIMEOUT_S
from .chat_messages import ChatMessage, images_in, read, said
from .function_definitions import FunctionDefinitions


class KimiChatWithToolsArguments(Arguments):
    """A conversation, and the functions."""

    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=1000)] | str = Field(
        description="The conversation, or one question. Each call of the assistant's is followed by its result."
    )
    tools: FunctionDefinitions = Field(default=[], description="Functions that the model may ask for.")
    web_search: bool = Field(default=False, description="Whether Kimi may search the web, which excludes thinking.")
    model: str | None = Field(default=None, description="A Kimi model, or auto for the cheapest; else the default one.")
    thinking: bool | Depth | None = Field(default=None, description="Whether to reason first, or how deeply.")
    temperature: float | None = Field(default=None, ge=0, le=1, description="0 is most predictable.")
    max_tokens: int | None = Field(default=None, ge=1, description="Bound on the answer, reasoning included.")

    @property
    def conversation(self) -> list[ChatMessage]:
        if isinstance(self.messages, str):
            return [ChatMessage(role="user", content=self.messages)]
        return self.messages


@tool("kimi_chat_with_tools", read_only=True, open_world=True, timeout_s=TIMEOUT_S)
async def kimi_chat_with_tools(arguments: KimiChatWithToolsArguments, context: ToolContext) -> Answer:
    """Chat with a Kimi model that may ask for functions. None is run here: `tool_calls` says what it wants. To go on,
    send your messages, those of `append`, and a message of the role tool with each result.

    One completion; with web_search one more for each search.
    """
    asked = read(arguments.conversation)
    choice, request = _prepare(arguments, asked, context)
    context.progress(f"asking {choice.model.id}")
    rounds = await complete(request, context, chosen_because=choice.because)
    completion = rounds.completion
    wanted = functions_wanted(completion)
    answer = QuestionResult(
        completion,
        choice.model,
        rounds.number,
        choice.because,
        thinking=request.thinking,
        thinking_wanted=arguments.thinking,
    )
    data = {"text": completion.text, **answer.data()}
    data["tool_calls"] = [{"id": call.id, "name": call.name, "arguments": _arguments(call)} for call in wanted]
    data["append"] = _as_the_vendor_writes(said(asked, rounds), request, context)
    calls = "\n".join(f"{choice.model.id} asks for {call.name}({call.arguments})" for call in wanted)
    return Answer("\n\n".join(filter(None, (completion.text, calls))) or answer.text, data)


def _prepare(
    arguments: KimiChatWithToolsArguments, asked: tuple[Message, ...], context: ToolContext
) -> tuple[ModelChoice, CompletionRequest]:
    """The model, and what it is asked. The conversation goes whole, or not at all.

    Raises:
        InvalidArgumentsError, ContextLengthExceededError, ServiceUnavailableError: as ``ask``.
    """
    functions = tuple(definition.tool for definition in arguments.tools)
    images = [image.url for message in asked for image in images_in(message.content)]
    need = ModelRequirements(
        tokens=estimate_tokens(_texts(asked, arguments)) + len(images) * IMAGE_TOKENS,
        max_tokens=arguments.max_tokens,
        images=bool(images),
        linked_images=any(url.startswith("https:") for url in images),
        thinking=arguments.thinking,
        tools=bool(functions),
        web_search=arguments.web_search,
        temperature=arguments.temperature is not None,
        provider="kimi",
    )
    bounds = ModelQuestion("", thinking=arguments.thinking, max_tokens=arguments.max_tokens)
    choice, usable = pick(arguments.model, need, context, partial(room, question=bounds))
    if need.window > choice.model.context_window:
        raise too_long(choice.model, need, usable)
    request = CompletionRequest(
        model=choice.model,
        messages=asked,
        temperature=arguments.temperature,
        max_tokens=arguments.max_tokens,
        tools=(*functions, WebSearch()) if arguments.web_search else functions,
        thinking=nearest(choice.model, arguments.thinking),
    )
    return choice, request


def _texts(asked: tuple[Message, ...], arguments: KimiChatWithToolsArguments) -> Iterator[str]:
    """Everything in the question that has tokens."""
    for message in asked:
        if isinstance(message.content, str):
            yield message.content
        else:
            yield from (part.text for part in message.content if isinstance(part, TextPart))
        yield message.reasoning
        yield from (call.name + call.arguments for call in message.tool_calls)
    yield from (definition.model_dump_json() for definition in arguments.tools)


def _arguments(call: ToolInvocation) -> Any:
    """What the model wrote, as data where it is JSON."""
    try:
        return json.loads(call.arguments)
    except ValueError:
        return call.arguments


def _as_the_vendor_writes(
    messages: tuple[Message, ...], request: CompletionRequest, context: ToolContext
) -> list[dict[str, Any]]:
    body = context.abilities("kimi").preview(replace(request, messages=messages))
    written: list[dict[str, Any]] = body["messages"]
    return written
