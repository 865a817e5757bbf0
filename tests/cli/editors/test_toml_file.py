"""TOML, changed by whole tables."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toold.cli.editors.server_entry import RefusedFileError
from toold.cli.editors.toml_file import change, parse, set_key, toml_literal

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


# --- top-level keys --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "a = [1]\n"),
        ("b = 2", "b = 2\na = [1]\n"),
        ("#a = 0\n#b = 0\n", "#a = 0\na = [1]\n#b = 0\n"),
        ("a = 0 # mine\nb = 2\n", "a = [1]\nb = 2\n"),
        ("a = [\n  0,\n]\nb = 2\n", "a = [1]\nb = 2\n"),
        ('b = """\na = 0\n#a = 0\n"""\n', 'b = """\na = 0\n#a = 0\n"""\na = [1]\n'),
        ("b = 2\n\n# of t\n[t]\na = 0\n", "b = 2\n\n# of t\na = [1]\n\n[t]\na = 0\n"),
        ("[t]\na = 0\n", "a = [1]\n\n[t]\na = 0\n"),
    ],
)
def test_a_key_is_set_before_the_tables(before: str, after: str) -> None:
    """In place of the old value, however many lines it has, else where it is commented out, else after the keys."""
    assert set_key(before, "a", [1]) == after
    assert set_key(after, "a", [1]) == after


@pytest.mark.parametrize("text", ["[a]\nb = 1\n", "a.b = 1\n", "a ="])
def test_a_key_in_another_form_is_refused(text: str) -> None:
    """A table, a dotted key, and a text that is not TOML stay as they are."""
    with pytest.raises(RefusedFileError, match=r"by hand|fix it first"):
        set_key(text, "a", 1)


VALUES = st.recursive(
    st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@given(VALUES)
def test_a_literal_reads_back_as_the_value(value: object) -> None:
    """Strings with any characters, nested lists and tables."""
    assert tomllib.loads(f"a = {toml_literal(value)}")["a"] == value
