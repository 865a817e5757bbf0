"""The audit: what is kept of each call, and what never is."""

from .content import content_kept, redact
from .project import project
from .redaction import REDACTED, is_secret_name, redact_text

__all__ = ["REDACTED", "content_kept", "is_secret_name", "project", "redact", "redact_text"]
