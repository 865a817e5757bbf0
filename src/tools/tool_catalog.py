"""The tools of a registry, in the view of each toolset. Immutable."""

import hashlib
import threading
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import msgspec

from ..protocol.error_codes import CallError, PermissionDeniedError, ToolNotFoundError
from ..protocol.name_suggestions import close_names, did_you_mean
from ..protocol.tool_call import ToolInfo
from .argument_binding import BoundArguments, bind_arguments
from .result_text import ResultText, result_text_for
from .search_fields import RankedTool
from .stubs import StubSet, module_for
from .tool_definition import Tool
from .tool_ranking import ToolIndex
from .tool_registry import ToolRegistry, tool_not_found
from .toolsets import CODE_TOOLS, INIT_TOOL, Toolset, problems_of, shipped_toolsets

_NOT_FOR_PROGRAMS: Final = frozenset(CODE_TOOLS) - {"search_tools"}
_MAX_NARROWED: Final = 64
"""The maximum number of narrowed views that a catalog keeps with their search indexes: about one per role of the agents
in use."""


class ToolsetView:
    """The tools of one toolset: the callable ones, and the listed ones.

    Without ``list_init``, ``00_INIT`` is not listed. ``within``: only tools with these names.
    """

    def __init__(
        self, registry: ToolRegistry, toolset: Toolset, *, list_init: bool = True, within: Collection[str] | None = None
    ) -> None:
        self.toolset = toolset
        self.tools: Mapping[str, Tool] = {
            tool.name: tool
            for tool in registry.tools
            if (within is None or tool.name in within) and tool.withheld is None and toolset.contains(tool.name)
        }
        """The tools that may be called, by name."""
        self.sources_with_tools = frozenset(tool.source for tool in registry.tools)
        """The sources of the tools of all toolsets."""
        self._with_tools = frozenset(tool.source for tool in self.tools.values())
        self.source_instructions = {
            source: text for source, text in registry.source_instructions.items() if self.has_source(source)
        }
        """The instructions of the sources of these tools for models."""
        self.infos: tuple[ToolInfo, ...] = tuple(
            tool.info for name, tool in self.tools.items() if toolset.lists(name) and (list_init or name != INIT_TOOL)
        )
        """The tools that ``list_tools`` shows in the toolset's presentation, sorted by name."""
        self.rev: str = hashlib.sha256(msgspec.json.encode(self.infos, order="deterministic")).hexdigest()[:12]
        """A hash of the listing."""
        self._index: ToolIndex | None = None
        self._indexing = threading.Lock()

    def __repr__(self) -> str:
        return f"<ToolsetView of {len(self.tools)} tools, toolset {self.toolset.name}, rev {self.rev}>"

    def has_source(self, source: str) -> bool:
        """Whether the toolset has a tool of a source, or includes the name of a source without tools."""
        return source in self._with_tools or (source not in self.sources_with_tools and self.toolset.contains(source))

    @property
    def is_indexed(self) -> bool:
        """Whether the search index exists; otherwise, ``index`` takes a third of a millisecond per tool."""
        return self._index is not None

    @property
    def index(self) -> ToolIndex:
        """The search index of all tools that may be called. May be requested in any thread."""
        return self.make_index(None)

    def make_index(self, earlier: ToolIndex | None) -> ToolIndex:
        """The search index. Entries of ``earlier`` are reused for unchanged tools."""
        with self._indexing:
            if self._index is None:
                tools = [RankedTool(tool.info, tool.source) for tool in self.tools.values()]
                self._index = ToolIndex(tools, earlier)
            return self._index

    @cached_property
    def stubs(self) -> StubSet:
        """The stubs of the tools that programs can call: all except the tools with which a model writes and runs
        programs."""
        return module_for(tool for name, tool in self.tools.items() if name not in _NOT_FOR_PROGRAMS)


class ToolCatalog:
    """A registry and its toolsets. Replaced as a whole when either changes."""

    def __init__(
        self,
        registry: ToolRegistry,
        toolsets: Mapping[str, Toolset],
        default: str,
        *,
        list_init: bool = True,
        strict_arguments: bool = False,
        result_text: ResultText | None = None,
        former_clients: bool = False,
    ) -> None:
        """``strict_arguments``: accept only the listed names and arguments, without former ones."""
        self.registry = registry
        self.former_clients = former_clients
        """Whether plain WebSocket clients count as clients of an earlier server from their first call."""
        self.strict_arguments = strict_arguments
        self._result_text = result_text
        self._list_init = list_init
        self.default = default
        """The toolset of sessions that request none."""
        self._toolsets = toolsets
        # Created on first use.
        self._views: dict[str, ToolsetView] = {}
        self._narrowed: dict[tuple[str, frozenset[str]], ToolsetView] = {}

    def __repr__(self) -> str:
        return f"<ToolCatalog of {len(self.registry.tools)} tools in {', '.join(self.names)}>"

    def bind(self, tool: Tool, arguments: dict[str, Any]) -> BoundArguments:
        """The tool's arguments, validated.

        Raises:
            InvalidArgumentsError: see ``bind_arguments``.
        """
        return bind_arguments(tool, arguments, strict=self.strict_arguments)

    def result_text(self, toolset: str, requested: ResultText | None, *, former: bool) -> ResultText:
        """The form of conversational answers for a session, see ``result_text_for``."""
        return result_text_for(requested, self.view(toolset).toolset.result_text, self._result_text, former=former)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the toolsets."""
        return tuple(self._toolsets)

    @property
    def used(self) -> tuple[str, ...]:
        """The toolsets whose views were used."""
        return tuple(self._views)

    def prepare(self, earlier: "ToolCatalog") -> None:
        """Create the views and search indexes that ``earlier`` has. This takes up to a second, so call it in a
        thread."""
        for name in earlier.used:
            view, before = self.view(name), earlier.view(name)
            if before.is_indexed:
                view.make_index(before.index)

    @property
    def problems(self) -> list[str]:
        """A sentence for each missing tool that the operator's toolsets name."""
        tools = [tool.name for tool in self.registry.tools]
        own = set(self._toolsets.values()) - set(shipped_toolsets().values())
        return [
            problem
            for toolset in sorted(own, key=lambda toolset: toolset.name)
            for problem in problems_of(toolset, tools)
        ]

    def view(self, toolset: str) -> ToolsetView:
        """The view of sessions with this toolset. A removed toolset is empty, so that its sessions do not get more
        tools."""
        view = self._views.get(toolset)
        if view is None:
            if toolset not in self._toolsets:
                return ToolsetView(self.registry, Toolset(toolset, include=()))
            view = ToolsetView(self.registry, self._toolsets[toolset], list_init=self._list_init)
            self._views[toolset] = view
        return view

    def narrowed_view(self, toolset: str, within: frozenset[str]) -> ToolsetView:
        """The view of sessions with this toolset, with only the tools in ``within``."""
        key = (toolset, within)
        view = self._narrowed.get(key)
        if view is None:
            whole = self.view(toolset).toolset
            view = ToolsetView(self.registry, whole, list_init=self._list_init, within=within)
            if len(self._narrowed) == _MAX_NARROWED:
                del self._narrowed[next(iter(self._narrowed))]
            self._narrowed[key] = view
        return view

    def find_tool_within(self, toolset: str, name: str, within: frozenset[str]) -> Tool:
        """``find_tool`` of ``narrowed_view``.

        Raises:
            ToolNotFoundError: the view does not contain it; ``details.suggestions`` lists similar names of the view.
        """
        tools = self.narrowed_view(toolset, within).tools
        tool = tools.get(name)
        if tool is None and not self.strict_arguments:
            tool = tools.get(self.registry.former_names.get(name, ""))
        if tool is None:
            suggestions = close_names(name, tools)
            hint = did_you_mean(suggestions) or "search_tools finds those that it may."
            message = f"This call may call {len(tools)} tools, and {name[:100]!r} is not one of them; {hint}"
            raise ToolNotFoundError(message, details={"suggestions": suggestions})
        return tool

    def find_tool(self, toolset: str, name: str, *, usable: Collection[str] | None = None) -> Tool:
        """The tool with this name for sessions with this toolset. Their principal may use the ``usable`` toolsets, or
        all if None.

        Raises:
            ToolNotFoundError: the toolset does not contain the tool, and ``details.toolsets`` lists usable toolsets
            that do; or the tool does not exist, and ``details.suggestions`` lists similar names in the toolset.
            PermissionDeniedError: the tool is withheld; the message has the reason.
        """
        view = self._views.get(toolset) or self.view(toolset)
        tool = view.tools.get(name)
        if tool is None and not self.strict_arguments:
            tool = view.tools.get(self.registry.former_names.get(name, ""))
        if tool is None:
            raise self._not_found(
                view.toolset, name, [toolset for toolset in self.names if usable is None or toolset in usable]
            )
        return tool

    def _not_found(self, requested: Toolset, name: str, usable: Sequence[str]) -> CallError:
        toolset = requested.name
        if name not in self.registry:
            return tool_not_found(name, self.view(toolset).tools)
        withheld = self.registry.get(name).withheld
        if withheld is not None and requested.contains(name):
            return PermissionDeniedError(withheld)
        outside = f"The tool {name!r} is not in the toolset {toolset!r}"
        if toolset not in self._toolsets:
            outside, others = f"{outside}, which was removed", list(usable)
            hint = f"connect again with one of {', '.join(others)}" if others else "you may use no other toolset"
        else:
            outside, others = (
                f"{outside} of this session",
                [toolset for toolset in usable if self._toolsets[toolset].contains(name)],
            )
            hint = (
                f"connect with a toolset that has it: {', '.join(others)}"
                if others
                else "no toolset that you may use has it"
            )
        return ToolNotFoundError(f"{outside}; {hint}.", details={"suggestions": [], "toolsets": others})
