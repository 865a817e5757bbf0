"""The code of custom agents: async functions in the entry point group ``toold.agents`` of installed packages."""

import inspect
import sys
from collections.abc import Awaitable, Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, NamedTuple

import structlog

from ...protocol.error_codes import ServiceUnavailableError
from ...protocol.name_suggestions import close_names, did_you_mean
from ..orchestration_context import OrchestrationContext
from ..work_thread import in_tool_thread
from .agent_definition import Agent

AGENT_GROUP: Final = "toold.agents"
"""The entry point group in which packages name the code of custom agents (docs/custom-agents.md)."""

_log = structlog.get_logger(__name__)


class AgentCodeError(Exception):
    """The code of a custom agent cannot be used. The message is for the operator, and may quote the package."""


class AgentCode(NamedTuple):
    """The code of a custom agent."""

    function: Callable[[Any], Awaitable[Any]]
    """The function: it takes an ``AgentContext`` and returns the answer."""
    package: str
    """The name and version of the package."""


_loaded: dict[str, AgentCode] = {}
"""The loaded code by entry point, because packages do not change while a process runs. A failed load is tried again."""


async def code_of(agent: Agent, context: OrchestrationContext) -> AgentCode:
    """The code of a custom agent.

    Raises:
        ServiceUnavailableError: the code cannot be used. Only callers with the operator right see the reason.
    """
    name = agent.custom or ""
    try:
        return await in_tool_thread(load_agent_code, name)
    except AgentCodeError as error:
        _log.warning("agent cannot run", agent=agent.name, problem=str(error))
        shown = str(error) if context.principal.operator else f"its code {name!r} cannot be used; the log says why"
        message = f"agent {agent.name}: custom: {shown}"
        raise ServiceUnavailableError(message, executed="no", transient=False) from error


def load_agent_code(name: str) -> AgentCode:
    """Imports the code behind an entry point. Call it in the tool thread: an import may take seconds.

    Raises:
        AgentCodeError: no package or several packages have the entry point, the import fails, or the object is not an
        async function of one argument.
    """
    code = _loaded.get(name)
    if code is None:
        code = _loaded[name] = _load(name)
    return code


def _load(name: str) -> AgentCode:
    point = _find(name)
    package = f"{point.dist.name} {point.dist.version}" if point.dist else point.module
    try:
        loaded = point.load()
    except (Exception, SystemExit) as error:  # a package's import may raise anything
        raise AgentCodeError(
            f"the code of {package} ({point.value}) cannot be imported: {type(error).__name__}: {error}"
        ) from error
    try:
        return _as_code(loaded, package)
    except TypeError as error:
        raise AgentCodeError(f"{point.value} of {package} {error}") from error


def _as_code(loaded: Any, package: str) -> AgentCode:
    """Returns the object of an entry point as code.

    Raises:
        TypeError: the object cannot be the code of an agent; the message continues a sentence that begins with its
        name.
    """
    framework = sys.modules.get("pydantic_ai")  # imported only by packages that use it
    if framework is not None and isinstance(loaded, framework.Agent):
        from .pydantic_agent import code_of_pydantic_agent, installed_version  # noqa: PLC0415 - needs an extra

        return AgentCode(code_of_pydantic_agent(loaded), f"{package}, {installed_version()}")
    problem = _problem(loaded)
    if problem is not None:
        raise TypeError(problem)
    return AgentCode(loaded, package)


def _find(name: str) -> EntryPoint:
    installed = entry_points(group=AGENT_GROUP)
    points = {point.value: point for point in installed if point.name == name}
    if not points:
        names = sorted({point.name for point in installed})
        known = f"installed are {', '.join(names)}" if names else "no installed package has any"
        hint = did_you_mean(close_names(name, names, n=1)) or known
        raise AgentCodeError(f"no installed package has an entry point {name!r} in the group {AGENT_GROUP}; {hint}")
    if len(points) > 1:
        raise AgentCodeError(f"two packages have an entry point {name!r}: {' and '.join(sorted(points))}")
    return next(iter(points.values()))


def _problem(loaded: object) -> str | None:
    """Why an object cannot be the code of an agent."""
    if not callable(loaded):
        return f"is {type(loaded).__name__}, not an async function"
    if not inspect.iscoroutinefunction(loaded) and not inspect.iscoroutinefunction(type(loaded).__call__):
        return "must be an async function: async def run(context: AgentContext)"
    try:
        inspect.signature(loaded).bind(None)
    except TypeError as error:
        return f"must take one argument, the context ({error})"
    return None
