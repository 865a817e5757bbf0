"""``kimi_chat_with_tools``: chat with a Kimi model that may call functions, which the caller runs."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from pydantic import Field

from ....protocol.json_text import InvalidJsonError, parse_json
from ....providers import CompletionRequest, Depth, Message, TextPart, ToolInvocation, WebSearch, functions_wanted
from ...completions import (
    IMAGE_TOKENS,
    ModelChoice,
    ModelQuestion,
    ModelRequirements,
    QuestionResult,
    complete,
    estimate_tokens,
    max_prompt_tokens,
    nearest_thinking,
    select_model,
    too_long,
)
from ...tool import Arguments, ToolOutput, tool
from ...tool_context import ToolContext
from ..chat import TIMEOUT_S
from .chat_messages import ChatMessage, images_in, new_turns, parse_messages
from .function_definitions import FunctionDefinitions


class KimiChatWithToolsArguments(Arguments):
    """A conversation and function definitions."""

    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=1000)] | str = Field(
        description="The conversation, or one prompt. A tool message with its result must follow each tool call."
    )
    tools: FunctionDefinitions = Field(default=[], description="Functions that the model may call.")
    web_search: bool = Field(default=False, description="Let Kimi search the web; excludes thinking.")
    model: str | None = Field(default=None, description="A Kimi model, or auto for the cheapest suitable one.")
    thinking: bool | Depth | None = Field(default=None, description="Whether to think first, or how deeply.")
    temperature: float | None = Field(default=None, ge=0, le=1, description="0 is the most deterministic.")
    max_tokens: int | None = Field(default=None, ge=1, description="Maximum tokens of the answer, thinking included.")

    @property
    def conversation(self) -> list[ChatMessage]:
        if isinstance(self.messages, str):
            return [ChatMessage(role="user", content=self.messages)]
        return self.messages


@tool("kimi_chat_with_tools", read_only=True, open_world=True, timeout_s=TIMEOUT_S)
async def kimi_chat_with_tools(arguments: KimiChatWithToolsArguments, context: ToolContext) -> ToolOutput:
    """Chat with a Kimi model that may call your functions. `tool_calls` lists the calls; you run them. To continue,
    send your messages, the messages in `append`, and one tool message per result.

    Makes one completion, and with web_search one more per search.
    """
    messages = parse_messages(arguments.conversation)
    choice, request = _prepare(arguments, messages, context)
    context.progress(f"asking {choice.model.id}")
    loop = await complete(request, context, model_choice_reason=choice.reason)
    completion = loop.completion
    calls = functions_wanted(completion)
    answer = QuestionResult(
        completion,
        choice.model,
        loop.completions,
        choice.reason,
        thinking=request.thinking,
        thinking_requested=arguments.thinking,
    )
    data = {"text": completion.text, **answer.data()}
    data["tool_calls"] = [{"id": call.id, "name": call.name, "arguments": _decoded_arguments(call)} for call in calls]
    data["append"] = _vendor_messages(new_turns(messages, loop), request, context)
    listed = "\n".join(f"{choice.model.id} calls {call.name}({call.arguments})" for call in calls)
    return ToolOutput("\n\n".join(filter(None, (completion.text, listed))) or answer.text, data)


def _prepare(
    arguments: KimiChatWithToolsArguments, messages: tuple[Message, ...], context: ToolContext
) -> tuple[ModelChoice, CompletionRequest]:
    """Returns the model and the request. The conversation is never shortened.

    Raises:
        InvalidArgumentsError, ContextLengthExceededError, ServiceUnavailableError: for the same reasons as ``ask``.
    """
    functions = tuple(definition.tool for definition in arguments.tools)
    images = [image.url for message in messages for image in images_in(message.content)]
    requirements = ModelRequirements(
        tokens=estimate_tokens(_texts(messages, arguments)) + len(images) * IMAGE_TOKENS,
        max_tokens=arguments.max_tokens,
        images=bool(images),
        image_urls=any(url.startswith("https:") for url in images),
        thinking=arguments.thinking,
        tools=bool(functions),
        web_search=arguments.web_search,
        temperature=arguments.temperature is not None,
        provider="kimi",
    )
    limits = ModelQuestion("", thinking=arguments.thinking, max_tokens=arguments.max_tokens)
    choice, usable = select_model(arguments.model, requirements, context, partial(max_prompt_tokens, question=limits))
    if requirements.window > choice.model.context_window:
        raise too_long(choice.model, requirements, usable)
    request = CompletionRequest(
        model=choice.model,
        messages=messages,
        temperature=arguments.temperature,
        max_tokens=arguments.max_tokens,
        tools=(*functions, WebSearch()) if arguments.web_search else functions,
        thinking=nearest_thinking(choice.model, arguments.thinking),
    )
    return choice, request


def _texts(messages: tuple[Message, ...], arguments: KimiChatWithToolsArguments) -> Iterator[str]:
    """Yields all texts that count towards the prompt's tokens."""
    for message in messages:
        if isinstance(message.content, str):
            yield message.content
        else:
            yield from (part.text for part in message.content if isinstance(part, TextPart))
        yield message.reasoning
        yield from (call.name + call.arguments for call in message.tool_calls)
    yield from (definition.model_dump_json() for definition in arguments.tools)


def _decoded_arguments(call: ToolInvocation) -> Any:
    """Returns the arguments decoded from JSON, or as text if they are not JSON."""
    try:
        return parse_json(call.arguments)
    except InvalidJsonError:
        return call.arguments


def _vendor_messages(
    messages: tuple[Message, ...], request: CompletionRequest, context: ToolContext
) -> list[dict[str, Any]]:
    body = context.capabilities("kimi").preview(replace(request, messages=messages))
    formatted: list[dict[str, Any]] = body["messages"]
    return formatted
