"""How a conversation goes on after a model asked for tools: what the next completion's messages are. Pure.

Kimi's built-in ``$web_search`` is such a tool: the vendor searches by itself, but only once its call comes back with
the same arguments (platform.kimi.ai/docs/guide/use-web-search). Each round is a completion of its own, which whoever
asks for it counts and pays.
"""

from collections.abc import Mapping

from .completion import Completion, Message, ToolInvocation
from .request_body import BUILTIN_PREFIX


def is_builtin(call: ToolInvocation) -> bool:
    """Whether the vendor runs this tool by itself."""
    return call.name.startswith(BUILTIN_PREFIX)


def functions_wanted(completion: Completion) -> tuple[ToolInvocation, ...]:
    """The calls that the caller has to answer; built-in ones are not among them."""
    return tuple(call for call in completion.tool_calls if not is_builtin(call))


def follow_up(
    messages: tuple[Message, ...], completion: Completion, results: Mapping[str, str] | None = None
) -> tuple[Message, ...] | None:
    """The messages to ask with next; None where the model wants no tool, so that its answer is the last one.

    The model's turn goes back whole, its reasoning too: models that think refuse it otherwise. ``results`` has what
    each function answered, by the call's id.

    Raises:
        KeyError: a function's result is missing.
    """
    if not completion.tool_calls:
        return None
    given = results or {}
    said = Message("assistant", completion.text, tool_calls=completion.tool_calls, reasoning=completion.reasoning)
    answers = (
        Message("tool", call.arguments, tool_call_id=call.id, tool_name=call.name)
        if is_builtin(call)
        else Message("tool", given[call.id], tool_call_id=call.id)
        for call in completion.tool_calls
    )
    return (*messages, said, *answers)
