"""The forms of elicitation, and their answers. MCP restricts forms to one level of fields with simple values.

A form is rebuilt from known keywords only, so that a hostile schema cannot cost time or memory with nested schemas,
references or regular expressions.
"""

import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, Final
from urllib.parse import urlsplit

from ..terminal_text import terminal_safe
from ..tool_call import Json

MAX_FIELDS: Final = 64
MAX_CHOICES: Final = 512
MAX_NAME_CHARS: Final = 100
MAX_LABEL_CHARS: Final = 1_000
MAX_VALUE_CHARS: Final = 64 * 1024
"""The maximum length of a text in an answer."""

# Tuples, because values of a hostile schema may be unhashable.
_KINDS: Final = ("string", "number", "integer", "boolean", "array")
_FORMATS: Final = ("date", "date-time", "email", "uri")
_EMAIL: Final = re.compile(r"[^@\s]{1,64}@[^@\s]{1,255}")
_SIZES: Final[Mapping[str, tuple[str, ...]]] = {
    "string": ("minLength", "maxLength"),
    "array": ("minItems", "maxItems"),
    "number": ("minimum", "maximum"),
    "integer": ("minimum", "maximum"),
}


class ElicitationFormError(Exception):
    """A form, or its answer, is invalid; the message says why, without its content."""


def read_form(schema: object) -> dict[str, Json]:
    """Returns the form as a schema of known keywords.

    Raises:
        ElicitationFormError: the schema is not a form.
    """
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        raise ElicitationFormError("requestedSchema must have the type object")
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or len(properties) > MAX_FIELDS:
        raise ElicitationFormError(f"requestedSchema must have properties, at most {MAX_FIELDS}")
    fields = {_name(name): _field(name, field) for name, field in properties.items()}
    form: dict[str, Json] = {"type": "object", "properties": fields}
    required = schema.get("required")
    if required is not None:
        if not isinstance(required, list) or not all(isinstance(name, str) and name in fields for name in required):
            raise ElicitationFormError("required must be a list of names of properties")
        form["required"] = list(dict.fromkeys(required))
    return form


def check_content(form: Mapping[str, Any], content: object) -> dict[str, Json]:
    """Returns a form's answer, without fields that the form does not have.

    Raises:
        ElicitationFormError: a value does not fit its field, or one is missing.
    """
    if not isinstance(content, Mapping):
        raise ElicitationFormError("content must be an object")
    properties: Mapping[str, Mapping[str, Any]] = form["properties"]
    missing = [name for name in form.get("required", ()) if content.get(name) is None]
    if missing:
        raise ElicitationFormError(f"content lacks {', '.join(missing[:5])}")
    answer: dict[str, Json] = {}
    for name, field in properties.items():
        value = content.get(name)
        if value is not None:
            problem = _problem(field, value)
            if problem:
                raise ElicitationFormError(f"content.{name} {problem}")
            answer[name] = value
    return answer


def _name(name: object) -> str:
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME_CHARS or not name.isprintable():
        raise ElicitationFormError(f"names of properties must be printable, with at most {MAX_NAME_CHARS} characters")
    return name


def _field(name: str, field: object) -> dict[str, Json]:
    if not isinstance(field, Mapping):
        raise ElicitationFormError(f"{name} is not a schema")
    kind = field.get("type")
    if kind not in _KINDS:
        raise ElicitationFormError(f"{name} must be a string, a number, an integer, a boolean or an array of choices")
    clean: dict[str, Json] = {"type": kind}
    for key in ("title", "description"):
        if isinstance(field.get(key), str):
            clean[key] = _label(field[key])
    clean |= {key: _size(name, key, field[key]) for key in _SIZES.get(kind, ()) if key in field}
    if kind == "string":
        clean |= _choices(name, field, "oneOf")
        if field.get("format") in _FORMATS:
            clean["format"] = field["format"]
    elif kind == "array":
        clean["items"] = _items(name, field.get("items"))
    default = field.get("default")
    if default is not None and not _problem(clean, default):
        clean["default"] = default
    return clean


def _items(name: str, items: object) -> dict[str, Json]:
    choices = _choices(name, items, "anyOf") if isinstance(items, Mapping) else {}
    if not choices:
        raise ElicitationFormError(f"{name} must be an array of choices (enum or anyOf)")
    return choices if "anyOf" in choices else {"type": "string", **choices}


def _choices(name: str, field: Mapping[str, Any], titled: str) -> dict[str, Json]:
    """The choices of a field: ``enum``, or a list of constants with titles under ``titled``."""
    listed = field.get("enum", field.get(titled))
    if listed is None:
        return {}
    if not isinstance(listed, list) or not 0 < len(listed) <= MAX_CHOICES:
        raise ElicitationFormError(f"{name} must have 1 to {MAX_CHOICES} choices")
    if "enum" in field:
        choices: dict[str, Json] = {"enum": [_choice(name, choice) for choice in listed]}
        names = field.get("enumNames")
        if isinstance(names, list) and len(names) == len(listed) and all(isinstance(label, str) for label in names):
            choices["enumNames"] = [_label(label) for label in names]
        return choices
    if not all(isinstance(choice, Mapping) for choice in listed):
        raise ElicitationFormError(f"{name} has a choice without const")
    titles = [
        {"const": _choice(name, choice.get("const")), "title": _label(str(choice.get("title", choice.get("const"))))}
        for choice in listed
    ]
    return {titled: titles}


def _choice(name: str, choice: object) -> str:
    if not isinstance(choice, str) or len(choice) > MAX_LABEL_CHARS or not choice.isprintable():
        raise ElicitationFormError(
            f"{name} has a choice that is not a printable text of at most {MAX_LABEL_CHARS} characters"
        )
    return choice


def _label(text: str) -> str:
    return terminal_safe(text[:MAX_LABEL_CHARS], keep="\n")


def _size(name: str, key: str, value: object) -> int | float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ElicitationFormError(f"{name}.{key} must be a number")
    if key[3:] in {"Length", "Items"} and (not isinstance(value, int) or value < 0):
        raise ElicitationFormError(f"{name}.{key} must be a whole number, 0 or more")
    return value


def _values(field: Mapping[str, Any], titled: str) -> list[str] | None:
    if "enum" in field:
        return list(field["enum"])
    return [choice["const"] for choice in field[titled]] if titled in field else None


def _problem(field: Mapping[str, Any], value: object) -> str | None:
    """Returns why a value does not fit a field; None if it fits."""
    match field["type"]:
        case "boolean":
            return None if isinstance(value, bool) else "must be true or false"
        case "number" | "integer":
            return _number_problem(field, value)
        case "string":
            return _text_problem(field, value)
        case _:
            return _list_problem(field, value)


def _number_problem(field: Mapping[str, Any], value: object) -> str | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return "must be a number"
    if field["type"] == "integer" and not (isinstance(value, int) or value.is_integer()):
        return "must be a whole number"
    if value < field.get("minimum", value):
        return f"must be {field['minimum']} or more"
    return f"must be {field['maximum']} or less" if value > field.get("maximum", value) else None


def _text_problem(field: Mapping[str, Any], value: object) -> str | None:
    if not isinstance(value, str):
        return "must be a string"
    choices = _values(field, "oneOf")
    if choices is not None:
        return None if value in choices else "must be one of its choices"
    if len(value) > min(MAX_VALUE_CHARS, field.get("maxLength", MAX_VALUE_CHARS)):
        return "is too long"
    if len(value) < field.get("minLength", 0):
        return f"must have {field['minLength']} characters or more"
    return None if _has_format(value, field.get("format")) else f"must be a valid {field['format']}"


def _list_problem(field: Mapping[str, Any], value: object) -> str | None:
    choices = _values(field["items"], "anyOf") or []
    if not isinstance(value, list) or not all(
        isinstance(item, str) and item in choices for item in value[:MAX_CHOICES]
    ):
        return "must be a list of its choices"
    if len(value) > min(MAX_CHOICES, field.get("maxItems", MAX_CHOICES)):
        return "has too many choices"
    return f"must have {field['minItems']} choices or more" if len(value) < field.get("minItems", 0) else None


def _has_format(value: str, name: str | None) -> bool:
    try:
        match name:
            case "email":
                return _EMAIL.fullmatch(value) is not None
            case "uri":
                return bool(urlsplit(value).scheme)
            case "date":
                date.fromisoformat(value)
            case "date-time":
                datetime.fromisoformat(value)
    except ValueError:
        return False
    return True
