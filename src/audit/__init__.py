"""The audit: the content of its rows, redaction, sending rows to Supabase, and verification."""

from .audit_content import Policy, content_reducer, redact, redact_message
from .audit_projection import audit_row_of
from .audit_sender import AuditSender
from .audit_verification import ChainKeyError, verify_local, verify_remote
from .bound_chains import verify_chains
from .chain_walk import ChainFindings, ChainProblem
from .error_content import error_summary, stored_message
from .redaction import REDACTED, is_secret_name, redact_text
from .supabase_reader import SupabaseReader, SupabaseReadError
from .supabase_writer import SupabaseWriter

__all__ = [
    "REDACTED",
    "AuditSender",
    "ChainFindings",
    "ChainKeyError",
    "ChainProblem",
    "Policy",
    "SupabaseReadError",
    "SupabaseReader",
    "SupabaseWriter",
    "audit_row_of",
    "content_reducer",
    "error_summary",
    "is_secret_name",
    "redact",
    "redact_message",
    "redact_text",
    "stored_message",
    "verify_chains",
    "verify_local",
    "verify_remote",
]
