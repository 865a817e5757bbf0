"""``health``, ``status``, ``self-check`` and ``version``: the state of the daemon.

``daemon/observability/status_report.py`` makes the reports.
"""

import platform
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from ...protocol.frames import PROTOCOL_VERSION
from ...version import __version__
from ..former_arguments import MODEL_OPTIONS, FormerNames
from ..orchestration_context import LookupContext
from ..tool import Arguments, ToolOutput, tool
from ..tool_context import ToolContext


class HealthArguments(Arguments):
    """None."""

    ignored_arguments: ClassVar[Mapping[str, str]] = {"tail_lines": "toolcall_log_tail lists the latest calls"}


class SelfCheckArguments(Arguments):
    """None."""

    ignored_arguments: ClassVar[Mapping[str, str]] = {"log_lines": "toolcall_log_tail lists the latest calls"}


class VersionArguments(Arguments):
    """None."""

    ignored_arguments: ClassVar[Mapping[str, str]] = {"model": MODEL_OPTIONS["model"]}


class StatusArguments(Arguments):
    """The parts of the report besides the daemon's state."""

    ignored_arguments: ClassVar[Mapping[str, str]] = {"probe": "a check sends no vendor request; chat tries a vendor"}

    recent: Annotated[int, FormerNames("tail_lines", clamped=True)] = Field(
        default=10, ge=0, le=100, description="Number of recent calls to list."
    )
    days: int = Field(default=7, ge=0, le=400, description="Number of days of usage, today (UTC) included.")
    checks: Annotated[bool, FormerNames("doctor")] = Field(default=False, description="Add the checks of self-check.")
    include_tools: bool = Field(default=False, description="Add the names of the tools that you may call.")


@tool("health", read_only=True, open_world=False, idempotent=True, unmetered=True)
async def health(_arguments: HealthArguments, context: ToolContext) -> dict[str, Any]:
    """Report whether the daemon accepts calls (`status`: `ready` or `stopping`) and any `problems`."""
    return context.daemon.health(context.principal)


@tool("status", read_only=True, open_world=False, idempotent=True, unmetered=True)
async def status(arguments: StatusArguments, context: LookupContext) -> dict[str, Any]:
    """Show version, uptime, limits and their use, connections, providers, and your tokens, cost and recent calls.

    With an operator's token: the tokens, cost and calls of all principals.
    """
    daemon, principal = context.daemon, context.principal
    report = await daemon.status(principal, recent=arguments.recent, days=arguments.days)
    if arguments.checks:
        report = report | {"checks": await daemon.self_check(principal)}
    return report | {"tools": list(context.toolset_view.tools)} if arguments.include_tools else report


@tool("self-check", read_only=True, open_world=False, idempotent=True, unmetered=True)
async def self_check(_arguments: SelfCheckArguments, context: ToolContext) -> ToolOutput:
    """Check database, journal, providers, disk, clock, audit, tools, models and budget. Sends no vendor request.

    Each check has `ok`, a `message`, and a `remedy` if it is not ok.
    """
    checks = await context.daemon.self_check(context.principal)
    return ToolOutput(
        "\n".join(map(_check_line, checks)), {"ok": all(check["ok"] for check in checks), "checks": checks}
    )


def _check_line(check: dict[str, Any]) -> str:
    remedy = f"; {check['remedy']}" if check["remedy"] else ""
    return f"{check['status']:4}  {check['check']}: {check['message']}{remedy}"


@tool("version", read_only=True, open_world=False, idempotent=True, unmetered=True)
async def version(_arguments: VersionArguments, _context: ToolContext) -> dict[str, Any]:
    """Show the daemon's name and version, its protocol version, and its Python version."""
    return {
        "name": "toold",
        "version": __version__,
        "protocol": PROTOCOL_VERSION,
        "python": platform.python_version(),
    }
