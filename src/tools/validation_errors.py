"""What is said of arguments that are wrong, whichever kind of schema found it. Pure."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ..protocol.error_codes import InvalidArgumentsError
from ..protocol.name_suggestions import as_sentence, close_names, did_you_mean

MAX_SURPLUS_FIELDS: Final = 64
"""Errors about a million surplus fields would hold everybody up for seconds."""
MAX_FIELDS_IN_MESSAGE: Final = 8
MAX_FIELDS_IN_DETAILS: Final = MAX_SURPLUS_FIELDS
MAX_PATH_CHARS: Final = 120
MAX_VALUE_CHARS: Final = 40
"""Of what the caller gave only so much is repeated."""

_MAX_NUMBER_BITS: Final = 128

_WHOLE: Final = "arguments"
"""The field that an error of all arguments together is told under."""

JSON_TYPES: Final[Mapping[str, str]] = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}
"""JSON Schema's types, as they are said."""


class ValidationErrors:
    """What is wrong with which field, gathered until it is enough."""

    def __init__(self) -> None:
        # By path; what is wrong with all arguments together is under the empty one.
        self._fields: dict[str, str] = {}

    @property
    def any(self) -> bool:
        return bool(self._fields)

    @property
    def enough(self) -> bool:
        return len(self._fields) >= MAX_FIELDS_IN_DETAILS

    def add(self, path: Iterable[str], wrong: str) -> None:
        """Say of the field at this path what is ``wrong``, to be read after its name; a second time joined by *or*."""
        name, wrong = _sendable(".".join(path)[:MAX_PATH_CHARS]), _sendable(wrong)
        said = self._fields.get(name)
        if said is None:
            self._fields[name] = wrong
        elif wrong not in said:
            self._fields[name] = f"{said}, or {wrong}"

    def error(self, tool: str) -> InvalidArgumentsError:
        """The error that tells all: the first fields in its message, each by its path in ``details.fields``."""
        first = list(self._fields.items())[:MAX_FIELDS_IN_MESSAGE]
        named = [f"{name} {wrong}" if name else wrong for name, wrong in first]
        if (more := len(self._fields) - len(named)) > 0:
            named.append(f"and {more} more in details.fields")
        told = "; ".join(named)
        fields = {name or _WHOLE: wrong for name, wrong in self._fields.items()}
        return InvalidArgumentsError(as_sentence(f"{tool}: {told}"), details={"fields": fields})


def surplus(name: str, known: Iterable[str]) -> str:
    """What is said of a field that is not among the ``known`` ones."""
    names = list(dict.fromkeys(known))
    hint = did_you_mean(close_names(name, names, n=1)) or f"there are {', '.join(names) or 'none'}"
    return f"is not an argument; {hint}"


def missing(schema: Mapping[str, Any]) -> str:
    """What is said of a field that is not there; ``schema`` is what it should be."""
    options = schema.get("anyOf", [schema])
    types = [JSON_TYPES.get(option.get("type", "object" if "$ref" in option else ""), "") for option in options]
    expected = " or ".join(dict.fromkeys(filter(None, types)))
    return f"is missing; it should be {expected}" if expected else "is missing"


def given(value: Any, *, secret: bool) -> str:
    """What the caller gave: a short value as it is, of everything else its type."""
    match value:
        case None:
            return "null"
        case list() | tuple():
            return "an array"
        case dict():
            return "an object"
        case str() if secret or len(value) > MAX_VALUE_CHARS:
            return f"a string of {len(value)} characters"
        case int() if value.bit_length() > _MAX_NUMBER_BITS:
            return "a number far too large"
        case bool() | int() | float() | str() if not secret:
            return json.dumps(value, ensure_ascii=False)
        case _:
            return "what was given"


def write_only(schema: Mapping[str, Any]) -> bool:
    """Whether values of this schema must not be repeated."""
    return any(option.get("writeOnly") is True for option in (schema, *schema.get("anyOf", [])))


def _sendable(text: str) -> str:
    """Without halves of surrogate pairs: the error must not fail for the reason that it tells of."""
    return text.encode(errors="replace").decode()
