"""``self-check``: looks at everything that the daemon needs, from within, and says what to do where it is not well."""

from typing import Any

from ..tool import Answer, Arguments, tool
from ..tool_context import ToolContext


@tool("self-check", read_only=True, open_world=False, idempotent=True, unmetered=True)
async def self_check(_arguments: Arguments, context: ToolContext) -> Answer:
    """Check database, journal, providers, disk, clock, audit, tools, models and budget; asks no vendor.

    Each check says whether it is `ok`, `why`, and `what_to_do` where it is not.
    """
    checks = await context.daemon.self_check()
    return Answer("\n".join(map(_line, checks)), {"ok": all(check["ok"] for check in checks), "checks": checks})


def _line(check: dict[str, Any]) -> str:
    """One check in words."""
    remedy = f"; {check['what_to_do']}" if check["what_to_do"] else ""
    return f"{check['status']:4}  {check['check']}: {check['why']}{remedy}"
