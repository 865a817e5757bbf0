"""``toold call``: calls one tool."""

import sys
import uuid
from collections.abc import Awaitable, Callable, Sequence

import click

from ..client import CallResult, MCPWebSocketClient, result_of
from ..protocol.error_codes import CallError
from ..protocol.handshake import PROSE_TEXT
from ..protocol.tool_call import Metadata, ToolInfo
from .call_arguments import ArgumentWord, bind, parse_word
from .call_output import CallDisplay, json_answer, print_result, stderr_lines
from .daemon_connection import connected, describe, run, toolset_option
from .shell_completions import complete_argument, complete_tool
from .terminal_output import Styled, say, say_json
from .tools_command import find_tool

ToolFinder = Callable[[str, MCPWebSocketClient], Awaitable[ToolInfo]]


@click.command()
@click.argument("name", shell_complete=complete_tool)
@click.argument("words", nargs=-1, shell_complete=complete_argument, metavar="[key=value | key:=json | key=@file]...")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--stream", is_flag=True, help="Print the text as it arrives.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="S",
    help="The call's timeout in seconds.  [default: the tool's]",
)
@toolset_option
def command(
    name: str, words: Sequence[str], as_json: bool, stream: bool, timeout: float | None, toolset: str | None
) -> None:
    """Call the tool NAME and print its result.

    \b
    key=value    a value, converted to the type in the tool's schema
    key:=json    a JSON value: temperature:=0.5, value:='{"a": [1, 2]}', system:=null
    key=@file    the text of a file; key=@- reads standard input, key:=@file reads a JSON file

    A repeated key makes an array. `toold tools NAME` shows the tool's arguments. NAME may be any tool of the daemon;
    --toolset or TOOLD_TOOLSET limits it to one toolset. Progress goes to stderr. Ctrl-C cancels the call.
    """
    if as_json and stream:
        raise click.UsageError("--json and --stream are mutually exclusive")
    call_and_print(name, words, as_json=as_json, stream=stream, timeout=timeout, toolset=toolset)


def call_and_print(
    name: str,
    words: Sequence[str],
    *,
    as_json: bool,
    stream: bool = False,
    timeout: float | None = None,
    toolset: str | None = None,
    find: ToolFinder = find_tool,
) -> None:
    """Call a tool, print its result, and exit. ``find`` returns the tool of this name."""
    parsed_words = [parse_word(word) for word in words]
    request_id = uuid.uuid4().hex
    display = CallDisplay()
    pending = _call(
        name,
        parsed_words,
        request_id=request_id,
        timeout=timeout,
        display=display,
        stream=stream,
        toolset=toolset,
        find=find,
    )
    outcome, metadata = run(pending)
    if as_json:
        say_json(json_answer(request_id, outcome, metadata))
    elif isinstance(outcome, CallError):
        say(describe(outcome), err=True)
    else:
        if not display.streamed:
            print_result(outcome)
        for line in stderr_lines(outcome, terminal=sys.stderr.isatty()):
            say(Styled(line, dim=True), err=True)
    sys.exit(isinstance(outcome, CallError))


async def _call(
    name: str,
    words: Sequence[ArgumentWord],
    *,
    request_id: str,
    timeout: float | None,
    display: CallDisplay,
    stream: bool,
    toolset: str | None,
    find: ToolFinder,
) -> tuple[CallResult | CallError, Metadata | None]:
    """The result or the error, with the metadata of the answer; None if there was no answer."""
    metadata = None
    features = ("ack", PROSE_TEXT, "stream") if stream else ("ack", PROSE_TEXT)
    async with connected(features=features, toolset=toolset, all_tools=True) as client:
        tool = await find(name, client)
        arguments = bind(tool.name, tool.input_schema, words)
        with display:
            try:
                answer = await client.answer(
                    tool.name,
                    arguments,
                    timeout=timeout,
                    on_progress=display.progress,
                    on_chunk=display.chunk if stream else None,
                    request_id=request_id,
                )
                metadata = answer.metadata
                return result_of(answer), metadata
            except CallError as error:
                return error, metadata
