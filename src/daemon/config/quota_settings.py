"""Quotas of calls, ``[quotas.NAME]`` in toold.toml; documented in docs/tokens.md."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from ...protocol.tool_call import LOCAL
from ...sources import read_keyed_table

MAX_PER_MINUTE: Final = 10_000
"""The limit exists because the times of all calls of the last minute are in memory."""
MAX_PER_DAY: Final = 100_000_000
MAX_QUOTAS: Final = 100
"""The limit exists because each call is compared with all quotas."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_Globs = Annotated[
    tuple[Annotated[str, StringConstraints(min_length=1, max_length=200)], ...], Field(min_length=1, max_length=100)
]


class QuotaSettings(BaseModel):
    """A limit on the calls of some tools by each of some principals."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    tools: _Globs = ("*",)
    principals: _Globs = ("*",)
    calls_per_minute: Annotated[int, Field(ge=1, le=MAX_PER_MINUTE)] | None = None
    calls_per_day: Annotated[int, Field(ge=0, le=MAX_PER_DAY)] | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.calls_per_minute is None and self.calls_per_day is None:
            raise PydanticCustomError("quota", "set calls_per_minute, calls_per_day or both")
        for principal in self.principals:
            if principal != LOCAL.name and not re.search(r"[:*?\[]", principal):
                message = "principals: {name} is not a principal; write token:{name} for a named token, or user:{name}"
                raise PydanticCustomError("quota", message, {"name": principal})
        return self


class QuotaSettingsError(ValueError):
    """Invalid settings; the message names the quota and what is allowed."""


def read_quotas(tables: object) -> dict[str, QuotaSettings]:
    """Return the quotas by name.

    Raises:
        QuotaSettingsError: they are invalid.
    """
    if not isinstance(tables, Mapping):
        raise QuotaSettingsError("must be tables of toold.toml: [quotas.NAME] with calls_per_minute or calls_per_day")
    if len(tables) > MAX_QUOTAS:
        raise QuotaSettingsError(f"there are {len(tables)}, and at most {MAX_QUOTAS} are allowed")
    quotas: dict[str, QuotaSettings] = {}
    for name, table in tables.items():
        if not _NAME.fullmatch(str(name)):
            raise QuotaSettingsError("a quota's name is 1 to 64 of A-Z, a-z, 0-9, _ and -")
        quotas[name] = _read_quota(name, table)
    return quotas


def _read_quota(name: str, table: Any) -> QuotaSettings:
    try:
        return read_keyed_table(
            table,
            QuotaSettings,
            QuotaSettingsError,
            expected=f"[quotas.{name}] with calls_per_minute or calls_per_day",
            fields=lambda _: list(QuotaSettings.model_fields),
        )
    except QuotaSettingsError as error:
        raise QuotaSettingsError(f"{name}: {error}") from None
