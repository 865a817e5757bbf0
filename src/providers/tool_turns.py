"""The messages of the next completion after a model called tools. Pure.

Kimi's built-in ``$web_search`` works this way: the vendor runs the search once the call is sent back with the same
arguments (platform.kimi.ai/docs/guide/use-web-search). Each round is a separate completion, which is billed.
"""

from collections.abc import Mapping

from .completion import Completion, Message, ToolInvocation
from .request_body import BUILTIN_PREFIX


def is_builtin(name: str) -> bool:
    """Whether the vendor runs the tool with this name."""
    return name.startswith(BUILTIN_PREFIX)


def functions_wanted(completion: Completion) -> tuple[ToolInvocation, ...]:
    """Returns the calls that the caller must answer, without calls of built-in tools."""
    return tuple(call for call in completion.tool_calls if not is_builtin(call.name))


def follow_up(
    messages: tuple[Message, ...], completion: Completion, results: Mapping[str, str] | None = None
) -> tuple[Message, ...] | None:
    """Returns the messages of the next completion, or None if the model called no tool.

    Includes the model's reasoning, because thinking models reject the conversation without it. ``results`` maps call
    ids to function results.

    Raises:
        KeyError: a function's result is missing.
    """
    if not completion.tool_calls:
        return None
    known_results = results or {}
    model_turn = Message("assistant", completion.text, tool_calls=completion.tool_calls, reasoning=completion.reasoning)
    answers = (
        Message("tool", call.arguments, tool_call_id=call.id, tool_name=call.name)
        if is_builtin(call.name)
        else Message("tool", known_results[call.id], tool_call_id=call.id)
        for call in completion.tool_calls
    )
    return (*messages, model_turn, *answers)
