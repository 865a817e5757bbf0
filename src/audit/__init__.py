"""The audit: what its rows contain, what is redacted, how rows are sent to Supabase, and how they are verified."""

from .audit_content import content_reducer, redact
from .audit_projection import QUOTES_ITS_CALLER, audit_row_of
from .audit_sender import AuditSender
from .audit_verification import ChainKeyError, verify_local, verify_remote
from .chain_walk import ChainFindings, ChainProblem
from .redaction import REDACTED, is_secret_name, redact_text
from .supabase_reader import SupabaseReader, SupabaseReadError
from .supabase_writer import SupabaseWriter

__all__ = [
    "QUOTES_ITS_CALLER",
    "REDACTED",
    "AuditSender",
    "ChainFindings",
    "ChainKeyError",
    "ChainProblem",
    "SupabaseReadError",
    "SupabaseReader",
    "SupabaseWriter",
    "audit_row_of",
    "content_reducer",
    "is_secret_name",
    "redact",
    "redact_text",
    "verify_local",
    "verify_remote",
]
