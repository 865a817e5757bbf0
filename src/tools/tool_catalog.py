"""What is offered at a time: the tools of a registry, as each toolset has them. Never changes once it is made."""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Final

import msgspec

from ..protocol.error_codes import CallError, PermissionDeniedError, ToolNotFoundError
from ..protocol.tool_call import ToolInfo
from .stubs import StubSet, module_for
from .tool_definition import Tool
from .tool_ranking import ToolIndex
from .tool_registry import ToolRegistry, tool_not_found
from .toolsets import CODE_TOOLS, INIT_TOOL, Toolset, problems_of, shipped_toolsets

_OF_MODELS: Final = frozenset(CODE_TOOLS) - {"search_tools"}


class ToolsetView:
    """The tools of a registry that one toolset holds: what a session with it may call, and what it is shown.

    Without ``list_init``, ``00_INIT`` is not listed.
    """

    def __init__(self, registry: ToolRegistry, toolset: Toolset, *, list_init: bool = True) -> None:
        self.toolset = toolset
        self.tools: Mapping[str, Tool] = {
            tool.name: tool for tool in registry.tools if tool.withheld is None and toolset.holds(tool.name)
        }
        """What may be called, by name."""
        self.infos: tuple[ToolInfo, ...] = tuple(
            tool.info for name, tool in self.tools.items() if toolset.lists(name) and (list_init or name != INIT_TOOL)
        )
        """What ``list_tools`` shows, as the toolset's presentation has it, by name."""
        self.rev: str = hashlib.sha256(msgspec.json.encode(self.infos, order="deterministic")).hexdigest()[:12]
        """Changes when the listing does."""

    def __repr__(self) -> str:
        return f"<ToolsetView of {len(self.tools)} tools, toolset {self.toolset.name}, rev {self.rev}>"

    @cached_property
    def index(self) -> ToolIndex:
        """What ``search_tools`` searches: all that may be called."""
        return ToolIndex([tool.info for tool in self.tools.values()])

    @cached_property
    def stubs(self) -> StubSet:
        """The functions by which code calls them; not those by which a model gets to write code."""
        return module_for(tool for name, tool in self.tools.items() if name not in _OF_MODELS)


class ToolCatalog:
    """A registry and the toolsets over it. Made anew, and put in the place of the one before, when either changes."""

    def __init__(
        self, registry: ToolRegistry, toolsets: Mapping[str, Toolset], default: str, *, list_init: bool = True
    ) -> None:
        self.registry = registry
        self._list_init = list_init
        self.default = default
        """The toolset of a session that asks for none."""
        self._toolsets = toolsets
        # Each is made when it is first asked for, and once.
        self._selections: dict[str, ToolsetView] = {}

    def __repr__(self) -> str:
        return f"<ToolCatalog of {len(self.registry.tools)} tools in {', '.join(self.names)}>"

    @property
    def names(self) -> tuple[str, ...]:
        """The toolsets that there are."""
        return tuple(self._toolsets)

    @property
    def problems(self) -> list[str]:
        """What the operator's toolsets name that is not there, a sentence each."""
        tools = [tool.name for tool in self.registry.tools]
        own = set(self._toolsets.values()) - set(shipped_toolsets().values())
        return [
            problem
            for toolset in sorted(own, key=lambda toolset: toolset.name)
            for problem in problems_of(toolset, tools)
        ]

    def of(self, toolset: str) -> ToolsetView:
        """What sessions of this toolset have. One that is not there any more holds nothing: it bounded its sessions,
        and its end must not let them loose.
        """
        selection = self._selections.get(toolset)
        if selection is None:
            if toolset not in self._toolsets:
                return ToolsetView(self.registry, Toolset(toolset, include=()))
            selection = ToolsetView(self.registry, self._toolsets[toolset], list_init=self._list_init)
            self._selections[toolset] = selection
        return selection

    def find(self, toolset: str, name: str, *, usable: Collection[str] | None = None) -> Tool:
        """The tool of this name, for a session of this toolset, whose principal may use the ``usable`` ones, or all.

        Raises:
            ToolNotFoundError: the toolset does not hold it; ``details.toolsets`` has the usable that do. Or there is
                none; ``details.suggestions`` has the names in the toolset that are close.
            PermissionDeniedError: it is withheld; the message says why.
        """
        selection = self.of(toolset)
        tool = selection.tools.get(name)
        if tool is None:
            raise self._not_found(
                selection.toolset, name, [one for one in self.names if usable is None or one in usable]
            )
        return tool

    def _not_found(self, meant: Toolset, name: str, usable: Sequence[str]) -> CallError:
        toolset = meant.name
        if name not in self.registry:
            return tool_not_found(name, self.of(toolset).tools)
        withheld = self.registry.get(name).withheld
        if withheld is not None and meant.holds(name):
            return PermissionDeniedError(withheld)
        outside = f"The tool {name!r} is not in the toolset {toolset!r}"
        if toolset not in self._toolsets:
            outside, others = f"{outside}, which is not there any more", list(usable)
            hint = f"connect again with one of {', '.join(others)}" if others else "nor is another that you may use"
        else:
            outside, others = f"{outside} of this session", [one for one in usable if self._toolsets[one].holds(name)]
            hint = (
                f"connect with one that has it: {', '.join(others)}" if others else "no other that you may use has it"
            )
        return ToolNotFoundError(f"{outside}; {hint}.", details={"suggestions": [], "toolsets": others})
