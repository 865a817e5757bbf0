"""One tool as a typed function: its signature and classes, and the conversion of its arguments. Pure."""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from ...protocol.tool_call import ToolInfo
from .python_text import comment, docstring, unique_identifiers
from .python_types import ANY, PythonType, literal
from .type_writer import FIELD_CHARS, Fields, TypeWriter, description

LINE_CHARS: Final = 120
"""A signature with longer lines has one argument per line."""
DOC_CHARS: Final = 160
_MAX_DEFAULT_CHARS: Final = 48


@dataclass(frozen=True, slots=True)
class StubParameter:
    """One parameter of a function."""

    name: str
    """The argument's name in the tool."""
    type: PythonType
    default: str | None
    """As Python code; None if the argument is required."""
    text: str

    @property
    def omits_none(self) -> bool:
        """Whether ``None`` means omitting the argument, since the tool does not accept null."""
        return self.default == "None" and not self.type.takes(None)

    @property
    def ending(self) -> str:
        """The code after the type."""
        return "" if self.default is None else f"{' | None' if self.omits_none else ''} = {self.default}"


@dataclass(frozen=True, slots=True)
class FunctionStub:
    """A tool's function, and the names of its arguments in Python and in the tool."""

    function: str
    parameters: Mapping[str, StubParameter]
    """The parameters by their Python names."""
    more: PythonType | None
    """The type of further arguments; None if there are none."""
    result: PythonType
    text: str
    classes: tuple[str, ...]
    """The source of the classes in the signature."""

    def source(self, body: str) -> str:
        """The source of the function with its docstring and this body."""
        arguments = [f"{name}: {parameter.type}{parameter.ending}" for name, parameter in self.parameters.items()]
        if arguments:
            arguments.insert(0, "*")
        texts = ["", *(parameter.text for parameter in self.parameters.values())]
        if self.more is not None:
            arguments.append(f"**more: {self.more}")
            texts.append("")
        head, tail = f"async def {self.function}(", f") -> {self.result}:"
        line = f"{head}{', '.join(arguments)}{tail}"
        if any(texts) or len(line) > LINE_CHARS:
            each = (f"    {argument},{text}" for argument, text in zip(arguments, texts, strict=False))
            line = "\n".join([head, *each, tail])
        return "\n".join([line, *([f"    {self.text}"] if self.text else []), f"    {body}"])

    def arguments(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Converts the function's arguments to the tool's; arguments with unknown names are unchanged."""
        return {
            parameter.name if parameter else name: value
            for name, value in values.items()
            if not ((parameter := self.parameters.get(name)) and value is None and parameter.omits_none)
        }


def function_stub(info: ToolInfo, function: str, class_name: Callable[[str], str]) -> FunctionStub:
    """The stub of a tool; ``class_name`` returns a unique class name for a purpose."""
    takes = TypeWriter(info.input_schema, class_name, comments=True)
    fields = takes.fields(info.input_schema)
    more = _more(fields, takes)
    names = unique_identifiers(fields.properties, kind="argument", reserved=frozenset({"more"} if more else ()))
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
    """The default in the signature; ``None`` if the schema has no default, or if it is long or not a plain value."""
    value = schema.get("default") if isinstance(schema, Mapping) else None
    if isinstance(value, list | dict) or not kind.takes(value):
        return "None"
    code = literal(value)
    return code if code is not None and len(code) <= _MAX_DEFAULT_CHARS else "None"


def _more(fields: Fields, takes: TypeWriter) -> PythonType | None:
    if fields.more is False or (fields.more is None and fields.properties):
        return None
    return takes.of(fields.more, "more")


def _result(info: ToolInfo, class_name: Callable[[str], str]) -> tuple[PythonType, list[str]]:
    if info.output_schema is msgspec.UNSET:
        return ANY, []
    gives = TypeWriter(info.output_schema, class_name, comments=False)
    return gives.of(info.output_schema, "result"), gives.classes


def class_names(prefix: str, taken: Container[str]) -> Callable[[str], str]:
    """Returns a function that names a function's classes by prefix and purpose, with a number if needed."""
    used: set[str] = set()

    def name(purpose: str) -> str:
        base = f"{prefix}_{purpose}"
        number = 1
        while (candidate := base if number == 1 else f"{base}{number}") in used or candidate in taken:
            number += 1
        used.add(candidate)
        return candidate

    return name
