"""Which tools there are: the daemon's own, and those that installed packages bring."""

import pkgutil
from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import structlog

from ..protocol.errors import ToolNotFoundError
from ..protocol.suggest import close_names, did_you_mean
from .composing import pipelines_in
from .tool import Tool
from .workflow import own_workflows, workflows_in

ENTRY_POINT_GROUP: Final = "toold.tools"
"""A package names its tools here: a ``Tool``, a module, or an iterable of tools (docs/writing-a-tool.md)."""

_log = structlog.get_logger(__name__)


class Registry:
    """The tools by their names; it never changes once it is made.

    Raises:
        ValueError: two tools have the same name.
    """

    def __init__(self, tools: Iterable[Tool], problems: Iterable[str] = ()) -> None:
        self.tools: tuple[Tool, ...] = tuple(sorted(tools, key=lambda tool: tool.name))
        """By name."""
        self.problems: tuple[str, ...] = tuple(problems)
        """Why tools of installed packages or of the operator's folder were left out, a sentence each."""
        self._by_name = {tool.name: tool for tool in self.tools}
        if len(self._by_name) < len(self.tools):
            names = [tool.name for tool in self.tools]
            raise ValueError(f"two tools are called {next(name for name in names if names.count(name) > 1)!r}")

    def __repr__(self) -> str:
        return f"<Registry of {len(self.tools)} tools>"

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def with_more(self, tools: Iterable[Tool]) -> "Registry":
        """Another one, with these tools too; those whose names are taken are left out, and told in ``problems``."""
        by_name = dict(self._by_name)
        problems = _taken_in(by_name, tools)
        return Registry(by_name.values(), [*self.problems, *problems])

    def get(self, name: str) -> Tool:
        """The tool of this name.

        Raises:
            ToolNotFoundError: there is none; ``details.suggestions`` has the names that are close.
        """
        try:
            return self._by_name[name]
        except KeyError:
            raise tool_not_found(name, self._by_name) from None


def load_registry(
    more: Iterable[Tool] = (), *, workflow_dir: Path | None = None, pipeline_dir: Path | None = None
) -> Registry:
    """The daemon's own tools, ``more`` of its own that depend on how it runs, and those that others bring.

    Those are the workflow tools of the operator's ``workflow_dir``, the pipelines of ``pipeline_dir``, and the tools of
    installed packages. What cannot be loaded of them is left out, logged, and told in ``problems``; the rest is served.
    """
    registry = find_tools(more, workflow_dir=workflow_dir, pipeline_dir=pipeline_dir)
    for problem in registry.problems:
        _log.warning("tool left out", problem=problem)
    return registry


def find_tools(more: Iterable[Tool], *, workflow_dir: Path | None, pipeline_dir: Path | None) -> Registry:
    """What ``load_registry`` comes to, without a word in the log."""
    tools = {tool.name: tool for tool in (*own_tools(), *own_workflows(), *more)}
    problems: list[str] = []
    for folder, read in ((workflow_dir, workflows_in), (pipeline_dir, pipelines_in)):
        if folder is not None:
            brought, wrong = read(folder)
            problems += [*wrong, *_taken_in(tools, brought)]
    for entry_point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda point: (point.name, point.value)):
        package = entry_point.dist.name if entry_point.dist else entry_point.module
        try:
            found = [replace(tool, source=package) for tool in _loaded(entry_point)]
        except Exception as error:  # noqa: BLE001 - other people's code, run at import: whatever it does, the daemon starts
            problems.append(f"tools of {package} ({entry_point.value}) were left out: {type(error).__name__}: {error}")
            continue
        problems += _taken_in(tools, found)
    return Registry(tools.values(), problems)


def _taken_in(tools: dict[str, Tool], found: Iterable[Tool]) -> list[str]:
    """Add what was found to the tools; a sentence for each whose name is taken."""
    return [
        f"tool {tool.name!r} of {tool.source} was left out: {other.source} has one of that name"
        for tool in found
        if (other := tools.setdefault(tool.name, tool)) is not tool
    ]


def own_tools() -> list[Tool]:
    """Every tool that is defined in a module of this package: a new one is a new file, and nothing else to edit."""
    package = __name__.rpartition(".")[0]
    names = sorted(info.name for info in pkgutil.iter_modules([str(Path(__file__).parent)]))
    return [tool for name in names for tool in _tools_in(import_module(f"{package}.{name}"))]


def _tools_in(module: ModuleType) -> list[Tool]:
    return [value for value in vars(module).values() if isinstance(value, Tool)]


def _loaded(entry_point: EntryPoint) -> list[Tool]:
    loaded: Any = entry_point.load()
    if isinstance(loaded, Tool):
        return [loaded]
    found = _tools_in(loaded) if isinstance(loaded, ModuleType) else list(loaded)
    if not found:
        raise LookupError("there is no tool in it; make one with @toold.tools.tool")
    for value in found:
        if not isinstance(value, Tool):
            raise TypeError(f"{value!r} is not a Tool; make it with @toold.tools.tool")
    return found


def tool_not_found(name: str, known: Iterable[str]) -> ToolNotFoundError:
    """The error for a name that no tool has; ``known`` are those that the caller may use instead."""
    suggestions = close_names(name, known)
    hint = did_you_mean(suggestions) or "list_tools has all names."
    return ToolNotFoundError(f"There is no tool {name[:100]!r}; {hint}", details={"suggestions": suggestions})
