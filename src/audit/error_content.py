"""Reduces an error for the audit and the log: to a summary without content, the redacted message, or nothing."""

from collections.abc import Mapping
from typing import Final

from ..protocol.error_codes import CallError
from .argument_shape import safe_path
from .audit_content import Policy
from .redaction import redact_text

MAX_MESSAGE_CHARS: Final = 500
MAX_FIELDS: Final = 8
"""The maximum number of fields that a summary names."""


def error_summary(error: CallError) -> str | None:
    """Describes an error without any content of the call: its ``summary``, if it has one; otherwise the invalid fields
    and the type of the exception that caused it; None if neither is known.
    """
    if error.summary is not None:
        return error.summary
    parts: list[str] = []
    fields = (error.details or {}).get("fields")
    if isinstance(fields, Mapping) and fields:
        shown = [safe_path(str(path)) for path, _ in zip(fields, range(MAX_FIELDS), strict=False)]
        more = f", …{len(fields) - MAX_FIELDS}" if len(fields) > MAX_FIELDS else ""
        parts.append(f"fields: {', '.join(shown)}{more}")
    if error.__cause__ is not None:
        parts.append(f"cause: {type(error.__cause__).__name__}")
    return "; ".join(parts) or None


def stored_message(policy: Policy, message: str, summary: str | None) -> str | None:
    """The text to store: the message if ``audit_content`` is ``full``, otherwise the summary; bounded, without
    secrets."""
    match policy:
        case "full":
            return _bounded(message)
        case "shape":
            return None if summary is None else _bounded(summary)
        case "none":
            return None


def _bounded(text: str) -> str:
    redacted = redact_text(text[: 2 * MAX_MESSAGE_CHARS])
    return redacted if len(redacted) <= MAX_MESSAGE_CHARS else redacted[: MAX_MESSAGE_CHARS - 1] + "…"
