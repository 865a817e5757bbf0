"""Converts OpenAPI schemas to JSON Schema 2020-12, for the arguments of one operation. Pure.

Invalid parts accept any value, with a note. References become ``$defs`` of the operation, so that recursive schemas
stay recursive.
"""

import re
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from ..source import SourceNotes
from .example_types import accept_description, accept_example, examples_of
from .json_references import BrokenReferenceError, DocumentNode, JsonReferences

Schema = dict[str, Any]

MAX_SUBSCHEMAS: Final = 1_500
"""The maximum number of subschemas of one operation, because they cost tokens in a prompt. Further references accept
any value.
"""
MAX_TOTAL_SUBSCHEMAS: Final = 150_000
"""The maximum for all operations of a source, to limit memory. Further operations get ``MIN_SUBSCHEMAS`` each."""
MIN_SUBSCHEMAS: Final = 50
MAX_DEPTH: Final = 40
MAX_DESCRIPTION_CHARS: Final = 500

TYPE_ALIASES: Final[Mapping[str, str | None]] = {
    **dict.fromkeys(("int", "int32", "int64", "long", "short", "byte"), "integer"),
    **dict.fromkeys(("float", "double", "decimal", "numeric", "currency"), "number"),
    **dict.fromkeys(("bool", "bit"), "boolean"),
    **dict.fromkeys(("list", "set", "arr", "tuple"), "array"),
    **dict.fromkeys(("dict", "map", "hash", "json", "struct", "obj"), "object"),
    **dict.fromkeys(("str", "text", "char", "date", "datetime", "date-time", "time", "uuid", "email"), "string"),
    **dict.fromkeys(("uri", "url", "enum", "file", "binary", "password", "timestamp"), "string"),
    **dict.fromkeys(("any", "mixed", "undefined", "*", ""), None),
    **dict.fromkeys(("none", "nil"), "null"),
}
"""Non-standard types in documents, and their meaning. None stands for any value."""
TYPES: Final = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})
FILE_TYPES: Final = frozenset({"file", "binary"})

_NUMBERS: Final = frozenset({"minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"})
_COUNTS: Final = frozenset(
    {"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains"}
)
SCHEMAS: Final = frozenset({"items", "not", "additionalProperties", "propertyNames", "contains", "if", "then", "else"})
SCHEMA_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
SCHEMA_MAPS: Final = frozenset({"properties", "patternProperties", "dependentSchemas"})


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == int(value)


COPIED_KEYWORDS: Final[Mapping[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(_NUMBERS, _is_number),
    **dict.fromkeys(_COUNTS, _is_count),
    "pattern": lambda value: isinstance(value, str),
    "format": lambda value: isinstance(value, str),
    "uniqueItems": lambda value: isinstance(value, bool),
    "writeOnly": lambda value: value is True,
    "deprecated": lambda value: value is True,
    "const": lambda value: True,  # noqa: ARG005 - any value is valid
    "default": lambda value: True,  # noqa: ARG005 - as above
    "contentEncoding": lambda value: isinstance(value, str),
    "contentMediaType": lambda value: isinstance(value, str),
}
"""Keywords that are copied unchanged if their value is valid."""


class SchemaReader:
    """Converts the schemas of one operation. Afterwards, ``definitions`` contains the referenced schemas."""

    def __init__(self, references: JsonReferences, notes: SourceNotes, max_subschemas: int = MAX_SUBSCHEMAS) -> None:
        """Follows references up to ``max_subschemas`` subschemas, and converts inline schemas up to twice as many."""
        self._references = references
        self._notes = notes
        self._max_subschemas = self._left = max_subschemas
        self._names: dict[tuple[str, str], str] = {}
        self._pending: deque[tuple[str, DocumentNode]] = deque()
        self._definitions: dict[str, Schema] = {}

    def read(self, node: DocumentNode) -> Schema:
        """Converts the schema at this node; invalid parts accept any value."""
        return _as_object(self._read(node, 0))

    def resolve(self, node: DocumentNode) -> DocumentNode:
        """Returns the value or the referenced value; ``{}`` for a broken reference."""
        try:
            return self._references.resolve(node)
        except BrokenReferenceError as error:
            self._notes.repaired(f"{error}; treated as any value")
            return node.part({})

    @property
    def subschema_count(self) -> int:
        """The number of subschemas converted so far."""
        return self._max_subschemas - self._left

    @property
    def definitions(self) -> dict[str, Schema]:
        """The ``$defs`` of the schemas converted so far."""
        while self._pending:
            name, node = self._pending.popleft()
            self._definitions[name] = _as_object(self._read(node, 0))
        return self._definitions

    def _read(self, node: DocumentNode, depth: int) -> Schema | bool:
        schema = node.value
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, dict):
            self._notes.repaired("a schema is not an object; treated as any value")
            return {}
        if depth > MAX_DEPTH:
            self._notes.repaired(f"a schema is nested more than {MAX_DEPTH} levels deep; treated as any value")
            return {}
        self._left -= 1
        if self._left < -self._max_subschemas:  # YAML aliases can make a small text arbitrarily large
            self._notes.repaired(
                f"its schema has over {2 * self._max_subschemas:,} subschemas; the rest is treated as any value"
            )
            return {}
        if isinstance(schema.get("$ref"), str):
            return self._refer(node, schema, depth)
        return self._rewritten(node, schema, depth)

    def _refer(self, node: DocumentNode, schema: Schema, depth: int) -> Schema:
        target = self.resolve(node)
        siblings: Schema = {}
        if isinstance(description := schema.get("description"), str):
            siblings["description"] = _short(description)
        if not _is_structure(target.value):
            out = {**_as_object(self._read(target, depth + 1)), **siblings}
            _accept_shown_types(out, schema)
            return out
        if self._left <= 0:
            self._notes.repaired(
                f"its schema has over {self._max_subschemas:,} subschemas; the rest is treated as any value"
            )
            kind = target.value.get("type")
            return {**({"type": kind} if kind in {"object", "array"} else {}), **siblings}
        refers: Schema = {"$ref": f"#/$defs/{self._name(target)}"}
        if schema.get("nullable") is True:
            return {"anyOf": [refers, {"type": "null"}], **siblings}
        return {**refers, **siblings}

    def _name(self, target: DocumentNode) -> str:
        key = (target.uri, target.json_pointer)
        if key not in self._names:
            plain = re.sub(r"[^A-Za-z0-9_.-]+", "_", target.json_pointer.rsplit("/", 1)[-1]).strip("_")[:80] or "Schema"
            taken = set(self._names.values())
            name = next(free for number in range(1, 10_000) if (free := _numbered(plain, number)) not in taken)
            self._names[key] = name
            self._pending.append((name, target))
        return self._names[key]

    def _rewritten(self, node: DocumentNode, schema: Schema, depth: int) -> Schema:
        out: Schema = {}
        if "$dynamicRef" in schema or "$recursiveRef" in schema:
            self._notes.repaired("a dynamic reference is not followed; treated as any value")
        for keyword, value in schema.items():
            if keyword in COPIED_KEYWORDS:
                if COPIED_KEYWORDS[keyword](value):
                    out[keyword] = value
            elif keyword in SCHEMAS:
                self._set_schema(out, keyword, node.part(value), depth)
            elif keyword in SCHEMA_LISTS:
                self._set_list(out, keyword, node.part(value), depth)
            elif keyword in SCHEMA_MAPS:
                self._set_map(out, keyword, node.part(value), depth)
        self._set_type(out, schema)
        self._set_enum(out, schema)
        self._set_required(out, schema)
        _set_bounds(out, schema)
        if isinstance(description := schema.get("description"), str) and description.strip():
            out["description"] = _short(description)
        _accept_shown_types(out, schema)
        _allow_overlaps(out)
        return _nullable(out) if schema.get("nullable") is True else out

    def _set_schema(self, out: Schema, keyword: str, node: DocumentNode, depth: int) -> None:
        if keyword == "items" and isinstance(node.value, list):
            self._notes.repaired("items is a list of schemas; treated as any items")
            return
        if isinstance(node.value, dict | bool):
            out[keyword] = self._read(node, depth + 1)
        elif node.value is not None:
            self._notes.repaired(f"{keyword} is not a schema; omitted")

    def _set_list(self, out: Schema, keyword: str, node: DocumentNode, depth: int) -> None:
        parts = node.value if isinstance(node.value, list) else []
        schemas = [self._read(node.part(part), depth + 1) for part in parts if isinstance(part, dict | bool)]
        if schemas:
            out[keyword] = schemas
        if len(schemas) < len(parts) or not isinstance(node.value, list):
            self._notes.repaired(f"{keyword} is not a list of schemas; other values are omitted")

    def _set_map(self, out: Schema, keyword: str, node: DocumentNode, depth: int) -> None:
        if not isinstance(node.value, dict):
            self._notes.repaired(f"{keyword} is not an object; omitted")
            return
        schemas = {}
        for name, part in node.value.items():
            if isinstance(part, dict | bool):
                if not self._is_read_only(node.part(part)):
                    schemas[name] = self._read(node.part(part), depth + 1)
            else:
                self._notes.repaired(f"the property {name[:80]} has no schema; treated as any value")
                schemas[name] = {}
        out[keyword] = schemas

    def _is_read_only(self, node: DocumentNode) -> bool:
        return isinstance(node.value, dict) and node.value.get("readOnly") is True

    def _set_type(self, out: Schema, schema: Schema) -> None:
        declared = schema.get("type")
        if declared is None:
            if "properties" in out:
                out["type"] = "object"
            return
        types: list[str] = []
        for kind in declared if isinstance(declared, list) else [declared]:
            known = self._known_type(kind)
            if known is None:
                return
            types.append(known)
            if kind in FILE_TYPES:
                out["format"] = "binary"
        types = list(dict.fromkeys(types))
        if types:
            out["type"] = types if len(types) > 1 else types[0]

    def _known_type(self, declared: Any) -> str | None:
        if isinstance(declared, str) and declared in TYPES:
            return declared
        word = declared.strip().lower() if isinstance(declared, str) else ""
        known = word if word in TYPES else TYPE_ALIASES.get(word)
        self._notes.repaired(f"the type {str(declared)[:40]!r} is not a JSON type; treated as {known or 'any value'}")
        return known

    def _set_enum(self, out: Schema, schema: Schema) -> None:
        choices = schema.get("enum")
        if choices is None:
            return
        if not isinstance(choices, list) or not choices:
            self._notes.repaired("enum is not a list of values; omitted")
            return
        out["enum"] = choices
        if "type" in out and not any(_has_type(choice, out["type"]) for choice in choices):
            self._notes.repaired("no value of enum has the schema's type; the type is omitted")
            del out["type"]

    def _set_required(self, out: Schema, schema: Schema) -> None:
        required = schema.get("required")
        properties = schema.get("properties")
        names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
        if isinstance(properties, dict):
            marked = [
                name for name, part in properties.items() if isinstance(part, dict) and part.get("required") is True
            ]
            if marked:
                self._notes.repaired(f"required is set within {', '.join(marked)[:100]}; applied to the object")
            hidden = set(properties) - set(out.get("properties", ()))
            names = [name for name in dict.fromkeys([*names, *marked]) if name not in hidden]
        if names:
            out["required"] = list(dict.fromkeys(names))


def _set_bounds(out: Schema, schema: Schema) -> None:
    """Converts 3.0's ``exclusiveMinimum: true`` with a ``minimum`` to 3.1's ``exclusiveMinimum``."""
    for exclusive, plain in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if schema.get(exclusive) is True and plain in out:
            out[exclusive] = out.pop(plain)
    if out.get("multipleOf") is not None and out["multipleOf"] <= 0:
        del out["multipleOf"]


def _accept_shown_types(out: Schema, schema: Schema) -> None:
    for example in examples_of(schema):
        accept_example(out, example)
    accept_description(out)


def _allow_overlaps(out: Schema) -> None:
    """Replaces ``oneOf`` by ``anyOf``, because alternatives in documents often overlap. The API decides which
    alternative a value matches.
    """
    if "oneOf" in out:
        forms = out.pop("oneOf")
        if "anyOf" in out:
            out["allOf"] = [*out.get("allOf", ()), {"anyOf": forms}]
        else:
            out["anyOf"] = forms


def _nullable(schema: Schema) -> Schema:
    """Changes the schema to accept null as well, and returns it."""
    if "enum" in schema and None not in schema["enum"]:
        schema["enum"] = [*schema["enum"], None]
    kind = schema.get("type")
    if kind is not None:
        schema["type"] = list(dict.fromkeys([*(kind if isinstance(kind, list) else [kind]), "null"]))
        return schema
    if "allOf" in schema or "anyOf" in schema:
        description = schema.pop("description", None)
        either: Schema = {"anyOf": [schema, {"type": "null"}]}
        return either if description is None else {**either, "description": description}
    return schema


def _is_structure(value: Any) -> bool:
    """Whether a schema deserves a separate definition, and may be recursive."""
    return isinstance(value, dict) and any(key in value for key in (*SCHEMAS, *SCHEMA_LISTS, *SCHEMA_MAPS))


def _as_object(schema: Schema | bool) -> Schema:
    if isinstance(schema, bool):
        return {} if schema else {"not": {}}
    return schema


def _has_type(value: Any, types: str | list[str]) -> bool:
    kinds = [types] if isinstance(types, str) else types
    match value:
        case None:
            return "null" in kinds
        case bool():
            return "boolean" in kinds
        case int():
            return "integer" in kinds or "number" in kinds
        case float():
            return "number" in kinds
        case str():
            return "string" in kinds
        case list():
            return "array" in kinds
        case _:
            return "object" in kinds


def _numbered(name: str, number: int) -> str:
    return name if number == 1 else f"{name}_{number}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_DESCRIPTION_CHARS else line[: MAX_DESCRIPTION_CHARS - 1] + "…"
