"""The settings of sources, and the errors for wrong ones."""

from pathlib import Path
from typing import Any

import pytest
from toold.sources import SourceSettingsError, anchored, read_sources
from toold.sources.source_settings import McpSettings, OpenApiSettings
from toold.tools import SecretLocation

CRM: dict[str, Any] = {"type": "openapi", "spec": "/apis/crm.json"}


def test_most_settings_have_defaults() -> None:
    """Timeout, retries and rate have the documented defaults, and private addresses are forbidden."""
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
def test_secrets_are_configured_by_location(auth: dict[str, Any]) -> None:
    """For bearer, key and basic authentication."""
    assert read_sources({"crm": CRM | {"auth": auth}})["crm"].auth is not None


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ("crm.json", r"must be set in toold.toml, as tables \[sources.NAME\]"),
        ({"a b": CRM}, "a source's name is a letter"),
        ({"crm": "crm.json"}, r"\[sources.crm\] must be a table"),
        ({"crm": {"spec": "x"}}, r"\[sources.crm\] type must be one of openapi"),
        ({"crm": {"type": "openapi"}}, r"\[sources.crm\] spec is required"),
        ({"crm": CRM | {"timeout_s": 0}}, r"timeout_s must be more than 0"),
        ({"crm": CRM | {"retires": 1}}, r"retires is not a setting; did you mean 'retries'\?"),
        ({"crm": CRM | {"rate": {"brst": 1}}}, r"rate.brst is not a setting; did you mean 'burst'\?"),
        ({"crm": CRM | {"base_url": "crm.example"}}, "base_url must be a URL that starts with http"),
        ({"crm": CRM | {"spec": "https://me:hunter2@crm.example/"}}, "spec must not contain a password"),
        ({"crm": CRM | {"allow_private": "all"}}, "allow_private must be true, false or a list of hosts"),
        ({"crm": CRM | {"auth": {"type": "token", "env": "X"}}}, "auth type must be one of 'bearer'"),
        ({"crm": CRM | {"auth": {"env": "X"}}}, "auth must have a type"),
        (
            {"crm": CRM | {"auth": {"type": "api_key", "env": "X", "name": "k", "in": "cookie"}}},
            "must be one of header, query",
        ),
        ({"crm": CRM | {"auth": {"type": "bearer"}}}, "auth must name the location of the secret"),
        ({"crm": CRM | {"auth": {"type": "bearer", "env": "X", "file": "y"}}}, "either env or file"),
        (
            {"crm": CRM | {"auth": {"type": "bearer", "token": "hunter2"}}},
            r"auth.token is not a setting; auth has type, and env",
        ),
    ],
)
def test_errors_name_source_and_key(tables: object, message: str) -> None:
    """They state what is allowed, and never show a value, which may be a secret."""
    with pytest.raises(SourceSettingsError, match=message) as caught:
        read_sources(tables)
    assert "hunter2" not in str(caught.value)


def test_relative_paths_are_resolved_against_the_settings_file() -> None:
    """Of the document and the secret; URLs stay as they are, and wrong values are left for validation."""
    tables = {
        "crm": CRM | {"spec": "apis/crm.yaml", "auth": {"type": "bearer", "file": "crm.token"}},
        "far": CRM | {"spec": "https://crm.example/openapi.json"},
        "odd": 7,
    }
    resolved: Any = anchored(tables, Path("/etc/toold"))
    assert resolved["crm"]["spec"] == "/etc/toold/apis/crm.yaml"
    assert resolved["crm"]["auth"]["file"] == Path("/etc/toold/crm.token")
    assert resolved["far"]["spec"] == "https://crm.example/openapi.json"
    assert resolved["odd"] == 7
    assert anchored("odd", Path("/etc")) == "odd"


MCP = {"type": "mcp", "command": ["server", "--fast"]}


def test_a_server_is_a_program_or_a_url() -> None:
    """Each with its own settings; there is no rate limit by default."""
    table = MCP | {"env": {"MODE": "fast", "KEY": {"env": "SERVER_KEY"}, "TOKEN": {"file": "/run/token"}}}
    (program,) = read_sources({"s": table}).values()
    assert isinstance(program, McpSettings)
    assert program.command == ("server", "--fast")
    assert program.env == {
        "MODE": "fast",
        "KEY": SecretLocation("SERVER_KEY", None),
        "TOKEN": SecretLocation(None, Path("/run/token")),
    }
    assert (program.timeout_s, program.start_timeout_s, program.rate) == (300, 30, None)
    (address,) = read_sources({"s": {"type": "mcp", "url": "https://tools.example/mcp"}}).values()
    assert isinstance(address, McpSettings)
    assert address.allow_private is False


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"url": "https://tools.example/mcp"}, "must have exactly one of command, url and image"),
        ({"command": None}, "must have exactly one of command, url and image"),
        ({"command": "server"}, "command must be a list"),
        ({"command": []}, "command must have one entry or more"),
        ({"command": ["server", 3]}, "command must be text"),
        ({"allow_private": True}, "auth and allow_private require url"),
        ({"command": None, "url": "https://tools.example", "env": {"A": "b"}}, "env and cwd require command"),
        ({"env": {"A B": "c"}}, "env must have names of letters"),
        ({"env": {"A": {"env": "B", "file": "c"}}}, "env A must be text, {"),
        ({"env": {"A": 1}}, "env A must be text, {"),
        ({"envs": {}}, "envs is not a setting; did you mean 'env'?"),
        ({"url": "ftp://tools.example", "command": None}, "url must be a URL"),
    ],
)
def test_errors_of_a_server_name_the_key(fields: dict[str, Any], message: str) -> None:
    """And what is allowed."""
    with pytest.raises(SourceSettingsError) as raised:
        read_sources({"s": MCP | fields})
    assert str(raised.value).startswith("[sources.s] ")
    assert message in str(raised.value)


def test_a_program_runs_in_the_directory_of_the_settings_file(tmp_path: Path) -> None:
    """Its working directory and its secrets' files are relative to that of toold.toml."""
    table = MCP | {"env": {"TOKEN": {"file": "token"}}}
    assert anchored({"s": table}, tmp_path) == {
        "s": table | {"cwd": tmp_path, "env": {"TOKEN": {"file": tmp_path / "token"}}}
    }
    assert anchored({"s": table | {"cwd": "servers"}}, tmp_path)["s"]["cwd"] == tmp_path / "servers"  # type: ignore[index]
