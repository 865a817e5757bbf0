"""Adapts arguments in forms of earlier servers: other names, values as text, and arguments without a meaning here.
Pure.

``bind`` calls this only if the arguments do not match, so calls with the listed names cost nothing more. A tool
declares
the former forms of an argument with the argument itself; its listed schema shows the current form only::

    class SearchArguments(Arguments):
        ignored_arguments = {"stream": "answers are streamed if the client reads chunks"}
        former_arguments = {"validation": FormerArgument("ask_expert", {"internal": False, "external": None})}

        ask_expert: bool | None = None
        confidence: Annotated[Confidence, FormerValues(as_confidence)] = "low"
        former_defaults = {"web_search": "the web is searched only if you ask for it; it was by default"}

        web_search: Annotated[bool, FormerNames("use_websearch")] = False
        limit: Annotated[int, FormerNames("lines", clamped=True), Field(ge=1, le=100)] = 10
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple

from pydantic import BaseModel

from ..protocol.error_codes import InvalidArgumentsError
from ..protocol.json_text import InvalidJsonError, parse_json

MODEL_OPTIONS: Final[Mapping[str, str]] = dict.fromkeys(
    ("model", "temperature", "thinking_mode", "use_websearch", "continuation_id", "images", "files"),
    "this tool asks no model",
)
"""Arguments that an earlier server listed for every tool, for ``ignored_arguments`` of tools that ask no model."""

_INTEGER: Final = re.compile(r"-?[0-9]{1,15}")
_NUMBER: Final = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,15})?([eE][+-]?[0-9]{1,2})?")
_BOOLEANS: Final[Mapping[str, bool]] = {"true": True, "false": False}
_MAX_JSON_CHARS: Final = 64 * 1024
"""Longer texts are not parsed as JSON, because that would block the event loop for milliseconds."""
_SHOWN_CHARS: Final = 40


@dataclass(frozen=True, slots=True, init=False)
class FormerNames:
    """Metadata of a field: the names that earlier servers gave to this argument.

    With ``clamped``, a number under such a name that exceeds the current bounds is replaced by the bound. This suits
    amounts, such as the length of a list, for which earlier servers had higher bounds.
    """

    names: tuple[str, ...]
    clamped: bool

    def __init__(self, *names: str, clamped: bool = False) -> None:
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "clamped", clamped)


@dataclass(frozen=True, slots=True)
class FormerValues:
    """Metadata of a field: how earlier servers wrote its values."""

    convert: Callable[[Any], Any]
    """Returns the value in the current form; returns an unrecognized value unchanged, as the same object."""


@dataclass(frozen=True, slots=True)
class FormerArgument:
    """An argument of earlier servers whose values correspond to values of another argument now."""

    now: str
    """The current argument. If a call has both arguments, the value of the former argument is used, because it is more
    specific."""
    values: Mapping[str, Any]
    """Former value, a text or ``true`` or ``false`` → current value; None if the former value is the default now. Other
    values are unknown; null is the default."""


class AdaptedArguments(NamedTuple):
    """Arguments in the current form, and a sentence for the caller about each change."""

    arguments: dict[str, Any]
    notices: tuple[str, ...]


class _FormerArguments(NamedTuple):
    renamed: Mapping[str, str]
    """Former name → current name."""
    clamped: frozenset[str]
    """Former names of numbers that are replaced by the current bound if they exceed it."""
    ignored: Mapping[str, str]
    """Former name → why it has no effect."""
    replaced: Mapping[str, FormerArgument]
    """Former name → the current meaning of its values."""
    converters: Mapping[str, FormerValues]
    """Current name → how former values are converted."""
    not_null: frozenset[str]
    """Optional arguments that do not take null."""


def adapt_arguments(
    tool: str, model: type[BaseModel], schema: Mapping[str, Any], arguments: Mapping[str, Any]
) -> AdaptedArguments | None:
    """The arguments under their current names and as the JSON types of the schema; None if nothing can be adapted.

    Values are converted only if no meaning is lost: ``"0.5"`` where a number is needed, ``"true"`` where a boolean
    is needed, the JSON text of an array or an object, one text where an array of texts is needed, null for an optional
    argument, and what ``FormerValues`` converts.

    Raises:
        InvalidArgumentsError: an argument has different values under two of its names.
    """
    former, properties = _former_arguments(model), schema.get("properties", {})
    adapted: dict[str, Any] = {}
    replacing: dict[str, Any] = {}
    notices: list[str] = []
    origins: dict[str, str] = {}
    for name, value in arguments.items():
        if name not in properties and name in former.ignored:
            notices.append(f"{name} is ignored: {former.ignored[name]}.")
            continue
        if name not in properties and name in former.replaced and _word(value) in (None, *former.replaced[name].values):
            now, meaning = former.replaced[name].now, former.replaced[name].values.get(_word(value) or "")
            notices.append(f"{name}: {_shown(value)} {_meaning(now, meaning)}.")
            replacing |= {} if meaning is None else {now: meaning}
            continue
        current = name if name in properties else former.renamed.get(name, name)
        if current != name:
            notices.append(f"{name} is now {current}.")
        if value is None and current in former.not_null:
            notices.append(f"{current}: null was read as absent.")
            continue
        converted = _converted(value, properties.get(current, {}))
        if current in former.converters:
            converted = former.converters[current].convert(converted)
        if name in former.clamped:
            converted = _clamped(converted, properties.get(current, {}))
        if converted is not value:
            notices.append(f"{current}: {_shown(value)} was read as {_shown(converted)}.")
        if current in adapted and adapted[current] != converted:
            problem = f"has two values, as {origins[current]} and as {name}; send one of them"
            raise InvalidArgumentsError(f"{tool}: {current} {problem}.", details={"fields": {current: problem}})
        adapted[current], origins[current] = converted, name
    return AdaptedArguments(adapted | replacing, tuple(notices)) if notices else None


@cache
def _former_arguments(model: type[BaseModel]) -> _FormerArguments:
    renamed: dict[str, str] = {}
    clamped: set[str] = set()
    converters: dict[str, FormerValues] = {}
    for name, field in model.model_fields.items():
        for metadata in field.metadata:
            if isinstance(metadata, FormerNames):
                renamed |= dict.fromkeys(metadata.names, name)
                clamped |= set(metadata.names) if metadata.clamped else set()
            elif isinstance(metadata, FormerValues):
                converters[name] = metadata
    return _FormerArguments(
        renamed,
        frozenset(clamped),
        getattr(model, "ignored_arguments", {}),
        getattr(model, "former_arguments", {}),
        converters,
        frozenset(
            name
            for name, field in model.model_fields.items()
            if not field.is_required() and field.get_default(call_default_factory=False) is not None
        ),
    )


def default_notices(arguments: BaseModel) -> tuple[str, ...]:
    """A sentence about each omitted argument whose default differs from that of earlier servers."""
    changed: Mapping[str, str] = getattr(arguments, "former_defaults", {})
    return tuple(f"{name}: {text}." for name, text in changed.items() if name not in arguments.model_fields_set)


def _clamped(value: Any, schema: Mapping[str, Any]) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    bounded = min(max(value, schema.get("minimum", value)), schema.get("maximum", value))
    return value if bounded == value else bounded


def _word(value: Any) -> str | None:
    """The value as a key of ``FormerArgument.values``; None for null."""
    return value if isinstance(value, str | None) else json.dumps(value) if isinstance(value, bool) else ""


def _meaning(now: str, value: Any) -> str:
    return "is the default" if value is None else f"was read as {now}: {_shown(value)}"


def _converted(value: Any, schema: Mapping[str, Any]) -> Any:
    """The value as a JSON type of the schema; the same object if it has one already or cannot be converted."""
    types = set(_types(schema))
    if isinstance(value, float) and value.is_integer() and "integer" in types and "number" not in types:
        return int(value)
    if not isinstance(value, str) or "string" in types or not types:
        return value
    text = value.strip()
    if _takes_texts(schema) and text[:1] not in {"[", "{"}:
        return [value] if text else []
    if "boolean" in types and text.lower() in _BOOLEANS:
        return _BOOLEANS[text.lower()]
    if types & {"integer", "number"} and _INTEGER.fullmatch(text):
        return int(text)
    if "number" in types and _NUMBER.fullmatch(text):
        return float(text)
    if types & {"array", "object"} and text[:1] in {"[", "{"} and len(text) <= _MAX_JSON_CHARS:
        try:
            parsed = parse_json(text)
        except InvalidJsonError:
            return value
        return parsed if ("array" if isinstance(parsed, list) else "object") in types else value
    return value


def _takes_texts(schema: Mapping[str, Any]) -> bool:
    """Whether the schema allows an array of texts."""
    item = schema.get("items")
    if schema.get("type") == "array" and isinstance(item, dict) and "string" in _types(item):
        return True
    return any(_takes_texts(part) for part in (*schema.get("anyOf", ()), *schema.get("oneOf", ())))


def _types(schema: Mapping[str, Any]) -> Iterator[str]:
    """The JSON types that a property's schema allows. A reference is an object or an enumeration; it yields nothing."""
    if isinstance(schema.get("type"), str):
        yield schema["type"]
    elif "enum" in schema or "const" in schema:
        yield from ("string" for value in [*schema.get("enum", []), schema.get("const")] if isinstance(value, str))
    for part in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        yield from _types(part)


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_CHARS else f"{text[: _SHOWN_CHARS - 1]}…"
