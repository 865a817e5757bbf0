"""Fills in the variables of prompts. Pure."""

import re
from collections.abc import Mapping
from string import Formatter
from typing import Final

from ..tools import PromptError, TemplateFormat
from .mustache import fill_mustache
from .prompt_variables import MAX_PROMPT_CHARS, VARIABLE_NAME, as_text, prompt_too_long, unknown_variable

_MUSTACHE_NAME: Final = re.compile(rf"\{{\{{[#^&{{]?\s*({VARIABLE_NAME.pattern})")


def fill_template(text: str, template_format: TemplateFormat | None, variables: Mapping[str, object]) -> str:
    """Return the text with its variables filled in, without whitespace at its ends.

    Args:
        text: the template.
        template_format: None if the source does not declare it. The text is then not a template if there are no
            variables, a MUSTACHE template if it has ``{{name}}`` for one of them, otherwise an f-string template.
        variables: the values.

    Raises:
        PromptError: the template has an unknown variable or an invalid one, or the prompt is too long.
    """
    match template_format or _guessed_format(text, variables):
        case "mustache":
            filled = fill_mustache(text, variables)
        case "f-string":
            filled = _fill_f_string(text, variables)
        case _:
            filled = text
    return filled.strip()


def _guessed_format(text: str, variables: Mapping[str, object]) -> TemplateFormat:
    if not variables:
        return "none"
    return "mustache" if any(match[1] in variables for match in _MUSTACHE_NAME.finditer(text)) else "f-string"


def _fill_f_string(text: str, variables: Mapping[str, object]) -> str:
    pieces: list[str] = []
    chars = 0
    try:
        # Only the parser of str.format is used, because str.format itself may read attributes and items of values.
        for literal, name, spec, conversion in Formatter().parse(text):
            value = "" if name is None else _f_string_value(name, spec, conversion, variables)
            pieces += literal, value
            chars += len(literal) + len(value)
            if chars > MAX_PROMPT_CHARS:
                raise prompt_too_long()
    except ValueError:
        raise PromptError(
            "the f-string template has a brace without its counterpart; write {{ and }} for braces in the text"
        ) from None
    return "".join(pieces)


def _f_string_value(name: str, spec: str | None, conversion: str | None, variables: Mapping[str, object]) -> str:
    if spec or conversion or not VARIABLE_NAME.fullmatch(name):
        shown = name + (f"!{conversion}" if conversion else "") + (f":{spec}" if spec else "")
        raise PromptError(
            f"the f-string template has the field {{{shown[:60]}}}; fields are names only, such as {{name}}, and "
            "braces in the text are written {{ and }}"
        )
    if name not in variables:
        raise unknown_variable(name, variables)
    return as_text(variables[name])
