"""The audit: what is kept of each call, and what never is; and its way to Supabase."""

from .content import content_kept, redact
from .project import project
from .redaction import REDACTED, is_secret_name, redact_text
from .remote import SupabaseRemote
from .sender import Sender

__all__ = [
    "REDACTED",
    "Sender",
    "SupabaseRemote",
    "content_kept",
    "is_secret_name",
    "project",
    "redact",
    "redact_text",
]
