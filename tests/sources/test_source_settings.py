"""What can be said of a source, and what is said of it where it is wrong."""

from pathlib import Path
from typing import Any

import pytest
from toold.sources import SourceSettingsError, anchored, read_sources
from toold.sources.source_secret import SourceSecret
from toold.sources.source_settings import McpSettings, OpenApiSettings

CRM: dict[str, Any] = {"type": "openapi", "spec": "/apis/crm.json"}


def test_a_source_needs_little() -> None:
    """Time, retries and rate have the documented defaults, and private addresses are closed."""
    (crm,) = read_sources({"crm": CRM}).values()
    assert isinstance(crm, OpenApiSettings)
    assert (crm.timeout_s, crm.retries, crm.max_running, crm.allow_private) == (30, 2, 8, False)
    assert (crm.rate.per_minute, crm.rate.burst) == (100, 100)


@pytest.mark.parametrize(
    "auth",
    [
        {"type": "bearer", "env": "CRM_TOKEN"},
        {"type": "api_key", "in": "query", "name": "key", "file": "/run/crm.key"},
        {"type": "basic", "username": "me", "env": "CRM_PASSWORD"},
    ],
)
def test_secrets_are_named_by_their_place(auth: dict[str, Any]) -> None:
    """Bearer, key and basic: each says where its secret is."""
    assert read_sources({"crm": CRM | {"auth": auth}})["crm"].auth is not None


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ("crm.json", r"must be tables of toold.toml: \[sources.NAME\]"),
        ({"a b": CRM}, "a source's name is a letter"),
        ({"crm": "crm.json"}, r"\[sources.crm\] must be a table"),
        ({"crm": {"spec": "x"}}, r"\[sources.crm\] type must be openapi"),
        ({"crm": {"type": "openapi"}}, r"\[sources.crm\] spec must be there"),
        ({"crm": CRM | {"timeout_s": 0}}, r"timeout_s must be more than 0"),
        ({"crm": CRM | {"retires": 1}}, r"retires is no key; did you mean 'retries'\?"),
        ({"crm": CRM | {"rate": {"brst": 1}}}, r"rate.brst is no key; did you mean 'burst'\?"),
        ({"crm": CRM | {"base_url": "crm.example"}}, "base_url must be a URL that starts with http"),
        ({"crm": CRM | {"spec": "https://me:hunter2@crm.example/"}}, "spec must hold no password"),
        ({"crm": CRM | {"allow_private": "all"}}, "allow_private must be true, false or a list of hosts"),
        ({"crm": CRM | {"auth": {"type": "token", "env": "X"}}}, "auth type must be one of 'bearer'"),
        ({"crm": CRM | {"auth": {"env": "X"}}}, "auth must have a type"),
        ({"crm": CRM | {"auth": {"type": "bearer"}}}, "auth must name where the secret is"),
        ({"crm": CRM | {"auth": {"type": "bearer", "env": "X", "file": "y"}}}, "env or file, one"),
        (
            {"crm": CRM | {"auth": {"type": "bearer", "token": "hunter2"}}},
            r"auth.token is no key; auth has type, and env",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tables: object, said: str) -> None:
    """The error names the source and the key, says what is allowed, and never shows a value that may be a secret."""
    with pytest.raises(SourceSettingsError, match=said) as caught:
        read_sources(tables)
    assert "hunter2" not in str(caught.value)


def test_relative_paths_start_at_the_file() -> None:
    """The document's and the secret's; an address stays what it is, and what is wrong is left to be refused."""
    tables = {
        "crm": CRM | {"spec": "apis/crm.yaml", "auth": {"type": "bearer", "file": "crm.token"}},
        "far": CRM | {"spec": "https://crm.example/openapi.json"},
        "odd": 7,
    }
    meant: Any = anchored(tables, Path("/etc/toold"))
    assert meant["crm"]["spec"] == "/etc/toold/apis/crm.yaml"
    assert meant["crm"]["auth"]["file"] == Path("/etc/toold/crm.token")
    assert meant["far"]["spec"] == "https://crm.example/openapi.json"
    assert meant["odd"] == 7
    assert anchored("odd", Path("/etc")) == "odd"


MCP = {"type": "mcp", "command": ["server", "--fast"]}


def test_a_server_is_a_program_or_an_address() -> None:
    """With what goes with each; no rate bounds it that nobody set."""
    table = MCP | {"env": {"MODE": "fast", "KEY": {"env": "SERVER_KEY"}, "TOKEN": {"file": "/run/token"}}}
    (program,) = read_sources({"s": table}).values()
    assert isinstance(program, McpSettings)
    assert program.command == ("server", "--fast")
    assert program.env == {
        "MODE": "fast",
        "KEY": SourceSecret("SERVER_KEY", None),
        "TOKEN": SourceSecret(None, Path("/run/token")),
    }
    assert (program.timeout_s, program.start_timeout_s, program.rate) == (30, 30, None)
    (address,) = read_sources({"s": {"type": "mcp", "url": "https://tools.example/mcp"}}).values()
    assert isinstance(address, McpSettings)
    assert address.allow_private is False


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"url": "https://tools.example/mcp"}, "must have command, or url, one of them"),
        ({"command": None}, "must have command, or url, one of them"),
        ({"command": "server"}, "command must be a list"),
        ({"command": []}, "command must not be empty"),
        ({"command": ["server", 3]}, "command must be text"),
        ({"allow_private": True}, "auth and allow_private go with url"),
        ({"command": None, "url": "https://tools.example", "env": {"A": "b"}}, "env and cwd go with command"),
        ({"env": {"A B": "c"}}, "env must have names of letters"),
        ({"env": {"A": {"env": "B", "file": "c"}}}, "env A must be text, or where it is"),
        ({"env": {"A": 1}}, "env A must be text, or where it is"),
        ({"envs": {}}, "envs is no key; did you mean 'env'?"),
        ({"url": "ftp://tools.example", "command": None}, "url must be a URL"),
    ],
)
def test_what_is_wrong_with_a_server_is_said(fields: dict[str, Any], said: str) -> None:
    """The key, and what is allowed."""
    with pytest.raises(SourceSettingsError) as raised:
        read_sources({"s": MCP | fields})
    assert str(raised.value).startswith("[sources.s] ")
    assert said in str(raised.value)


def test_a_program_runs_beside_its_file(tmp_path: Path) -> None:
    """Its directory and the files of its secrets start where toold.toml is."""
    table = MCP | {"env": {"TOKEN": {"file": "token"}}}
    assert anchored({"s": table}, tmp_path) == {
        "s": table | {"cwd": tmp_path, "env": {"TOKEN": {"file": tmp_path / "token"}}}
    }
    assert anchored({"s": table | {"cwd": "servers"}}, tmp_path)["s"]["cwd"] == tmp_path / "servers"  # type: ignore[index]
