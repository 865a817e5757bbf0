"""One tool as a typed function: its signature, the classes that this needs, and its arguments' way back. Pure."""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from ...protocol.tool_call import ToolInfo
from .python_text import comment, docstring, mended
from .python_types import ANY, PythonType, literal
from .type_writer import FIELD_CHARS, Fields, TypeWriter, description

LINE_CHARS: Final = 120
"""As long as one line may be; a longer signature has a line an argument."""
DOC_CHARS: Final = 160
_MAX_DEFAULT_CHARS: Final = 48


@dataclass(frozen=True, slots=True)
class StubParameter:
    """One argument, as the function has it."""

    name: str
    """The tool's own name of it."""
    type: PythonType
    default: str | None
    """As code; None where it must be given."""
    said: str

    @property
    def leaves_out(self) -> bool:
        """Whether ``None`` stands for leaving it out: the tool itself takes no null."""
        return self.default == "None" and not self.type.takes(None)

    @property
    def ending(self) -> str:
        """What stands behind the type."""
        return "" if self.default is None else f"{' | None' if self.leaves_out else ''} = {self.default}"


@dataclass(frozen=True, slots=True)
class FunctionStub:
    """A tool's function: written out, and what its arguments are called on either side."""

    function: str
    parameters: Mapping[str, StubParameter]
    """By their names in Python."""
    more: PythonType | None
    """Of what it takes beside them; None where it takes no more."""
    result: PythonType
    said: str
    classes: tuple[str, ...]
    """Their definitions."""

    def written(self, body: str) -> str:
        """The function with its docstring; ``body`` is what it does."""
        arguments = [f"{name}: {one.type}{one.ending}" for name, one in self.parameters.items()]
        if arguments:
            arguments.insert(0, "*")
        said = ["", *(one.said for one in self.parameters.values())]
        if self.more is not None:
            arguments.append(f"**more: {self.more}")
            said.append("")
        head, tail = f"async def {self.function}(", f") -> {self.result}:"
        line = f"{head}{', '.join(arguments)}{tail}"
        if any(said) or len(line) > LINE_CHARS:
            each = (f"    {one},{words}" for one, words in zip(arguments, said, strict=False))
            line = "\n".join([head, *each, tail])
        return "\n".join([line, *([f"    {self.said}"] if self.said else []), f"    {body}"])

    def arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The tool's arguments of those that the function was called with; of names that it has not, as they are."""
        return {
            parameter.name if parameter else name: value
            for name, value in given.items()
            if not ((parameter := self.parameters.get(name)) and value is None and parameter.leaves_out)
        }


def function_stub(info: ToolInfo, function: str, class_name: Callable[[str], str]) -> FunctionStub:
    """The stub of a tool; ``class_name`` makes a name of what a class is for, no two the same."""
    takes = TypeWriter(info.input_schema, class_name, told=True)
    fields = takes.fields(info.input_schema)
    more = _more(fields, takes)
    names = mended(fields.properties, kind="argument", reserved=frozenset({"more"} if more else ()))
    ordered = sorted(fields.properties, key=lambda name: name not in fields.required)
    parameters = {names[name]: _parameter(name, fields, takes) for name in ordered}
    result, classes = _result(info, class_name)
    return FunctionStub(
        function,
        parameters,
        more,
        result,
        docstring(info.description, DOC_CHARS),
        (*takes.classes, *classes),
    )


def _parameter(name: str, fields: Fields, takes: TypeWriter) -> StubParameter:
    schema = fields.properties[name]
    kind = takes.of(schema, name)
    default = None if name in fields.required else _default(schema, kind)
    return StubParameter(name, kind, default, comment(description(schema), FIELD_CHARS))


def _default(schema: object, kind: PythonType) -> str:
    """What is written behind the argument; ``None`` where its default is not said, long, or no plain value."""
    value = schema.get("default") if isinstance(schema, Mapping) else None
    if isinstance(value, list | dict) or not kind.takes(value):
        return "None"
    said = literal(value)
    return said if said is not None and len(said) <= _MAX_DEFAULT_CHARS else "None"


def _more(fields: Fields, takes: TypeWriter) -> PythonType | None:
    if fields.more is False or (fields.more is None and fields.properties):
        return None
    return takes.of(fields.more, "more")


def _result(info: ToolInfo, class_name: Callable[[str], str]) -> tuple[PythonType, list[str]]:
    if info.output_schema is msgspec.UNSET:
        return ANY, []
    gives = TypeWriter(info.output_schema, class_name, told=False)
    return gives.of(info.output_schema, "result"), gives.classes


def class_names(prefix: str, taken: Container[str]) -> Callable[[str], str]:
    """What names the classes of one function: after it and what each is for, with a number where that is not enough."""
    given: set[str] = set()

    def name(purpose: str) -> str:
        base = f"{prefix}_{purpose}"
        number = 1
        while (made := base if number == 1 else f"{base}{number}") in given or made in taken:
            number += 1
        given.add(made)
        return made

    return name
