"""The values of a template's variables, and the errors about them. Pure."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Final

from ..protocol.name_suggestions import close_names, did_you_mean
from ..tools import PromptError

MAX_PROMPT_CHARS: Final = 1_000_000
"""The maximum length of a prompt, before and after its variables are filled in: more than most models read."""
_NAMES_SHOWN: Final = 20

VARIABLE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def as_text(value: object) -> str:
    """Return the text to insert for a value: a string unchanged, any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def prompt_too_long() -> PromptError:
    """The error for a template that exceeds ``MAX_PROMPT_CHARS`` when it is filled in."""
    return PromptError(f"the prompt has more than {MAX_PROMPT_CHARS:,} characters with its variables filled in")


def unknown_variable(name: str, known: Iterable[str]) -> PromptError:
    """The error for a variable without a value. It names the known variables."""
    names = sorted(known)
    hint = did_you_mean(close_names(name, names, n=1))
    shown = ", ".join(names[:_NAMES_SHOWN]) + (", …" if len(names) > _NAMES_SHOWN else "")
    return PromptError(
        f"the template has the variable {name[:100]!r}, which has no value; "
        + (f"known variables: {shown}" if names else "no variable has one")
        + (f"; {hint}" if hint else "")
    )


def looked_up(name: str, scopes: list[object]) -> object:
    """Return the value of a variable such as ``user.name``, by keys of mappings only, innermost scope first.

    Raises:
        PromptError: no scope has the variable.
    """
    first, *rest = name.split(".")
    for scope in reversed(scopes):
        if isinstance(scope, Mapping) and first in scope:
            value: object = scope[first]
            for key in rest:
                if not isinstance(value, Mapping) or key not in value:
                    raise unknown_variable(name, _names(scopes))
                value = value[key]
            return value
    raise unknown_variable(name, _names(scopes))


def _names(scopes: list[object]) -> set[str]:
    return {str(name) for scope in scopes if isinstance(scope, Mapping) for name in scope}
