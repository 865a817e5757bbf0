"""The snapshot of a run: everything on which its turns depend, stored before the first turn.

A resumed run uses its snapshot, so changes of prompts, tools, models and the configuration do not affect it.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Final, Literal

import msgspec

from ...protocol.error_codes import InvalidArgumentsError, ServiceUnavailableError
from ...protocol.name_suggestions import close_names, did_you_mean
from ...providers import Model
from ..completions import ModelChoice, ModelRequirements, max_prompt_tokens, select_model, unsupported
from ..conversation import Turn
from ..model_question import ModelQuestion
from ..orchestration_context import OrchestrationContext
from ..prompt_source import PromptError, PromptQuery, PromptSource, ResolvedPrompt
from ..tool_context import ToolContext
from ..tool_definition import Tool
from .agent_definition import Agent, Role, ToolGrant
from .searched_collections import COLLECTION_PREFIX, optional_searches

ENGINE: Final = 2
"""The version of the engine, that is, of the names and contents of turns and calls. A run of another version cannot be
resumed.
"""
AGENT_SOURCE: Final = "agents"
"""The ``Tool.source`` of agents."""
EXIT_FUNCTION: Final = "exit_loop"
ASK_FUNCTION: Final = "ask_user"

FunctionKind = Literal["tool", "agent", "worker", "spoke", "ask", "exit"]


class OfferedFunction(msgspec.Struct, frozen=True, omit_defaults=True):
    """A function that a role's model may call."""

    name: str
    kind: FunctionKind
    target: str
    """The tool, agent or role behind it."""
    description: str
    parameters: dict[str, Any]
    approve: bool = False
    """Whether a person must approve each call."""


class RoleSnapshot(msgspec.Struct, frozen=True, omit_defaults=True):
    """The prompt, model and functions of a role in the run."""

    prompt: str
    model: str
    """A model's id."""
    window: int = 0
    """The model's context window in tokens; 0 if unknown."""
    room: int = 0
    """The maximum estimated tokens of a prompt, if the window is known."""
    functions: tuple[OfferedFunction, ...] = ()
    prompt_source: str = ""
    prompt_version: str = ""
    images: tuple[int, ...] = ()
    """The images of the message that the model accepts, as indexes of ``RunSnapshot.images``."""


class CodeSnapshot(msgspec.Struct, frozen=True):
    """The code of a custom agent, and the values that stay the same in a resumed run."""

    package: str
    """The name and version of the package."""
    run_id: str
    started_at: float
    """The start of the run, in Unix seconds."""


class RunSnapshot(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything on which a run depends."""

    engine: int
    agent: dict[str, Any]
    """The definition (``Agent``) as JSON."""
    roles: dict[str, RoleSnapshot]
    history: tuple[Turn, ...] = ()
    """The conversation's earlier turns."""
    warnings: tuple[str, ...] = ()
    request: str = ""
    """The message that the run answers, for readers of recorded runs. The run itself gets it as an argument."""
    images: tuple[str, ...] = ()
    """The images of the message, as ``https:`` and ``data:`` URLs."""
    variables: dict[str, Any] = {}
    """The variables of the message, also for readers of recorded runs."""
    code: CodeSnapshot | None = None
    """None unless the agent is custom."""


async def make_snapshot(
    agent: Agent,
    variables: Mapping[str, Any],
    history: Iterable[Turn],
    prompts: PromptSource,
    context: OrchestrationContext,
    code: CodeSnapshot | None = None,
    images: tuple[str, ...] = (),
) -> RunSnapshot:
    """Resolves the prompts, tools and models of all roles. ``code`` is the code of a custom agent; ``images`` are the
    message's images, as URLs.

    Raises:
        ServiceUnavailableError: a prompt, a tool or an agent is not available, or no provider is configured.
        InvalidArgumentsError: a model is unknown or cannot do what its role requires, or an image reaches no role.
    """
    roles: dict[str, RoleSnapshot] = {}
    warnings: list[str] = []
    problems: dict[int, str] = {}
    operator = context.principal.operator
    for role, prompt in zip(agent.roles, await _prompts(agent, variables, prompts, operator=operator), strict=True):
        warnings += prompt.warnings if operator else _shown(prompt)
        functions = offered_functions(agent, role, context.toolset_view.tools)
        warnings += optional_searches(role, context.toolset_view.tools)[1]
        model, warning = _chosen_model(prompt, agent, role, functions, context)
        warnings += warning
        roles[role.name] = RoleSnapshot(
            prompt.text,
            model.id,
            model.context_window or 0,
            _room(model, role),
            functions,
            prompt.source,
            prompt.version,
            tuple(place for place, image in enumerate(images) if image_problem(model, image) is None),
        )
        problems |= {place: problem for place, image in enumerate(images) if (problem := image_problem(model, image))}
    seen = {place for role in roles.values() for place in role.images}
    if agent.custom is None and (unseen := [place for place in range(len(images)) if place not in seen]):
        why = f"images.{unseen[0]} reaches no role of {agent.name}: {problems[unseen[0]]}"
        raise InvalidArgumentsError(f"{why}.", details={"fields": {f"images.{unseen[0]}": problems[unseen[0]]}})
    definition = agent.model_dump(mode="json", exclude_defaults=True)
    return RunSnapshot(
        ENGINE, definition, roles, tuple(history), tuple(dict.fromkeys(warnings)), images=images, code=code
    )


def with_model(snapshot: RoleSnapshot, model: Model, role: Role) -> RoleSnapshot:
    """Returns the role's snapshot for another model, with the same images if this model accepts images."""
    images = snapshot.images if "image" in model.inputs else ()
    room = _room(model, role)
    return msgspec.structs.replace(snapshot, model=model.id, window=model.context_window or 0, room=room, images=images)


def image_problem(model: Model, image: str) -> str | None:
    """Why a model does not accept an image; None if it accepts it."""
    problem = unsupported(model, ModelRequirements(0, images=True, image_urls=image.startswith("https:")))
    return None if problem is None or problem[0] != "images" else problem[1]


def _room(model: Model, role: Role) -> int:
    question = ModelQuestion("", max_tokens=role.max_tokens, thinking=role.thinking)
    return 0 if model.context_window is None else max(0, max_prompt_tokens(model, question))


def _shown(prompt: ResolvedPrompt) -> tuple[str, ...]:
    """The warnings without paths and addresses, for a caller without the operator right."""
    return (f"a source of prompts failed; a prompt is from {prompt.source}",) if prompt.warnings else ()


async def _prompts(
    agent: Agent, variables: Mapping[str, Any], prompts: PromptSource, *, operator: bool
) -> list[ResolvedPrompt]:
    """The prompts of all roles, requested concurrently, because each may take as long as the time limits of all
    servers.
    """
    resolved = await asyncio.gather(
        *(role_prompt(agent, role, variables, prompts, operator=operator) for role in agent.roles),
        return_exceptions=True,
    )
    for prompt in resolved:
        if isinstance(prompt, BaseException):
            raise prompt
    return [prompt for prompt in resolved if not isinstance(prompt, BaseException)]


async def role_prompt(
    agent: Agent, role: Role, variables: Mapping[str, Any], prompts: PromptSource, *, operator: bool
) -> ResolvedPrompt:
    """Returns the system prompt of a role.

    Raises:
        ServiceUnavailableError: the prompt is not available. Only an ``operator`` sees paths and addresses.
    """
    if agent.execution_type == "custom" and role.prompt is None and role.prompt_ref is None:
        return ResolvedPrompt("", "code", "")
    values = {**role.metadata, **variables}
    query = PromptQuery(role.name, role.prompt, role.prompt_ref, role.prompt_tag, values)
    try:
        return await prompts.resolve(query)
    except PromptError as error:
        message = f"agent {agent.name}: roles.{role.name}: {error if operator else error.shown}"
        raise ServiceUnavailableError(message, executed="no", transient=False) from error


def _chosen_model(
    prompt: ResolvedPrompt,
    agent: Agent,
    role: Role,
    functions: tuple[OfferedFunction, ...],
    context: OrchestrationContext,
) -> tuple[Model, tuple[str, ...]]:
    """The role's model, else the prompt's, else the agent's. An unusable model of a prompt is only a warning, because
    prompt servers name a model in every prompt, possibly for other users of the prompt.
    """
    if role.model is None and prompt.model is not None:
        try:
            return _model(prompt.model, agent, role, functions, context), ()
        except InvalidArgumentsError as error:
            model = _model(agent.model, agent, role, functions, context)
            return model, (f"{model.id} is used instead of the model that the prompt names: {error.message}",)
    return _model(role.model or agent.model, agent, role, functions, context), ()


def _model(
    name: str | None, agent: Agent, role: Role, functions: tuple[OfferedFunction, ...], context: OrchestrationContext
) -> Model:
    try:
        return select_role_model(name, role, functions, context).model
    except InvalidArgumentsError as error:
        message = f"agent {agent.name}: roles.{role.name}: {error.message}"
        raise InvalidArgumentsError(message, details=error.details) from error


def select_role_model(
    name: str | None,
    role: Role,
    functions: tuple[OfferedFunction, ...],
    context: ToolContext,
    images: Sequence[str] = (),
) -> ModelChoice:
    """Returns the model with this name, or the default model, for the turns of a role that sees ``images``.

    Raises:
        InvalidArgumentsError: the model is unknown, or cannot do what the role requires.
        ServiceUnavailableError: no provider is configured.
    """
    requirements = ModelRequirements(
        0,
        images=bool(images),
        image_urls=any(image.startswith("https:") for image in images),
        max_tokens=role.max_tokens,
        thinking=role.thinking,
        tools=bool(functions),
        temperature=role.temperature is not None,
    )
    choice, _ = select_model(name, requirements, context, partial(max_prompt_tokens, question=ModelQuestion("")))
    return choice


def offered_functions(agent: Agent, role: Role, tools: Mapping[str, Tool]) -> tuple[OfferedFunction, ...]:
    """The functions of a role, from the ``tools`` that the run may call. Pure.

    Raises:
        ServiceUnavailableError: a tool or agent that the role names is missing.
    """
    functions = [
        *(_tool_function(role, tool) for tool in _granted(agent, role, tools)),
        *(_agent_function(agent, role, name, tools) for name in role.agents),
        *(_delegation(other, "worker", f"delegate_to_{other.name}") for other in agent.workers_of(role)),
        *(_delegation(other, "spoke", f"transfer_to_{other.name}") for other in agent.spokes_of(role)),
    ]
    _check_approvals(agent, role, [function.target for function in functions])
    if role.ask:
        functions.append(_ASK)
    if agent.execution_type == "loop":
        functions.append(_EXIT)
    return tuple({function.name: function for function in functions}.values())


def _check_approvals(agent: Agent, role: Role, targets: Collection[str]) -> None:
    """Checks that each pattern of ``approve`` matches a tool or an agent of the role, because a misspelt pattern
    protects nothing.

    Raises:
        ServiceUnavailableError: a pattern matches nothing.
    """
    for pattern in () if role.approve == "destructive" else role.approve:
        if not any(fnmatchcase(target, pattern) for target in targets):
            place = f"agent {agent.name}: roles.{role.name}.approve"
            hint = did_you_mean(close_names(pattern, targets, n=1)) or 'approve = "destructive" is a text, not a list.'
            message = f"{place}: {pattern!r} matches no tool or agent of the role; {hint}"
            raise ServiceUnavailableError(message, executed="no", transient=False)


def _granted(agent: Agent, role: Role, tools: Mapping[str, Tool]) -> list[Tool]:
    granted: dict[str, Tool] = {}
    collections = [ToolGrant(name=f"{COLLECTION_PREFIX}{name}") for name in role.knowledge]
    for grant in (*role.tools, *collections):
        if not grant.active:
            continue
        found = [
            tool for tool in tools.values() if tool.source != AGENT_SOURCE and grant.matches(tool.name, tool.source)
        ]
        if not found:
            raise _missing(agent, role, "knowledge" if grant in collections else "tools", grant, tools)
        granted |= {tool.name: tool for tool in found}
    searches, _ = optional_searches(role, tools)
    return list((granted | {tool.name: tool for tool in searches}).values())


def _missing(
    agent: Agent, role: Role, field: str, grant: ToolGrant | str, tools: Mapping[str, Tool]
) -> ServiceUnavailableError:
    hint = did_you_mean(close_names(str(grant), tools, n=2))
    message = f"agent {agent.name}: roles.{role.name}.{field}: no tool of this session's toolset is {str(grant)!r}."
    return ServiceUnavailableError(f"{message} {hint.capitalize()}".strip(), executed="no", transient=False)


def _tool_function(role: Role, tool: Tool) -> OfferedFunction:
    approve = role.needs_approval(tool.name, destructive=tool.annotations.destructive_hint)
    return OfferedFunction(tool.name, "tool", tool.name, tool.description, tool.info.input_schema, approve)


def _agent_function(agent: Agent, role: Role, name: str, tools: Mapping[str, Tool]) -> OfferedFunction:
    tool = tools.get(name)
    if tool is None or tool.source != AGENT_SOURCE:
        raise _missing(agent, role, "agents", name, {k: t for k, t in tools.items() if t.source == AGENT_SOURCE})
    approve = role.needs_approval(name, destructive=tool.annotations.destructive_hint)
    return OfferedFunction(name, "agent", name, tool.description, _TASK, approve)


def _delegation(role: Role, kind: FunctionKind, name: str) -> OfferedFunction:
    verb = "Give a task to" if kind == "worker" else "Let this role answer the user:"
    description = f"{verb} {role.name}. {role.description}".strip()
    return OfferedFunction(name, kind, role.name, description, _TASK)


_TASK: Final = {
    "type": "object",
    "properties": {"prompt": {"type": "string", "description": "The task, with everything that is needed to do it."}},
    "required": ["prompt"],
    "additionalProperties": False,
}
_ASK: Final = OfferedFunction(
    ASK_FUNCTION,
    "ask",
    ASK_FUNCTION,
    "Ask the user a question and wait for the answer, which may take long.",
    {
        "type": "object",
        "properties": {"question": {"type": "string"}},
        "required": ["question"],
        "additionalProperties": False,
    },
)
_EXIT: Final = OfferedFunction(
    EXIT_FUNCTION,
    "exit",
    EXIT_FUNCTION,
    "End the loop: your next answer is the last one.",
    {"type": "object", "properties": {"reason": {"type": "string"}}, "additionalProperties": False},
)
