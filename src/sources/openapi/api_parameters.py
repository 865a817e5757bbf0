"""Reads the parameters of an operation. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..source import SourceNotes
from ..source_tool_names import argument_name
from .api_operation import ApiParameter, ParameterLocation
from .json_references import BrokenReferenceError, JsonReferences, ReferencePlace
from .openapi_schemas import Schema, SchemaReader

PLACES: Final[tuple[ParameterLocation, ...]] = ("path", "query", "header", "cookie")
"""Also the order of precedence if two parameters have the same name."""
_STYLES: Final[Mapping[str, tuple[str, ...]]] = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
"""The first is the default."""
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

    def add(self, where: str, name: str, schema: Schema, *, required: bool) -> str:
        """Adds the argument of a parameter or field; returns its name. The first one keeps its own name."""
        argument = argument_name(name, where, self._properties)
        self._properties[argument] = schema
        if required:
            self._required.append(argument)
        return argument

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
    where: ParameterLocation
    place: ReferencePlace

    @property
    def value(self) -> Mapping[str, Any]:
        value: Mapping[str, Any] = self.place.value
        return value


def declared_parameters(
    item: ReferencePlace, operation: ReferencePlace, path: str, references: JsonReferences, notes: SourceNotes
) -> list[DeclaredParameter]:
    """Returns the parameters of a path and an operation, by place; every placeholder of the path has one."""
    found: dict[tuple[str, str], DeclaredParameter] = {}
    for holder in (item, operation):
        for one in _listed(holder, references, notes):
            found[one.where, one.name] = one
    placeholders = re.findall(r"\{([^{}]*)\}", path)
    for name in placeholders:
        if ("path", name) not in found:
            notes.repaired(f"the path parameter {name!r} is not declared; treated as a string")
            found["path", name] = DeclaredParameter(name, "path", operation.at({"schema": {"type": "string"}}))
    undeclared = [key for key in found if key[0] == "path" and key[1] not in placeholders]
    for key in undeclared:
        notes.repaired(f"the path has no placeholder for the parameter {key[1]!r}; omitted")
        del found[key]
    return sorted(found.values(), key=lambda one: PLACES.index(one.where))


def _listed(holder: ReferencePlace, references: JsonReferences, notes: SourceNotes) -> Iterator[DeclaredParameter]:
    parameters = holder.value.get("parameters", [])
    if not isinstance(parameters, list):
        notes.repaired("parameters is not a list; omitted")
        return
    for parameter in parameters:
        try:
            place = references.resolve(holder.at(parameter))
        except BrokenReferenceError as error:
            notes.repaired(f"a parameter was omitted: {error}")
            continue
        declaration = place.value if isinstance(place.value, dict) else {}
        name, where = declaration.get("name"), declaration.get("in")
        if not isinstance(name, str) or not name:
            notes.repaired("a parameter without a name was omitted")
        elif where not in PLACES:
            notes.repaired(
                f"the parameter {name[:80]!r} is in {str(where)[:20]!r}, which is not a valid place; omitted"
            )
        elif where == "header" and name.lower() in _RESERVED_HEADERS:
            pass  # ignored by OpenAPI's rules
        elif where == "header" and not _HEADER_NAME.fullmatch(name):
            notes.repaired(f"the parameter {name[:80]!r} is not a valid header name; omitted")
        else:
            yield DeclaredParameter(name, where, place)


def read_parameter(
    one: DeclaredParameter, table: ArgumentTable, reader: SchemaReader, notes: SourceNotes
) -> ApiParameter:
    """Adds a parameter's argument to the table; returns how it is encoded."""
    schema, as_json = _schema(one, reader, notes)
    if isinstance(description := one.value.get("description"), str) and description.strip():
        schema = {**schema, "description": " ".join(description.split())[:500]}
    if one.value.get("deprecated") is True:
        schema = {**schema, "deprecated": True}
    required = one.where == "path" or one.value.get("required") is True
    style = one.value.get("style")
    styles = _STYLES[one.where]
    if style not in styles:
        if style is not None:
            notes.repaired(f"the style of {one.name[:80]!r} is {str(style)[:20]!r}; read as {styles[0]}")
        style = styles[0]
    explode = one.value.get("explode")
    return ApiParameter(
        one.name,
        table.add(one.where, one.name, schema, required=required),
        one.where,
        str(style),
        explode if isinstance(explode, bool) else style == "form",
        as_json,
    )


def _schema(one: DeclaredParameter, reader: SchemaReader, notes: SourceNotes) -> tuple[Schema, bool]:
    """Returns a parameter's schema, and whether it is encoded as JSON (``content``)."""
    value = one.value
    if isinstance(value.get("schema"), dict | bool):
        return reader.read(one.place.at(value["schema"])), False
    content = value.get("content")
    if isinstance(content, dict) and content:
        media_type, media = next(iter(content.items()))
        schema = media.get("schema", {}) if isinstance(media, dict) else {}
        return reader.read(one.place.at(schema)), "json" in media_type.lower()
    keywords = {key: value[key] for key in _SCHEMA_KEYS if key in value}
    meaning = "declared" if keywords else "a string"
    notes.repaired(f"the parameter {one.name[:80]!r} has no schema; treated as {meaning}")
    return reader.read(one.place.at(keywords or {"type": "string"})), False
