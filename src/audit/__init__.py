"""The audit: what is kept of each call, and what never is; and its way to Supabase."""

from .content import content_kept, redact
from .project import QUOTES_ITS_CALLER, project
from .reading import NotReadError, SupabaseReader
from .redaction import REDACTED, is_secret_name, redact_text
from .remote import SupabaseRemote
from .sender import Sender
from .verify import OtherKeyError, verify_local, verify_remote
from .walk import Findings, Problem

__all__ = [
    "QUOTES_ITS_CALLER",
    "REDACTED",
    "Findings",
    "NotReadError",
    "OtherKeyError",
    "Problem",
    "Sender",
    "SupabaseReader",
    "SupabaseRemote",
    "content_kept",
    "is_secret_name",
    "project",
    "redact",
    "redact_text",
    "verify_local",
    "verify_remote",
]
