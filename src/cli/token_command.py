"""``toold token``: prints the daemon's token; creates, lists and revokes named tokens. Needs no running daemon."""

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click

from ..client import local_token, read_announcement
from ..protocol.daemon_address import TOKEN_FILE, default_state_dir
from .console_tables import Row, print_table
from .daemon_connection import CommandFailedError
from .terminal_output import say, say_json

if TYPE_CHECKING:
    # Importing the daemon's packages takes longer than `toold token` itself.
    from ..daemon.access import NamedToken, TokenBook

HEADERS: Final[Row] = ("NAME", "STATE", "RIGHTS", "TOOLSETS", "EXPIRES", "MAX RUNNING", "DAILY BUDGET", "CREATED")

_UNITS: Final = {"m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}


class _Duration(click.ParamType[float]):
    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Convert to seconds."""
        match = re.fullmatch(r"([1-9]\d{0,5})([mhdw])", str(value))
        if match is None:
            self.fail(f"{value!r} is not a duration such as 90m, 12h, 30d or 8w", param, ctx)
        return float(match[1]) * _UNITS[match[2]]


class _Budget(click.ParamType[dict[str, float]]):
    name = "amounts"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, float]:
        """Convert to amounts by currency."""
        from pydantic import TypeAdapter, ValidationError

        from ..daemon.config.amounts import Amounts

        try:
            amounts: dict[str, float] = TypeAdapter(Amounts).validate_python(value)
        except ValidationError as error:
            self.fail(error.errors()[0]["msg"], param, ctx)
        return amounts


class _Toolset(click.ParamType[str]):
    name = "toolset"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check the form of the name; only the daemon knows which toolsets exist."""
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", str(value)):
            self.fail(f"{value!r} is not a valid toolset name", param, ctx)
        return str(value)


@click.group(invoke_without_command=True)
@click.option("--path", "as_path", is_flag=True, help="Print the path of the token file instead.")
@click.pass_context
def command(ctx: click.Context, as_path: bool) -> None:
    """Print the token that clients send: TOOLD_TOKEN if it is set, otherwise the one in the state directory.

    This token has full access. For other users, create named tokens with limited access (docs/tokens.md).
    """
    if ctx.invoked_subcommand is not None:
        return
    path = default_state_dir(os.environ) / TOKEN_FILE
    if as_path:
        say(str(path))
        return
    token = local_token(os.environ)
    address = read_announcement(path.parent).address
    if address is not None and not address.auth:
        say(f"no token is needed: the daemon at {address.url} runs without authentication", err=True)
        if token is None:
            return
    if token is None:
        message = f"there is no token at {path}; the daemon creates it at its first start: `make run` or `toold serve`"
        raise CommandFailedError(message)
    say(token)


@command.command(short_help="Create a named token and print it.")
@click.argument("name")
@click.option(
    "--toolset",
    "toolsets",
    type=_Toolset(),
    multiple=True,
    metavar="NAME",
    help="A toolset that the token may use; may be repeated. Clients that request none get the first.  [default: all]",
)
@click.option("--expires", type=_Duration(), metavar="30d", help="The lifetime, in m, h, d or w.  [default: unlimited]")
@click.option(
    "--max-running",
    type=click.IntRange(min=1),
    metavar="N",
    help="Maximum number of concurrent calls over all connections.  [default: no limit]",
)
@click.option(
    "--daily-budget",
    type=_Budget(),
    metavar='"5 USD"',
    help="Maximum amount that its calls may spend at vendors per day.  [default: no limit]",
)
@click.option(
    "--operator",
    is_flag=True,
    help="Let the token see the calls and vendor files of all principals, and use the operator's commands.",
)
@click.option(
    "--acts-for-users",
    is_flag=True,
    help="For a trusted gateway: each request names a user in X-User-Id, and that user is the principal of the "
    "request.",
)
@click.option(
    "--writes-registry",
    is_flag=True,
    help="Let the token change the registry that the daemon serves: agents, tools, prompts and so on.",
)
def create(
    name: str,
    toolsets: tuple[str, ...],
    expires: float | None,
    max_running: int | None,
    daily_budget: dict[str, float] | None,
    operator: bool,
    acts_for_users: bool,
    writes_registry: bool,
) -> None:
    """Create a token for the client NAME and print it. Only its hash is stored, so it cannot be shown again.

    The token is valid immediately; a running daemon needs no restart. Its principal is token:NAME, with its own
    conversations, results and spending.
    """
    created: list[str] = []
    now = time.time()

    def add(book: "TokenBook") -> "TokenBook":
        changed, token = book.with_new(
            name,
            now,
            toolsets=tuple(dict.fromkeys(toolsets)),
            expires_at=None if expires is None else now + expires,
            max_running=max_running,
            daily_budget=daily_budget,
            operator=operator,
            acts_for_users=acts_for_users,
            writes_registry=writes_registry,
        )
        created.append(token)
        return changed

    _change(add)
    say(created[0])
    if toolsets:
        _warn_unknown_toolsets(toolsets)
    say("Save it now; it is not shown again. Clients set TOOLD_TOKEN or send Authorization: Bearer …", err=True)


@command.command("list", short_help="List the named tokens.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def list_(as_json: bool) -> None:
    """List the named tokens and their permissions, without the tokens themselves."""
    from ..daemon.access import read_tokens

    with _reporting_errors():
        tokens = read_tokens(default_state_dir(os.environ)).tokens
    now = time.time()
    if as_json:
        say_json(json.dumps([_as_json(token, now) for token in tokens]).encode())
    elif not tokens:
        say("There are no named tokens; `toold token create NAME` creates one.")
    else:
        print_table(HEADERS, [_row(token, now) for token in tokens], shrink="TOOLSETS")


@command.command(short_help="Revoke a named token.")
@click.argument("name")
def revoke(name: str) -> None:
    """Revoke the token NAME. Its connections are closed and new ones refused."""
    now = time.time()
    _change(lambda book: book.revoked(name, now))
    say(f"revoked: {name}")


def _warn_unknown_toolsets(toolsets: Iterable[str]) -> None:
    from .command_settings import WrongSettingError, settings_with, warn_unknown_toolsets

    with suppress(WrongSettingError):  # `toold doctor` and the daemon's start report it
        warn_unknown_toolsets(toolsets, settings_with({}).toolsets)


def _change(change: Callable[["TokenBook"], "TokenBook"]) -> None:
    from ..daemon.access import change_tokens

    with _reporting_errors():
        change_tokens(default_state_dir(os.environ), change)


@contextmanager
def _reporting_errors() -> Iterator[None]:
    """Convert expected errors to the command's error message."""
    from ..daemon.access import TokenError
    from ..daemon.persistence.state_directory import StateError

    try:
        yield
    except (StateError, TokenError) as error:
        raise CommandFailedError(str(error)) from error


def _state(token: "NamedToken", now: float) -> str:
    if token.revoked_at is not None:
        return "revoked"
    return "valid" if token.invalid_reason(now) is None else "expired"


def _as_json(token: "NamedToken", now: float) -> dict[str, Any]:
    return {
        "name": token.name,
        "state": _state(token, now),
        "operator": token.operator,
        "acts_for_users": token.acts_for_users,
        "writes_registry": token.writes_registry,
        "toolsets": list(token.toolsets) or None,
        "expires_at": token.expires_at,
        "revoked_at": token.revoked_at,
        "max_running": token.max_running,
        "daily_budget": token.daily_budget,
        "created_at": token.created_at,
    }


def _row(token: "NamedToken", now: float) -> Row:
    return (
        token.name,
        _state(token, now),
        ", ".join(_rights(token)) or "-",
        ", ".join(token.toolsets) or "all",
        "never" if token.expires_at is None else _minute(token.expires_at),
        "-" if token.max_running is None else str(token.max_running),
        ", ".join(f"{amount:g} {currency}" for currency, amount in token.daily_budget.items()) or "-",
        _minute(token.created_at),
    )


def _rights(token: "NamedToken") -> list[str]:
    rights = {
        "operator": token.operator,
        "acts for users": token.acts_for_users,
        "writes registry": token.writes_registry,
    }
    return [right for right, granted in rights.items() if granted]


def _minute(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M}"
