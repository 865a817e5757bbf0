"""Translates a JSON Schema, with its parts and references, to Python types and classes. Pure."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from .python_text import camel, comment, is_identifier
from .python_types import ANY, PythonType, any_of, choice_of, literal

Schema = Mapping[str, Any]

MAX_DEPTH: Final = 4
"""The deepest nesting of objects and arrays; deeper parts are ``Any``."""
MAX_CLASSES: Final = 16
"""The largest number of classes per schema; further objects are ``dict[str, Any]``."""
MAX_FIELDS: Final = 64
"""The largest number of fields per class; larger objects are ``dict[str, Any]``."""
FIELD_CHARS: Final = 72
"""The length of the comment on a field or argument."""
_MAX_HOPS: Final = 32
"""The longest chain of references."""
_MAX_STEPS: Final = 2000
"""The largest number of visited parts; further ones are ``Any``. A short schema can refer to itself very often."""
_MAX_PURPOSE_CHARS: Final = 40
_PLAIN: Final[Mapping[str, str]] = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
}
_ANY_OBJECT: Final = PythonType(("dict[str, Any]",))


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of an object."""

    properties: Mapping[str, Any]
    """The schemas by name, in order."""
    required: frozenset[str]
    more: object
    """The schema of additional fields; False if there are none, None if unspecified."""


class TypeWriter:
    """Writes the types of one schema. Its objects become classes.

    ``class_name`` returns a unique class name for a purpose. With ``comments``, fields have their descriptions as
    comments.
    """

    def __init__(self, root: Schema, class_name: Callable[[str], str], *, comments: bool) -> None:
        self.classes: list[str] = []
        """The source of the classes; they may refer to one another in any order."""
        self._root = root
        self._class_name = class_name
        self._comments = comments
        # By the schema's identity, so that an object that is referenced twice, or by itself, is one class.
        self._named: dict[int, PythonType] = {}
        self._followed: frozenset[str] = frozenset()
        self._steps = 0

    def of(self, schema: object, purpose: str, depth: int = 0) -> PythonType:
        """The type of a schema; ``purpose`` names its use, such as ``filter``."""
        self._steps += 1
        if not isinstance(schema, Mapping) or depth > MAX_DEPTH or self._steps > _MAX_STEPS:
            return ANY
        if "$ref" in schema:
            return self._of_reference(schema["$ref"], purpose, depth)
        if "const" in schema:
            return choice_of([schema["const"]])
        if choices := _list(schema.get("enum")):
            return choice_of(choices)
        if "properties" not in schema and (combined := self._of_parts(schema, purpose, depth)):
            return combined
        kinds = schema.get("type", "object" if "properties" in schema else None)
        return any_of(self._of_kind(kind, schema, purpose, depth) for kind in (_list(kinds) or [kinds]))

    def fields(self, schema: Schema) -> Fields:
        """The fields of an object: its properties, and those of the schemas of which it is composed."""
        properties: dict[str, Any] = {}
        required: dict[str, None] = {}
        for part, always in islice(self._parts(schema, MAX_DEPTH), _MAX_STEPS):
            for name, value in _mapping(part.get("properties")).items():
                properties.setdefault(name, value)
            if always:
                required |= {name: None for name in _list(part.get("required")) if isinstance(name, str)}
        for name in required:
            properties.setdefault(name, {})
        return Fields(properties, frozenset(required), self._resolved(schema).get("additionalProperties"))

    def _parts(self, schema: Schema, depth: int) -> Iterator[tuple[Schema, bool]]:
        """The schema and the schemas that it is composed of, and whether a value has to match each of them."""
        yield schema, True
        if depth and "$ref" in schema:
            yield from self._parts(self._resolved(schema), depth - 1)
        for keyword, always in (("allOf", True), ("anyOf", False), ("oneOf", False)):
            for part in _list(schema.get(keyword)) if depth else ():
                for inner, holds in self._parts(self._resolved(part), depth - 1):
                    yield inner, always and holds

    def _of_parts(self, schema: Schema, purpose: str, depth: int) -> PythonType | None:
        """The type of ``anyOf``, ``oneOf`` or ``allOf``; None if no type expresses it."""
        if branches := _list(schema.get("anyOf")) or _list(schema.get("oneOf")):
            alternatives = any_of(self.of(branch, purpose, depth) for branch in branches)
            return alternatives if str(alternatives) != "Any" or "type" not in schema else None
        parts = _list(schema.get("allOf"))
        if len(parts) > 1 and self.fields(schema).properties:
            return self._of_object(schema, purpose, depth)
        types = (self.of(part, purpose, depth) for part in parts)
        return next((python_type for python_type in types if str(python_type) != "Any"), None)

    def _of_reference(self, target: object, purpose: str, depth: int) -> PythonType:
        if not isinstance(target, str):
            return ANY
        if target in self._followed and id(self._resolved({"$ref": target})) not in self._named:
            return ANY  # it refers to itself without a class in between
        known, self._followed = self._followed, self._followed | {target}
        written = self.of(self._resolved({"$ref": target}), target.rpartition("/")[2] or purpose, depth)
        self._followed = known
        return written

    def _of_kind(self, kind: object, schema: Schema, purpose: str, depth: int) -> PythonType:
        if kind == "array":
            return PythonType((f"list[{self.of(schema.get('items'), f'{purpose} item', depth + 1)}]",))
        if kind == "object":
            return self._of_object(schema, purpose, depth)
        return PythonType((_PLAIN[kind],)) if isinstance(kind, str) and kind in _PLAIN else ANY

    def _of_object(self, schema: Schema, purpose: str, depth: int) -> PythonType:
        if id(schema) in self._named:
            return self._named[id(schema)]
        fields = self.fields(schema)
        if not fields.properties and fields.more:
            return PythonType((f"dict[str, {self.of(fields.more, purpose, depth + 1)}]",))
        if not 0 < len(fields.properties) <= MAX_FIELDS or fields.more or len(self._named) >= MAX_CLASSES:
            return _ANY_OBJECT
        name = self._class_name(camel(purpose)[:_MAX_PURPOSE_CHARS] or "Object")
        self._named[id(schema)] = named = PythonType((name,))
        types = {key: self.of(part, key, depth + 1) for key, part in fields.properties.items()}
        self.classes.append(self._class(name, types, fields))
        return named

    def _class(self, name: str, types: Mapping[str, PythonType], fields: Fields) -> str:
        total = bool(fields.required)
        text = {
            key: str(python_type) if key in fields.required or not total else f"NotRequired[{python_type}]"
            for key, python_type in types.items()
        }
        ending = "" if total else ", total=False"
        words = " ".join(member for python_type in types.values() for member in python_type.members)
        if any(not is_identifier(key) or _hides(key, words) for key in text):
            # As a call, which accepts any key; quoted, since a class may refer to itself.
            items = ", ".join(f"{_quoted(key)}: {_quoted(annotation)}" for key, annotation in text.items())
            return f"{name} = TypedDict({_quoted(name)}, {{{items}}}{ending})"
        lines = [
            f"    {key}: {annotation}{self._comment_of(fields.properties[key])}" for key, annotation in text.items()
        ]
        return "\n".join([f"class {name}(TypedDict{ending}):", *lines])

    def _comment_of(self, schema: object) -> str:
        return comment(description(schema), FIELD_CHARS) if self._comments else ""

    def _resolved(self, schema: object) -> Schema:
        """The schema after references (``#/$defs/Name``); empty if the target does not exist."""
        for _ in range(_MAX_HOPS):
            if not isinstance(schema, Mapping):
                return {}
            target = schema.get("$ref")
            if target is None:
                return schema
            schema = self._at(target)
        return {}

    def _at(self, target: object) -> object:
        if not isinstance(target, str) or not target.startswith("#"):
            return None
        place: Any = self._root
        for step in target[1:].split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            place = place.get(key) if isinstance(place, Mapping) else None
        return place


def description(schema: object) -> str:
    """A schema's description; empty if it has none."""
    text = _mapping(schema).get("description")
    return text if isinstance(text, str) else ""


def _hides(key: str, types: str) -> bool:
    """Whether a field has the name of one of the types; later annotations would then refer to the field."""
    return key in {"Literal", "NotRequired"} or re.search(rf"\b{re.escape(key)}\b", types) is not None


def _quoted(text: str) -> str:
    return literal(text) or repr(text)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
