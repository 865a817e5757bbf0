"""``toold tools``: the list, and one tool."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from tests.cli.conftest import result
from toold.cli.tools_command import example, first_sentence, hints
from toold.protocol.tool_call import ToolInfo

if TYPE_CHECKING:
    from tests.cli.conftest import Run, StubDaemon


def test_the_list_has_one_line_per_tool(run: Run, daemon: StubDaemon) -> None:
    """Name and first sentence of the description, in 80 columns; with --long the whole sentence, and the hints."""
    long = f"It is {'very ' * 30}so."
    daemon.tools[1] = daemon.tools[1] | {"description": long}
    assert run("tools").stdout.splitlines() == [
        "NAME    DESCRIPTION",
        "echo    Say it back.",
        f"status  {long}"[:79] + "…",
    ]
    assert [line.split(maxsplit=1)[1] for line in run("tools", "--long").stdout.splitlines()] == [
        f"{'DESCRIPTION':{len(long)}}  HINTS",
        f"{'Say it back.':{len(long)}}  read-only, idempotent",
        f"{long}  destructive",
    ]


@pytest.mark.parametrize(
    ("description", "sentence"),
    [
        ("Say it\nback. Word for word.", "Say it back."),
        ("Is it so? Say why.", "Is it so?"),
        ("Count it\n\nThe rest.", "Count it"),
        ("", ""),
    ],
)
def test_a_sentence_may_span_lines(description: str, sentence: str) -> None:
    """Where a line of the source ends says nothing of where the sentence does."""
    assert first_sentence(description) == sentence


def test_one_tool_is_shown_with_its_arguments_and_an_example(run: Run, daemon: StubDaemon) -> None:
    """Every argument with type, default and description; then a command line that works."""
    result = run("tools", "echo")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[:3] == ["echo  (read-only, idempotent)", "Say it back.", ""]
    assert "text      string           (required)  What to say." in lines
    assert "files     array of string  []" in lines
    assert lines[-1] == "Example: toold call echo text='…'"


def test_control_characters_are_removed(run: Run, daemon: StubDaemon) -> None:
    """In the list and of one tool: descriptions, names of arguments, values and defaults; lines stay, and JSON is as it
    came.
    """
    evil = "\x1b]0;mine\x07\x9b31m\u202e"
    argument = {"enum": [f"a{evil}"], "description": f"d{evil}", "default": evil}
    properties = {f"k{evil}": argument, "plain": {"default": evil}}
    daemon.tools = [
        {
            **daemon.tools[0],
            "description": f"Say{evil} it.\r\n\nAll{evil} of it.\nAnd more.",
            "inputSchema": {"type": "object", "properties": properties, "required": [f"k{evil}"]},
        }
    ]
    shown = run("tools").stdout + run("tools", "echo").stdout
    assert not [char for char in shown if not (char.isprintable() or char == "\n")]
    assert "of it.\nAnd more.\n" in shown
    assert json.loads(run("tools", "echo", "--json").stdout) == daemon.tools[0]


def test_a_tool_without_arguments(run: Run, daemon: StubDaemon) -> None:
    """No empty table is printed."""
    assert "It takes no arguments." in run("tools", "status").stdout


def test_json_is_the_tools_unchanged(run: Run, daemon: StubDaemon) -> None:
    """An array for all, an object with the schema for one."""
    assert json.loads(run("tools", "--json").stdout) == daemon.tools
    assert json.loads(run("tools", "echo", "--json").stdout) == daemon.tools[0]


def test_the_default_toolset_is_listed_unless_one_is_named(
    run: Run, daemon: StubDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The default toolset, or the named one; a single tool is found among all that ``call`` accepts."""
    run("tools")
    run("tools", "echo")
    run("tools", "echo", "--toolset", "lean")
    monkeypatch.setenv("TOOLD_TOOLSET", "mine")
    run("tools")
    toolsets = [frame.get("toolset") for frame in daemon.frames if frame["op"] == "hello"]
    assert toolsets == [None, "full", "lean", "mine"]


def test_an_unknown_tool_gets_a_suggestion(run: Run, daemon: StubDaemon) -> None:
    """A near miss is a usage error."""
    result = run("tools", "ehco")
    assert result.exit_code == 2
    assert "did you mean 'echo'?" in result.stderr


@pytest.mark.parametrize("command", [("call", "more", "a=1"), ("tools", "more")], ids=["call", "tools"])
def test_a_quarantined_tool_is_reported(run: Run, daemon: StubDaemon, command: tuple[str, ...]) -> None:
    """It is listed nowhere; why, and what the operator can do, is the daemon's to say."""
    reported = "The tool 'more' is new since s was accepted; it is held back (`toold sources approve s more`)."

    def refuse(call: dict[str, Any], send: Any) -> None:
        error = {"code": "PERMISSION_DENIED", "message": reported, "executed": "no", "retryable": False}
        send("call_tool_res", request_id=call["request_id"], **result("", outputs=[], error=error))

    daemon.tools = [*daemon.tools, {**daemon.tools[1], "name": "search_tools"}]
    daemon.on_call = refuse
    ended = run(*command)
    assert ended.exit_code == 1
    assert ended.stderr.startswith(f"PERMISSION_DENIED: {reported}\n")
    assert daemon.wait_for("call_tool")["arguments"] == {"names": ["more"]}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"properties": {"a": {"type": "integer"}, "b": {"type": "boolean"}}, "required": ["a", "b"]}, " a=1 b=true"),
        ({"properties": {"x": {"type": "number"}, "y": {}}}, " x=0.5"),
        ({"properties": {"x": {"type": "object"}}, "required": ["x"]}, " x:='{…}'"),
        ({"properties": {"x": {}}}, " x='…'"),
        ({"properties": {"x": {"anyOf": [{"enum": ["kimi", "glm"]}, {"type": "null"}]}}}, " x=kimi"),
        ({}, ""),
    ],
)
def test_an_example_names_what_is_required(schema: dict[str, object], words: str) -> None:
    """Each required argument with a sample of its type, or the first where none is required."""
    tool = {"name": "t", "description": "", "inputSchema": schema}
    tool["annotations"] = dict.fromkeys(("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"), False)
    info = msgspec.convert(tool, ToolInfo)
    assert example(info) == "toold call t" + words
    assert hints(info) == []
