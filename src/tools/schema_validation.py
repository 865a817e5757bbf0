"""Translates jsonschema's errors into the wording that toold uses for all argument errors. Pure."""

from collections.abc import Mapping
from itertools import islice
from typing import Any, Final

from jsonschema import ValidationError
from jsonschema.exceptions import best_match

from .validation_errors import JSON_TYPES, ValidationErrors, missing, quoted_value, unknown_argument, write_only


def add_error(errors: ValidationErrors, error: ValidationError) -> None:
    """Add the message of this error. If the value may have one of several forms, add the messages for the closest
    form."""
    path = [str(step) for step in error.absolute_path]
    value: Any = error.validator_value
    instance: Any = error.instance
    match error.validator:
        case "required":
            properties = _mapping(error.schema).get("properties", {})
            for name in islice((name for name in value if name not in instance), 64):
                errors.add([*path, name], missing(_mapping(properties.get(name))))
        case "additionalProperties" if value is False:
            errors.add(path, unknown_argument(path[-1], _mapping(error.schema).get("properties", {})))
        case "dependentRequired":
            for name, needed in value.items():
                if name in instance:
                    for other in needed:
                        if other not in instance:
                            errors.add([*path, other], f"is missing; it is required with {name}")
        case "anyOf" | "oneOf" if error.context:
            _add_branch_errors(errors, error, path)
        case _:
            errors.add(path, _message_of(error))


def _add_branch_errors(errors: ValidationErrors, error: ValidationError, path: list[str]) -> None:
    """The value has none of several forms: report the types that would match, or the errors of the closest form."""
    context = error.context or []
    if all(cause.validator == "type" and cause.absolute_path == error.absolute_path for cause in context):
        types = [kind for cause in context for kind in _listed(cause.validator_value)]
        errors.add(path, _wrong_type(types, error))
        return
    nearest = best_match([error])
    if nearest is None or nearest is error or nearest.validator in {"anyOf", "oneOf"}:
        errors.add(path, "matches none of its allowed forms")
    else:
        add_error(errors, nearest)


_BOUNDS: Final[Mapping[str, str]] = {
    "minimum": "should be {bound} or more",
    "maximum": "should be {bound} or less",
    "exclusiveMinimum": "should be more than {bound}",
    "exclusiveMaximum": "should be less than {bound}",
    "multipleOf": "should be a multiple of {bound}",
}
_SIZES: Final[Mapping[str, str]] = {
    "minLength": "should have {bound} characters or more",
    "maxLength": "should have {bound} characters or fewer",
    "minItems": "should have {bound} items or more",
    "maxItems": "should have {bound} items or fewer",
    "minProperties": "should have {bound} fields or more",
    "maxProperties": "should have {bound} fields or fewer",
    "pattern": "should match the pattern {bound}",
    "uniqueItems": "should have no two equal items",
    "contains": "lacks a required item",
    "not": "has a form that is not allowed",
    "oneOf": "matches several forms, but must match exactly one",
}


def _message_of(error: ValidationError) -> str:
    """The error of one value, to be read after its name."""
    keyword = str(error.validator)
    bound: Any = error.validator_value
    if keyword == "type":
        return _wrong_type(_listed(bound), error)
    if keyword in _BOUNDS:
        return f"{_BOUNDS[keyword].format(bound=bound)}, not {_shown_value(error)}"
    if keyword in _SIZES:
        return _SIZES[keyword].format(bound=str(bound)[:200])
    if keyword == "enum":
        choices = ", ".join(quoted_value(choice, secret=False) for choice in bound[:20]) + (
            ", …" if len(bound) > 20 else ""
        )
        return f"should be one of {choices}, not {_shown_value(error)}"
    if keyword == "const":
        return f"should be {quoted_value(bound, secret=False)}, not {_shown_value(error)}"
    return f"does not match its schema ({keyword[:40]})" if error.validator else "is not allowed here"


def _wrong_type(types: list[str], error: ValidationError) -> str:
    expected = " or ".join(dict.fromkeys(JSON_TYPES.get(kind, kind) for kind in types))
    return f"should be {expected}, not {_shown_value(error)}"


def _shown_value(error: ValidationError) -> str:
    schema = _mapping(error.schema)
    return quoted_value(error.instance, secret=write_only(schema) or schema.get("format") == "password")


def _listed(types: Any) -> list[str]:
    return [types] if isinstance(types, str) else list(types)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
