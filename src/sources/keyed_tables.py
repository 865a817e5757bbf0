"""Reads settings tables of toold.toml whose ``key`` is a ``SecretTable``, such as ``[zenml]``. The packages that use
``sources`` read their tables with this module.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ..protocol.name_suggestions import close_names, did_you_mean
from ..tools import setting_message

_Settings = TypeVar("_Settings", bound=BaseModel)


def read_keyed_table(
    table: object,
    model: type[_Settings],
    failure: type[ValueError],
    *,
    expected: str,
    fields: Callable[[Sequence[str]], Sequence[str]],
) -> _Settings:
    """Return the settings of a table of toold.toml. A ``model`` instance is returned unchanged.

    Args:
        table: the table.
        model: the class of its settings.
        failure: the error for invalid settings; its message names the key and the allowed values, never the value.
        expected: an example of the table, for the message if the value is not a table.
        fields: as for ``keyed_table_message``.
    """
    if isinstance(table, model):
        return table
    if not isinstance(table, Mapping):
        raise failure(f"must be a table of toold.toml: {expected}")
    try:
        return model.model_validate(dict(table))
    except ValidationError as error:
        problems = error.errors(include_url=False)
    raise failure(keyed_table_message(problems, fields))


def keyed_table_message(problems: Iterable[ErrorDetails], fields: Callable[[Sequence[str]], Sequence[str]]) -> str:
    """One message with all distinct problems of a settings table whose ``key`` is a ``SecretTable``.

    ``fields`` returns the settings of the table at a path.
    """
    return "; ".join(dict.fromkeys(_keyed_sentence(problem, fields) for problem in problems))


def _keyed_sentence(details: ErrorDetails, fields: Callable[[Sequence[str]], Sequence[str]]) -> str:
    steps = [step for step in details["loc"] if isinstance(step, str)]
    key = ".".join(steps)
    match details["type"]:
        case "missing":
            return f"{key} is required"
        case "extra_forbidden" if "key" in steps[:-1]:
            return f"{key} is not a setting; key has env or file, never the key itself"
        case "extra_forbidden":
            known = fields(steps[:-1])
            hint = did_you_mean(close_names(steps[-1], known, n=1)) or f"settings: {', '.join(known)}"
            return f"{key} is not a setting; {hint}"
        case "model_type" | "model_attributes_type" if steps[-1] == "key":
            return f"{key} must be {{ env = … }} or {{ file = … }}, never the key itself"
        case _:
            return f"{key} {setting_message(details)}".strip()
