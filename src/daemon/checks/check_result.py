"""What the doctor says of one thing that it looked at."""

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One thing that was looked at; ``remedy`` says what to do where it is not ok."""

    name: str
    status: Status
    message: str
    remedy: str | None = None
