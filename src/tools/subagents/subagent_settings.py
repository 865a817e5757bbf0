"""The settings of subagents, ``[clink.NAME]`` in toold.toml; documented in docs/configuration.md."""

import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from ...protocol.home_directory import expand_home
from ..setting_messages import setting_message

OutputForm = Literal["text", "claude", "codex", "gemini"]
"""The format of a program's stdout: plain text, or the JSON of one of these CLIs."""

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")
_SHIPPED_ROLES: Final[Mapping[str, str]] = {
    "default": "",
    "planner": (
        "Plan; do not change files. Read what the request concerns, then answer with numbered steps. For each step say "
        "what is done, what it depends on and how to check it. End with the risks and the open questions."
    ),
    "codereviewer": (
        "Review; do not change files. Read the code that the request concerns and report its defects, the most severe "
        "first: severity (critical, high, medium, low), file and line, what goes wrong and when, and how to fix it. "
        "Report nothing that you have not checked in the code."
    ),
}
"""Role → the instructions before the prompt."""


class SubagentSettingsError(ValueError):
    """A table of ``[clink]`` is invalid; the message names the table and the field."""


def _executable(words: tuple[str, ...]) -> tuple[str, ...]:
    program = str(expand_home(words[0]))
    if "/" in words[0] and not program.startswith("/"):
        raise PydanticCustomError("command", "must begin with the name of a program in PATH, or with an absolute path")
    return (program, *words[1:])


def _variable(name: str) -> str:
    if name.upper().startswith("TOOLD_"):
        raise PydanticCustomError("env", "must not name settings of toold: a subagent must not know the token")
    return name


class SubagentSettings(BaseModel):
    """One program that asks its own model, such as Claude Code, which ``clink`` may start."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    command: Annotated[
        tuple[Annotated[str, StringConstraints(min_length=1, pattern=r"^[^\x00]*$")], ...],
        Field(min_length=1),
        AfterValidator(_executable),
    ]
    """The program and its arguments. It reads the prompt from stdin."""
    output: OutputForm = "text"
    env: tuple[
        Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$"), AfterValidator(_variable)], ...
    ] = ()
    """Variables of the daemon's environment that the program gets besides ``BASE_VARIABLES``."""
    roles: Mapping[str, str] = {}
    """Further roles, or other instructions for the shipped ones."""

    @property
    def instructions(self) -> Mapping[str, str]:
        """Role → the instructions before the prompt."""
        return {**_SHIPPED_ROLES, **self.roles}


def read_subagents(tables: object) -> dict[str, SubagentSettings]:
    """The subagents by name, from the tables of ``[clink.NAME]``.

    Raises:
        SubagentSettingsError: a name or a field is invalid.
    """
    if not isinstance(tables, Mapping):
        raise SubagentSettingsError("must be set in toold.toml, as tables [clink.NAME] with command")
    subagents: dict[str, SubagentSettings] = {}
    for name, table in tables.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise SubagentSettingsError("has an invalid name; a name is a letter, then up to 31 of A-Za-z0-9_-")
        try:
            subagents[name] = SubagentSettings.model_validate(table)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in (name, *first["loc"]))
            raise SubagentSettingsError(f"{place} {_message(first)}") from None
    return subagents


def _message(details: ErrorDetails) -> str:
    if details["type"] == "missing":
        return "is required: the program and its arguments"
    if details["type"] == "extra_forbidden":
        return f"is not a setting; settings: {', '.join(SubagentSettings.model_fields)}"
    return setting_message(details)
