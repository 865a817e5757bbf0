"""``toold providers``: lists the providers, checks one, and lists its models."""

import asyncio
import dataclasses
import json
import sys
from collections.abc import Mapping
from typing import Any, Final

import click

from ..daemon import Settings
from ..protocol.error_codes import CallError
from ..protocol.name_suggestions import close_names, did_you_mean
from .command_settings import settings_with
from .console_tables import Row, print_table
from .daemon_connection import CommandFailedError
from .doctor_command import print_checks
from .settings_file import find_settings_file
from .shell_completions import complete_provider
from .terminal_output import say, say_json

PROVIDERS: Final[Row] = ("PROVIDER", "TYPE", "STATE", "KEY", "MODELS", "DEFAULT MODEL", "BASE URL")
MODELS: Final[Row] = ("MODEL", "LISTED", "WINDOW", "OUTPUT", "INPUTS", "THINKING", "PRICE")
_CONFIG = click.option("--config", metavar="PATH", help="The settings file.  [default: the running daemon's]")


@click.group()
def command() -> None:
    """List and check the providers: Kimi, GLM, and the tables [providers.NAME] in toold.toml.

    Keys in environment variables are those of this shell; a running daemon may not have them.
    """


@command.command("list", short_help="List the providers.")
@_CONFIG
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def list_(config: str | None, as_json: bool) -> None:
    """List the providers, where their keys are, and how many of their models are known. Sends no request."""
    from ..daemon.checks.provider_checks import provider_rows

    rows = provider_rows(_settings(config))
    if as_json:
        say_json(json.dumps(rows, ensure_ascii=False).encode())
        return
    print_table(PROVIDERS, [_provider(row) for row in rows], shrink="BASE URL")
    if all(row["simulated"] for row in rows):
        say("No key is set, or simulate is on: a local simulator answers for all of them.")


@command.command(short_help="Check a provider.")
@click.argument("name", shell_complete=complete_provider)
@_CONFIG
@click.option("--complete", "completes", is_flag=True, help="Also make one short completion, which is billed.")
@click.option("--model", metavar="MODEL", help="The model of the completion.  [default: the provider's default_model]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def check(name: str, config: str | None, completes: bool, model: str | None, as_json: bool) -> None:
    """Check the provider NAME: its key, its SDK, whether its host is reachable, and its list of models.

    The list takes one request with the key, for which vendors do not charge. Only --complete requests a completion:
    about 10 tokens in and up to 16 out, or more if the model thinks. Exits with 1 if a check fails.
    """
    from ..daemon.checks import provider_checks

    settings = _known(name, _settings(config))
    checks = asyncio.run(provider_checks.check_provider(settings, name))
    if completes or model is not None:
        checks.append(asyncio.run(provider_checks.complete(settings, name, model)))
    if as_json:
        say_json(json.dumps([dataclasses.asdict(each) for each in checks], ensure_ascii=False).encode())
    else:
        print_checks(checks)
    sys.exit(any(each.status == "fail" for each in checks))


@command.command(short_help="List a provider's models.")
@click.argument("name", shell_complete=complete_provider)
@_CONFIG
@click.option("--json", "as_json", is_flag=True, help="Print one JSON array.")
def models(name: str, config: str | None, as_json: bool) -> None:
    """List the models of the provider NAME: those that its vendor lists, and those that toold knows.

    Sends one request, for which vendors do not charge. Unknown values are empty; the table [models."PROVIDER/ID"]
    in toold.toml can set them (docs/providers.md).
    """
    from ..daemon.checks.provider_checks import list_models

    try:
        found = asyncio.run(list_models(_known(name, _settings(config)), name))
    except CallError as error:
        raise CommandFailedError(error.message) from None
    if as_json:
        say_json(json.dumps(found.models, ensure_ascii=False).encode())
        return
    print_table(MODELS, [_model(row) for row in found.models], shrink="INPUTS")
    if found.simulated:
        say("A local simulator answered; the vendor may list others.")


def _settings(config: str | None) -> Settings:
    file = find_settings_file(config)
    return settings_with({"config": str(file.path) if config or file.before is not None else None})


def _known(name: str, settings: Settings) -> Settings:
    names = [vendor.info.name for vendor in settings.vendors]
    if name not in names:
        hint = did_you_mean(close_names(name, names, n=1)) or f"configured: {', '.join(names)}"
        raise click.UsageError(f"there is no provider {name!r}; {hint}")
    return settings


def _provider(row: Mapping[str, Any]) -> Row:
    state = "simulated" if row["simulated"] else "available" if row["available"] else "no key"
    cells = (row["name"], row["type"], state, row["key"], row["known_models"], row["default_model"], row["base_url"])
    return tuple("-" if cell is None else str(cell) for cell in cells)


def _model(row: Mapping[str, Any]) -> Row:
    price = row["price"]
    return (
        row["id"],
        "yes" if row["listed"] else "no",
        _tokens(row["context_window"]),
        _tokens(row["max_output"]),
        ", ".join(row["inputs"]),
        "" if row["thinking"] == "unknown" else row["thinking"],
        f"{price['input']:g} in, {price['output']:g} out {price['currency']}" if price else "",
    )


def _tokens(count: int | None) -> str:
    return "" if count is None else f"{count:,}"
