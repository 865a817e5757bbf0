"""JSON with comments, changed in one place."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.cli.editors.jsonc_file import change, parse
from toold.cli.editors.server_entry import RefusedFileError

KEYS = ("mcpServers", "toold")
ENTRY = {"command": "/bin/toold", "args": ["mcp"]}
COMMENTED = """\
// mine
{
  "theme": "{dark}", /* as ever */
  "mcpServers": {
    "other": {"command": "x", "args": ["a", {"b": []}]}, // keep
  },
}
"""

NAMES = st.sampled_from(["mcpServers", "toold", "a", 'q"\\', "é"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
FILES = st.dictionaries(NAMES, VALUES, max_size=4).filter(lambda file: isinstance(file.get("mcpServers", {}), dict))


def test_the_rest_of_the_file_stays() -> None:
    """Comments, other servers and trailing commas stay; the entry is a separate member."""
    after = change(COMMENTED, KEYS, ENTRY)
    assert parse(after)["mcpServers"] == {**parse(COMMENTED)["mcpServers"], "toold": ENTRY}
    assert [line for line in COMMENTED.splitlines() if line not in after.splitlines()] == []
    assert change(after, KEYS, None) == COMMENTED


@given(FILES, st.sampled_from([None, 2, "\t"]))
def test_one_place_is_changed(file: dict[str, Any], indent: int | str | None) -> None:
    """Whatever else the file says, it says it afterwards; and once the entry is taken out, nothing else is missing."""
    text = json.dumps(file, indent=indent)
    after = change(text, KEYS, ENTRY)
    servers = file.get("mcpServers", {})
    assert parse(after) == {**file, "mcpServers": {**servers, "toold": ENTRY}}
    assert change(after, KEYS, ENTRY) == after
    assert parse(change(after, KEYS, None)) == without_entry({**file, "mcpServers": {**servers, "toold": ENTRY}})
    assert parse(change(text, KEYS, None)) == (without_entry(file) if "toold" in servers else file)


def without_entry(file: dict[str, Any]) -> dict[str, Any]:
    """The file without the entry; an object left empty is removed too."""
    servers = {name: server for name, server in file["mcpServers"].items() if name != "toold"}
    others = {name: value for name, value in file.items() if name != "mcpServers"}
    return {**others, "mcpServers": servers} if servers else others


@pytest.mark.parametrize(
    "text", ['{\n  "theme": "dark" // mine\n}\n', '{\n\t"a": 1,\n\t"b": {\n\t\t"c": 2,\n\t},\n}', COMMENTED]
)
def test_an_added_entry_can_be_removed(text: str) -> None:
    """To the byte, with the object that was made for it; one with a comment stays."""
    assert change(change(text, KEYS, ENTRY), KEYS, None) == text
    noted = '{\n  "mcpServers": {\n    // none yet\n  }\n}'
    assert change(change(noted, KEYS, ENTRY), KEYS, None) == noted


@pytest.mark.parametrize("text", ["", "\n", "// nothing yet\n", "{}", "{ // empty\n}"])
def test_a_file_without_any(text: str) -> None:
    """The object of the servers is added; a comment stays."""
    after = change(text, KEYS, ENTRY)
    assert parse(after) == {"mcpServers": {"toold": ENTRY}}
    assert "//" not in text or text.partition("\n")[0] in after


@pytest.mark.parametrize(
    "text",
    ["{", "[]", "7", '{"a": }', '{"a" 1}', '{"mcpServers": []}', '{"a": 1, "a": 2}', "{'a': 1}", '{"a": "\n"}', "{]"],
)
def test_an_unparsable_file_is_refused(text: str) -> None:
    """With what to do about it, rather than be made worse."""
    with pytest.raises(RefusedFileError, match="fix it first"):
        change(text, KEYS, ENTRY)
