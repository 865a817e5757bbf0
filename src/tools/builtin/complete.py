"""``complete``: one completion of the caller's messages, in OpenAI's format. ``POST /v1/chat/completions`` calls it."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Final, Literal, cast

from pydantic import Field, WithJsonSchema

from ...protocol.error_codes import InvalidArgumentsError
from ...providers import (
    Completion,
    CompletionRequest,
    Depth,
    JsonFormat,
    Message,
    VendorObjectNotFoundError,
    functions_wanted,
)
from ..completions import (
    MAX_FALLBACKS,
    CompletionLoop,
    ModelChoice,
    ModelQuestion,
    asking,
    attempts_data,
    depth_notice,
    first_answer,
    select_models,
    unlisted_model,
)
from ..completions import complete as run_completion
from ..tool import Arguments, ToolOutput, tool
from ..tool_context import ToolContext
from .chat import TIMEOUT_S
from .vendor.chat_messages import ChatMessage, parse_messages
from .vendor.chat_request import chat_request
from .vendor.function_definitions import FunctionDefinitions, ToolChoiceArgument, offered

_DEPTHS: Final[Mapping[str, Depth]] = {"none": "minimal", "xhigh": "max"}
"""OpenAI's names of reasoning efforts that differ from the names of thinking depths."""


class SchemaFormat(Arguments):
    """The schema of a ``response_format``."""

    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")
    description: str | None = None
    schema_: dict[str, Any] | None = Field(default=None, alias="schema")
    strict: bool | None = None


class ResponseFormat(Arguments):
    """A ``response_format``."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: SchemaFormat | None = None


class CompleteArguments(Arguments):
    """A request in OpenAI's format (platform.openai.com/docs/api-reference/chat/create)."""

    messages: Annotated[list[ChatMessage], Field(min_length=1, max_length=1000), WithJsonSchema({"type": "array"})] = (
        Field(description="The conversation in OpenAI's format. A tool message must follow each tool call.")
    )
    model: str | None = Field(default=None, description="Model id, alias or PROVIDER/MODEL (see listmodels), or auto.")
    tools: Annotated[FunctionDefinitions, WithJsonSchema({"type": "array"})] = Field(
        default=[], description="Functions that the model may call; you run them."
    )
    tool_choice: Annotated[ToolChoiceArgument, WithJsonSchema({"type": ["string", "object"]})] = Field(
        default=None, description="auto, none, required, or the function to call."
    )
    parallel_tool_calls: bool | None = Field(
        default=None, description="Whether the model may call several functions at once."
    )
    response_format: Annotated[ResponseFormat | None, WithJsonSchema({"type": "object"})] = Field(
        default=None, description="json_object, or json_schema with a schema."
    )
    temperature: float | None = Field(default=None, ge=0, le=2, description="0 is the most deterministic.")
    top_p: float | None = Field(default=None, ge=0, le=1, description="Nucleus sampling.")
    max_completion_tokens: int | None = Field(
        default=None, ge=1, description="Maximum tokens of the answer, thinking included."
    )
    stop: Annotated[str | list[str] | None, WithJsonSchema({"type": ["string", "array"]})] = Field(
        default=None, description="Texts at which the answer ends."
    )
    seed: int | None = Field(default=None, description="For reproducible answers.")
    presence_penalty: float | None = Field(default=None, ge=-2, le=2, description="Favours new topics.")
    frequency_penalty: float | None = Field(default=None, ge=-2, le=2, description="Avoids repetition.")
    logit_bias: dict[str, float] | None = Field(default=None, description="Bias per token.")
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = Field(
        default=None, description="How deeply to think."
    )
    thinking: bool | None = Field(default=None, description="Whether to think, for models with only a switch.")
    verbosity: Literal["low", "medium", "high"] | None = Field(default=None, description="The length of the answer.")
    service_tier: str | None = Field(default=None, description="The vendor's class of service.")
    prompt_cache_key: str | None = Field(default=None, description="One key per common beginning of prompts.")
    fallback: Annotated[list[str], Field(max_length=MAX_FALLBACKS)] | None = Field(
        default=None,
        description="Models to ask if the first fails before its answer begins; [] for none.",
    )


_UNCHANGED: Final = (
    *("parallel_tool_calls", "top_p", "stop", "seed", "presence_penalty", "frequency_penalty", "logit_bias"),
    *("verbosity", "service_tier"),
)
"""Arguments that are sent unchanged; the vendor validates them."""


@tool("complete", read_only=True, open_world=True, timeout_s=TIMEOUT_S)
async def complete(arguments: CompleteArguments, context: ToolContext) -> ToolOutput:
    """Make one completion of messages in OpenAI's format, with any model. This tool is for programs; `chat` reads files
    and keeps conversations.

    `structured.message` is the model's message, with its `tool_calls`, which you run.
    """
    messages = parse_messages(arguments.messages)

    requests: dict[str, CompletionRequest] = {}

    def prepare(name: str | None) -> ModelChoice:
        choice, request = _request(arguments, messages, name, context)
        context.capabilities(choice.model.provider)  # raises if the provider is not configured
        requests[choice.model.id] = request
        return choice

    first = prepare(arguments.model)
    configured = context.daemon.fallback(context.tool_name, first.model.provider)
    models = select_models(first, arguments.fallback, configured, prepare)

    async def attempt(choice: ModelChoice, on_start: Callable[[], None] | None) -> tuple[ModelChoice, CompletionLoop]:
        request, model = requests[choice.model.id], choice.model
        context.progress(asking(choice))
        try:
            loop = await run_completion(
                request, context, model_choice_reason=choice.reason, pieces=True, on_start=on_start
            )
        except VendorObjectNotFoundError as error:
            raise unlisted_model(error, model, context.daemon.catalog) from error
        return choice, loop

    (choice, loop), failed = await first_answer(models, attempt, context)
    request = requests[choice.model.id]
    completion = loop.completion
    data: dict[str, Any] = {
        "model": completion.model,
        "provider": choice.model.provider,
        "message": _message(completion),
        "finish_reason": completion.finish_reason,
        **attempts_data(failed),
    }
    if request.thinking and (notice := depth_notice(choice.model, _thinking(arguments), request.thinking)):
        data["notice"] = notice
    calls = [f"{choice.model.id} calls {call.name}({call.arguments})" for call in functions_wanted(completion)]
    return ToolOutput("\n\n".join(filter(None, (completion.text, *calls))) or f"({completion.finish_reason})", data)


def _request(
    arguments: CompleteArguments, messages: tuple[Message, ...], name: str | None, context: ToolContext
) -> tuple[ModelChoice, CompletionRequest]:
    """Returns the model with this name, and the request to it. Raises as ``chat_request`` does."""
    functions, tool_choice = offered(arguments.tools, arguments.tool_choice)
    options = ModelQuestion(
        "",
        model=name,
        tools=functions,
        tool_choice=tool_choice,
        thinking=_thinking(arguments),
        temperature=arguments.temperature,
        max_tokens=arguments.max_completion_tokens,
        response_format=_json_format(arguments.response_format),
        cache_key=arguments.prompt_cache_key,
    )
    choice, request = chat_request(messages, options, context)
    fields = {field: value for field in _UNCHANGED if (value := getattr(arguments, field)) is not None}
    return choice, replace(request, fields=fields)


def _thinking(arguments: CompleteArguments) -> bool | Depth | None:
    effort = arguments.reasoning_effort
    return arguments.thinking if effort is None else _DEPTHS.get(effort, cast("Depth", effort))


def _json_format(requested: ResponseFormat | None) -> JsonFormat | None:
    if requested is None or requested.type == "text":
        return None
    if requested.type == "json_object":
        return JsonFormat()
    if requested.json_schema is None:
        problem = "json_schema needs json_schema, with a name and a schema"
        raise InvalidArgumentsError(
            f"response_format: {problem}.", details={"fields": {"response_format.json_schema": problem}}
        )
    form = requested.json_schema
    return JsonFormat(form.schema_ or {"type": "object"}, form.name, form.strict)


def _message(completion: Completion) -> dict[str, Any]:
    """Returns the model's message in OpenAI's format. The caller sends it back with the next request."""
    message: dict[str, Any] = {"role": "assistant", "content": completion.text or None}
    if completion.reasoning:
        message["reasoning_content"] = completion.reasoning
    if calls := functions_wanted(completion):
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
                **({} if call.extra_content is None else {"extra_content": call.extra_content}),
            }
            for call in calls
        ]
    return message
