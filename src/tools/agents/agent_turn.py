"""The hidden tool ``agent_turn``, which makes each turn of a role a child call of its run."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from ...providers import CompletionRequest, FunctionTool, Model, ToolChoice
from ..completions import ModelChoice, complete, first_answer, nearest_thinking, select_models
from ..tool import Arguments, ToolOutput, tool
from ..tool_context import ToolContext
from .agent_definition import Role
from .agent_messages import TurnAnswer, images_of, messages_of, turn_answer
from .agent_snapshot import OfferedFunction, RoleSnapshot, select_role_model

TURN_TIMEOUT_S: Final = 900.0
"""The timeout of one turn, within the run's remaining time. A model that thinks may need 300 s per attempt."""


class TurnFunction(Arguments):
    """A function that a turn offers the model."""

    name: str
    description: str = ""
    parameters: dict[str, Any]
    """A JSON Schema."""


class TurnArguments(Arguments):
    """One turn: the role and all messages so far. The rest of the request is in the run's snapshot."""

    agent: str
    role: str
    messages: list[dict[str, Any]]
    last: bool = False
    """Whether the model may call no more tools."""
    functions: list[TurnFunction] | None = None
    """The functions that a custom agent's code offers the model; None: the role's functions."""
    temperature: float | None = None
    max_tokens: int | None = None
    """Replaces the role's setting, like ``temperature``."""


async def run_turn(
    role: Role,
    snapshot: RoleSnapshot,
    cache_key: str,
    fallback: tuple[str, ...] | None,
    images: tuple[str, ...],
    arguments: TurnArguments,
    context: ToolContext,
) -> ToolOutput:
    """Asks the role's model for its next answer. ``images`` are the images of the run's message.

    Raises:
        CallError: as raised by ``ask_role_model``.
    """
    offered = snapshot.functions if arguments.functions is None else arguments.functions
    tools = tuple(FunctionTool(each.name, each.description, each.parameters) for each in offered)
    choice: ToolChoice | None = "none" if arguments.last and tools else None
    messages = messages_of(arguments.messages, images)
    shown = images_of(arguments.messages, images)

    def request(model: Model) -> CompletionRequest:
        return CompletionRequest(
            model=model,
            messages=messages,
            temperature=role.temperature if arguments.temperature is None else arguments.temperature,
            max_tokens=role.max_tokens if arguments.max_tokens is None else arguments.max_tokens,
            tools=tools,
            tool_choice=choice,
            thinking=nearest_thinking(model, role.thinking),
            cache_key=cache_key,
        )

    answer = await ask_role_model(role, snapshot, snapshot.functions, fallback, request, context, shown)
    return ToolOutput(answer.text, msgspec.to_builtins(answer))


async def ask_role_model(
    role: Role,
    snapshot: RoleSnapshot,
    functions: tuple[OfferedFunction, ...],
    fallback: tuple[str, ...] | None,
    request: Callable[[Model], CompletionRequest],
    context: ToolContext,
    images: tuple[str, ...] = (),
) -> TurnAnswer:
    """Sends the request, which has ``images``, to the role's model. If it fails before its answer begins, the models of
    ``fallback`` follow, or if that is None, the provider's fallbacks.

    Raises:
        CallError: the vendor failed, or the model is no longer available.
    """

    def select(name: str) -> ModelChoice:
        selected = select_role_model(name, role, functions, context, images)
        context.capabilities(selected.model.provider)  # raises if the provider is not configured
        return selected

    async def attempt(asked: ModelChoice, on_start: Callable[[], None] | None) -> TurnAnswer:
        completed = await complete(request(asked.model), context, model_choice_reason=asked.reason, on_start=on_start)
        return turn_answer(completed.completion, asked.reason)

    first = ModelChoice(context.daemon.catalog.resolve(snapshot.model))
    configured = context.daemon.fallback(context.tool_name, first.model.provider) if fallback is None else fallback
    answer, _ = await first_answer(select_models(first, None, configured, select), attempt, context)
    return answer


@tool("agent_turn", read_only=True, open_world=True, timeout_s=TURN_TIMEOUT_S)
async def agent_turn(_arguments: TurnArguments, _context: ToolContext) -> ToolOutput:
    """Ask the model of an agent's role for its next answer or its next tool calls."""
    raise NotImplementedError  # a run replaces this function with one that has its snapshot
