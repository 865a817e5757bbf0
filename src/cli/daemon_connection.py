"""A command's connection to the daemon, and what its failures end the command with."""

import asyncio
import sys
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from ..client import ConnectionFailedError, ConnectionLostError, MCPWebSocketClient
from ..protocol.error_codes import CallError, ErrorCode, PermissionDeniedError

EXIT_INTERRUPTED: Final = 130
"""128 and SIGINT's number, as shells have it."""

_ADVICE: Final[Mapping[ErrorCode, str]] = {
    ErrorCode.TOOL_NOT_FOUND: "`toold tools` lists the tools.",
    ErrorCode.VALIDATION_ERROR: "Correct the arguments that the message names; `toold tools NAME` shows them.",
    ErrorCode.OVER_CAPACITY: "Wait and call again; `toold status` shows what is in use.",
    ErrorCode.RATE_LIMITED: "Wait and call again.",
    ErrorCode.TIMEOUT: "Give it longer: --timeout S.",
    ErrorCode.SERVICE_UNAVAILABLE: "Call again later.",
    ErrorCode.TOOL_EXECUTION_ERROR: "Read the message; if the tool is at fault, the daemon's log has the cause.",
    ErrorCode.OUTCOME_UNKNOWN: "A tool that only reads may be called again as it is.",
    ErrorCode.INTERNAL_ERROR: "Report it; the daemon's log has the cause.",
}
"""Where the error table speaks of frames and their fields, which nobody sees here."""

ALL_TOOLS: Final = "full"
"""The toolset of commands that name a tool: who types its name, or has it in a script, has chosen already. A token
that may not use it has its own default instead."""

toolset_option = click.option("--toolset", metavar="NAME", envvar="TOOLD_TOOLSET", help="Which tools to have.")
"""Its default is the command's own."""

T = TypeVar("T")


class CommandFailedError(click.ClickException):
    """The command did not do what it was asked to: the message on stderr, exit code 1."""

    def show(self, file: Any = None) -> None:
        """The message alone: it says by itself what is wrong."""
        click.echo(self.format_message(), file=file, err=file is None)


class NoConnectionError(CommandFailedError):
    """There is no daemon, it refused, or the connection broke: exit code 3."""

    exit_code = 3


@asynccontextmanager
async def connected(
    *, features: Sequence[str] = ("ack",), toolset: str | None = None, all_tools: bool = False
) -> AsyncIterator[MCPWebSocketClient]:
    """A client that is connected, once tried; relative paths in arguments start at the current directory.

    Where no toolset is named, it has the default one, or with `all_tools` every tool, as far as its token allows.

    Raises:
        click.UsageError: the environment names an address that cannot be one.
        NoConnectionError: no daemon there, or it refused.
    """
    every = all_tools and toolset is None
    client = _client(features, ALL_TOOLS if every else toolset)
    good = await client.connect(max_retries=1)
    if not good and every and _is_denied(client):
        client = _client(features, None)
        good = await client.connect(max_retries=1)
    if not good:
        raise NoConnectionError(_why_not(client))
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


def _why_not(client: MCPWebSocketClient) -> str:
    failed = client.last_error
    if isinstance(failed, ConnectionFailedError) and failed.nobody_there:
        return f"no daemon answers at {client.url}; start one with `make run` or `toold serve`"
    return str(failed)


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a command's coroutine; what ends it early becomes the command's message and exit code.

    Ctrl-C cancels the coroutine, whose calls are then cancelled on the daemon, and ends the process with 130.
    """
    try:
        return asyncio.run(main)
    except KeyboardInterrupt:
        click.echo("cancelled", err=True)
        sys.exit(EXIT_INTERRUPTED)
    except CallError as error:
        raise CommandFailedError(describe(error)) from error
    except (ConnectionFailedError, ConnectionLostError) as error:
        raise NoConnectionError(str(error)) from error


def describe(error: CallError) -> str:
    """The error for a person: code and message, then what to do, by this command's means."""
    lines = [f"{error.code.value}: {error.message}", f"  {_ADVICE.get(error.code, error.advice)}"]
    if error.executed == "maybe" and not error.retryable and error.code is not ErrorCode.OUTCOME_UNKNOWN:  # says so
        lines.append("  It may have had its effect; look before you call it again.")
    if error.retry_after_ms is not None:
        lines.append(f"  Retry after {error.retry_after_ms / 1000:g} s.")
    return "\n".join(lines)
