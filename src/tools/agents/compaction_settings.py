"""The settings that decide when the messages of a role are shortened, and which stay unchanged."""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


class CompactionSettings(BaseModel):
    """The table ``compaction`` of an agent or a role; ``true`` and ``false`` set ``enabled`` alone."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True, allow_inf_nan=False)

    enabled: bool = True
    threshold: float = Field(default=0.7, ge=0.1, le=0.9)
    """Messages that exceed this share of the model's window are shortened. The estimate may be 30 % too low
    (``ESTIMATE_ERROR``), so 0.7 leaves room for this error and for the answer.
    """
    above_tokens: int | None = Field(default=None, ge=1000)
    """Messages are also shortened above this number of tokens, to save money, or because the window is unknown."""
    keep_turns: int = Field(default=4, ge=1, le=50)
    """The number of latest turns that stay unchanged, with the results of their calls, if they fit."""


def _table(value: Any) -> Any:
    return {"enabled": value} if isinstance(value, bool) else value


Compaction = Annotated[CompactionSettings, BeforeValidator(_table)]
