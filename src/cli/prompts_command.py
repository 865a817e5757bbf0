"""``toold prompts``: shows the prompt that a hosted agent would get."""

import asyncio
from typing import TYPE_CHECKING

import click
import msgspec

from .command_settings import settings_with
from .daemon_connection import CommandFailedError
from .settings_file import find_settings_file
from .terminal_output import say, say_json

if TYPE_CHECKING:
    from ..daemon import Settings
    from ..tools import PromptQuery, ResolvedPrompt


@click.group()
def command() -> None:
    """Show the prompts of hosted agents. The table [prompts] in toold.toml says where they come from."""


@command.command(short_help="Show a prompt, its source and its version.")
@click.argument("name")
@click.argument("variables", nargs=-1, metavar="[VARIABLE=TEXT]...")
@click.option("--role", metavar="ROLE", help="If no file is named NAME, use the file named after this role.")
@click.option(
    "--tag", metavar="TAG", help="The tag of the version to read from Phoenix.  [default: the configured one]"
)
@click.option("--config", metavar="PATH", help="The settings file.  [default: the running daemon's]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def show(
    name: str, variables: tuple[str, ...], role: str | None, tag: str | None, config: str | None, as_json: bool
) -> None:
    """Show the prompt that a role with prompt_ref = NAME would get now, with these values of its variables.

    Needs no running daemon, and asks the prompt servers with the keys in this command's environment. Exits with 1 if
    there is no such prompt.
    """
    from ..tools import PromptQuery

    file = find_settings_file(config)
    in_use = config or file.before is not None  # a named file that does not exist is an error
    settings = settings_with({"config": str(file.path) if in_use else None})
    query = PromptQuery(role or name, ref=name, tag=tag, variables=dict(map(_variable, variables)))
    prompt = asyncio.run(_resolve(query, settings))
    if as_json:
        say_json(msgspec.json.encode(prompt))
        return
    model = f", model {prompt.model}" if prompt.model else ""
    say(f"{name}: {prompt.source}, version {prompt.version}{model}", err=True)
    for warning in prompt.warnings:
        say(f"{name}: {warning}", err=True)
    say(prompt.text)


def _variable(argument: str) -> tuple[str, str]:
    name, separator, value = argument.partition("=")
    if not name or not separator:
        raise click.UsageError(f"{argument!r} must be VARIABLE=TEXT")
    return name, value


async def _resolve(query: "PromptQuery", settings: "Settings") -> "ResolvedPrompt":
    from ..prompts import KEPT_PROMPTS_DIRECTORY, PromptChain
    from ..tools import PromptError

    chain = PromptChain(settings.prompts, settings.state_dir / KEPT_PROMPTS_DIRECTORY, keeps=False)
    try:
        return await chain.resolve(query)
    except PromptError as error:
        raise CommandFailedError(str(error)) from None
    finally:
        await chain.close()
