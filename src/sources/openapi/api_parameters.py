"""An operation's parameters: which there are, and how each is written. Pure."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..source import SourceNotes
from ..source_tool_names import argument_name
from .api_operation import ApiParameter, Where
from .json_references import BrokenReferenceError, JsonReferences, ReferencePlace
from .openapi_schemas import Schema, SchemaReader

PLACES: Final[tuple[Where, ...]] = ("path", "query", "header", "cookie")
"""Also who has its own name where two are called the same."""
_STYLES: Final[Mapping[str, tuple[str, ...]]] = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
"""The first is the default."""
_OUR_HEADERS: Final = frozenset(
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
"""Headers that are no argument: OpenAPI says so of some, and the others are HTTP's own."""
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
"""A token of RFC 9110."""
_SCHEMA_KEYS: Final = ("type", "format", "enum", "items", "minimum", "maximum", "pattern", "default", "properties")


class ArgumentTable:
    """Names arguments, each once, and makes the schema of them all (decision 31)."""

    def __init__(self) -> None:
        self._properties: dict[str, Schema] = {}
        self._required: list[str] = []

    def add(self, where: str, name: str, schema: Schema, *, required: bool) -> str:
        """Add the argument for a parameter or a field; returns what it is called. Who comes first has its own name."""
        argument = argument_name(name, where, self._properties)
        self._properties[argument] = schema
        if required:
            self._required.append(argument)
        return argument

    def schema(self, definitions: dict[str, Schema]) -> dict[str, Any]:
        """The schema of an object of all arguments; others are refused."""
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
class DeclaredParameters:
    """One parameter as the document has it."""

    name: str
    where: Where
    place: ReferencePlace

    @property
    def value(self) -> Mapping[str, Any]:
        value: Mapping[str, Any] = self.place.value
        return value


def declared_parameters(
    item: ReferencePlace, operation: ReferencePlace, path: str, references: JsonReferences, notes: SourceNotes
) -> list[DeclaredParameters]:
    """The parameters of a path and of one of its operations, by place: each of the path's placeholders has one."""
    found: dict[tuple[str, str], DeclaredParameters] = {}
    for holder in (item, operation):
        for one in _listed(holder, references, notes):
            found[one.where, one.name] = one
    placeholders = re.findall(r"\{([^{}]*)\}", path)
    for name in placeholders:
        if ("path", name) not in found:
            notes.repaired(f"the path parameter {name!r} is not declared; taken as a string")
            found["path", name] = DeclaredParameters(name, "path", operation.at({"schema": {"type": "string"}}))
    surplus = [key for key in found if key[0] == "path" and key[1] not in placeholders]
    for key in surplus:
        notes.repaired(f"the path has no place for the parameter {key[1]!r}; left out of the arguments")
        del found[key]
    return sorted(found.values(), key=lambda one: PLACES.index(one.where))


def _listed(holder: ReferencePlace, references: JsonReferences, notes: SourceNotes) -> Iterator[DeclaredParameters]:
    parameters = holder.value.get("parameters", [])
    if not isinstance(parameters, list):
        notes.repaired("parameters is no list; left out")
        return
    for parameter in parameters:
        try:
            place = references.followed(holder.at(parameter))
        except BrokenReferenceError as error:
            notes.repaired(f"a parameter was left out: {error}")
            continue
        said = place.value if isinstance(place.value, dict) else {}
        name, where = said.get("name"), said.get("in")
        if not isinstance(name, str) or not name:
            notes.repaired("a parameter without a name was left out")
        elif where not in PLACES:
            notes.repaired(f"the parameter {name[:80]!r} is in {str(where)[:20]!r}, which is no place; left out")
        elif where == "header" and name.lower() in _OUR_HEADERS:
            pass  # by OpenAPI's own rule, nothing is wrong
        elif where == "header" and not _HEADER_NAME.fullmatch(name):
            notes.repaired(f"the parameter {name[:80]!r} can be no header; left out")
        else:
            yield DeclaredParameters(name, where, place)


def read_parameter(
    one: DeclaredParameters, table: ArgumentTable, reader: SchemaReader, notes: SourceNotes
) -> ApiParameter:
    """How a parameter is written, its argument added to the table."""
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
            notes.repaired(f"the style of {one.name[:80]!r} is {str(style)[:20]!r}; taken as {styles[0]}")
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


def _schema(one: DeclaredParameters, reader: SchemaReader, notes: SourceNotes) -> tuple[Schema, bool]:
    """A parameter's schema, and whether it is written as JSON (``content``)."""
    value = one.value
    if isinstance(value.get("schema"), dict | bool):
        return reader.read(one.place.at(value["schema"])), False
    content = value.get("content")
    if isinstance(content, dict) and content:
        media_type, media = next(iter(content.items()))
        schema = media.get("schema", {}) if isinstance(media, dict) else {}
        return reader.read(one.place.at(schema)), "json" in media_type.lower()
    said = {key: value[key] for key in _SCHEMA_KEYS if key in value}
    notes.repaired(f"the parameter {one.name[:80]!r} has no schema; taken as {'it says' if said else 'a string'}")
    return reader.read(one.place.at(said or {"type": "string"})), False
