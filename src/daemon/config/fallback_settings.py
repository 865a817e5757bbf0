"""The models to ask if one fails: ``fallback`` of providers and of tools; documented in docs/tools.md."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, ValidationError
from pydantic_core import PydanticCustomError
from pydantic_settings import NoDecode

from ...protocol.name_suggestions import close_names, did_you_mean
from ...tools import MAX_FALLBACKS, setting_message


def _split(value: object) -> object:
    """Accepts text with commas, for environment variables."""
    if isinstance(value, str):
        return [name for piece in value.split(",") if (name := piece.strip())]
    return value


FallbackNames = Annotated[
    tuple[Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)], ...],
    NoDecode,
    BeforeValidator(_split),
    Field(max_length=MAX_FALLBACKS),
]
"""Names of models, in the order in which they are asked."""


class ToolSettings(BaseModel):
    """``[tools.NAME]``: the settings of one tool."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    fallback: FallbackNames | None = None
    """None: the provider's list applies. Empty: no other model is asked."""


@dataclass(frozen=True, slots=True)
class FallbackLists:
    """The operator's lists of models to ask if another model fails."""

    by_tool: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    by_provider: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def of(self, tool: str, provider: str) -> tuple[str, ...]:
        """The list of the tool, otherwise the list of the provider whose model was chosen."""
        own = self.by_tool.get(tool)
        return self.by_provider.get(provider, ()) if own is None else own


def read_tools(tables: object) -> dict[str, ToolSettings]:
    """Returns the settings of tools by the tool's name.

    Raises:
        PydanticCustomError: a table is invalid; the message names the tool and the key.
    """
    if not isinstance(tables, Mapping):
        raise _invalid("must be set in toold.toml, as tables [tools.NAME] with the key fallback")
    return {str(name): _tool(str(name)[:100], table) for name, table in tables.items()}


def _tool(name: str, table: object) -> ToolSettings:
    if isinstance(table, ToolSettings):
        return table
    if not isinstance(table, Mapping):
        raise _invalid(f"[tools.{name}] must be a table")
    try:
        return ToolSettings.model_validate(dict(table))
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
    raise _invalid("; ".join(dict.fromkeys(f"[tools.{name}] {_sentence(problem)}" for problem in problems)))


def _sentence(problem: Any) -> str:
    key = next((step for step in problem["loc"] if isinstance(step, str)), "")
    if problem["type"] == "extra_forbidden":
        known = list(ToolSettings.model_fields)
        return (
            f"{key} is not a setting; {did_you_mean(close_names(key, known, n=1)) or 'settings: ' + ', '.join(known)}"
        )
    return f"{key} {setting_message(problem)}".strip()


def _invalid(message: str) -> PydanticCustomError:
    return PydanticCustomError("tools", "{message}", {"message": message})
