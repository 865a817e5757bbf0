"""The functions of many tools, grouped in modules by the tools' sources. Pure."""

import builtins
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final

from ...protocol.error_codes import ToolNotFoundError
from ...protocol.name_suggestions import close_names, did_you_mean
from ..tool_definition import OWN_SOURCE, Tool
from .function_stub import FunctionStub, class_names, function_stub
from .python_text import camel, first_sentence, unique_identifiers

OWN_MODULE: Final = "tools"
"""The module of built-in tools; ``toold`` would clash with the package that other programs import."""
INDEX_CHARS: Final = 88
"""The length of a function's line in the index."""
_USED: Final = frozenset(
    {"Any", "Literal", "NotRequired", "TypedDict", "RuntimeError", "annotations"}
    | {"bool", "dict", "float", "int", "list", "str"}
)
"""Names that a module uses: a function with such a name would hide it."""
_TAKEN: Final = (
    sys.stdlib_module_names | frozenset(dir(builtins)) | {OWN_MODULE, "ToolError", "gather", "gather_settled"}
)
"""Names that programs use for something else; a module with such a name would replace it."""
_HEAD: Final = '''\
"""Tools as functions, for type checkers and authors of programs. They run only inside execute_code."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict
'''
_RUNS_ELSEWHERE: Final = 'raise RuntimeError("this is a tool of toold; it runs inside execute_code")'


class StubSet:
    """Tools as typed functions, by module. Immutable.

    A function's name depends on the other tools only if identifiers collide. Signatures are generated on first use.
    """

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}
        groups = {name: _group(tool.source) for name, tool in self._tools.items()}
        modules = unique_identifiers(sorted(set(groups.values()) - {OWN_SOURCE}), kind="module", reserved=_TAKEN)
        modules[OWN_SOURCE] = OWN_MODULE
        members: dict[str, list[str]] = {}
        for name in sorted(self._tools):
            members.setdefault(modules[groups[name]], []).append(name)
        # Tool → (module, function), and back.
        self._names: dict[str, tuple[str, str]] = {}
        self._prefixes: dict[str, str] = {}
        for module, names in sorted(members.items()):
            short = _short(names, {name: groups[name] for name in names})
            identifiers = unique_identifiers(short.values(), kind="tool", reserved=_USED)
            functions = {name: identifiers[short[name]] for name in names}
            self._names |= {name: (module, function) for name, function in functions.items()}
            self._prefixes |= _prefixes(functions)
        self._tool_names = {python: tool for tool, python in self._names.items()}
        self.modules: Mapping[str, Sequence[str]] = {
            module: tuple(self._names[name][1] for name in names) for module, names in sorted(members.items())
        }
        """The functions of each module."""
        self.sizes: Sequence[tuple[str, int]] = sorted(
            ((module, len(names)) for module, names in self.modules.items()), key=lambda size: (-size[1], size[0])
        )
        """The modules with the number of their functions, largest first."""
        self._stubs: dict[str, FunctionStub] = {}

    def __repr__(self) -> str:
        return f"<StubSet of {len(self._tools)} tools in {', '.join(self.modules)}>"

    def index(self, modules: Iterable[str] | None = None) -> str:
        """A line for each function, by module, of all modules or of the named ones."""
        return "\n".join(
            "\n".join([f"{name}:", *self.index_lines(name)]) for name in (self.modules if modules is None else modules)
        )

    def index_lines(self, module: str) -> list[str]:
        """A line for each function of a module.

        Raises:
            KeyError: there is no such module.
        """
        return [f"  {function}: {self._summary(module, function)}" for function in self.modules[module]]

    def signatures(self, names: Iterable[str]) -> str:
        """The functions of these tools, named as tools or as ``module.function``, and the classes that they use.

        Raises:
            ToolNotFoundError: there is no such tool; ``details.suggestions`` has similar names.
        """
        return self.signatures_within(names, sys.maxsize)[0]

    def signatures_within(self, names: Iterable[str], max_bytes: int) -> tuple[str, list[str]]:
        """As many signatures as fit into ``max_bytes``, but at least one; and the names of the rest.

        Modules are in alphabetical order; the functions of a module are in the order of the names. The names of the
        rest are ``module.function``.

        Raises:
            ToolNotFoundError: there is no such tool; ``details.suggestions`` has similar names.
        """
        tools = dict.fromkeys(self._tool_name_of(name) for name in names)
        functions = sorted((self._names[tool][0], place, tool) for place, tool in enumerate(tools))
        parts: list[str] = []
        size, shown = 0, ""
        for number, (module, _, tool) in enumerate(functions):
            source = self._source(tool, "...")
            part = source if module == shown else f"# {module}\n\n{source}"
            size += len(part.encode()) + 2
            if parts and size > max_bytes:
                return "\n\n".join(parts), [".".join(self._names[tool]) for _, _, tool in functions[number:]]
            parts.append(part)
            shown = module
        return "\n\n".join(parts), []

    def source_for(self, module: str, functions: Iterable[str] | None = None) -> str:
        """The source of a module: imports, classes, and all functions or the named ones.

        Raises:
            KeyError: there is no such module, or no such function in it.
        """
        named = self.modules[module] if functions is None else functions
        tools = (self._tool_names[module, function] for function in named)
        return "\n\n".join([_HEAD, *(f"{self._source(name, _RUNS_ELSEWHERE)}\n" for name in tools)])

    def python_name(self, tool_name: str) -> tuple[str, str]:
        """The module and function of a tool.

        Raises:
            ToolNotFoundError: there is no such tool; ``details.suggestions`` has similar names.
        """
        return self._names[self._tool_name_of(tool_name)]

    def tool_name(self, module: str, function: str) -> str | None:
        """The tool of a function; None if there is no such function."""
        return self._tool_names.get((module, function))

    def arguments(self, tool_name: str, values: Mapping[str, Any]) -> dict[str, Any]:
        """The tool's arguments for the arguments of its function.

        None means omitting an argument if the tool does not accept null. Unknown arguments are passed on, so that the
        tool's validation rejects them by name.

        Raises:
            ToolNotFoundError: there is no such tool.
        """
        return self._stub(self._tool_name_of(tool_name)).arguments(values)

    def _tool_name_of(self, name: str) -> str:
        if name in self._names:
            return name
        module, _, function = name.rpartition(".")
        tool = self._tool_names.get((module, function))
        if tool is None:
            known = [*self._names, *map(".".join, self._tool_names)]
            suggestions = close_names(name, known)
            hint = did_you_mean(suggestions) or "search_tools finds tools by a few words."
            raise ToolNotFoundError(f"There is no tool {name[:100]!r}; {hint}", details={"suggestions": suggestions})
        return tool

    def _summary(self, module: str, function: str) -> str:
        return first_sentence(self._tools[self._tool_names[module, function]].description, INDEX_CHARS)

    def _source(self, name: str, body: str) -> str:
        stub = self._stub(name)
        return "\n\n".join([*stub.classes, stub.source(body)])

    def _stub(self, name: str) -> FunctionStub:
        if name not in self._stubs:
            module, function = self._names[name]
            classes = class_names(self._prefixes[name], self.modules[module])
            self._stubs[name] = function_stub(self._tools[name].info, function, classes)
        return self._stubs[name]


def module_for(tools: Iterable[Tool]) -> StubSet:
    """The stubs of these tools, with one module per source."""
    return StubSet(tools)


def _group(source: str) -> str:
    """The group of a source's tools: for tools from files, the name of their directory."""
    return PurePath(source).parent.name if "/" in source else source


def _short(names: Sequence[str], groups: Mapping[str, str]) -> Mapping[str, str]:
    """The names without their source's name as a prefix, unless another tool has the shorter name."""
    taken = {"", *names}
    return {name: name if (rest := name.removeprefix(f"{groups[name]}_")) in taken else rest for name in names}


def _prefixes(functions: Mapping[str, str]) -> dict[str, str]:
    """The prefix of each tool's class names: its function in camel case, or unchanged if two would be equal."""
    shared = Counter(map(camel, functions.values()))
    return {name: function if shared[camel(function)] > 1 else camel(function) for name, function in functions.items()}
