"""The tables ``[clink.NAME]`` are validated; errors name the table and the field."""

from typing import Any

import pytest
from toold.tools import SubagentSettingsError, clink_tools, read_subagents


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ("claude", "must be set in toold.toml"),
        ({"a b": {}}, "has an invalid name"),
        ({"claude": {}}, "claude.command"),
        ({"claude": {"command": "claude -p"}}, "claude.command must be a list"),
        ({"claude": {"command": []}}, "claude.command must have one entry or more"),
        ({"claude": {"command": ["./claude"]}}, "name of a program in PATH"),
        ({"claude": {"command": ["claude"], "output": "claud"}}, "did you mean 'claude'"),
        ({"claude": {"command": ["claude"], "env": ["TOOLD_TOKEN"]}}, "claude.env.0 must not name settings of toold"),
        ({"claude": {"command": ["claude"], "shell": True}}, "claude.shell"),
    ],
)
def test_invalid_tables_are_refused(tables: Any, words: str) -> None:
    """Each mistake is an error that names its place."""
    with pytest.raises(SubagentSettingsError, match=words):
        read_subagents(tables)


def test_the_schema_names_subagents_and_roles() -> None:
    """A single subagent is the default; of several, the caller names one. Own roles join the shipped ones."""
    one = {"claude": {"command": ["claude", "-p"], "output": "claude"}}
    (tool,) = clink_tools(read_subagents(one))
    properties = tool.info.input_schema["properties"]
    assert (properties["cli_name"]["default"], tool.info.input_schema["required"]) == ("claude", ["prompt"])
    assert properties["role"]["enum"] == ["default", "planner", "codereviewer"]
    two = one | {"codex": {"command": ["codex", "exec", "--json"], "roles": {"tester": "Write tests."}}}
    (tool,) = clink_tools(read_subagents(two))
    assert tool.info.input_schema["required"] == ["prompt", "cli_name"]
    assert tool.info.input_schema["properties"]["role"]["enum"][-1] == "tester"
    assert clink_tools({}) == []
