"""Classifies failures of Supabase: retry, fix the setup, or mark the row as refused. Pure."""

from dataclasses import dataclass
from typing import Final, Literal

from ..protocol.backoff import backoff_s
from ..protocol.json_text import InvalidJsonError, parse_json
from .redaction import redact_text

FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
MAX_REASON_CHARS: Final = 300

FailureKind = Literal["later", "setup", "refused"]
"""``later``: a temporary failure. ``setup``: the operator must fix the key, the URL or the tables; the write is retried
until then. ``refused``: Supabase will never accept at least one of the rows."""

_RETRYABLE_STATUSES = frozenset({408, 425, 429})
_ROWS = frozenset({400, 409, 413, 422})
_TOO_OLD: Final = frozenset({"PGRST204", "PGRST205", "42P01", "42703", "42P10"})
"""The codes for a missing column, table or constraint."""
_APPLY: Final = "apply all files of supabase/migrations, in their order"
_ADVICE: Final = {
    401: "check TOOLD_SUPABASE_SERVICE_ROLE_KEY",
    403: "TOOLD_SUPABASE_SERVICE_ROLE_KEY must be the service role's key",
}


@dataclass(frozen=True, slots=True)
class DeliveryFailure:
    """A request to Supabase that failed."""

    kind: FailureKind
    reason: str
    """One line for the operator, limited in length, without secrets."""
    advice: str = ""
    """The advice, if the setup is wrong."""

    def __str__(self) -> str:
        return f"{self.reason}; {self.advice}" if self.advice else self.reason


def classify_response(status: int, body: bytes) -> DeliveryFailure:
    """Classifies an HTTP response other than 2xx.

    PostgREST's responses have a ``code``: an SQLSTATE of PostgreSQL, or its own (``PGRST…``). The SQLSTATE classes 22
    (data exception), 23 (integrity) and 54 (program limit) concern the rows; class 42 concerns the tables. Gateways in
    front of PostgREST send no code, so the status decides.
    """
    code, message = _read(body)
    if code[:2] in {"22", "23", "54"}:
        # Messages of class 22 quote the value, which may come from a caller.
        return DeliveryFailure("refused", _reason(code, "" if code.startswith("22") else message))
    if status in _RETRYABLE_STATUSES or status >= 500:
        return DeliveryFailure("later", _reason(f"HTTP {status}", message))
    if status in _ROWS and not code.startswith(("42", "PGRST")):
        return DeliveryFailure("refused", _reason(f"HTTP {status}", message))
    advice = _APPLY if code in _TOO_OLD else _ADVICE.get(status, f"check TOOLD_SUPABASE_URL, and {_APPLY}")
    return DeliveryFailure("setup", _reason(f"HTTP {status}", message), advice)


def unreachable(error: BaseException) -> DeliveryFailure:
    """Classifies a failed or broken connection, or a timeout."""
    return DeliveryFailure("later", _reason("no answer", str(error) or type(error).__name__))


def pause_s(failures: int, draw: float) -> float:
    """Returns the seconds to wait after ``failures`` consecutive failures; ``draw`` is a uniform random number in [0,
    1).
    """
    return backoff_s(failures - 1, draw, base_s=FIRST_PAUSE_S, cap_s=LONGEST_PAUSE_S)


def _read(body: bytes) -> tuple[str, str]:
    """Returns the code and the message of an error's JSON; empty strings if it has none."""
    try:
        answer = parse_json(body)
    except InvalidJsonError:
        return "", ""
    if not isinstance(answer, dict):
        return "", ""
    return str(answer.get("code") or ""), str(answer.get("message") or "")


def _reason(what: str, message: str) -> str:
    reason = " ".join(redact_text(f"{what}: {message}" if message else what).split())
    return reason if len(reason) <= MAX_REASON_CHARS else reason[: MAX_REASON_CHARS - 1] + "…"
