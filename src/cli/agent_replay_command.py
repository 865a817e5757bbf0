"""``toold agents replay``: runs a recorded run again with another prompt or model, and shows what differs."""

from pathlib import Path
from typing import Any, Final

import click
import msgspec

from .agent_runs_command import agent_tool
from .daemon_connection import run
from .terminal_output import say, say_json

_PROMPT_SUFFIXES: Final = frozenset({".txt", ".md", ".prompt"})
"""A value of --prompt that contains a slash or ends like this is the path of a file; any other value is a name."""


@click.command("replay", short_help="Run a recorded run again, with another prompt or model.")
@click.argument("run_id", metavar="RUN")
@click.option("--prompt", metavar="FILE|NAME", help="A different system prompt: a file or a prompt's name.")
@click.option("--model", metavar="MODEL", help="A different model.")
@click.option(
    "--role", help="The role that gets the prompt or model.  [default: all; --prompt requires it if there are several]"
)
@click.option(
    "--tools",
    type=click.Choice(("recorded", "live")),
    default="recorded",
    show_default=True,
    help="Answer tool calls from the recording, or run read-only tools again.",
)
@click.option("--allow-writes", is_flag=True, help="With --tools live, also run tools that are not read-only.")
@click.option(
    "--budget", metavar="AMOUNT", help="The cost limit, such as '0.50 USD'.  [default: the agent's run_budget]"
)
@click.option("--max-tokens", type=click.IntRange(min=1), help="The token limit.  [default: the agent's]")
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

    The replay asks models, which costs money. Tool calls are answered from the recording: a call with the same tool
    and arguments gets the recorded result. Any other call gets an error, and is listed at the end. Ctrl-C cancels the
    replay.
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
    """The tool's argument for the prompt: the text of a file, or a name.

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
