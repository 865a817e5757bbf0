"""The functions of many tools, in modules by the tools' sources. Pure."""

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
from .python_text import camel, first_sentence, mended

OWN_MODULE: Final = "tools"
"""The module of the daemon's own tools; ``toold`` is the package that programs outside import."""
INDEX_CHARS: Final = 88
"""Of what the index says of one function."""
_USED: Final = frozenset(
    {"Any", "Literal", "NotRequired", "TypedDict", "RuntimeError", "annotations"}
    | {"bool", "dict", "float", "int", "list", "str"}
)
"""What a module names itself: a function called so would hide it from those after it."""
_TAKEN: Final = (
    sys.stdlib_module_names | frozenset(dir(builtins)) | {OWN_MODULE, "ToolError", "gather", "gather_settled"}
)
"""What a program means something else by: a module of that name would be there in its place."""
_HEAD: Final = '''\
"""Tools as functions, for whoever writes code for execute_code, where alone they run; and for type checkers."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict
'''
_RUNS_ELSEWHERE: Final = 'raise RuntimeError("this is a tool of toold; it runs inside execute_code")'


class StubSet:
    """Tools as typed functions, by module. Made for one selection of tools, and never changed.

    What a tool's function is called depends on the tools that there are only as far as names are mended to the same
    one. A signature is written when it is first asked for.
    """

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}
        groups = {name: _group(tool.source) for name, tool in self._tools.items()}
        modules = mended(sorted(set(groups.values()) - {OWN_SOURCE}), kind="module", reserved=_TAKEN)
        modules[OWN_SOURCE] = OWN_MODULE
        members: dict[str, list[str]] = {}
        for name in sorted(self._tools):
            members.setdefault(modules[groups[name]], []).append(name)
        # Tool → (module, function), and back.
        self._names: dict[str, tuple[str, str]] = {}
        self._prefixes: dict[str, str] = {}
        for module, names in sorted(members.items()):
            short = _short(names, {name: groups[name] for name in names})
            identifiers = mended(short.values(), kind="tool", reserved=_USED)
            functions = {name: identifiers[short[name]] for name in names}
            self._names |= {name: (module, function) for name, function in functions.items()}
            self._prefixes |= _prefixes(functions)
        self._tool_names = {python: tool for tool, python in self._names.items()}
        self.modules: Mapping[str, Sequence[str]] = {
            module: tuple(self._names[name][1] for name in names) for module, names in sorted(members.items())
        }
        """Each module's functions."""
        self._stubs: dict[str, FunctionStub] = {}

    def __repr__(self) -> str:
        return f"<StubSet of {len(self._tools)} tools in {', '.join(self.modules)}>"

    def index(self, modules: Iterable[str] | None = None) -> str:
        """Every function by its name with a line, below its module; of all modules, or of those that are named."""
        return "\n".join(
            "\n".join([f"{name}:", *(f"  {one}: {self._said(name, one)}" for one in self.modules[name])])
            for name in (self.modules if modules is None else modules)
        )

    def signatures(self, names: Iterable[str]) -> str:
        """The functions of these tools, named as tools or as ``module.function``, and the classes that they need.

        Raises:
            ToolNotFoundError: there is no such tool; ``details.suggestions`` has the names that are close.
        """
        chosen: dict[str, list[str]] = {}
        for name in dict.fromkeys(self._meant(name) for name in names):
            chosen.setdefault(self._names[name][0], []).append(name)
        return "\n\n".join(
            "\n\n".join([f"# {module}", *(self._written(name, "...") for name in tools)])
            for module, tools in sorted(chosen.items())
        )

    def source_for(self, module: str, functions: Iterable[str] | None = None) -> str:
        """A module: imports, classes and functions, all of them or those that are named.

        Raises:
            KeyError: there is no such module, or no such function in it.
        """
        named = self.modules[module] if functions is None else functions
        tools = (self._tool_names[module, function] for function in named)
        return "\n\n".join([_HEAD, *(f"{self._written(name, _RUNS_ELSEWHERE)}\n" for name in tools)])

    def python_name(self, tool_name: str) -> tuple[str, str]:
        """The module and the function of a tool.

        Raises:
            ToolNotFoundError: there is none of this name; ``details.suggestions`` has those that are close.
        """
        return self._names[self._meant(tool_name)]

    def tool_name(self, module: str, function: str) -> str | None:
        """The tool of a function; None where there is no such function."""
        return self._tool_names.get((module, function))

    def arguments(self, tool_name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """The tool's arguments, where its function was called with those that are given.

        None stands for leaving one out, where the tool takes no null. What the function does not have goes as it is,
        so that the tool's own check refuses it by name.

        Raises:
            ToolNotFoundError: there is no tool of this name.
        """
        return self._stub(self._meant(tool_name)).arguments(given)

    def _meant(self, name: str) -> str:
        if name in self._names:
            return name
        module, _, function = name.rpartition(".")
        tool = self._tool_names.get((module, function))
        if tool is None:
            known = [*self._names, *map(".".join, self._tool_names)]
            suggestions = close_names(name, known)
            hint = did_you_mean(suggestions) or "search_tools finds one by a few words."
            raise ToolNotFoundError(f"There is no tool {name[:100]!r}; {hint}", details={"suggestions": suggestions})
        return tool

    def _said(self, module: str, function: str) -> str:
        return first_sentence(self._tools[self._tool_names[module, function]].description, INDEX_CHARS)

    def _written(self, name: str, body: str) -> str:
        stub = self._stub(name)
        return "\n\n".join([*stub.classes, stub.written(body)])

    def _stub(self, name: str) -> FunctionStub:
        if name not in self._stubs:
            module, function = self._names[name]
            classes = class_names(self._prefixes[name], self.modules[module])
            self._stubs[name] = function_stub(self._tools[name].info, function, classes)
        return self._stubs[name]


def module_for(tools: Iterable[Tool]) -> StubSet:
    """The stubs of these tools, in a module for each of their sources."""
    return StubSet(tools)


def _group(source: str) -> str:
    """What tools of a source stand together as: those of a directory's files by the directory's name."""
    return PurePath(source).parent.name if "/" in source else source


def _short(names: Sequence[str], groups: Mapping[str, str]) -> Mapping[str, str]:
    """Each without its source's name, which the module says already, unless another is called so as it is."""
    taken = {"", *names}
    return {name: name if (rest := name.removeprefix(f"{groups[name]}_")) in taken else rest for name in names}


def _prefixes(functions: Mapping[str, str]) -> dict[str, str]:
    """What each tool's classes are named after: its function, or where two would look alike, just as that is."""
    shared = Counter(map(camel, functions.values()))
    return {name: function if shared[camel(function)] > 1 else camel(function) for name, function in functions.items()}
