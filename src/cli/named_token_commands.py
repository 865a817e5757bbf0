"""``toold token create | list | revoke``: they write the state directory's file, whether or not its daemon runs."""

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click

from ..protocol.daemon_address import default_state_dir
from .console_tables import Row, print_table
from .daemon_connection import CommandFailedError

if TYPE_CHECKING:
    # The daemon's packages take longer to import than `toold token` takes to print.
    from ..daemon.access import NamedToken, TokenBook

HEADERS: Final[Row] = ("NAME", "STATE", "TOOLSETS", "EXPIRES", "AT ONCE", "BUDGET A DAY", "CREATED")

_UNITS: Final = {"m": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}


class _Duration(click.ParamType[float]):
    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds."""
        found = re.fullmatch(r"([1-9]\d{0,5})([mhdw])", str(value))
        if found is None:
            self.fail(f"{value!r} is no time such as 90m, 12h, 30d or 8w", param, ctx)
        return float(found[1]) * _UNITS[found[2]]


class _Budget(click.ParamType[dict[str, float]]):
    name = "amounts"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> dict[str, float]:
        """By currency."""
        from pydantic import TypeAdapter, ValidationError

        from ..daemon.config.setting_types import Amounts

        try:
            amounts: dict[str, float] = TypeAdapter(Amounts).validate_python(value)
        except ValidationError as error:
            self.fail(error.errors()[0]["msg"], param, ctx)
        return amounts


class _Toolset(click.ParamType[str]):
    name = "toolset"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """A name that a toolset can have; which there are is the daemon's to know."""
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", str(value)):
            self.fail(f"{value!r} is no toolset's name", param, ctx)
        return str(value)


@click.command()
@click.argument("name")
@click.option(
    "--toolset",
    "toolsets",
    type=_Toolset(),
    multiple=True,
    metavar="NAME",
    help="A toolset that it may use; the first one given is its default.  [default: all]",
)
@click.option("--expires", type=_Duration(), metavar="30d", help="After how long it ends: m, h, d or w.")
@click.option(
    "--max-running", type=click.IntRange(min=1), metavar="N", help="Calls that run at once, over all connections."
)
@click.option("--daily-budget", type=_Budget(), metavar='"5 USD"', help="The most that it may spend a day at vendors.")
def create(
    name: str,
    toolsets: tuple[str, ...],
    expires: float | None,
    max_running: int | None,
    daily_budget: dict[str, float] | None,
) -> None:
    """Make a token for the client NAME and print it, once: only its hash is kept.

    Whoever has it is a principal of its own, token:NAME: its conversations, results and spending are nobody else's. It
    is good at once, also with a daemon that runs.
    """
    made: list[str] = []
    now = time.time()

    def add(book: "TokenBook") -> "TokenBook":
        changed, token = book.with_new(
            name,
            now,
            toolsets=tuple(dict.fromkeys(toolsets)),
            expires_at=None if expires is None else now + expires,
            max_running=max_running,
            daily_budget=daily_budget,
        )
        made.append(token)
        return changed

    _change(add)
    click.echo(made[0])
    if toolsets:
        _note_missing(toolsets)
    click.echo("It is shown this once. Clients send it as TOOLD_TOKEN, or as Authorization: Bearer …", err=True)


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def list_(as_json: bool) -> None:
    """Show the named tokens, with what each may; never the tokens themselves."""
    from ..daemon.access import read_tokens

    with _failing():
        tokens = read_tokens(default_state_dir(os.environ)).tokens
    now = time.time()
    if as_json:
        click.echo(json.dumps([_plain(token, now) for token in tokens]))
    elif not tokens:
        click.echo("There is no named token; `toold token create NAME` makes one.")
    else:
        print_table(HEADERS, [_row(token, now) for token in tokens], gives_way="TOOLSETS")


@click.command()
@click.argument("name")
def revoke(name: str) -> None:
    """Take the token NAME back: its connections are closed, and it is let in no more."""
    now = time.time()
    _change(lambda book: book.revoked(name, now))
    click.echo(f"revoked: {name}")


def _note_missing(toolsets: Iterable[str]) -> None:
    from .command_settings import WrongSettingError, note_missing, settings_with

    with suppress(WrongSettingError):  # `toold doctor` tells it, and a start
        note_missing(toolsets, settings_with({}))


def _change(change: Callable[["TokenBook"], "TokenBook"]) -> None:
    from ..daemon.access import change_tokens

    with _failing():
        change_tokens(default_state_dir(os.environ), change)


@contextmanager
def _failing() -> Iterator[None]:
    """What cannot be done ends the command with its line."""
    from ..daemon.access import TokenError
    from ..daemon.persistence.state_directory import StateError

    try:
        yield
    except (StateError, TokenError) as error:
        raise CommandFailedError(str(error)) from error


def _state(token: "NamedToken", now: float) -> str:
    if token.revoked_at is not None:
        return "revoked"
    return "good" if token.invalid_reason(now) is None else "expired"


def _plain(token: "NamedToken", now: float) -> dict[str, Any]:
    return {
        "name": token.name,
        "state": _state(token, now),
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
        ", ".join(token.toolsets) or "all",
        "never" if token.expires_at is None else _minute(token.expires_at),
        "-" if token.max_running is None else str(token.max_running),
        ", ".join(f"{amount:g} {currency}" for currency, amount in token.daily_budget.items()) or "-",
        _minute(token.created_at),
    )


def _minute(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M}"
