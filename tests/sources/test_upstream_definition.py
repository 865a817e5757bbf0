"""A tool as its server defines it."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from toold.protocol.tool_call import Annotations
from toold.sources import upstream_definition
from toold.sources.upstream_definition import UpstreamDefinition, changes, definition_diff, served_name

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}


@pytest.mark.parametrize(
    ("hints", "expected"),
    [
        ({}, Annotations(False, True, False, True)),
        ({"readOnlyHint": True}, Annotations(True, False, False, True)),
        ({"readOnlyHint": True, "openWorldHint": False}, Annotations(True, False, False, True)),
        ({"destructiveHint": False, "idempotentHint": True}, Annotations(False, False, True, True)),
        ({"readOnlyHint": "yes"}, Annotations(False, True, False, True)),
    ],
)
def test_all_hints_but_open_world_are_used(hints: dict[str, Any], expected: Annotations) -> None:
    """Every call is journalled; missing hints have MCP's defaults."""
    assert UpstreamDefinition("t", hints=hints).annotations == expected


def test_the_digest_depends_on_content() -> None:
    """Not on the order of keys."""
    reordered = {"properties": {"a": {"type": "string"}}, "type": "object"}
    assert UpstreamDefinition("t", "d", SCHEMA).digest == UpstreamDefinition("t", "d", reordered).digest
    assert UpstreamDefinition("t", "d", SCHEMA).digest != UpstreamDefinition("t", "e", SCHEMA).digest


def test_changes_are_named() -> None:
    """Each part that callers choose a tool by."""
    before = UpstreamDefinition("t", "d", SCHEMA)
    assert changes(before, UpstreamDefinition("t", "e", SCHEMA)) == "description"
    assert changes(before, UpstreamDefinition("t", "e", {})) == "description and arguments"
    assert changes(before, UpstreamDefinition("t", "d", SCHEMA, {"type": "object"}, {"readOnlyHint": True})) == (
        "result and annotations"
    )


@pytest.mark.parametrize(
    ("name", "taken", "expected"),
    [
        ("read", set(), "read"),
        ("read", {"read"}, "files_read"),
        ("read", {"read", "files_read"}, "files_read_2"),
        ("fs/read.text", set(), "files_fs_read_text"),
        ("x" * 70, set(), "files_" + "x" * 49 + "_"),
    ],
)
def test_the_servers_name_is_used_if_possible(name: str, taken: set[str], expected: str) -> None:
    """Otherwise it is prefixed by the source's name."""
    served = served_name("files", name, taken)
    assert served.startswith(expected)
    assert len(served) <= 64


def test_a_diff_shows_the_old_and_the_new_text() -> None:
    """Without what is the same, safe for a terminal, and bounded."""
    before = UpstreamDefinition("t", "Read.\nOne file.", {"type": "object"}, title="T")
    now = UpstreamDefinition("t", "Read.\nAll files\x1b[2J.", {"type": "object", "required": ["a"]}, title="T")
    diff = definition_diff(before, now)
    assert "-One file." in diff
    assert "+All files" in diff
    assert "\x1b" not in diff
    assert '+  "required": [' in diff
    assert "readOnlyHint" not in diff
    assert len(definition_diff(before, UpstreamDefinition("t", "x" * 100_000))) < 21_000
    assert "only the first 400 lines" in definition_diff(before, UpstreamDefinition("t", "x\n" * 1000))


@pytest.mark.parametrize("value", [{"a": [1, {"b": []}, {}, 'x,:{}"\\ y'], "c": None, "d": {"e": 1.5}}, [[[True]]]])
def test_the_lines_of_a_diff_are_those_of_indented_json(value: Any) -> None:
    """As msgspec writes it."""
    encoded = msgspec.json.encode(value)
    lines = "\n".join(upstream_definition._indented(encoded.decode()))
    assert lines == msgspec.json.format(encoded, indent=1).decode()


def test_a_diff_of_nested_definitions_ends_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the lines that are compared are made: indented, nested lists take hundreds of times their size."""
    nested: Any = [1] * 10_000
    for _ in range(100):
        nested = [nested]
    made: list[str] = []

    def counted(encoded: str) -> Iterator[str]:
        for line in indented(encoded):
            made.append(line)
            yield line

    indented = upstream_definition._indented
    monkeypatch.setattr(upstream_definition, "_indented", counted)
    assert "only the first 400 lines" in definition_diff(UpstreamDefinition("t"), UpstreamDefinition("t", hints=nested))
    assert len(made) < 1000
