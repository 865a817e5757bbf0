"""The result of one check."""

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The outcome of a check; ``remedy`` says what to do if it is not ``ok``."""

    name: str
    status: Status
    message: str
    remedy: str | None = None
