"""The messages of invalid arguments, for models and JSON Schemas. Pure."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ..protocol.error_codes import InvalidArgumentsError
from ..protocol.name_suggestions import as_sentence, close_names, did_you_mean

MAX_UNKNOWN_ARGUMENTS: Final = 64
"""The largest number of reported unknown fields: a million of them would block the event loop for seconds."""
MAX_FIELDS_IN_MESSAGE: Final = 8
MAX_FIELDS_IN_DETAILS: Final = MAX_UNKNOWN_ARGUMENTS
MAX_PATH_CHARS: Final = 120
MAX_VALUE_CHARS: Final = 40
"""The length of a caller's value in a message."""

_MAX_NUMBER_BITS: Final = 128

_WHOLE: Final = "arguments"
"""The field of errors that concern all arguments together."""

JSON_TYPES: Final[Mapping[str, str]] = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}
"""JSON Schema types in messages."""


class ValidationErrors:
    """Collects errors by field, up to a limit."""

    def __init__(self) -> None:
        # By path; the empty path is for errors of all arguments together.
        self._fields: dict[str, str] = {}

    @property
    def any(self) -> bool:
        return bool(self._fields)

    @property
    def enough(self) -> bool:
        return len(self._fields) >= MAX_FIELDS_IN_DETAILS

    def add(self, path: Iterable[str], problem: str) -> None:
        """Add the error ``problem``, which follows the name of the field at this path; further errors are joined by
        *or*.
        """
        name, problem = _sendable(".".join(path)[:MAX_PATH_CHARS]), _sendable(problem)
        previous = self._fields.get(name)
        if previous is None:
            self._fields[name] = problem
        elif problem not in previous:
            self._fields[name] = f"{previous}, or {problem}"

    def error(self, tool: str) -> InvalidArgumentsError:
        """One error for all fields: the first fields in its message, and all by path in ``details.fields``."""
        first = list(self._fields.items())[:MAX_FIELDS_IN_MESSAGE]
        named = [f"{name} {problem}" if name else problem for name, problem in first]
        if (more := len(self._fields) - len(named)) > 0:
            named.append(f"and {more} more in details.fields")
        message = "; ".join(named)
        fields = {name or _WHOLE: problem for name, problem in self._fields.items()}
        return InvalidArgumentsError(as_sentence(f"{tool}: {message}"), details={"fields": fields})


def unknown_argument(name: str, known: Iterable[str]) -> str:
    """The message for a field that is not in ``known``."""
    names = list(dict.fromkeys(known))
    hint = did_you_mean(close_names(name, names, n=1)) or (
        f"its arguments are {', '.join(names)}" if names else "it takes none"
    )
    return f"is not an argument; {hint}"


def missing(schema: Mapping[str, Any]) -> str:
    """The message for a missing field with this schema."""
    options = schema.get("anyOf", [schema])
    names = [option.get("type", "object" if "$ref" in option else "") for option in options]
    types = [JSON_TYPES.get(name, "") for listed in names for name in ([listed] if isinstance(listed, str) else listed)]
    expected = " or ".join(dict.fromkeys(filter(None, types)))
    return f"is missing; it should be {expected}" if expected else "is missing"


def quoted_value(value: Any, *, secret: bool) -> str:
    """The caller's value: short values unchanged, others by their type."""
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
            return "the given value"


def write_only(schema: Mapping[str, Any]) -> bool:
    """Whether values of this schema must not be repeated in messages."""
    return any(option.get("writeOnly") is True for option in (schema, *schema.get("anyOf", [])))


def _sendable(text: str) -> str:
    """Replaces halves of surrogate pairs, so that an error about them can be sent."""
    return text.encode(errors="replace").decode()
