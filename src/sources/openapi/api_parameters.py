"""Reads the parameters of an operation. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..source import SourceNotes
from ..source_tool_names import argument_name
from .api_operation import ApiParameter, ParameterLocation
from .example_types import accept_example, examples_of
from .json_references import BrokenReferenceError, DocumentNode, JsonReferences
from .openapi_schemas import Schema, SchemaReader

PARAMETER_LOCATIONS: Final[tuple[ParameterLocation, ...]] = ("path", "query", "header", "cookie")
"""The locations, in the order of precedence if two parameters have the same name."""
_STYLES: Final[Mapping[str, tuple[str, ...]]] = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
"""The styles by location; the first is the default."""
_RESERVED_HEADERS: Final = frozenset(
    {
        "accept",
        "authorization",
        "connection",
        "content-length",
        "content-type",
        "cookie",
        "host",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that never become arguments, by OpenAPI's rules or because HTTP sets them."""
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
"""A token as defined in RFC 9110."""
_SCHEMA_KEYS: Final = ("type", "format", "enum", "items", "minimum", "maximum", "pattern", "default", "properties")


class ArgumentTable:
    """Assigns unique argument names to parameters and body fields, and builds their schema (decision 31)."""

    def __init__(self) -> None:
        self._properties: dict[str, Schema] = {}
        self._required: list[str] = []

    def add(self, location: str, name: str, schema: Schema, *, required: bool) -> str:
        """Adds the argument of a parameter or field; returns its name. If several have the same name, only the first
        keeps it.
        """
        argument = argument_name(name, location, self._properties)
        self._properties[argument] = schema
        if required:
            self._required.append(argument)
        return argument

    def widen(self, argument: str, schema: Schema) -> None:
        """Changes an argument to accept values of this schema as well."""
        before = self._properties[argument]
        if schema not in (before, *before.get("anyOf", ())):
            self._properties[argument] = {"anyOf": [before, schema]}

    def make_optional(self, argument: str) -> None:
        """Removes an argument from the required ones."""
        if argument in self._required:
            self._required.remove(argument)

    def schema(self, definitions: dict[str, Schema]) -> dict[str, Any]:
        """Returns the schema of all arguments, without additional properties."""
        whole: dict[str, Any] = {
            "type": "object",
            "properties": self._properties,
            "required": self._required,
            "additionalProperties": False,
        }
        if not self._required:
            del whole["required"]
        return whole | ({"$defs": definitions} if definitions else {})


@dataclass(frozen=True, slots=True)
class DeclaredParameter:
    """One parameter as declared in the document."""

    name: str
    location: ParameterLocation
    node: DocumentNode

    @property
    def value(self) -> Mapping[str, Any]:
        value: Mapping[str, Any] = self.node.value
        return value


def declared_parameters(
    item: DocumentNode, operation: DocumentNode, path: str, references: JsonReferences, notes: SourceNotes
) -> list[DeclaredParameter]:
    """Returns the parameters of a path and an operation, by location; every placeholder of the path has one."""
    parameters: dict[tuple[str, str], DeclaredParameter] = {}
    for holder in (item, operation):
        for parameter in _listed(holder, references, notes):
            parameters[parameter.location, parameter.name] = parameter
    placeholders = re.findall(r"\{([^{}]*)\}", path)
    for name in placeholders:
        if ("path", name) not in parameters:
            notes.repaired(f"the path parameter {name!r} is not declared; treated as a string")
            parameters["path", name] = DeclaredParameter(name, "path", operation.part({"schema": {"type": "string"}}))
    undeclared = [key for key in parameters if key[0] == "path" and key[1] not in placeholders]
    for key in undeclared:
        notes.repaired(f"the path has no placeholder for the parameter {key[1]!r}; omitted")
        del parameters[key]
    return sorted(parameters.values(), key=lambda parameter: PARAMETER_LOCATIONS.index(parameter.location))


def _listed(holder: DocumentNode, references: JsonReferences, notes: SourceNotes) -> Iterator[DeclaredParameter]:
    parameters = holder.value.get("parameters", [])
    if not isinstance(parameters, list):
        notes.repaired("parameters is not a list; omitted")
        return
    for parameter in parameters:
        try:
            node = references.resolve(holder.part(parameter))
        except BrokenReferenceError as error:
            notes.repaired(f"a parameter was omitted: {error}")
            continue
        declaration = node.value if isinstance(node.value, dict) else {}
        name, location = declaration.get("name"), declaration.get("in")
        if not isinstance(name, str) or not name:
            notes.repaired("a parameter without a name was omitted")
        elif location not in PARAMETER_LOCATIONS:
            notes.repaired(
                f"the parameter {name[:80]!r} is in {str(location)[:20]!r}, which is not a valid location; omitted"
            )
        elif location == "header" and name.lower() in _RESERVED_HEADERS:
            pass  # ignored by OpenAPI's rules
        elif location == "header" and not _HEADER_NAME.fullmatch(name):
            notes.repaired(f"the parameter {name[:80]!r} is not a valid header name; omitted")
        else:
            yield DeclaredParameter(name, location, node)


def read_parameter(
    parameter: DeclaredParameter, table: ArgumentTable, reader: SchemaReader, notes: SourceNotes
) -> ApiParameter:
    """Adds a parameter's argument to the table; returns how it is encoded."""
    schema, as_json = _schema(parameter, reader, notes)
    for example in examples_of(parameter.value):
        accept_example(schema, example)
    if isinstance(description := parameter.value.get("description"), str) and description.strip():
        schema = {**schema, "description": " ".join(description.split())[:500]}
    if parameter.value.get("deprecated") is True:
        schema = {**schema, "deprecated": True}
    required = parameter.location == "path" or parameter.value.get("required") is True
    style = parameter.value.get("style")
    styles = _STYLES[parameter.location]
    if style not in styles:
        if style is not None:
            notes.repaired(f"the style of {parameter.name[:80]!r} is {str(style)[:20]!r}; read as {styles[0]}")
        style = styles[0]
    explode = parameter.value.get("explode")
    return ApiParameter(
        parameter.name,
        table.add(parameter.location, parameter.name, schema, required=required),
        parameter.location,
        str(style),
        explode if isinstance(explode, bool) else style == "form",
        as_json,
        allow_reserved=parameter.location == "query" and parameter.value.get("allowReserved") is True,
    )


def _schema(parameter: DeclaredParameter, reader: SchemaReader, notes: SourceNotes) -> tuple[Schema, bool]:
    """Returns a parameter's schema, and whether it is encoded as JSON (``content``)."""
    value = parameter.value
    if isinstance(value.get("schema"), dict | bool):
        return reader.read(parameter.node.part(value["schema"])), False
    content = value.get("content")
    if isinstance(content, dict) and content:
        media_type, media = next(iter(content.items()))
        schema = media.get("schema", {}) if isinstance(media, dict) else {}
        return reader.read(parameter.node.part(schema)), "json" in media_type.lower()
    keywords = {key: value[key] for key in _SCHEMA_KEYS if key in value}
    meaning = "declared" if keywords else "a string"
    notes.repaired(f"the parameter {parameter.name[:80]!r} has no schema; treated as {meaning}")
    return reader.read(parameter.node.part(keywords or {"type": "string"})), False
