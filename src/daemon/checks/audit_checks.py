"""The doctor's check of the Supabase project."""

from typing import Final

from ...audit import SupabaseReader, SupabaseReadError
from ..config.settings import Settings
from .check_result import CheckResult

ANSWER_TIMEOUT_S: Final = 5.0


async def supabase(settings: Settings) -> list[CheckResult]:
    """Whether the project exists, accepts the key and has all tables. No check if none is configured. Reads no rows."""
    url, key = settings.supabase_url, settings.supabase_service_role_key
    if url is None and key is None:
        return []
    if url is None or key is None:
        missing = "TOOLD_SUPABASE_URL" if url is None else "TOOLD_SUPABASE_SERVICE_ROLE_KEY"
        return [
            CheckResult(
                "supabase", "warn", "the audit trail is not sent: the URL or the key is missing", f"set {missing}"
            )
        ]
    try:
        async with SupabaseReader(url, key, timeout_s=ANSWER_TIMEOUT_S) as reader:
            await reader.check_tables()
    except SupabaseReadError as error:
        if error.failure.verdict == "setup":
            return [CheckResult("supabase", "fail", error.failure.reason, error.failure.advice)]
        remedy = "check the network and TOOLD_SUPABASE_URL; until it answers, audit rows stay in the local database"
        return [CheckResult("supabase", "warn", error.failure.reason, remedy)]
    return [CheckResult("supabase", "ok", f"{url} accepts the key and has all tables")]
