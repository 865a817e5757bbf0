"""What a failure to write to Supabase means: try again, mend the setup, or set the row aside. Pure."""

import json
from dataclasses import dataclass
from typing import Final, Literal

from ..protocol.backoff import backoff_s
from .redaction import redact_text

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
MAX_REASON_CHARS: Final = 300

Verdict = Literal["later", "setup", "refused"]
"""``later``: nothing is wrong with the rows, it may work soon. ``setup``: somebody has to mend the key, the address or
the tables; until then it is tried again too. ``refused``: at least one of the rows is not taken and never will be."""

_LATER = frozenset({408, 425, 429})
_ROWS = frozenset({400, 409, 413, 422})
_TOO_OLD: Final = frozenset({"PGRST204", "PGRST205", "42P01", "42703", "42P10"})
"""There is no such column, table or constraint."""
_APPLY: Final = "apply all files of supabase/migrations, in their order"
_ADVICE: Final = {
    401: "check TOOLD_SUPABASE_SERVICE_ROLE_KEY",
    403: "TOOLD_SUPABASE_SERVICE_ROLE_KEY must be the service role's key",
}


@dataclass(frozen=True, slots=True)
class DeliveryFailure:
    """A write, or a question, that failed."""

    verdict: Verdict
    reason: str
    """In one line, for the operator; bounded, without secrets."""
    advice: str = ""
    """What is to be mended, where it is the setup."""

    def __str__(self) -> str:
        return f"{self.reason}; {self.advice}" if self.advice else self.reason


def judge(status: int, body: bytes) -> DeliveryFailure:
    """What an HTTP answer other than 2xx means.

    PostgREST's answers carry ``code``: PostgreSQL's SQLSTATE, or its own (``PGRST…``). Of SQLSTATE's classes, 22 (data
    exception), 23 (integrity) and 54 (program limit) are about the rows, 42 about the tables; the gateways in front
    have no code, so that the status decides.
    """
    code, message = _read(body)
    if code[:2] in {"22", "23", "54"}:
        # Messages of class 22 quote the value, which may be what a caller sent.
        return DeliveryFailure("refused", _told(code, "" if code.startswith("22") else message))
    if status in _LATER or status >= 500:
        return DeliveryFailure("later", _told(f"HTTP {status}", message))
    if status in _ROWS and not code.startswith(("42", "PGRST")):
        return DeliveryFailure("refused", _told(f"HTTP {status}", message))
    advice = _APPLY if code in _TOO_OLD else _ADVICE.get(status, f"check TOOLD_SUPABASE_URL, and {_APPLY}")
    return DeliveryFailure("setup", _told(f"HTTP {status}", message), advice)


def unreachable(error: BaseException) -> DeliveryFailure:
    """For a connection that could not be made or broke, and for an answer that did not come in time."""
    return DeliveryFailure("later", _told("no answer", str(error) or type(error).__name__))


def pause_s(failures: int, draw: float) -> float:
    """Returns the seconds to wait after ``failures`` failures in a row; ``draw`` is evenly random in [0, 1)."""
    return backoff_s(failures - 1, draw, base_s=FIRST_PAUSE_S, cap_s=LONGEST_PAUSE_S)


def _read(body: bytes) -> tuple[str, str]:
    """The code and the message of an error's JSON; empty where there is none."""
    try:
        answer = json.loads(body)
    except ValueError:
        return "", ""
    if not isinstance(answer, dict):
        return "", ""
    return str(answer.get("code") or ""), str(answer.get("message") or "")


def _told(what: str, message: str) -> str:
    told = " ".join(redact_text(f"{what}: {message}" if message else what).split())
    return told if len(told) <= MAX_REASON_CHARS else told[: MAX_REASON_CHARS - 1] + "…"
