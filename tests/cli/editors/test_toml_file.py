"""TOML, changed by whole tables."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.cli.editors.server_entry import RefusedFileError
from toold.cli.editors.toml_file import change, parse

KEYS = ("mcp_servers", "toold")
ENTRY = {"command": "/bin/toold", "args": ["mcp"], "env": {"TOOLD_STATE_DIR": "/s"}}
OTHERS = """\
# mine
model = "x" # as ever

[mcp_servers.other]
command = "y"
"""


def test_the_rest_of_the_file_stays() -> None:
    """Comments and other servers are as they were; the entry is a table at the end, and goes with those below it."""
    after = change(OTHERS, KEYS, ENTRY)
    assert after.startswith(OTHERS)
    assert parse(after)["mcp_servers"] == {"other": {"command": "y"}, "toold": ENTRY}
    changed = change(after, KEYS, {"command": "z"})
    assert parse(changed)["mcp_servers"]["toold"] == {"command": "z"}
    assert change(changed, KEYS, None) == OTHERS
    assert change("", KEYS, ENTRY).startswith("[mcp_servers.toold]\n")
    assert change(change("", KEYS, ENTRY), KEYS, None) == ""


def test_a_second_change_has_no_effect() -> None:
    """An entry that is as it should be stays to the byte, at the end or before other tables."""
    for text in ("", OTHERS, "model = 1", change(OTHERS, KEYS, ENTRY) + "\n[last]\na = 1\n"):
        once = change(text, KEYS, ENTRY)
        assert change(once, KEYS, ENTRY) == once


@given(st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20))
def test_any_path_is_written_as_it_is(path: str) -> None:
    """Quotes, backslashes and control characters of a command come back as they went in."""
    assert tomllib.loads(change(OTHERS, KEYS, {"command": path}))["mcp_servers"]["toold"] == {"command": path}


@pytest.mark.parametrize(
    "text",
    ['mcp_servers = {toold = {command = "x"}}', 'mcp_servers.toold.command = "x"', "[mcp_servers]\ntoold = {}", "a ="],
)
def test_another_form_is_refused(text: str) -> None:
    """A file that is not TOML, or has the entry in another form than a table, is refused with a reason."""
    with pytest.raises(RefusedFileError, match=r"by hand|fix it first"):
        change(text, KEYS, ENTRY)
