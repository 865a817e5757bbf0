"""``kimi_chat_with_tools``: chat with a Kimi model that may call functions, which the caller runs."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar

from pydantic import Field

from ....protocol.json_text import InvalidJsonError, parse_json
from ....providers import CompletionRequest, Depth, Message, ToolInvocation, functions_wanted
from ...completions import ModelQuestion, QuestionResult, complete
from ...former_arguments import FormerNames
from ...tool import Arguments, ToolOutput, tool
from ...tool_context import ToolContext
from ..chat import TIMEOUT_S
from .chat_messages import ChatMessages, new_turns, parse_messages
from .chat_request import chat_request
from .function_definitions import FunctionDefinitions, ToolChoiceArgument, offered, searches


class KimiChatWithToolsArguments(Arguments):
    """A conversation and function definitions."""

    ignored_arguments: ClassVar[Mapping[str, str]] = {"stream": "chunks are sent to clients that read them"}

    messages: ChatMessages = Field(
        description="The conversation, or one prompt. A tool message with its result must follow each tool call."
    )
    tools: FunctionDefinitions = Field(default=[], description="Functions that the model may call.")
    tool_choice: ToolChoiceArgument = Field(
        default=None,
        description="Whether the model must call a function: auto, none, required, or the function to call.",
    )
    web_search: Annotated[bool, FormerNames("use_websearch")] = Field(
        default=False, description="Let Kimi search the web; excludes thinking."
    )
    model: str | None = Field(default=None, description="A Kimi model, or auto for the cheapest suitable one.")
    thinking: bool | Depth | None = Field(default=None, description="Whether to think first, or how deeply.")
    temperature: float | None = Field(default=None, ge=0, le=1, description="0 is the most deterministic.")
    max_tokens: int | None = Field(default=None, ge=1, description="Maximum tokens of the answer, thinking included.")


@tool("kimi_chat_with_tools", read_only=True, open_world=True, timeout_s=TIMEOUT_S)
async def kimi_chat_with_tools(arguments: KimiChatWithToolsArguments, context: ToolContext) -> ToolOutput:
    """Chat with a Kimi model that may call your functions. `tool_calls` lists the calls; you run them. To continue,
    send your messages, the messages in `append`, and one tool message per result.

    Makes one completion; with web_search, one more per search.
    """
    messages = parse_messages(arguments.messages)
    functions, tool_choice = offered(arguments.tools, arguments.tool_choice)
    options = ModelQuestion(
        "",
        model=arguments.model,
        provider="kimi",
        thinking=arguments.thinking,
        temperature=arguments.temperature,
        max_tokens=arguments.max_tokens,
        tools=functions,
        tool_choice=tool_choice,
        web_search=arguments.web_search or searches(arguments.tools),
    )
    choice, request = chat_request(messages, options, context)
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
    data["append"] = _vendor_messages(new_turns(request.messages, loop), request, context)
    listed = "\n".join(f"{choice.model.id} calls {call.name}({call.arguments})" for call in calls)
    return ToolOutput("\n\n".join(filter(None, (completion.text, listed))) or answer.text, data)


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
