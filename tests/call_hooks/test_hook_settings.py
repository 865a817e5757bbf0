"""``[hooks.NAME]`` in toold.toml: what is refused, and how."""

from pathlib import Path

import pytest
from toold.call_hooks import HookSettingsError, anchored_hooks, read_hooks
from toold.tools import SecretLocation


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ("x", "tables of toold.toml"),
        ({"a b": {"command": ["x"]}}, "name is a letter"),
        ({"h": "x"}, r"h: .*\[hooks.h\] with url or command"),
        ({"h": {}}, "h: .*must have either url or command"),
        ({"h": {"url": "https://h.example", "command": ["x"]}}, "either url or command"),
        ({"h": {"url": "http://h.example"}}, "use https, or set allow_http"),
        ({"h": {"command": []}}, "h: command must have one entry"),
        ({"h": {"command": [""]}}, "must begin with a program"),
        ({"h": {"command": ["x"], "key": {"env": "K"}}}, "require url"),
        ({"h": {"url": "https://h.example", "env": {"A": "b"}}}, "require command"),
        ({"h": {"url": "https://h.example", "key": "secret-value"}}, "h: key must be"),
        ({"h": {"command": ["x"], "events": []}}, "h: events"),
        ({"h": {"command": ["x"], "events": ["around"]}}, "h: events must be one of before, after"),
        ({"h": {"command": ["x"], "on_failure": "ignore"}}, "h: on_failure must be one of refuse, allow"),
        ({"h": {"command": ["x"], "timeout_s": 0}}, "h: timeout_s must be more than 0"),
        ({"h": {"command": ["x"], "tool": ["y"]}}, "h: tool is not a setting; did you mean 'tools'"),
        ({f"h{number}": {"command": ["x"]} for number in range(21)}, "at most 20"),
    ],
)
def test_invalid_hooks(tables: object, message: str) -> None:
    """The error names the hook and the key, and never a value that may be secret."""
    with pytest.raises(HookSettingsError, match=message) as error:
        read_hooks(tables)
    assert "secret-value" not in str(error.value)


def test_which_calls_a_hook_covers() -> None:
    """By event, tool and principal; all by default."""
    all_calls = read_hooks({"h": {"command": ["x"]}})["h"]
    some = read_hooks(
        {"h": {"command": ["x"], "events": ["after"], "tools": ["crm_*", "x"], "principals": ["token:*"]}}
    )["h"]
    assert all_calls.covers("before", "echo", "local")
    assert all_calls.covers("after", "echo", "local")
    assert some.covers("after", "crm_get", "token:ann")
    assert not some.covers("before", "crm_get", "token:ann")
    assert not some.covers("after", "echo", "token:ann")
    assert not some.covers("after", "crm_get", "local")


def test_paths_begin_at_the_settings_file() -> None:
    """The working directory of a program is that of toold.toml, and so is where relative files of secrets are."""
    tables = {
        "program": {"command": ["x"], "env": {"K": {"file": "k"}, "M": "fast"}},
        "elsewhere": {"command": ["x"], "cwd": "sub"},
        "server": {"url": "https://h.example", "key": {"file": "key"}},
    }
    hooks = read_hooks(anchored_hooks(tables, Path("/etc/toold")))
    assert hooks["program"].cwd == Path("/etc/toold")
    assert hooks["program"].secrets == (SecretLocation(None, Path("/etc/toold/k")),)
    assert hooks["elsewhere"].cwd == Path("/etc/toold/sub")
    assert hooks["server"].secrets == (SecretLocation(None, Path("/etc/toold/key")),)
