"""Runs a ``pydantic_ai.Agent`` as an agent's code, on toold's models and tools, with its own tools as steps.

Needs the extra ``pydantic-ai``; no other module imports it. docs/custom-agents.md describes what such an agent can do.
"""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, Final

from pydantic_ai import AbstractToolset, Agent, DeferredToolRequests, ModelRetry, RunContext, ToolDefinition, ToolReturn
from pydantic_ai.exceptions import AgentRunError, UserError
from pydantic_ai.messages import (
    InstructionPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponsePart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import CompletedStreamedResponse, Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings
from pydantic_ai.toolsets import ToolsetTool, WrapperToolset
from pydantic_ai.usage import RequestUsage
from pydantic_core import SchemaValidator, core_schema, to_json

from ...protocol.error_codes import CallError, ToolExecutionError
from ...providers import FunctionTool, Message, ToolInvocation
from .agent_context import AgentContext
from .agent_definition import Role
from .agent_messages import TurnAnswer, error_text, result_text
from .agent_snapshot import OfferedFunction
from .turn_results import MAX_RESULT_CHARS, shortened

_ANY: Final = SchemaValidator(core_schema.any_schema())
"""A validator that accepts everything: toold validates its tools' arguments itself, and the model reads the errors."""
_FINISH_REASONS: Final = {"tool_calls": "tool_call"}


async def run_agent(
    agent: Agent[Any, Any],
    context: AgentContext,
    prompt: str | None = None,
    *,
    deps: Any = None,
    role: str | None = None,
) -> Any:
    """Runs a ``pydantic_ai.Agent`` with the model and the tools of a role, and returns its output.

    ``prompt`` is by default the run's prompt; ``role`` is by default the first role. The role's prompt precedes the
    agent's instructions.

    Raises:
        CallError: the model failed, or the agent could not finish.
    """
    member = context.agent.role(role) if role is not None else context.agent.roles[0]
    places = asyncio.Semaphore(member.parallel_tools)
    own = [_StepToolset(toolset, context, places) for toolset in agent.toolsets]
    granted = _RoleToolset(context, member, places)
    try:
        with agent.override(model=_RoleModel(context, member), toolsets=[*own, granted], tools=[]):
            output = (await agent.run(context.prompt if prompt is None else prompt, deps=deps)).output
    except (AgentRunError, UserError) as error:
        message = f"The pydantic_ai.Agent of {context.agent.name} failed: {error}"
        raise ToolExecutionError(message, executed="yes", summary=type(error).__name__) from error
    if isinstance(output, DeferredToolRequests):
        raise ToolExecutionError(
            f"The pydantic_ai.Agent of {context.agent.name} deferred a tool call; use `approve` of the role instead.",
            executed="yes",
        )
    return output


def code_of_pydantic_agent(agent: Agent[Any, Any]) -> Callable[[AgentContext], Awaitable[Any]]:
    """The code of an entry point that is a ``pydantic_ai.Agent``.

    Raises:
        TypeError: the agent needs dependencies.
    """
    if agent.deps_type not in {object, type(None), AgentContext}:  # by default, object
        name = getattr(agent.deps_type, "__name__", agent.deps_type)
        raise TypeError(
            f"needs dependencies of the type {name}: name an async function that returns "
            "await run_agent(agent, context, deps=…), of toold.tools.agents.pydantic_agent"
        )

    async def run(context: AgentContext) -> Any:
        return await run_agent(agent, context, deps=context if agent.deps_type is AgentContext else None)

    return run


def installed_version() -> str:
    """The name and version of pydantic-ai."""
    return f"pydantic-ai-slim {version('pydantic-ai-slim')}"


class _RoleModel(Model):
    """The model of a role. A request is one turn."""

    def __init__(self, context: AgentContext, role: Role) -> None:
        super().__init__()
        self._context = context
        self._role = role

    @property
    def provider(self) -> None:
        return None

    @property
    def model_name(self) -> str:
        return self._context.roles[self._role.name].model

    @property
    def system(self) -> str:
        return "toold"

    @property
    def base_url(self) -> None:
        return None

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        settings, parameters = self.prepare_request(model_settings, model_request_parameters)
        wanted = settings or {}
        answer = await self._context.turn(
            self._role.name,
            [*self._first(messages, parameters), *_conversation(messages)],
            functions=[
                FunctionTool(each.name, each.description or "", each.parameters_json_schema)
                for each in (*parameters.function_tools, *parameters.output_tools)
            ],
            temperature=wanted.get("temperature"),
            max_tokens=wanted.get("max_tokens"),
            stream=True,
        )
        return _response(answer)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,  # noqa: ARG002 - pydantic-ai's signature
    ) -> AsyncGenerator[StreamedResponse]:
        """Supports agents with an event handler, which gets the events when the turn has ended."""
        response = await self.request(messages, model_settings, model_request_parameters)
        yield CompletedStreamedResponse(response, model_request_parameters=model_request_parameters, replay_events=True)

    def _first(self, messages: Sequence[ModelMessage], parameters: ModelRequestParameters) -> Iterator[Message]:
        """The messages before the run's own: a message with all instructions, and the conversation's earlier turns."""
        systems = [
            part.content
            for message in messages
            if isinstance(message, ModelRequest)
            for part in message.parts
            if isinstance(part, SystemPromptPart)
        ]
        instructions = InstructionPart.join(parameters.instruction_parts or [])
        texts = [self._context.roles[self._role.name].prompt, *systems, instructions]
        system = "\n\n".join(text for text in texts if text)
        if system:
            yield Message("system", system)
        for turn in self._context.history:
            yield Message(turn.role, turn.text)


def _conversation(messages: Sequence[ModelMessage]) -> Iterator[Message]:
    """The messages of a run, without instructions."""
    for message in messages:
        if isinstance(message, ModelResponse):
            yield _answer(message)
            continue
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                yield Message("user", _text(part.content))
            elif isinstance(part, ToolReturnPart):
                text = shortened(part.model_response_str(), MAX_RESULT_CHARS)
                yield Message("tool", text, tool_call_id=part.tool_call_id, tool_name=part.tool_name)
            elif not isinstance(part, SystemPromptPart):
                yield _retry(part)


def _retry(part: Any) -> Message:
    """The message about a mistake of the model, in its text or in one of its tool calls."""
    if not hasattr(part, "model_response"):
        raise UserError(f"toold's models cannot take a {type(part).__name__}")
    text: str = part.model_response()
    if getattr(part, "tool_name", None) is None:
        return Message("user", text)
    return Message("tool", text, tool_call_id=part.tool_call_id, tool_name=part.tool_name)


def _answer(response: ModelResponse) -> Message:
    texts = [part.content for part in response.parts if isinstance(part, TextPart)]
    thoughts = [part.content for part in response.parts if isinstance(part, ThinkingPart)]
    calls = tuple(
        ToolInvocation(part.tool_call_id, part.tool_name, part.args if isinstance(part.args, str) else "{}")
        for part in response.parts
        if isinstance(part, ToolCallPart)
    )
    return Message("assistant", "".join(texts), tool_calls=calls, reasoning="".join(thoughts))


def _text(content: Any) -> str:
    parts = [content] if isinstance(content, str) else list(content)
    texts = [part if isinstance(part, str) else getattr(part, "content", None) for part in parts]
    if not all(isinstance(text, str) for text in texts):
        raise UserError("toold's turns take text only")
    return "\n".join(str(text) for text in texts)


def _response(answer: TurnAnswer) -> ModelResponse:
    parts: list[ModelResponsePart] = []
    if answer.reasoning:
        parts.append(ThinkingPart(answer.reasoning))
    if answer.text:
        parts.append(TextPart(answer.text))
    parts += [ToolCallPart(call.name, call.arguments or "{}", tool_call_id=call.id) for call in answer.calls]
    usage = RequestUsage()
    if answer.usage is not None:
        usage = RequestUsage(
            input_tokens=answer.usage.input_tokens,
            output_tokens=answer.usage.output_tokens,
            cache_read_tokens=answer.usage.cached_tokens,
        )
    reason: Any = _FINISH_REASONS.get(answer.finish_reason, answer.finish_reason)
    return ModelResponse(parts=parts, usage=usage, model_name=answer.model, finish_reason=reason)


def _branch(context: AgentContext, run: RunContext[Any]) -> AgentContext:
    """The branch of one tool call. Its name depends only on the model's turn, not on the order in which calls begin."""
    call = hashlib.sha256((run.tool_call_id or "").encode()).hexdigest()[:8]
    return context.branch(f"r{run.run_step}-{call}-{run.retry}")


@dataclass
class _StepToolset(WrapperToolset[Any]):
    """The agent's own tools: each call is a step of the code."""

    context: AgentContext
    places: asyncio.Semaphore

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        async def work() -> dict[str, Any]:
            try:
                value = await self.wrapped.call_tool(name, tool_args, ctx, tool)
            except ModelRetry as retry:
                return {"retry": retry.message}
            if isinstance(value, ToolReturn):
                if value.content:
                    raise TypeError("a ToolReturn with content cannot be stored")
                value = value.return_value
            return {"value": value}

        digest = hashlib.sha256(to_json(tool_args)).hexdigest()[:8]
        async with self.places:
            try:
                ended = await _branch(self.context, ctx).step(f"{name} {digest}", work)
            except CallError as error:  # the model reads the error, as for every tool
                return error_text(error.to_tool_error())
        if "retry" in ended:
            raise ModelRetry(ended["retry"])
        return ended["value"]


@dataclass
class _RoleToolset(AbstractToolset[Any]):
    """The tools and agents of a role, and its questions to a person."""

    context: AgentContext
    role: Role
    places: asyncio.Semaphore
    _functions: dict[str, OfferedFunction] = field(init=False)

    def __post_init__(self) -> None:
        offered = self.context.roles[self.role.name].functions
        self._functions = {each.name: each for each in offered}

    @property
    def id(self) -> str:
        return "toold"

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:  # noqa: ARG002 - its signature
        return {
            name: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=name, parameters_json_schema=each.parameters, description=each.description
                ),
                max_retries=0,
                args_validator=_ANY,
            )
            for name, each in self._functions.items()
        }

    async def call_tool(
        self,
        name: str,
        tool_args: dict[str, Any],
        ctx: RunContext[Any],
        tool: ToolsetTool[Any],  # noqa: ARG002 - its signature
    ) -> Any:
        branch = _branch(self.context, ctx)
        if self._functions[name].kind == "ask":
            return await branch.ask(str(tool_args.get("question", ""))) or "The user did not answer in time."
        async with self.places:
            return result_text(await branch.call_tool(name, tool_args, role=self.role.name))
