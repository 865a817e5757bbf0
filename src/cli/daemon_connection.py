"""A command's connection to the daemon, and the exit codes of its failures."""

import asyncio
import sys
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from ..client import ConnectionFailedError, ConnectionLostError, MCPWebSocketClient
from ..protocol.error_codes import CallError, ErrorCode, PermissionDeniedError
from .terminal_output import say

EXIT_INTERRUPTED: Final = 130
"""128 plus SIGINT's number, the shell convention."""

_ADVICE: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.TOOL_NOT_FOUND: "`toold tools` lists the tools.",
    ErrorCode.VALIDATION_ERROR: "Fix the arguments named in the message; `toold tools NAME` shows them.",
    ErrorCode.OVER_CAPACITY: "Retry later; `toold status` shows the limits in use.",
    ErrorCode.RATE_LIMITED: "Retry later.",
    ErrorCode.TIMEOUT: "Allow more time: --timeout S.",
    ErrorCode.SERVICE_UNAVAILABLE: "Retry later.",
    ErrorCode.TOOL_EXECUTION_ERROR: "Read the message; if the tool is at fault, the daemon's log has the cause.",
    ErrorCode.OUTCOME_UNKNOWN: "A read-only tool may be called again as it is.",
    ErrorCode.INTERNAL_ERROR: "Report this error; the daemon's log has the cause.",
}
"""Advice for the command line. The advice of the error table refers to frames and their fields."""

_NOT_LATER: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.OVER_CAPACITY: "Change the call as the message says; retrying does not help.",
    ErrorCode.RATE_LIMITED: "Do what the message says; retrying does not help.",
    ErrorCode.SERVICE_UNAVAILABLE: (
        "Do what the message says; retrying does not help. `toold doctor` checks keys and sources."
    ),
}
"""The advice if the same call cannot succeed later, because something is not configured or the call is too large."""

ALL_TOOLS: Final = "full"
"""The toolset of commands that name one tool, so that they may name any tool. A token that may not use this toolset
gets its own default instead."""

toolset_option = click.option("--toolset", metavar="NAME", envvar="TOOLD_TOOLSET", help="The toolset to use.")
"""Each command has its own default."""

T = TypeVar("T")


class CommandFailedError(click.ClickException):
    """The command failed: its message on stderr, exit code 1."""

    def show(self, file: Any = None) -> None:  # noqa: ARG002 - click's signature
        """Print the message without a prefix."""
        say(self.format_message(), err=True)


class NoConnectionError(CommandFailedError):
    """No daemon is reachable, it refused the connection, or the connection broke: exit code 3."""

    exit_code = 3


@asynccontextmanager
async def connected(
    *, features: Sequence[str] = ("ack",), toolset: str | None = None, all_tools: bool = False
) -> AsyncIterator[MCPWebSocketClient]:
    """A connected client, after one attempt; relative paths in arguments are resolved in the current directory.

    Without a toolset the client uses the default one, or with ``all_tools`` every tool that its token allows.

    Raises:
        click.UsageError: the environment has an invalid address.
        NoConnectionError: no daemon is reachable, or it refused the connection.
    """
    wants_all = all_tools and toolset is None
    client = _client(features, ALL_TOOLS if wants_all else toolset)
    is_connected = await client.connect(max_retries=1)
    if not is_connected and wants_all and _is_denied(client):
        client = _client(features, None)
        is_connected = await client.connect(max_retries=1)
    if not is_connected:
        raise NoConnectionError(_failure(client))
    try:
        yield client
    finally:
        await client.disconnect()


def _client(features: Sequence[str], toolset: str | None) -> MCPWebSocketClient:
    try:
        return MCPWebSocketClient(client_name="toold-cli", features=features, workspace=Path.cwd(), toolset=toolset)
    except ValueError as exc:
        raise click.UsageError(str(exc)) from exc


def _is_denied(client: MCPWebSocketClient) -> bool:
    return client.last_error is not None and isinstance(client.last_error.__cause__, PermissionDeniedError)


def _failure(client: MCPWebSocketClient) -> str:
    error = client.last_error
    if isinstance(error, ConnectionFailedError) and error.not_listening:
        return f"no daemon answers at {client.url}; start one with `make run` or `toold serve`"
    return str(error)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a command's coroutine and convert its errors to messages and exit codes.

    Ctrl-C cancels the coroutine and its calls on the daemon, and exits with 130.
    """
    try:
        return asyncio.run(main)
    except KeyboardInterrupt:
        say("cancelled", err=True)
        sys.exit(EXIT_INTERRUPTED)
    except CallError as error:
        raise CommandFailedError(describe(error)) from error
    except (ConnectionFailedError, ConnectionLostError) as error:
        raise NoConnectionError(str(error)) from error


def describe(error: CallError) -> str:
    """The error for people: code and message, then advice in terms of the command line."""
    lines = [f"{error.code.value}: {error.message}", f"  {_advice(error)}"]
    # OUTCOME_UNKNOWN says so in its message.
    if error.executed == "maybe" and not error.retryable and error.code is not ErrorCode.OUTCOME_UNKNOWN:
        lines.append("  The call may have taken effect; check before you retry.")
    if error.retry_after_ms is not None:
        lines.append(f"  Retry after {error.retry_after_ms / 1000:g} s.")
    return "\n".join(lines)


def _advice(error: CallError) -> str:
    if error.executed == "no" and not error.retryable and error.code in _NOT_LATER:
        return _NOT_LATER[error.code]
    return _ADVICE.get(error.code, error.advice)
