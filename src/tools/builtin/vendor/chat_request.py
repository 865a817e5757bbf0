"""The request of a chat whose caller sends all messages."""

from collections.abc import Iterator
from functools import partial

from ....providers import CompletionRequest, FunctionTool, Message, TextPart, WebSearch
from ...completions import (
    IMAGE_TOKENS,
    ModelChoice,
    ModelQuestion,
    ModelRequirements,
    estimate_tokens,
    max_prompt_tokens,
    messages_in_language,
    nearest_thinking,
    select_model,
    supported_question,
    too_long,
)
from ...tool_context import ToolContext
from .chat_messages import images_in


def chat_request(
    messages: tuple[Message, ...], options: ModelQuestion, context: ToolContext
) -> tuple[ModelChoice, CompletionRequest]:
    """Returns the model and the request. The messages get an instruction if the operator set a language.

    The conversation is never shortened. The prompt of ``options`` is not used.

    Raises:
        InvalidArgumentsError, ContextLengthExceededError, ServiceUnavailableError: as raised by ``ask``.
    """
    options = supported_question(options, context)
    messages = messages_in_language(messages, context.daemon.locale)
    images = [image.url for message in messages for image in images_in(message.content)]
    requirements = ModelRequirements(
        tokens=estimate_tokens(_texts(messages, options.tools)) + len(images) * IMAGE_TOKENS,
        max_tokens=options.max_tokens,
        images=bool(images),
        image_urls=any(url.startswith("https:") for url in images),
        thinking=options.thinking,
        tools=bool(options.tools),
        web_search=options.web_search,
        structured=options.response_format is not None,
        temperature=options.temperature is not None,
        provider=options.provider,
    )
    choice, usable = select_model(options.model, requirements, context, partial(max_prompt_tokens, question=options))
    window = choice.model.context_window
    if window is not None and requirements.window > window:
        raise too_long(choice.model, requirements, usable)
    request = CompletionRequest(
        model=choice.model,
        messages=messages,
        temperature=options.temperature,
        max_tokens=options.max_tokens,
        tools=(*options.tools, WebSearch()) if options.web_search else options.tools,
        tool_choice=options.tool_choice,
        thinking=nearest_thinking(choice.model, options.thinking),
        response_format=options.response_format,
        cache_key=options.cache_key,
    )
    return choice, request


def _texts(messages: tuple[Message, ...], functions: tuple[FunctionTool, ...]) -> Iterator[str]:
    """Yields all texts that count towards the prompt's tokens."""
    for message in messages:
        if isinstance(message.content, str):
            yield message.content
        else:
            yield from (part.text for part in message.content if isinstance(part, TextPart))
        yield message.reasoning
        yield from (call.name + call.arguments for call in message.tool_calls)
    yield from (f"{function.name} {function.description} {function.parameters}" for function in functions)
