"""Reads the tables ``[sources.NAME]`` of toold.toml. An error names the source, the key and the allowed values."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ..protocol.home_directory import expand_home
from ..protocol.name_suggestions import close_names, did_you_mean
from ..tools import BindingError, anchored_secret, anchored_table, read_source_bindings, setting_message
from .oauth.oauth_settings import OAuthAuth
from .operation_filter import OperationFilter
from .source_setting_types import is_url
from .source_settings import (
    A2ASettings,
    CardKeys,
    ContainerLimits,
    McpSettings,
    OpenApiSettings,
    RateSetting,
    SourceSettings,
)

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")
"""The format of a source's name, which is the prefix of the tools' names."""

_TYPES: Final[Mapping[str, type[SourceSettings]]] = {
    "openapi": OpenApiSettings,
    "mcp": McpSettings,
    "a2a": A2ASettings,
}


class SourceSettingsError(ValueError):
    """Invalid settings of a source; the message names the source, the key and the allowed values, never the value."""


def read_sources(tables: object) -> dict[str, SourceSettings]:
    """Returns the settings of the sources by name, in configured order.

    Raises:
        SourceSettingsError: the settings of a source are invalid.
    """
    if not isinstance(tables, Mapping):
        raise SourceSettingsError("must be set in toold.toml, as tables [sources.NAME] with type and its settings")
    return {name: _source(name, table) for name, table in tables.items()}


def _source(name: object, table: object) -> SourceSettings:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise SourceSettingsError(
            f"a source's name is a letter and up to 31 more of A-Z, a-z, 0-9, _ and -, not {str(name)[:64]!r}"
        )
    if isinstance(table, SourceSettings):
        return table
    place = f"[sources.{name}]"
    if not isinstance(table, Mapping):
        raise SourceSettingsError(f"{place} must be a table with type and its settings")
    settings = _TYPES.get(str(table.get("type")))
    if settings is None:
        raise SourceSettingsError(f"{place} type must be one of {', '.join(_TYPES)}")
    try:
        return settings.model_validate({**table, "bind": read_source_bindings(name, table.get("bind", {}))})
    except BindingError as error:
        raise SourceSettingsError(str(error)) from None
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
    raise SourceSettingsError(
        "; ".join(dict.fromkeys(f"{place} {_sentence(problem, settings).strip()}" for problem in problems))
    )


def _sentence(details: ErrorDetails, settings: type[BaseModel]) -> str:
    """Returns the error message for one key."""
    steps = [step for step in details["loc"] if isinstance(step, str)]
    if len(steps) > 1 and steps[0] in {"auth", "list_auth"}:
        del steps[1]  # pydantic's label for the type of auth
    key, context = ".".join(steps), details.get("ctx", {})
    match details["type"]:
        case "extra_forbidden" if "oauth" in details["loc"] and len(steps) == 2:
            return f"{key} is not a setting; settings: {', '.join(OAuthAuth.model_fields)}"
        case "extra_forbidden" if steps[0] in {"auth", "list_auth"}:
            where = "env or file for the secret, or user and field for a credential of each caller"
            return f"{key} is not a setting; {steps[0]} has type, and {where}, never the secret itself"
        case "extra_forbidden":
            known = _NESTED.get(steps[0], RateSetting).model_fields if len(steps) > 1 else settings.model_fields
            hint = did_you_mean(close_names(steps[-1], known, n=1)) or f"settings: {', '.join(known)}"
            return f"{key} is not a setting; {hint}"
        case kind if kind in _MESSAGES:
            return f"{key} {_MESSAGES[kind].format_map(context)}"
        case _:
            return f"{key} {setting_message(details)}"


_NESTED: Final[Mapping[str, type[BaseModel]]] = {
    "include": OperationFilter,
    "exclude": OperationFilter,
    "verify": CardKeys,
    "container": ContainerLimits,
}

_MESSAGES: Final[Mapping[str, str]] = {
    "missing": "is required",
    "string_pattern_mismatch": "has characters that are not allowed",
    "union_tag_invalid": "type must be one of {expected_tags}",
    "union_tag_not_found": "must have a type: bearer, api_key or basic",
}
"""Messages that ``setting_message`` lacks, by pydantic's error types."""


def anchored(tables: object, base: Path) -> object:
    """Returns the tables with relative paths resolved against ``base``. Other values are left to validation."""
    if not isinstance(tables, Mapping):
        return tables
    return {
        name: _anchored_table(table, base) if isinstance(table, Mapping) else table for name, table in tables.items()
    }


def _anchored_table(table: Mapping[str, Any], base: Path) -> dict[str, Any]:
    changed = dict(table)
    if "bind" in changed:
        changed["bind"] = anchored_table(changed["bind"], base)
    spec = table.get("spec")
    if isinstance(spec, str) and spec.strip() and not is_url(spec):
        changed["spec"] = str(base / expand_home(spec))
    for name in ("auth", "list_auth", "verify"):
        if isinstance(secret := table.get(name), Mapping):
            changed[name] = anchored_secret(secret, base)
            if "client_secret" in secret:
                changed[name] = {**changed[name], "client_secret": anchored_secret(secret["client_secret"], base)}
    if isinstance(env := table.get("env"), Mapping):
        changed["env"] = {name: anchored_secret(value, base) for name, value in env.items()}
    if "command" in table:
        cwd = table.get("cwd", "")
        changed["cwd"] = base / expand_home(cwd) if isinstance(cwd, str) else cwd
    return changed
