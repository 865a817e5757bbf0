"""All tools by name."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from ..protocol.error_codes import ToolNotFoundError
from ..protocol.name_suggestions import close_names, did_you_mean
from .tool_definition import Tool


class ToolRegistry:
    """The tools by name. Immutable.

    Raises:
        ValueError: two tools have the same name.
    """

    def __init__(
        self,
        tools: Iterable[Tool],
        problems: Iterable[str] = (),
        source_instructions: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.tools: tuple[Tool, ...] = tuple(sorted(tools, key=lambda tool: tool.name))
        """Sorted by name."""
        self.problems: tuple[str, ...] = tuple(problems)
        """A sentence for each external tool that was skipped, with the reason."""
        self.source_instructions = source_instructions
        """The instructions of sources for models, by the sources' names, in configured order."""
        self._by_name = {tool.name: tool for tool in self.tools}
        self.former_names: Mapping[str, str] = {
            former: tool.name for tool in self.tools for former in tool.former_names if former not in self._by_name
        }
        """Names that earlier servers gave to tools → the current names."""
        if len(self._by_name) < len(self.tools):
            names = [tool.name for tool in self.tools]
            raise ValueError(f"two tools are called {next(name for name in names if names.count(name) > 1)!r}")

    def __repr__(self) -> str:
        return f"<ToolRegistry of {len(self.tools)} tools>"

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def has(self, tool: Tool) -> bool:
        """Whether the registry contains this tool object."""
        return self._by_name.get(tool.name) is tool

    def with_more(
        self, tools: Iterable[Tool], source_instructions: Mapping[str, str] = MappingProxyType({})
    ) -> "ToolRegistry":
        """A registry that also has these tools, except tools whose names are taken, which ``problems`` lists."""
        by_name = dict(self._by_name)
        problems = add_tools(by_name, tools)
        return ToolRegistry(by_name.values(), [*self.problems, *problems], source_instructions)

    def get(self, name: str) -> Tool:
        """The tool with this name.

        Raises:
            ToolNotFoundError: it does not exist; ``details.suggestions`` lists similar names.
        """
        try:
            return self._by_name[name]
        except KeyError:
            raise tool_not_found(name, self._by_name) from None


def add_tools(tools: dict[str, Tool], added: Iterable[Tool]) -> list[str]:
    """Add tools. Returns a sentence for each tool whose name is taken."""
    return [
        f"tool {tool.name!r} of {tool.source} was skipped: {other.source} has a tool with that name"
        for tool in added
        if (other := tools.setdefault(tool.name, tool)) is not tool
    ]


_NOT_CONFIGURED: Final[Mapping[str, str]] = {
    "clink": "it exists once the operator configures a program, [clink.NAME] in toold.toml."
}
"""The tools that exist only with a configuration, and the advice for each."""


def tool_not_found(name: str, known: Iterable[str]) -> ToolNotFoundError:
    """The error for an unknown name; ``known`` has the names that the caller may use instead."""
    suggestions = close_names(name, known)
    hint = did_you_mean(suggestions) or _NOT_CONFIGURED.get(name) or "list_tools lists all names."
    return ToolNotFoundError(f"There is no tool {name[:100]!r}; {hint}", details={"suggestions": suggestions})
