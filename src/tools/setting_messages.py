"""The messages of invalid settings and definitions, by pydantic's error types. They follow the name of the setting."""

import re
from collections.abc import Mapping
from typing import Final

from pydantic_core import ErrorDetails, PydanticCustomError

from ..protocol.name_suggestions import close_names, did_you_mean
from ..shaping import LanguageError, parse_filter

_TEMPLATES: Final[Mapping[str, str]] = {
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a whole number of fewer digits",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "greater_than": "must be more than {gt:g}",
    "greater_than_equal": "must be {ge:g} or more",
    "less_than_equal": "must be {le:g} or less",
    "string_type": "must be text",
    "string_too_short": "must not be empty",
    "path_type": "must be a path",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "too_short": "must have one entry or more",
    "too_long": "must have {max_length} entries or fewer",
    "dict_type": "must be a table",
    "model_type": "must be a table",
    "model_attributes_type": "must be a table",
}
"""The message for each error type; its fields are in the error's context."""


def setting_message(details: ErrorDetails) -> str:
    """The message for an invalid setting; pydantic's message if this module has none."""
    kind, context = details["type"], details.get("ctx", {})
    if kind == "literal_error":
        options = re.findall(r"'([^']+)'", str(context["expected"]))
        hint = did_you_mean(close_names(str(details.get("input", "")), options, n=1))
        choices = "must be " if len(options) == 1 else "must be one of "
        return choices + ", ".join(options) + (f"; {hint}" if hint else "")
    template = _TEMPLATES.get(kind)
    return details["msg"] if template is None else template.format_map(context)


def condition_text(text: str) -> str:
    """A validator that returns the text of a condition unchanged.

    Raises:
        PydanticCustomError: the text is not a condition.
    """
    try:
        parse_filter(text)
    except LanguageError as error:
        raise PydanticCustomError("condition", "{message}", {"message": f"is not a condition: {error}"}) from None
    return text
