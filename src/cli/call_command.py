"""``toold call``: one call from the command line."""

import sys
import uuid
from collections.abc import Sequence

import click

from ..client import CallResult
from ..protocol.error_codes import CallError
from .call_arguments import ArgumentWord, bind, parse_word
from .call_output import Stage, asides, json_answer, print_result
from .daemon_connection import connected, describe, run, toolset_option
from .tools_command import find_tool


@click.command(short_help="Call a tool: toold call chat prompt='Hello'.")
@click.argument("name")
@click.argument("words", nargs=-1, metavar="[key=value | key:=json | key=@file]...")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
@click.option("--stream", is_flag=True, help="Print the answer's text as it comes.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="S",
    help="The call's deadline in seconds.  [default: the tool's own]",
)
@toolset_option
def command(
    name: str, words: Sequence[str], as_json: bool, stream: bool, timeout: float | None, toolset: str | None
) -> None:
    """Call the tool NAME and print its answer.

    \b
    key=value    the value, read as what the tool's schema says it is; text stays text
    key:=json    any JSON value: temperature:=0.5, value:='{"a": [1, 2]}', system:=null
    key=@file    a file's text; key=@- reads standard input, key:=@file a file of JSON

    The tool may be any that the daemon has; of one toolset alone with --toolset, or TOOLD_TOOLSET.
    A key that stands several times makes an array. `toold tools NAME` shows the tool's arguments. Progress goes to
    stderr while the call runs; Ctrl-C cancels the call on the daemon.
    """
    if as_json and stream:
        raise click.UsageError("--json and --stream exclude each other: one object at the end, or text as it comes")
    parsed = [parse_word(word) for word in words]
    request_id = uuid.uuid4().hex
    stage = Stage()
    calling = _call(
        name,
        parsed,
        request_id=request_id,
        timeout=timeout,
        stage=stage,
        stream=stream,
        toolset=toolset,
    )
    outcome = run(calling)
    if as_json:
        click.echo(json_answer(request_id, outcome))
    elif isinstance(outcome, CallError):
        click.echo(describe(outcome), err=True)
    else:
        if not stage.streamed:
            print_result(outcome)
        for line in asides(outcome, terminal=sys.stderr.isatty()):
            click.secho(line, err=True, dim=True)
    sys.exit(isinstance(outcome, CallError))


async def _call(
    name: str,
    words: Sequence[ArgumentWord],
    *,
    request_id: str,
    timeout: float | None,
    stage: Stage,
    stream: bool,
    toolset: str | None,
) -> CallResult | CallError:
    features = ("ack", "stream") if stream else ("ack",)
    async with connected(features=features, toolset=toolset, all_tools=True) as client:
        tool = await find_tool(name, client)
        arguments = bind(tool.name, tool.input_schema, words)
        with stage:
            try:
                return await client.call(
                    tool.name,
                    arguments,
                    timeout=timeout,
                    on_progress=stage.progress,
                    on_chunk=stage.chunk if stream else None,
                    request_id=request_id,
                )
            except CallError as error:
                return error
