"""Editors' MCP servers as sources."""

from pathlib import Path
from typing import Any

import pytest
from toold.cli.editors import ImportedServer, SkippedServer, import_server, servers_in, source_name

SECRETS, HOME = Path("/state/secrets"), Path("/home/me")
TOKEN = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"


def imported(entry: Any) -> ImportedServer | SkippedServer:
    return import_server("the title", entry, "name", secrets=SECRETS, directory=Path("/dir"), home=HOME)


def table(entry: dict[str, Any]) -> dict[str, Any]:
    server = imported(entry)
    assert isinstance(server, ImportedServer), server
    return dict(server.table)


@pytest.mark.parametrize(
    "config",
    [
        {"mcpServers": {"a": {"command": "x"}}, "theme": "dark"},
        {"servers": {"a": {"command": "x", "type": "stdio"}}, "inputs": []},
        {"context_servers": {"a": {"command": {"path": "x", "args": []}}}},
        {"mcp_servers": {"a": {"command": "x"}}},
        {"mcp": {"servers": {"a": {"command": "x"}}}},
        {"projects": {"/here": {"mcpServers": {"a": {"command": "x"}}}, "/other": {"mcpServers": {"b": {}}}}},
        {"mcp": {"a": {"type": "local", "command": ["x"]}}},
        {"a": {"command": "x"}},
    ],
)
def test_the_servers_of_every_editor_are_recognized(config: dict[str, Any]) -> None:
    """Cursor and others, VS Code (both files), Zed, Codex, Claude Code's projects, OpenCode, and a bare object."""
    servers = servers_in(config, "/here")
    assert list(servers) == ["a"]
    assert table(servers["a"]) == {"type": "mcp", "command": ["x"]}


@pytest.mark.parametrize("config", [{}, {"theme": "dark"}, {"mcpServers": {}}, {"mcpServers": 1, "mcp": None}])
def test_a_file_without_servers_has_none(config: dict[str, Any]) -> None:
    """Other settings are not taken for servers."""
    assert servers_in(config, "/here") == {}


def test_secrets_become_references() -> None:
    """Values that may be secrets go to files, placeholders to variables; only what is certainly harmless stays."""
    server = imported(
        {
            "command": "npx",
            "args": ["-y", "pkg", "${userHome}/data", "~/more"],
            "env": {
                "GITHUB_PAT": TOKEN,
                "DB": "postgres://me:pw@host/db",
                "PHRASE": "correct horse",
                "LOG_LEVEL": "debug",
                "PORT": 80,
                "VERBOSE": True,
                "DATA": "/srv/data",
                "BASE": "https://api.example.com",
                "TOKEN": "${env:MY_TOKEN}",
                "KEY": "${input:api-key}",
                "UNSET": None,
            },
        }
    )
    assert isinstance(server, ImportedServer)
    assert server.table == {
        "type": "mcp",
        "command": ["npx", "-y", "pkg", "/home/me/data", "/home/me/more"],
        "env": {
            "GITHUB_PAT": {"file": "/state/secrets/name-GITHUB_PAT"},
            "DB": {"file": "/state/secrets/name-DB"},
            "PHRASE": {"file": "/state/secrets/name-PHRASE"},
            "LOG_LEVEL": "debug",
            "PORT": "80",
            "VERBOSE": "true",
            "DATA": "/srv/data",
            "BASE": "https://api.example.com",
            "TOKEN": {"env": "MY_TOKEN"},
            "KEY": {"file": "/state/secrets/name-api-key"},
        },
    }
    assert server.secrets[SECRETS / "name-GITHUB_PAT"] == TOKEN
    assert SECRETS / "name-api-key" not in server.secrets
    assert server.notes == (
        "needs the variable MY_TOKEN in the daemon's environment",
        "write the value of api-key into /state/secrets/name-api-key (mode 600)",
    )


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"url": "https://h.example/mcp"}, {}),
        ({"url": "https://h.example/mcp", "type": "sse"}, {"transport": "sse"}),
        ({"serverUrl": "https://h.example/mcp", "headers": {"Accept": "x"}}, {}),
        ({"httpUrl": "https://h.example/mcp", "type": "http"}, {}),
        (
            {"url": "https://h.example/mcp", "headers": {"Authorization": f"Bearer {TOKEN}"}},
            {"auth": {"type": "bearer", "file": "/state/secrets/name-Authorization"}},
        ),
        (
            {"url": "https://h.example/mcp", "headers": {"authorization": "Bearer ${env:T}"}},
            {"auth": {"type": "bearer", "env": "T"}},
        ),
        (
            {"url": "https://h.example/mcp", "headers": {"Authorization": "Basic bWU6cHc="}},
            {"auth": {"type": "basic", "username": "me", "file": "/state/secrets/name-password"}},
        ),
        (
            {"url": "https://h.example/mcp", "headers": {"X-Key": "{env:K}"}},
            {"auth": {"type": "api_key", "in": "header", "name": "X-Key", "env": "K"}},
        ),
        (
            {"url": "https://h.example/mcp", "bearer_token_env_var": "T"},
            {"auth": {"type": "bearer", "env": "T"}},
        ),
        (
            {"url": "https://h.example/mcp", "env_http_headers": {"X-Key": "K"}},
            {"auth": {"type": "api_key", "in": "header", "name": "X-Key", "env": "K"}},
        ),
    ],
)
def test_the_header_of_an_address_becomes_its_auth(entry: dict[str, Any], expected: dict[str, Any]) -> None:
    """Bearer, Basic and a key in a header, from a literal or a reference; harmless headers are left out."""
    assert table(entry) == {"type": "mcp", "url": "https://h.example/mcp"} | expected


def test_an_address_of_this_machine_is_allowed() -> None:
    """The editor connects to it, so the source may, too."""
    assert table({"url": "http://localhost:3000/mcp"})["allow_private"] == ["localhost"]
    assert table({"url": "http://10.0.0.7/mcp"})["allow_private"] == ["10.0.0.7"]


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ("x", "not an object"),
        ({}, "neither a command nor a URL"),
        ({"command": "/x/toold", "args": ["mcp"]}, "toold itself"),
        ({"command": "x", "disabled": True}, "disabled"),
        ({"command": "x", "enabled": False}, "disabled"),
        ({"command": "x", "args": [1]}, "not a list of texts"),
        ({"command": "x", "env": [1]}, "env is not an object"),
        ({"command": "x", "envFile": ".env"}, "envFile"),
        ({"command": "x", "args": ["${workspaceFolder}"]}, "depends on the editor"),
        ({"command": "x", "args": ["--api-key", "s3cret"]}, "argument 2 looks like a secret"),
        ({"command": "x", "args": [f"--t={TOKEN}"]}, "argument 1 looks like a secret"),
        ({"command": "x", "env": {"K": "s3cret\nmore"}}, "several lines"),
        ({"url": "https://h.example/mcp?apiKey=s3cret"}, "URL has a secret"),
        ({"url": "https://h.example/mcp", "headers": {"A": "s3cret", "B": "s3cret"}}, "2 headers (A, B)"),
    ],
)
def test_what_cannot_be_taken_over_is_skipped_with_the_reason(entry: Any, reason: str) -> None:
    """The reason quotes no value."""
    server = imported(entry)
    assert isinstance(server, SkippedServer)
    assert reason in server.reason
    assert server.name == "the title"
    assert "s3cret" not in server.reason
    assert TOKEN not in server.reason


def test_a_reference_to_an_own_variable_stays() -> None:
    """Programs such as mcp-remote expand it themselves."""
    entry = {"command": "npx", "args": ["mcp-remote", "u", "--header", "Authorization:${AUTH}"], "env": {"AUTH": TOKEN}}
    assert table(entry)["command"][-1] == "Authorization:${AUTH}"


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("git hub", "git-hub"),
        ("@scope/tracker", "tracker"),
        ("7zip", "s-7zip"),
        ("", "server"),
        ("taken", "taken-2"),
        ("x" * 40, "x" * 32),
    ],
)
def test_a_title_becomes_a_valid_name(title: str, name: str) -> None:
    """A source's name is the prefix of its tools' names."""
    assert source_name(title, {"taken"}) == name
