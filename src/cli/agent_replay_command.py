"""``toold agents replay``: runs a recorded run again with another prompt or model, and shows what differs."""

from pathlib import Path
from typing import Any, Final

import click
import msgspec

from .agent_runs_command import agent_tool
from .daemon_connection import run
from .terminal_output import say, say_json

_PROMPT_SUFFIXES: Final = frozenset({".txt", ".md", ".prompt"})
"""A prompt with such a name, or with a slash, is a file that must exist."""


@click.command("replay", short_help="Run a recorded run again, with another prompt or model.")
@click.argument("run_id", metavar="RUN")
@click.option("--prompt", metavar="FILE|NAME", help="Another system prompt: a file, or its name at a prompt source.")
@click.option("--model", metavar="MODEL", help="Another model.")
@click.option("--role", help="The role that gets them.  [default: all; for a prompt the only one]")
@click.option(
    "--tools",
    type=click.Choice(("recorded", "live")),
    default="recorded",
    show_default=True,
    help="Answer tools from the recording, or run those that are read-only.",
)
@click.option("--allow-writes", is_flag=True, help="With --tools live: run the other tools, too.")
@click.option(
    "--budget", metavar="AMOUNT", help="What it may cost, such as '0.50 USD'.  [default: the agent's run_budget]"
)
@click.option("--max-tokens", type=click.IntRange(min=1), help="Tokens that it may use.  [default: the agent's]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    run_id: str,
    prompt: str | None,
    model: str | None,
    role: str | None,
    tools: str,
    allow_writes: bool,
    budget: str | None,
    max_tokens: int | None,
    as_json: bool,
) -> None:
    """Run the recorded run RUN again, and show what differs: turns, calls with arguments, answer, tokens, cost.

    Models are asked, and cost money. Tools are answered from the recording: a call with the same tool and arguments
    gets the recorded result; for any other, the model reads an error, and the call is listed. Ctrl-C cancels.
    """
    if allow_writes and tools != "live":
        raise click.UsageError("--allow-writes needs --tools live")
    arguments: dict[str, Any] = {
        "run_id": run_id,
        "model": model,
        "role": role,
        "tools": tools,
        "allow_writes": allow_writes,
        "run_budget": budget,
        "max_tokens": max_tokens,
        **({} if prompt is None else _prompt(prompt)),
    }
    result = run(agent_tool("agent_replay", {name: value for name, value in arguments.items() if value is not None}))
    if as_json:
        say_json(msgspec.json.encode(result.structured))
    else:
        say(result.text)


def _prompt(prompt: str) -> dict[str, str]:
    """The argument for a file, or for a name.

    Raises:
        click.UsageError: the file cannot be read.
    """
    path = Path(prompt)
    if not path.is_file() and "/" not in prompt and path.suffix not in _PROMPT_SUFFIXES:
        return {"prompt_ref": prompt}
    try:
        return {"prompt": path.read_text(encoding="utf-8")}
    except (OSError, UnicodeDecodeError) as error:
        raise click.UsageError(f"--prompt {prompt}: cannot be read ({error})") from None
