"""Loads all tools: the built-in ones, the operator's workflows and pipelines, and those of installed packages."""

import pkgutil
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import structlog

from .builtin.workflow import own_workflows, workflows_in
from .orchestration import pipelines_in
from .tool_definition import Tool
from .tool_registry import ToolRegistry, add_tools

ENTRY_POINT_GROUP: Final = "toold.tools"
"""The entry point group in which packages name a ``Tool``, a module or an iterable of tools
(docs/writing-a-tool.md)."""

_TOOL_PACKAGES: Final = tuple(f"{__name__.rpartition('.')[0]}.{name}" for name in ("builtin", "orchestration"))

_log = structlog.get_logger(__name__)


def load_registry(
    more: Iterable[Tool] = (), *, workflow_dir: Path | None = None, pipeline_dir: Path | None = None
) -> ToolRegistry:
    """The built-in tools, ``more`` tools that depend on the daemon's configuration, and external tools.

    External tools are the workflows of ``workflow_dir``, the pipelines of ``pipeline_dir``, and the tools of installed
    packages. Those that cannot be loaded are skipped, logged, and listed in ``problems``.
    """
    registry = find_tools(more, workflow_dir=workflow_dir, pipeline_dir=pipeline_dir)
    for problem in registry.problems:
        _log.warning("tool skipped", problem=problem)
    return registry


def find_tools(more: Iterable[Tool], *, workflow_dir: Path | None, pipeline_dir: Path | None) -> ToolRegistry:
    """Like ``load_registry``, without logging."""
    tools = {tool.name: tool for tool in (*built_in_tools(), *own_workflows(), *more)}
    problems: list[str] = []
    for directory, read in ((workflow_dir, workflows_in), (pipeline_dir, pipelines_in)):
        if directory is not None:
            loaded_tools, errors = read(directory)
            problems += [*errors, *add_tools(tools, loaded_tools)]
    for entry_point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda point: (point.name, point.value)):
        package = entry_point.dist.name if entry_point.dist else entry_point.module
        try:
            loaded_tools = [replace(tool, source=package) for tool in _loaded(entry_point)]
        except Exception as error:  # noqa: BLE001 - external code at import: the daemon starts whatever it raises
            problems.append(f"tools of {package} ({entry_point.value}) were skipped: {type(error).__name__}: {error}")
            continue
        problems += add_tools(tools, loaded_tools)
    return ToolRegistry(tools.values(), problems)


def built_in_tools() -> list[Tool]:
    """All tools defined in ``tools/builtin`` and ``tools/orchestration``; a new file there is all that a new tool
    needs."""
    names = sorted(name for package in _TOOL_PACKAGES for name in _module_names(package))
    return list({id(tool): tool for name in names for tool in _tools_in(import_module(name))}.values())


def _module_names(package: str) -> Iterator[str]:
    path = import_module(package).__path__
    return (info.name for info in pkgutil.walk_packages(path, f"{package}."))


def _tools_in(module: ModuleType) -> list[Tool]:
    return [value for value in vars(module).values() if isinstance(value, Tool)]


def _loaded(entry_point: EntryPoint) -> list[Tool]:
    loaded: Any = entry_point.load()
    if isinstance(loaded, Tool):
        return [loaded]
    tools = _tools_in(loaded) if isinstance(loaded, ModuleType) else list(loaded)
    if not tools:
        raise LookupError("it contains no tool; make one with @toold.tools.tool")
    for value in tools:
        if not isinstance(value, Tool):
            raise TypeError(f"{value!r} is not a Tool; make it with @toold.tools.tool")
    return tools
