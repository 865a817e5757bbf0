"""The form of a tool's arguments, made from its JSON Schema. Pure.

A field's name in the form is the path of its value: ``/options/0/text``. ``form_arguments`` reads the values back.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

FieldKind = Literal[
    "text", "long_text", "secret", "number", "boolean", "choice", "paths", "content", "list", "group", "union", "json"
]
"""``paths`` is a list of paths, one per line; ``content``, the content of a file in Base64; ``json``, any other
value.
"""

MAX_DEPTH: Final = 6
"""The maximum nesting of fields. Deeper values are written as JSON."""
MAX_FIELDS: Final = 400
"""The maximum number of fields in one form, because references can multiply them. All other values are written as
JSON.
"""
MAX_CHOICES: Final = 500
LONG_TEXT_CHARS: Final = 500
"""A text that may be longer gets a field with several lines."""
_LONG_TEXTS: Final = frozenset(
    {
        "prompt",
        "text",
        "content",
        "code",
        "program",
        "description",
        "message",
        "body",
        "step",
        "findings",
        "query",
        "sql",
    }
)
"""Names of arguments whose texts usually have several lines."""
_PATHS: Final = frozenset(
    {"files", "images", "paths", "relevant_files", "absolute_file_paths", "folders", "file_paths"}
)
"""Names of arguments that are lists of paths in the workspace."""


@dataclass(frozen=True, slots=True)
class FormField:
    """One argument, or a part of one."""

    key: str
    """The name in the object; empty in lists and unions."""
    kind: FieldKind
    required: bool = False
    description: str = ""
    default: Any = None
    """The default value or an example; None if there is neither."""
    whole: bool = False
    """Whether the number has no fraction."""
    nullable: bool = False
    least: float | None = None
    most: float | None = None
    max_chars: int | None = None
    choices: tuple[Any, ...] = ()
    fields: tuple["FormField", ...] = ()
    """For a group: the parts of the object."""
    open: bool = False
    """For a group: whether the object may have other parts, which are written as JSON."""
    item: "FormField | None" = None
    """For a list: the field of one item."""
    options: tuple["FormField", ...] = ()
    """For a union: the fields of its options."""
    title: str = ""
    """For an option of a union: its title."""


def argument_form(schema: Mapping[str, Any]) -> FormField:
    """Returns the group of a tool's arguments. Never fails: unsupported schemas become fields for JSON."""
    return _Reader(schema).group("", schema, required=True, depth=0)


class _Reader:
    """Reads one schema."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = MAX_FIELDS

    def group(self, key: str, schema: Mapping[str, Any], *, required: bool, depth: int) -> FormField:
        properties = schema.get("properties")
        named = properties if isinstance(properties, Mapping) else {}
        wanted = schema.get("required")
        needed = {str(name) for name in wanted} if isinstance(wanted, list) else set()
        parts = [self.field(str(name), part, required=name in needed, depth=depth + 1) for name, part in named.items()]
        # Required arguments come first.
        parts.sort(key=lambda part: not part.required)
        return FormField(
            key,
            "group",
            required=required,
            description=_text(schema.get("description")),
            fields=tuple(parts),
            open=schema.get("additionalProperties", not named) not in (False, None),
        )

    def field(self, key: str, part: Any, *, required: bool, depth: int) -> FormField:
        """The field of one value."""
        schema = self._resolved(part)
        schema, nullable = _without_null(schema)
        schema = self._resolved(schema)
        self._left -= 1
        description = _text(schema.get("description"))
        default = _example(schema)
        if self._left < 0 or depth > MAX_DEPTH:
            return FormField(key, "json", required, description, default, nullable=nullable)
        common = {"required": required, "description": description, "default": default, "nullable": nullable}
        options = schema.get("anyOf") or schema.get("oneOf")
        if isinstance(options, list) and len(options) > 1 and "enum" not in schema:
            return self._union(key, schema, options, depth, common)
        values = [schema["const"]] if "const" in schema else schema.get("enum")
        if isinstance(values, list) and 0 < len(values) <= MAX_CHOICES:
            return FormField(key, "choice", choices=tuple(values), **common)
        return self._plain(key, schema, depth, common)

    def _plain(self, key: str, schema: Mapping[str, Any], depth: int, common: dict[str, Any]) -> FormField:
        types = schema.get("type")
        if isinstance(types, list):
            if len(types) > 1:
                options = [{**schema, "type": name} for name in types]
                return self._union(key, schema, options, depth, common)
            types = types[0] if types else None
        if types is None and isinstance(schema.get("properties"), Mapping):
            types = "object"
        match types:
            case "string":
                return FormField(key, _text_kind(key, schema), max_chars=_count(schema.get("maxLength")), **common)
            case "integer" | "number":
                least, most = _number(schema.get("minimum")), _number(schema.get("maximum"))
                return FormField(key, "number", whole=types == "integer", least=least, most=most, **common)
            case "boolean":
                return FormField(key, "boolean", **common)
            case "array" if isinstance(schema.get("items"), Mapping):
                item = self.field("", schema["items"], required=True, depth=depth + 1)
                if item.kind == "text" and key in _PATHS:
                    return FormField(key, "paths", **common)
                return FormField(key, "list", item=item, **common)
            case "object" if isinstance(schema.get("properties"), Mapping) and schema["properties"]:
                group = self.group(key, schema, required=common["required"], depth=depth)
                return FormField(key, "group", fields=group.fields, open=group.open, **{**common, "default": None})
        return FormField(key, "json", **common)

    def _union(
        self, key: str, schema: Mapping[str, Any], options: list[Any], depth: int, common: dict[str, Any]
    ) -> FormField:
        outer = {name: value for name, value in schema.items() if name not in {"anyOf", "oneOf", "default", "type"}}
        shared: dict[str, Any] = {name: outer[name] for name in ("properties", "required") if name in outer}
        read = []
        for option in options:
            resolved = self._resolved(option)
            merged: Mapping[str, Any] = {**shared, **resolved} if "properties" in resolved or not shared else resolved
            field = self.field("", merged, required=True, depth=depth + 1)
            title = _text(resolved.get("title")) or _name_of(field)
            read.append(replace(field, title=title))
        if all(option.kind in {"choice", "boolean"} for option in read):
            values = [value for option in read for value in option.choices or (True, False)]
            return FormField(key, "choice", choices=tuple(values), **common)
        return FormField(key, "union", options=tuple(read), **common)

    def _resolved(self, part: Any) -> Mapping[str, Any]:
        """A schema without a reference or a single ``allOf`` at its top."""
        for _ in range(MAX_DEPTH):
            if not isinstance(part, Mapping):
                return {}
            target, every = part.get("$ref"), part.get("allOf")
            if isinstance(target, str):
                part = {**self._target(target), **{name: value for name, value in part.items() if name != "$ref"}}
            elif isinstance(every, list) and len(every) == 1 and isinstance(every[0], Mapping):
                part = {**every[0], **{name: value for name, value in part.items() if name != "allOf"}}
            else:
                return part
        return {}

    def _target(self, reference: str) -> Mapping[str, Any]:
        """The schema that a reference within the document names."""
        if not reference.startswith("#"):
            return {}
        place: Any = self._root
        for step in reference[1:].split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            place = place.get(name) if isinstance(place, Mapping) else None
        return place if isinstance(place, Mapping) else {}


def _without_null(schema: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """The schema without null as a type or option, and whether it had null."""
    types = schema.get("type")
    if isinstance(types, list) and "null" in types:
        return {**schema, "type": [name for name in types if name != "null"]}, True
    for word in ("anyOf", "oneOf"):
        options = schema.get(word)
        if isinstance(options, list):
            others = [
                option for option in options if not (isinstance(option, Mapping) and option.get("type") == "null")
            ]
            if len(others) == 1 and isinstance(others[0], Mapping):
                return {**others[0], **{name: value for name, value in schema.items() if name != word}}, len(
                    options
                ) > 1
            return {**schema, word: others}, len(others) < len(options)
    return schema, False


def _text_kind(key: str, schema: Mapping[str, Any]) -> FieldKind:
    if schema.get("contentEncoding") == "base64" or schema.get("format") in {"byte", "binary"}:
        return "content"
    if schema.get("writeOnly") is True or schema.get("format") == "password":
        return "secret"
    most = _count(schema.get("maxLength"))
    if key in _LONG_TEXTS or (most is not None and most > LONG_TEXT_CHARS and "pattern" not in schema):
        return "long_text"
    return "text"


def _example(schema: Mapping[str, Any]) -> Any:
    if schema.get("default") is not None:
        return schema["default"]
    examples = schema.get("examples")
    return examples[0] if isinstance(examples, list) and examples else None


def _name_of(field: FormField) -> str:
    """A title for an option without one."""
    match field.kind:
        case "group":
            return ", ".join(part.key for part in field.fields if part.required)[:60] or "object"
        case "list":
            return "list"
        case "number":
            return "whole number" if field.whole else "number"
        case "boolean":
            return "yes or no"
        case "choice":
            return " or ".join(map(str, field.choices))[:60]
        case "json":
            return "JSON"
        case _:
            return "text"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _number(value: Any) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
